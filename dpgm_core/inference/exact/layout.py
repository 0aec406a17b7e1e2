"""Memory layout for lowering: which axes lie side by side, and where buffers go in the arena."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from dpgm_core.inference.exact.contraction import Letters

__all__ = ["LINE", "cut_into_runs", "first_fit", "is_run"]

LINE = 8  # doubles in a cache line


def is_run(letters: Letters, run: Letters) -> bool:
    """Whether `run`, which may be empty, stands in `letters` side by side and in this order.

    >>> is_run((0, 1, 2), (1, 2)), is_run((0, 1, 2), (0, 2)), is_run((0, 1, 2), ())
    (True, False, True)
    """
    if not run:
        return True
    at = letters.index(run[0])
    return letters[at : at + len(run)] == run


def cut_into_runs(order: Letters, tables: Sequence[Letters]) -> list[Letters]:
    """Cut `order` into the longest runs whose letters every table has side by side, or not at all.

    >>> cut_into_runs((0, 1, 2), [(0, 1, 2), (2, 0, 1)])
    [(0, 1), (2,)]
    """
    runs: list[Letters] = []
    for letter in order:
        if runs and all(
            (runs[-1][-1] in table) == (letter in table)
            and (letter not in table or is_run(table, (runs[-1][-1], letter)))
            for table in tables
        ):
            runs[-1] = (*runs[-1], letter)
        else:
            runs.append((letter,))
    return runs


def first_fit(uses: Mapping[int, tuple[int, int, int]]) -> tuple[dict[int, int], int]:
    """Return where each buffer starts, so that none overlaps another that is live at the same time, and the memory.

    uses: buffer -> (first use, last use, cells). Starts are multiples of a cache line.

    >>> first_fit({0: (0, 1, 8), 1: (1, 3, 8), 2: (2, 3, 5)})
    ({0: 0, 1: 8, 2: 0}, 16)
    """
    starts: dict[int, int] = {}
    live: list[tuple[int, int, int]] = []  # a heap of (last use, start, end)
    free: list[tuple[int, int]] = []  # (start, end) below `size`, ascending, no two touching
    size = 0
    for buffer, (first, last, cells) in sorted(uses.items(), key=lambda item: (item[1][0], item[0])):
        while live and live[0][0] < first:
            _release(free, *heappop(live)[1:])
        room = -(-cells // LINE) * LINE
        at = next((i for i, (low, high) in enumerate(free) if high - low >= room or high == size), None)
        low, high = (size, size) if at is None else free.pop(at)
        if high - low > room:
            insort(free, (low + room, high))
        starts[buffer] = low
        size = max(size, low + room)
        heappush(live, (last, low, low + room))
    return starts, size


def _release(free: list[tuple[int, int]], low: int, high: int) -> None:
    at = bisect_left(free, (low, high))
    if at < len(free) and free[at][0] == high:
        high = free.pop(at)[1]
    if at and free[at - 1][1] == low:
        low = free.pop(at - 1)[0]
    insort(free, (low, high))
