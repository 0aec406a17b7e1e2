"""Kernels of exact inference: sums of products, exponentials, the guard of values, and the interpreter of programs."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.kernels import format as layout
from dpgm_core.inference.kernels.loading import jit, jit_strictly, jit_without_nan, multiply

__all__ = ["infer", "run"]


# --- Sums of products along runs ------------------------------------------------------------------
# Each is four rows by four terms, so that what is loaded is used four times; LLVM makes vectors of the loops over a
# run. All tables lie in one array, `memory`; a place is an index into it. `loops` are the three innermost ones, by
# `format`.

_RUN = 256  # cells of a run worked on at a time: four rows of it, and what they are made of, stay in the first cache


@jit
def _add4x4(
    memory: FloatArray, r: int, r_row: int, p: int, p_row: int, p_term: int, q: int, q_term: int, size: int, fresh: bool
) -> None:
    """Four rows of r (= if fresh, else +=) four terms of p, scalars, times four runs of q."""
    a00, a01, a02, a03 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    p += p_row
    a10, a11, a12, a13 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    p += p_row
    a20, a21, a22, a23 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    p += p_row
    a30, a31, a32, a33 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    r0, r1 = memory[r : r + size], memory[r + r_row : r + r_row + size]
    r2, r3 = memory[r + 2 * r_row : r + 2 * r_row + size], memory[r + 3 * r_row : r + 3 * r_row + size]
    q0, q1 = memory[q : q + size], memory[q + q_term : q + q_term + size]
    q2, q3 = memory[q + 2 * q_term : q + 2 * q_term + size], memory[q + 3 * q_term : q + 3 * q_term + size]
    if fresh:
        for j in range(size):
            x0, x1, x2, x3 = q0[j], q1[j], q2[j], q3[j]
            r0[j] = a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
            r1[j] = a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
            r2[j] = a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
            r3[j] = a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3
    else:
        for j in range(size):
            x0, x1, x2, x3 = q0[j], q1[j], q2[j], q3[j]
            r0[j] += a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
            r1[j] += a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
            r2[j] += a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
            r3[j] += a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3


@jit
def _add4x1(memory: FloatArray, r: int, r_row: int, p: int, p_row: int, q: int, size: int, fresh: bool) -> None:
    a0, a1, a2, a3 = memory[p], memory[p + p_row], memory[p + 2 * p_row], memory[p + 3 * p_row]
    r0, r1 = memory[r : r + size], memory[r + r_row : r + r_row + size]
    r2, r3 = memory[r + 2 * r_row : r + 2 * r_row + size], memory[r + 3 * r_row : r + 3 * r_row + size]
    q0 = memory[q : q + size]
    if fresh:
        for j in range(size):
            x = q0[j]
            r0[j] = a0 * x
            r1[j] = a1 * x
            r2[j] = a2 * x
            r3[j] = a3 * x
    else:
        for j in range(size):
            x = q0[j]
            r0[j] += a0 * x
            r1[j] += a1 * x
            r2[j] += a2 * x
            r3[j] += a3 * x


@jit
def _add1x4(memory: FloatArray, r: int, p: int, p_term: int, q: int, q_term: int, size: int, fresh: bool) -> None:
    a0, a1, a2, a3 = memory[p], memory[p + p_term], memory[p + 2 * p_term], memory[p + 3 * p_term]
    r0 = memory[r : r + size]
    q0, q1 = memory[q : q + size], memory[q + q_term : q + q_term + size]
    q2, q3 = memory[q + 2 * q_term : q + 2 * q_term + size], memory[q + 3 * q_term : q + 3 * q_term + size]
    if fresh:
        for j in range(size):
            r0[j] = a0 * q0[j] + a1 * q1[j] + a2 * q2[j] + a3 * q3[j]
    else:
        for j in range(size):
            r0[j] += a0 * q0[j] + a1 * q1[j] + a2 * q2[j] + a3 * q3[j]


@jit
def _add1x1(memory: FloatArray, r: int, p: int, q: int, size: int, fresh: bool) -> None:
    a, r0, q0 = memory[p], memory[r : r + size], memory[q : q + size]
    if fresh:
        for j in range(size):
            r0[j] = a * q0[j]
    else:
        for j in range(size):
            r0[j] += a * q0[j]


@jit
def add_products(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, j] (= if fresh, else +=) sum over k of p[i, k] * q[i, k, j], with runs along j in r and q."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    terms, p_term, q_term, cells = loops[4], loops[6], loops[7], loops[8]
    for low in range(0, cells, _RUN):
        size = min(_RUN, cells - low)
        i = 0
        while q_row == 0 and i + 4 <= rows:
            k = 0
            to, one, two = r + i * r_row + low, p + i * p_row, q + low
            while k + 4 <= terms:
                first = fresh and k == 0
                _add4x4(memory, to, r_row, one + k * p_term, p_row, p_term, two + k * q_term, q_term, size, first)
                k += 4
            while k < terms:
                _add4x1(memory, to, r_row, one + k * p_term, p_row, two + k * q_term, size, fresh and k == 0)
                k += 1
            i += 4
        while i < rows:
            k = 0
            to, one, two = r + i * r_row + low, p + i * p_row, q + i * q_row + low
            while k + 4 <= terms:
                _add1x4(memory, to, one + k * p_term, p_term, two + k * q_term, q_term, size, fresh and k == 0)
                k += 4
            while k < terms:
                _add1x1(memory, to, one + k * p_term, two + k * q_term, size, fresh and k == 0)
                k += 1
            i += 1


@jit
def _dots4x4(
    memory: FloatArray, r: int, r_row: int, r_column: int, p: int, p_row: int, q: int, q_column: int, size: int
) -> None:
    """Add to four by four cells of r the dot products of four runs of p and four of q."""
    p0, p1 = memory[p : p + size], memory[p + p_row : p + p_row + size]
    p2, p3 = memory[p + 2 * p_row : p + 2 * p_row + size], memory[p + 3 * p_row : p + 3 * p_row + size]
    q0, q1 = memory[q : q + size], memory[q + q_column : q + q_column + size]
    q2, q3 = memory[q + 2 * q_column : q + 2 * q_column + size], memory[q + 3 * q_column : q + 3 * q_column + size]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for j in range(size):
        x0, x1, x2, x3 = p0[j], p1[j], p2[j], p3[j]
        y0, y1, y2, y3 = q0[j], q1[j], q2[j], q3[j]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    memory[r] += s00
    memory[r + r_column] += s01
    memory[r + 2 * r_column] += s02
    memory[r + 3 * r_column] += s03
    r += r_row
    memory[r] += s10
    memory[r + r_column] += s11
    memory[r + 2 * r_column] += s12
    memory[r + 3 * r_column] += s13
    r += r_row
    memory[r] += s20
    memory[r + r_column] += s21
    memory[r + 2 * r_column] += s22
    memory[r + 3 * r_column] += s23
    r += r_row
    memory[r] += s30
    memory[r + r_column] += s31
    memory[r + 2 * r_column] += s32
    memory[r + 3 * r_column] += s33


@jit
def _dot(memory: FloatArray, p: int, q: int, size: int) -> float:
    p0, q0, total = memory[p : p + size], memory[q : q + size], 0.0
    for j in range(size):
        total += p0[j] * q0[j]
    return total


@jit
def dots(memory: FloatArray, loops: IntArray, r: int, p: int, q: int) -> None:
    """r[i, l] += sum over j of p[i, l, j] * q[i, l, j], with runs along j in p and q."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    columns, r_column, p_column, q_column, cells = loops[4], loops[5], loops[6], loops[7], loops[8]
    by_four = q_row == 0 and p_column == 0 and cells >= 8
    for low in range(0, cells, 2 * _RUN):
        size = min(2 * _RUN, cells - low)
        i = 0
        if by_four:
            while i + 4 <= rows:
                column = 0
                while column + 4 <= columns:
                    to, one, two = r + i * r_row + column * r_column, p + i * p_row + low, q + column * q_column + low
                    _dots4x4(memory, to, r_row, r_column, one, p_row, two, q_column, size)
                    column += 4
                while column < columns:
                    for row in range(i, i + 4):
                        memory[r + row * r_row + column * r_column] += _dot(
                            memory, p + row * p_row + low, q + column * q_column + low, size
                        )
                    column += 1
                i += 4
        while i < rows:
            for column in range(columns):
                memory[r + i * r_row + column * r_column] += _dot(
                    memory, p + i * p_row + column * p_column + low, q + i * q_row + column * q_column + low, size
                )
            i += 1


