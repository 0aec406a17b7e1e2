"""SQLite: a column's type binds nobody, so each value is read by its own.

Through Python's own module. ADBC's driver takes a column's type from its first 1024 rows, whole numbers where all are
null, and fails on a later text: one record would decide whether others can be read. Nor can it be interrupted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from attrs import frozen

from dpgm_core.sources import SourceRefused
from dpgm_sql.address import Address
from dpgm_sql.dialect import Column, Engine, quoted
from dpgm_sql.session import FAILED, Clock, Named, Table, guarded, heard
from dpgm_sql.values import CELLS, cells

__all__ = ["Sqlite", "open_sqlite"]

#: Rows that are objects of Python at a time.
_ROWS = 2**14
_LOCK_SECONDS = 10


def open_sqlite(address: Address, seconds: float) -> Sqlite:
    """A session with an SQLite file, which is never made. Raises SourceRefused."""
    path = Path(address.target)
    if not path.is_file():
        raise SourceRefused(
            f"{address.where} is no file; a path is relative to the spec, in Python to the working folder, and "
            "absolute with four slashes"
        )

    def opened() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=ro",
            uri=True,
            timeout=min(_LOCK_SECONDS, seconds),
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = bytes
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN")
        # The first read is what holds the records still.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        return connection

    refusal = (
        f"{address.where} cannot be read: it is damaged or no SQLite file, another process holds it locked, or this "
        "user may not read it"
    )
    return Sqlite(guarded(opened, lambda _: refusal), Clock(seconds))


@frozen(eq=False, repr=False)
class Sqlite:
    """A session with an SQLite file; see `Session`."""

    connection: sqlite3.Connection
    clock: Clock

    @property
    def engine(self) -> Engine:
        """Its name."""
        return "sqlite"

    def table(self, names: Sequence[str]) -> Table:
        """The table or view of these names."""
        table = Table.of(names)
        rows = self._query("SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?", names[-1])
        if not rows or names[:-1] not in ((), ("main",)):
            raise SourceRefused(f"the database has no {table.where}")
        return table

    def named(self, table: Table) -> list[Named]:
        """All columns, with the types of CREATE TABLE."""
        rows = self._query("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1", table.name)
        return [Named(name=name.decode(), declared=declared.decode().lower()) for name, declared in rows]

    def columns(self, table: Table, named: Sequence[Named]) -> list[Column]:
        """Every column is read cell by cell."""
        return [Column(name=one.name, declared=one.declared, read=quoted(one.name), kind=CELLS) for one in named]

    def batches(self, table: Table, columns: Sequence[Column]) -> Iterator[Any]:
        """All rows. A name that is no column would be a text to SQLite: these have been looked up."""
        schema = pa.schema([pa.field(column.name, column.kind) for column in columns])
        query = f"SELECT {', '.join(column.read for column in columns)} FROM {table.quoted}"
        stop = self.connection.interrupt
        with self.clock.running(stop), closing(self.connection.cursor()) as cursor:
            guarded(lambda: heard(lambda: cursor.execute(query), stop), self._failed)
            while rows := guarded(lambda: cursor.fetchmany(_ROWS), self._failed):
                if self.clock.late:
                    raise self.clock.refusal
                yield pa.RecordBatch.from_arrays([cells(part) for part in zip(*rows, strict=True)], schema=schema)

    def counted(self, query: str) -> Any:
        """Return the result of a query of whole numbers."""
        stop = self.connection.interrupt
        with self.clock.running(stop):
            cursor = guarded(lambda: heard(lambda: self.connection.execute(query), stop), self._failed)
            rows = guarded(lambda: heard(cursor.fetchall, stop), self._failed)
        width = len(cursor.description)
        columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(width)]
        return pa.table(columns, [str(place) for place in range(width)])

    @property
    def utf8(self) -> bool:
        """Whether the file is in UTF-8; rows are read in UTF-8 in any case."""
        return self._query("PRAGMA encoding") == [(b"UTF-8",)]

    def close(self) -> None:
        """Close the connection, and with it the transaction."""
        with suppress(Exception):  # nothing depends on it any more
            self.connection.close()

    def _query(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        return guarded(lambda: self.connection.execute(query, values).fetchall(), self._failed)

    def _failed(self, error: BaseException) -> str | SourceRefused:
        return self.clock.refusal if self.clock.late else FAILED
