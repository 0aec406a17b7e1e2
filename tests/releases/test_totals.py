"""The total of noisy tables: its estimate, and a public one against it: when it is said, and how often by chance."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm_core import Budget, Domain, Sensitivity, Structure, Tables, Terms
from dpgm_core.releases.pooling import total_of
from dpgm_core.releases.totals import (
    contradictions,
    estimate_total,
    false_alarm,
    far_from,
    mostly_missing,
    stated_total,
)
from tests.fixtures import live_curator, seeded
from tests.models.enumerated import merged_session

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
PLAIN = Structure(DOMAIN, [("a", "b"), ("b",), ("c",)])
TIED = Structure(DOMAIN, [("b",)], tied=[[("a",), ("c",)]])
ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)


def released(total, structure=PLAIN, budget="1/2", mechanism="laplace", records=400, **more):
    codes = np.zeros((records, 3), dtype=int)
    kind = Budget.pure if mechanism == "laplace" else Budget.zcdp
    randomness = dpgm.SeededRandomness(3)
    terms = Terms(neighbours="add-remove", total=total)
    return dpgm.release(codes, structure, kind(budget), mechanism, terms=terms, randomness=randomness, **more)


def off_by(release, errors):
    """The release with all noise taken away and one stated total that many standard errors from the tables' own.

    The standard error is that of the best linear combination, by the textbook: the inverse of the summed precisions.
    """
    precision = sum(
        m**2 / (cells * noise.variance)
        for m, cells, noise in zip(
            release.structure.multiplicities, release.structure.sizes, release.noise, strict=True
        )
    )
    values = np.zeros(release.structure.cells)
    values[np.cumsum([0, *release.structure.sizes[:-1]])] = 400 * np.array(release.structure.multiplicities)
    tables = Tables(release.structure, values)
    total = 400 + errors / math.sqrt(precision)
    return evolve(release, tables=tables, total=total, terms=evolve(release.terms, total=total))


@pytest.mark.parametrize("structure", [PLAIN, TIED], ids=["plain", "tied"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("split", ["even", "optimal"])
def test_a_total_beyond_six_standard_errors_is_said(structure, mechanism, split):
    """On both sides of 6, and on both sides of the truth; with tied cliques and unequal noise."""
    release = released(9.0, structure, mechanism=mechanism, split=split)
    for errors in (-6.01, 6.01, 40):
        assert len(contradictions([off_by(release, errors)])) == 1
    for errors in (-5.99, 0, 5.99):
        assert contradictions([off_by(release, errors)]) == []


def test_the_sentence_has_both_numbers():
    """What was stated, what the tables sum to, its standard error, and how far that is."""
    release = released(9_000)
    (sentence,) = contradictions([release])
    estimated, variance = estimate_total(release.tables, release.variances)
    assert f"total of 9,000 is stated as public, but the noisy tables sum to {estimated:,.1f} " in sentence
    assert f"(standard error {math.sqrt(variance):,.2g})" in sentence
    assert f"{(9000 - estimated) / math.sqrt(variance):.3g} standard errors away" in sentence


def test_a_right_total_and_an_estimated_one_are_not_spoken_of():
    """Nor public ones, nor rounds, whose totals are those of subsamples."""
    for total in (400, "estimated", "public"):
        assert contradictions([released(total)]) == []
    curator = live_curator(np.zeros((400, 3), dtype=int), PLAIN, total=9_000)
    with curator.rounds(2, sampling_rate=0.5) as rounds:
        assert contradictions([rounds.next()]) == []


def test_releases_of_one_total_speak_together():
    """Three of 4 standard errors each come to 6.9; of different totals each speaks for itself."""
    one = off_by(released(9.0, mechanism="gaussian"), 4)
    assert contradictions([one]) == [] and len(contradictions([one] * 3)) == 1
    other = evolve(one, total=one.total + 1e-3)
    assert contradictions([one, other]) == []


@pytest.mark.parametrize(("budget", "records"), [("5", 1), ("8", 1), ("12", 1), ("5", 2), ("30", 1)])
def test_noise_below_a_record_raises_no_alarm_by_a_unit(budget, records):
    """Noise of which one draw in thousands is not 0 is off by many standard errors where it is off at all."""
    structure = Structure(DOMAIN, [("c",)])
    release = released(9.0, structure, budget=budget)
    quiet = off_by(release, 0)
    stated = evolve(quiet, total=400.0 + records)
    chance = false_alarm(release.noise, np.array([2.0]), np.array([1.0]), float(records))
    exact = 4 * math.exp(-float(budget) * records)  # 2 cells, 2 signs, at most
    assert exact * 0.4 < chance and records > 6 * math.sqrt(2 * release.variances[0])
    assert bool(contradictions([stated])) == ((budget, records) != ("5", 1)) == (chance <= 0.01)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("cells", [1, 2, 16])
@pytest.mark.parametrize("budget", ["1/100", "1", "4"])
def test_the_chance_is_an_upper_bound(mechanism, cells, budget):
    """Against the exact law of the sum of the cells' noise, convolved by transforms, from 1 to 12 standard errors."""
    kind = Budget.pure if mechanism == "laplace" else Budget.zcdp
    noise = dpgm.make("mechanism", mechanism).noise(ONE, kind(budget))
    reach = math.ceil(40 * math.sqrt(noise.variance)) + 12
    one = np.exp(noise.logpdf(np.arange(-reach, reach + 1.0)))
    size = cells * (len(one) - 1) + 1
    law = np.fft.irfft(np.fft.rfft(one, size) ** cells, size)  # to about 1e-15 of the whole
    distances = np.abs(np.arange(len(law)) - len(law) // 2)
    for errors in (1, 3, 6, 12):
        distance = errors * math.sqrt(cells * noise.variance)
        exact = float(law[distances > distance].sum())
        assert exact <= false_alarm([noise], np.array([float(cells)]), np.array([1.0]), distance) * (1 + 1e-9) + 1e-13


def test_the_false_alarms_that_are_stated():
    """At 6 standard errors: 3e-8 for Gaussian noise; 5e-3 to 1e-7 for Laplace noise of 1 to 100 cells."""

    def chance(mechanism, budget, cells):
        noise = dpgm.make("mechanism", mechanism).noise(ONE, budget)
        size = np.array([float(cells)])
        return false_alarm([noise], size, np.array([1.0]), 6 * math.sqrt(cells * noise.variance))

    assert chance("gaussian", Budget.zcdp("0.001"), 6) == pytest.approx(2 * math.exp(-18), rel=1e-3)
    for cells, least, most in ((1, 4e-3, 6e-3), (2, 5e-4, 1e-3), (16, 2e-6, 4e-6), (100, 5e-8, 2e-7)):
        assert least < chance("laplace", Budget.pure("0.01"), cells) < most


def test_a_fit_notes_it_and_estimates_as_before():
    """In Fit.notes and in the model's file; the tables and the total are taken as they are stated."""
    release = released(9_000)
    fit = dpgm.learn(release, "naive-mle")
    (sentence,) = contradictions([release])
    assert fit.notes.count(sentence) == 1 and sentence in fit.model.provenance["notes"]
    assert fit.release.total == 9_000
    assert not [note for note in dpgm.learn(released(400), "naive-mle").notes if "stated as public" in note]


SPEC = """
data = "data.csv"
neighbours = "add-remove"
total = {total}
learner = "naive-mle"
domain.attributes = {{ a = {{ labels = ["0", "1"], unknown = "0" }}, b = {{ labels = ["0", "1"], unknown = "0" }} }}
budget = {{ epsilon = 5 }}
structure.cliques = [["a", "b"]]
"""


@pytest.mark.parametrize("command", ["fit", "release"])
@pytest.mark.parametrize("total", [300, 3000])
def test_the_command_line_says_it_once(command, total, tmp_path, capsys):
    """With and without --verbose; false alarm at 300: below 1/1000 (epsilon = 5, 4 cells)."""
    (tmp_path / "data.csv").write_text("a,b\n" + "0,1\n1,1\n" * 150)
    (tmp_path / "spec.toml").write_text(SPEC.format(total=total))
    for place, verbose in (("quiet", []), ("loud", ["--verbose"])):
        (tmp_path / place).mkdir()
        main([*verbose, command, str(tmp_path / "spec.toml"), "--set", f"name={place}"])
        said = capsys.readouterr()
        assert said.err.count("is stated as public") == (total == 3000)


def test_the_steps_of_a_session_speak_for_themselves():
    """Its tables are means, whose noise has no law of its own to bound; what is merged is summed."""
    merges = {"b": (0, 1, 1)}
    steps = (released(900), released(900, Structure(DOMAIN.coarsened(merges), [("a", "b"), ("b",)])))
    (sentence,) = contradictions([merged_session(DOMAIN, merges, steps)])
    assert sentence == contradictions(steps)[0] and "the total of 900 is stated" in sentence


@pytest.mark.parametrize(("records", "told"), [(400, 0), (410, 0), (829, 1), (40, 1)])
@pytest.mark.parametrize("structure", [PLAIN, TIED], ids=["plain", "tied"])
def test_an_expected_number_of_records_far_from_the_tables_own_is_said(records, told, structure):
    """400 rows at epsilon = 1/2: the standard error is about 20, so 410 is no news. The release is none the wiser."""
    found = far_from(records, [released("estimated", structure)])
    assert len(found) == told and all(f"{records:,} records were expected" in one for one in found)


def test_expected_records_of_persons_name_what_is_left_out():
    """Rows beyond r of a person, and rows without a key, are the likely reasons; declared totals are told elsewhere."""
    table = pa.table({"a": ["0", "1"] * 300, "id": list(range(100)) * 6})
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=2)
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    noisy = dpgm.release(table, structure, Budget.pure(4), terms=terms, randomness=dpgm.SeededRandomness(1))
    (found,) = far_from(600, [noisy])
    assert (
        re.search("about (19[0-9]|20[0-9]) were counted", found)
        and "with more than 2 rows the others are left out" in found
    )
    assert not far_from(900, [released(400)]) and far_from(900, [released("public")])


