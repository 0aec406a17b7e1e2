"""DuckDB: the file is opened for reading, with no way out of it to other files or hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import frozen

from dpgm_core.sources import SourceRefused
from dpgm_sql.address import Address
from dpgm_sql.dialect import Column, Engine, quoted
from dpgm_sql.session import BATCH_ROWS, FAILED, Clock, Named, Table, driver, guarded, heard, unreadable
from dpgm_sql.values import CELLS, numbers

__all__ = ["DuckDb", "open_duckdb"]

#: Nothing is read but this file, and nothing is written, not even what does not fit into memory.
_CLOSED = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    # Tables of 65,536 cells are counted in arrays and not by hashing: half the time.
    "perfect_ht_threshold": "17",
}
#: Memory of a count: what is cached of the file, and its tables.
_MAX_CACHED = "256MiB"
_PLAIN = {
    *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("float", "double", "decimal", "varchar", "blob", "date", "time", "uuid", "enum"),
    *("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"),
}
#: Whole numbers beyond 64 bits: Arrow would hold 38 digits of them, and fail where a record has more.
_LARGE = {"hugeint", "uhugeint", "bignum"}


def open_duckdb(address: Address, seconds: float) -> DuckDb:
    """A session with a DuckDB file, which is never made. Raises SourceRefused."""
    duckdb = driver("duckdb", "driver of DuckDB", "duckdb")
    path = Path(address.target)
    if not path.is_file():
        raise SourceRefused(
            f"{address.where} is no file; a path is relative to the spec, in Python to the working folder, and "
            "absolute with four slashes"
        )
    words = {
        duckdb.ConnectionException: f"{address.where} is open in this process with other settings; close that first",
        duckdb.IOException: f"{address.where} cannot be opened: it is damaged, no DuckDB file of a version that is "
        "known here, or another process writes to it or this user may not read it",
    }

    def opened() -> Any:
        connection = duckdb.connect(str(path), read_only=True, config=_CLOSED)
        # A process has one instance of a file, which outlives an interrupted session for a moment. So settings are not
        # locked, or the next session could not make its own; what closes the file cannot be undone while it is open.
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        return connection

    return DuckDb(
        guarded(opened, lambda error: next((said for kind, said in words.items() if isinstance(error, kind)), FAILED)),
        Clock(seconds),
    )


@frozen(eq=False, repr=False)
class DuckDb:
    """A session with a DuckDB file; see `Session`."""

    connection: Any
    clock: Clock

    @property
    def engine(self) -> Engine:
        """Its name."""
        return "duckdb"

    def table(self, names: Sequence[str]) -> Table:
        """The table or view of these names."""
        table = Table.of(names)
        missing = f"the database has no {table.where}, or it is a view that is out of date or reads another file"
        guarded(lambda: self.connection.execute(f"DESCRIBE {table.quoted}").fetchall(), lambda _: missing)
        return table

    def named(self, table: Table) -> list[Named]:
        """All columns and their types."""
        rows = guarded(lambda: self.connection.execute(f"DESCRIBE {table.quoted}").fetchall(), self._failed)
        return [Named(name=name, declared=_declared(kind)) for name, kind, *_ in rows]

    def columns(self, table: Table, named: Sequence[Named]) -> list[Column]:
        """Return how columns are read, each as its own type or as a union."""
        reads = []
        for column in named:
            if column.declared not in _PLAIN | _LARGE:
                raise unreadable(table, column)
            own = quoted(column.name)
            reads.append(f"CAST({own} AS VARCHAR)" if column.declared in _LARGE else own)
        schema = self._schema(table, reads)
        return [
            Column(
                name=column.name, declared=column.declared, read=read, kind=CELLS if column.declared in _LARGE else kind
            )
            for column, read, kind in zip(named, reads, schema, strict=True)
        ]

    def batches(self, table: Table, columns: Sequence[Column]) -> Iterator[Any]:
        """All rows. `sql` and not `execute`: the latter's reader would hold the whole result."""
        query = _select(table, [column.read for column in columns])
        schema = pa.schema([pa.field(column.name, column.kind) for column in columns])
        stop = self.connection.interrupt
        with self.clock.running(stop):
            reader = guarded(
                lambda: heard(lambda: self.connection.sql(query).to_arrow_reader(BATCH_ROWS), stop), self._failed
            )
            while (batch := guarded(lambda: heard(lambda: next(reader, None), stop), self._failed)) is not None:
                if self.clock.late:
                    raise self.clock.refusal
                yield pa.RecordBatch.from_arrays(
                    [
                        numbers(array) if column.kind == CELLS else array
                        for column, array in zip(columns, batch.columns, strict=True)
                    ],
                    schema=schema,
                )

    def counted(self, query: str) -> Any:
        """Return the result of a query of whole numbers."""
        stop = self.connection.interrupt
        with self.clock.running(stop):
            return guarded(lambda: heard(lambda: self._counted(query), stop), self._failed)

    @property
    def utf8(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Close the connection, and with it the transaction."""
        with suppress(Exception):  # nothing depends on it any more
            self.connection.close()

    def _counted(self, query: str) -> Any:
        """With little memory, which else the engine fills with the file; what needs more runs once more with all."""
        low = driver("duckdb", "driver of DuckDB", "duckdb").OutOfMemoryException
        try:
            self.connection.execute(f"SET memory_limit = '{_MAX_CACHED}'")
            return self.connection.sql(query).to_arrow_table()
        except low:  # which ends the transaction; while the file is open for reading nobody writes to it
            self.connection.execute("ROLLBACK")
            self.connection.execute("BEGIN TRANSACTION READ ONLY")
        finally:
            self.connection.execute("RESET memory_limit")
        return self.connection.sql(query).to_arrow_table()

    def _schema(self, table: Table, reads: Sequence[str]) -> list[Any]:
        if not reads:
            return []
        query = f"{_select(table, reads)} LIMIT 0"
        return list(guarded(lambda: self.connection.sql(query).to_arrow_table().schema.types, self._failed))

    def _failed(self, error: BaseException) -> str | SourceRefused:
        if self.clock.late:
            return self.clock.refusal
        if type(error).__name__ == "OutOfMemoryException":
            return "the database ran out of memory while it read the table; records are not written to disk for it"
        return FAILED


def _select(table: Table, reads: Sequence[str]) -> str:
    named = ", ".join(f"{read} AS c{number}" for number, read in enumerate(reads))
    return f"SELECT {named} FROM {table.quoted}"


def _declared(kind: str) -> str:
    """A type without its length, precision or labels; one of nested values keeps its brackets.

    >>> _declared("DECIMAL(9,2)"), _declared("ENUM('a)', 'b')"), _declared("INTEGER[]")
    ('decimal', 'enum', 'integer[]')
    """
    if not kind.endswith(")"):
        return kind.lower()
    return kind.partition("(")[0].strip().lower()
