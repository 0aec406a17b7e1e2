"""Tasks of dask's workers: plain functions of one partition each, none of which ever raises.

Dask logs what a task raises, and that may quote a record. So a partition is read inside of the iterator that `Shipped`
draws from, and what goes wrong there comes back as bytes. Nothing is printed and nothing is logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Protocol

from dpgm_core import __version__
from dpgm_core.sources import Reduction, Shipped, merged

__all__ = ["Partition", "blocks", "limit_rows", "merge", "part_of", "spread", "summed", "summed_blocks", "version"]


class Partition(Protocol):
    """A partition, as the graph describes it."""

    def batches(self, frame: Any) -> Iterator[Any]:
        """Its rows as Arrow record batches. frame: what dask made for it, or None."""
        ...


def version() -> str:
    """Return the version of dpgm-core where this runs."""
    return __version__


def summed(work: Shipped, reduction: Reduction, partition: Partition, frame: Any) -> bytes:
    """Return the sum over one partition."""
    return work.summed(reduction, partition.batches(frame))


def blocks(work: Shipped, partition: Partition, frame: Any) -> list[bytes]:
    """Return one partition as blocks of codes, a byte or two a value."""
    return list(work.blocks(partition.batches(frame)))


def summed_blocks(work: Shipped, reduction: Reduction, blocks: list[bytes]) -> bytes:
    """Return the sum over blocks of codes."""
    return work.partial(reduction, blocks)


def spread(work: Shipped, partition: Partition, frame: Any, parts: int) -> list[list[bytes]]:
    """Return the rows of one partition by the part that their persons belong to."""
    pieces: list[list[bytes]] = [[] for _ in range(parts)]
    for part, block in work.spread(partition.batches(frame), parts):
        pieces[part].append(block)
    return pieces


def part_of(spread: list[list[bytes]], part: int) -> list[bytes]:
    """Return the blocks of one partition for one part, so that only these travel."""
    return spread[part]


def limit_rows(work: Shipped, *pieces: list[bytes]) -> list[bytes]:
    """Return blocks of codes of one part's persons, from all partitions."""
    return list(work.limit_rows(block for piece in pieces for block in piece))


def merge(*sums: bytes) -> bytes:
    """Return several sums as one."""
    return reduce(merged, sums)