@jit
def elementwise(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, j] (= if fresh, else +=) sum over k of p[i, k, j] * q[i, k, j], with runs along j in all three."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    terms, p_term, q_term, cells = loops[4], loops[6], loops[7], loops[8]
    for i in range(rows):
        for low in range(0, cells, 2 * _RUN):
            size = min(2 * _RUN, cells - low)
            at = r + i * r_row + low
            r0 = memory[at : at + size]
            for k in range(terms):
                one, two = p + i * p_row + k * p_term + low, q + i * q_row + k * q_term + low
                p0, q0 = memory[one : one + size], memory[two : two + size]
                if fresh and k == 0:
                    for j in range(size):
                        r0[j] = p0[j] * q0[j]
                else:
                    for j in range(size):
                        r0[j] += p0[j] * q0[j]


@jit
def matrix(memory: FloatArray, loops: IntArray, r: int, p: int, q: int) -> None:
    """r[i, j] = sum over k of p[i, k] * q[k, j] by BLAS; r lies row by row, p and q so or column by column."""
    rows, columns, terms = loops[0], loops[8], loops[4]
    multiply(memory, r, p, q, rows, columns, terms, loops[6] != 1, loops[7] == 1)


# --- Bits of doubles ------------------------------------------------------------------------------


@jit
def whole_of(value: float) -> int:
    """The 64 bits of a double as a whole number."""
    return np.float64(value).view(np.int64)  # type: ignore[return-value]


