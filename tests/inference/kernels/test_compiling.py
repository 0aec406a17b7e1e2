"""What kernels take and return as functions of Python, and what may not be compiled into an object file."""

import sys

import numpy as np
import pytest

from dpgm_core.inference.kernels.loading import jit, resolve_executor

pytestmark = pytest.mark.skipif(resolve_executor("auto") != "numba", reason="needs numba")


def test_an_array_that_may_only_be_read_is_not_written_to(cache):
    """Its signature says so; numbers come back as they went, and nothing is kept of what was passed."""

    @jit("Tuple((int64, float64))(float64[:, ::1], int64, boolean, float64)")
    def one(x, at, which, value):
        x[1, at] = value if which else -value
        return at + x.shape[0], x[0, at]

    table = np.arange(6.0).reshape(2, 3)
    before = sys.getrefcount(table)
    assert one(table, np.int64(2), True, np.float64(0.5)) == (4, 2.0)
    assert one(table, 1, [], -1) == (3, 1.0)
    assert table.tolist() == [[0.0, 1.0, 2.0], [3.0, 1.0, 0.5]]
    assert sys.getrefcount(table) == before
    table.setflags(write=False)
    with pytest.raises(TypeError, match="No matching definition"):
        one(table, 1, True, 0.0)


def test_a_kernel_that_allocates_is_refused(cache):
    """Its memory would need numba where it is loaded."""

    @jit("float64(int64)")
    def one(size):
        return np.zeros(size).sum()

    with pytest.raises(Exception, match=r"NRT|numba"):
        one(3)
