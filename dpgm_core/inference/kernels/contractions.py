"""Kernels of exact inference: sums of products, exponentials, the guard of values, and the interpreter of programs."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.kernels import format as layout
from dpgm_core.inference.kernels.loading import jit, jit_strictly, jit_without_nan, multiply, power_of_two, read_bits
from dpgm_core.inference.kernels.tiles import MAX_ROWS, MAX_VECTORS, dot_tile, extremes, product_tile

__all__ = ["infer", "run"]


# --- Sums of products along runs ------------------------------------------------------------------
# All tables lie in one array, `memory`; a place is an index into it. `loops` are the three innermost ones, by `format`.
# There is no `min` or `max`: numba compiles each for every pair of types, and optimises it alone.

_BLOCK = MAX_VECTORS * layout.LANES


@jit
def add_products(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, j] (= if fresh, else +=) sum over k of p[i, k] * q[i, k, j], with runs along j in r and q."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    terms, p_term, q_term, cells = loops[4], loops[6], loops[7], loops[8]
    most, low = MAX_ROWS if q_row == 0 else 1, 0
    while low < cells:
        lanes, i = cells - low if cells - low < _BLOCK else _BLOCK, 0
        while i < rows:
            to, one, two = (r + low + i * r_row, r_row), (p + i * p_row, p_row, p_term), (q + low + i * q_row, q_term)
            product_tile(memory, to, one, two, (rows - i if rows - i < most else most, terms, lanes), fresh)
            i += most
        low += _BLOCK


@jit
def elementwise(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, j] (= if fresh, else +=) sum over k of p[i, k, j] * q[i, k, j], with runs along j in all three."""
    terms, p_term, q_term, cells = loops[4], loops[6], loops[7], loops[8]
    for i in range(loops[0]):
        to, one, two, low = r + i * loops[1], p + i * loops[2], q + i * loops[3], 0
        while low < cells:
            size = (0, terms, cells - low if cells - low < _BLOCK else _BLOCK)
            product_tile(memory, (to + low, 0), (one + low, 0, p_term), (two + low, q_term), size, fresh)
            low += _BLOCK


@jit
def dots(memory: FloatArray, loops: IntArray, r: int, p: int, q: int, fresh: bool) -> None:
    """r[i, l] (= if fresh, else +=) sum over j of p[i, l, j] * q[i, l, j], with runs along j in p and q."""
    rows, r_row, p_row, q_row = loops[0], loops[1], loops[2], loops[3]
    columns, r_column, p_column, q_column, cells = loops[4], loops[5], loops[6], loops[7], loops[8]
    most, i = MAX_ROWS if q_row == 0 and p_column == 0 else 1, 0
    while i < rows:
        k = 0
        while k < columns:
            to = (r + i * r_row + k * r_column, r_row, r_column)
            one, two = (p + i * p_row + k * p_column, p_row, p_column), (q + i * q_row + k * q_column, q_column)
            width = columns - k if columns - k < MAX_ROWS else MAX_ROWS
            dot_tile(memory, to, one, two, (rows - i if rows - i < most else most, width, cells), fresh)
            k += MAX_ROWS
        i += most


@jit
def matrix(memory: FloatArray, loops: IntArray, r: int, p: int, q: int) -> None:
    """r[i, j] = sum over k of p[i, k] * q[k, j] by BLAS; r lies row by row, p and q so or column by column."""
    rows, columns, terms = loops[0], loops[8], loops[4]
    multiply(memory, r, p, q, rows, columns, terms, loops[6] != 1, loops[7] == 1)


# --- Exponentials ---------------------------------------------------------------------------------

#: Below this, exp is taken as 0: whoever calls raises the result, of -inf apart.
LOWEST = -700.0

_LOG2E = 1.4426950408889634
# log 2 in two parts: k times the first is exact for every exponent k.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
# Added to a number below 2^51 this leaves the nearest whole number in the low bits, where `power_of_two` reads it.
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
        result[i] = (s * r + 1.0) * power_of_two(near) if x > LOWEST else 0.0


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
        smallest, largest = memory[plan[layout.LOWS] + group], memory[plan[layout.HIGHS] + group]
        low += smallest if smallest < 0.0 else 0.0
        high += largest if largest > 0.0 else 0.0
    return low < -2 * layout.REACH or high > layout.REACH


