"""The kit's own example of a source that sums where the rows are: a table in partitions, each worked on by itself.

What an engine does between processes is done here within one, through pickles and bytes all the same; what is done with
a partition is core's `Shipped`. Read it before you write one for an engine.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field, frozen

from dpgm_core.arrays import IntArray
from dpgm_core.errors import SourceRefused
from dpgm_core.sources.contract import Reading, Reduction
from dpgm_core.sources.shipped import Shipped, received

__all__ = ["PartitionPin", "PartitionedSource", "partitioned", "partitions_of"]

T = TypeVar("T")


@frozen(kw_only=True)
class PartitionedSource:
    """A pyarrow Table whose chunks are partitions.

    >>> import pyarrow as pa
    >>> from dpgm_core.counting.kernel import Counts
    >>> from dpgm_core.domain import Domain
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
