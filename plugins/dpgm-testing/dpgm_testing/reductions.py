"""Sums for sources that reduce where the rows are, and an example of such a source."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from attrs import define, field, frozen

from dpgm_core._util.arrays import Codes, IntArray
from dpgm_core.counting.rows import Streamed
from dpgm_core.counting.statistic import Sum
from dpgm_core.counting.table_counts import Blocks, Counts
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import SourceRefused
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.sources.contract import Reading, Reduction
from dpgm_core.sources.engines import Shipped, received
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "Failing",
    "Hidden",
    "Large",
    "PLANTED",
    "PartitionPin",
    "PartitionedSource",
    "Tallies",
    "embedded",
    "partitioned",
    "partitions_of",
    "tallies",
]


# --- Sums and what they must come to --------------------------------------------------------------

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


# --- Example: a source in partitions --------------------------------------------------------------
# What an engine does between processes is done here within one, through pickles and bytes all the same; what is done
# with a partition is core's `Shipped`. Read it before you write one for an engine.

T = TypeVar("T")


@frozen(kw_only=True)
class PartitionedSource:
    """A pyarrow Table whose chunks are partitions.

    >>> import pyarrow as pa
    >>> from dpgm_core.counting.table_counts import Counts
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> domain = Domain.from_sizes({"a": 2})
    >>> source = PartitionedSource(table=pa.table({"a": pa.chunked_array([[0, 1], [1]])}))
    >>> with source.pinned(Reading(domain=domain, columns=("a",))) as pinned:
    ...     pinned.reduce(Counts.of(Structure(domain, [("a",)]))).tolist()
    [1, 2, 3]
    """

    table: Any = field(eq=id, repr=lambda table: type(table).__name__, metadata={"help": "the records"})
    parts: int = field(default=3, metadata={"help": "parts that persons are shared out to"})

    @contextmanager
    def pinned(self, reading: Reading) -> Iterator[PartitionPin]:
        """The codes of each partition, kept while the context is open."""
        work = Shipped(reading=reading)
        work.check(self.table.schema)
        pin = PartitionPin(work, list(self.coded(work)))
        try:
            yield pin
        finally:
            pin.partitions = None

    def coded(self, work: Shipped) -> Iterator[list[bytes]]:
        """The blocks of codes of each partition; with a person key, of each part's persons."""
        partitions = [part.to_batches() for part in partitions_of(self.table)]
        if work.reading.person is None:
            yield from (list(sent(work).blocks(batches)) for batches in partitions)
            return
        together: list[list[bytes]] = [[] for _ in range(self.parts)]
        for batches in partitions:
            for number, block in sent(work).spread(batches, self.parts):
                together[number].append(block)
        yield from (list(sent(work).limit_rows(blocks)) for blocks in together)


@define
class PartitionPin:
    """Blocks of codes of each partition; None once the pin was left."""

    work: Shipped
    partitions: list[list[bytes]] | None = field(repr=False)

    def reduce(self, reduction: Reduction) -> IntArray:
        """The sum over all partitions. Raises SourceRefused once the pin was left."""
        if self.partitions is None:
            raise SourceRefused("these records were let go; pin them again")
        return received((self.partial(reduction, blocks) for blocks in self.partitions), reduction)

    def partial(self, reduction: Reduction, blocks: list[bytes]) -> bytes:
        """The sum over one partition, as it comes back."""
        return sent(self.work).partial(sent(reduction), blocks)


def partitioned(table: Any, folder: Path) -> PartitionedSource:
    """How the kit gives this source its records."""
    return PartitionedSource(table=table)


def partitions_of(table: Any) -> list[Any]:
    """The rows of each chunk, as tables; an empty chunk is one too.

    >>> import pyarrow as pa
    >>> [len(part) for part in partitions_of(pa.table({"a": pa.chunked_array([[1], [], [2, 3]], pa.int64())}))]
    [1, 0, 2]
    """
    parts, start = [], 0
    for chunk in table.column(0).chunks:
        parts.append(table.slice(start, len(chunk)))
        start += len(chunk)
    return parts


def sent(work: T) -> T:
    """What arrives of work that goes to another process."""
    arrived: T = pickle.loads(pickle.dumps(work))
    return arrived
