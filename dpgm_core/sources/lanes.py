"""Prefetching threads for several streams: the results have the order of one stream after the other.

A lane is a thread that runs ahead of whoever takes the items, by a bounded number of bytes, so memory stays bounded
whatever the streams hold, and a lane that is far ahead waits. Which lane is faster changes no result.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Generic, TypeVar

from dpgm_core.sources.quiet import quiet

__all__ = ["LANES", "in_lanes"]

#: Threads that decode, besides the one that counts; more than a few would only wait for it.
LANES = max(1, min(4, (os.cpu_count() or 1) - 1))
#: Bytes that all lanes together may be ahead.
_MAX_AHEAD = 2**26

T = TypeVar("T")


class _Stream(Generic[T]):
    """One stream, and the items that its lane has made and nobody has taken yet."""

    def __init__(self, source: Callable[[], Iterator[T]], size: Callable[[T], int], room: int) -> None:
        self._source, self._size, self._room = source, size, room
        self._made: deque[tuple[T, int]] = deque()
        self._held = 0
        self._changed = Condition()
        self._ended = self._unwanted = False
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Run the stream to its end in the lane, waiting while it is too far ahead."""
        error: BaseException | None = None
        try:
            iterator = iter(()) if self._unwanted else self._source()
            while self._put(iterator):
                pass
        except BaseException as raised:  # for whoever takes the items to raise, who would wait for ever without it
            error = raised
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def _put(self, iterator: Iterator[T]) -> bool:
        with quiet():  # numpy's settings and logs are each thread's own; not held while waiting
            item = next(iterator, self)
        if item is self:
            return False
        size = self._size(item)  # type: ignore[arg-type]
        with self._changed:
            # An item is always let in where there is none, or one larger than the room would never pass.
            self._changed.wait_for(lambda: self._unwanted or not self._made or self._held + size <= self._room)
            self._made.append((item, size))  # type: ignore[arg-type]
            self._held += size
            self._changed.notify_all()
            return not self._unwanted

    def drop(self) -> None:
        """Let the lane end at its next item."""
        with self._changed:
            self._unwanted = True
            self._changed.notify_all()

    def taken(self) -> Iterator[T]:
        """Yield the items in their order, and raise what the stream raised after them."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._made or self._ended)
                if not self._made:
                    break
                item, size = self._made.popleft()
                self._held -= size
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error


def in_lanes(
    streams: Iterable[Callable[[], Iterator[T]]],
    size: Callable[[T], int],
    lanes: int = LANES,
    ahead: int = _MAX_AHEAD,
) -> Iterator[T]:
    """Yield the items of all streams, one stream after the other, made in `lanes` threads.

    size: an item's bytes. ahead: bytes that may wait at a time, besides one item of each lane that is being made; an
    item larger than a lane's share waits alone.

    >>> list(in_lanes([lambda: iter([1, 2]), lambda: iter([3])], lambda item: 1))
    [1, 2, 3]
    """
    # One stream more than lanes is open: while the last items of the first are taken, no lane has to rest.
    room = ahead // (lanes + 1)
    open_ones: deque[_Stream[T]] = deque()
    waiting: SimpleQueue[_Stream[T] | None] = SimpleQueue()
    threads: list[Thread] = []
    try:
        for source in streams:
            open_ones.append(stream := _Stream(source, size, room))
            waiting.put(stream)
            if len(threads) < lanes:
                # A daemon: a lane that waits for a taker must not keep the interpreter from ending.
                threads.append(Thread(target=_run, args=(waiting,), daemon=True))
                threads[-1].start()
            if len(open_ones) > lanes:
                yield from open_ones[0].taken()
                open_ones.popleft()
        while open_ones:
            yield from open_ones[0].taken()
            open_ones.popleft()
    finally:
        for stream in open_ones:
            stream.drop()
        for _ in threads:
            waiting.put(None)
        for thread in threads:
            thread.join()


def _run(waiting: SimpleQueue[_Stream[T] | None]) -> None:
    while (stream := waiting.get()) is not None:
        stream.fill()
