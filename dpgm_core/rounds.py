"""Rounds: fresh Poisson subsamples of persons, counted or scored, for many noisy releases under one charge.

A subsample takes each person with probability q by a coin of its own (32 random bits against an exact threshold), with
all of the person's rows. Rows are read once and kept as compact codes, or read afresh each round (`stream`). What is
summed is whole-numbered: cell counts, or scores T(x) - mu clipped per person and truncated to a public grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Protocol

import numpy as np
from attrs import field, frozen

from dpgm_core import counting
from dpgm_core.accounting import RATE_GRID
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.measuring import add_noise
from dpgm_core.privacy import Amount, Neighbours, Sensitivity, amount, whole
from dpgm_core.protocols import Beliefs, Codes, Noise, Randomness, Source
from dpgm_core.releases import NoisyTables
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import checked
from dpgm_core.structure import Structure
from dpgm_core.tables import Array, FloatArray, IntArray

__all__ = ["ClippedScore", "LiveRounds", "Rows", "clipped_sum", "coins", "read_rows"]

# Persons are scored so many cells at a time, about 32 MB of doubles.
_CHUNK = 2**22
# Squares of scores and their sums are exact in doubles below it.
_MOST_UNITS = 2**26

#: Codes of some persons, all rows of each, and each person's number of rows (None: one row each).
Piece = tuple[Codes, IntArray | None]


def _norm(value: Amount) -> Fraction:
    return amount("the clip norm", value)


@frozen(kw_only=True)
class ClippedScore:
    """A person's contribution to a round: the score sum over rows of (T(x) - mu), clipped (Abadi et al. 2016, Alg. 1).

    The score g is scaled by min(1, norm / |g|), then each coordinate is truncated *towards zero* to the grid 1/D, so
    its L2 norm can only shrink: in units of 1/D a person moves the sum by an integer vector of norm at most norm * D.
    norm: records, positive. grid: D, a whole number.

    >>> ClippedScore(norm=2, grid=100).sensitivity(9, "add-remove")
    Sensitivity(l0=9, l1=600, l2_squared=40000, linf=200)
    """

    norm: Fraction = field(converter=_norm)
    grid: int = 1024

    def __attrs_post_init__(self) -> None:
        whole("the grid of clipped scores", self.grid, least=1, most=_MOST_UNITS)
        if not 1 <= self.norm * self.grid <= _MOST_UNITS:
            raise BudgetError(
                f"a clip norm of {float(self.norm):g} on a grid of 1/{self.grid} is {float(self.norm * self.grid):g} "
                f"units, which must lie between 1 and 2**26; choose another grid"
            )

    def sensitivity(self, cells: int, neighbours: Neighbours | str) -> Sensitivity:
        """What one person can change in the sum, in units of 1/D; replace-one doubles the norms.

        cells: of all tables together. L1 <= sqrt(cells) L2.
        """
        factor = 1 if Neighbours.of(neighbours) is Neighbours.ADD_REMOVE else 2
        squared = math.floor((self.norm * self.grid) ** 2)
        return Sensitivity(
            l0=cells,
            l1=factor * math.isqrt(cells * squared),
            l2_squared=factor**2 * squared,
            linf=factor * math.isqrt(squared),
        )


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
    columns = counting.plan_counting(structure).columns

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


def cell_numbers(structure: Structure, columns: Sequence[str], codes: Codes) -> IntArray:
    """(cliques, rows): the cell of the tables' buffer that each row hits, clique by clique, ties included."""
    place = dict(zip(columns, codes, strict=True))
    sizes = structure.domain.sizes
    rows = len(codes[0])
    numbers = []
    for group, cells in zip(structure.groups, structure.slices, strict=True):
        for clique in group:
            number = np.zeros(rows, np.int64)
            for name in clique:
                number *= sizes[name]
                number += place[name]
            number += cells.start
            numbers.append(number)
    return np.array(numbers, np.int64).reshape(len(numbers), rows)


