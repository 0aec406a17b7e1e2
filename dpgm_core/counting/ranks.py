"""How many persons are in each cell of a column's public grid, and what edges inside a node score. Secret, both."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Codes, IntArray
from dpgm_core.counting.statistic import Sum
from dpgm_core.privacy.ranks import RankDistance

__all__ = ["GridCounts", "rank_scores", "ranks_of"]


@frozen(kw_only=True)
class GridCounts(Sum):
    """Rows by their code under a grid. column: its name. size: codes of the grid, those of missing values too."""

    column: str
    size: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def cells(self) -> int:
        """One for each code."""
        return self.size

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count the rows."""
        sums += np.bincount(codes[0], minlength=self.size)


def ranks_of(counts: IntArray) -> IntArray:
    """Persons below each edge of a grid, (cells + 1,). counts: of its cells, (cells,).

    >>> ranks_of(np.array([3, 0, 2])).tolist()
    [0, 3, 3, 5]
    """
    found: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return found


def rank_scores(ranks: IntArray, node: RankDistance) -> IntArray:
    """The score of each candidate of a node, (candidates,). ranks: from `ranks_of`.

    >>> rank_scores(ranks_of(np.array([3, 0, 2])), RankDistance(first=0, last=3)).tolist()
    [-1, -2]
    """
    inside = ranks[node.first : node.last + 1] - ranks[node.first]
    beyond = 2 * inside - inside[-1]  # 2 r - n
    further = np.maximum(0, np.maximum(beyond[:-2], -beyond[2:]))
    found: IntArray = -(np.abs(beyond[1:-1]) + further)
    return found
