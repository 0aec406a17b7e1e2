"""The tables of a structure as one short vector, to be sent over a network and merged.

`Counts` keeps blocks of many cells until the records are over, and takes the tables from them once. What comes back
from thousands of partitions should be no larger than what was asked for: here each piece's blocks become tables at
once, one block at a time. All pairs of 100 attributes of 10 labels are 4 MB so, and about 80 MB as blocks.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Codes, IntArray
from dpgm_core.counting.kernel import Blocks, add_block, choose_blocks, marginal, tables_of
from dpgm_core.counting.products import PairCounts
from dpgm_core.counting.statistic import Statistic, check_whole, columns_of, table_sums
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.sources.reading import BATCH_ROWS
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["TableCounts", "compact"]


def compact(structure: Structure) -> Statistic:
    """The tables of a structure as a statistic of a short vector; its last cell counts records."""
    return PairCounts(structure) if PairCounts.pays(structure) else TableCounts(structure)


@frozen(eq=False, slots=False)
class TableCounts(Statistic):
    """The tables of a structure's largest cliques, one after the other, and the number of records; see `Grouped`.

    >>> from dpgm_core.domain import Domain
    >>> counts = TableCounts(Structure(Domain.from_sizes({"a": 2, "b": 2}), [("b", "a"), ("b",)]))
    >>> sums = counts.partial([np.array([0, 1, 1], np.uint8), np.array([1, 0, 0], np.uint8)], None)
    >>> counts.groupings, sums.tolist(), counts.tables(sums)["b"].tolist()
    ((('a', 'b'),), [0, 1, 2, 0, 3], [2, 1])
    """

    structure: Structure

    def __getstate__(self) -> dict[str, Any]:
        """What is sent knows its blocks: of many cliques, choosing them takes longer than counting a partition."""
        assert self._blocks is not None
        return dict(self.__dict__)

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes of the structure's cliques."""
        return self._sent.columns

    @property
    def cells(self) -> int:
        """Those of the largest cliques, and one for the number of records."""
        return self._sent.cells

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """The largest cliques, each in the order of the columns."""
        return tuple(tuple(self.columns[place] for place in block) for block in self._sent.positions)

    def sensitivity(self, terms: Terms) -> Sensitivity:
        """Of the structure's tables, in records."""
        return terms.sensitivity(self.structure)

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count the rows, whoever they belong to."""
        rows = len(codes[0])
        own = dict(zip(self.columns, codes, strict=True))
        sizes = dict(zip(self.columns, self._sent.sizes, strict=True))
        for names, inside in self._blocks:
            shape = [sizes[name] for name in names]
            block = np.zeros(math.prod(shape), np.int64)
            for start in range(0, rows, BATCH_ROWS):  # a piece at a time, so that fused codes stay in cache
                piece = {name: own[name][start : start + BATCH_ROWS] for name in names}
                add_block(names, sizes, piece, block)
            counts = block.reshape(shape)
            for clique, at in inside:
                sums[at] += marginal(names, counts, clique).ravel()
        sums[-1] += rows

    def check(self, sums: IntArray) -> None:
        """Raise DataError where a count is negative or a table counts other records than the last cell says."""
        check_whole(sums.min() >= 0 and bool((table_sums(sums[:-1], self._sent.block_cells()) == sums[-1]).all()))

    def records(self, sums: IntArray) -> int:
        """The last cell."""
        return int(sums[-1])

    def tables(self, sums: IntArray) -> Tables:
        """Marginals of the largest cliques' tables, summed over tied cliques."""
        return tables_of(self.structure, self._sent, sums)

    @cached_property
    def _sent(self) -> Blocks:
        """What is handed over: a block for each largest clique."""
        columns, sizes = columns_of(self.structure), self.structure.domain.sizes
        place = {name: number for number, name in enumerate(columns)}
        cliques = {frozenset(clique): None for clique in self.structure.cliques if clique}
        covered = {frozenset(clique) for clique in self.structure.nested}
        largest = [clique for clique in cliques if clique not in covered]
        return Blocks(
            columns=columns,
            sizes=tuple(sizes[name] for name in columns),
            positions=tuple(tuple(sorted(place[name] for name in clique)) for clique in largest),
        )

    @cached_property
    def _blocks(self) -> list[tuple[list[str], list[tuple[tuple[str, ...], slice]]]]:
        """What is counted together: names of a block, and each clique taken from it with its part of the vector."""
        fused = choose_blocks(self.structure)
        blocks = [[fused.columns[place] for place in block] for block in fused.positions]
        inside: list[list[tuple[tuple[str, ...], slice]]] = [[] for _ in blocks]
        hosts: dict[str, set[int]] = {name: set() for name in self.columns}
        for number, names in enumerate(blocks):
            for name in names:
                hosts[name].add(number)
        cells, end = fused.block_cells(), 0
        for clique, size in zip(self.groupings, self._sent.block_cells(), strict=True):
            home = min(set.intersection(*(hosts[name] for name in clique)), key=lambda number: (cells[number], number))
            inside[home].append((clique, slice(end, end + size)))
            end += size
        return [(names, own) for names, own in zip(blocks, inside, strict=True) if own]
