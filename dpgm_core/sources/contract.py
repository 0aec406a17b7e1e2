"""What a source of records must offer, and what it may offer besides; core asks for that by `isinstance`.

A source either hands out codes, which core counts here (`Source`), or takes core's sums to where the rows are and
brings back whole numbers (`ReducingSource`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

from dpgm_core.arrays import Codes, IntArray
from dpgm_core.domain import Domain
from dpgm_core.places import Url

__all__ = [
    "Adding",
    "AnySource",
    "FileSource",
    "Grouped",
    "KeyedSource",
    "NamedColumns",
    "Pinned",
    "RawBatch",
    "RawValues",
    "Reading",
    "ReducingSource",
    "Reduction",
    "Source",
]


@frozen(repr=False)
class RawBatch:
    """Raw values of some records, one Arrow array per column, and how many malformed lines came with them."""

    columns: Sequence[Any]
    malformed: int = 0


@runtime_checkable
class Source(Protocol):
    """Where records are read; it yields codes in batches, counting is core's alone."""

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Batches of codes for the named columns; raises DataError before the first batch if it cannot."""
        ...


@runtime_checkable
class KeyedSource(Source, Protocol):
    """A source that can read a person key next to the codes; several rows per person need it."""

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Batches of codes, each with the Arrow array of raw person keys (None without a key)."""
        ...


@runtime_checkable
class NamedColumns(Protocol):
    """A source whose columns have names that are public, as a file's header is."""

    def names(self) -> tuple[str, ...]:
        """The names of its columns, found without reading a record; raises DataError if it cannot."""
        ...


@runtime_checkable
class RawValues(NamedColumns, Protocol):
    """A source that can show its owner the values as they stand, for `dpgm validate`."""

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """Batches of raw values, one Arrow array for each of the named columns."""
        ...


@runtime_checkable
class FileSource(Protocol):
    """A source that reads one file, whose presence can be looked at before anything is paid."""

    @property
    def path(self) -> Path | Url:
        """Where the file is: a local path, or a URL."""
        ...


class Reduction(Protocol):
    """A sum over records of whole-numbered vectors, as core's statistics are: plain data that pickles, and pure.

    It sees records as pieces: codes of some persons, all rows of each. Sums of several pieces merge by `+`, in any
    order, to the same bits. What a source does with the vectors besides adding them up is none of its business.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it needs, in the order in which `partial` takes their codes."""
        ...

    @property
    def cells(self) -> int:
        """The length of the vector."""
        ...

    def partial(self, codes: Codes, lengths: IntArray | None) -> IntArray:
        """The sum over some persons, (cells,), int64. lengths: rows of each person, in order; None: one each."""
        ...

    def check(self, sums: IntArray) -> None:
        """Raise DataError if a finished sum cannot be one, such as of a block that lost records others have.

        Of what it is told no word says how many records there are.
        """
        ...


@runtime_checkable
class Adding(Reduction, Protocol):
    """A reduction that adds to a vector that is there, as all of core's do: of a wide sum another one for each piece
    takes long."""

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add to `sums`, (cells,), what `partial` gives for these persons."""
        ...


@runtime_checkable
class Grouped(Reduction, Protocol):
    """A reduction that counts rows by codes, so that an engine may count them in its own way, as by GROUP BY.

    The vector is the cells of each grouping's table one after the other, in row-major order of the codes of its
    columns, and last the number of rows.
    """

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each table."""
        ...


@frozen(kw_only=True)
class Reading:
    """What is to be read, known before any record is: public, and picklable.

    domain: what the values mean. columns: the attributes that sums will ask for. person: the key's column, if several
    rows may be one person's; then at most rows_per_person rows of each count, chosen as `PersonSource` says, which
    takes the codes of all of the domain. several: more than one sum will be asked for, so what is read is worth
    keeping.

    >>> reading = Reading(domain=Domain.from_sizes({"a": 2, "b": 2}), columns=("b",), person="id")
    >>> reading.coded, reading.names
    (('a', 'b'), ('a', 'b', 'id'))
    """

    domain: Domain
    columns: tuple[str, ...]
    person: str | None = None
    rows_per_person: int = 1
    several: bool = False

    @property
    def coded(self) -> tuple[str, ...]:
        """The attributes whose codes are needed: which rows of a person count depends on all."""
        return self.columns if self.person is None else self.domain.names

    @property
    def names(self) -> tuple[str, ...]:
        """The columns to be read: those of `coded`, and the person key behind them."""
        return self.coded if self.person is None else (*self.coded, self.person)


class Pinned(Protocol):
    """Records as they were when they were pinned: every sum is of the same ones, or fails."""

    def reduce(self, reduction: Reduction) -> IntArray:
        """The sum over all records, (cells,), each counted once whatever is tried again. Raises DataError."""
        ...


@runtime_checkable
class ReducingSource(Protocol):
    """A source that sums where the rows are, and brings back nothing but sums."""

    def pinned(self, reading: Reading) -> AbstractContextManager[Pinned]:
        """The records, held still while the context is open; what was kept for it is dropped at its end.

        Raises DataError for a column that is missing or of a type that has no codes, whatever the records are, and for
        an engine that cannot be reached, when it is entered. Words meant for the user are raised as `SourceRefused`.
        """
        ...


#: Anything that records are counted from.
AnySource: TypeAlias = Source | ReducingSource
