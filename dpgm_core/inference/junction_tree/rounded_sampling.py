"""Rounded sampling: records of a junction tree whose tables are the expected ones up to roundings.

Attribute by attribute, as records are drawn. Of the n rows whose codes so far agree as far as they matter, each code k
of the next attribute gets n p(k) rows, rounded down or up: systematic sampling, points u, u + 1, ... on a line on which
k has the length n p(k), u uniform (Madow 1949). Which point a row gets is uniform too, given all that went before: so
each row has the model's distribution, and no table is biased. Rows are not independent: their tables err by roundings.

Neighbours among the n rows, which are in the order of the attributes before, get points far from each other: the ranks
of the multiples of the golden ratio, which lie evenly over any run of rows (Weyl 1916), turned by a uniform offset.
That costs nothing in bias, and attributes that share no clique come out nearer to what is expected of them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.inference.junction_tree.contraction import Contraction

__all__ = ["divide_rows", "draw_rounded"]

_GOLDEN = (math.sqrt(5) - 1) / 2
_CHUNK = 2**20  # cells of weights at once, so that scratch stays small
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
        bucket = [
            (
                np.moveaxis(values[node], contraction.nodes[node].index(letter), -1),
                [other for other in contraction.nodes[node] if other != letter],
            )
            for node in contraction.buckets[letter]
        ]
        conditions = sorted({other for _, others in bucket for other in others})
        states = _states(
            [codes[other] for other in conditions], [contraction.sizes[other] for other in conditions], count
        )
        size = contraction.sizes[letter]

        def weights(
            rows: IntArray, size: int = size, bucket: Sequence[tuple[FloatArray, Sequence[int]]] = bucket
        ) -> FloatArray:
            log_weights = np.zeros((len(rows), size))
            for table, others in bucket:
                log_weights += table[tuple(codes[other][rows] for other in others)]
            return log_weights

        column, order = divide_rows(states, weights, size, order, generator)
        codes[letter] = column.astype(code_dtype(size))
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

    >>> states, law = np.repeat([0, 1], 50), np.log([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    >>> codes, _ = divide_rows(states, lambda rows: law[states[rows]], 3, np.arange(100), np.random.default_rng(0))
    >>> np.bincount(codes[:50]).tolist(), np.bincount(codes[50:]).tolist()
    ([25, 15, 10], [5, 5, 40])
    """
    rows = order[np.argsort(states[order], kind="stable")]
    ordered = states[rows]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), bool), ordered[1:] != ordered[:-1]]))
    counts = np.diff(starts, append=len(rows))
    points = np.empty(len(rows), dtype=np.int64)
    step = max(1, _CHUNK // size)
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
    turned: IntArray = (ranks + generator.integers(0, counts)[state]) % counts[state]
    return turned


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
    codes: IntArray = place - size * np.repeat(np.arange(len(counts)), counts)
    return codes


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
