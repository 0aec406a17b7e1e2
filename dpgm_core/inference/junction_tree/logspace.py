"""Potentials, and message passing in logarithms for potentials of any range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.junction_tree.contraction import Contraction, Letters
from dpgm_core.inference.junction_tree.curvature import LogCurvature, Means, means_of
from dpgm_core.inference.kernels.format import REACH
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "Choose",
    "Contract",
    "Logarithms",
    "Pick",
    "Potentials",
    "Ready",
    "at_random",
    "backward",
    "draw",
    "forward",
    "inputs_of",
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
    """log sum_k exp(p[..., k] + q[k, ...]), by a matrix product where that is sure and term by term elsewhere.

    >>> log_contract(np.zeros((1, 1, 2)), np.zeros((1, 2, 1))).item() == math.log(2)
    True
    """
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
    """max_k p[..., k] + q[k, ...], one k at a time.

    >>> max_contract(np.array([[[1.0, 2.0]]]), np.array([[[5.0], [0.0]]])).item()
    6.0
    """
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
        if step.right is None:
            values.append(_contract(contraction, left, letters, *_nothing(contraction, letters, out), out, contract))
        else:
            values.append(
                _contract(contraction, left, letters, values[step.right], contraction.nodes[step.right], out, contract)
            )
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


def draw(contraction: Contraction, values: Sequence[FloatArray], count: int, pick: Pick) -> dict[str, Array]:
    """Choose the codes of `count` records, attribute by attribute in reverse elimination order.

    values: from `forward`. Returns name -> codes (count,) for the attributes with letters. Given the codes chosen so
    far, the weights of a letter's codes are the product of its bucket.
    """
    codes: list[Array] = [np.zeros(0)] * len(contraction.order)
    for letter in reversed(range(len(contraction.order))):
        size = contraction.sizes[letter]
        bucket = [
            (np.moveaxis(values[node], contraction.nodes[node].index(letter), -1), node)
            for node in contraction.buckets[letter]
        ]
        conditions = sorted({other for _, node in bucket for other in contraction.nodes[node]} - {letter})
        shape = tuple(contraction.sizes[other] for other in conditions)
        column = np.empty(count, dtype=code_dtype(size))
        # Few conditions: the weights under each of them, once. Many: the weights of each record, in blocks.
        choose = None
        if math.prod(shape) <= count:
            weights = np.zeros((*shape, size))
            for table, node in bucket:
                others = [other for other in contraction.nodes[node] if other != letter]
                ordered = table.transpose([*(others.index(other) for other in conditions if other in others), -1])
                weights += ordered.reshape(
                    [contraction.sizes[other] if other in others else 1 for other in conditions] + [size]
                )
            choose = pick(weights.reshape(-1, size))
        for low in range(0, count, _RECORDS):
            part = slice(low, low + _RECORDS)
            length = len(column[part])
            if choose is None:
                rows = np.zeros((length, size))
                for table, node in bucket:
                    others = [other for other in contraction.nodes[node] if other != letter]
                    rows += table[tuple(codes[other][part] for other in others)]
                column[part] = pick(rows)(np.arange(length))
            else:
                row = np.zeros(length, dtype=np.int64)
                for other in conditions:
                    row = row * contraction.sizes[other] + codes[other][part]
                column[part] = choose(row)
        codes[letter] = column
    return dict(zip(contraction.order, codes, strict=True))


def most_probable(weights: FloatArray) -> Choose:
    """A `Pick`: the code with the largest weight.

    >>> most_probable(np.array([[0.0, 1.0], [3.0, 2.0]]))(np.array([1, 0, 0])).tolist()
    [0, 1, 1]
    """
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
            code: IntArray = place - start
            return code

        return choose

    return pick


def inputs_of(contraction: Contraction, structure: Structure, log_values: FloatArray) -> list[FloatArray]:
    """The input nodes' tables as views of a buffer laid out like `Tables.values`."""
    return [
        log_values[structure.slices[group]].reshape(contraction.shape(node))
        for node, group in enumerate(contraction.groups)
    ]


def _nothing(contraction: Contraction, letters: Letters, out: Letters) -> tuple[FloatArray, Letters]:
    # log 1 over the letter to be summed: summing out is contracting with ones.
    (letter,) = set(letters) - set(out)
    return np.zeros(contraction.sizes[letter]), (letter,)


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
        largest: FloatArray = table.max(axis=axis, keepdims=True)
        return largest
    return reduce(np.maximum, (table[(slice(None),) * axis + (slice(at, at + 1),)] for at in range(size)))