@jit
def double_of(value: int) -> float:
    """The double that 64 bits are."""
    return np.int64(value).view(np.float64)


# --- Exponentials ---------------------------------------------------------------------------------

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


# --- Bounds and rescaling -------------------------------------------------------------------------
# Guard, floors and their proof are those of `dpgm_core.inference.junction_tree.probability`. Which cells were raised
# is not remembered: no other nonzero cell of a scaled value is as low, but for rounding, and one that is counts as
# raised, which errs on the safe side. MASK looks for them once the adjoint is there, before the value's memory is used
# again.


@jit_strictly
def must_be_guarded(memory: FloatArray, plan: IntArray, log_terms: float) -> bool:
    """Whether the bounds of all tables together leave the reach; log_terms: of all that is summed."""
    low, high = 0.0, log_terms
    for node in range(plan[layout.INPUTS]):
        group = plan[plan[layout.AT_INPUTS] + node]
        # Of any product on the way: one over some of the tables may lie further out than that over all of them.
        low += min(0.0, memory[plan[layout.LOWS] + group])
        high += max(0.0, memory[plan[layout.HIGHS] + group])
    return low < -2 * layout.REACH or high > layout.REACH


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
    for node in range(plan[layout.INPUTS]):
        group = plan[plan[layout.AT_INPUTS] + node]
        memory[plan[layout.NODE_LOWS] + node] = memory[plan[layout.LOWS] + group]
        memory[plan[layout.NODE_HIGHS] + node] = memory[plan[layout.HIGHS] + group]


