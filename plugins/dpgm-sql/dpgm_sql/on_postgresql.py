"""PostgreSQL, through the driver of ADBC, which streams COPY: one read-only transaction, one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from attrs import field, frozen

from dpgm_core.sources import SourceRefused
from dpgm_sql.address import Address, with_settings
from dpgm_sql.dialect import Column, Engine, quoted
from dpgm_sql.session import FAILED, LOST, Clock, Named, Table, driver, guarded, heard, unreadable
from dpgm_sql.values import CELLS, numbers

__all__ = ["PostgreSql", "open_postgresql"]

#: A server that does not answer is given up after so many seconds, and one that falls silent soon after.
_CONNECT_SECONDS = 10
_ALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}
#: Bytes of a batch, of which the driver would take four times as many.
_BATCH = {"adbc.postgresql.batch_size_hint_bytes": str(2**22)}
_PLAIN = {
    *("boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "character varying", "bytea"),
    *("date", "time without time zone", "timestamp without time zone", "timestamp with time zone"),
}
#: What the server compiles (JIT) it also optimises, by default at five times the cost alone; the codes of a row then
#: take half the time. What its operator has switched off stays off.
_OPTIMISED = """
SELECT pg_catalog.set_config(s.name, least.setting, false)
FROM pg_catalog.pg_settings s, pg_catalog.pg_settings least
WHERE s.name IN ('jit_inline_above_cost', 'jit_optimize_above_cost') AND least.name = 'jit_above_cost'
    AND CAST(s.setting AS pg_catalog.float8) > CAST(least.setting AS pg_catalog.float8)
"""
#: Longer queries, in letters, are interpreted: compiling one of 60,000 takes 6 s in each process.
_MAX_COMPILED = 10_000
_COMPILING = "SELECT pg_catalog.set_config(name, {}, true) FROM pg_catalog.pg_settings WHERE name = 'jit'"
#: What is read in another way than as it is: char(n) loses the blanks it was filled with, numbers their last zeros.
_READS = {
    **dict.fromkeys(("character", "name", "uuid", "enum"), "CAST({} AS pg_catalog.text)"),
    "numeric": "CAST(pg_catalog.trim_scale({}) AS pg_catalog.text)",
    "oid": "CAST({} AS pg_catalog.int8)",
}
#: A domain is of the type below it; a type that is not the server's own is an enum, or has no labels.
_COLUMNS = """
WITH RECURSIVE below(number, name, type) AS (
    SELECT attnum, attname, atttypid FROM pg_catalog.pg_attribute
    WHERE attrelid = pg_catalog.to_regclass({table}) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT number, name, typbasetype FROM below JOIN pg_catalog.pg_type t ON t.oid = type WHERE typtype = 'd'
)
SELECT CAST(name AS pg_catalog.text),
    CASE WHEN typtype = 'e' THEN 'enum' WHEN nspname = 'pg_catalog' THEN pg_catalog.format_type(type, NULL)
    ELSE 'a type of its own' END