def clipped_sum(cells: IntArray, lengths: IntArray | None, mu: FloatArray, clip: ClippedScore) -> IntArray:
    """Sum over persons of the clipped, truncated score, (all cells,), units of 1/D.

    cells: (cliques, rows) from `cell_numbers`. lengths: rows of each person, in order; None: one each. mu: (all
    cells,), the model's marginals for one record.
    """
    total = np.zeros(len(mu), np.int64)
    rows = cells.shape[1]
    lengths = np.ones(rows, np.int64) if lengths is None else lengths
    ends = np.concatenate([[0], np.cumsum(lengths)])
    step = max(1, _CHUNK // len(mu))
    most = math.floor((clip.norm * clip.grid) ** 2)
    for start in range(0, len(lengths), step):
        own = lengths[start : start + step]
        some = cells[:, ends[start] : ends[start + len(own)]]
        person = np.repeat(np.arange(len(own)), own)
        flat = (some + person * len(mu)).ravel()
        # g = sum over the person's rows of (T(x) - mu)
        score = np.bincount(flat, minlength=len(own) * len(mu)).reshape(len(own), -1) - own[:, None] * mu
        norms = np.sqrt(np.einsum("ij,ij->i", score, score))
        # min(1, norm / |g|), where it shortens a hair less against rounding; truncation is towards zero
        norm = float(clip.norm)
        scale = clip.grid * np.where(norms <= norm, 1.0, norm / np.maximum(norms, norm) * (1 - 1e-12))
        units = np.trunc(score * scale[:, None])
        # exact in doubles, so the bound needs no trust in the lines above; nobody is ever left out by it
        units[~(np.einsum("ij,ij->i", units, units) <= most)] = 0.0
        total += units.sum(axis=0).astype(np.int64)
    return total


class LiveRounds:
    """The rounds of a LiveCurator: paid for in full when they were opened. A context manager; leaving drops the rows.

    Each `next` draws a fresh subsample and fresh noise. There are `n` of them; stopping early is sound and refunds
    nothing.
    """

    def __init__(
        self,
        *,
        n: int,
        rate: Fraction,
        clip: ClippedScore | None,
        noise: Noise,
        structure: Structure,
        rows: Rows,
        randomness: Randomness,
        shield: Callable[[Callable[[], IntArray]], IntArray],
        publish: Callable[[Array, int], NoisyTables],
        finish: Callable[[], None],
    ) -> None:
        self._n, self._rate, self._clip, self._noise, self._structure = n, rate, clip, noise, structure
        self._rows: Rows | None = rows
        self._randomness, self._shield, self._publish, self._finish = randomness, shield, publish, finish
        self._plan = counting.plan_counting(structure)
        self._done = 0

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a subsample, or, when opened with a ClippedScore, noisy clipped scores.

        beliefs: for clipped scores only, those of one record (total 1) under the current model. Raises BudgetError
        after the last round and after the end of the context.
        """
        if self._rows is None:
            raise BudgetError("the rounds were closed; their records are gone")
        if self._done >= self._n:
            raise BudgetError(f"all {self._n} rounds are used up; open more with more budget")
        mu = self._marginals(beliefs)
        rows = self._rows
        summed = self._shield(lambda: self._sum(rows, mu))
        noise = self._noise.sample((len(summed),), self._randomness)
        self._done += 1
        return self._publish(add_noise(summed, noise), self._done)

    def _marginals(self, beliefs: Beliefs | None) -> FloatArray | None:
        if self._clip is None:
            if beliefs is not None:
                raise BudgetError("these rounds count; open them with clip=ClippedScore(...) to have scores")
            return None
        if not isinstance(beliefs, Beliefs) or beliefs.marginals.structure != self._structure:
            raise StructureError("rounds of clipped scores need the beliefs of a model over the curator's structure")
        mu = beliefs.marginals.values.astype(np.float64)
        if not np.all((mu >= -1e-6) & (mu <= 1e6)):
            raise StructureError("the beliefs hold NaN, negative or infinite marginals; scores cannot be formed")
        return mu

    def _sum(self, rows: Rows, mu: FloatArray | None) -> IntArray:
        total = np.zeros(self._structure.cells, np.int64)
        for codes, lengths in rows.pieces(self._rate, self._randomness):
            count = len(codes[0])
            if mu is None and count * len(self._structure.cliques) > self._plan.cells:
                partial = counting.count_batch(self._plan, codes)
                total += counting.tables_of(self._structure, self._plan, partial).values
            elif count:
                # few records: no pass over the counting plan's larger blocks
                cells = cell_numbers(self._structure, rows.columns, codes)
                if mu is None:
                    total += np.bincount(cells.ravel(), minlength=len(total))
                elif self._clip is not None:
                    total += clipped_sum(cells, lengths, mu, self._clip)
        return total

    def __enter__(self) -> LiveRounds:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._rows is not None:
            self._rows = None
            self._finish()

    def __repr__(self) -> str:
        return f"LiveRounds({self._done} of {self._n} done, sampling rate {float(self._rate):g})"


def _taken(piece: Piece, rate: Fraction, randomness: Randomness) -> Piece:
    codes, lengths = piece
    if rate == 1:
        return piece
    persons = coins(len(codes[0]) if lengths is None else len(lengths), rate, randomness)
    rows = np.flatnonzero(persons if lengths is None else np.repeat(persons, lengths))
    return [column[rows] for column in codes], None if lengths is None else lengths[persons]
