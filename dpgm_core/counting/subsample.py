"""Poisson subsamples of persons, by exact coins.

A subsample takes each person with probability q by a coin of its own (32 random bits against an exact threshold), with
all of the person's rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpgm_core.arrays import Codes, IntArray
from dpgm_core.attribute import code_dtype
from dpgm_core.counting.statistic import Piece, Sum, summed
from dpgm_core.domain import Domain
from dpgm_core.privacy.accounting import RATE_GRID
from dpgm_core.randomness import Randomness
from dpgm_core.sources.contract import Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import checked

__all__ = ["Persons", "coins", "read_persons"]


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
        taken = coins(self.persons, rate, randomness)
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
        return summed(statistic, self.pieces(statistic.columns))

    def recoded(self, codes: Mapping[str, IntArray], domain: Domain) -> Persons:
        """The same persons by fewer codes. codes: attribute -> the new code of each of its codes."""
        columns = [
            codes[name].astype(code_dtype(domain[name].size))[column] if name in codes else column
            for name, column in zip(self.columns, self._codes, strict=True)
        ]
        return Persons(self.columns, columns, self._lengths)

    def __repr__(self) -> str:
        return "Persons(hidden)"


def read_persons(source: Source, domain: Domain, columns: Sequence[str]) -> Persons:
    """Read the named columns of all records. A PersonSource keeps persons together; else each row is a person."""
    if isinstance(source, PersonSource):
        return Persons(tuple(columns), *source.grouped(domain, columns))
    empty = [np.zeros(0, code_dtype(domain[name].size)) for name in columns]  # no batch at all is no record
    batches = [empty, *checked(source, domain, columns)]
    return Persons(tuple(columns), [np.concatenate(parts) for parts in zip(*batches, strict=True)], None)


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
