"""Counting of codes into the tables of a structure, and the passes over records that this takes.

Instead of one pass per clique, columns are fused into blocks that cover several cliques each; a block is counted once
and the cliques are its marginals. Where most pairs of many attributes are counted, `PairCounts` is faster.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core._util.progress import Progress, silent
from dpgm_core.counting.rows import Rows, open_rows
from dpgm_core.counting.statistic import (
    PairCounts,
    Statistic,
    StructureSums,
    check_whole,
    columns_of,
    fused,
    table_sums,
    zero_cells,
)
from dpgm_core.counting.weights import WeightedCounts
from dpgm_core.errors import DataError
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.contract import AnySource, Reading
from dpgm_core.sources.reading import BATCH_ROWS
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables, margin_of

__all__ = [
    "BlockSums",
    "Blocks",
    "Counted",
    "Counts",
    "MOST_CELLS",
    "Passes",
    "TableCounts",
    "add_block",
    "choose_blocks",
    "count",
    "count_codes",
    "fastest_sums",
    "fewest_sums",
    "tables_of",
]

#: Cells of a block of several cliques: fused codes fit uint16, and the counts stay in cache.
BLOCK_CELLS = 2**16

#: Up to so many cliques planning is cheap enough to be tried several times.
_MAX_CLIQUES_FOR_SEARCH = 200


@frozen(kw_only=True)
class Blocks:
    """What to count, as plain data: the columns to read and the blocks of columns to count together.

    columns: attribute names. sizes: their numbers of labels. positions: of each block, in `columns`. The partial counts
    of a batch are the blocks' cells one after the other, then the number of records.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    positions: tuple[tuple[int, ...], ...]

    def block_cells(self) -> list[int]:
        """The number of cells of each block."""
        return [math.prod(self.sizes[position] for position in block) for block in self.positions]

    @property
    def cells(self) -> int:
        """The length of the vector of partial counts."""
        return sum(self.block_cells()) + 1


