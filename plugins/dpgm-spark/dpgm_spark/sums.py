"""Sums over a pinned data frame: each partition's is taken where it is, and executors add them up to one.

Each sum is the result of one job. Spark takes one result of each partition into a job, of the first attempt that ends
well, however often tasks are tried again or run twice for speed; accumulators, which count every attempt, are not used.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpgm_core import IntArray
from dpgm_core.sources import Adding, Reading, Reduction, Shipped, SourceRefused, received
from dpgm_spark import sent
from dpgm_spark.session import attempt

__all__ = ["SparkPinned", "pinned_frame"]

#: Sums that one task adds up.
_FAN = 16
#: Bytes of sums that the driver takes and adds up itself: another stage would take longer.
_DRIVEN = 2**25
#: Parts that core shares persons out to, at most.
_PARTS = 2**16
_FAILED = (
    "Spark could not finish the sum; what it says is withheld, as it may quote a record (its own logs have it); "
    "look for a column that fails on a value, lost executors, memory, damaged files, or a sum larger than "
    "spark.driver.maxResultSize"
)
_UNOPENED = "dpgm-core cannot be loaded on some executor; install the version that is here on all of them"
_CHANGED = "the records changed between two passes over them; count from a copy or a snapshot that stays as it is"


class SparkPinned:
    """Rows of one data frame, whose sums are all over the same rows, or fail."""

    def __init__(self, reading: Reading, frame: Any, names: tuple[str, ...]) -> None:
        self._reading, self._frame, self._names = reading, frame, names
        self._key = tuple(secrets.randbits(64) for _ in range(2 * len(reading.columns) + 2))
        self._marks: list[int] | None = None
        self._blocks: Any = None

    def reduce(self, reduction: Reduction) -> IntArray:
        """The sum over all rows, (cells,), each counted once. Raises SourceRefused, and never what Spark raised."""
        marked = sent.Marked(reduction, isinstance(reduction, Adding), self._reading.columns, self._key)
        parts = attempt(_FAILED, lambda: self._parts(marked))
        if sent.UNOPENED in parts:
            raise SourceRefused(_UNOPENED)
        sums = received(parts, marked)
        marks = sums[reduction.cells :].tolist()
        if self._marks is None:
            self._marks = marks
        if marks != self._marks:
            raise SourceRefused(_CHANGED)
        return sums[: reduction.cells].copy()

    def close(self) -> None:
        """Drop what was kept."""
        if self._blocks is not None:
            self._blocks.unpersist(blocking=False)

    def _parts(self, marked: sent.Marked) -> list[bytes]:
        payload, size = self._payload(marked), 8 * marked.cells
        if not self._reading.several and self._reading.person is None:
            frame = self._frame.mapInArrow(sent.summed(payload, self._names), "content binary")
            if self._frame.rdd.getNumPartitions() * size <= _DRIVEN:
                # Not by an RDD, whose own Python costs each task as much again.
                return [bytes(row[0]) for row in frame.collect()]
            return _added(frame.rdd.map(sent.content), size)
        if self._blocks is None:
            self._blocks = self._coded()
        return _added(self._blocks.mapPartitions(sent.total(payload)), size)

    def _coded(self) -> Any:
        from pyspark import StorageLevel

        own = self._reading
        if own.person is None:
            blocks = self._mapped(sent.block(self._payload(None), self._names)).map(sent.content)
        else:
            # As many as the rows come in, which fits their number; Spark's own 200 are too many for few rows.
            parts = min(max(self._frame.rdd.getNumPartitions(), 1), _PARTS)
            spread = self._mapped(sent.spread(self._payload(None), self._names, parts), "part int, content binary")
            blocks = spread.map(tuple).partitionBy(parts, sent.same).mapPartitions(sent.limit_rows(self._payload(None)))
        return blocks.persist(StorageLevel.MEMORY_AND_DISK) if own.several else blocks

    def _mapped(self, task: sent.Task, columns: str = "content binary") -> Any:
        return self._frame.mapInArrow(task, columns).rdd

    def _payload(self, marked: sent.Marked | None) -> bytes:
        from pyspark import cloudpickle

        content: bytes = cloudpickle.dumps((Shipped(reading=self._reading), marked))
        return content


def _added(sums: Any, size: int) -> list[bytes]:
    """A few sums, of `size` bytes each, that all of them come to: one where they are wide."""
    parts = sums.getNumPartitions()
    while parts > 1 and parts * size > _DRIVEN:
        fewer = -(-parts // _FAN)
        sums = sums.mapPartitionsWithIndex(sent.numbered(fewer)).partitionBy(fewer, sent.same).mapPartitions(sent.added)
        parts = fewer
    collected: list[bytes] = sums.collect()
    return collected


@contextmanager
def pinned_frame(reading: Reading, frame: Any, names: tuple[str, ...]) -> Iterator[SparkPinned]:
    """Sums over a frame of exactly these columns."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sent)
    pinned = SparkPinned(reading, frame, names)
    try:
        yield pinned
    finally:
        attempt(_FAILED, pinned.close)