def test_the_estimate_is_that_of_weighted_least_squares():
    """Sums s_g = m_g N + noise of variance K_g v_g: numpy's least squares on rows scaled by their deviation."""
    tables = Tables(TIED, np.array([3.0, 4.5, 2.0, 11.0, 8.0]))
    variances = np.array([2.0, 0.5])
    sums, tied, deviations = np.array([9.5, 19.0]), np.array([1.0, 2.0]), np.sqrt([3 * 2.0, 2 * 0.5])
    wanted = np.linalg.lstsq((tied / deviations)[:, None], sums / deviations, rcond=None)[0][0]
    found, variance = estimate_total(tables, variances)
    assert found == pytest.approx(wanted) and variance == pytest.approx(1 / ((tied / deviations) ** 2).sum())


@pytest.mark.parametrize("total", [3.0, 1e9, 1e15])
def test_a_public_total_is_taken_exactly(total):
    """Of any size, alone and beside a release that estimates it."""
    public = evolve(released(400.0), total=total, total_variance=0.0)
    with np.errstate(over="raise", invalid="raise"):
        assert total_of([public])[0] == total
        assert total_of([public, released("estimated")])[0] == total


def test_there_is_always_a_record():
    """Estimated from sums below zero, or public of no records, N is 1; a declared one is taken as it is."""
    assert estimate_total(Tables(TIED, np.full(TIED.cells, -5.0)), np.ones(2))[0] == 1.0
    assert stated_total(Terms(neighbours="replace-one", total="public"), 0) == 1.0
    assert stated_total(Terms(neighbours="add-remove", total=50), 7) == 50.0


