"""Message passing in logarithms, for potentials of any range; and what is drawn from it: records, also rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray, IntArray, aligned
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree.contraction import Contraction, Letters
from dpgm_core.inference.junction_tree.curvature import LogCurvature, Means, means_of
from dpgm_core.structure.structure import Structure

__all__ = [
    "IMPOSSIBLE",
    "Logarithms",
    "at_random",
    "divide_rows",
    "draw",
    "draw_rounded",
    "log_contract",
    "max_contract",
    "most_probable",
    "refuse_infinite",
]


# --- Walks of a contraction in logarithms ---------------------------------------------------------
# Slower than probabilities, but nothing underflows: -inf is the only zero. Temporary memory stays near that of the
# operands, because the product table of a contraction is never built at once.

# Codes for records, given the row of the weights each record reads; and what makes one from log-weights (rows, codes).
Choose = Callable[[IntArray], IntArray]
Pick = Callable[[FloatArray], Choose]
# contract(p, q) for p (batch, rows, inner) and q (batch, inner, columns): (batch, rows, columns)
Contract = Callable[[FloatArray, FloatArray], FloatArray]

_MIN_SURE_SUM = 1e-150  # a larger sum of products of numbers up to 1 has lost at most inner * 1e-158 of itself
_MAX_SAFE_SPAN = 700.0  # exp(-this) has all its digits
_SHORT_SUM = 16  # sums of so few terms are made term by term where tables span too much
_CHUNK = 2**18  # terms recomputed at once
_EMPTY = np.empty(0)
_RECORDS = 2**13  # records handled at once, so that scratch stays in the processor's cache


def log_contract(p: FloatArray, q: FloatArray) -> FloatArray:
    """log sum_k exp(p[..., k] + q[k, ...]), by a matrix product where that is sure and term by term elsewhere."""
    if p.shape[2] == 1:
        return p + q
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        top_p, top_q = _top(p), _top(q)
        if _span(p, top_p) + _span(q, top_q) > _MAX_SAFE_SPAN:  # else no term underflows, zeros apart
            return _by_terms(p, q) if p.shape[2] <= _SHORT_SUM else _by_rows(p, q)
        sums = np.matmul(_exp_less(p, top_p), _exp_less(q, top_q))
        result: FloatArray = np.log(sums, out=sums)
        result += top_p + top_q
    return result


def _by_terms(p: FloatArray, q: FloatArray) -> FloatArray:
    """`log_contract` with the largest term of each sum taken out: right whatever the tables, one exp per term."""
    result = max_contract(p, q)
    top = _finite(result)
    total = np.zeros(result.shape)
    for inner in range(p.shape[2]):
        terms = p[:, :, inner : inner + 1] + q[:, inner : inner + 1, :]
        terms -= top
        total += np.exp(terms, out=terms)
    result += np.log(total, out=total)
    return result


def _by_rows(p: FloatArray, q: FloatArray) -> FloatArray:
    """`log_contract` with the maximum of each row and column taken out."""
    top_p, top_q = _finite(_largest(p, 2)), _finite(_largest(q, 1))
    sums = np.matmul(_exp_less(p, top_p), _exp_less(q, top_q))
    # The largest terms of a row and of a column need not meet: recompute those cells from their terms.
    unsure = np.flatnonzero(sums < _MIN_SURE_SUM)
    result: FloatArray = np.log(sums, out=sums)
    result += top_p
    result += top_q
    by_row = np.ascontiguousarray(q.transpose(0, 2, 1))
    flat, step = result.reshape(-1), max(1, _CHUNK // p.shape[2])
    for low in range(0, len(unsure), step):
        cells = unsure[low : low + step]
        batches, rows, columns = np.unravel_index(cells, result.shape)
        terms = p[batches, rows] + by_row[batches, columns]
        top = terms.max(axis=1)
        some = top > -np.inf
        flat[cells] = -np.inf
        terms, top = terms[some], top[some]
        flat[cells[some]] = np.log(np.exp(terms - top[:, None]).sum(axis=1)) + top
    return result


def max_contract(p: FloatArray, q: FloatArray) -> FloatArray:
    """max_k p[..., k] + q[k, ...], one k at a time."""
    result = p[:, :, :1] + q[:, :1, :]
    for inner in range(1, p.shape[2]):
        np.maximum(result, p[:, :, inner : inner + 1] + q[:, inner : inner + 1, :], out=result)
    return result


def forward(contraction: Contraction, inputs: Sequence[FloatArray], contract: Contract) -> list[FloatArray]:
    """The logarithm of every node; inputs: log-tables of the input nodes, shaped by `contraction.shape`.

    The total is the sum over `contraction.roots`; input nodes without letters and attributes in no clique are left out.
    """
    values = list(inputs)
    for step in contraction.steps:
        left = values[step.left]
        letters, out = contraction.nodes[step.left], contraction.nodes[step.out]
        if step.right is None:  # log 1 over the letter to be summed: summing out is contracting with ones
            others = tuple(set(letters) - set(out))
            right = np.zeros([contraction.sizes[letter] for letter in others])
        else:
            right, others = values[step.right], contraction.nodes[step.right]
        values.append(_contract(contraction, left, letters, right, others, out, contract))
    return values


def backward(contraction: Contraction, values: list[FloatArray], *, keep: bool = True) -> list[FloatArray]:
    """The logarithm of d Z / d node / Z for every node, from the values of `forward` in sums.

    keep: whether values and adjoints of steps that are done with stay; else they become empty, for memory's sake.
    """
    adjoints = [
        np.negative(value) if not letters else value for value, letters in zip(values, contraction.nodes, strict=True)
    ]
    for step in reversed(contraction.steps):
        above, out = adjoints[step.out], contraction.nodes[step.out]
        left = contraction.nodes[step.left]
        if step.right is None:
            (letter,) = set(left) - set(out)
            at = left.index(letter)
            adjoints[step.left] = np.broadcast_to(np.expand_dims(above, at), contraction.shape(step.left))
        else:
            right = contraction.nodes[step.right]
            adjoints[step.left] = _contract(contraction, above, out, values[step.right], right, left, log_contract)
            adjoints[step.right] = _contract(contraction, above, out, values[step.left], left, right, log_contract)
        if not keep:
            values[step.out] = adjoints[step.out] = _EMPTY
    return adjoints


class _Bucket:
    """The tables multiplied when a letter was summed out: log-weights of its codes, given those of other letters.

    conditions: the other letters, ascending.
    """

    def __init__(self, contraction: Contraction, values: Sequence[FloatArray], letter: int) -> None:
        self.sizes, self.size = contraction.sizes, contraction.sizes[letter]
        nodes = [(node, contraction.nodes[node]) for node in contraction.buckets[letter]]
        self._tables = [
            (np.moveaxis(values[node], letters.index(letter), -1), [other for other in letters if other != letter])
            for node, letters in nodes
        ]
        self.conditions = sorted({other for _, others in self._tables for other in others})

    def weights_of(self, codes: Sequence[Array], some: slice | IntArray, count: int) -> FloatArray:
        """(count, size): the weights of some records, given their codes so far."""
        weights = np.zeros((count, self.size))
        for table, others in self._tables:
            weights += table[tuple(codes[other][some] for other in others)]
        return weights

    def all_weights(self) -> FloatArray:
        """(combinations of codes of the conditions, size)."""
        weights = np.zeros([*(self.sizes[other] for other in self.conditions), self.size])
        for table, others in self._tables:
            weights += aligned(table, (*others, "own"), (*self.conditions, "own"))
        return weights.reshape(-1, self.size)


def draw(contraction: Contraction, values: Sequence[FloatArray], count: int, pick: Pick) -> dict[str, Array]:
    """Choose the codes of `count` records, attribute by attribute in reverse elimination order.

    values: from `forward`. Returns name -> codes (count,) for the attributes with letters. Given the codes chosen so
    far, the weights of a letter's codes are the product of its bucket.
    """
    codes: list[Array] = [np.zeros(0)] * len(contraction.order)
    for letter in reversed(range(len(contraction.order))):
        bucket = _Bucket(contraction, values, letter)
        column = np.empty(count, dtype=code_dtype(bucket.size))
        # Few conditions: the weights under each of them, once. Many: the weights of each record, in blocks.
        few = math.prod(contraction.sizes[other] for other in bucket.conditions) <= count
        choose = pick(bucket.all_weights()) if few else None
        for low in range(0, count, _RECORDS):
            part = slice(low, low + _RECORDS)
            length = len(column[part])
            if choose is None:
                column[part] = pick(bucket.weights_of(codes, part, length))(np.arange(length))
            else:
                row = np.zeros(length, dtype=np.int64)
                for other in bucket.conditions:
                    row = row * contraction.sizes[other] + codes[other][part]
                column[part] = choose(row)
        codes[letter] = column
    return dict(zip(contraction.order, codes, strict=True))


def most_probable(weights: FloatArray) -> Choose:
    """A `Pick`: the code with the largest weight."""
    best = weights.argmax(axis=1)
    return lambda rows: best[rows]


def at_random(generator: np.random.Generator) -> Pick:
    """A `Pick`: each code with probability proportional to exp(weight), by inverting the distribution function."""

    def pick(weights: FloatArray) -> Choose:
        upto = np.cumsum(np.exp(weights - _finite(weights.max(axis=1, keepdims=True))), axis=1)
        last, size = np.ascontiguousarray(upto[:, -1]), weights.shape[1]
        # A row of a power of two for each, so that a bisection needs no look at its ends; the last is never passed.
        length = 1 << (size - 1).bit_length()
        padded = np.full((len(weights), length), np.inf)
        padded[:, : size - 1] = upto[:, :-1]
        line = padded.reshape(-1)

        def choose(rows: IntArray) -> IntArray:
            most = last.take(rows)
            at = np.minimum(generator.random(len(rows)) * most, np.nextafter(most, 0.0))
            # The code is the number of cumulated weights <= at, found by bisection: steps of 2^j, downwards.
            start = rows * length
            place, half = start.copy(), length >> 1
            while half:
                place += half * (line.take(place + (half - 1)) <= at)
                half >>= 1
            return np.asarray(place - start)

        return choose

    return pick


def inputs_of(contraction: Contraction, structure: Structure, log_values: FloatArray) -> list[FloatArray]:
    """The input nodes' tables as views of a buffer laid out like `Tables.values`."""
    return [
        log_values[structure.slices[group]].reshape(contraction.shape(node))
        for node, group in enumerate(contraction.groups)
    ]


