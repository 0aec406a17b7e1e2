"""Rows: access to records, and subsamples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Protocol

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core._util.progress import Progress, silent
from dpgm_core._util.randomness import Randomness
from dpgm_core.counting.statistic import Piece, Sum, pieces, sum_pieces
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.privacy.accounting import RATE_GRID
from dpgm_core.sources.contract import AnySource, Pinned, Reading, ReducingSource, Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import checked

__all__ = [
    "Elsewhere",
    "Persons",
    "Recoded",
    "Rows",
    "StableRows",
    "Streamed",
    "by_person",
    "draw_subsample",
    "open_rows",
    "pinned",
    "read_persons",
]


# --------------------------------------------------------------------------------------------------
# Access to the records behind sums: read here, in memory as codes, or summed where the rows are; secret


class Rows(Protocol):
    """Records that sums can be taken of."""

    def total(self, statistic: Sum) -> IntArray:
        """The whole sum, (cells,)."""


class StableRows(Rows, Protocol):
    """Records that stay the same throughout a session: codes in memory, or pinned where they are."""

    def recoded(self, codes: Mapping[str, IntArray], domain: Domain) -> StableRows:
        """The same records by fewer codes. codes: attribute -> the new code of each of its codes."""


@frozen
class Streamed:
    """Records that are read anew for each sum."""

    source: Source
    reading: Reading
    progress: Progress = silent

    def total(self, statistic: Sum) -> IntArray:
        """One pass over the records."""
        own = self.reading
        rows = by_person(self.source, own.person, own.rows_per_person)
        return sum_pieces(statistic, pieces(rows, own.domain, statistic.columns), self.progress)


def by_person(source: Source, person: str | None, rows_per_person: int) -> Source:
    """The source with at most so many rows of each person; itself where nobody has several."""
    if person is None:
        return source
    return PersonSource(source=source, person=person, rows_per_person=rows_per_person)  # type: ignore[arg-type] # looks


@frozen
class Elsewhere:
    """Records that stay where they are. codes: attribute -> the new code of each of its codes, where merged since."""

    pinned: Pinned
    codes: Mapping[str, Array]
    _records: list[int] = field(factory=list, repr=False)  # what the first sum that tells says of them

    def total(self, statistic: Sum) -> IntArray:
        """Return the sum that the engine sent back, once it is checked."""
        fewer = {name: self.codes[name] for name in statistic.columns if name in self.codes}
        sums = self.pinned.reduce(Recoded(statistic, fewer) if fewer else statistic)
        if not isinstance(sums, np.ndarray) or sums.dtype != np.int64 or sums.shape != (statistic.cells,):
            raise DataError("the source brought back no vector of whole numbers of the length that was asked for")
        own = np.array(sums, np.int64)  # that nobody else changes, and no subclass of arrays
        statistic.check(own)
        self._check_same(statistic.records(own))
        return own

    def _check_same(self, records: int | None) -> None:
        """Sums of one context are of the same records; one that lost a partition which others have is found so."""
        if records is None:
            return
        if not self._records:
            self._records.append(records)
        if records != self._records[0]:
            raise DataError("the records changed from one pass over them to the next; let nobody write while dpgm runs")

    def recoded(self, codes: Mapping[str, IntArray], domain: Domain) -> Elsewhere:
        """The same records by fewer codes. codes: attribute -> the new code of each of its codes, over `domain`."""
        together = dict(self.codes)
        for name, new in codes.items():
            small = new.astype(code_dtype(domain[name].size))
            together[name] = small[together[name]] if name in together else small
        return Elsewhere(self.pinned, together, self._records)


@frozen
class Recoded(Sum):
    """A sum over the same rows by fewer codes, which are looked up where the rows are.

    codes: attribute -> the new code of each of its codes, in the type that codes of so many have.
    """

    inner: Sum
    codes: Mapping[str, Array]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inner.columns

    @property
    def cells(self) -> int:
        return self.inner.cells

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        fewer = [
            self.codes[name][column] if name in self.codes else column
            for name, column in zip(self.columns, codes, strict=True)
        ]
        self.inner.add(fewer, lengths, sums)

    def check(self, sums: IntArray) -> None:
        self.inner.check(sums)

    def records(self, sums: IntArray) -> int | None:
        return self.inner.records(sums)


@contextmanager
def open_rows(source: AnySource, reading: Reading, progress: Progress = silent) -> Iterator[Rows]:
    """The records of any source for sums: pinned where the source sums itself, else read for each sum."""
    if not isinstance(source, ReducingSource):
        yield Streamed(source, reading, progress)
        return
    with pinned(source, reading) as rows:
        yield rows


@contextmanager
def pinned(source: ReducingSource, reading: Reading) -> Iterator[Elsewhere]:
    """The records of a source that sums them itself, pinned."""
    context = source.pinned(reading)
    still = context.__enter__()
    try:
        yield Elsewhere(still, {})
    finally:  # without the error: its frames may hold counts; and the context cannot swallow it
        context.__exit__(None, None, None)


# --------------------------------------------------------------------------------------------------
# Poisson subsamples of persons, by exact coins
#
# A subsample takes each person with probability q by a coin of its own (32 random bits against an exact threshold),
# with all of the person's rows.


class Persons:
    """Codes read once and kept, the smallest unsigned type each; inside the curator only.

    columns: the attributes. records: how many rows. persons: of how many persons.
    """

    def __init__(self, columns: tuple[str, ...], codes: Codes, lengths: IntArray | None) -> None:
        self.columns = columns
        self._codes, self._lengths = codes, lengths
        self.records = len(codes[0]) if codes else 0
        self.persons = self.records if lengths is None else len(lengths)

    def subsample(self, rate: Fraction, randomness: Randomness) -> list[Piece]:
        """A fresh subsample, in pieces that split no person."""
        if not self.records:
            return []
        if rate == 1:
            return [(self._codes, self._lengths)]
        taken = draw_subsample(self.persons, rate, randomness)
        rows = np.flatnonzero(taken if self._lengths is None else np.repeat(taken, self._lengths))
        lengths = None if self._lengths is None else self._lengths[taken]
        return [([column[rows] for column in self._codes], lengths)]

    def pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        """All of them by some of their columns, as pieces."""
        codes = [self._codes[self.columns.index(name)] for name in columns]
        if self.records:
            yield codes, self._lengths

    def total(self, statistic: Sum) -> IntArray:
        """The whole sum, (cells,)."""
        return sum_pieces(statistic, self.pieces(statistic.columns))

    def recoded(self, codes: Mapping[str, IntArray], domain: Domain) -> Persons:
        """The same persons by fewer codes. codes: attribute -> the new code of each of its codes."""
        columns = [
            codes[name].astype(code_dtype(domain[name].size))[column] if name in codes else column
            for name, column in zip(self.columns, self._codes, strict=True)
        ]
        return Persons(self.columns, columns, self._lengths)

    def first_of(self, draws: int) -> Persons:
        """The first of so many records in a row; itself for one."""
        return self if draws == 1 else Persons(self.columns, [codes[::draws] for codes in self._codes], None)

    def __repr__(self) -> str:
        return "Persons(hidden)"


def read_persons(source: Source, domain: Domain, columns: Sequence[str]) -> Persons:
    """Read the named columns of all records. A PersonSource keeps persons together; else each row is a person."""
    if isinstance(source, PersonSource):
        return Persons(tuple(columns), *source.grouped(domain, columns))
    empty = [np.zeros(0, code_dtype(domain[name].size)) for name in columns]  # no batch at all is no record
    batches = [empty, *checked(source, domain, columns)]
    return Persons(tuple(columns), [np.concatenate(parts) for parts in zip(*batches, strict=True)], None)


def draw_subsample(count: int, rate: Fraction, randomness: Randomness) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """`count` independent coins that show True with probability `rate`, a multiple of 2^-32, exactly."""
    threshold = int(rate * RATE_GRID)
    if threshold == RATE_GRID:
        return np.ones(count, np.bool_)
    halves = randomness.words((count + 1) // 2).view(np.uint32)[:count]
    return np.asarray(halves < np.uint32(threshold))