def _finite(top: Any) -> Any:
    # Where all terms are -inf, subtract 0 rather than -inf.
    return np.where(top == -np.inf, 0.0, top)


# --- Potentials, checked and prepared -------------------------------------------------------------

_IMPOSSIBLE = (
    "inference: every record has probability 0: what is given, or the zeros (-inf) of the model, rule all of them out"
)
_FLOAT = np.dtype(np.float64)
_MILD = 30.0  # potentials within +-30 nats are exponentiated as they are; others less the maximum of their table


class Ready(NamedTuple):
    """Tables' probabilities: what writes them, bounds of their logarithms, and what they were divided by.

    fill: raises those below exp(-REACH), but zeros, to that: see `probability`. lows: before that.
    above: nats taken from each cell, None for nothing; shift: what that, and attributes in no clique, add to log Z.
    """

    fill: Callable[[FloatArray], None]
    lows: list[float]
    highs: list[float]
    zeros: bool
    shift: float
    above: FloatArray | None


class Potentials:
    """Checks and preparation of potentials for one structure and contraction; no state between calls.

    mild: tables within so many nats are exponentiated as they are. log_free: what attributes in no clique add to log Z.
    """

    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        self._structure = structure
        self._starts = np.array([part.start for part in structure.slices])
        self._sizes = np.asarray(structure.sizes)
        self._multiplicities = np.asarray(structure.multiplicities, dtype=np.float64)
        # A table without letters is the constant 1, outside of the program, so it must be shifted to 0.
        self.mild = _MILD if all(contraction.nodes[: len(contraction.groups)]) else 0.0
        in_no_clique = [letter for letter, bucket in enumerate(contraction.buckets) if not bucket]
        self.log_free = math.fsum(math.log(contraction.sizes[letter]) for letter in in_no_clique)

    def fitting(self, potentials: Tables) -> FloatArray:
        """The potentials as float64; raises StructureError for another structure's."""
        if potentials.structure is not self._structure and potentials.structure != self._structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit an engine for {self._structure}")
        values = potentials.values
        return values if values.dtype is _FLOAT else values.astype(np.float64)

    def checked(self, potentials: Tables) -> tuple[FloatArray, FloatArray]:
        """The potentials as float64 and the maximum of each table.

        Raises StructureError for another structure's, and InferenceError for NaN or +inf and where a whole table is
        -inf.
        """
        theta = self.fitting(potentials)
        top = np.maximum.reduceat(theta, self._starts)
        if not np.isfinite(top).all():
            if (top == -np.inf).any() and not (np.isnan(top).any() or (top == np.inf).any()):
                raise InferenceError(_IMPOSSIBLE)
            bad = next(name for name, part in potentials.items() if np.isnan(part).any() or (part == np.inf).any())
            raise InferenceError(f"inference: the potentials of {bad!r} hold NaN or +inf; they must be below infinity")
        return theta, top

    def ready(self, theta: FloatArray, top: FloatArray) -> Ready:
        """Return the executor's input for potentials of these maxima."""
        low = np.minimum.reduceat(theta, self._starts)
        zeros = not np.isfinite(low).all()
        if zeros:
            low = np.minimum.reduceat(np.where(theta == -np.inf, np.inf, theta), self._starts)
        shift, above = self.log_free, None
        if max(float(top.max()), -float(low.min())) > self.mild:
            shift += float(top @ self._multiplicities)
            above = np.repeat(top, self._sizes)
            low, top = low - top, np.zeros_like(top)

        raised = above is not None and float(low.min()) < -REACH

        def fill(out: FloatArray) -> None:
            logarithms = theta if above is None else np.subtract(theta, above, out)
            if raised:
                np.maximum(logarithms, -REACH, out=out, where=logarithms > -np.inf)
            np.exp(logarithms, out)

        return Ready(fill, low.tolist(), top.tolist(), zeros, shift, above)


def refuse_infinite(value: float) -> None:
    """Raise InferenceError for a log-partition of no record, or of potentials beyond doubles."""
    if value == -math.inf:
        raise InferenceError(_IMPOSSIBLE)
    if not math.isfinite(value):
        raise InferenceError("inference: the potentials are too large for double precision; rescale them")


# --- Inference in logarithms ----------------------------------------------------------------------


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
