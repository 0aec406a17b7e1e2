"""Counts made in SQL: the statements, and the vector that their results are."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen
from dpgm_sql.address import read_address
from dpgm_sql.dialect import Column, Dialect, quoted
from dpgm_sql.grouping import JOINT_CELLS, plan
from dpgm_sql.opening import opened
from dpgm_sql.pinned import Counted
from dpgm_sql.source import SqlSource

from dpgm_core import Attribute, Domain
from dpgm_core.sources import Reading, SourceRefused


@frozen
class Tables:
    """A reduction, as far as a database is asked: tables of codes, then the number of rows."""

    domain: Domain
    groupings: tuple[tuple[str, ...], ...]

    @property
    def columns(self):
        return self.domain.names

    @property
    def cells(self):
        return sum(int(np.prod(self.domain.shape(names))) for names in self.groupings) + 1

    def brute(self, codes):
        parts = []
        for names in self.groupings:
            table = np.zeros(self.domain.shape(names), np.int64)
            np.add.at(table, tuple(codes[name] for name in names), 1)
            parts.append(table.reshape(-1) if names else np.array([len(codes[self.columns[0]])]))
        return np.concatenate([*parts, [len(codes[self.columns[0]])]])


def pushed_over(domain, engine="duckdb", table='"t"'):
    columns = [Column(name=name, declared="bigint", read=quoted(name), kind=pa.int64()) for name in domain.names]
    return plan(Reading(domain=domain, columns=domain.names), columns, Dialect(engine=engine, table=table))


@pytest.mark.parametrize(
    ("sizes", "groupings"),
    [
        ({"a": 2, "b": 3, "c": 5}, (("a", "b"), ("c", "b"), ("b", "a"))),
        ({"a": 2, "b": 3, "c": 5}, (("c", "a", "b"), ("b",), ())),
        ({"a": 2, "b": 3}, ()),
        ({"a": 2, "b": 3}, ((),)),
        ({"a": 300, "b": 300, "c": 300, "d": 2}, (("a", "b"), ("c", "b"), ("d", "c"), ("a",))),
        ({"a": 2**13, "b": 2**8, "c": 3}, (("b", "c"), ("c", "a"))),
        (dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 2), tuple(zip("abcdefghijkl", "mnopqrstuvwx", strict=True))),
    ],
)
@pytest.mark.parametrize("rows", [0, 1, 500])
def test_vector_is_that_of_brute_force(sizes, groupings, rows, duckdb_file):
    """Tables of all shapes, the same twice, empty ones and those of nothing: each cell and the number of rows."""
    domain = Domain.from_sizes(sizes)
    reduction = Tables(domain, groupings)
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, min(size, 7), rows) for name, size in sizes.items()}
    duckdb_file.run(f"CREATE TABLE t ({', '.join(f'{name} BIGINT' for name in sizes)})")
    if rows:
        values = ", ".join(str(tuple(map(int, row))) for row in zip(*codes.values(), strict=True))
        duckdb_file.run(f"INSERT INTO t VALUES {values}")
    pushed = pushed_over(domain)
    with closing(opened(read_address(duckdb_file.address), 60)) as session:
        results = map(session.counted, pushed.queries(reduction))
        np.testing.assert_array_equal(pushed.vector(reduction, results), reduction.brute(codes))


def test_joint_tables_are_bounded():
    """Groupings are counted together only where their joint table is small."""
    domain = Domain.from_sizes(dict.fromkeys("abcdefgh", 20))
    reduction = Tables(domain, tuple((one, other) for one in "abcd" for other in "efgh"))
    tables = pushed_over(domain)._tables(reduction)
    assert len(tables) < len(reduction.groupings)
    assert max(20 ** len(names) for names in tables) <= JOINT_CELLS
    assert sorted(one for members in tables.values() for one in members) == sorted(reduction.groupings)


@pytest.mark.parametrize(
    "columns",
    [([0], [4], [1]), ([0], [-1], [1]), ([0, 0], [1, 1], [1, 1]), ([0], [1]), ([0], [None], [1]), ([0], ["1"], [1])],
)
def test_results_that_no_statement_gives_are_refused(columns):
    """A cell out of range, one that stands twice, and what is no table of whole numbers."""
    domain = Domain.from_sizes({"a": 2, "b": 2})
    with pytest.raises(SourceRefused):
        pushed_over(domain).vector(
            Tables(domain, (("a", "b"),)), [pa.table(list(map(pa.array, columns)), list("xyz")[: len(columns)])]
        )


def test_persons_are_streamed():
    """Which rows of a person count is chosen by core."""
    domain = Domain.from_sizes({"a": 2})
    columns = [Column(name=name, declared="bigint", read=quoted(name), kind=pa.int64()) for name in ("a", "id")]
    reading = Reading(domain=domain, columns=("a",), person="id", rows_per_person=2)
    assert plan(reading, columns, Dialect(engine="duckdb", table='"t"')) is None


def test_one_column_without_codes_is_enough_to_stream():
    """All columns are counted in SQL, or none."""
    domain = Domain([Attribute.of_size("a", 2), Attribute.of_bins("b", [0, 1], unknown="?")])
    columns = [
        Column(name="a", declared="bigint", read='"a"', kind=pa.int64()),
        Column(name="b", declared="varchar", read='"b"', kind=pa.string()),
    ]
    assert plan(Reading(domain=domain, columns=("a", "b")), columns, Dialect(engine="duckdb", table='"t"')) is None
    assert plan(Reading(domain=domain, columns=("a",)), columns, Dialect(engine="duckdb", table='"t"')) is not None


@pytest.mark.parametrize(("way", "counted"), [("push", True), ("auto", None), ("stream", False)])
def test_auto_is_decided_by_engine_and_types(way, counted, database):
    """What is said is done; SQLite streams unless told to count."""
    database.run("CREATE TABLE t (a integer)")
    reading = Reading(domain=Domain.from_sizes({"a": 2}), columns=("a",))
    with SqlSource(database=database.address, table="t", count=way).pinned(reading) as pinned:
        assert isinstance(pinned, Counted) == (database.engine != "sqlite" if counted is None else counted)
