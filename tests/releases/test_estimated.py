"""The number of records: the best unbiased estimate from noisy sums, or what the terms state."""

import numpy as np
import pytest

from dpgm_core import Domain, Structure, Tables, Terms
from dpgm_core.releases.totals import estimate_total, stated_total

STRUCTURE = Structure(Domain.from_sizes({"a": 2, "b": 3, "c": 2}), [("b",)], tied=[[("a",), ("c",)]])


def test_the_estimate_is_that_of_weighted_least_squares():
    """Sums s_g = m_g N + noise of variance K_g v_g: numpy's least squares on rows scaled by their deviation."""
    tables = Tables(STRUCTURE, np.array([3.0, 4.5, 2.0, 11.0, 8.0]))
    variances = np.array([2.0, 0.5])
    sums, tied, deviations = np.array([9.5, 19.0]), np.array([1.0, 2.0]), np.sqrt([3 * 2.0, 2 * 0.5])
    wanted = np.linalg.lstsq((tied / deviations)[:, None], sums / deviations, rcond=None)[0][0]
    found, variance = estimate_total(tables, variances)
    assert found == pytest.approx(wanted) and variance == pytest.approx(1 / ((tied / deviations) ** 2).sum())


def test_there_is_always_a_record():
    """Estimated from sums below zero, or public of no records, N is 1; a declared one is taken as it is."""
    assert estimate_total(Tables(STRUCTURE, np.full(STRUCTURE.cells, -5.0)), np.ones(2))[0] == 1.0
    assert stated_total(Terms(neighbours="replace-one", total="public"), 0) == 1.0
    assert stated_total(Terms(neighbours="add-remove", total=50), 7) == 50.0
