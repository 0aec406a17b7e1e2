"""Ranks and scores of edges, compared with their definition."""

import numpy as np

from dpgm_core.counting.bins import rank_scores, ranks_of
from dpgm_core.privacy.bins import RankDistance


def test_scores_are_those_of_the_definition():
    """Claim: an edge scores its distance from the median and that of the next edge towards it, in every node."""
    codes = np.random.default_rng(0).integers(0, 9, 200)
    ranks = ranks_of(np.bincount(codes, minlength=9))
    for first in range(8):
        for last in range(first + 2, 10):
            inside = codes[(codes >= first) & (codes < last)]
            off = [2 * int((inside < edge).sum()) - len(inside) for edge in range(first, last + 1)]
            wanted = [-abs(off[at]) - max(0, off[at - 1], -off[at + 1]) for at in range(1, last - first)]
            assert rank_scores(ranks, RankDistance(first=first, last=last)).tolist() == wanted


def test_a_heavy_cell_is_cut_off_whatever_empty_stretch_is_beside_it():
    """Claim: of all edges with the same ranks the one next to the heavy cell has the best score, on either side."""
    counts = np.zeros(50, np.int64)
    counts[[20, 45]] = 1000, 10
    nodes = [RankDistance(first=first, last=last) for first, last in ((0, 50), (0, 21), (20, 50))]
    best = [node.candidates[int(np.argmax(rank_scores(ranks_of(counts), node)))] for node in nodes]
    assert best == [21, 20, 21]
