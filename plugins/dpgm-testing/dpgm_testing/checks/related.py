"""Checks of sources of two related tables; the subject is the class. No plugin offers one: they hold core's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import Related
from dpgm_testing.check import Checklist, explore, require
from dpgm_testing.subjects import ClassSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("related")

#: The root says which it is, and a child whose it is and in which place: so each record shows what it was made of.
_ROOT, _CHILDREN = Domain.from_sizes({"number": 64}), Domain.from_sizes({"of": 64, "turn": 12})
#: A key and the number of a root; a key, what orders, the number of its root and its place among its children.
_Roots: TypeAlias = list[tuple[str | None, int]]
_Children: TypeAlias = list[tuple[str | None, int, int, int]]
_Tables: TypeAlias = tuple[_Roots, _Children]
_Record: TypeAlias = tuple[int, ...]
_ABSENT = (64, 12)


def _world(sizes: Sequence[int]) -> _Tables:
    """A root for each size with so many children, whose places are the order of a column that descends in the file."""
    roots: _Roots = [(f"k{number}", number) for number in range(len(sizes))]
    children: _Children = [(f"k{of}", 10 * turn, of, turn) for of, size in enumerate(sizes) for turn in range(size)]
    return roots, children[::-1]


def _read(
    subject: ClassSubject,
    tables: _Tables,
    *,
    most: int = 3,
    order: str | None = "line",
    chunk: int = 1000,
    draws: int | None = None,
) -> Counter[_Record]:
    """The records: number, size, position, then the first child, the one looked at and the one before it.

    draws: of each root there are so many, by `repeated`.
    """
    stated = Related(root=_ROOT, children=_CHILDREN, key="id", max_children=most, order=order)
    roots, children = tables
    made = []
    for rows, names in ((roots, ("id", "number")), (children, ("id", "line", "of", "turn"))):
        columns = [[row[at] for row in rows] for at in range(len(names))]
        types = [pa.string(), *[pa.int64()] * (len(names) - 1)]
        table = pa.table([pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names)
        parts = [table[start : start + chunk] for start in range(0, max(len(table), 1), chunk)]
        made.append(pa.concat_tables(parts))
    source = subject.component(root=made[0], children=made[1], related=stated)
    source = source if draws is None else source.repeated(draws)
    found: Counter[_Record] = Counter()
    for batch in source.batches(stated.pair, stated.pair.names):
        found.update(zip(*(np.asarray(part).tolist() for part in batch), strict=True))
    return found


def _shuffled(tables: _Tables, seed: int) -> _Tables:
    draw = np.random.default_rng(seed)
    roots, children = tables
    return [roots[at] for at in draw.permutation(len(roots))], [children[at] for at in draw.permutation(len(children))]


def _slots(record: _Record) -> list[_Record]:
    """The first child, the one looked at and the one before it, as far as there are any."""
    slots = [record[at : at + 2] for at in range(3, len(record), 2)]
    return [slot for slot in slots if slot != _ABSENT]


_SIZES = (0, 1, 2, 3, 4, 5, 7, 0, 2, 9, 1, 3, 6, 2, 4, 8, 3, 5)


@CHECKS.add()
def a_child_counts_under_its_own_root(subject: ClassSubject) -> None:
    """A record holds children of its own root alone, which are where its size says. Cannot show: that they are the
    right ones of these."""
    for order in ("line", None):
        for record in _read(subject, _world(_SIZES), order=order):
            require(
                all(of == record[0] for of, _ in _slots(record)), "a record holds a child that belongs to another root"
            )
            position = 0 if record[1] < 2 else 1 if len(_slots(record)) == 2 else 2
            shown = min(record[1], 1) + position
            require(record[2] == position and len(_slots(record)) == shown, "a record lacks a child that its size says")


@CHECKS.add()
def children_beyond_r_do_not_count(subject: ClassSubject) -> None:
    """The size is the number of children, at most r, and only the first r in their order are ever looked at. Cannot
    show: numbers of children beyond a dozen."""
    for most in (2, 3, 5):
        for record in _read(subject, _world(_SIZES), most=most):
            size = min(_SIZES[record[0]], most)
            require(record[1] == size, f"of {_SIZES[record[0]]} children and r = {most} the size is {record[1]}")
            require(all(turn < size for _, turn in _slots(record)), f"a child beyond r = {most} is looked at")


@CHECKS.add()
def the_order_is_followed(subject: ClassSubject) -> None:
    """The first child is the first by the column that orders, wherever it is in the file, and the previous one is the
    one before that which is looked at. Cannot show: values that are no whole numbers."""
    for seed in (None, 1, 2):
        tables = _world(_SIZES) if seed is None else _shuffled(_world(_SIZES), seed)
        for record in _read(subject, tables, most=4):
            turns = [turn for _, turn in _slots(record)]
            require(not turns or turns[0] == 0, "the first child is not the first in the order of the column")
            require(len(turns) < 2 or turns[1] > 0, "the child that is looked at is the first one")
            if len(turns) == 3:
                require(turns[2] == turns[1] - 1, "the previous child is not the one before in the order")


@CHECKS.add()
def row_order_and_batches_change_nothing(subject: ClassSubject) -> None:
    """Shuffled, and in batches of other sizes, the tables give the same records, with a column that orders and without.
    Cannot show: other orders."""
    for order in ("line", None):
        first = _read(subject, _world(_SIZES), order=order)
        for seed, chunk in ((1, 1000), (2, 3), (3, 1)):
            found = _read(subject, _shuffled(_world(_SIZES), seed), order=order, chunk=chunk)
            require(found == first, f"shuffled and in batches of {chunk} rows the records are others, order = {order}")


@CHECKS.add()
def orphans_do_not_count(subject: ClassSubject) -> None:
    """There is a record for each key that has a root, childless ones included, and none for a child without one.
    Cannot show: more than a few orphans."""
    roots, children = _world(_SIZES)
    orphans = [("nobody", 0, 60, 0), ("nobody", 10, 60, 1), (None, 0, 61, 0), ("", 0, 62, 0)]
    found = _read(subject, (roots, [*children, *orphans]))
    require(found.total() == len(roots), f"{len(roots)} roots and 3 keys of orphans give {found.total()} records")
    require(found == _read(subject, (roots, children)), "children without a root change the records of others")


@CHECKS.add()
def one_root_of_a_key_remains(subject: ClassSubject) -> None:
    """Of several roots of a key one remains, the same in any order of the rows, and rows whose key is null or empty are
    of one key. Cannot show: which of them it is."""
    roots, children = _world(_SIZES)
    several = [*roots, ("k1", 40), ("k1", 41), (None, 50), ("", 51), (None, 52)]
    first = _read(subject, (several, [*children, (None, 0, 50, 0), ("", 10, 50, 1)]))
    require(first.total() == len(roots) + 1, f"{len(roots)} keys and null give {first.total()} records")
    nulls = [record for record in first if record[0] in (50, 51, 52)]
    require(len(nulls) == 1 and nulls[0][1] == 2, "rows with a null and an empty key are not of one key")
    for seed in (1, 2, 3):
        found = _read(subject, _shuffled((several, [*children, (None, 0, 50, 0), ("", 10, 50, 1)]), seed))
        require(found == first, "which root of a key remains depends on the order of the rows")


@CHECKS.add()
def each_of_the_others_is_drawn(subject: ClassSubject) -> None:
    """Over 3,000 keys of four children each of the last three is looked at about equally often, 6 standard deviations
    apart at most. Cannot show: that the draw is independent of all else."""
    found: Counter[int] = Counter()
    for start in range(50):
        roots: _Roots = [(f"{start} {number}", number) for number in range(60)]
        children = [(key, turn, number, turn) for key, number in roots for turn in range(4)]
        for record, times in _read(subject, (roots, children), most=4).items():
            found[_slots(record)[1][1]] += times
    counts = [found[turn] for turn in (1, 2, 3)]
    require(all(abs(count - 1000) < 6 * 26 for count in counts), f"the last three children are drawn {counts} times")


@CHECKS.add()
def a_key_changes_its_own_record_alone(subject: ClassSubject) -> None:
    """Neighbours: a key with its rows in both tables that is taken out, put in, or given other rows changes no record
    of another key, and its own is one record at most. Cannot show: tables of more than a few dozen rows."""
    sizes = st.lists(st.integers(0, 9), min_size=1, max_size=12)

    def claim(case: tuple[list[int], int, int, int, str | None]) -> None:
        counts, place, size, most, order = case
        own = place % len(counts)
        whole = _world(counts)
        left = _without(whole, own)
        other = _world([size if number == own else count for number, count in enumerate(counts)])
        records = [_read(subject, tables, most=most, order=order) for tables in (whole, left, other)]
        for found, what in zip(records, ("with", "without", "with other rows of"), strict=True):
            mine = Counter({record: times for record, times in found.items() if record[0] == own})
            require(found - mine == records[1], f"{what} a key the records of other keys change")
            require(mine.total() == (what != "without"), f"{what} a key there are {mine.total()} records of it")

    case = st.tuples(sizes, st.integers(0, 11), st.integers(0, 9), st.integers(3, 5), st.sampled_from(["line", None]))
    worst: list[Any] = [([5, 2, 2], 0, 0, 3, "line"), ([9, 1, 4], 1, 8, 4, None), ([3, 3], 0, 9, 5, "line")]
    explore(subject.profile, case, claim, worst=worst, share=0.5)


@CHECKS.add()
def repeated_records_are_so_many_of_each_root(subject: ClassSubject) -> None:
    """Each root has as many records as draws, whatever its children are, so its weights sum to 1; each further child is
    looked at in its share of them, or once more; and rows of other keys change none. Cannot show: more than 8 draws."""
    whole, own = _world(_SIZES), 5
    for draws in (1, 2, 4, 8):
        records = _read(subject, whole, most=5, draws=draws)
        for number, size in enumerate(_SIZES):
            mine = Counter({record: times for record, times in records.items() if record[0] == number})
            require(mine.total() == draws, f"a root of {size} children has {mine.total()} records of {draws} draws")
            others = min(size, 5) - 1
            looked = Counter(_slots(record)[1][1] for record in mine.elements() if others > 0)
            shares = [looked[turn] for turn in range(1, others + 1)]
            share = draws // max(others, 1)
            require(
                set(shares) <= {share, share + 1}, f"{draws} draws look at {others} further children {shares} times"
            )
        mine = Counter({record: times for record, times in records.items() if record[0] == own})
        left = _read(subject, _without(whole, own), most=5, draws=draws)
        require(records - mine == left, "without a key the records of other keys change")


def _without(tables: _Tables, number: int) -> _Tables:
    roots, children = tables
    return [row for row in roots if row[1] != number], [row for row in children if row[2] != number]