def _contract(
    contraction: Contraction,
    p: FloatArray,
    p_letters: Letters,
    q: FloatArray,
    q_letters: Letters,
    out: Letters,
    contract: Contract,
) -> FloatArray:
    shared = {*p_letters} & {*q_letters}
    batch = [letter for letter in out if letter in shared]
    inner = [letter for letter in p_letters if letter in shared and letter not in out]
    rows = [letter for letter in out if letter not in q_letters]
    columns = [letter for letter in out if letter not in p_letters]

    def matrix(table: FloatArray, letters: Letters, *axes: list[int]) -> FloatArray:
        permuted = table.transpose([letters.index(letter) for part in axes for letter in part])
        return permuted.reshape([math.prod(contraction.sizes[letter] for letter in part) for part in axes])

    result = contract(matrix(p, p_letters, batch, rows, inner), matrix(q, q_letters, batch, inner, columns))
    made = [*batch, *rows, *columns]
    return result.reshape([contraction.sizes[letter] for letter in made]).transpose(
        [made.index(letter) for letter in out]
    )


def _exp_less(table: FloatArray, top: Any) -> FloatArray:
    """exp(table - top), in one new array."""
    less: FloatArray = np.subtract(table, top)
    np.exp(less, out=less)
    return less


def _top(table: FloatArray) -> float:
    """The largest cell, 0 where all are -inf."""
    top = float(np.maximum.reduce(table, axis=None))
    return top if top > -math.inf else 0.0


