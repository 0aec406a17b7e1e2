"""Passes over records: the fewest sums that give all tables, as short vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import Codes, IntArray
from dpgm_core._util.progress import Progress, silent
from dpgm_core.counting.rows import Rows
from dpgm_core.counting.statistic import PairCounts, Statistic, columns_of, zero_cells
from dpgm_core.counting.table_counts import Blocks, BlockSums, Counted, add_block, choose_blocks, fastest_sums, marginal
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.errors import DataError
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.sources.reading import BATCH_ROWS
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["MOST_CELLS", "Passes", "TableCounts", "fewest_sums"]


# --------------------------------------------------------------------------------------------------
# The tables of a structure as one short vector, to be sent over a network and merged
#
# `Counts` takes the tables from large blocks once, at the end. Here each piece's blocks become tables at once, so that
# thousands of partitions send back little: all pairs of 100 attributes of 10 labels are 4 MB, as blocks about 80 MB.


def fewest_sums(structure: Structure) -> Statistic:
    """The tables of a structure as a statistic of a short vector; its last cell counts records."""
    return PairCounts(structure) if PairCounts.pays(structure) else TableCounts(structure)


@frozen(eq=False, slots=False)
class TableCounts(BlockSums):
    """The tables of a structure's largest cliques, one after the other, and the number of records; see `Grouped`.

    >>> from dpgm_core.domain.domain import Domain
    >>> counts = TableCounts(Structure(Domain.from_sizes({"a": 2, "b": 2}), [("b", "a"), ("b",)]))
    >>> sums = counts.partial([np.array([0, 1, 1], np.uint8), np.array([1, 0, 0], np.uint8)], None)
    >>> counts.groupings, sums.tolist(), counts.tables(sums)["b"].tolist()
    ((('a', 'b'),), [0, 1, 2, 0, 3], [2, 1])
    """

    structure: Structure

    def __getstate__(self) -> dict[str, Any]:
        """Include the blocks: choosing them for many cliques takes longer than counting a partition."""
        assert self._blocks is not None
        return dict(self.__dict__)

    @property
    def vector(self) -> Blocks:
        """A block for each largest clique, in the order of the columns."""
        return self._largest

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count all rows."""
        rows = len(codes[0])
        own = dict(zip(self.columns, codes, strict=True))
        sizes = dict(zip(self.columns, self._largest.sizes, strict=True))
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

    @cached_property
    def _largest(self) -> Blocks:
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
        for clique, size in zip(self.groupings, self._largest.block_cells(), strict=True):
            home = min(set.intersection(*(hosts[name] for name in clique)), key=lambda number: (cells[number], number))
            inside[home].append((clique, slice(end, end + size)))
            end += size
        return [(names, own) for names, own in zip(blocks, inside, strict=True) if own]


# --------------------------------------------------------------------------------------------------
# Plans for counting many tables in few passes, from public sizes alone

#: Cells of one pass's vector, 64 MiB of them, unless a single table has more.
MOST_CELLS = 2**23


