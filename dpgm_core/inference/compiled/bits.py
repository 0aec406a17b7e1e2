"""Bits of a double as a whole number, and back, in loops that stay vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpgm_core.inference.compiled.loading import resolve_executor

__all__ = ["double_of", "whole_of"]

#: The 64 bits of a double as a whole number; and the double that 64 bits are.
whole_of: Callable[[float], int]
double_of: Callable[[int], float]

if resolve_executor("auto") == "numba":
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def _whole(context: Any, value: Any) -> Any:
        return types.int64(types.float64), lambda _, build, __, given: build.bitcast(given[0], ir.IntType(64))

    def _double(context: Any, value: Any) -> Any:
        return types.float64(types.int64), lambda _, build, __, given: build.bitcast(given[0], ir.DoubleType())

    whole_of, double_of = intrinsic(_whole), intrinsic(_double)

else:

    def whole_of(value: float) -> int:
        return int(np.float64(value).view(np.int64))

    def double_of(value: int) -> float:
        return float(np.int64(value).view(np.float64))