def _span(table: FloatArray, top: float) -> float:
    """Nats between the largest cell and the smallest that is not -inf."""
    low = float(np.minimum.reduce(table, axis=None))
    if low > -math.inf:
        return top - low
    return top - float(np.minimum.reduce(table, axis=None, where=table > -np.inf, initial=top))


def _largest(table: FloatArray, axis: int) -> FloatArray:
    """The maximum along an axis, kept; a few slices at a time beat numpy's reduction over short axes."""
    size = table.shape[axis]
    if size > _SHORT_SUM:
        return np.asarray(table.max(axis=axis, keepdims=True))
    return reduce(np.maximum, (table[(slice(None),) * axis + (slice(at, at + 1),)] for at in range(size)))


def _finite(top: Any) -> Any:
    # Where all terms are -inf, subtract 0 rather than -inf.
    return np.where(top == -np.inf, 0.0, top)


# --- Rounded sampling -------------------------------------------------------------------------------
# Records of a junction tree whose tables are the expected ones up to roundings, attribute by attribute, as records are
# drawn. Of the n rows whose codes so far agree as far as they matter, each code k of the next attribute gets n p(k)
# rows, rounded down or up: systematic sampling, points u, u + 1, ... on a line on which k has the length n p(k), u
# uniform (Madow 1949). Which point a row gets is uniform too, given all that went before: so each row has the model's
# distribution, and no table is biased. Rows are not independent: their tables err by roundings.
#
# Neighbours among the n rows, which are in the order of the attributes before, get points far from each other: the
# ranks of the multiples of the golden ratio, which lie evenly over any run of rows (Weyl 1916), turned by a uniform
# offset. That costs nothing in bias, and attributes that share no clique come out nearer to what is expected of them
# together.

