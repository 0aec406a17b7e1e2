"""Releases over merged codes: sums by block, the law of their noise, and what is refused."""

import numpy as np
import pytest
from attrs import evolve
from scipy import stats

import dpgm_core as dpgm
from dpgm.cli.show import count_noisy_tables
from dpgm.comparison import compare
from dpgm.report.noise import measured_tables
from dpgm_core import Budget, BudgetError, Domain, DomainError, SeededRandomness, Structure, StructureError, make
from dpgm_core.releases.views import SummedNoise, block_sums, cell_variances, cells_as_drawn, coarsened, plausible
from tests.fixtures import seeded

DOMAIN = Domain.from_sizes({"a": 5, "b": 3, "c": 2})
MERGES = {"a": [0, 2, 2, 1, 2], "b": [0, 1, 2]}
CODES = np.random.default_rng(0).integers(0, [5, 3, 2], size=(400, 3))


def released(structure, seed=1, split="even"):
    return dpgm.release(CODES, structure, Budget.pure(1), split=split, **seeded(seed))


@pytest.mark.parametrize("split", ["even", "optimal"])
def test_tables_are_summed_by_block_and_keep_their_total(split):
    """Axes in any order; each cell against the sum of the cells whose new codes it has."""
    noisy = released(Structure(DOMAIN, [("b", "a"), ("a",), ("b", "c")]), split=split)
    coarse = coarsened(noisy, MERGES)
    assert coarse.structure.domain == DOMAIN.coarsened(MERGES) and coarse.published == (noisy,)
    expected = np.zeros((3, 3), dtype=np.int64)
    for cell, count in np.ndenumerate(noisy.tables["b", "a"]):
        expected[cell[0], MERGES["a"][cell[1]]] += count
    assert coarse.tables.values.dtype == np.int64
    np.testing.assert_array_equal(coarse.tables["b", "a"], expected)
    np.testing.assert_array_equal(coarse.tables.sums(), noisy.tables.sums())
    np.testing.assert_array_equal(coarse.tables["b", "c"], noisy.tables["b", "c"])
    assert coarse.noise[2] is noisy.noise[2]
    np.testing.assert_allclose(coarse.variances / noisy.variances, [5 / 3, 5 / 3, 1])
    assert coarsened(noisy, {"b": [0, 1, 2]}) is noisy and coarsened(noisy, {}) is noisy


@pytest.mark.landing
def test_draws_have_the_true_law_of_each_cell():
    """Through the whole measurement; variances of 1,000 draws, chi-squared for Gaussian noise.

    False alarms: 1e-6 for each of 3 cells.
    """
    noisy = dpgm.release(CODES, Structure(DOMAIN, [("a",)]), Budget.zcdp("1/50"), "gaussian", **seeded(1))
    noise = coarsened(noisy, MERGES).noise[0]
    assert noise.exact
    source = SeededRandomness(2)
    drawn = np.stack([noise.draw((3,), source) for _ in range(1_000)])
    assert drawn.dtype == np.int64
    scaled = (drawn**2).sum(axis=0) / (noisy.noise[0].variance * np.array([1, 1, 3]))
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 1_000)
    assert ((low < scaled) & (scaled < high)).all()
    assert noise.variance == pytest.approx(noisy.noise[0].variance * 5 / 3)
    with pytest.raises(BudgetError, match="one table of 3 cells"):
        noise.draw((4,), source)


def test_tables_with_merged_attributes_are_drawn_one_by_one():
    """Two tables of one noise share a calibration in the release, and their sums do not."""
    noisy = released(Structure(DOMAIN, [("a",), ("a", "b"), ("b",), ("c",)]))
    coarse = coarsened(noisy, {"a": MERGES["a"]})
    assert coarse.measurement.of_group == (0, 1, 2, 2)
    assert coarse.measurement.draw(coarse.tables, SeededRandomness(3)).structure == coarse.structure


def test_the_noise_of_the_largest_block_is_plausible():
    """A block of 96 codes among 5 cells: ten of its standard deviations are 22 of the mean cell's."""
    laplace = make("mechanism", "laplace").noise(dpgm.Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), Budget.pure(1))
    domain = Domain.from_sizes({"a": 100})
    merges = {"a": [0, 1, 2, 3, *[4] * 96]}
    noisy = dpgm.release(np.zeros((50, 1), int), Structure(domain, [("a",)]), Budget.pure(1), **seeded())
    coarse = coarsened(noisy, merges)
    far = coarse.tables.values.copy()
    far[4] = -int(10 * (96 * laplace.variance) ** 0.5)
    far = dpgm.Tables(coarse.structure, far)
    assert plausible(evolve(coarse, tables=far)).tables.values[4] == far.values[4]


def test_shared_tables_are_merged_alike_or_refused():
    """In a tied group an axis has one meaning."""
    domain = Domain.from_sizes({"a": 3, "b": 3, "c": 2})
    structure = Structure(domain, [("c",)], tied=[[("a", "c"), ("b", "c")]])
    noisy = released(structure)
    both = coarsened(noisy, {"a": [0, 1, 1], "b": [0, 1, 1]})
    assert both.structure.multiplicities == (1, 2)
    np.testing.assert_array_equal(both.tables["a", "c"], block_sums(noisy.tables["a", "c"], 0, np.array([0, 1, 1])))
    for merges in ({"a": [0, 1, 1]}, {"a": [0, 1, 1], "b": [0, 0, 1]}):
        with pytest.raises(StructureError, match="merged alike"):
            coarsened(noisy, merges)
    with pytest.raises(DomainError, match="without gaps"):
        coarsened(noisy, {"a": [0, 2, 2]})


def test_summed_noise_states_what_is_unsafe():
    """As the noise behind it does."""
    noise = released(Structure(DOMAIN, [("a",)])).noise[0]
    summed = SummedNoise(noise=noise, blocks=(2, 1))
    assert summed.unsafe == noise.unsafe and summed.log_concave


def test_noise_is_judged_in_the_cells_that_it_was_drawn_for():
    """Reports, fits and comparisons count cells as they were measured, and a merged cell with its own noise."""
    noisy = released(Structure(DOMAIN, [("a",), ("b", "c")]))
    coarse = coarsened(noisy, MERGES)
    assert cells_as_drawn(coarse) == cells_as_drawn(noisy) and cells_as_drawn(noisy)[0][0] == noisy.structure.sizes[0]
    np.testing.assert_allclose(cell_variances(coarse, ("a",)) / noisy.variances[0], [1, 1, 3])
    assert measured_tables([coarse]) == measured_tables([noisy])
    assert count_noisy_tables([evolve(coarse, total=15.0)]) == count_noisy_tables([evolve(noisy, total=15.0)])
    gap = compare(coarse, coarsened(released(noisy.structure, seed=2), MERGES)).pairs[0].gaps[0]
    assert gap.deviations < 3  # three cells with scores about 1
