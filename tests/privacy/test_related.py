"""A key of two related tables moves their means over its records as one record does: by enumeration, and over random
neighbours. Tables here are sums over the draws, in units of 1/draws."""

import random
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from dpgm_core import BudgetError, Contributions, Domain, Ledger, Neighbours, OptionError, Related, Structure, Terms
from dpgm_core.privacy.budget import Budget
from dpgm_core.sources.related import RelatedSource
from tests.persons import norms
from tests.related import CHILDREN, all_roots, pair_rows, small

RELATIONS = ("add-remove", "replace-one")
UNIT = "one household with all its members"


stated_of = cache(small)


@cache
def structure_of(stated):
    """Root tables, child tables, tables of both, of siblings, of sizes, and the empty one."""
    pair = stated.pair
    cliques = [(), ("own",), ("own", "size"), ("size", "first.age"), ("own", "first.age", "first.sex")]
    cliques += [("first.age", "age"), ("position", "sex"), ("age", "sex")] * ("age" in pair)
    cliques += [("previous.age", "age"), ("position", "previous.sex", "sex")] * ("previous.age" in pair)
    return Structure(pair, cliques)


def counted(structure, rows):
    """The cells of all tables, (cells,), of records given as codes of the pair domain."""
    codes = np.array(rows, np.int64).reshape(-1, len(structure.domain))
    parts = []
    for clique in structure.cliques:
        shape = structure.domain.shape(clique)
        places = [structure.domain.names.index(name) for name in clique]
        at = np.ravel_multi_index(tuple(codes[:, places].T), shape) if clique else np.zeros(len(codes), int)
        parts.append(np.bincount(at, minlength=int(np.prod(shape))))
    return np.concatenate(parts)


@cache
def by_source(most):
    """The records of each root of the small world, under eight keys each, as the source makes them; and the roots."""
    stated = small(most, order="line")
    roots = [one for one in all_roots(most + 1) for _ in range(8)]
    numbered = Related(
        root=Domain.from_sizes({"own": 2, "number": len(roots)}), children=CHILDREN, key="id", max_children=most,
        order="line",
    )  # fmt: skip
    homes = {"id": np.arange(len(roots)), "own": [root[0] for root, _ in roots], "number": np.arange(len(roots))}
    rows = [(number, line, *child) for number, (_, own) in enumerate(roots) for line, child in enumerate(own)]
    random.Random(0).shuffle(rows)
    persons = dict(zip(("id", "line", "age", "sex"), map(list, zip(*rows, strict=True)), strict=True))
    source = RelatedSource(root=pa.table(homes), children=pa.table(persons), related=numbered).repeated(stated.draws)
    found = np.zeros((len(roots), stated.draws, len(stated.pair)), np.int64)
    for batch in source.batches(numbered.pair, ["number", *stated.pair.names]):
        found[batch[0][:: stated.draws]] = np.column_stack(batch[1:]).reshape(-1, *found.shape[1:])
    return stated, roots, found


