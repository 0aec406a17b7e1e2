"""Poisson subsamples of persons, by exact coins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpgm_core.arrays import Codes, IntArray
from dpgm_core.counting.kernel import plan_counting
from dpgm_core.privacy.accounting import RATE_GRID
from dpgm_core.randomness import Randomness
from dpgm_core.sources.contract import Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import checked
from dpgm_core.structure import Structure

__all__ = ["MemoryRows", "Piece", "Rows", "StreamedRows", "coins", "read_rows"]

#: Codes of some persons, all rows of each, and each person's number of rows (None: one row each).
Piece = tuple[Codes, IntArray | None]


class Rows(Protocol):
    """The records as rounds need them; inside the curator only."""

    columns: tuple[str, ...]
    records: int

    def pieces(self, rate: Fraction, randomness: Randomness) -> Iterator[Piece]:
        """A fresh subsample, in pieces that split no person."""
        ...


class MemoryRows:
    """Codes read once and kept, the smallest unsigned type each."""

    def __init__(self, columns: tuple[str, ...], pieces: Sequence[Piece]) -> None:
        self.columns = columns
        self._codes = [np.concatenate(parts) for parts in zip(*(codes for codes, _ in pieces), strict=True)]
        persons = [lengths for _, lengths in pieces if lengths is not None]
        self._lengths = np.concatenate(persons) if persons else None
        self.records = len(self._codes[0]) if self._codes else 0

    def pieces(self, rate: Fraction, randomness: Randomness) -> Iterator[Piece]:
        """The subsample in one piece."""
        if self.records:
            yield _taken((self._codes, self._lengths), rate, randomness)

    def __repr__(self) -> str:
        return "MemoryRows(hidden)"


class StreamedRows:
    """Codes read afresh for each round: memory is that of a batch (with a person key, that of `PersonSource`)."""

    def __init__(self, columns: tuple[str, ...], read: Callable[[], Iterator[Piece]]) -> None:
        self.columns = columns
        self._read = read
        self.records = sum(len(codes[0]) for codes, _ in read())

    def pieces(self, rate: Fraction, randomness: Randomness) -> Iterator[Piece]:
        """The subsample, batch by batch."""
        for piece in self._read():
            yield _taken(piece, rate, randomness)

    def __repr__(self) -> str:
        return "StreamedRows(hidden)"


def read_rows(source: Source, structure: Structure, *, stream: bool) -> Rows:
    """Read the columns that a structure needs. A PersonSource keeps persons together; else each row is a person."""
    columns = plan_counting(structure).columns

    def read() -> Iterator[Piece]:
        if isinstance(source, PersonSource):
            yield source.grouped(structure.domain, columns)
        else:
            for codes in checked(source, structure.domain, columns):
                yield codes, None

    if stream:
        return StreamedRows(columns, read)
    return MemoryRows(columns, list(read()))


def coins(count: int, rate: Fraction, randomness: Randomness) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """`count` independent coins that show True with probability `rate`, a multiple of 2^-32, exactly.

    >>> from dpgm_core.randomness import SeededRandomness
    >>> coins(3, Fraction(1), SeededRandomness(1)).tolist()
    [True, True, True]
    """
    threshold = int(rate * RATE_GRID)
    if threshold == RATE_GRID:
        return np.ones(count, np.bool_)
    halves = randomness.words((count + 1) // 2).view(np.uint32)[:count]
    return np.asarray(halves < np.uint32(threshold))


def _taken(piece: Piece, rate: Fraction, randomness: Randomness) -> Piece:
    codes, lengths = piece
    if rate == 1:
        return piece
    persons = coins(len(codes[0]) if lengths is None else len(lengths), rate, randomness)
    rows = np.flatnonzero(persons if lengths is None else np.repeat(persons, lengths))
    return [column[rows] for column in codes], None if lengths is None else lengths[persons]
