"""Records in a database: streamed as Arrow batches, or counted there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal

import pyarrow as pa
from attrs import field, frozen

from dpgm_core import Codes, Domain, OptionError
from dpgm_core.sources import Pinned, RawBatch, Reading, Shipped, SourceRefused, as_source
from dpgm_sql.address import Address, is_place, looked_up, read_address
from dpgm_sql.dialect import Column, Dialect
from dpgm_sql.grouping import PAYS, plan
from dpgm_sql.opening import opened
from dpgm_sql.pinned import Counted, Streamed
from dpgm_sql.session import Session, Table
from dpgm_sql.values import CELLS

__all__ = ["SqlSource"]


def _written(instance: object, attribute: Any, value: object) -> None:
    if value is not None:
        read_address(value)


def _names(value: object) -> tuple[str, ...]:
    parts = (
        tuple(value.split(".")) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    )
    if not 1 <= len(parts) <= 2 or not all(isinstance(part, str) and part and "\0" not in part for part in parts):
        raise OptionError("table must be a name, 'schema.name', or a list of the two where a name has a dot in it")
    return parts


def _seconds(instance: object, attribute: Any, value: object) -> None:
    # No isfinite, which makes floats of whole numbers, and fails at large ones.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise OptionError(f"timeout must be a number of seconds above 0, got {value!r:.40}")
    if value > _MAX_TIMEOUT:
        raise OptionError(f"timeout must be at most {_MAX_TIMEOUT} seconds, that is 20 days")


def _way(instance: object, attribute: Any, value: object) -> None:
    if value not in ("auto", "stream", "push"):
        raise OptionError(f"count must be 'auto', 'stream' or 'push', got {value!r:.40}")


#: What SQLite looks for in the name of a type that makes floats of whole numbers.
_FLOATS = ("real", "floa", "doub")
#: A server takes whole milliseconds in 32 bits.
_MAX_TIMEOUT = 20 * 86_400


@frozen(kw_only=True)
class SqlSource:
    """A table or view of a DuckDB, SQLite or PostgreSQL database; read only, all passes of one moment.

    An address that is written here must hold no password: it stands in specs and provenance. One with a password is
    looked up under `address_from` when it is needed, and kept nowhere.

    >>> SqlSource(database="duckdb:///visits.db", table="visits").table
    ('visits',)
    """

    # `object`, since a refusal of another type by the shared converter would quote what may hold a password.
    database: Any = field(
        default=None,
        validator=_written,
        metadata={"help": "duckdb:///FILE, sqlite:///FILE or postgresql://HOST/DATABASE, without a password"},
    )
    # A text first: the shared converter would take one for a list of its letters.
    table: str | tuple[str, ...] = field(
        converter=_names, metadata={"help": "the table or view: 'name' or 'schema.name', or a list of the two"}
    )
    address_from: Any = field(
        default=None,
        metadata={"help": "where the whole address is looked up instead: 'env:NAME' or 'keyring:SERVICE/USER'"},
    )
    count: Literal["auto", "stream", "push"] = field(
        default="auto",
        validator=_way,
        metadata={"help": "stream rows and count them here, push counts down as GROUP BY, or whichever is possible"},
    )
    timeout: float = field(
        default=3600, validator=_seconds, metadata={"help": "the longest that one query may take", "unit": "seconds"}
    )

    def __attrs_post_init__(self) -> None:
        if (self.database is None) == (self.address_from is None):
            raise OptionError("give one of database and address_from, which says where an address with a password is")
        if self.address_from is not None:
            _check_place(self.address_from)

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Codes of the named columns. Raises SourceRefused."""
        return (codes for codes, _ in self.keyed_batches(domain, columns, None))

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`)."""
        with self._reading([*columns, *([] if key is None else [key])], key) as reader:
            source: Any = as_source(reader)
            yield from source.keyed_batches(domain, columns, key)

    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        with self._opened() as (session, table):
            return tuple(column.name for column in session.named(table))

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The raw values of the named columns."""
        with self._reading(columns) as reader:
            for batch in reader:
                yield RawBatch([batch.column(name) for name in columns])

    @contextmanager
    def pinned(self, reading: Reading) -> Iterator[Pinned]:
        """The records as they are when this is entered; every sum is of them, whoever writes meanwhile."""
        with self._opened() as (session, table):
            columns = _columns(session, table, reading.names)
            _check_types(columns, reading)
            streamed = Streamed(session, table, columns, reading)
            pushed = None
            if self.count == "push" or (self.count == "auto" and session.engine in PAYS):
                dialect = Dialect(engine=session.engine, table=table.quoted)
                pushed = plan(reading, columns, dialect, utf8=session.utf8)
            if pushed is None and self.count == "push":
                raise SourceRefused(
                    f"count = 'push': {session.engine} cannot count these columns exactly as they are counted here: a "
                    "person key, or a type or rule of matching that SQL has no like of; leave count out, or 'stream'"
                )
            try:
                yield streamed if pushed is None else Counted(session, pushed, streamed)
            finally:
                streamed.leave()

    def _address(self) -> Address:
        return read_address(self.database) if self.address_from is None else looked_up(self.address_from)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Session, Table]]:
        with closing(opened(self._address(), self.timeout)) as session:
            yield session, session.table(self.table)

    @contextmanager
    def _reading(self, names: Sequence[str], key: str | None = None) -> Iterator[Any]:
        with self._opened() as (session, table):
            columns = _columns(session, table, names)
            _check_key(columns, key)
            schema = pa.schema([pa.field(column.name, column.kind) for column in columns])
            yield pa.RecordBatchReader.from_batches(schema, session.batches(table, columns))


def _columns(session: Session, table: Table, names: Sequence[str]) -> list[Column]:
    """The columns of these names, each once. Of those that are present none is listed or suggested."""
    present = {column.name: column for column in session.named(table)}
    for name in names:
        if name not in present:
            raise SourceRefused(
                f"{table.where} has no column {name!r}; for the owner's eyes, dpgm validate shows those it has"
            )
    return session.columns(table, [present[name] for name in dict.fromkeys(names)])


def _check_types(columns: Sequence[Column], reading: Reading) -> None:
    """Refuse types that have no codes, in words that may be shown, before any record is read."""
    Shipped(reading=reading).check(pa.schema([pa.field(column.name, column.kind) for column in columns]))
    _check_key(columns, reading.person)


def _check_key(columns: Sequence[Column], key: str | None) -> None:
    """Refuse a key of floats in SQLite, which makes floats of all numbers in such a column."""
    for column in columns:
        if column.name == key and column.kind == CELLS and any(part in column.declared for part in _FLOATS):
            raise SourceRefused(
                f"person key {key!r} is a column of floats, in which large numbers merge; give texts or whole numbers"
            )


def _check_place(value: object) -> None:
    if not is_place(value):
        raise OptionError("address_from must be 'env:NAME' or 'keyring:SERVICE/USER'")