_GOLDEN = (math.sqrt(5) - 1) / 2
_WEIGHTS_AT_ONCE = 2**20  # cells of weights at once, so that scratch stays small
_MAX_STATES = 2**62


def draw_rounded(
    contraction: Contraction, values: Sequence[FloatArray], count: int, generator: np.random.Generator
) -> dict[str, Array]:
    """The codes of `count` records, attribute by attribute in reverse elimination order.

    values: logarithms of all nodes, from `logspace.forward`. Returns name -> codes (count,) for the attributes with
    letters.
    """
    codes: list[Array] = [np.zeros(0)] * len(contraction.order)
    order = generator.permutation(count)
    for letter in reversed(range(len(contraction.order))):
        bucket = _Bucket(contraction, values, letter)
        states = _states(
            [codes[other] for other in bucket.conditions],
            [contraction.sizes[other] for other in bucket.conditions],
            count,
        )

        def weights(rows: IntArray, bucket: _Bucket = bucket) -> FloatArray:
            return bucket.weights_of(codes, rows, len(rows))

        column, order = divide_rows(states, weights, bucket.size, order, generator)
        codes[letter] = column.astype(code_dtype(bucket.size))
    return dict(zip(contraction.order, codes, strict=True))


def divide_rows(
    states: IntArray,
    weights: Callable[[IntArray], FloatArray],
    size: int,
    order: IntArray,
    generator: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """A code below `size` for each row: of the n rows of a state, n p(code | state) have it, rounded without bias.

    states: (rows,). weights: log-weights of the codes, (rows given, size), in the states of some rows, by number.
    order: (rows,), the rows so that neighbours are alike; shuffled to begin with. The second array is the next order.
    """
    rows = order[np.argsort(states[order], kind="stable")]
    ordered = states[rows]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), bool), ordered[1:] != ordered[:-1]]))
    counts = np.diff(starts, append=len(rows))
    points = np.empty(len(rows), dtype=np.int64)
    step = max(1, _WEIGHTS_AT_ONCE // size)
    for low in range(0, len(starts), step):
        part = slice(low, low + step)
        phases = generator.random(len(starts[part]))
        last = starts[part][-1] + counts[part][-1]
        points[starts[low] : last] = _systematic(weights(rows[starts[part]]), counts[part], phases)
    state = np.repeat(np.arange(len(starts)), counts)
    points = points[starts[state] + _scattered(state, starts, counts, generator)]
    codes = np.empty_like(points)
    codes[rows] = points
    return codes, rows[np.argsort(state * size + points, kind="stable")]


def _scattered(state: IntArray, starts: IntArray, counts: IntArray, generator: np.random.Generator) -> IntArray:
    """For each row the number of its point within its state: a permutation that parts neighbours, turned at random."""
    place = np.arange(len(state)) - starts[state]
    ranks = np.empty_like(place)
    ranks[np.argsort(state + (place * _GOLDEN) % 1.0, kind="stable")] = place
    return np.asarray((ranks + generator.integers(0, counts)[state]) % counts[state])


def _systematic(weights: FloatArray, counts: IntArray, phases: FloatArray) -> IntArray:
    """Codes of the rows of all states, one state after the other."""
    top = weights.max(axis=1, keepdims=True)
    shares = np.exp(weights - np.where(top == -np.inf, 0.0, top))
    upto = np.cumsum(shares, axis=1)
    upto *= (counts / upto[:, -1])[:, None]
    # From the last code that is possible on the line ends exactly, so that no rounding leads to one that is not.
    size = weights.shape[1]
    last = size - 1 - (shares[:, ::-1] > 0).argmax(axis=1)
    upto[np.arange(size) >= last[:, None]] = np.repeat(counts, size - last)
    ends = np.cumsum(counts)
    begins = ends - counts
    line = (np.minimum(upto, counts[:, None]) + begins[:, None]).reshape(-1)
    # A state's points are its whole numbers plus its phase; they stay below its end.
    points = np.arange(ends[-1]) + np.repeat(phases, counts)
    points = np.minimum(points, np.nextafter(np.arange(1.0, ends[-1] + 1), 0.0))
    place = np.searchsorted(line, points, side="right")
    return np.asarray(place - size * np.repeat(np.arange(len(counts)), counts))


def _states(codes: Sequence[Array], sizes: Sequence[int], count: int) -> IntArray:
    """One number per row, the same for rows of the same codes."""
    states, bound = np.zeros(count, dtype=np.int64), 1
    for column, size in zip(codes, sizes, strict=True):
        if bound * size > _MAX_STATES:
            states = np.unique(states, return_inverse=True)[1].reshape(-1).astype(np.int64)
            bound = max(count, 1)
        states = states * size + column
        bound *= size
    return states


# --- Inference in logarithms ------------------------------------------------------------------------


IMPOSSIBLE = (
    "inference: every record has probability 0: what is given, or the zeros (-inf) of the model, rule all of them out"
)


def refuse_infinite(value: float) -> None:
    """Raise InferenceError for a log-partition of no record, or of potentials beyond doubles."""
    if value == -math.inf:
        raise InferenceError(IMPOSSIBLE)
    if not math.isfinite(value):
        raise InferenceError("inference: the potentials are too large for double precision; rescale them")


class Logarithms:
    """Walks of one contraction in logarithms; no state between calls. theta: nats, laid out like `Tables.values`."""

    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        self._contraction, self._structure = contraction, structure

    def infer(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return marginals of one record, (cells,), and log Z without attributes in no clique; it may be infinite."""
        values, log_partition = self._walked(theta, log_contract)
        marginals = np.zeros(theta.size)
        if log_partition == -math.inf:
            return marginals, log_partition
        adjoints = backward(self._contraction, values, keep=False)
        for node, group in enumerate(self._contraction.groups):
            part = marginals[self._structure.slices[group]]
            part += np.exp(values[node] + adjoints[node]).reshape(-1)
        return marginals, log_partition

    def forward(self, theta: FloatArray, contract: Contract) -> tuple[list[FloatArray], float]:
        """The logarithm of every node and the total. Raises InferenceError where that is infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            values, total = self._walked(theta, contract)
        refuse_infinite(total)
        return values, total

    def curvature(self, theta: FloatArray) -> LogCurvature:
        """Cov(T) at these potentials. Raises InferenceError as `forward` does."""
        values, _ = self.forward(theta, log_contract)
        adjoints = backward(self._contraction, values)
        return LogCurvature(self._contraction, self._structure, self._means, values, adjoints)

    @cached_property
    def _means(self) -> Means:
        return means_of(self._contraction)

    def _walked(self, theta: FloatArray, contract: Contract) -> tuple[list[FloatArray], float]:
        contraction = self._contraction
        inputs = inputs_of(contraction, self._structure, theta)
        values = forward(contraction, inputs, contract)
        # the total is that of components and of tables without letters
        scalars = [float(values[node]) for node in range(len(contraction.groups)) if not contraction.nodes[node]]
        return values, sum(scalars) + sum(float(values[root]) for root in contraction.roots)
