"""Kernels of contractions: filling of their arrays, and the guard of their values."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.kernels.blocks import add_products, dots, elementwise, exponentials, matrix
from dpgm_core.inference.kernels.format import (
    AT_FREE,
    AT_INPUTS,
    AT_ROOTS,
    AT_STEPS,
    BACKWARD,
    BEYOND,
    COUNTERS,
    DIMENSION,
    DOTS,
    ELEMENTWISE,
    END,
    FINE,
    FINISH,
    FORWARD,
    FREE,
    GROUPS,
    HEADER,
    HIGHS,
    INPUTS,
    LOOPS,
    LOST,
    LOWS,
    MASK,
    MATRIX,
    NODE_HIGHS,
    NODE_LOWS,
    PRODUCTS,
    REACH,
    REFUSED,
    ROOTS,
    SCALES,
    STEP,
    STEPS,
    TABLES,
    ZEROS,
)
from dpgm_core.inference.kernels.loading import jit, jit_strictly, jit_without_nan

__all__ = [
    "FEW",
    "FLOOR",
    "bound_inputs",
    "cut",
    "fill",
    "fill_at_once",
    "guard_step",
    "infer",
    "must_be_guarded",
    "passing",
    "rescale",
    "run",
]


# --- Bounds and rescaling -------------------------------------------------------------------------
# Guard, floors and their proof are those of `dpgm_core.inference.junction_tree.probability`. Which cells were raised
# is not remembered: no other nonzero cell of a scaled value is as low, but for rounding, and one that is counts as
# raised, which errs on the safe side. MASK looks for them once the adjoint is there, before the value's memory is used
# again.

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
        if kind == MASK:
            if raised:
                lost += passing(memory, p, r, clear)
            elif zeros:
                for j in range(clear):
                    if memory[p + j] == 0.0:
                        memory[r + j] = 0.0
        elif kind == FINISH:
            _finish(memory, out, r, p, q, clear, fresh, zeros)
        else:
            for j in range(clear):
                memory[r + j] = 0.0
            outside = at + HEADER + 3 * DIMENSION
            inner = code[at + HEADER : outside]
            for d in range(outer):
                counters[d] = 0
            d = 0
            while d >= 0:
                # Each kernel is called in one place: it is compiled anew for each.
                if kind == ELEMENTWISE:
                    elementwise(memory, inner, r, p, q, fresh)
                elif kind == PRODUCTS:
                    add_products(memory, inner, r, p, q, fresh)
                elif kind == DOTS:
                    dots(memory, inner, r, p, q)
                elif kind == MATRIX:
                    matrix(memory, inner, r, p, q)
                else:
                    _strided(memory, inner, r, p, q, fresh)
                d = outer - 1
                while d >= 0:
                    loop = outside + d * DIMENSION
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
    for root in range(plan[ROOTS]):
        at = plan[AT_ROOTS] + 2 * root
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
    steps = plan[STEPS]
    status, shift, raised = BEYOND, 0.0, False
    if len(theta) <= FEW:
        status = fill_at_once(theta, memory, plan, logs)
    sure = status != BEYOND
    if not sure:
        status, shift, raised = fill(theta, memory, plan, logs[steps + 1])
    if status != FINE and status != ZEROS:
        return status, 0.0
    zeros = status == ZEROS
    counters = memory[plan[COUNTERS] : plan[COUNTERS] + LOOPS].view(np.int64)
    guarded = not sure and must_be_guarded(memory, plan, logs[steps])
    if guarded:
        bound_inputs(memory, plan)
    # Forwards and backwards in one go each, or step by step under guard. In one loop: each call of `run` is compiled
    # anew, which takes seconds.
    log_partition, turns = 0.0, steps if guarded else 1
    lost, within = 0.0, False
    for turn in range(2 * turns):
        forwards, start, end = turn < turns, plan[FORWARD], plan[BACKWARD]
        step = turn if forwards else 2 * turns - 1 - turn
        if turn == turns:
            log_partition += _turned(memory, plan)
            if log_partition == -np.inf:
                return FINE, log_partition
        if guarded:
            at = plan[AT_STEPS] + STEP * step + (0 if forwards else 2)
            start, end = plan[at], plan[at + 1]
            if not forwards:
                rescale(memory, plan, step)
        elif not forwards:
            start, end = plan[BACKWARD], plan[END]
        lost += run(memory, out, plan, counters, start, end, zeros, within and not forwards)
        if guarded and forwards:
            log_scale, low = guard_step(memory, plan, logs, step)
            if log_scale == -np.inf:
                return FINE, log_scale
            log_partition, within = log_partition + log_scale, within or low
    for free in range(plan[FREE]):  # tables without letters: each of their cliques has probability 1
        out[plan[plan[AT_FREE] + 2 * free]] = plan[plan[AT_FREE] + 2 * free + 1]
    if zeros:
        for i in range(len(out)):
            if not math.isfinite(out[i]):
                return BEYOND, 0.0
    if (raised or within) and not cut(memory, out, lost):
        return BEYOND, 0.0
    if total != 1.0:
        for i in range(len(out)):
            out[i] *= total
    return FINE, log_partition + shift