@jit_without_nan
def _measured(memory: FloatArray, start: int, cells: int) -> tuple[float, float]:
    """The least nonzero and the largest cell of a table of numbers that are not negative."""
    smallest, largest = np.inf, 0.0
    for i in range(start, start + cells):
        x = memory[i]
        largest = x if x > largest else largest
        smallest = x if x != 0.0 and x < smallest else smallest
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
        low = -span if span < layout.REACH else -layout.REACH
        high = span - layout.REACH if span > layout.REACH else 0.0
        high = high if high < layout.REACH else layout.REACH
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


@jit_strictly
def _bounds(theta: FloatArray, start: int, stop: int) -> tuple[float, float, bool]:
    """The least finite potential, the largest, and whether some is -inf; of NaN and +inf the largest is inf."""
    low, high, minus, sure = extremes(theta, start, stop)
    if not sure or low > high:
        return 0.0, np.inf, False
    return low, high, minus


@jit_strictly
def fill_at_once(theta: FloatArray, memory: FloatArray, plan: IntArray, logs: FloatArray) -> int:
    """Write all probabilities of few and mild potentials, which need no guard; BEYOND where that is not sure."""
    mild, inputs = logs[plan[layout.STEPS] + 1], plan[layout.INPUTS]
    low, high, minus, sure = extremes(theta, 0, len(theta))
    if not sure:
        return layout.REFUSED
    if (
        low < -mild
        or high > mild
        or inputs * low < -2 * layout.REACH
        or inputs * (high if high > 0.0 else 0.0) + logs[plan[layout.STEPS]] > layout.REACH
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
        memory[lows + group] = low - above if low - above > -layout.REACH else -layout.REACH
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
        to, one, two = r + i * loops[1], p + i * loops[2], q + i * loops[3]
        for _ in range(loops[4]):
            if r_step == 0:
                total = 0.0 if fresh else memory[_place(to)]
                for j in range(cells):
                    total += memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
                memory[_place(to)] = total
            elif fresh:
                for j in range(cells):
                    product = memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
                    memory[_place(to + j * r_step)] = product
            else:
                for j in range(cells):
                    product = memory[_place(one + j * p_step)] * memory[_place(two + j * q_step)]
                    memory[_place(to + j * r_step)] += product
            to += loops[5]
            one += loops[6]
            two += loops[7]


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
                    dots(memory, inner, r, p, q, fresh)
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


@jit_strictly("float64(Array(float64, 1, 'C', readonly=True), float64[::1], float64[::1], int64[::1], float64)")
def infer(theta: FloatArray, out: FloatArray, memory: FloatArray, plan: IntArray, total: float) -> float:
    """Marginals of `total` records into `out`, and log Z of one less what attributes in no clique add.

    theta, out: (cells,). memory: scratch that the program asks for. NaN where there is no answer: for potentials of NaN
    and +inf and tables of -inf only, which are refused, and where double precision may not do. Each argument takes
    Python as long as a small step takes here, so the logarithms of `format` are a part of the plan.
    """
    steps, logs = plan[layout.STEPS], read_bits(plan, plan[layout.AT_LOGS])
    status, shift, raised = layout.BEYOND, 0.0, False
    if len(theta) <= FEW:
        status = fill_at_once(theta, memory, plan, logs)
    sure = status != layout.BEYOND
    if not sure:
        status, shift, raised = fill(theta, memory, plan, logs[steps + 1])
    if status != layout.FINE and status != layout.ZEROS:
        return np.nan
    zeros = status == layout.ZEROS
    counters = read_bits(memory, plan[layout.COUNTERS])
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
                return log_partition
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
                return log_scale
            log_partition, within = log_partition + log_scale, within or low
    for free in range(plan[layout.FREE]):  # tables without letters: each of their cliques has probability 1
        out[plan[plan[layout.AT_FREE] + 2 * free]] = plan[plan[layout.AT_FREE] + 2 * free + 1]
    if zeros:
        for i in range(len(out)):
            if not math.isfinite(out[i]):
                return np.nan
    if (raised or within) and not cut(memory, out, lost):
        return np.nan
    if total != 1.0:
        for i in range(len(out)):
            out[i] *= total
    return log_partition + shift
