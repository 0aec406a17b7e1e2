"""A release: its file gives back what was saved, and guarantee and stamps of several say the same."""

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm_core import Budget, ClippedScore, Domain, Structure, Terms, Workload
from dpgm_core.releases.release import Round, guarantee_of
from dpgm_core.releases.session import (
    UNKNOWN,
    bins_of,
    caveats_of,
    labels_facts,
    merges_of,
    session_facts,
    sessions_of,
    stamp_of,
    step_facts,
)
from dpgm_core.releases.steps import SessionTerms

DOMAIN = Domain.from_sizes({"a": 2, "b": 3})
STRUCTURE = Structure(DOMAIN, [("a", "b")])


def released(mechanism="laplace", randomness=None, **terms):
    """A release of a few records under these terms."""
    codes = np.array([[0, 1], [1, 2]] * 20)
    stated = Terms(**{"neighbours": "add-remove"} | terms)
    return dpgm.release(codes, STRUCTURE, Budget.pure(1), mechanism, terms=stated, randomness=randomness)


def test_several_releases_say_one_guarantee():
    """Cost, relation and unit once, and that it holds for all; what one of them needs to be said is said once."""
    one, two = released(), released(total=40)
    text = guarantee_of([one, two, two], Budget.pure(3))
    assert text.startswith("Differential privacy with epsilon = 3 under add-remove neighbours; the protected unit is")
    assert "It holds for all 3 releases together. " in text
    assert text.count("was declared by the owner") == 1


def in_session(steps):
    """A release as a session leaves it, with so many steps."""
    one = released()
    terms = SessionTerms(workload=Workload.all(DOMAIN), budget=Budget.pure(1), merges={})
    return evolve(one, session=terms, steps=(one,) * steps)


def test_a_session_says_that_the_structure_was_chosen_privately():
    """And no longer that it is assumed public; how many steps the promise covers stands beside."""
    text = in_session(3).guarantee()
    assert (
        "The structure was chosen privately, within the stated budget. "
        "Assumed public: the domain, the workload and every setting of the run. "
    ) in text
    assert "the domain, the structure" not in text
    assert "It holds for a session of 3 adaptive steps together" in text
    assert "session of 1 adaptive step together" in in_session(1).guarantee()
    assert "chosen privately" not in released().guarantee()


def test_a_structure_check_names_no_structure_but_another_release_does():
    """Pairs of a check are drawn at random; cliques that somebody named stay assumed public, beside a session."""
    session, named = in_session(2), released()
    check = evolve(named, holdout=True)
    assert "The structure was chosen privately" in guarantee_of([session, check], Budget.pure(2))
    for several in ([session, named], [named, session]):
        text = guarantee_of(several, Budget.pure(2))
        assert "Part of the structure was chosen privately" in text and "the cliques that were named" in text


def test_one_seeded_or_unsafe_release_stamps_all():
    """Whichever of them it is."""
    textbook = {"name": "laplace", "exact": False, "allow_unsafe": True}
    seeded = released(mechanism=textbook, randomness=dpgm.SeededRandomness(1))
    for several in ([released(), seeded], [seeded, released()]):
        text = guarantee_of(several, Budget.pure(2))
        assert text.startswith("UNSAFE: ") and "NOT PRIVATE (private = false)" in text


def test_a_round_says_its_number_rate_and_what_its_tables_hold():
    """In its guarantee and in its file; the rate is exact, and scores are told from counts."""
    plain = Round(number=2, of=8, sampling_rate=Fraction(1, 3))
    assert "round 2 of 8" in plain.sentence() and "scores" not in plain.sentence()
    assert plain.to_dict()["sampling_rate"] == "1/3" and plain.to_dict()["clip_norm"] is None
    clipped = Round(number=1, of=1, sampling_rate=Fraction(1), clip=ClippedScore(norm=Fraction(1, 2), grid=64))
    assert "clipped scores in units of 1/64, no counts" in clipped.sentence()
    assert (clipped.to_dict()["clip_norm"], clipped.to_dict()["grid"]) == ("1/2", 64)


SINGLE = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
KINDS = {
    "seeded": ({"randomness": dpgm.SeededRandomness(1)}, "NOT PRIVATE"),
    "unsafe": ({"mechanism": {"name": "laplace", "exact": False, "allow_unsafe": True}}, "UNSAFE: "),
    "public": ({"terms": dpgm.Terms(neighbours="add-remove", total="public")}, "CONDITIONAL ON PUBLIC N"),
}


def stamped(**options):
    options = {"terms": dpgm.Terms(neighbours="add-remove")} | options
    return dpgm.release(np.zeros((9, 1), int), SINGLE, dpgm.Budget.pure(1), **options)


def test_a_plain_release_has_no_caveat():
    """Nor has one whose N is public where the relation covers it, or declared by the owner."""
    assert caveats_of([stamped()]) == ()
    assert caveats_of([stamped(terms=dpgm.Terms(neighbours="replace-one", total="public"))]) == ()
    assert caveats_of([stamped(terms=dpgm.Terms(neighbours="add-remove", total=9))]) == ()
    told = {"private": True, "unsafe": None, "conditions": [], "guarantee": "text"}
    assert stamp_of([stamped()], "text") == told


@pytest.mark.parametrize("kind", KINDS)
def test_each_caveat_is_in_the_guarantee_word_by_word(kind):
    """One vocabulary, whichever of several releases has the flaw; each is said once."""
    options, words = KINDS[kind]
    flawed, plain = stamped(**options), stamped()
    for releases in ([flawed], [plain, flawed], [flawed, flawed]):
        (caveat,) = caveats_of(releases)
        assert caveat.startswith(words)
        assert caveat in flawed.guarantee()
    stamp = stamp_of([plain, flawed], "")
    assert stamp["private"] is (kind != "seeded")
    assert bool(stamp["unsafe"]) is (kind == "unsafe")
    assert ["CONDITIONAL" in one for one in stamp["conditions"]] == ([True] if kind == "public" else [])


def test_all_caveats_are_said_together():
    """A release with every flaw, unsafe first as in the guarantee."""
    options = {key: value for one, _ in KINDS.values() for key, value in one.items()}
    both = evolve(stamped(**options), unsafe="another reason")
    kinds = [one.split(":")[0].split("(")[0].strip() for one in caveats_of([both])]
    assert kinds == ["UNSAFE", "NOT PRIVATE", "CONDITIONAL ON PUBLIC N"]
    assert both.guarantee().startswith("UNSAFE: another reason. Were it not: NOT PRIVATE")


def test_of_no_release_nothing_is_known():
    """Neither private nor not."""
    assert caveats_of([]) == (UNKNOWN.removesuffix("."),)
    assert stamp_of([], UNKNOWN) == {"private": None, "unsafe": None, "conditions": [], "guarantee": UNKNOWN}


def test_a_release_of_named_cliques_tells_nothing_of_choices():
    """No session, labels or bins; as a step it is a measurement of its cliques."""
    one = stamped()
    assert (session_facts([one]), labels_facts([one]), sessions_of([one])) == ({}, {}, [])
    assert (bins_of([one]), merges_of([one])) == ([], {})
    assert step_facts(one) == {"kind": "measure", "cliques": [["a"]], "cost": {"epsilon": "1"}}
