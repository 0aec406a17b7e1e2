"""Counting: batches of codes into the tables of a structure.

Instead of one pass per clique, columns are fused into blocks that cover several cliques each; a block is counted once
and the cliques are its marginals. A batch becomes one int64 vector by a pure function, and vectors merge by `+`, so
that counting can run in threads here or wherever the rows are.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from dpgm_core.arrays import IntArray
from dpgm_core.errors import TooLarge
from dpgm_core.sources.reading import BATCH_ROWS, checked
from dpgm_core.structure import Clique, Structure, human_bytes
from dpgm_core.tables import Tables

if TYPE_CHECKING:
    from dpgm_core.arrays import Codes
    from dpgm_core.progress import Progress
    from dpgm_core.sources.contract import Source

__all__ = ["Counted", "CountingPlan", "count", "count_batch", "plan_counting", "tables_of", "zero_cells"]

#: Cells of a block of several cliques: fused codes fit uint16, and the counts stay in cache.
BLOCK_CELLS = 2**16

#: Up to so many cliques planning is cheap enough to be tried several times.
_FEW_CLIQUES = 200


@frozen(kw_only=True)
class CountingPlan:
    """What to count, as plain data: the columns to read and the blocks of columns to count together.

    columns: attribute names. sizes: their numbers of labels. blocks: positions in `columns`. The partial counts of a
    batch are the blocks' cells one after the other, then the number of records.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]

    def block_cells(self) -> list[int]:
        """The number of cells of each block."""
        return [math.prod(self.sizes[position] for position in block) for block in self.blocks]

    @property
    def cells(self) -> int:
        """The length of the vector of partial counts."""
        return sum(self.block_cells()) + 1


@frozen(kw_only=True, repr=False)
class Counted:
    """The true counts: tables in int64 and the number of records. Secret; the repr shows neither."""

    tables: Tables
    records: int

    def __repr__(self) -> str:
        return f"Counted({self.tables!r}, records hidden)"


def count(source: Source, structure: Structure, *, progress: Progress | None = None) -> Counted:
    """Count all records of a source into the tables of a structure, exactly.

    A tied group's table is the sum over its cliques. Codes out of range count as unknown. progress: told of the start
    and the end only: how many batches there are is a function of the records. Raises DataError, TooLarge.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.sources import as_source
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> count(as_source(np.array([[0, 1], [1, 1]])), structure).tables["a", "b"].tolist()
    [[0, 1], [0, 1]]
    """
    plan = plan_counting(structure)
    if progress is not None:
        progress("counting", 0, None)
    batches = checked(source, structure.domain, plan.columns)
    total = zero_cells(plan.cells)
    # In one thread: bincount holds the interpreter lock for much of its time, and files are decoded in threads anyway.
    for batch in batches:
        _add_batch(plan, batch, total)
    if progress is not None:
        progress("counting", 1, 1)
    return Counted(tables=tables_of(structure, plan, total), records=int(total[-1]))


def plan_counting(structure: Structure) -> CountingPlan:
    """Choose the blocks for a structure, greedily: each takes in the cliques that add most per added column.

    >>> from dpgm_core.domain import Domain
    >>> plan_counting(Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 10)))).blocks
    ((0, 1, 2, 3),)
    """
    sizes = structure.domain.sizes
    cliques = {frozenset(clique) for clique in structure.cliques if clique}
    covered = {frozenset(clique) for clique in structure.nested}
    maximal = [clique for clique in structure.cliques if frozenset(clique) in cliques - covered]
    # The greedy choice depends on where it starts: try some orders, always the same ones, and keep the fewest passes.
    orders = [maximal]
    if len(maximal) <= _FEW_CLIQUES:
        shuffler = random.Random(0)
        orders += [shuffler.sample(maximal, len(maximal)) for _ in range(15)]
    sets = min((_blocks(order, sizes) for order in orders), key=len)
    # At least one column is read, so that records can be counted even if no clique needs them.
    used = frozenset().union(*sets) or {structure.domain.names[0]}
    columns = tuple(name for name in structure.domain.names if name in used)
    place = {name: position for position, name in enumerate(columns)}
    return CountingPlan(
        columns=columns,
        sizes=tuple(sizes[name] for name in columns),
        blocks=tuple(tuple(sorted(place[name] for name in block)) for block in sets),
    )


def count_batch(plan: CountingPlan, codes: Codes) -> IntArray:
    """Partial counts of one batch: (plan.cells,), records. Pure; vectors of several batches add up.

    codes: one array per column of the plan, each code below its size (see `checked`).

    >>> plan = CountingPlan(columns=("a",), sizes=(3,), blocks=((0,),))
    >>> count_batch(plan, [np.array([0, 2, 2], np.uint8)]).tolist()
    [1, 0, 2, 3]
    """
    total = zero_cells(plan.cells)
    _add_batch(plan, codes, total)
    return total


