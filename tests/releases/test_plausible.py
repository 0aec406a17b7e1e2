"""Cells that no noise can have made: what learners see of them, and that honest releases are never touched."""

import time
from fractions import Fraction

import attrs
import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, InferenceError, SeededRandomness, Structure, Tables, Terms
from dpgm_core.releases.release import Round
from dpgm_core.releases.views import equalize_totals, implausible, plausible
from dpgm_testing.reference import ReferenceGaussian, example_release
from dpgm_testing.unusual import TruncatedLaplace, TwoWidths

DOMAIN = Domain.from_sizes(dict.fromkeys("abc", 4))
CHAIN = Structure.chain(DOMAIN)
NOISES = {
    "Laplace": (None, Budget.pure(1)),
    "Gaussian": (ReferenceGaussian(), Budget.zcdp("1/2")),
    "truncated": (TruncatedLaplace(), Budget.approx(1, "1e-6")),
    "two widths": (TwoWidths(), Budget.pure(1)),
}
HUGE = 2**62


def released(noise="Laplace", **cells):
    """Uniform counts of 800 records, with some cells replaced."""
    mechanism, budget = NOISES[noise]
    values = np.full(CHAIN.cells, 50)
    for place, value in cells.items():
        values[int(place[1:])] = value
    return example_release(CHAIN, values, total=800, mechanism=mechanism, budget=budget)


@pytest.mark.parametrize("noise", NOISES)
def test_cells_beyond_the_reach_of_the_noise_are_moved_to_it(noise):
    """At both ends; other cells, and the release behind the view, stay. What is moved stays moved."""
    release = released(noise, c0=HUGE, c5=-HUGE)
    view = plausible(release)
    values = view.tables.values
    assert values.dtype == np.int64 and view.original is release
    assert implausible(release) == 2 and implausible(view) == 0
    assert 800 < values[0] < 10_000 and -10_000 < values[5] < 0
    assert (np.delete(values, [0, 5]) == 50).all()


@pytest.mark.parametrize("noise", NOISES)
def test_honest_releases_are_their_own_view(noise):
    """20 draws of noise on tables that one label fills, for every mechanism: of 640 cells of mass e^-60 or below at the
    reach the chance of a false alarm is under 1e-20."""
    mechanism, budget = NOISES[noise]
    values = np.zeros(CHAIN.cells, dtype=np.int64)
    values[[0, 16]] = 800
    base = example_release(CHAIN, values, total=800, mechanism=mechanism, budget=budget)
    source = SeededRandomness(3)
    for _ in range(20):
        release = attrs.evolve(base, tables=base.measurement.draw(base.tables, source))
        assert plausible(release) is release


def test_a_total_that_is_estimated_gives_room():
    """Nothing that fits within twelve standard deviations of the estimate moves."""
    release = attrs.evolve(released(), total=10.0, total_variance=100.0**2)
    assert plausible(release) is release
    assert implausible(attrs.evolve(release, total_variance=0.0, tables=Tables(CHAIN, np.full(CHAIN.cells, 5000))))


def test_normalised_contributions_and_clipped_scores():
    """A levelled table may lie above N by what its sum's noise says; sums of scores are no counts."""
    rng = np.random.default_rng(1)
    table = {name: rng.integers(4, size=300) for name in "abc"} | {"id": np.arange(300).astype(str).astype(object)}
    contributions = dpgm.Contributions(per="clique", grid=60)
    terms = Terms(neighbours="add-remove", person="id", rows_per_person=2, contributions=contributions)
    release = dpgm.release(table, CHAIN, Budget.pure("1/10"), terms=terms, randomness=SeededRandomness(1))
    view = equalize_totals(release)
    assert plausible(view) is view
    clip = dpgm.ClippedScore(norm=2, grid=1024)
    clipped = attrs.evolve(released(c0=10**9), round=Round(number=1, of=2, sampling_rate=Fraction(1, 2), clip=clip))
    assert plausible(clipped) is clipped


def test_more_records_than_can_be_counted_are_refused():
    """No int64 holds them."""
    with pytest.raises(InferenceError, match="more than can be counted"):
        plausible(attrs.evolve(released(), total=1e300))


def test_the_estimated_total_is_that_before_cells_are_emptied():
    """Of 100 releases whose tables are impossible for the most part the mean is N, within 4.5 standard errors (false
    alarm below 1e-5, seeds fixed); a tenth of the records break the rule, and are counted."""
    rules = {"x": {"columns": ["a", "b"], "order": "<"}}
    sizes = {name: {"size": 6, "unknown": 0} for name in "ab"}
    structure = Structure(Domain.from_dict({"attributes": sizes, "constraints": rules}), [("a", "b")])
    records, terms = np.array([[0, 5]] * 90 + [[5, 0]] * 10), Terms(neighbours="add-remove", total="estimated")
    found = []
    for seed in range(100):
        noisy = dpgm.release(records, structure, Budget.pure(1), terms=terms, randomness=SeededRandomness(seed))
        seen = plausible(noisy)
        assert seen.tables.values[structure.impossible].sum() == 0 and seen.total == noisy.total
        found.append(seen.total)
    error = (noisy.total_variance / len(found)) ** 0.5
    assert error < 1 and abs(np.mean(found) - 100) < 4.5 * error


@pytest.mark.parametrize("learner", ["naive-mle", "cgm-em", "eb-map"])
@pytest.mark.parametrize("cell", [HUGE, -HUGE])
def test_one_impossible_cell_keeps_no_learner_busy(learner, cell):
    """A finite model with a note within ten seconds of CPU, and the release as it is."""
    release = released(c0=cell)
    began = time.process_time()
    fit = dpgm.learn(release, learner, randomness=SeededRandomness(1))
    assert time.process_time() - began < 10
    assert np.isfinite(fit.model.potentials.values).all()
    assert fit.model.marginal("a").sum() == pytest.approx(1)
    assert any("1 of 32 noisy cells" in note for note in fit.notes)
    assert fit.release is release


def test_a_wrong_public_total_is_noted_not_refused():
    """N = 1 stated of tables that hold 800: a model, and the note."""
    fit = dpgm.learn(attrs.evolve(released(), total=1.0, tables=Tables(CHAIN, np.full(CHAIN.cells, 10**6))))
    assert any("the total is wrong" in note for note in fit.notes)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("learner", ["naive-mle", "cgm-em", "eb-map"])
@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
@pytest.mark.parametrize(
    ("values", "total"),
    [(HUGE, 1.0), (-HUGE, 1.0), (0, 1.0), (0, 2.0**62), (7, 2.0**62), (10**6, 1.0)],
    ids=["all 2^62", "all -2^62", "nothing", "nothing of 2^62", "little of 2^62", "much of one"],
)
def test_no_release_keeps_a_learner_busy(learner, noise, values, total):
    """A finite model, or an error of dpgm, within ten seconds of CPU."""
    release = attrs.evolve(released(noise), tables=Tables(CHAIN, np.full(CHAIN.cells, values)), total=total)
    began = time.process_time()
    try:
        fit = dpgm.learn(release, learner, randomness=SeededRandomness(1))
    except dpgm.DpgmError:
        pass
    else:
        assert np.isfinite(fit.model.potentials.values).all()
        assert fit.model.marginal("a").sum() == pytest.approx(1)
    assert time.process_time() - began < 10