@jit_strictly
def guard_step(memory: FloatArray, plan: IntArray, logs: FloatArray, step: int) -> tuple[float, bool]:
    """Bound what a step made, and divide it where it may leave the range.

    (the logarithm of that scale, -inf for Z = 0; whether cells were raised to the floor).
    """
    lows, highs, scales, at = (
        plan[layout.NODE_LOWS],
        plan[layout.NODE_HIGHS],
        plan[layout.SCALES],
        plan[layout.AT_STEPS] + layout.STEP * step,
    )
    left, right, node = plan[at + 4], plan[at + 5], plan[layout.INPUTS] + step
    low, high, log_scale = memory[lows + left], memory[highs + left] + logs[step], 0.0
    raised = False
    if right >= 0:
        low += memory[lows + right]
        high += memory[highs + right]
    memory[scales + step] = 1.0
    if low < -layout.REACH or high > layout.REACH:
        start, cells = plan[at + 6], plan[at + 7]
        smallest, largest = _measured(memory, start, cells)
        if largest == 0.0:
            return -np.inf, False
        # The cells come to lie in [-span, 0], up to REACH higher where that is too low.
        span = math.log(largest) - math.log(smallest)
        low, high = max(-layout.REACH, -span), min(layout.REACH, max(0.0, span - layout.REACH))
        scale = largest * math.exp(-high)
        least = scale * layout.FLOOR if span > 2 * layout.REACH else 0.0
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
    scale, at = memory[plan[layout.SCALES] + step], plan[layout.AT_STEPS] + layout.STEP * step
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
        lost += x * above if x <= layout.RAISED else 0.0
    return lost


@jit_strictly
def cut(memory: FloatArray, out: FloatArray, lost: float) -> bool:
    """Set to 0 what may have passed through raised cells alone; False where those matter. lost: in steps' tables."""
    for i in range(len(out)):
        if 0.0 < memory[i] <= layout.RAISED:
            lost += out[i]
    if lost > 0.0:
        for i in range(len(out)):
            if out[i] <= lost * (1 + 1e-9):
                out[i] = 0.0
    return lost <= layout.LOST


# --- Probabilities of tables ----------------------------------------------------------------------

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
    mild, inputs = logs[plan[layout.STEPS] + 1], plan[layout.INPUTS]
    finite, minus = _counted(theta, 0, len(theta))
    if finite + minus < len(theta):
        return layout.REFUSED
    low, high = _spread(theta, 0, len(theta), 0.0)
    if (
        low < -mild
        or high > mild
        or inputs * low < -2 * layout.REACH
        or inputs * max(0.0, high) + logs[plan[layout.STEPS]] > layout.REACH
    ):
        return layout.BEYOND
    exponentials(theta, 0, len(theta), 0.0, memory)
    return layout.ZEROS if minus else layout.FINE


@jit_strictly
def fill(theta: FloatArray, memory: FloatArray, plan: IntArray, mild: float) -> tuple[int, float, bool]:
    """Write the tables' probabilities and the bounds of their logarithms.

    (status, what was taken from log Z, whether probabilities were raised to the floor).
    """
    status, shift, raised = layout.FINE, 0.0, False
    lows, highs = plan[layout.LOWS], plan[layout.HIGHS]
    for group in range(plan[layout.GROUPS]):
        at = plan[layout.TABLES] + 3 * group
        start, stop = plan[at], plan[at + 1]
        low, high, zeros = _bounds(theta, start, stop)
        if not math.isfinite(high):
            return layout.REFUSED, 0.0, False
        above = 0.0
        if high > mild or low < -mild:
            above = high
            shift += high * plan[at + 2]
        if zeros:
            status = layout.ZEROS
        exponentials(theta, start, stop, above, memory)
        if low - above < -layout.REACH:
            raised = True
            for i in range(start, stop):
                if memory[i] < layout.FLOOR and theta[i] != -np.inf:
                    memory[i] = layout.FLOOR
        memory[lows + group] = max(-layout.REACH, low - above)
        memory[highs + group] = high - above
    return status, shift, raised


