"""The declared sensitivity is what counting really does: never exceeded by any neighbours, attained by the worst."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core import LiveCurator, SeededRandomness, Terms, Workload, make
from dpgm_core.counting.scores import distances
from dpgm_core.counting.table_counts import count
from dpgm_core.domain.domain import Domain
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contrasts import products
from dpgm_core.privacy.selection import SCORE_GRID, TableDistance
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.terms import change_factor, grow_budget
from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from tests.persons import Norms, Row, everybody, norms, rows_of, source_of, structures

# Three places where one person can be each night, one table for all pairs of nights: who stays at home on all three
# is counted in one cell three times (home-home-home).
NIGHTS = Domain.from_sizes(dict.fromkeys(["mon", "tue", "wed"], 3))
HOME = Structure(NIGHTS, [], tied=[list(itertools.combinations(NIGHTS.names, 2))])


def declared(structure: Structure, neighbours: Neighbours, r: int) -> Norms:
    sensitivity = Sensitivity.of(structure, neighbours, rows_per_person=r)
    return sensitivity.l0, sensitivity.l1, sensitivity.l2_squared, sensitivity.linf


def counted(
    structure: Structure, persons: Sequence[Sequence[Row]], r: int, order: int = 0, chunk: int = 5
) -> np.ndarray:
    """The tables of a data set of persons, its rows shuffled and cut into batches."""
    return count(source_of(structure, persons, r, order, chunk), structure).tables.values


@settings(max_examples=60)
@given(st.data(), structures(4), st.sampled_from(Neighbours), st.integers(1, 3))
def test_no_neighbours_are_further_apart_than_declared(
    data: st.DataObject, structure: Structure, neighbours: Neighbours, r: int
) -> None:
    """Whoever is added, removed or replaced, with however many rows in whatever order and batches."""
    person = st.lists(rows_of(structure), min_size=1, max_size=5)
    others = data.draw(st.lists(person, max_size=4))
    one = data.draw(person)
    another = data.draw(person) if neighbours is Neighbours.REPLACE_ONE else []
    orders, chunks = st.integers(0, 99), st.integers(1, 7)
    before = counted(structure, [*others, one], r, data.draw(orders), data.draw(chunks))
    after = counted(structure, [*others, another], r, data.draw(orders), data.draw(chunks))
    for actual, bound in zip(norms(before - after), declared(structure, neighbours, r), strict=True):
        assert actual <= bound


@settings(max_examples=30)
@given(structures(4), st.sampled_from(Neighbours), st.integers(1, 3))
@example(HOME, Neighbours.ADD_REMOVE, 1)
@example(HOME, Neighbours.REPLACE_ONE, 1)
@example(HOME, Neighbours.ADD_REMOVE, 3)
@example(HOME, Neighbours.REPLACE_ONE, 3)
def test_the_worst_person_attains_what_is_declared(structure: Structure, neighbours: Neighbours, r: int) -> None:
    """r equal rows removed, or replaced by r others, meet L1, L2 and Linf (a table of one cell never changes then)."""
    if neighbours is Neighbours.REPLACE_ONE and 1 in structure.sizes:
        return
    sizes = structure.domain.sizes.values()
    first, last = [tuple(0 for _ in sizes)] * r, [tuple(size - 1 for size in sizes)] * r
    other = last if neighbours is Neighbours.REPLACE_ONE else []
    change = counted(structure, [first], r) - counted(structure, [other], r)
    assert norms(change)[1:] == declared(structure, neighbours, r)[1:]


def test_home_home_home_is_three() -> None:
    assert declared(HOME, Neighbours.ADD_REMOVE, 1) == (3, 3, 9, 3)
    assert declared(HOME, Neighbours.REPLACE_ONE, 1) == (6, 6, 18, 3)
    at_home, out = [(0, 0, 0)], [(1, 1, 1)]
    assert norms(counted(HOME, [at_home], 1)) == (1, 3, 9, 3)
    assert norms(counted(HOME, [at_home], 1) - counted(HOME, [out], 1)) == (2, 6, 18, 3)


def worst(structure: Structure, neighbours: Neighbours, r: int) -> Norms:
    """The largest norms over ALL pairs of neighbours; other persons cancel, so one person is enough."""
    vectors = [
        count(as_source(np.array(person).reshape(len(person), -1)), structure).tables.values
        for person in everybody(structure, r)
    ]
    if neighbours is Neighbours.ADD_REMOVE:
        changes = vectors
    else:
        changes = [one - other for one, other in itertools.combinations(vectors, 2)] or [vectors[0] * 0]
    return tuple(map(max, zip(*map(norms, changes), strict=True)))  # type: ignore[return-value]


def on(*sizes: int) -> Domain:
    return Domain.from_sizes({"abcd"[place]: size for place, size in enumerate(sizes)})


EXHAUSTIVE = {
    "chain": (Structure.chain(on(2, 2, 2)), 2),
    "triangle and single": (Structure(on(2, 2, 2), [("a", "b"), ("b", "c"), ("c", "a"), ("a",)]), 2),
    "third order": (Structure(on(2, 3, 2), [("a", "b", "c")]), 2),
    "nested and duplicate": (Structure(on(2, 3), [("a", "b"), ("b", "a"), ("b",)]), 2),
    "tied singles": (Structure(on(3, 3, 3), [], tied=[[("a",), ("b",), ("c",)]]), 1),
    "tied pairs": (Structure(on(2, 2, 2), [], tied=[[("a", "b"), ("b", "c")]]), 2),
    "tied and plain": (Structure(on(2, 2, 2), [("a", "c")], tied=[[("a", "b"), ("b", "c")]]), 2),
    "home": (HOME, 1),
}


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_the_worst_of_all_pairs_is_what_is_declared(name: str, neighbours: Neighbours) -> None:
    """Over every pair of neighbours of a tiny domain, each norm, L0 included, is exactly as declared."""
    structure, most = EXHAUSTIVE[name]
    for r in range(1, most + 1):
        assert worst(structure, neighbours, r) == declared(structure, neighbours, r)


ONE_CELL = {
    "one label": Structure(on(1, 2), [("a",), ("a", "b")]),
    "empty clique": Structure(on(2, 2), [(), ("a", "b")]),
    "tied one label": Structure(on(1, 1, 2), [("c",)], tied=[[("a",), ("b",)]]),
}


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", ONE_CELL)
@pytest.mark.parametrize("r", [1, 2])
def test_tables_of_one_cell_are_covered(name: str, neighbours: Neighbours, r: int) -> None:
    """A table of one cell shows how many rows there are: covered, and free when replacing cannot change it."""
    actual, bound = worst(ONE_CELL[name], neighbours, r), declared(ONE_CELL[name], neighbours, r)
    assert all(one <= other for one, other in zip(actual, bound, strict=True))
    if r == 1 or neighbours is Neighbours.ADD_REMOVE:
        assert actual == bound


PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
SQUARE = Structure(on(2, 2), [("a", "b")])
CELLS = list(itertools.product((0, 1), repeat=2))


@cache
def keyless(own: tuple[Row | None, Row | None], other: Row, r: int, structure: Structure = SQUARE) -> np.ndarray:
    """The tables where a person has r rows of one cell with the key and r of another without, either left out if None,
    and somebody else has r rows without."""
    keyed, without = own
    rows = [("x", keyed)] * r + [(None, without)] * r + [(None, other)] * r
    held = [(key, *row) for key, row in rows if row is not None]
    table = pa.table([pa.array(column) for column in zip(*held, strict=True)], ["id", "a", "b"])
    source = PersonSource(source=as_source(table), person="id", rows_per_person=r)
    return count(source, structure).tables.values


def farthest(neighbours: Neighbours, r: int, *, mixed: bool) -> list[int]:
    """L1, squared L2 and the squared contrast of a and b, at their largest. mixed: rows with the key, and without."""
    rows: list[Row | None] = [None, *CELLS]
    persons = [(keyed, without) for keyed in (rows if mixed else rows[:1]) for without in rows]
    there = [person for person in persons if person != (None, None)]
    found = [0, 0, 0]
    for before, after in itertools.product(there, [(None, None)] if neighbours is Neighbours.ADD_REMOVE else there):
        for other in CELLS[:2]:
            moved = keyless(before, other, r) - keyless(after, other, r)
            _, l1, squared, _ = norms(moved)
            contrast = int(products(Tables(SQUARE, moved))[0]) ** 2
            found = [max(pair) for pair in zip(found, (l1, squared, contrast), strict=True)]
    return found


#: How often the rows of one person are added, and taken away: of whom some rows have the key, and of whom none.
CHANGES = {
    (Neighbours.ADD_REMOVE, True): (2, 1),
    (Neighbours.ADD_REMOVE, False): (1, 1),
    (Neighbours.REPLACE_ONE, True): (2, 2),
    (Neighbours.REPLACE_ONE, False): (1, 1),
}


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize(("neighbours", "mixed"), CHANGES)
def test_rows_without_a_key_cost_what_the_page_says(neighbours: Neighbours, mixed: bool, r: int) -> None:
    """Over every person: leaving lets other rows without a key in. Each factor is attained, and is on the page."""
    bound = Sensitivity.of(SQUARE, neighbours, rows_per_person=r)
    contrasts = Sensitivity.of_contrasts(SQUARE, neighbours, rows_per_person=r)
    l1, squared, contrast = farthest(neighbours, r, mixed=mixed)
    times = [
        change_factor(kind, *CHANGES[neighbours, mixed], tables_alone=alone, neighbours=neighbours)
        for kind, alone in (("pure", True), ("zcdp", True), ("zcdp", False))
    ]
    bounds = (bound.l1, bound.l2_squared, contrasts.l2_squared)
    assert (l1, squared, contrast) == tuple(factor * one for factor, one in zip(times, bounds, strict=True))
    (line,) = [
        line for line in PAGE.read_text().splitlines() if line.startswith("| some with" if mixed else "| all without")
    ]
    told = [cell.strip() for cell in line.split("|")][2 if neighbours is Neighbours.ADD_REMOVE else 3]
    assert told == "{}\u03b5; {}\u03c1; {}\u03c1".format(*times)  # epsilon, rho


def test_tables_of_one_cell_are_not_among_the_figures_of_the_page() -> None:
    """Under replace-one they cost nothing, and a person who loses the key moves them: as the page says."""
    structure = Structure(SQUARE.domain, [(), ("a",)])
    moved = keyless(((0, 0), (0, 0)), (1, 0), 1, structure) - keyless((None, (0, 0)), (1, 0), 1, structure)
    assert Sensitivity.of(structure, Neighbours.REPLACE_ONE).l1 == 2 and abs(moved[0]) == 1
    assert "A table of one cell can move by *r* rows under replace-one" in PAGE.read_text()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_delta_of_the_page_is_that_of_a_group(k: int) -> None:
    """k steps, each between neighbours: k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)."""
    of_all = grow_budget(Budget.approx("0.7", "1e-6"), Fraction(k))
    assert of_all is not None and of_all.epsilon == k * Fraction("0.7")
    assert float(of_all.delta) == pytest.approx(1e-6 * math.expm1(k * 0.7) / math.expm1(0.7), rel=1e-12)


RULES = {
    "impossible": {"columns": ["a", "b"], "impossible": [["1", "0"]]},
    "possible": {"columns": ["a", "d"], "possible": [["0", "0"], ["1", "1"], ["1", "0"]]},
    "map": {"columns": ["b", "d"], "map": {"0": "0", "1": "0", "2": "1"}},
    "order": {"columns": ["b", "c"], "order": "<="},
}
SIZES = {"a": 2, "b": 3, "c": 3, "d": 2}
RULED = Domain.from_dict(
    {"attributes": {name: {"size": size, "unknown": 0} for name, size in SIZES.items()}, "constraints": RULES}
)
RECORDS = list(itertools.product(*map(range, SIZES.values())))
OVER = {
    "pairs": [("a", "b"), ("b", "c"), ("b", "d"), ("a", "d")],
    "all": [("a", "b", "c", "d")],
    "determined": [("d",), ("b",)],
}


def breaks(row: Row) -> bool:
    a, b, c, d = row
    return (a, b) == (1, 0) or (a, d) == (0, 1) or (b == 2) != (d == 1) or b > c


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", OVER)
def test_records_that_break_a_constraint_count_as_any_other(name: str, neighbours: Neighbours) -> None:
    """Over all neighbours tables, contrasts and distances move as claimed whether or not records break a constraint."""
    structure, terms = Structure(RULED, OVER[name]), Terms(neighbours=neighbours)
    binary = Structure(RULED, [("a",), ("d",), ("a", "d")])
    scores = TableDistance(candidates=structure, predicted=np.linspace(0, 4, structure.cells))
    found = {}
    for row in [None, *RECORDS]:
        rows = [*([] if row is None else [row]), RECORDS[0], (1, 0, 2, 1)]
        source = as_source(np.array(rows))
        tables = count(source, structure).tables
        found[row] = (tables.values, distances(tables, scores), products(count(source, binary).tables))
    start = [None] if neighbours is Neighbours.ADD_REMOVE else RECORDS
    claimed = terms.sensitivity(structure)
    contrast = terms.sensitivity(binary, contrasts=True)
    for broken in (False, True):
        worst = [0, 0, 0, 0]
        for one, other in itertools.product(start, RECORDS):
            if any(row is not None and breaks(row) for row in (one, other)) is not broken:
                continue
            tables, scored, sums = (
                np.abs(after - before) for before, after in zip(found[one], found[other], strict=True)
            )
            _, l1, squared, _ = norms(tables)
            each = (l1, squared, int(scored.max()), int((sums**2).sum()))
            worst = [max(pair) for pair in zip(worst, each, strict=True)]
        assert (worst[0], worst[1]) == (claimed.l1, claimed.l2_squared)
        assert worst[2] <= SCORE_GRID * scores.move(terms)
        assert worst[3] <= contrast.l2_squared


@pytest.mark.parametrize("row", [(0, 1, 1, 0), (1, 0, 2, 1)], ids=["possible", "impossible"])
def test_a_session_counts_a_record_that_breaks_a_constraint(row: Row) -> None:
    """At a budget without noise to speak of: its cells, the number of records and its distances, as of any other."""
    structure = Structure(RULED, [("a", "b"), ("b", "d")])
    rows = np.array([RECORDS[0]] * 3 + [row])
    curator = LiveCurator(
        as_source(rows), structure, make("mechanism", "gaussian"), terms=Terms(neighbours="add-remove"),
        budget=Budget.zcdp(10**8), randomness=SeededRandomness(1),
    )  # fmt: skip
    exact = count(as_source(rows), structure).tables
    scores = TableDistance(candidates=structure, predicted=np.linspace(0, 4, structure.cells))
    with curator.session(workload=Workload.all(RULED, order=2)) as session:
        each = session.budget * Fraction(1, 3)
        measured = session.measure(structure.cliques, each)
        assert np.rint(measured.tables.values).tolist() == exact.values.tolist() and round(measured.total) == 4
        wanted = distances(exact, scores) / SCORE_GRID
        assert session.score(scores, each).values == pytest.approx(wanted, abs=0.01)
        assert session.select(scores, each).chosen == ((int(wanted.argmax()),),)