WITH_MISSING = dpgm.Domain.from_dict({"attributes": {"a": {"labels": ["x", "y"]}, "b": {"labels": ["u", "v", "w"]}}})
N = {"a": {"labels": ["x", "y"], "unknown": "N"}, "b": {"labels": ["u", "v"], "unknown": "v"}}


def noisy(share, seed=0, budget=1, domain=WITH_MISSING, people=1000, cliques=(("a", "b"),)):
    """A release in which that share of column a is missing."""
    codes = np.zeros((people, 2), int)
    codes[: round(share * people), 0] = domain["a"].unknown
    return dpgm.release(codes, Structure(domain, cliques), Budget.pure(budget), **seeded(seed))


@pytest.mark.parametrize(("share", "told"), [(0.4, 0), (0.6, 1), (0.95, 1), (1.0, 1)])
def test_a_column_is_named_from_one_half_on(share, told):
    """The share stands beside its name."""
    found = mostly_missing([noisy(share)])
    assert len(found) == told
    assert all(one.startswith("mostly missing: a (") and f"{share:.0%}"[:2] in one for one in found)


@pytest.mark.landing
def test_noise_alone_names_a_column_rarely():
    """Just half of a column is missing: beyond 3 standard errors are 0.14 % of normal scores, and under 0.5 % of these
    sums of Laplace noise, so of 200 releases one at most on average; 6 or more would come once in 1,700 times."""
    assert sum(bool(mostly_missing([noisy(0.5, seed, 0.3, people=200)])) for seed in range(200)) <= 5


def test_labels_that_may_be_answers_are_not_missing():
    """A label of another name is what its owner says it is."""
    domain = dpgm.Domain.from_dict({"attributes": N})
    assert not mostly_missing([noisy(1.0, domain=domain)])


def test_a_fit_says_it_in_its_notes():
    """In Python, in the model file, and on the command line, which prints the notes."""
    records = pa.table({"a": ["X", "Y"] * 250, "b": ["u"] * 500})
    structure = dpgm.Structure(WITH_MISSING, [("a",), ("b",)])
    done = dpgm.fit(records, structure, dpgm.Budget.pure(5), neighbours="add-remove")
    (note,) = [one for one in done.notes if one.startswith("mostly missing")]
    assert "a (" in note and "b (" not in note and note in done.model.provenance["notes"]
