"""Penalised regressions of every attribute on the others, over one block of records.

A function of the block's records as a multiset: rows are sorted first, so that neither their order nor any other block
changes a bit of the outcome. A fixed number of iterations, and no error out of it: a block that fails in any way votes
for no edge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from dpgm_core.arrays import Array, Codes, FloatArray

__all__ = ["ITERATIONS", "block_edges"]

#: Of accelerated proximal gradient steps; fixed, so that how long a block takes says nothing of what is in it.
ITERATIONS = 80


def block_edges(
    codes: Codes, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], *, least: float, penalty: float
) -> Array:
    """For which pairs a block votes, (pairs,) of bool.

    codes: one column for each attribute, of the block's rows. sizes: of the attributes. pairs: by the numbers of their
    columns; an attribute is regressed on its partners alone. least, penalty: see `EdgeVotes`.

    >>> one, other = np.arange(200) % 2, np.arange(200) // 2 % 2
    >>> block_edges([one, one, other], [2, 2, 2], [(0, 1), (0, 2)], least=0.4, penalty=0.2).tolist()
    [True, False]
    """
    none = np.zeros(len(pairs), np.bool_)
    try:
        with np.errstate(all="ignore"):
            if not len(codes[0]):
                return none
            rows = np.lexsort(tuple(codes))
            columns = [np.asarray(column)[rows] for column in codes]
            varies = np.array([column.min() != column.max() for column in columns])
            weight = penalty * math.sqrt(math.log(len(codes)) / len(rows))
            fit = _binary if all(size == 2 for size in sizes) else _labelled
            strengths = fit(columns, sizes, pairs, weight)
            ends = np.array(pairs)
            return np.asarray((strengths > least / 2) & varies[ends[:, 0]] & varies[ends[:, 1]])
    except Exception:
        return none


def _binary(columns: Codes, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], penalty: float) -> FloatArray:
    """|A| of each pair, (pairs,): logistic regressions of codes +1 and -1, whose weights are 2 A."""
    signs = 1.0 - 2.0 * np.stack([column.astype(np.float64) for column in columns], axis=1)
    count, p = signs.shape
    design = np.concatenate([signs, np.ones((count, 1))], axis=1)
    room = np.zeros((p, p + 1))
    room[:, p] = 1
    for i, j in pairs:
        room[i, j] = room[j, i] = 1
    shrink = np.concatenate([np.full((p, p), penalty), np.zeros((p, 1))], axis=1)

    def gradient(weights: FloatArray) -> FloatArray:
        residuals = signs / (1.0 + np.exp(signs * (design @ weights.T)))
        slope: FloatArray = -(residuals.T @ design) / count
        return slope

    weights = _minimum(gradient, room, shrink, curvature=_largest(design) / 4)[:, :p] / 2
    both = np.abs(weights + weights.T) / 2
    return np.array([both[i, j] for i, j in pairs])


def _labelled(columns: Codes, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], penalty: float) -> FloatArray:
    """max |W| of each pair's centred table, (pairs,): softmax regressions on one column for each label.

    Where a table of two labels each has weights of 4 |A| in l1, the logistic regression has 2 |A|, hence half the
    penalty: with two labels both fit the same.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    count, cells = len(columns[0]), int(starts[-1])
    hot = np.zeros((count, cells))
    for column, start in zip(columns, starts[:-1], strict=True):
        hot[np.arange(count), start + column.astype(np.int64)] = 1
    # Centred by a public amount, which the free constant takes up: the problem is the same, and steps are longer.
    centred = hot - np.repeat(1 / np.asarray(sizes, np.float64), sizes)
    design = np.concatenate([centred, np.ones((count, 1))], axis=1)
    parts = [slice(int(start), int(end)) for start, end in itertools.pairwise(starts)]
    room = np.zeros((cells, cells + 1))
    room[:, cells] = 1
    for i, j in pairs:
        room[parts[i], parts[j]] = room[parts[j], parts[i]] = 1
    shrink = np.concatenate([np.full((cells, cells), penalty / 2), np.zeros((cells, 1))], axis=1)
    labels = np.asarray(sizes)

    def gradient(weights: FloatArray) -> FloatArray:
        scores = design @ weights.T
        scores -= np.repeat(np.maximum.reduceat(scores, starts[:-1], axis=1), labels, axis=1)
        odds = np.exp(scores)
        odds /= np.repeat(np.add.reduceat(odds, starts[:-1], axis=1), labels, axis=1)
        slope: FloatArray = -((hot - odds).T @ design) / count
        return slope

    weights = _minimum(gradient, room, shrink, curvature=_largest(design) / 2)
    strengths = []
    for i, j in pairs:
        one, other = weights[parts[i], parts[j]], weights[parts[j], parts[i]].T
        table = (one + other) / 2
        table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        strengths.append(np.abs(table).max())
    return np.array(strengths)


def _largest(design: FloatArray) -> float:
    """The largest eigenvalue of the design's second moments."""
    return float(np.linalg.eigvalsh(design.T @ design / len(design))[-1])


def _minimum(
    gradient: Callable[[FloatArray], FloatArray], room: FloatArray, shrink: FloatArray, curvature: float
) -> FloatArray:
    """Weights after so many accelerated proximal steps from 0. Source: Beck and Teboulle (2009), FISTA."""
    step = 1 / curvature
    weights, ahead, momentum = np.zeros_like(room), np.zeros_like(room), 1.0
    for _ in range(ITERATIONS):
        moved = (ahead - step * gradient(ahead)) * room
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * shrink, 0)
        after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / after * (new - weights)
        weights, momentum = new, after
    return weights
