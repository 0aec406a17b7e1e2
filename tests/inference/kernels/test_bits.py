"""Bits there and back, with numba and without."""

import numpy as np
import pytest

from dpgm_core.inference.kernels.contractions import double_of, whole_of
from dpgm_core.inference.kernels.loading import jit, resolve_executor


@jit
def _there(values):
    return whole_of(values[0])


@jit
def _back(values):
    return double_of(values[0])


@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, 5e-324, np.inf])
def test_bits_are_those_of_the_double(value):
    bits = int(np.float64(value).view(np.int64))
    assert _there(np.array([value])) == bits
    assert _back(np.array([bits])) == value
    if resolve_executor("auto") == "numpy":
        assert whole_of(value) == bits and double_of(bits) == value
