"""Counts made in SQL: a GROUP BY for each table of a reduction, over codes that SQL makes as core does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from dpgm_core.sources import Grouped, Reading, SourceRefused
from dpgm_sql.codes import coded
from dpgm_sql.dialect import Column, Dialect

__all__ = ["PAYS", "Pushed", "plan"]

#: The engines that count by themselves unless told otherwise. SQLite sorts the rows for each table, and they are read
#: in this process in any case: streaming takes half the time.
PAYS = frozenset({"duckdb", "postgresql"})

#: Groupings are counted together where their joint table has at most so many cells.
JOINT_CELLS = 2**16
#: One scan counts so many tables, of so many cells in all, where that is faster than a scan for each.
TABLES_PER_SCAN, CELLS_PER_SCAN = {"duckdb": 24, "postgresql": 1, "sqlite": 1}, 2**22
#: The longest that the codes of a reading may be, in letters: SQLite takes a million in a statement.
MOST_LETTERS = 500_000


def plan(reading: Reading, columns: Iterable[Column], dialect: Dialect, *, utf8: bool = True) -> Pushed | None:
    """Return how a reading is counted in SQL; None where it has to be streamed, by types and the domain alone.

    columns: those of the table, in any order. utf8: whether the database holds texts in UTF-8. It is None for persons
    with several rows each, and where a column's codes cannot be made in SQL exactly as core makes them.

    >>> import pyarrow as pa
    >>> from dpgm_core import Domain
    >>> reading = Reading(domain=Domain.from_sizes({"a": 2}), columns=("a",))
    >>> column = Column(name="a", declared="integer", read='"a"', kind=pa.int32())
    >>> plan(reading, [column], Dialect(engine="duckdb", table='"t"')).codes["a"]
    'CASE WHEN "a" < 1 THEN 0 ELSE CASE WHEN "a" < 2 THEN 1 ELSE 0 END END'
    """
    if reading.person is not None:
        return None
    known = {column.name: column for column in columns}
    codes: dict[str, str] = {}
    for name in reading.columns:
        code = coded(reading.domain[name], known[name], dialect.engine, utf8=utf8)
        if code is None:
            return None
        codes[name] = code
    if sum(map(len, codes.values())) > MOST_LETTERS:
        return None
    return Pushed(dialect=dialect, codes=codes, sizes={name: reading.domain[name].size for name in codes})


@frozen(kw_only=True)
class Pushed:
    """Counts that a database takes. codes: attribute -> the SQL of its codes; sizes: attribute -> how many there are.

    >>> class Tables:
    ...     columns, cells, groupings = ("a", "b"), 7, (("b", "a"), ("a",))
    >>> sqlite = Dialect(engine="sqlite", table='"t"')
    >>> pushed = Pushed(dialect=sqlite, codes={"a": "a", "b": "b"}, sizes={"a": 2, "b": 2})
    >>> pushed.queries(Tables())
    ['SELECT 0, (c0) * 2 + c1, count(*) FROM (SELECT b AS c0, a AS c1 FROM "t") AS s GROUP BY 2']
    """

    dialect: Dialect
    codes: Mapping[str, str]
    sizes: Mapping[str, int]

    def queries(self, reduction: Grouped) -> list[str]:
        """Statements of one snapshot, each of which gives three columns of whole numbers, in rows of any order."""
        scans = self._scans(self._tables(reduction))
        return [self._statement(scan) for scan in scans] or [f"SELECT 0, 0, count(*) FROM {self.dialect.table}"]

    def vector(self, reduction: Grouped, results: Iterable[Any]) -> npt.NDArray[np.int64]:
        """The reduction's vector, (cells,), of the Arrow tables that the statements gave, in their order.

        Tables are taken one after the other. Raises SourceRefused for what no such statement can have given.
        """
        sums = np.zeros(reduction.cells, np.int64)
        slices: dict[tuple[str, ...], list[slice]] = {}
        for grouping, part in zip(reduction.groupings, self._slices(reduction), strict=True):
            slices.setdefault(grouping, []).append(part)
        tables = self._tables(reduction)
        scans = self._scans(tables)
        rows = 0
        for number, result in enumerate(results):
            which, cells, counts = _whole(result)
            if not scans:
                rows = int(counts.sum())
            for at, table in enumerate(scans[number] if scans else []):
                mine = which == _mark(at, len(scans[number]))
                shape = [self.sizes[name] for name in table]
                counted = _counted(cells[mine], counts[mine], math.prod(shape)).reshape(shape)
                rows = int(counted.sum())
                for grouping in tables[table]:
                    for part in slices[grouping]:
                        sums[part] = _marginal(table, counted, grouping)
        sums[-1] = rows
        return sums

    def _slices(self, reduction: Grouped) -> Iterator[slice]:
        start = 0
        for grouping in reduction.groupings:
            cells = math.prod(self.sizes[name] for name in grouping)
            yield slice(start, start + cells)
            start += cells

    def _tables(self, reduction: Grouped) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
        """The tables to count, and the groupings that are marginals of each: always the same for a reduction."""
        waiting = dict.fromkeys(sorted(set(reduction.groupings), key=lambda one: (-self._cells(one), one)))
        tables: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        while waiting:
            table = next(iter(waiting))
            while grown := self._grown(table, waiting):
                table = grown
            tables[table] = [one for one in waiting if set(one) <= set(table)]
            for one in tables[table]:
                del waiting[one]
        return tables

    def _grown(self, table: tuple[str, ...], waiting: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
        """The table with the columns that bring most groupings for each column; None if it is full."""
        present = set(table)
        gains = Counter(tuple(name for name in one if name not in present) for one in waiting)
        room = JOINT_CELLS // self._cells(table)
        fitting = [more for more in gains if more and self._cells(more) <= room]
        return (*table, *max(fitting, key=lambda more: gains[more] / len(more))) if fitting else None

    def _cells(self, names: Sequence[str]) -> int:
        return math.prod(self.sizes[name] for name in names)

    def _scans(self, tables: Iterable[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
        scans: list[list[tuple[str, ...]]] = []
        cells = 0
        for table in tables:
            cells += self._cells(table)
            if scans and len(scans[-1]) < TABLES_PER_SCAN[self.dialect.engine] and cells <= CELLS_PER_SCAN:
                scans[-1].append(table)
            else:
                scans.append([table])
                cells = self._cells(table)
        return scans

    def _statement(self, scan: Sequence[tuple[str, ...]]) -> str:
        names = list(dict.fromkeys(name for table in scan for name in table))
        place = {name: f"c{number}" for number, name in enumerate(names)}
        codes = ", ".join(f"{self.codes[name]} AS {place[name]}" for name in names)
        coded = f"(SELECT {codes or '0 AS c0'} FROM {self.dialect.table}) AS s"
        fused = [self._fused(table, place) for table in scan]
        if len(fused) == 1:
            return f"SELECT 0, {fused[0]}, count(*) FROM {coded} GROUP BY 2"
        cells = ", ".join(f"{cell} AS b{number}" for number, cell in enumerate(fused))
        keys = [f"b{number}" for number in range(len(fused))]
        which, cell, sets = ", ".join(keys), ", ".join(keys), ", ".join(f"({key})" for key in keys)
        return (
            f"SELECT GROUPING({which}), coalesce({cell}), count(*) "
            f"FROM (SELECT {cells} FROM {coded}) AS t GROUP BY GROUPING SETS ({sets})"
        )

    def _fused(self, table: Sequence[str], place: Mapping[str, str]) -> str:
        """The number of a row's cell, by Horner's rule."""
        wide = self._cells(table) >= 2**31
        cell = ""
        for name in table:
            code = f"CAST({place[name]} AS BIGINT)" if wide else place[name]
            cell = f"({cell}) * {self.sizes[name]} + {code}" if cell else code
        return cell or "CAST(0 AS BIGINT)"


def _whole(result: Any) -> list[npt.NDArray[np.int64]]:
    """Three columns of whole numbers."""
    columns = [column.combine_chunks() for column in result.columns]
    if len(columns) != 3 or any(column.null_count or not pa.types.is_integer(column.type) for column in columns):
        raise SourceRefused("the database gave no table of whole numbers where it was asked for one")
    return [np.asarray(column, np.int64) for column in columns]


def _mark(at: int, tables: int) -> int:
    """Return GROUPING of the set that has only this key: a bit for each key it has not, the last one lowest."""
    return 0 if tables == 1 else (2**tables - 1) ^ 2 ** (tables - 1 - at)


def _counted(cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    if len(cells) and (cells.min() < 0 or cells.max() >= size or len(np.unique(cells)) < len(cells)):
        raise SourceRefused("the database gave cells that the table it was asked for does not have")
    table = np.zeros(size, np.int64)
    table[cells] = counts
    return table


def _marginal(names: Sequence[str], counts: npt.NDArray[np.int64], grouping: Sequence[str]) -> npt.NDArray[np.int64]:
    others = tuple(axis for axis, name in enumerate(names) if name not in grouping)
    remaining = [name for name in names if name in grouping]
    marginal: npt.NDArray[np.int64] = counts.sum(axis=others).transpose([remaining.index(name) for name in grouping])
    return marginal.reshape(-1)
