"""What runs in dask's workers: plain functions of one partition each, none of which ever raises.

Dask logs what a task raises, and that may quote a record. So a partition is read inside of the iterator that `Shipped`
draws from, and what goes wrong there comes back as bytes. Nothing is printed and nothing is logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Protocol

from dpgm_core import __version__
from dpgm_core.sources import Reduction, Shipped, merged

__all__ = ["Partition", "blocks", "kept", "merge", "part_of", "spread", "summed", "summed_blocks", "version"]


class Partition(Protocol):
    """What is known of a partition where the graph is made."""

    def batches(self, frame: Any) -> Iterator[Any]:
        """Its rows as Arrow record batches. frame: what dask made for it, or None."""
        ...


def version() -> str:
    """That of dpgm-core, where this runs."""
    return __version__


def summed(work: Shipped, reduction: Reduction, partition: Partition, frame: Any) -> bytes:
    """The sum over one partition."""
    return work.summed(reduction, partition.batches(frame))


def blocks(work: Shipped, partition: Partition, frame: Any) -> list[bytes]:
    """One partition as blocks of codes, worth keeping: a byte or two a value."""
    return list(work.blocks(partition.batches(frame)))


def summed_blocks(work: Shipped, reduction: Reduction, blocks: list[bytes]) -> bytes:
    """The sum over what `blocks` or `kept` made."""
    return work.partial(reduction, blocks)


def spread(work: Shipped, partition: Partition, frame: Any, parts: int) -> list[list[bytes]]:
    """The rows of one partition by the part that their persons belong to."""
    pieces: list[list[bytes]] = [[] for _ in range(parts)]
    for part, block in work.spread(partition.batches(frame), parts):
        pieces[part].append(block)
    return pieces


def part_of(spread: list[list[bytes]], part: int) -> list[bytes]:
    """What one partition has for one part; so only that travels to where the part is."""
    return spread[part]


def kept(work: Shipped, *pieces: list[bytes]) -> list[bytes]:
    """Blocks of codes of one part's persons, from all partitions."""
    return list(work.kept(block for piece in pieces for block in piece))


def merge(*sums: bytes) -> bytes:
    """Several sums as one."""
    return reduce(merged, sums)
