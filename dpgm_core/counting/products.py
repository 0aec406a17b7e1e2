"""Many pair tables at once: products of one-hot matrices.

With x a record's labels as 0 and 1, one column for each label but the first and one that is always 1, the sum of x x'
holds every n_ij(a, b) with a, b > 0, every n_i(a) and n; the other cells follow by subtraction. Each entry is a whole
number of at most as many records as are multiplied at a time, so products of float32 are exact in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Array, Codes, IntArray
from dpgm_core.counting.statistic import Statistic, check_whole, columns_of, zero_cells
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["PairCounts"]

#: Entries of a one-hot matrix, and its most rows: whole numbers stay exact in float32 up to 2^24.
_MOST_ENTRIES, _MOST_ROWS = 2**22, 2**16
#: Pairs from which it is worth it: of fewer, blocks are few, and soon made and read.
_MANY = 1000
#: Entries of the product that a pair may cost: all pairs of binary attributes take 2, of three labels 8, of four 18.
_PAYS = 20


@frozen
class PairCounts(Statistic):
    """The tables of a structure whose cliques have two attributes at most: each row counts 1 in each of them.

    >>> from dpgm_core.domain import Domain
    >>> counts = PairCounts(Structure(Domain.from_sizes({"a": 2, "b": 3}), [("b", "a")]))
    >>> sums = counts.partial([np.array([0, 1, 1]), np.array([2, 0, 0])], None)
    >>> counts.tables(sums)["a", "b"].tolist()
    [[0, 0, 1], [2, 0, 0]]
    """

    structure: Structure

    @staticmethod
    def pays(structure: Structure) -> bool:
        """Whether it counts this structure, and faster than blocks do."""
        if max(map(len, structure.cliques)) > 2:
            return False
        sizes = [structure.domain[name].size for name in columns_of(structure)]
        pairs = sum(len(clique) == 2 for clique in structure.cliques)
        return pairs >= _MANY and (1 + sum(sizes) - len(sizes)) ** 2 <= _PAYS * pairs

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes of the structure's cliques."""
        return columns_of(self.structure)

    @property
    def cells(self) -> int:
        """Entries of the product; the last is the number of records."""
        return self._width**2

    def sensitivity(self, terms: Terms) -> Sensitivity:
        """Of the structure's tables, in records."""
        return terms.sensitivity(self.structure)

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count the rows, whoever they belong to."""
        width, rows = self._width, len(codes[0])
        labels = [range(1, self.structure.domain[name].size) for name in self.columns]
        most = max(1, min(_MOST_ROWS, _MOST_ENTRIES // width))
        product = sums.reshape(width, width)
        for start in range(0, rows, most):
            piece = [column[start : start + most] for column in codes]
            hot = np.ones((width, len(piece[0])), np.float32)
            for row, (column, label) in zip(hot, _each(piece, labels), strict=False):  # the last row stays 1
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


def _each(columns: list[Array], labels: list[range]) -> list[tuple[Array, int]]:
    return [(column, label) for column, own in zip(columns, labels, strict=True) for label in own]
