"""What a source of records must offer, and what it may offer besides; core asks for that by `isinstance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attrs import frozen

from dpgm_core.arrays import Codes
from dpgm_core.domain import Domain

__all__ = ["FileSource", "KeyedSource", "NamedColumns", "RawBatch", "RawValues", "Source"]


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
    def path(self) -> Path:
        """Where the file is."""
        ...
