"""Bounds on every table of an inference, and rescaling where they leave the range of double precision.

Guard, floors and their proof are those of `dpgm_core.inference.exact.probability`. Which cells were raised is not
remembered: no other nonzero cell of a scaled value is as low, but for rounding, and one that is counts as raised,
which errs on the safe side. MASK looks for them once the adjoint is there, before the value's memory is used again.
"""

from __future__ import annotations

import math

import numpy as np

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.compiled.format import (
    AT_INPUTS,
    AT_STEPS,
    HIGHS,
    INPUTS,
    LOST,
    LOWS,
    NODE_HIGHS,
    NODE_LOWS,
    REACH,
    SCALES,
    STEP,
)
from dpgm_core.inference.compiled.loading import jit, jit_strictly, jit_without_nan

__all__ = ["FLOOR", "bound_inputs", "cut", "guard_step", "must_be_guarded", "passing", "rescale"]

FLOOR = math.exp(-REACH)
_RAISED = FLOOR * (1 + 1e-9)  # nonzero cells up to this are taken for raised ones; the safe side


@jit_strictly
def must_be_guarded(memory: FloatArray, plan: IntArray, log_terms: float) -> bool:
    """Whether the bounds of all tables together leave the reach; log_terms: of all that is summed."""
    low, high = 0.0, log_terms
    for node in range(plan[INPUTS]):
        group = plan[plan[AT_INPUTS] + node]
        # Of any product on the way: one over some of the tables may lie further out than that over all of them.
        low += min(0.0, memory[plan[LOWS] + group])
        high += max(0.0, memory[plan[HIGHS] + group])
    return low < -2 * REACH or high > REACH


@jit_without_nan
def _measured(memory: FloatArray, start: int, cells: int) -> tuple[float, float]:
    """The least nonzero and the largest cell of a table of numbers that are not negative."""
    smallest, largest = np.inf, 0.0
    for i in range(start, start + cells):
        x = memory[i]
        largest = max(largest, x)
        smallest = min(smallest, x if x != 0.0 else np.inf)
    return smallest, largest


@jit_strictly
def bound_inputs(memory: FloatArray, plan: IntArray) -> None:
    """The bounds of the inputs, of the groups whose tables they are."""
    for node in range(plan[INPUTS]):
        group = plan[plan[AT_INPUTS] + node]
        memory[plan[NODE_LOWS] + node] = memory[plan[LOWS] + group]
        memory[plan[NODE_HIGHS] + node] = memory[plan[HIGHS] + group]


@jit_strictly
def guard_step(memory: FloatArray, plan: IntArray, logs: FloatArray, step: int) -> tuple[float, bool]:
    """Bound what a step made, and divide it where it may leave the range.

    (the logarithm of that scale, -inf for Z = 0; whether cells were raised to the floor).
    """
    lows, highs, scales, at = plan[NODE_LOWS], plan[NODE_HIGHS], plan[SCALES], plan[AT_STEPS] + STEP * step
    left, right, node = plan[at + 4], plan[at + 5], plan[INPUTS] + step
    low, high, log_scale = memory[lows + left], memory[highs + left] + logs[step], 0.0
    raised = False
    if right >= 0:
        low += memory[lows + right]
        high += memory[highs + right]
    memory[scales + step] = 1.0
    if low < -REACH or high > REACH:
        start, cells = plan[at + 6], plan[at + 7]
        smallest, largest = _measured(memory, start, cells)
        if largest == 0.0:
            return -np.inf, False
        # The cells come to lie in [-span, 0], up to REACH higher where that is too low.
        span = math.log(largest) - math.log(smallest)
        low, high = max(-REACH, -span), min(REACH, max(0.0, span - REACH))
        scale = largest * math.exp(-high)
        least = scale * FLOOR if span > 2 * REACH else 0.0
        raised = least > 0.0
        for i in range(start, start + cells):
            x = memory[i]
            memory[i] = (least if 0.0 < x < least else x) / scale
        memory[scales + step] = scale
        log_scale = math.log(scale)
    memory[lows + node], memory[highs + node] = low, high
    return log_scale, raised


@jit_strictly
def rescale(memory: FloatArray, plan: IntArray, step: int) -> None:
    """Divide the adjoint of what a step made by what that was divided by."""
    scale, at = memory[plan[SCALES] + step], plan[AT_STEPS] + STEP * step
    if scale != 1.0:
        for i in range(plan[at + 8], plan[at + 8] + plan[at + 7]):
            memory[i] /= scale


@jit
def passing(memory: FloatArray, values: int, adjoints: int, cells: int) -> float:
    """The probability of all that passes through raised cells of a table; sets adjoints to 0 where values are."""
    value, adjoint, lost = memory[values : values + cells], memory[adjoints : adjoints + cells], 0.0
    for j in range(cells):
        x = value[j]
        above = adjoint[j] if x != 0.0 else 0.0
        adjoint[j] = above
        lost += x * above if x <= _RAISED else 0.0
    return lost


@jit_strictly
def cut(memory: FloatArray, out: FloatArray, lost: float) -> bool:
    """Set to 0 what may have passed through raised cells alone; False where those matter. lost: in steps' tables."""
    for i in range(len(out)):
        if 0.0 < memory[i] <= _RAISED:
            lost += out[i]
    if lost > 0.0:
        for i in range(len(out)):
            if out[i] <= lost * (1 + 1e-9):
                out[i] = 0.0
    return lost <= LOST
