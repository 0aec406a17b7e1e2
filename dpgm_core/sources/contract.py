"""Protocols of sources: what a source of records must offer, and what it may offer in addition.

A source either hands out codes, which core counts here (`Source`), or takes core's sums to where the rows are and
returns whole numbers (`ReducingSource`). Core asks for all of these by `isinstance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

from dpgm_core._util.arrays import Codes, IntArray
from dpgm_core._util.locations import Url
from dpgm_core.domain.domain import Domain

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
    """Raw values of some records.

    Parameters
    ----------
    columns : sequence of Arrow arrays
        One for each column.
    malformed : int
        Number of malformed lines that came with them.
    """

    columns: Sequence[Any]
    malformed: int = 0


@runtime_checkable
class Source(Protocol):
    """A source of records: it yields codes in batches, which core alone counts."""

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Yield batches of codes.

        Parameters
        ----------
        domain : Domain
            The meaning of the values.
        columns : sequence of str
            The attributes to read.

        Raises
        ------
        DataError
            Before the first batch, if it cannot.
        """


@runtime_checkable
class KeyedSource(Source, Protocol):
    """A source that can read a person key next to the codes; several rows per person need it."""

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Yield batches of codes, each with the Arrow array of raw person keys (None without a key)."""


@runtime_checkable
class NamedColumns(Protocol):
    """A source whose columns have names that are public, as a file's header is."""

    def names(self) -> tuple[str, ...]:
        """Return the names of its columns without reading a record; DataError if it cannot."""


@runtime_checkable
class RawValues(NamedColumns, Protocol):
    """A source that can show its owner the raw values, for `dpgm validate`."""

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """Yield batches of raw values, one Arrow array for each of the named columns."""


@runtime_checkable
class FileSource(Protocol):
    """A source that reads one file, so that its presence can be checked before anything is paid."""

    @property
    def path(self) -> Path | Url:
        """Where the file is: a local path, or a URL."""


class Reduction(Protocol):
    """A sum over records of whole-numbered vectors, as core's statistics are: plain data that pickles, and pure.

    It sees records as pieces: codes of some persons, all rows of each. Sums of several pieces merge by `+`, in any
    order, to the same bits. A source adds the vectors up and does nothing else with them.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes that it needs, in the order in which `partial` takes their codes."""

    @property
    def cells(self) -> int:
        """The length of the vector."""

    def partial(self, codes: Codes, lengths: IntArray | None) -> IntArray:
        """Return the sum over some persons, (cells,), int64.

        Parameters
        ----------
        codes : sequence of arrays
            The codes of each column.
        lengths : ndarray of int or None
            The number of rows of each person, in order; None: one each.
        """

    def check(self, sums: IntArray) -> None:
        """Raise DataError if a finished sum cannot be one, such as of a block that lost records that others have.

        The message must not say how many records there are.
        """


@runtime_checkable
class Adding(Reduction, Protocol):
    """A reduction that adds to an existing vector; a new wide sum for each piece would take long."""

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add to `sums`, (cells,), what `partial` returns for these persons."""


@runtime_checkable
class Grouped(Reduction, Protocol):
    """A reduction that counts rows by codes, so that an engine may count them in its own way, as by GROUP BY.

    The vector is the cells of each grouping's table one after the other, in row-major order of the codes of its
    columns, and last the number of rows.
    """

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each table."""


@frozen(kw_only=True)
class Reading:
    """What is to be read; known before any record, public, and picklable.

    Parameters
    ----------
    domain : Domain
        The meaning of the values.
    columns : tuple of str
        The attributes that sums will need.
    person : str, optional
        The column of the person key, if several rows may be one person's.
    rows_per_person : int
        The most rows of a person that count, chosen as `PersonSource` says, by the codes of all attributes of the
        domain.
    several : bool
        Whether more than one sum will be computed, so that the codes are worth caching.

    Examples
    --------
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
        """The columns to be read: those of `coded`, followed by the person key."""
        return self.coded if self.person is None else (*self.coded, self.person)


class Pinned(Protocol):
    """A fixed state of the records: every sum is of the same ones, or fails."""

    def reduce(self, reduction: Reduction) -> IntArray:
        """Return the sum over all records, (cells,), each counted once whatever is retried. Raises DataError."""


@runtime_checkable
class ReducingSource(Protocol):
    """A source that sums where the rows are, and returns nothing but sums."""

    def pinned(self, reading: Reading) -> AbstractContextManager[Pinned]:
        """Fix the state of the records while the context is open; what was cached for it is dropped at its end.

        Raises DataError on entering for a column that is missing or of a type that has no codes, whatever the records
        are, and for an engine that cannot be reached. Messages meant for the user are raised as `SourceRefused`.
        """


#: Anything that records are counted from.
AnySource: TypeAlias = Source | ReducingSource
