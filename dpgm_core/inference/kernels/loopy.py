"""Sweeps of loopy belief propagation in probability space, compiled: all that is between potentials and beliefs.

The innermost loops run over the factors or the messages of one class, which stand side by side in memory, so that the
compiler makes vector instructions of them. Nothing is divided by a message. All floats are in one `memory`, laid out as
`dpgm_core.inference.loopy.bp.FlatPlan` says: one array, so each kernel is compiled for one signature.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.kernels.loading import jit

__all__ = ["CONTRADICTION", "DONE", "UNDERFLOW", "run"]

# What `run` came to: beliefs; a message that is all zero; a product that might be too small for floats.
DONE, CONTRADICTION, UNDERFLOW = 0, 1, 2
# A product of which this is a lower bound keeps its digits: the smallest normal number is 2.2e-308.
_MIN_SAFE_PRODUCT = 1e-300


@jit(
    "Tuple((int64, int64, float64, float64))(float64[::1], int64[::1], int64[:, ::1], int64[::1], int64[::1], "
    "int64[::1], float64[::1], int64)"
)
def run(
    memory: FloatArray,
    places: IntArray,
    variables: IntArray,
    incoming: IntArray,
    factors: IntArray,
    starts: IntArray,
    settings: FloatArray,
    limit: int,
) -> tuple[int, int, float, float]:
    """Outcome, sweeps, residual (the tolerance for less) and log-partition, nats; beliefs stand where potentials stood.

    memory: begins with the factors' potentials, the largest of each 1. places, variables, incoming, factors, starts: as
    in `FlatPlan`. settings: damping, tolerance, and a floor; entries of messages below the floor count as it. limit:
    sweeps at most; all are made, undamped, where the tolerance is below 0.
    """
    cells, entries, old, fresh = places[0], places[1], places[2], places[3]
    others, below, above = places[4], places[5], places[6]
    damping, tolerance, floor = settings[0], settings[1], settings[2]
    smallest = 1.0
    for cell in memory[:cells]:
        if 0.0 < cell < smallest:
            smallest = cell
    for i in range(2 * entries):  # old and fresh
        memory[old + i] = 1.0
    iteration, residual, converged, log_partition = 0, np.inf, False, 0.0
    while True:  # each kernel is called from one place: it is compiled into this one anew wherever it is called
        last = converged or iteration >= limit
        iteration += not last
        low = _to_factors(memory, variables, incoming, old, others)
        for f in range(starts.size):
            row = factors[starts[f] :]
            if not smallest * low ** float(row[0]) > _MIN_SAFE_PRODUCT:
                return UNDERFLOW, iteration, residual, 0.0
            if last:
                log_partition += _factor_beliefs(memory, row, others, below, fresh)
            else:
                _from_factors(memory, row, others, fresh, below, above)
        if last:
            log_partition += _attributes(memory, variables, incoming, old)
            return DONE if log_partition > -np.inf else CONTRADICTION, iteration, residual, log_partition
        if not _normalise(memory, variables, fresh, others):
            return CONTRADICTION, iteration, residual, 0.0
        if tolerance >= 0.0:
            new, before = memory[fresh : fresh + entries], memory[old : old + entries]
            converged = _is_converged(new, before, 1.0 - tolerance, floor)
            if converged:
                residual = tolerance
            elif iteration == limit:
                residual = _residual(new, before, floor)
            if damping > 0.0:
                _damp(new, before, damping)
        fresh, old = old, fresh


@jit
def _to_factors(memory: FloatArray, variables: IntArray, incoming: IntArray, messages: int, others: int) -> float:
    """Write, per message, the product of all other messages to its attribute; returns a lower bound of those products
    that hold no 0: the least product over an attribute's messages other than 0.
    """
    low = 1.0
    for v in range(variables.shape[0]):
        base, size, width = variables[v, 0], variables[v, 1], variables[v, 2]
        degree, count, first = variables[v, 3], variables[v, 4], variables[v, 5]
        for x in range(size):
            rows, out = memory[messages + base + x * width :], memory[others + base + x * width :]
            for i in range(first, first + count):
                if degree == 4:
                    # Unsigned numbers spare each access a test for being negative.
                    c0, c1 = np.uint64(incoming[i]), np.uint64(incoming[i + count])
                    c2, c3 = np.uint64(incoming[i + 2 * count]), np.uint64(incoming[i + 3 * count])
                    m0, m1, m2, m3 = rows[c0], rows[c1], rows[c2], rows[c3]
                    front, back = m0 * m1, m2 * m3
                    out[c0], out[c1], out[c2], out[c3] = m1 * back, m0 * back, front * m3, front * m2
                    product = front * back
                else:
                    product = 1.0
                    for j in range(i, i + degree * count, count):
                        out[incoming[j]] = product
                        product *= rows[incoming[j]]
                    after = 1.0
                    for j in range(i + (degree - 1) * count, i - 1, -count):
                        out[incoming[j]] *= after
                        after *= rows[incoming[j]]
                if product < low:
                    product = 1.0
                    for j in range(i, i + degree * count, count):
                        if rows[incoming[j]] > 0.0:
                            product *= rows[incoming[j]]
                    low = product if product < low else low
    return low


@jit
def _from_factors(memory: FloatArray, row: IntArray, others: int, fresh: int, below: int, above: int) -> None:
    """Write one class of factors' messages: per axis, the sum over the other axes of the table times their messages.

    With A_m the table and A_j = sum_{x_j} A_{j+1} in_j, axis j is sent sum_{x_0..x_{j-1}} A_{j+1} in_0 .. in_{j-1}.
    """
    order, count, cells, width = row[0], row[1], row[2], row[3]
    axes = row[4 : 4 + 4 * order]  # four numbers each
    for start in range(0, count, width):
        n = width if width < count - start else count - start
        source, stride = cells + start, count
        if order == 1:
            for x in range(axes[0]):
                for i in range(n):
                    memory[fresh + axes[1] + x * axes[2] + start + i] = memory[source + x * count + i]
            continue
        before, apart = _prefixes(memory, axes, order - 1, others + start, n, below, width)
        for j in range(order - 1, 0, -1):
            rows, size, port = 1, axes[4 * j], axes[4 * j + 1] + start
            step, place = axes[4 * j + 2], axes[4 * j + 3]
            for i in range(j):
                rows *= axes[4 * i]
            target = above + place
            if j == 1:
                target, before, apart = fresh + axes[1] + start, others + axes[1] + start, axes[2]
            else:
                before = below + place
            for x in range(rows + size):
                if x < rows:  # A_j
                    to, terms = target + x * apart, size
                    one, between, two, other_step = source + x * size * stride, stride, others + port, step
                else:  # the message of axis j
                    to, terms = fresh + port + (x - rows) * step, rows
                    one, between, two, other_step = source + (x - rows) * stride, size * stride, before, apart
                _dot(memory, to, one, between, two, other_step, terms, n)
            source, stride = target, apart


@jit
def _prefixes(
    memory: FloatArray, axes: IntArray, last: int, messages: int, n: int, below: int, width: int
) -> tuple[int, int]:
    """Write the products of the messages of the axes before j, for j = 2 .. last; where that of `last` stands, and the
    length of its rows.
    """
    rows, before, stride = axes[0], messages + axes[1], axes[2]
    for j in range(2, last + 1):
        size, port, step = axes[4 * j - 4], axes[4 * j - 3], axes[4 * j - 2]
        place = below + axes[4 * j + 3]
        for row in range(rows * size):
            one = memory[before + row // size * stride :]
            two = memory[messages + port + row % size * step :]
            out = memory[place + row * width :]
            for i in range(n):
                out[i] = one[i] * two[i]
        rows, before, stride = rows * size, place, width
    return before, stride


@jit
def _dot(memory: FloatArray, to: Any, one: Any, between: Any, two: Any, step: Any, terms: int, n: Any) -> None:
    """[to + i] = sum_t [one + t between + i] [two + t beside + i], for n factors side by side, two terms at a time.

    All whole numbers; unsigned within, which spares each access a test for being negative.
    """
    to, one, between, two, step = np.uint64(to), np.uint64(one), np.uint64(between), np.uint64(two), np.uint64(step)
    n = np.uint64(n)
    if terms % 2:
        for i in range(n):
            memory[to + i] = memory[one + i] * memory[two + i]
    else:
        three, four = one + between, two + step
        for i in range(n):
            memory[to + i] = memory[one + i] * memory[two + i] + memory[three + i] * memory[four + i]
    for t in range(2 - terms % 2, terms, 2):
        a, b = one + np.uint64(t) * between, two + np.uint64(t) * step
        c, d = a + between, b + step
        for i in range(n):
            memory[to + i] += memory[a + i] * memory[b + i] + memory[c + i] * memory[d + i]


@jit
def _normalise(memory: FloatArray, variables: IntArray, messages: int, scratch: int) -> bool:
    """Divide each message by its largest entry; False where one is all zero. scratch: of a row of messages."""
    total = 0.0
    for v in range(variables.shape[0]):
        base, size, width = variables[v, 0], variables[v, 1], variables[v, 2]
        if not variables[v, 6]:  # another class of the same size has done it
            continue
        tops = memory[scratch : scratch + width]
        for x in range(size):
            row = memory[messages + base + x * width : messages + base + (x + 1) * width]
            for i in range(width):
                tops[i] = tops[i] if x and tops[i] > row[i] else row[i]
        for i in range(width):
            tops[i] = 1.0 / tops[i]
            total += tops[i]
        for x in range(size):
            row = memory[messages + base + x * width : messages + base + (x + 1) * width]
            for i in range(width):
                row[i] *= tops[i]
    return total < np.inf


@jit
def _is_converged(fresh: FloatArray, old: FloatArray, share: float, floor: float) -> bool:
    """Whether no entry is less than `share` of what it was, or the other way round."""
    converged = True
    for i in range(fresh.size):
        new, last = fresh[i] if fresh[i] > floor else floor, old[i] if old[i] > floor else floor
        converged &= (new >= share * last) & (last >= share * new)
    return converged


@jit
def _residual(fresh: FloatArray, old: FloatArray, floor: float) -> float:
    """The largest relative change of an entry, in [0, 1]."""
    least = 1.0
    for i in range(fresh.size):
        new, last = fresh[i] if fresh[i] > floor else floor, old[i] if old[i] > floor else floor
        ratio = new / last if new < last else last / new
        least = ratio if ratio < least else least
    return 1.0 - least


@jit
def _damp(fresh: FloatArray, old: FloatArray, damping: float) -> None:
    """fresh^(1 - damping) old^damping."""
    if damping == 0.5:
        for i in range(fresh.size):
            fresh[i] = math.sqrt(fresh[i]) * math.sqrt(old[i])
    else:
        for i in range(fresh.size):
            fresh[i] = fresh[i] ** (1.0 - damping) * old[i] ** damping


@jit
def _factor_beliefs(memory: FloatArray, row: IntArray, others: int, below: int, scratch: int) -> float:
    """Turn one class of factors' potentials into normalised beliefs; returns the summed logs of what they sum to.

    scratch: of a row of messages.
    """
    order, count, cells, width = row[0], row[1], row[2], row[3]
    axes = row[4 : 4 + 4 * order]  # four numbers each
    size, port, step = axes[4 * order - 4], axes[4 * order - 3], axes[4 * order - 2]
    rows, log_sums = 1, 0.0
    for j in range(order - 1):
        rows *= axes[4 * j]
    for start in range(0, count, width):
        n = width if width < count - start else count - start
        before, apart = _prefixes(memory, axes, order - 1, others + start, n, below, width)
        sums = memory[scratch : scratch + n]
        for i in range(n):
            sums[i] = 0.0
        for number in range(rows * size):
            table = memory[cells + number * count + start :]
            last = memory[others + port + start + number % size * step :]
            first = memory[before + number // size * apart :]
            for i in range(n):
                table[i] *= last[i] if order == 1 else last[i] * first[i]
                sums[i] += table[i]
        for i in range(n):
            log_sums += math.log(sums[i])
            sums[i] = 1.0 / sums[i]
        for number in range(rows * size):
            table = memory[cells + number * count + start :]
            for i in range(n):
                table[i] *= sums[i]
    return log_sums


@jit
def _attributes(memory: FloatArray, variables: IntArray, incoming: IntArray, messages: int) -> float:
    """sum_i (1 - d_i) log z_i, z_i the sum over labels of the product of the messages to attribute i."""
    total = 0.0
    for v in range(variables.shape[0]):
        base, size, width = variables[v, 0], variables[v, 1], variables[v, 2]
        degree, count, first, weights = variables[v, 3], variables[v, 4], variables[v, 5], variables[v, 7]
        for i in range(count):
            z = 0.0
            for x in range(size):
                product = 1.0
                for j in range(first + i, first + i + degree * count, count):
                    product *= memory[messages + base + x * width + incoming[j]]
                z += product
            if z == 0.0:
                return -np.inf
            total += incoming[weights + i] * math.log(z)
    return total
