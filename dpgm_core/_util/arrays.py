"""The arrays that everything is made of, by type: plain numpy, and codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "Codes", "FloatArray", "IntArray", "aligned", "along", "ratio"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
#: One batch of records: one unsigned-integer array of codes per column that is read, all of one length.
Codes: TypeAlias = Sequence[np.ndarray[Any, np.dtype[Any]]]


def aligned(table: Array, names: Sequence[object], onto: Sequence[object]) -> Array:
    """Return a table with its last axes, `names`, in the order of `onto`, and one of length 1 for each that it lacks.

    >>> aligned(np.zeros((2, 3)), "ab", "bca").shape
    (3, 1, 2)
    """
    first = table.ndim - len(names)
    order = [first + names.index(name) for name in onto if name in names]
    moved = table.transpose([*range(first), *order])
    return np.expand_dims(moved, tuple(first + at for at, name in enumerate(onto) if name not in names))


def along(values: Array, axis: int, axes: int) -> Array:
    """Return a vector as an array of so many axes, which it lies along one of.

    >>> along(np.arange(3), 1, 3).shape
    (1, 3, 1)
    """
    return values.reshape([-1 if other == axis else 1 for other in range(axes)])


def ratio(above: Array | float, below: Array) -> FloatArray:
    """Return above / below, and 0 where below is not positive.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    result = np.zeros(np.broadcast_shapes(np.shape(above), below.shape))
    return np.divide(above, below, out=result, where=below > 0)
