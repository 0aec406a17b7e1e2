"""Numbers of persons below each edge of a public grid, and scores of the edges inside a node. Secret."""

from __future__ import annotations

import numpy as np

from dpgm_core._util.arrays import IntArray
from dpgm_core.privacy.bins import RankDistance

__all__ = ["rank_scores", "ranks_of"]


def ranks_of(counts: IntArray) -> IntArray:
    """Persons below each edge of a grid, (cells + 1,). counts: of its cells, (cells,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def rank_scores(ranks: IntArray, node: RankDistance) -> IntArray:
    """The score of each candidate of a node, (candidates,). ranks: from `ranks_of`."""
    inside = ranks[node.first : node.last + 1] - ranks[node.first]
    beyond = 2 * inside - inside[-1]  # 2 r - n
    further = np.maximum(0, np.maximum(beyond[:-2], -beyond[2:]))
    return np.asarray(-(np.abs(beyond[1:-1]) + further))
