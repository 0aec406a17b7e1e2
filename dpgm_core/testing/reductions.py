"""Sums that sources which sum where the rows are get asked for by the kit, and what each must come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core.arrays import Codes, IntArray
from dpgm_core.counting.kernel import Blocks, Counts
from dpgm_core.counting.rows import Streamed
from dpgm_core.counting.statistic import Sum
from dpgm_core.domain import Domain
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.sources.contract import Reading
from dpgm_core.structure import Clique, Structure

__all__ = ["PLANTED", "Failing", "Hidden", "Large", "Tallies", "embedded", "tallies"]

#: A value that no source shows to anybody.
PLANTED = "CANARY7291"


@frozen
class Tallies(Counts):
    """Core's counts with a table for each clique, none merged with another, so that an engine may count them itself."""

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each table."""
        return tuple(tuple(self.columns[place] for place in block) for block in self.blocks.positions)

    def hits(self, sums: IntArray) -> list[Counter[tuple[int, ...]]]:
        """Of each table how often each tuple of codes occurs."""
        found, end = [], 0
        for block, cells in zip(self.blocks.positions, self.blocks.block_cells(), strict=True):
            end += cells
            table = sums[end - cells : end].reshape([self.blocks.sizes[place] for place in block])
            found.append(Counter({tuple(codes): int(table[tuple(codes)]) for codes in np.argwhere(table).tolist()}))
        return found


def tallies(domain: Domain, cliques: Sequence[Clique]) -> Tallies:
    """One table for each clique; the columns are in the order in which the cliques name them first.

    >>> counts = tallies(Domain.from_sizes({"a": 2, "b": 3}), [("b", "a")])
    >>> codes = [np.array([2, 2], np.uint8), np.array([0, 0], np.uint8)]
    >>> counts.columns, counts.hits(counts.partial(codes, None))
    (('b', 'a'), [Counter({(2, 0): 2})])
    """
    columns = tuple(dict.fromkeys(name for clique in cliques for name in clique))
    place = {name: number for number, name in enumerate(columns)}
    blocks = Blocks(
        columns=columns,
        sizes=tuple(domain[name].size for name in columns),
        positions=tuple(tuple(place[name] for name in clique) for clique in cliques),
    )
    return Tallies(Structure(domain, [*cliques]), blocks)


def embedded(table: Any, reading: Reading, reduction: Sum) -> IntArray:
    """The sum over the rows of a pyarrow table, (cells,), as core takes it here."""
    return Streamed(ArrowSource(data=table), reading).total(reduction)


class _Wrapped(Sum):
    inner: Sum

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inner.columns

    @property
    def cells(self) -> int:
        return self.inner.cells


@frozen
class Hidden(_Wrapped):
    """Another sum, of which nothing is known but what every reduction has: engines cannot count it their own way."""

    inner: Sum

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """As the other does."""
        self.inner.add(codes, lengths, sums)

    def check(self, sums: IntArray) -> None:
        """As the other does."""
        self.inner.check(sums)


@frozen
class Failing(_Wrapped):
    """Another sum, which fails over any record where the rows are, in words that quote one."""

    inner: Sum

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Fails if there is a record."""
        if len(codes[0]):
            raise ValueError(f"cannot add {PLANTED}: {[column.tolist() for column in codes]}")


@frozen
class Large(Sum):
    """Sums beyond 32 bits, of both signs, and beyond what a double holds to the last digit.

    Of each row 2^40 times its first code and 1 more; of each row -2^50; of each person 2^53 and of each row 1 more.
    """

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those named."""
        return self.names

    @property
    def cells(self) -> int:
        """Three."""
        return 3

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add the rows."""
        rows = len(codes[0])
        persons = rows if lengths is None else len(lengths)
        sums += [2**40 * int(codes[0].sum(dtype=np.int64)) + rows, -(2**50) * rows, 2**53 * persons + rows]