@frozen(kw_only=True, repr=False)
class Counted:
    """The true counts: tables in int64 and the number of records. Secret; the repr shows neither."""

    tables: Tables
    records: int

    def mean(self, draws: int) -> Counted:
        """Return the means over so many draws that were counted together, a power of two: float64, exactly."""
        if draws == 1:
            return self
        return Counted(tables=self.tables.like(self.tables.values / draws), records=self.records // draws)

    def __repr__(self) -> str:
        return f"Counted({self.tables!r}, records hidden)"


class BlockSums(StructureSums):
    """Base of statistics whose vector is the cells of blocks and, last, the number of records."""

    @property
    def vector(self) -> Blocks:
        """The blocks of the vector."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the blocks."""
        return self.vector.columns

    @property
    def cells(self) -> int:
        """Those of the blocks, and one for the number of records."""
        return self.vector.cells

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each block."""
        return tuple(tuple(self.columns[place] for place in block) for block in self.vector.positions)

    def check(self, sums: IntArray) -> None:
        """Raise DataError where a count is negative or a block counts other records than the last cell states."""
        check_whole(sums.min() >= 0 and bool((table_sums(sums[:-1], self.vector.block_cells()) == sums[-1]).all()))

    def records(self, sums: IntArray) -> int:
        """The last cell."""
        return int(sums[-1])

    def tables(self, sums: IntArray) -> Tables:
        """Marginals of the blocks, summed over tied cliques."""
        return tables_of(self.structure, self.vector, sums)


@frozen
class Counts(BlockSums):
    """The tables of a structure as a statistic: each row counts 1 in each of them."""

    structure: Structure
    blocks: Blocks

    @classmethod
    def of(cls, structure: Structure) -> Counts:
        """With blocks chosen for the structure."""
        return cls(structure, choose_blocks(structure))

    @property
    def vector(self) -> Blocks:
        """The blocks that are counted."""
        return self.blocks

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count all rows."""
        _add_batch(self.blocks, codes, sums)


def fastest_sums(structure: Structure) -> Statistic:
    """The tables of a structure as a statistic, in the way that is faster for it; its last cell counts records."""
    return PairCounts(structure) if PairCounts.pays(structure) else Counts.of(structure)


def count(source: AnySource, structure: Structure) -> Counted:
    """Count all records of a source into the tables of a structure, exactly, wherever its rows are.

    A tied group's table is the sum over its cliques. Codes out of range count as unknown. Raises DataError, TooLarge.
    """
    counts = fastest_sums(structure)
    with open_rows(source, Reading(domain=structure.domain, columns=counts.columns)) as rows:
        sums = rows.total(counts)
    return Counted(tables=counts.tables(sums), records=int(sums[-1]))


def count_codes(columns: Mapping[str, Array], structure: Structure) -> Counted:
    """Count integer code arrays, one per attribute, into the tables of a structure."""
    return count(CodesSource(data=columns), structure)


def choose_blocks(structure: Structure) -> Blocks:
    """Choose the blocks for a structure, greedily: each takes in the cliques that add most per added column.

    >>> from dpgm_core.domain.domain import Domain
    >>> choose_blocks(Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 10)))).positions
    ((0, 1, 2, 3),)
    """
    sizes = structure.domain.sizes
    maximal = [clique for clique in structure.maximal if clique]
    # The greedy choice depends on where it starts: try some orders, always the same ones, and keep the fewest passes.
    orders = [maximal]
    if len(maximal) <= _MAX_CLIQUES_FOR_SEARCH:
        shuffler = random.Random(0)
        orders += [shuffler.sample(maximal, len(maximal)) for _ in range(15)]
    sets = min((_blocks(order, sizes) for order in orders), key=len)
    return _blocks_of(structure, sets)


def _blocks_of(structure: Structure, sets: Iterable[Sequence[str]]) -> Blocks:
    """Return blocks of these sets of attributes, each in the order of the columns."""
    columns = columns_of(structure)
    place = {name: position for position, name in enumerate(columns)}
    positions = tuple(tuple(sorted(place[name] for name in one)) for one in sets)
    return Blocks(columns=columns, sizes=structure.domain.shape(columns), positions=positions)


def tables_of(structure: Structure, blocks: Blocks, partial: IntArray) -> Tables:
    """The structure's tables from the summed partial counts: marginals of the blocks, summed over tied cliques."""
    ends = np.cumsum([0, *blocks.block_cells()])
    counted = [
        (
            [blocks.columns[position] for position in block],
            partial[ends[number] : ends[number + 1]].reshape([blocks.sizes[position] for position in block]),
        )
        for number, block in enumerate(blocks.positions)
    ]
    home: dict[frozenset[str], int] = {}
    containing: dict[str, set[int]] = {name: set() for name in blocks.columns}
    for number, (names, _) in enumerate(counted):
        for name in names:
            containing[name].add(number)
    values = zero_cells(structure.cells)
    for number, group in enumerate(structure.groups):
        table = values[structure.slices[number]].reshape(structure.shapes[number])
        for clique in group:
            if not clique:
                table += partial[-1]
                continue
            key = frozenset(clique)
            if key not in home:
                hosts = set.intersection(*(containing[name] for name in clique))
                home[key] = min(hosts, key=lambda host: counted[host][1].size)
            names, counts = counted[home[key]]
            table += margin_of(counts, names, clique)
    return Tables(structure, values)


def _add_batch(blocks: Blocks, codes: Codes, sums: IntArray) -> None:
    rows = len(codes[0])
    sizes = dict(zip(blocks.columns, blocks.sizes, strict=True))
    members = [[blocks.columns[position] for position in block] for block in blocks.positions]
    for start in range(0, rows, BATCH_ROWS):  # a piece at a time, so that fused codes stay in cache
        piece = {name: column[start : start + BATCH_ROWS] for name, column in zip(blocks.columns, codes, strict=True)}
        end = 0
        for names, cells in zip(members, blocks.block_cells(), strict=True):
            end += cells
            add_block(names, sizes, piece, sums[end - cells : end])
    sums[-1] += rows


def add_block(names: Sequence[str], sizes: Mapping[str, int], codes: Mapping[str, Array], sums: IntArray) -> None:
    """Count the rows of a piece into the cells of one block, (cells,)."""
    cells = fused(tuple(names), sizes, codes, np.uint16 if len(sums) <= 2**16 else np.int64)
    if len(sums) <= 4 * len(cells):
        sums += np.bincount(cells, minlength=len(sums))
    else:  # more cells than records: touch only the cells that are hit
        hit, counts = np.unique(cells, return_counts=True)
        sums[hit] += counts


def _blocks(cliques: Sequence[Clique], sizes: Mapping[str, int]) -> list[list[str]]:
    """Sets of attributes as bits of whole numbers: of many cliques frozensets take many times as long."""
    # In the order of names, so that the blocks do not depend on string hashing.
    names = sorted({name for clique in cliques for name in clique})
    bit = {name: 1 << place for place, name in enumerate(names)}
    around: dict[int, dict[int, None]] = {one: {} for one in bit.values()}
    waiting = dict.fromkeys(sum(bit[name] for name in clique) for clique in cliques)
    for clique in waiting:
        for one in _bits(clique):
            around[one][clique] = None
    growing = _Growing(waiting, around, {bit[name]: sizes[name] for name in names})
    blocks = []
    while waiting:
        first = block = next(iter(waiting))
        while grown := growing.grown(block):
            block = grown
        done = {clique for one in _bits(block) for clique in around[one] if not clique & ~block}
        for clique in done if block != first else [first]:  # no largest clique holds another
            del waiting[clique]
            for one in _bits(clique):
                del around[one][clique]
        blocks.append([names[one.bit_length() - 1] for one in _bits(block)])
    return blocks


class _Growing:
    """Blocks, and cliques that wait for one, all as bits. around: of each attribute, the cliques that have it."""

    def __init__(self, waiting: Mapping[int, None], around: Mapping[int, Mapping[int, None]], sizes: dict[int, int]):
        self._waiting, self._around = waiting, around
        self._cells = dict(sizes)  # of sets of attributes, as they are met
        self._by_size = sorted(sizes, key=sizes.__getitem__)

    def grown(self, block: int) -> int | None:
        """The block and the attributes that most cliques lack for each of them; None where nothing fits."""
        room = BLOCK_CELLS // self._size(block)
        smallest = next((one for one in self._by_size if not one & block), None)
        if smallest is None or self._cells[smallest] > room:
            return None
        near = dict.fromkeys(clique for one in _bits(block) for clique in self._around[one] if clique & ~block)
        touching = Counter([clique & ~block for clique in near])
        fitting = [rest for rest in touching if self._size(rest) <= room]
        if fitting:
            return block | max(fitting, key=lambda rest: touching[rest] / rest.bit_count())
        # Nothing that shares a column fits: a clique apart still saves a pass.
        apart = islice(self._waiting, 64)
        return next((block | rest for rest in apart if not rest & block and self._size(rest) <= room), None)

    def _size(self, attributes: int) -> int:
        size = self._cells.get(attributes)
        if size is None:
            size = self._cells[attributes] = math.prod(self._cells[one] for one in _bits(attributes))
        return size


def _bits(attributes: int) -> list[int]:
    """Each bit alone, lowest first."""
    bits = []
    while attributes:
        lowest = attributes & -attributes
        bits.append(lowest)
        attributes ^= lowest
    return bits


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
    """The tables of a structure's largest cliques, one after the other, and the number of records; see `Grouped`."""

    structure: Structure

    def __getstate__(self) -> dict[str, Any]:
        """Include the blocks: choosing them for many cliques takes longer than counting a partition."""
        assert self._blocks is not None
        return dict(self.__dict__)

    @cached_property
    def vector(self) -> Blocks:
        """A block for each largest clique, in the order of the columns."""
        return _blocks_of(self.structure, filter(None, self.structure.maximal))

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count all rows."""
        rows = len(codes[0])
        own = dict(zip(self.columns, codes, strict=True))
        sizes = dict(zip(self.columns, self.vector.sizes, strict=True))
        for names, inside in self._blocks:
            shape = [sizes[name] for name in names]
            block = np.zeros(math.prod(shape), np.int64)
            for start in range(0, rows, BATCH_ROWS):  # a piece at a time, so that fused codes stay in cache
                piece = {name: own[name][start : start + BATCH_ROWS] for name in names}
                add_block(names, sizes, piece, block)
            counts = block.reshape(shape)
            for clique, at in inside:
                sums[at] += margin_of(counts, names, clique).ravel()
        sums[-1] += rows

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
        for clique, size in zip(self.groupings, self.vector.block_cells(), strict=True):
            home = min(set.intersection(*(hosts[name] for name in clique)), key=lambda number: (cells[number], number))
            inside[home].append((clique, slice(end, end + size)))
            end += size
        return [(names, own) for names, own in zip(blocks, inside, strict=True) if own]


# --------------------------------------------------------------------------------------------------
# Plans for counting many tables in few passes, from public sizes alone

#: Cells of one pass's vector, 64 MiB of them, unless a single table has more.
MOST_CELLS = 2**23
#: And of records in memory, which take another pass cheaply: blocks have many times the cells of their tables.
MOST_MEMORY_CELLS = 2**24


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
        """As few as have at most so many cells each, nearly, for records that stay the same."""
        if weighted is not None:
            groups = [[structure.groups[number] for number in own] for own in _deal_groups(structure.sizes, most)]
            parts = [Structure(structure.domain, (), tied=own) for own in groups]
            return cls(structure, tuple(WeightedCounts(part, weighted) for part in parts), True)
        one = fewest_sums(structure)
        if one.cells <= most:
            return cls(structure, (one,))
        return cls(structure, tuple(fewest_sums(part) for part in _parts(structure, most - 1)))

    @classmethod
    def in_memory(cls, structure: Structure, most: int = MOST_MEMORY_CELLS) -> Passes:
        """The fastest ones with about so many cells each at most, for records that are in memory."""
        one = fastest_sums(structure)
        if one.cells <= most:
            return cls(structure, (one,))
        each = -(-structure.cells * most // one.cells)
        return cls(structure, tuple(fastest_sums(part) for part in _parts(structure, each)))

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
    domain, largest = structure.domain, structure.maximal
    nested = {frozenset(clique): clique for clique in structure.nested}.values()
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
