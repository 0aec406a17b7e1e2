"""Exponential of a table, in vectors: exact to about one unit in the last place, on every processor of LLVM."""

from __future__ import annotations

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.compiled.bits import double_of, whole_of
from dpgm_core.inference.compiled.loading import jit_strictly

__all__ = ["LOWEST", "exponentials"]

#: Below this, exp is taken as 0: whoever calls raises the result, of -inf apart.
LOWEST = -700.0

_LOG2E = 1.4426950408889634
# log 2 in two parts: k times the first is exact for every exponent k.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
# Added to a number below 2^51 this leaves the nearest whole number in the low bits.
_MAGIC = 6755399441055744.0


@jit_strictly
def exponentials(theta: FloatArray, start: int, stop: int, above: float, out: FloatArray) -> None:
    """out[i] = exp(theta[i] - above) for start <= i < stop, and 0 below LOWEST.

    Cody and Waite (1980): exp x = 2^k exp r with |r| <= log(2) / 2, and exp r by its series to r^13, whose next term
    is below 5e-18.
    """
    block, result = theta[start:stop], out[start:stop]
    for i in range(len(block)):
        x = block[i] - above
        bounded = x if x > LOWEST else LOWEST
        near = bounded * _LOG2E + _MAGIC
        k = near - _MAGIC
        r = (bounded - k * _LN2_HIGH) - k * _LN2_LOW
        s = 1.0 / 6227020800.0
        s = s * r + 1.0 / 479001600.0
        s = s * r + 1.0 / 39916800.0
        s = s * r + 1.0 / 3628800.0
        s = s * r + 1.0 / 362880.0
        s = s * r + 1.0 / 40320.0
        s = s * r + 1.0 / 5040.0
        s = s * r + 1.0 / 720.0
        s = s * r + 1.0 / 120.0
        s = s * r + 1.0 / 24.0
        s = s * r + 1.0 / 6.0
        s = s * r + 0.5
        s = s * r + 1.0
        power = double_of((whole_of(near) + 1023) << 52)
        result[i] = (s * r + 1.0) * power if x > LOWEST else 0.0