# --- Interpreter of flat programs -----------------------------------------------------------------
# A program is one array of whole numbers, made by `junction_tree.compiled`; `format` gives its layout. Why the numbers
# can be trusted is said in `dpgm_core.inference.junction_tree.probability`: the guard here is the one there.


@jit
def _place(index: int) -> int:
    """An index that numba need not look at for being negative: twice as fast where cells do not lie side by side."""
    return np.uint64(index)  # type: ignore[return-value]


@jit
def _strided(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r (= if fresh, else +=) p * q over three nested loops of any strides."""
    cells, r_step, p_step, q_step = loops[8], loops[9], loops[10], loops[11]
    for i in range(loops[0]):
        for k in range(loops[4]):
            to = r + i * loops[1] + k * loops[5]
            one, two = p + i * loops[2] + k * loops[6], q + i * loops[3] + k * loops[7]
            if r_step == 1 and fresh:
                result = memory[to : to + cells]
                for j in range(cells):
                    result[j] = memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
            elif r_step == 0:
                total = 0.0
                for j in range(cells):
                    total += memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
                memory[to] = total if fresh else memory[to] + total
            elif fresh:
                for j in range(cells):
                    product = memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
                    memory[_place(to + j * r_step)] = product
            else:
                for j in range(cells):
                    product = memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
                    memory[_place(to + j * r_step)] += product


@jit
def _finish(memory: FloatArray, out: FloatArray, r: int, p: int, q: int, cells: int, fresh: bool, zeros: bool) -> None:
    """Marginals: a table's probabilities times their adjoint, which may be anything at a 0; tied cliques add up."""
    result, values, adjoints = out[r : r + cells], memory[p : p + cells], memory[q : q + cells]
    if zeros:
        for j in range(cells):
            if values[j] == 0.0:
                adjoints[j] = 0.0
    if fresh:
        for j in range(cells):
            result[j] = values[j] * adjoints[j]
    else:
        for j in range(cells):
            result[j] += values[j] * adjoints[j]


@jit("float64(float64[::1], float64[::1], int64[::1], int64[::1], int64, int64, boolean, boolean)")
def run(
    memory: FloatArray,
    out: FloatArray,
    code: IntArray,
    counters: IntArray,
    at: int,
    end: int,
    zeros: bool,
    raised: bool,
) -> float:
    """Carry out the instructions from `at` up to `end`. counters: scratch, one for each outer loop.

    zeros, raised: whether values may be 0, or raised. The result is the probability of what passes through raised ones.
    """
    lost = 0.0
    while at < end:
        size, kind, fresh, clear = code[at], code[at + 1], code[at + 2] != 0, code[at + 3]
        r, p, q, outer = code[at + 4], code[at + 5], code[at + 6], code[at + 7]
        if kind == layout.MASK:
            if raised:
                lost += passing(memory, p, r, clear)
            elif zeros:
                for j in range(clear):
                    if memory[p + j] == 0.0:
                        memory[r + j] = 0.0
        elif kind == layout.FINISH:
            _finish(memory, out, r, p, q, clear, fresh, zeros)
        else:
            for j in range(clear):
                memory[r + j] = 0.0
            outside = at + layout.HEADER + 3 * layout.DIMENSION
            inner = code[at + layout.HEADER : outside]
            for d in range(outer):
                counters[d] = 0
            d = 0
            while d >= 0:
                # Each kernel is called in one place: it is compiled anew for each.
                if kind == layout.ELEMENTWISE:
                    elementwise(memory, inner, r, p, q, fresh)
                elif kind == layout.PRODUCTS:
                    add_products(memory, inner, r, p, q, fresh)
                elif kind == layout.DOTS:
                    dots(memory, inner, r, p, q)
                elif kind == layout.MATRIX:
                    matrix(memory, inner, r, p, q)
                else:
                    _strided(memory, inner, r, p, q, fresh)
                d = outer - 1
                while d >= 0:
                    loop = outside + d * layout.DIMENSION
                    counters[d] += 1
                    r += code[loop + 1]
                    p += code[loop + 2]
                    q += code[loop + 3]
                    if counters[d] < code[loop]:
                        break
                    counters[d] = 0
                    r -= code[loop] * code[loop + 1]
                    p -= code[loop] * code[loop + 2]
                    q -= code[loop] * code[loop + 3]
                    d -= 1
        at += size
    return lost


@jit_strictly
def _turned(memory: FloatArray, plan: IntArray) -> float:
    """log Z of the roots; sets d log Z / d root = 1 / root."""
    log_partition = 0.0
    for root in range(plan[layout.ROOTS]):
        at = plan[layout.AT_ROOTS] + 2 * root
        value = memory[plan[at]]
        if value == 0.0:
            return -np.inf
        memory[plan[at + 1]] = 1.0 / value
        log_partition += math.log(value)
    return log_partition


@jit_strictly(
    "Tuple((int64, float64))(Array(float64, 1, 'C', readonly=True), float64[::1], float64[::1], int64[::1], "
    "float64[::1], float64)"
)
def infer(
    theta: FloatArray, out: FloatArray, memory: FloatArray, plan: IntArray, logs: FloatArray, total: float
) -> tuple[int, float]:
    """Marginals of `total` records into `out`, and (status, log Z of one less what attributes in no clique add).

    theta, out: (cells,). memory: scratch that the program asks for. logs: the logarithm of the codes summed, by step;
    then their sum, and what potentials may be without being shifted. status: FINE; REFUSED for NaN, +inf and tables of
    -inf only; BEYOND where double precision may not do.
    """
    steps = plan[layout.STEPS]
    status, shift, raised = layout.BEYOND, 0.0, False
    if len(theta) <= FEW:
        status = fill_at_once(theta, memory, plan, logs)
    sure = status != layout.BEYOND
    if not sure:
        status, shift, raised = fill(theta, memory, plan, logs[steps + 1])
    if status != layout.FINE and status != layout.ZEROS:
        return status, 0.0
    zeros = status == layout.ZEROS
    counters = memory[plan[layout.COUNTERS] : plan[layout.COUNTERS] + layout.LOOPS].view(np.int64)
    guarded = not sure and must_be_guarded(memory, plan, logs[steps])
    if guarded:
        bound_inputs(memory, plan)
    # Forwards and backwards in one go each, or step by step under guard. In one loop: each call of `run` is compiled
    # anew, which takes seconds.
    log_partition, turns = 0.0, steps if guarded else 1
    lost, within = 0.0, False
    for turn in range(2 * turns):
        forwards, start, end = turn < turns, plan[layout.FORWARD], plan[layout.BACKWARD]
        step = turn if forwards else 2 * turns - 1 - turn
        if turn == turns:
            log_partition += _turned(memory, plan)
            if log_partition == -np.inf:
                return layout.FINE, log_partition
        if guarded:
            at = plan[layout.AT_STEPS] + layout.STEP * step + (0 if forwards else 2)
            start, end = plan[at], plan[at + 1]
            if not forwards:
                rescale(memory, plan, step)
        elif not forwards:
            start, end = plan[layout.BACKWARD], plan[layout.END]
        lost += run(memory, out, plan, counters, start, end, zeros, within and not forwards)
        if guarded and forwards:
            log_scale, low = guard_step(memory, plan, logs, step)
            if log_scale == -np.inf:
                return layout.FINE, log_scale
            log_partition, within = log_partition + log_scale, within or low
    for free in range(plan[layout.FREE]):  # tables without letters: each of their cliques has probability 1
        out[plan[plan[layout.AT_FREE] + 2 * free]] = plan[plan[layout.AT_FREE] + 2 * free + 1]
    if zeros:
        for i in range(len(out)):
            if not math.isfinite(out[i]):
                return layout.BEYOND, 0.0
    if (raised or within) and not cut(memory, out, lost):
        return layout.BEYOND, 0.0
    if total != 1.0:
        for i in range(len(out)):
            out[i] *= total
    return layout.FINE, log_partition + shift
