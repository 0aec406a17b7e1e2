"""Sums over the records of one transaction: streamed through core's kernel, or counted by the engine itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field, frozen

from dpgm_core import IntArray
from dpgm_core.sources import Grouped, Reading, Reduction, Shipped, SourceRefused, received
from dpgm_sql.dialect import Column
from dpgm_sql.grouping import Pushed
from dpgm_sql.session import Session, Table

__all__ = ["MOST_KEPT", "Counted", "Streamed"]

#: Bytes of codes that are kept for further sums; a larger table is read anew for each, in the same transaction.
MOST_KEPT = 2**28


@frozen(eq=False, repr=False)
class Streamed:
    """Records that are streamed for each sum, or once if more sums follow and their codes take little memory.

    columns: of each name in `reading.names`, once. most: bytes of codes that are kept.
    """

    session: Session
    table: Table
    columns: Sequence[Column]
    reading: Reading
    most: int = MOST_KEPT
    _blocks: list[bytes] = field(init=False, factory=list)
    _left: list[bool] = field(init=False, factory=list)

    def leave(self) -> None:
        """Drop what is cached; no sum follows."""
        self._blocks.clear()
        self._left.append(True)

    @property
    def left(self) -> bool:
        """Whether the records are no longer pinned."""
        return bool(self._left)

    def reduce(self, reduction: Reduction) -> IntArray:
        """The sum over all rows. Raises SourceRefused."""
        if self._left:
            raise SourceRefused("the records are pinned no more; pin them again for another sum")
        work = Shipped(reading=self.reading)
        if self._blocks:
            return received([work.partial(reduction, self._blocks)], reduction)
        batches = self.session.batches(self.table, self.columns)
        if not self.reading.several:
            return received([work.summed(reduction, batches)], reduction)
        stored: list[bytes] = []
        sums = received([work.partial(reduction, _keeping(work.blocks(batches), stored, self.most))], reduction)
        self._blocks.extend(stored)  # only now: of a pass that failed nothing is kept
        return sums


@frozen(eq=False, repr=False)
class Counted:
    """Records that the engine counts itself; a sum that is no count is streamed, in the same transaction."""

    session: Session
    pushed: Pushed
    streamed: Streamed

    def reduce(self, reduction: Reduction) -> IntArray:
        """The sum over all rows. Raises SourceRefused."""
        if self.streamed.left or not isinstance(reduction, Grouped):
            return self.streamed.reduce(reduction)
        return self.pushed.vector(reduction, map(self.session.counted, self.pushed.queries(reduction)))


def _keeping(blocks: Iterator[bytes], stored: list[bytes], most: int) -> Iterator[bytes]:
    """The blocks, which are kept while all of them fit."""
    size = 0
    for block in blocks:
        size += len(block)
        if size > most:
            stored.clear()
        else:
            stored.append(block)
        yield block
