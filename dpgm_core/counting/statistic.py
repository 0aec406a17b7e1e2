"""A statistic: a whole-numbered sum over persons, and the one loop that adds it up.

Counts, weighted counts and sums of clipped scores are statistics. They see records as pieces: codes of some persons,
all rows of each, and each person's number of rows. A statistic is plain data and picklable, and sums of pieces merge by
`+`, so the same sum can be taken in threads here or wherever the rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, Codes, IntArray
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, TooLarge
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import Progress, silent
from dpgm_core.sources.contract import Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.quiet import quiet
from dpgm_core.sources.reading import checked
from dpgm_core.structure import Clique, Structure, human_bytes
from dpgm_core.tables import Tables

__all__ = [
    "CellSums",
    "Piece",
    "Statistic",
    "Sum",
    "check_whole",
    "columns_of",
    "fused",
    "pieces",
    "summed",
    "table_sums",
    "zero_cells",
]

#: Codes of some persons, all rows of each, and each person's number of rows (None: one row each).
Piece: TypeAlias = tuple[Codes, IntArray | None]


class Sum(Protocol):
    """A sum over persons of whole-numbered vectors. Secret: what it sums goes to the noise and nowhere else."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it needs, in the order in which `add` takes their codes."""
        ...

    @property
    def cells(self) -> int:
        """The length of the vector."""
        ...

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add what these persons contribute. lengths: rows of each person, in order; None: one each."""
        ...

    def partial(self, codes: Codes, lengths: IntArray | None) -> IntArray:
        """The sum over these persons alone, (cells,); sums of several pieces add up."""
        sums = zero_cells(self.cells)
        self.add(codes, lengths, sums)
        return sums

    def check(self, sums: IntArray) -> None:
        """Raise DataError for a finished sum that cannot be one; see `Reduction`. Of most sums nothing is known."""
        return

    def records(self, sums: IntArray) -> int | None:
        """Of how many rows a finished sum is, where it tells. Secret."""
        return None


class Statistic(Sum, Protocol):
    """A sum that stands for tables, which noise is added to."""

    def sensitivity(self, terms: Terms) -> Sensitivity:
        """How far one person moves the sum."""
        ...

    def tables(self, sums: IntArray) -> Tables:
        """The tables that a finished sum stands for."""
        ...


@frozen
class CellSums(Statistic):
    """A statistic whose vector is the cells of a structure's tables, one after the other."""

    structure: Structure

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the structure's cliques."""
        return columns_of(self.structure)

    @property
    def cells(self) -> int:
        """Those of the tables."""
        return self.structure.cells

    def sensitivity(self, terms: Terms) -> Sensitivity:
        """Of the structure's tables, in their unit."""
        return terms.sensitivity(self.structure)

    def tables(self, sums: IntArray) -> Tables:
        """The sums themselves."""
        return Tables(self.structure, sums)


def summed(statistic: Sum, parts: Iterable[Piece], progress: Progress = silent) -> IntArray:
    """The whole sum, (cells,).

    progress: told of the start and the end only: how many pieces there are is a function of the records.
    """
    sums = zero_cells(statistic.cells)
    progress("counting", 0, None)
    # In one thread: bincount holds the interpreter lock for much of its time, and files are decoded in threads anyway.
    with quiet():
        for codes, lengths in parts:
            statistic.add(codes, lengths, sums)
    progress("counting", 1, 1)
    return sums


def pieces(source: Source, domain: Domain, columns: Sequence[str]) -> Iterator[Piece]:
    """The records of a source. A PersonSource keeps persons together; of any other source each row is a person."""
    if not isinstance(source, PersonSource):
        for batch in checked(source, domain, columns):
            yield batch, None
        return
    yield from source.pieces(domain, columns)


def columns_of(structure: Structure) -> tuple[str, ...]:
    """The attributes of a structure's cliques, in the domain's order; at least one, so that records can be counted."""
    used = {name for clique in structure for name in clique} or {structure.domain.names[0]}
    return tuple(name for name in structure.domain.names if name in used)


def fused(clique: Clique, sizes: Mapping[str, int], codes: Mapping[str, Array], kind: type[Any] = np.int64) -> Array:
    """The cell of the clique's table that each row hits, (rows,): (((c_1) r_2 + c_2) r_3 + c_3) ...

    kind: an unsigned or signed type that holds the number of cells. The clique names at least one attribute.

    >>> fused(("a", "b"), {"a": 2, "b": 3}, {"a": np.array([0, 1]), "b": np.array([2, 1])}).tolist()
    [2, 4]
    """
    cells: Array = codes[clique[0]].astype(kind)
    for name in clique[1:]:
        if sizes[name] > 1:
            cells *= kind(sizes[name])
            cells += codes[name]
    return cells


def check_whole(fits: bool) -> None:
    """Raise DataError for sums that do not fit together; of what is wrong, and by how much, nothing is said."""
    if not fits:
        raise DataError(
            "the source brought back sums that do not fit together: some of the records are missing from one table or "
            "were counted twice in it; nothing of them was used"
        )


def table_sums(sums: IntArray, cells: Sequence[int]) -> IntArray:
    """What each table sums to, (tables,). sums: the tables one after the other. cells: how many each has."""
    starts = np.cumsum([0, *cells])[:-1]
    totals: IntArray = np.add.reduceat(sums, starts) if len(starts) else np.zeros(0, np.int64)
    return totals


def zero_cells(cells: int) -> IntArray:
    """Counts of nothing, (cells,); TooLarge with sizes if that does not fit."""
    failed = cells > 2**40
    if not failed:
        try:
            return np.zeros(cells, np.int64)
        except (MemoryError, ValueError):
            failed = True
    raise TooLarge(f"counting needs {cells:,} cells ({human_bytes(8 * cells)}), more than fits; use smaller cliques")
