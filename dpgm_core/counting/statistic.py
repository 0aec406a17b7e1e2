"""Statistics of records, and the tables of many pairs as one matrix product."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core._util.progress import Progress, silent
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, TooLarge, human_bytes
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.sources.contract import Source
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import checked, quiet
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "CellSums",
    "PairCounts",
    "Piece",
    "Statistic",
    "StructureSums",
    "Sum",
    "check_whole",
    "columns_of",
    "fused",
    "pieces",
    "sum_pieces",
    "table_sums",
    "zero_cells",
]


# --------------------------------------------------------------------------------------------------
# Statistics: whole-numbered sums over persons
#
# Counts, weighted counts and sums of clipped scores are statistics of pieces: codes of some persons, all rows of each,
# and each person's number of rows. A statistic is plain data that pickles, and sums of pieces merge by `+`, so a sum
# can be taken in threads here or where the rows are.

#: Codes of some persons, all rows of each, and each person's number of rows (None: one row each).
Piece: TypeAlias = tuple[Codes, IntArray | None]


class Sum(Protocol):
    """A sum over persons of whole-numbered vectors. Secret: what it sums goes to the noise and nowhere else."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it needs, in the order in which `add` takes their codes."""

    @property
    def cells(self) -> int:
        """The length of the vector."""

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add what these persons contribute. lengths: rows of each person, in order; None: one each."""

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

    def tables(self, sums: IntArray) -> Tables:
        """The tables that a finished sum stands for."""


class StructureSums(Statistic):
    """Base of statistics that stand for the tables of a structure."""

    structure: Structure

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the structure's cliques."""
        return columns_of(self.structure)

    def sensitivity(self, terms: Terms) -> Sensitivity:
        """Of the structure's tables, in their unit."""
        return terms.sensitivity(self.structure)


@frozen
class CellSums(StructureSums):
    """A statistic whose vector is the cells of a structure's tables, one after the other."""

    structure: Structure

    @property
    def cells(self) -> int:
        """Those of the tables."""
        return self.structure.cells

    def tables(self, sums: IntArray) -> Tables:
        """The sums themselves."""
        return Tables(self.structure, sums)