def tables_of(structure: Structure, plan: CountingPlan, partial: IntArray) -> Tables:
    """The structure's tables from the summed partial counts: marginals of the blocks, summed over tied cliques."""
    ends = np.cumsum([0, *plan.block_cells()])
    blocks = [
        (
            [plan.columns[position] for position in block],
            partial[ends[number] : ends[number + 1]].reshape([plan.sizes[position] for position in block]),
        )
        for number, block in enumerate(plan.blocks)
    ]
    home: dict[frozenset[str], int] = {}
    containing: dict[str, set[int]] = {name: set() for name in plan.columns}
    for number, (names, _) in enumerate(blocks):
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
                home[key] = min(hosts, key=lambda host: blocks[host][1].size)
            table += _marginal(*blocks[home[key]], clique)
    return Tables(structure, values)


def _marginal(names: Sequence[str], counts: IntArray, clique: Clique) -> IntArray:
    others = tuple(axis for axis, name in enumerate(names) if name not in clique)
    kept = [name for name in names if name in clique]
    marginal = counts.sum(axis=others) if others else counts  # no copy of a table that is its own block
    return marginal.transpose([kept.index(name) for name in clique])


def _add_batch(plan: CountingPlan, codes: Codes, total: IntArray) -> None:
    rows = len(codes[0])
    for start in range(0, rows, BATCH_ROWS):  # a piece at a time, so that fused codes stay in cache
        piece = [column[start : start + BATCH_ROWS] for column in codes]
        end = 0
        for block, cells in zip(plan.blocks, plan.block_cells(), strict=True):
            end += cells
            _add_block(
                [piece[position] for position in block],
                [plan.sizes[position] for position in block],
                total[end - cells : end],
            )
    total[-1] += rows


def _add_block(columns: Sequence[IntArray], sizes: Sequence[int], total: IntArray) -> None:
    fused = _fused(columns, sizes, len(total))
    if len(total) <= 4 * len(fused):
        total += np.bincount(fused, minlength=len(total))
    else:  # more cells than records: touch only the cells that are hit
        cells, counts = np.unique(fused, return_counts=True)
        total[cells] += counts


def _fused(columns: Sequence[IntArray], sizes: Sequence[int], cells: int) -> IntArray:
    # code = (((c_1) r_2 + c_2) r_3 + c_3) ..., in the smallest type that holds all of it
    kind = np.uint16 if cells <= 2**16 else np.int64
    fused: IntArray | None = None
    for column, size in zip(columns, sizes, strict=True):
        if fused is None:
            fused = column.astype(kind)
        elif size > 1:
            fused *= kind(size)
            fused += column
    assert fused is not None
    return fused


def zero_cells(cells: int) -> IntArray:
    """Counts of nothing, (cells,); TooLarge with sizes if that does not fit."""
    failed = cells > 2**40
    if not failed:
        try:
            return np.zeros(cells, np.int64)
        except (MemoryError, ValueError):
            failed = True
    raise TooLarge(f"counting needs {cells:,} cells ({human_bytes(8 * cells)}), more than fits; use smaller cliques")


def _blocks(cliques: Sequence[Clique], sizes: dict[str, int]) -> list[frozenset[str]]:
    waiting: dict[frozenset[str], None] = dict.fromkeys(map(frozenset, cliques))
    around: dict[str, dict[frozenset[str], None]] = {}
    for clique in waiting:
        for name in clique:
            around.setdefault(name, {})[clique] = None
    blocks = []
    while waiting:
        block = next(iter(waiting))
        while grown := _grown(block, waiting, around, sizes):
            block = grown
        done = {clique for name in block for clique in around[name] if clique <= block}
        for clique in done:
            waiting.pop(clique, None)
            for name in clique:
                around[name].pop(clique, None)
        blocks.append(block)
    return blocks


def _grown(
    block: frozenset[str],
    waiting: Iterable[frozenset[str]],
    around: dict[str, dict[frozenset[str], None]],
    sizes: dict[str, int],
) -> frozenset[str] | None:
    room = BLOCK_CELLS // math.prod(sizes[name] for name in block)
    # Sorted, so that the plan does not depend on string hashing.
    near = dict.fromkeys(clique for name in sorted(block) for clique in around[name] if not clique <= block)
    touching: Counter[frozenset[str]] = Counter(clique - block for clique in near)
    fitting = [rest for rest in touching if math.prod(sizes[name] for name in rest) <= room]
    if fitting:
        best: frozenset[str] = max(fitting, key=lambda rest: touching[rest] / len(rest))
        return block | best
    # Nothing that shares a column fits: a clique apart still saves a pass.
    apart = _first(waiting, 64)
    return next(
        (block | rest for rest in apart if not rest & block and math.prod(sizes[n] for n in rest) <= room), None
    )


def _first(items: Iterable[frozenset[str]], number: int) -> Iterator[frozenset[str]]:
    for position, item in enumerate(items):
        if position == number:
            return
        yield item
