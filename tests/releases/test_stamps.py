"""What goes with whatever is computed from releases says the same as their guarantee, in the same words."""

import numpy as np
import pytest
from attrs import evolve

import dpgm_core as dpgm
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

STRUCTURE = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
KINDS = {
    "seeded": ({"randomness": dpgm.SeededRandomness(1)}, "NOT PRIVATE"),
    "unsafe": ({"mechanism": {"name": "laplace", "exact": False, "allow_unsafe": True}}, "UNSAFE: "),
    "public": ({"terms": dpgm.Terms(neighbours="add-remove", total="public")}, "CONDITIONAL ON PUBLIC N"),
}


def released(**options):
    options = {"terms": dpgm.Terms(neighbours="add-remove")} | options
    return dpgm.release(np.zeros((9, 1), int), STRUCTURE, dpgm.Budget.pure(1), **options)


def test_a_plain_release_has_no_caveat():
    """Nor has one whose N is public where the relation covers it, or declared by the owner."""
    assert caveats_of([released()]) == ()
    assert caveats_of([released(terms=dpgm.Terms(neighbours="replace-one", total="public"))]) == ()
    assert caveats_of([released(terms=dpgm.Terms(neighbours="add-remove", total=9))]) == ()
    assert stamp_of([released()], "text") == {"private": True, "unsafe": None, "conditions": [], "guarantee": "text"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_caveat_is_in_the_guarantee_word_by_word(kind):
    """One vocabulary, whichever of several releases has the flaw; each is said once."""
    options, words = KINDS[kind]
    flawed, plain = released(**options), released()
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
    both = evolve(released(**options), unsafe="another reason")
    assert [one.split(":")[0].split("(")[0].strip() for one in caveats_of([both])] == [
        "UNSAFE",
        "NOT PRIVATE",
        "CONDITIONAL ON PUBLIC N",
    ]
    assert both.guarantee().startswith("UNSAFE: another reason. Were it not: NOT PRIVATE")


def test_of_no_release_nothing_is_known():
    """Neither private nor not."""
    assert caveats_of([]) == (UNKNOWN.removesuffix("."),)
    assert stamp_of([], UNKNOWN) == {"private": None, "unsafe": None, "conditions": [], "guarantee": UNKNOWN}


def test_a_release_of_named_cliques_tells_nothing_of_choices():
    """No session, no labels, no bins; as a step it is a measurement of its cliques. What is told of sessions is tested
    in app/tests/cli/test_outcome.py step by step."""
    one = released()
    assert (session_facts([one]), labels_facts([one]), sessions_of([one])) == ({}, {}, [])
    assert (bins_of([one]), merges_of([one])) == ([], {})
    assert step_facts(one) == {"kind": "measure", "cliques": [["a"]], "cost": {"epsilon": "1"}}
