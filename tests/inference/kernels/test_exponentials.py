"""exp in vectors against numpy's."""

import numpy as np
import pytest

pytest.importorskip("numba")

from dpgm_core.inference.kernels.contractions import LOWEST, exponentials


def _of(theta, above=0.0):
    out = np.full(theta.size + 2, np.nan)
    exponentials(np.concatenate([[9.0], theta, [9.0]]), 1, theta.size + 1, above, out)
    assert np.isnan(out[[0, -1]]).all(), "cells outside were written"
    return out[1:-1]


@pytest.mark.parametrize("size", [1, 7, 64, 773])
def test_it_is_right_to_two_units_in_the_last_place(size):
    theta = np.random.default_rng(size).uniform(LOWEST + 14, 700, size)
    np.testing.assert_allclose(_of(theta), np.exp(theta), rtol=5e-16)
    np.testing.assert_allclose(_of(theta - 10, 3.0), np.exp(theta - 13), rtol=5e-16 * 700)


def test_zeros_are_exact_and_one_is_one():
    assert _of(np.array([-np.inf, 0.0, LOWEST - 1, -1e300])).tolist() == [0.0, 1.0, 0.0, 0.0]
