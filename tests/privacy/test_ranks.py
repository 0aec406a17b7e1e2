"""How far one person moves the scores of edges, by brute force; and which nodes a bisection has."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpgm_core import Terms
from dpgm_core.counting.bins import rank_scores, ranks_of
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.bins import RankDistance, check_single_rows, nodes_of

CELLS = 5
NODE = RankDistance(first=0, last=CELLS)


def _moves(before, after):
    """How far each edge's score moves."""
    found = [rank_scores(ranks_of(np.array(one)), NODE) for one in (before, after)]
    return found[1] - found[0]


def _tables():
    return itertools.product((0, 1, 3), repeat=CELLS)


def _added(table, cell):
    return tuple(count + (place == cell) for place, count in enumerate(table))


def test_one_person_more_moves_scores_by_two_up_and_down():
    """Claim: U = 2 and R = 4 under add-remove, and no less: one score goes up while another goes down."""
    moves = [_moves(table, _added(table, cell)) for table in _tables() for cell in range(CELLS)]
    assert max(np.abs(one).max() for one in moves) == RankDistance.move
    assert max(one.max() - one.min() for one in moves) == 2 * RankDistance.move


def test_one_person_replaced_within_a_node_moves_scores_by_a_range_of_eight():
    """Claim: R = 8 under replace-one in one node, and no less."""
    moves = [
        _moves(_added(table, one), _added(table, other))
        for table in _tables()
        for one, other in itertools.permutations(range(CELLS), 2)
    ]
    assert max(one.max() - one.min() for one in moves) == 4 * RankDistance.move


def test_nodes_follow_from_the_choices():
    """Claim: each level cuts the nodes that have an edge inside; a single cell is left alone."""
    assert nodes_of(8, []) == [(0, 8)]
    assert nodes_of(8, [[1], [5]]) == [(0, 1), (1, 5), (5, 8)]
    assert nodes_of(1, []) == [(0, 1)]


@pytest.mark.parametrize("choices", [[[0]], [[8]], [[3, 4]], [[4], [2]], [[4], [5, 2]], [[1], [5, 6]]])
def test_choices_of_no_bisection_are_refused(choices):
    """Claim: an edge outside of its node, or too few or many of a level, is no choice of any session."""
    with pytest.raises(StructureError, match="bisection"):
        nodes_of(8, choices)


def test_a_node_without_an_edge_is_none():
    """Claim: a single cell has nothing to choose."""
    with pytest.raises(StructureError, match="two cells"):
        RankDistance(first=3, last=4)


def test_persons_of_several_rows_are_refused():
    """Claim: their rows would be in several nodes of a level, so they are refused by the columns' names."""
    with pytest.raises(BudgetError, match=r"'age'.*one row per person.*rows_per_person is 2"):
        check_single_rows(Terms(neighbours="add-remove", person="id", rows_per_person=2), ["age"])