FROM below JOIN pg_catalog.pg_type t ON t.oid = type JOIN pg_catalog.pg_namespace n ON n.oid = typnamespace
WHERE typtype <> 'd' ORDER BY number
"""


def open_postgresql(address: Address, seconds: float) -> PostgreSql:
    """A session with a server of PostgreSQL. Raises SourceRefused if it cannot be had in time."""
    dbapi = driver("adbc_driver_postgresql.dbapi", "driver of PostgreSQL", "postgresql")
    uri = with_settings(
        address.target, {"connect_timeout": str(_CONNECT_SECONDS), "application_name": "dpgm", **_ALIVE}
    )
    refusal = (
        f"no connection to {address.where}: see that the server runs, and whether host, port, database, user and "
        "password are right (the last in ~/.pgpass, PGPASSWORD, or with address_from in the environment or a keyring)"
    )
    session = PostgreSql(guarded(lambda: dbapi.connect(uri, autocommit=True), lambda _: refusal), Clock(seconds))
    try:
        for command in (
            "SET client_encoding = 'UTF8'",
            "SET standard_conforming_strings = on",
            "SET client_min_messages = error",  # what a view's functions say may quote a record
            "SET TIME ZONE 'UTC'",
            f"SET statement_timeout = {max(1, round(1000 * seconds))}",
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            "SELECT 1",  # the first query is what takes the snapshot
        ):
            session.done(command)
        session.read(_OPTIMISED)
    except BaseException:
        session.close()
        raise
    return session


@frozen(eq=False, repr=False)
class PostgreSql:
    """A session with a server of PostgreSQL; see `Session`."""

    connection: Any
    clock: Clock
    _cursors: list[Any] = field(init=False, factory=list)

    @property
    def engine(self) -> Engine:
        """Its name."""
        return "postgresql"

    def table(self, names: Sequence[str]) -> Table:
        """The table or view of these names; without a schema it is looked for as the user's search_path says."""
        table = Table.of(names)
        if self._rows(f"SELECT CAST(pg_catalog.to_regclass({_text(table.quoted)}) AS pg_catalog.int8)")[0][0] is None:
            raise SourceRefused(f"the database has no {table.where}, or none that this user can see")
        return table

    def named(self, table: Table) -> list[Named]:
        """All columns, with their types in the words of SQL."""
        rows = self._rows(_COLUMNS.format(table=_text(table.quoted)))
        return [Named(name=name, declared=declared) for name, declared in rows]

    def columns(self, table: Table, named: Sequence[Named]) -> list[Column]:
        """Return how columns are read, each as its own type, as text, or as a union."""
        reads = []
        for column in named:
            if column.declared not in _PLAIN | set(_READS):
                raise unreadable(table, column)
            reads.append(_READS.get(column.declared, "{}").format(quoted(column.name)))
        schema: list[Any] = []
        if reads:
            with self._query(f"{_select(table, reads)} LIMIT 0") as (reader, _):
                schema = reader.schema.types
        return [
            Column(name=one.name, declared=one.declared, read=read, kind=CELLS if one.declared == "numeric" else kind)
            for one, read, kind in zip(named, reads, schema, strict=True)
        ]

    def batches(self, table: Table, columns: Sequence[Column]) -> Iterator[Any]:
        """All rows, as the server sends them."""
        schema = pa.schema([pa.field(column.name, column.kind) for column in columns])
        with self._query(_select(table, [column.read for column in columns])) as (reader, stop):
            while (batch := guarded(lambda: heard(lambda: next(reader, None), stop), self._failed)) is not None:
                if self.clock.late:
                    raise self.clock.refusal
                arrays = [
                    numbers(array) if column.kind == CELLS else array
                    for column, array in zip(columns, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def counted(self, query: str) -> Any:
        """Return the result of a query of whole numbers."""
        self.read(_COMPILING.format("reset_val" if len(query) <= _MAX_COMPILED else "'off'"))
        return self.read(query)

    @property
    def utf8(self) -> bool:
        """Whether the database is in UTF-8; rows are sent in UTF-8 in any case."""
        return self._rows("SELECT pg_catalog.current_setting('server_encoding')") == [("UTF8",)]

    def done(self, command: str) -> None:
        """Run a command that gives nothing."""
        with self._query(command):
            pass

    def read(self, query: str) -> Any:
        """Return all that a query gives, an Arrow table."""
        with self._query(query) as (reader, stop):
            return guarded(lambda: heard(reader.read_all, stop), self._failed)

    def close(self) -> None:
        """Close the connection, and with it the transaction; what still streams ends first."""
        for cursor in [*self._cursors, self.connection]:
            with suppress(Exception):  # nothing depends on it any more
                cursor.close()

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in self.read(query).columns), strict=True))

    @contextmanager
    def _query(self, query: str) -> Iterator[tuple[Any, Any]]:
        """A reader of what a query gives, and what ends it."""
        cursor = guarded(self.connection.cursor, self._failed)
        self._cursors.append(cursor)
        try:
            guarded(lambda: cursor.adbc_statement.set_options(**_BATCH), self._failed)
            stop = cursor.adbc_cancel
            with self.clock.running(stop):
                # Which would itself hear of Ctrl-C in the main thread, and raise an error like any other.
                guarded(lambda: heard(lambda: cursor.execute(query), stop), self._failed)
                reader = guarded(cursor.fetch_record_batch, self._failed)
                try:
                    yield reader, stop
                finally:
                    with suppress(Exception):  # the server may be gone
                        reader.close()
        finally:
            self._cursors.remove(cursor)
            with suppress(Exception):
                cursor.close()

    def _failed(self, error: BaseException) -> str | SourceRefused:
        state = getattr(error, "sqlstate", None) or ""
        if self.clock.late:
            return self.clock.refusal
        if state == "57014":  # the server's own clock, which is set alike, or somebody's hand
            return f"the query was ended by the server, as after timeout = {self.clock.seconds:g} seconds; try again"
        if state == "42501":
            return "this user of the database may not read the table, or what is below its view; ask for the right"
        if state.startswith(("08", "57P")) or (not state and not self._alive()):
            return LOST
        return FAILED

    def _alive(self) -> bool:
        """Whether the server still answers: what fails in the middle of a stream comes without a state."""
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except Exception as error:
            return getattr(error, "sqlstate", None) is not None  # "current transaction is aborted" is an answer
        return True


def _select(table: Table, reads: Sequence[str]) -> str:
    named = ", ".join(f"{read} AS c{number}" for number, read in enumerate(reads))
    return f"SELECT {named} FROM {table.quoted}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
