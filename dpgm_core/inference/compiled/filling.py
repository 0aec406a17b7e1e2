"""Tables' probabilities: potentials checked, bounded and exponentiated, table by table or, if few, at once."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.compiled.exponentials import exponentials
from dpgm_core.inference.compiled.format import (
    BEYOND,
    FINE,
    GROUPS,
    HIGHS,
    INPUTS,
    LOWS,
    REACH,
    REFUSED,
    STEPS,
    TABLES,
    ZEROS,
)
from dpgm_core.inference.compiled.guard import FLOOR
from dpgm_core.inference.compiled.loading import jit_strictly, jit_without_nan

__all__ = ["FEW", "fill", "fill_at_once"]

FEW = 4096  # potentials that are looked at together before they are table by table
_LARGEST = 1.7976931348623157e308


@jit_without_nan
def _spread(theta: FloatArray, start: int, stop: int, instead: float) -> tuple[float, float]:
    """The least and the largest number, of `instead` for -inf; eight at a time, as LLVM makes no vectors of one."""
    block = theta[start:stop]
    l0 = l1 = l2 = l3 = l4 = l5 = l6 = l7 = h0 = h1 = h2 = h3 = h4 = h5 = h6 = h7 = _or(block[0], instead)
    whole = len(block) & ~7
    for i in range(0, whole, 8):
        x0, x1, x2, x3 = block[i], block[i + 1], block[i + 2], block[i + 3]
        x4, x5, x6, x7 = block[i + 4], block[i + 5], block[i + 6], block[i + 7]
        x0, x1, x2, x3 = _or(x0, instead), _or(x1, instead), _or(x2, instead), _or(x3, instead)
        x4, x5, x6, x7 = _or(x4, instead), _or(x5, instead), _or(x6, instead), _or(x7, instead)
        l0, l1, l2, l3 = min(l0, x0), min(l1, x1), min(l2, x2), min(l3, x3)
        l4, l5, l6, l7 = min(l4, x4), min(l5, x5), min(l6, x6), min(l7, x7)
        h0, h1, h2, h3 = max(h0, x0), max(h1, x1), max(h2, x2), max(h3, x3)
        h4, h5, h6, h7 = max(h4, x4), max(h5, x5), max(h6, x6), max(h7, x7)
    for i in range(whole, len(block)):
        x0 = _or(block[i], instead)
        l0, h0 = min(l0, x0), max(h0, x0)
    return min(l0, l1, l2, l3, l4, l5, l6, l7), max(h0, h1, h2, h3, h4, h5, h6, h7)


@jit_without_nan
def _or(value: float, instead: float) -> float:
    return value if value > -np.inf else instead


@jit_strictly
def _counted(theta: FloatArray, start: int, stop: int) -> tuple[int, int]:
    """Count the finite potentials, and those of -inf; counts are added in any order, so these are vectors."""
    block, finite, minus = theta[start:stop], 0, 0
    for i in range(len(block)):
        finite += 1 if abs(block[i]) <= _LARGEST else 0
        minus += 1 if block[i] == -np.inf else 0
    return finite, minus


@jit_strictly
def _bounds(theta: FloatArray, start: int, stop: int) -> tuple[float, float, bool]:
    """The least finite potential, the largest, and whether some is -inf; of NaN and +inf the largest is inf."""
    finite, minus = _counted(theta, start, stop)
    if finite + minus < stop - start or finite == 0:
        return 0.0, np.inf, False
    if minus:
        _, high = _spread(theta, start, stop, -_LARGEST)
        low, _ = _spread(theta, start, stop, high)
        return low, high, True
    low, high = _spread(theta, start, stop, 0.0)
    return low, high, False


@jit_strictly
def fill_at_once(theta: FloatArray, memory: FloatArray, plan: IntArray, logs: FloatArray) -> int:
    """Write all probabilities of few and mild potentials, which need no guard; BEYOND where that is not sure."""
    mild, inputs = logs[plan[STEPS] + 1], plan[INPUTS]
    finite, minus = _counted(theta, 0, len(theta))
    if finite + minus < len(theta):
        return REFUSED
    low, high = _spread(theta, 0, len(theta), 0.0)
    if low < -mild or high > mild or inputs * low < -2 * REACH or inputs * max(0.0, high) + logs[plan[STEPS]] > REACH:
        return BEYOND
    exponentials(theta, 0, len(theta), 0.0, memory)
    return ZEROS if minus else FINE


@jit_strictly
def fill(theta: FloatArray, memory: FloatArray, plan: IntArray, mild: float) -> tuple[int, float, bool]:
    """Write the tables' probabilities and the bounds of their logarithms.

    (status, what was taken from log Z, whether probabilities were raised to the floor).
    """
    status, shift, raised = FINE, 0.0, False
    lows, highs = plan[LOWS], plan[HIGHS]
    for group in range(plan[GROUPS]):
        at = plan[TABLES] + 3 * group
        start, stop = plan[at], plan[at + 1]
        low, high, zeros = _bounds(theta, start, stop)
        if not math.isfinite(high):
            return REFUSED, 0.0, False
        above = 0.0
        if high > mild or low < -mild:
            above = high
            shift += high * plan[at + 2]
        if zeros:
            status = ZEROS
        exponentials(theta, start, stop, above, memory)
        if low - above < -REACH:
            raised = True
            for i in range(start, stop):
                if memory[i] < FLOOR and theta[i] != -np.inf:
                    memory[i] = FLOOR
        memory[lows + group] = max(-REACH, low - above)
        memory[highs + group] = high - above
    return status, shift, raised