@frozen
class Passes:
    """How the tables of a structure are counted: so many sums, each of some of its distinct cliques, or groups.

    statistics: one for each pass. weighted: rows count by shares, so no sum tells how many records there are.
    """

    structure: Structure
    statistics: tuple[Statistic, ...] = field(repr=False)
    weighted: bool = False

    @classmethod
    def single(cls, structure: Structure, weighted: Contributions | None = None) -> Passes:
        """All in one pass, however large: for records that are read anew each time, and may be others then."""
        one = fastest_sums(structure) if weighted is None else WeightedCounts(structure, weighted)
        return cls(structure, (one,), weighted is not None)

    @classmethod
    def under(cls, structure: Structure, weighted: Contributions | None = None, most: int = MOST_CELLS) -> Passes:
        """As few as have at most so many cells each, nearly, for records that stay the same.

        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abc", 300)), order=2)
        >>> len(Passes.under(structure, most=200_000).statistics)
        2
        """
        if weighted is not None:
            groups = _deal_groups(structure.sizes, most)
            return cls(
                structure, tuple(WeightedCounts(_structure_of_groups(structure, own), weighted) for own in groups), True
            )
        one = fewest_sums(structure)
        if one.cells <= most:
            return cls(structure, (one,))
        return cls(structure, tuple(fewest_sums(part) for part in _parts(structure, most - 1)))

    @property
    def cells(self) -> int:
        """Of the largest vector that comes back."""
        return max(one.cells for one in self.statistics)

    def count(self, rows: Rows, progress: Progress = silent, records: int | None = None) -> Counted:
        """The true tables, and the number of records where counts know it, else 0.

        records: how many an earlier pass saw. Raises DataError where passes saw different numbers of them.
        """
        if len(self.statistics) == 1:
            (one,) = self.statistics
            progress("counting", 0, None)
            sums = rows.total(one)
            progress("counting", 1, 1)
            records = self._same(sums, records)
            tables = one.tables(sums)
            # It may be of the largest clique and those inside of it, turned, and tied to none.
            return Counted(
                tables=tables if tables.structure == self.structure else self._placed([tables]), records=records
            )
        seen = [records]

        def passes() -> Iterator[Tables]:
            for number, one in enumerate(self.statistics, start=1):
                progress(f"counting: pass {number} of {len(self.statistics)}", number, len(self.statistics))
                sums = rows.total(one)
                seen[:] = [self._same(sums, seen[0])]
                yield one.tables(sums)

        return Counted(tables=self._placed(passes()), records=seen[0] or 0)

    def _placed(self, passes: Iterable[Tables]) -> Tables:
        """The structure's tables, of those of all passes."""
        places: dict[object, list[tuple[slice, Clique]]] = {}
        for group, at in zip(self.structure.groups, self.structure.slices, strict=True):
            for clique in group[:1] if self.weighted else group:
                places.setdefault(self._key(group, clique), []).append((at, clique))
        values = zero_cells(self.structure.cells)
        for tables in passes:
            for group in tables.structure.groups:
                for at, clique in places[self._key(group, group[0])]:
                    values[at] += tables[clique].reshape(-1)
        return Tables(self.structure, values)

    def _key(self, group: tuple[Clique, ...], clique: Clique) -> object:
        """By what a table is found again: shares are of a whole group, counts of a clique, however it is turned."""
        return group if self.weighted else frozenset(clique)

    def _same(self, sums: IntArray, before: int | None) -> int:
        """Return the number of records of a pass, where its sum tells it; DataError where another pass had others."""
        seen = 0 if self.weighted else int(sums[-1])
        if before is not None and seen != before:
            raise DataError("the records changed from one pass over them to the next; let nobody write while dpgm runs")
        return seen


def _parts(structure: Structure, most: int) -> list[Structure]:
    """The distinct cliques in parts: the largest ones in turn, each with the cliques inside it."""
    domain, covered = structure.domain, {frozenset(clique) for clique in structure.nested}
    cliques = {frozenset(clique): clique for clique in structure.cliques}
    largest = [clique for key, clique in cliques.items() if key not in covered]
    nested = [clique for key, clique in cliques.items() if key in covered]
    dealt = _deal_groups(Structure(domain, largest).sizes, most)
    parts = [[largest[number] for number in own] for own in dealt]
    places_of: dict[str, set[int]] = {}
    where: list[int] = []
    for place, part in enumerate(parts):
        for clique in part:
            for name in clique:
                places_of.setdefault(name, set()).add(len(where))
            where.append(place)
    for clique in nested:
        hosts = set.intersection(*(places_of[name] for name in clique)) if clique else {0}
        parts[where[min(hosts)]].append(clique)
    return [Structure(domain, part) for part in parts]


def _deal_groups(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Numbers 0, 1, ... in parts of at most so many cells; neighbours stay together, as they share attributes."""
    parts: list[list[int]] = []
    left = 0
    for number, cells in enumerate(sizes):
        if cells > left:
            parts.append([])
            left = max(most, cells)
        parts[-1].append(number)
        left -= cells
    return parts


def _structure_of_groups(structure: Structure, numbers: Sequence[int]) -> Structure:
    """Some of the groups."""
    groups = [structure.groups[number] for number in numbers]
    plain, tied = ([group for group in groups if (len(group) > 1) is several] for several in (False, True))
    return Structure(structure.domain, [group[0] for group in plain], tied=tied)