@pytest.mark.parametrize("most", [1, 2, 3, pytest.param(4, marks=pytest.mark.landing)])
def test_a_key_moves_all_tables_as_one_record(most):
    """Of all roots of a small world the largest norms are those that `Terms` states: of one record times the draws."""
    stated, roots, found = by_source(most)
    seen = {(root, children): set() for root, children in roots}
    for one, records in zip(roots, found.tolist(), strict=True):
        seen[one] |= set(map(tuple, records))
    for (root, children), records in seen.items():
        possible = {tuple(row[name] for name in stated.pair.names) for row in pair_rows(root, children, most)}
        assert records <= possible
    drawn = [len(records) for records in seen.values()]
    assert max(drawn) == max(most - 1, 1)  # each j came
    structure = structure_of(stated)
    distinct = sorted({tuple(map(tuple, records)) for records in found.tolist()})
    vectors = np.stack([counted(structure, records) for records in distinct])
    alone = np.array([norms(vector) for vector in vectors]).max(axis=0)
    apart = np.array([norms(one - other) for one in vectors for other in vectors[:: max(1, len(vectors) // 60)]])
    for relation, most_moved in zip(RELATIONS, (alone, apart.max(axis=0)), strict=True):
        terms = Terms(neighbours=relation, unit=UNIT, related=stated)
        moved, one = terms.sensitivity(structure), Terms(neighbours=relation).sensitivity(structure)
        draws = stated.draws
        assert (moved.l1, moved.l2_squared, moved.linf) == (draws * one.l1, draws**2 * one.l2_squared, draws * one.linf)
        assert (moved.l1, moved.l2_squared, moved.linf) == tuple(most_moved[1:].tolist())


def neighbours(draw, stated, relation):
    """Two pairs of tables that differ by the rows of one key in both: one more, or one in the place of another."""

    def unit(key, has_root):
        count = draw.choice([0, 1, 2, 3, 7]) if has_root else draw.choice([1, 2])
        roots = [(key, draw.randrange(2)) for _ in range(draw.choice([1, 1, 1, 2]) if has_root else 0)]
        return roots, [(key, draw.choice([None, 1, 2, 10, "x"]), draw.randrange(2), draw.randrange(2))
                       for _ in range(count)]  # fmt: skip

    keys = draw.sample(["1", "2", "7", "x", "", None, "10"], draw.randrange(1, 6))
    first, *others = keys
    shared = [unit(key, draw.random() < 0.8) for key in others]
    if {"", None} <= set(keys):  # these are one key
        first, shared = "another", [one for key, one in zip(others, shared, strict=True) if key]
    replaced = relation == "replace-one"
    changed = unit(first, replaced or draw.random() < 0.8)
    other = unit("replaced", True) if replaced else ([], [])
    for more in (changed, other):
        sides = [rows for side in (0, 1) for rows in [[row for one in (*shared, more) for row in one[side]]]]
        for rows in sides:
            draw.shuffle(rows)
        yield sides


def of_rows(stated, roots, children, chunk):
    lines = [None if line is None else str(line) for _, line, *_ in children]
    homes = pa.table([pa.array([key for key, _ in roots], pa.string()), pa.array([own for _, own in roots], pa.int8())],
                     ["id", "own"])  # fmt: skip
    persons = pa.table(
        [pa.array([row[0] for row in children], pa.string()), pa.array(lines, pa.string()),
         *(pa.array([row[at] for row in children], pa.int8()) for at in (2, 3))],
        ["id", "line", "age", "sex"],
    )  # fmt: skip
    made = (table.to_reader(max_chunksize=chunk) for table in (homes, persons))
    return RelatedSource(root=next(made), children=next(made), related=stated).repeated(stated.draws)


def largest_moves(pairs, seed, weight=1):
    """The norms of so many random pairs of neighbours, against the sensitivity; (relation, norms, stated).

    weight: how often the last record of each key counts.
    """
    draw = random.Random(seed)
    for number in range(pairs):
        relation = RELATIONS[number % 2]
        stated = stated_of(draw.choice([1, 2, 3, 5]), order=draw.choice([None, "line"]))
        structure = structure_of(stated)
        counts = []
        for roots, children in neighbours(draw, stated, relation):
            source = of_rows(stated, roots, children, draw.choice([1, 3, 100]))
            batches = list(source.batches(stated.pair, stated.pair.names))
            records = np.concatenate([np.column_stack(batch) for batch in batches] or [[]])
            last = np.arange(len(records)) % stated.draws == stated.draws - 1
            counts.append(counted(structure, np.repeat(records, np.where(last, weight, 1), axis=0)))
        moved = Terms(neighbours=relation, unit=UNIT, related=stated).sensitivity(structure)
        yield relation, norms(counts[0] - counts[1]), moved


def check_moves(pairs, seed, **options):
    reached = set()
    for relation, (_, l1, squared, most), moved in largest_moves(pairs, seed, **options):
        assert l1 <= moved.l1 and squared <= moved.l2_squared and most <= moved.linf
        reached |= {(relation, "l1")} if l1 == moved.l1 else set()
    assert reached >= {("add-remove", "l1")}


def test_random_neighbours_stay_within_the_sensitivity():
    """Keys with several roots, without one, empty and null, more children than r, added, removed or replaced."""
    check_moves(30, seed=1)


def test_weights_that_sum_above_one_are_caught():
    """A mutant: one of the records of a key counts twice."""
    with pytest.raises(AssertionError):
        check_moves(60, seed=1, weight=2)


@pytest.mark.landing
def test_ten_thousand_random_neighbours_stay_within_the_sensitivity():
    """The same of 10,000 pairs."""
    check_moves(10_000, seed=2)


def test_guarantee_says_what_it_means_for_a_child():
    """The same loss under replace-one, at most twice the epsilon under add-remove."""
    text = {relation: Terms(neighbours=relation, unit=UNIT, related=small(5)).sentence() for relation in RELATIONS}
    for one in text.values():
        assert f"{UNIT}, counted as one record with at most 5 children for each key 'id'. " in one
    assert "For a change of one child inside it the loss is the same. " in text["replace-one"]
    assert "the loss is at most 2 epsilon, 4 rho, 4 mu^2 or (2 epsilon, (1 + e^epsilon) delta). " in text["add-remove"]
    assert "a key" not in Terms(neighbours="add-remove").sentence()


def test_terms_round_trip_and_default_unit():
    terms = Terms(neighbours="add-remove", related=small(3, order="line"))
    assert Terms.from_dict(terms.to_dict()) == terms
    assert terms.protected == "one root with all its children"
    assert terms != Terms(neighbours="add-remove", related=small(2, order="line"))
    assert "related" not in Terms(neighbours="add-remove").to_dict()
    assert not Terms(neighbours="replace-one", related=small(2)).covers_total


WRONG = {
    "person": ({"person": "id"}, "have a key of their own"),
    "rows": ({"person": "id", "rows_per_person": 2}, "have a key of their own"),
    "weights": ({"contributions": Contributions(per="clique")}, "leave contributions out"),
    "public N": ({"total": "public"}, "publishes the number of their keys"),
    "a name": ({"related": "id"}, "related must be Related, got str"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_terms_that_do_not_go_with_two_tables(wrong):
    changes, message = WRONG[wrong]
    with pytest.raises((BudgetError, OptionError), match=message):
        Terms(**({"neighbours": "add-remove", "related": small(2)} | changes))


def test_ledger_refuses_another_unit_key_or_number_of_children(tmp_path):
    """What a ledger was created with, its releases have."""
    stated = small(3)
    settings = {"name": "x", "budget": Budget.pure(1), "neighbours": Neighbours.ADD_REMOVE}
    ledger = Ledger.create(tmp_path / "x.ledger", related=stated, unit=UNIT, **settings)
    right = {"neighbours": "add-remove", "unit": UNIT, "related": stated}
    Ledger.open(ledger.path).check_terms(Terms(**right))
    others = {
        "unit = 'one person'": {"unit": "one person"},
        "at most 2 children": {"related": small(2)},
        "'home'": {"related": Related(root=stated.root, children=stated.children, key="home", max_children=3)},
        "ordered by 'line'": {"related": small(3, order="line")},
        "person = None": {"related": None},
        "person = 'id'": {"related": None, "person": "id"},
        "neighbours = 'replace-one'": {"neighbours": "replace-one"},
    }
    for message, changes in others.items():
        with pytest.raises(BudgetError, match="guarantees of different kinds do not add up") as error:
            ledger.check_terms(Terms(**right | changes))
        assert message in str(error.value)
    flat = Ledger.create(tmp_path / "flat.ledger", person="id", unit=UNIT, **settings)
    with pytest.raises(BudgetError, match="at most 3 children for each key 'id'"):
        flat.check_terms(Terms(**right))
    with pytest.raises(BudgetError, match="give person or related, not both"):
        Ledger.create(tmp_path / "both.ledger", person="id", related=stated, **settings)
    assert (
        Ledger.create(tmp_path / "y.ledger", related=stated, **settings).terms.unit
        == Terms(neighbours="add-remove", related=stated).protected
    )
