"""The interpreter of flat programs: whole inferences on probabilities in one call, without Python in between.

A program is one array of whole numbers, made by `dpgm_core.inference.exact.flat`; `format` gives its layout.
Why the numbers can be trusted is said in `dpgm_core.inference.exact.probability`: the guard here is the one there.
"""

from __future__ import annotations

import math

import numpy as np

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.compiled.blocks import add_products, dots, elementwise, matrix
from dpgm_core.inference.compiled.filling import FEW, fill, fill_at_once
from dpgm_core.inference.compiled.format import (
    AT_FREE,
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
    HEADER,
    LOOPS,
    MASK,
    MATRIX,
    PRODUCTS,
    ROOTS,
    STEP,
    STEPS,
    ZEROS,
)
from dpgm_core.inference.compiled.guard import bound_inputs, cut, guard_step, must_be_guarded, passing, rescale
from dpgm_core.inference.compiled.loading import jit, jit_strictly

__all__ = ["infer", "run"]


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
