"""What was measured, once each, with its noise; the matrix of measured pairs."""

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm.report.noise import measured_tables, noise_matrix

DOMAIN = dpgm.Domain.from_sizes({"a": 2, "b": 3, "c": 2})
CODES = np.array([[0, 0, 0], [1, 2, 1], [1, 1, 0]] * 100)


def test_noise_is_held_against_the_average_cell():
    """By hand: discrete Laplace of scale 2, as two tables share epsilon 1, and 300 records in 6 or 4 cells."""
    structure = dpgm.Structure(DOMAIN, [("a", "b"), ("a", "c")])
    terms = dpgm.Terms(neighbours="add-remove", total=300)
    first, second = measured_tables([dpgm.release(CODES, structure, dpgm.Budget.pure(1), terms=terms)])
    p = np.exp(-1 / 2)
    assert first.deviation == pytest.approx(np.sqrt(2 * p) / (1 - p), rel=1e-9)
    assert (first.cells, first.average, second.average) == (6, 50.0, 75.0)
    assert second.relative == pytest.approx(second.deviation / 75)


def test_a_table_of_several_releases_is_there_once_with_its_least_noise():
    """And how often it was measured."""
    structure = dpgm.Structure(DOMAIN, [("a", "b")])
    terms = dpgm.Terms(neighbours="add-remove", total=300)
    parts = [dpgm.release(CODES, structure, dpgm.Budget.pure(amount), terms=terms) for amount in (1, 4, 2)]
    (one,) = measured_tables(parts)
    (best,) = measured_tables(parts[1:2])
    assert (one.times, one.deviation) == (3, best.deviation)


def test_the_matrix_shows_each_pair_once():
    """A table of three attributes holds three pairs; of none there is no matrix."""
    structure = dpgm.Structure(DOMAIN, [("a", "b", "c")])
    noisy = dpgm.release(CODES, structure, dpgm.Budget.pure(1), neighbours="add-remove")
    drawn = noise_matrix(DOMAIN.names, measured_tables([noisy]))
    assert drawn is not None and "3 pairs of attributes lie in a released table" in drawn
    singles = dpgm.Structure(DOMAIN, [("a",)])
    alone = dpgm.release(CODES, singles, dpgm.Budget.pure(1), neighbours="add-remove")
    assert noise_matrix(DOMAIN.names, measured_tables([alone])) is None
