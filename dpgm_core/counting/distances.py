"""Scores by the distance of true tables to public predictions: whole numbers, the same in any order of the records."""

from __future__ import annotations

import numpy as np

from dpgm_core.arrays import IntArray
from dpgm_core.privacy.scores import SCORE_GRID, WEIGHT_GRID, TableDistance
from dpgm_core.tables import Tables

__all__ = ["distances", "whole_scores"]

#: Units of 1/1024 record at which a cell's, a table's and a sum's distance are cut, so that sums and products fit 64
#: bits. No cut moves two distances apart.
_MOST_CELL, _MOST_TABLE, _MOST_SUM = 2**40, 2**47, 2**62


def distances(counts: Tables, scores: TableDistance) -> IntArray:
    """|n - m|_1 of each candidate, (candidates,), in units of 1/1024 record. Secret.

    counts: n, int64, over the candidates.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> pair = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> distances(Tables(pair, np.array([3, 1])), TableDistance(candidates=pair, predicted=np.full(2, 2.0))).tolist()
    [2048]
    """
    limit = _MOST_CELL // SCORE_GRID
    apart = np.abs(np.minimum(counts.values, limit) * SCORE_GRID - scores.rounded)
    most = min(_MOST_CELL, _MOST_SUM // max(counts.structure.sizes))
    starts = [part.start for part in counts.structure.slices]
    found: IntArray = np.minimum(np.add.reduceat(np.minimum(apart, most), starts), _MOST_TABLE)
    return found


def whole_scores(apart: IntArray, scores: TableDistance, grid: int) -> IntArray:
    """w (|n - m|_1 - b) in units of 1/grid record, rounded down, (candidates,). Secret.

    apart: from `distances`. grid: a power of two up to 1024. As no weight is above 1, one person moves such a score by
    at most ceil(grid x) where a distance moves by at most x records; for whole x that is grid x.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> pair = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> scores = TableDistance(candidates=pair, predicted=np.full(2, 2.0), offsets=(1.0,))
    >>> whole_scores(np.array([2048]), scores, 16).tolist()
    [16]
    """
    weighted = (apart - scores.whole_offsets) * scores.whole_weights
    found: IntArray = weighted // (SCORE_GRID // grid * WEIGHT_GRID)
    return found
