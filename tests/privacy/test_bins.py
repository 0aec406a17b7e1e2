"""Bisections: their exact privacy loss on all tables of a small grid, how far scores move, and what nodes there are."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpgm_core import Attribute, Budget, BudgetError, Domain, DomainError, StructureError, Terms
from dpgm_core.counting.scores import rank_scores, ranks_of
from dpgm_core.privacy.bins import (
    BinsPlan,
    RankDistance,
    bins_cost,
    moved_rows,
    nodes_of,
    plan_bins,
    resolve_public_bins,
)
from dpgm_core.privacy.measurement import check_determined
from dpgm_core.privacy.selection import probabilities
from dpgm_core.privacy.terms import change_factor
from tests.private_columns import private_bins, private_labels

CELLS, H = 5, Fraction(1, 8)
TABLES = [*itertools.product((0, 1), repeat=CELLS), (0, 0, 63, 0, 64), (17, 0, 18, 0, 0), (5, 1, 0, 9, 2)]
ORDERS = (1.5, 2.0, 8.0, 64.0)


@cache
def _outcomes(table, levels):
    """Choices of a bisection -> their exact probability."""
    ranks, found = ranks_of(np.array(table)), {(): Fraction(1)}
    for _ in range(levels):
        grown = {}
        for choices, chance in found.items():
            nodes = [RankDistance(first=a, last=b) for a, b in nodes_of(CELLS, choices) if b - a > 1]
            shares = [probabilities(rank_scores(ranks, node), H) for node in nodes]
            for picked in itertools.product(*(range(len(one)) for one in shares)):
                level = tuple(node.candidates[number] for node, number in zip(nodes, picked, strict=True))
                each = (one[number] for one, number in zip(shares, picked, strict=True))
                grown[(*choices, level)] = chance * math.prod(each)
        found = grown
    assert sum(found.values()) == 1
    return {choices: float(chance) for choices, chance in found.items()}


def _neighbours(relation, rows):
    """All pairs of tables that one person of so many rows tells apart, both ways."""
    for table in TABLES if rows == 1 else TABLES[::4]:
        cells = itertools.combinations_with_replacement(range(CELLS), rows)
        more = [tuple(count + own.count(place) for place, count in enumerate(table)) for own in cells]
        pairs = [(table, one) for one in more] if relation == "add-remove" else itertools.permutations(more, 2)
        for one, other in pairs:
            yield one, other
            yield other, one


@cache
def _losses(relation, levels, rows=1):
    """The largest loss, and the largest Renyi divergence over its order, of all neighbours."""
    worst, spread = 0.0, 0.0
    for one, other in _neighbours(relation, rows):
        before, after = _outcomes(one, levels), _outcomes(other, levels)
        p = np.array([before[choices] for choices in before])
        q = np.array([after[choices] for choices in before])
        logs = np.log(p / q)
        worst = max(worst, float(np.abs(logs).max()))
        for order in ORDERS:
            divergence = math.log(float(np.sum(p * np.exp((order - 1) * logs)))) / (order - 1)
            spread = max(spread, divergence / order)
    return worst, spread


def _cost(relation, levels, kind, rows=1):
    person = {"person": "id", "rows_per_person": rows} if rows > 1 else {}
    asked = BinsPlan(
        attribute=private_bins("x", 2**levels, cells=CELLS),
        temperatures=(H,) * levels,
        rows=moved_rows(_terms(relation, **person)),
        kind=kind,
    )
    return asked.cost


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("levels", "rows"), [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)])
def test_no_neighbours_are_told_apart_by_more_than_the_cost(relation, levels, rows):
    """Losses within epsilon, Renyi divergences within rho times the order; the price of one row is exceeded by more."""
    worst, spread = _losses(relation, levels, rows)
    assert worst <= float(_cost(relation, levels, "pure", rows).epsilon) + 1e-12
    assert spread <= float(_cost(relation, levels, "zcdp", rows).rho) + 1e-12
    if rows == 3 or (rows == 2 and relation == "add-remove" and levels == 1):
        assert worst > float(_cost(relation, levels, "pure").epsilon)
        assert spread > float(_cost(relation, levels, "zcdp").rho)


@pytest.mark.parametrize("levels", [1, 2])
def test_an_exchange_costs_what_a_guarantee_with_a_public_number_says(levels):
    """At most 2 epsilon or 4 rho at the price of add-remove; one level alone exceeds the 2 rho of tables."""
    worst, spread = _losses("replace-one", levels)
    pure, zcdp = (_cost("add-remove", levels, kind) for kind in ("pure", "zcdp"))
    assert worst <= float(pure.epsilon * change_factor("pure", 1, 1)) + 1e-12
    assert spread <= float(zcdp.rho * change_factor("zcdp", 1, 1)) + 1e-12
    assert levels > 1 or spread > float(zcdp.rho * change_factor("zcdp", 1, 1, tables_alone=True))


def test_wrong_factors_would_be_found_out():
    """The exact losses exceed a cost without the factor 1/2, and replace-one at the price of add-remove."""
    own, other = _losses("add-remove", 1), _losses("replace-one", 1)
    add_remove = [_cost("add-remove", 1, kind) for kind in ("pure", "zcdp")]
    assert own[0] > float(add_remove[0].epsilon) / 2
    assert own[1] > float(add_remove[1].rho) / 4
    assert other[0] > float(add_remove[0].epsilon)
    assert other[1] > float(add_remove[1].rho) * 2


def _terms(relation="add-remove", **more):
    return Terms(neighbours=relation, **more)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.zcdp("0.02")])
def test_a_column_costs_its_share_and_no_more(relation, budget):
    """Claim: 2 % by default under both relations, up to rounding; 10 % together; and what is stated where it is."""
    (one,) = plan_bins(Domain([private_bins("x")]), ["x"], budget, _terms(relation))
    share = one.cost.epsilon / budget.epsilon if budget.kind == "pure" else one.cost.rho / budget.rho
    assert Fraction(199, 10_000) < share <= Fraction(1, 50)
    many = Domain([private_bins(f"x{number}") for number in range(10)])
    cost = bins_cost(plan_bins(many, many.names, budget, _terms(relation)), budget)
    assert budget * Fraction(99, 1000) <= cost <= budget * Fraction(1, 10)
    stated = Domain([private_bins("x", share=Fraction(1, 4))])
    cost = bins_cost(plan_bins(stated, ["x"], budget, _terms(relation)), budget)
    assert budget * Fraction(24, 100) <= cost <= budget * Fraction(1, 4)


def test_columns_that_need_no_look_cost_nothing():
    """Claim: as many bins as cells are public, and a column that is not measured keeps its equal bins."""
    domain = Domain([private_bins("few", 8, cells=8), private_bins("unseen", 4)])
    assert plan_bins(domain, ["few"], Budget.pure(1), _terms()) == ()
    found = resolve_public_bins(domain, ["few"])
    assert not found.undetermined
    assert found["few"].edges == (0, 1, 2, 3, 4, 5, 6, 7, 7.5)
    assert found["unseen"].edges == (0, 25, 50, 75, 99)


def test_what_cannot_be_paid_for_is_refused_by_name():
    """Claim: a budget too small to choose by, and shares that leave nothing."""
    domain = Domain([private_bins("age"), private_bins("hours", share=Fraction(99, 100))])
    with pytest.raises(BudgetError, match=r"private bins of 'age', 'hours' take 1.01 of the budget"):
        plan_bins(domain, domain.names, Budget.pure(1), _terms())
    with pytest.raises(BudgetError, match=r"private bins of 'age' have 0.02 of .* too little to choose by"):
        plan_bins(Domain([private_bins("age")]), ["age"], Budget.pure("0.001"), _terms())


def test_what_no_session_finds_is_refused_by_name():
    """Claim: labels are found before, and whoever has not is told what would do."""
    with pytest.raises(DomainError, match="labels of 'job'"):
        plan_bins(Domain([private_labels("job")]), ["job"], Budget.pure(1), _terms())
    with pytest.raises(BudgetError, match=r"'age'.*named cliques or with a selector"):
        check_determined(Domain([private_bins("age"), Attribute.of_size("b", 2)]))


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
    with pytest.raises(StructureError, match="two cells"):
        RankDistance(first=3, last=4)
