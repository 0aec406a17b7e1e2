"""Scores of candidates, whole numbers whatever the order of records: of tables by their distance to public predictions,
and of the edges of bins by ranks. Secret.
"""

from __future__ import annotations

import numpy as np

from dpgm_core._util.arrays import IntArray
from dpgm_core.privacy.bins import RankDistance
from dpgm_core.privacy.selection import SCORE_GRID, WEIGHT_GRID, TableDistance
from dpgm_core.structure.tables import Tables

__all__ = ["distances", "mean_distances", "rank_scores", "ranks_of", "whole_scores"]

#: Units of 1/1024 record at which a cell's, a table's and a sum's distance are cut, so that sums and products fit 64
#: bits. No cut moves two distances apart.
_MAX_CELL_UNITS, _MAX_TABLE_UNITS, _MAX_SUM_UNITS = 2**40, 2**47, 2**62


def distances(counts: Tables, scores: TableDistance) -> IntArray:
    """|n - m|_1 of each candidate, or |c - m_c|, (candidates,), in units of 1/1024 record. Secret.

    counts: n over the candidates, int64, or float64 that are whole multiples of 1/1024 record. Every cell of n is cut
    before it is summed, and one that moves by a record moves no further when it is cut, so what `TableDistance` says of
    a person holds of these whole numbers too.
    """
    if scores.contrast:
        return _contrasts_apart(counts, scores)
    limit = _MAX_CELL_UNITS // SCORE_GRID
    apart = np.abs((np.minimum(counts.values, limit) * SCORE_GRID).astype(np.int64) - scores.rounded)
    most = min(_MAX_CELL_UNITS, _MAX_SUM_UNITS // max(counts.structure.sizes))
    starts = [part.start for part in counts.structure.slices]
    return np.asarray(np.minimum(np.add.reduceat(np.minimum(apart, most), starts), _MAX_TABLE_UNITS))


def _contrasts_apart(counts: Tables, scores: TableDistance) -> IntArray:
    """|c - m_c| of each candidate, in units of 1/1024 record."""
    # Half of the greatest sum each, as c and m_c may be of opposite signs.
    most = min(_MAX_CELL_UNITS, _MAX_SUM_UNITS // 2 // max(counts.structure.sizes))
    ours = np.minimum((np.minimum(counts.values, most // SCORE_GRID + 1) * SCORE_GRID).astype(np.int64), most)
    apart = ours - np.clip(scores.rounded, -most, most)
    starts = np.array([part.start for part in counts.structure.slices])
    # Of binary attributes the bits of a cell's place in its table are its codes, and their sum's parity is its sign.
    codes = np.arange(counts.structure.cells) - np.repeat(starts, counts.structure.sizes)
    for shift in (32, 16, 8, 4, 2, 1):
        codes ^= codes >> shift
    apart[codes & 1 == 1] *= -1
    return np.asarray(np.minimum(np.abs(np.add.reduceat(apart, starts)), _MAX_TABLE_UNITS))


def whole_scores(apart: IntArray, scores: TableDistance, grid: int) -> IntArray:
    """w (|n - m|_1 - b) in units of 1/grid record, rounded down, (candidates,). Secret.

    apart: from `distances`. grid: a power of two up to 1024. As no weight is above 1, one person moves such a score by
    at most ceil(grid x) where a distance moves by at most x records; for whole x that is grid x.
    """
    weighted = (apart - scores.whole_offsets) * scores.whole_weights
    return np.asarray(weighted // (SCORE_GRID // grid * WEIGHT_GRID))


def mean_distances(apart: IntArray, scores: TableDistance) -> IntArray:
    """Return sum w |n - m|_1 / sum w of each group, (groups,), in units of 1/1024 record, rounded down. Secret.

    apart: from `distances`. One person moves each mean by at most U = 1024 D units, where one distance moves by at most
    D records. Proof: let S be the weighted sum of a group's distances and W the sum of its rounded weights. Then
    |S - S'| <= sum w U = W U, so S'/W <= S/W + U, and floor(S'/W) <= floor(S/W + U) = floor(S/W) + U, as floor is
    monotone and U is whole; and the same with S and S' exchanged.

    Other arithmetic would move further: each table's part rounded by itself adds up to a unit for each table, and with
    weights that are rounded in S but not in W, |S - S'| / W may be above U. S has up to 75 bits, so it is a Python
    integer.
    """
    weights, units = scores.whole_weights.tolist(), apart.tolist()
    means = [
        sum(weights[number] * units[number] for number in group) // sum(weights[number] for number in group)
        for group in scores.choices
    ]
    return np.array(means, np.int64)


def ranks_of(counts: IntArray) -> IntArray:
    """Persons below each edge of a grid, (cells + 1,). counts: of its cells, (cells,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def rank_scores(ranks: IntArray, node: RankDistance) -> IntArray:
    """The score of each candidate of a node, (candidates,). ranks: from `ranks_of`."""
    inside = ranks[node.first : node.last + 1] - ranks[node.first]
    beyond = 2 * inside - inside[-1]  # 2 r - n
    further = np.maximum(0, np.maximum(beyond[:-2], -beyond[2:]))
    return np.asarray(-(np.abs(beyond[1:-1]) + further))
