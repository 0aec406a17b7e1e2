"""The declared sensitivity is the worst case over all persons, and the relation is always stated."""

import itertools
import math

import numpy as np
import pytest

from dpgm_core import BudgetError, Domain, Structure
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity


@pytest.mark.parametrize("name", ["", "add_remove", "ADD-REMOVE", None, 1, True, b"add-remove"])
def test_the_relation_has_no_default_and_no_other_spelling(name):
    with pytest.raises(BudgetError, match="add-remove, replace-one"):
        Neighbours.of(name)
    assert Neighbours.of(Neighbours.of("replace-one")) is Neighbours.REPLACE_ONE


def tables_of(structure, groups, rows):
    """Counts of a few rows, by hand: one dict per group of tied cliques."""
    names = structure.domain.names
    counts = []
    for group in groups:
        table = {}
        for row in rows:
            for clique in group:
                cell = tuple(row[names.index(name)] for name in clique)
                table[cell] = table.get(cell, 0) + 1
        counts.append(table)
    return counts


def norms(first, second):
    """(L0, L1, L2 squared, Linf) of the difference of two lists of tables."""
    moves = [abs(a.get(c, 0) - b.get(c, 0)) for a, b in zip(first, second, strict=True) for c in a.keys() | b.keys()]
    moves = [move for move in moves if move]
    return len(moves), sum(moves), sum(move**2 for move in moves), max(moves, default=0)


CASES = [
    ({"a": 2, "b": 2}, [("a", "b")], []),
    ({"a": 2, "b": 3}, [("a",), ("b",)], []),
    ({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")], []),
    ({"a": 1, "b": 2}, [("a",), ("b",)], []),
    ({"a": 2, "b": 2, "c": 2}, [], [[("a", "b"), ("b", "c")]]),
    ({"a": 2, "b": 2, "c": 2}, [("a",)], [[("a", "b"), ("b", "c")]]),
    ({"a": 1, "b": 1}, [], [[("a",), ("b",)]]),
]


@pytest.mark.parametrize(("sizes", "cliques", "tied"), CASES)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("most_rows", [1, 2])
def test_sensitivity_is_the_worst_case_over_all_persons(sizes, cliques, tied, relation, most_rows):
    """No norm is exceeded, and L1, L2, Linf are attained, but under replace-one with r > 1 and one-cell tables."""
    structure = Structure(Domain.from_sizes(sizes), cliques, tied=tied)
    groups = [*([clique] for clique in cliques), *tied]
    declared = Sensitivity.of(structure, relation, rows_per_person=most_rows)
    records = list(itertools.product(*(range(size) for size in sizes.values())))
    persons = [
        tables_of(structure, groups, rows)
        for count in range(1, most_rows + 1)
        for rows in itertools.combinations_with_replacement(records, count)
    ]
    others = persons if relation == "replace-one" else [[{} for _ in groups]]
    worst = [max(column) for column in zip(*(norms(a, b) for a in persons for b in others), strict=True)]
    stated = [declared.l0, declared.l1, declared.l2_squared, declared.linf]
    assert all(seen <= limit for seen, limit in zip(worst, stated, strict=True)), (worst, stated)
    if min(structure.sizes) > 1 or most_rows == 1 or relation == "add-remove":
        assert worst[1:] == stated[1:]


CONTRASTS = {
    "chain": (["a", "b", "c", "ab", "bc"], True),
    "with N": (["", "a", "b", "c", "ab", "bc"], True),
    "pairs alone": (["ab", "bc"], True),
    "a triangle": (["ab", "bc", "ac"], True),
    "one clique": (["a", "b", "c", "ab", "ac", "bc", "abc"], True),
    "odd ones": (["", "a", "ab", "abc"], False),
    "N alone": ([""], False),
}


@pytest.mark.parametrize("name", CONTRASTS)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("most_rows", [1, 2])
def test_of_contrasts_it_is_the_worst_case_over_all_persons(name, relation, most_rows):
    """No norm is exceeded; L1, L2 and Linf are attained under add-remove, and under replace-one with exact packing."""
    cliques, exact = CONTRASTS[name]
    structure = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), map(tuple, cliques))
    declared = Sensitivity.of_contrasts(structure, relation, rows_per_person=most_rows)
    sums_of = {
        row: np.array([math.prod(1 - 2 * row["abc".index(one)] for one in clique) for clique in cliques])
        for row in itertools.product((0, 1), repeat=3)
    }
    persons = [
        sum(map(sums_of.__getitem__, rows))
        for count in range(1, most_rows + 1)
        for rows in itertools.combinations_with_replacement(sums_of, count)
    ]
    others = persons if relation == "replace-one" else [np.zeros(len(cliques), int)]
    moves = np.array([abs(one - other) for one in persons for other in others])
    worst = [int(one.max()) for one in ((moves > 0).sum(1), moves.sum(1), (moves**2).sum(1), moves.max(1))]
    stated = [declared.l0, declared.l1, declared.l2_squared, declared.linf]
    assert all(seen <= limit for seen, limit in zip(worst, stated, strict=True)), (worst, stated)
    if exact or relation == "add-remove":
        assert worst[1:] == stated[1:]


def test_contrasts_of_a_clique_or_a_matching_move_no_further_than_tables():
    """Replace-one: 2^k times a table's L2^2 is what cells give a product of k; so is one clique's, or a pair's."""
    domain = Domain.from_sizes(dict.fromkeys("abcdef", 2))
    for cliques in (["ab"], ["abc"], ["abcd"], ["ab", "cd", "ef"], ["abc", "def"]):
        tables = Structure(domain, map(tuple, cliques))
        inside = {part for one in cliques for size in range(len(one)) for part in itertools.combinations(one, size + 1)}
        sums = Sensitivity.of_contrasts(Structure(domain, inside), "replace-one")
        assert sums.l2_squared == 2 ** len(cliques[0]) * Sensitivity.of(tables, "replace-one").l2_squared


@pytest.mark.parametrize("field", ["l0", "l1", "l2_squared", "linf"])
@pytest.mark.parametrize("value", [-1, 1.0, True, math.nan, math.inf, "1", None])
def test_a_sensitivity_holds_whole_numbers(field, value):
    with pytest.raises(BudgetError, match=f"sensitivity {field}"):
        Sensitivity(**{"l0": 1, "l1": 1, "l2_squared": 1, "linf": 1, field: value})


@pytest.mark.parametrize("rows", [0, -1, 1.0, True, "2"])
def test_rows_per_person_is_a_positive_whole_number(rows):
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    with pytest.raises(BudgetError, match="rows_per_person"):
        Sensitivity.of(structure, "add-remove", rows_per_person=rows)