def sum_pieces(statistic: Sum, parts: Iterable[Piece], progress: Progress = silent) -> IntArray:
    """The whole sum, (cells,).

    progress: called at the start and the end only, as the number of pieces is a function of the records.
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


# --------------------------------------------------------------------------------------------------
# Many pair tables at once: products of one-hot matrices
#
# With x a record's labels as 0 and 1, one column for each label but the first and one that is always 1, the sum of x x'
# holds every n_ij(a, b) with a, b > 0, every n_i(a) and n; the other cells follow by subtraction. Each entry is a whole
# number of at most as many records as are multiplied at a time, so products of float32 are exact in any order.

#: Entries of a one-hot matrix, and its most rows: whole numbers stay exact in float32 up to 2^24.
_MAX_ENTRIES, _MAX_ROWS = 2**22, 2**16
#: Pairs from which it is worth it: of fewer, blocks are few, and soon made and read.
_MIN_PAIRS = 1000
#: Entries of the product that a pair may cost: all pairs of binary attributes take 2, of three labels 8, of four 18.
_MAX_ENTRIES_PER_PAIR = 20


@frozen
class PairCounts(StructureSums):
    """The tables of a structure whose cliques have two attributes at most: each row counts 1 in each of them."""

    structure: Structure

    @staticmethod
    def pays(structure: Structure) -> bool:
        """Whether it counts this structure, and faster than blocks do."""
        if max(map(len, structure.cliques)) > 2:
            return False
        sizes = [structure.domain[name].size for name in columns_of(structure)]
        pairs = sum(len(clique) == 2 for clique in structure.cliques)
        return pairs >= _MIN_PAIRS and (1 + sum(sizes) - len(sizes)) ** 2 <= _MAX_ENTRIES_PER_PAIR * pairs

    @property
    def cells(self) -> int:
        """Entries of the product; the last is the number of records."""
        return self._width**2

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count all rows."""
        width, rows = self._width, len(codes[0])
        labels = [range(1, self.structure.domain[name].size) for name in self.columns]
        most = max(1, min(_MAX_ROWS, _MAX_ENTRIES // width))
        product = sums.reshape(width, width)
        for start in range(0, rows, most):
            piece = [column[start : start + most] for column in codes]
            hot = np.ones((width, len(piece[0])), np.float32)
            lines = ((column, label) for column, own in zip(piece, labels, strict=True) for label in own)
            for row, (column, label) in zip(hot, lines, strict=False):  # the last row stays 1
                np.equal(column, label, out=row)
            product += (hot @ hot.T).astype(np.int64)

    def check(self, sums: IntArray) -> None:
        """Raise DataError where the product is that of no one-hot matrix: a cell of some pair's table is negative, the
        two halves differ, or an attribute's own lines say other counts than the line of all records."""
        product = sums.reshape(self._width, self._width)
        each = product[-1]
        starts = sorted({self._first[name] for name in self.columns if self.structure.domain[name].size > 1})
        fits = sums.min() >= 0 and np.array_equal(product, product.T)
        if fits and starts:
            # Of each line and attribute the first label's cell, by subtraction; of two attributes that of both.
            of_line = np.add.reduceat(product[:, :-1], starts, axis=1)
            rest = each[:, None] - of_line
            both = rest[-1] - np.add.reduceat(rest[:-1], starts, axis=0)
            fits = rest.min() >= 0 and both.min() >= 0 and self._diagonal(product, starts, each)
        check_whole(bool(fits))

    def records(self, sums: IntArray) -> int:
        """The last cell."""
        return int(sums[-1])

    @staticmethod
    def _diagonal(product: IntArray, starts: Sequence[int], each: IntArray) -> bool:
        """Whether labels of one attribute never meet, and each meets itself as often as it is there."""
        return all(
            np.array_equal(product[start:end, start:end], np.diag(each[start:end]))
            for start, end in itertools.pairwise([*starts, len(each) - 1])
        )

    def tables(self, sums: IntArray) -> Tables:
        """All cells, those of first labels by subtraction."""
        width = self._width
        product = sums.reshape(width, width)
        values = zero_cells(self.structure.cells)
        alike: dict[tuple[int, ...], list[tuple[int, Clique]]] = {}  # cliques of one shape are filled in together
        for group, shape, part in zip(self.structure.groups, self.structure.shapes, self.structure.slices, strict=True):
            alike.setdefault(shape, []).extend((part.start, clique) for clique in group)
        for shape, members in alike.items():
            starts, cliques = zip(*members, strict=True)
            cells = self._cells_of(product, shape, cliques).reshape(len(cliques), -1)
            places = np.asarray(starts)[:, None] + np.arange(cells.shape[1])
            np.add.at(values, places, cells)  # tied cliques share their places
        return Tables(self.structure, values)

    def _cells_of(self, product: IntArray, shape: tuple[int, ...], cliques: tuple[Clique, ...]) -> IntArray:
        """Tables of one shape, (cliques, *shape)."""
        last = len(product) - 1
        if not shape:
            return np.full(len(cliques), product[last, last])
        first = self._first
        lines = [np.asarray([first[clique[axis]] for clique in cliques]) for axis in range(len(shape))]
        # Of each attribute its labels but the first, and then the line of all records.
        lines = [
            np.column_stack([line[:, None] + np.arange(size - 1), np.full(len(line), last)])
            for line, size in zip(lines, shape, strict=True)
        ]
        cells: IntArray = (
            product[lines[0], last] if len(shape) == 1 else product[lines[0][:, :, None], lines[1][:, None, :]]
        )
        for axis in range(1, cells.ndim):  # of all records to those of the first label, and to its place
            cells = np.moveaxis(cells, axis, -1)
            rest = cells[..., -1] - cells[..., :-1].sum(axis=-1)
            cells = np.moveaxis(np.concatenate([rest[..., None], cells[..., :-1]], axis=-1), -1, axis)
        return cells

    @property
    def _first(self) -> dict[str, int]:
        """The line of each attribute's second label."""
        places = {}
        end = 0
        for name in self.columns:
            places[name] = end
            end += self.structure.domain[name].size - 1
        return places

    @property
    def _width(self) -> int:
        """Lines of the product."""
        return 1 + sum(self.structure.domain[name].size - 1 for name in self.columns)
