"""A session with a database: what each engine offers the source, and the time that one query may take."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from attrs import field, frozen

from dpgm_core.sources import SourceRefused
from dpgm_sql.dialect import Column, Engine, quoted

__all__ = [
    "BATCH_ROWS",
    "FAILED",
    "LOST",
    "Clock",
    "Named",
    "Session",
    "Table",
    "driver",
    "guarded",
    "heard",
    "unreadable",
]

T = TypeVar("T")

#: Rows of one batch: those of core, or fewer, where each value is an object of Python first.
BATCH_ROWS = 2**17
#: Seconds.
_PATIENCE = 0.1
LOST = "the connection to the database was lost, or ended by its operator, while records were read; try again"
FAILED = (
    "the database cannot read the table: a view of it may fail on a value, be out of date, or read another file (the "
    "database's own words are withheld, as they may quote records; ask it yourself, for the owner's eyes)"
)


@frozen(kw_only=True)
class Table:
    """A table or view that exists: its own name, the whole one in quotes, and how messages call it."""

    name: str
    quoted: str
    where: str

    @classmethod
    def of(cls, names: Sequence[str]) -> Table:
        """The table of these names (schema, table).

        >>> Table.of(["main", "visits"]).quoted
        '"main"."visits"'
        """
        return cls(name=names[-1], quoted=".".join(map(quoted, names)), where=f"table {'.'.join(names)}")


@frozen(kw_only=True)
class Named:
    """A column as the engine's catalogue has it: name, and type in the engine's own words."""

    name: str
    declared: str


class Session(Protocol):
    """One connection that can only read, in one transaction: all that it reads is of one moment."""

    @property
    def engine(self) -> Engine:
        """The engine."""
        ...

    def table(self, names: Sequence[str]) -> Table:
        """The table or view of these names (schema, table). Raises SourceRefused if there is none, or no right."""
        ...

    def named(self, table: Table) -> list[Named]:
        """All columns of a table, in their order."""
        ...

    def columns(self, table: Table, named: Sequence[Named]) -> list[Column]:
        """Return how columns are read. Raises SourceRefused for a type that has no codes; no record is read."""
        ...

    def batches(self, table: Table, columns: Sequence[Column]) -> Iterator[Any]:
        """All rows, as Arrow record batches of these columns, one pass. Raises SourceRefused."""
        ...

    def counted(self, query: str) -> Any:
        """Return the result of a query of whole numbers, an Arrow table that fits into memory. Raises SourceRefused."""
        ...

    @property
    def utf8(self) -> bool:
        """Whether the database holds texts in UTF-8, so that SQL compares them as they are read here."""
        ...

    def close(self) -> None:
        """Give up the transaction and the connection; never fails."""
        ...


@frozen
class Clock:
    """The longest that one query may take. seconds: of wall time."""

    seconds: float
    _started: list[float] = field(init=False, factory=list, repr=False, eq=False)

    @property
    def refusal(self) -> SourceRefused:
        """The error for a query that runs out of time."""
        return SourceRefused(
            f"one query over the table took longer than timeout = {self.seconds:g} seconds; give a longer timeout, or "
            "ask for fewer tables at once"
        )

    @contextmanager
    def running(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Calls `interrupt` when time is up, from another thread."""
        self._started[:] = [time.monotonic()]
        timer = threading.Timer(self.seconds, self._end, [interrupt])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end(self, interrupt: Callable[[], None]) -> None:
        with suppress(Exception):  # closed meanwhile: there is nothing to stop
            interrupt()

    @property
    def late(self) -> bool:
        """Whether the last query has run for all of its time, or nearly: a server's clock may be ahead."""
        return any(time.monotonic() - start >= 0.98 * self.seconds for start in self._started)


def driver(module: str, what: str, extra: str) -> Any:
    """A driver's module, loaded when it is needed. Raises SourceRefused with what to install.

    >>> driver("no_such_driver", "driver of Oracle", "oracle")
    Traceback (most recent call last):
    dpgm_core.errors.SourceRefused: no driver of Oracle is installed; run: pip install 'dpgm-sql[oracle]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        pass
    raise SourceRefused(f"no {what} is installed; run: pip install 'dpgm-sql[{extra}]'")


def guarded(call: Callable[[], T], refusal: Callable[[BaseException], str | SourceRefused]) -> T:
    """The result of `call`; what a driver raises becomes a SourceRefused, without its text, context or frames."""
    try:
        return call()
    except SourceRefused:
        raise
    except Exception as error:  # whatever it is, its text may hold a record or a password
        said = refusal(error)
    raise said if isinstance(said, SourceRefused) else SourceRefused(said)


def heard(call: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """The result of `call`, which may run for long outside of Python; Ctrl-C ends it by `interrupt`.

    Python hears of Ctrl-C in the main thread alone, and between its own instructions: so that one waits, and another
    thread calls.

    >>> heard(lambda: 7, lambda: None)
    7
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: list[T] = []
    raised: list[BaseException] = []

    # Not `join`, which after Ctrl-C takes a thread that runs for one that has ended.
    ended = threading.Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # for the other thread to raise
            raised.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, daemon=True).start()
    try:
        while not ended.wait(_PATIENCE):
            pass
    finally:
        while not ended.is_set():  # again and again, should it not have begun
            with suppress(Exception):  # there may be nothing to stop any more
                interrupt()
            ended.wait(_PATIENCE)
    if raised:
        raise raised.pop()
    return results.pop()


def unreadable(table: Table, column: Named) -> SourceRefused:
    """Return the error for a column whose type has no codes."""
    return SourceRefused(
        f"column {column.name!r} of {table.where} is of type {column.declared}, whose values have no labels; make a "
        "view that casts it to a text, a number or a date"
    )
