"""Memory layout for lowering: which axes lie side by side, and where buffers go in the arena."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from dpgm_core.inference.plan import Letters

__all__ = ["cut_into_runs", "first_fit", "is_run"]

_LINE = 8  # doubles in a cache line


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


def first_fit(wanted: Mapping[int, tuple[int, int, int]]) -> tuple[dict[int, int], int]:
    """Where each buffer starts, so that none overlaps another that is live at the same time, and the memory needed.

    wanted: buffer -> (first use, last use, cells). Starts are multiples of a cache line.

    >>> first_fit({0: (0, 1, 8), 1: (1, 3, 8), 2: (2, 3, 5)})
    ({0: 0, 1: 8, 2: 0}, 16)
    """
    starts: dict[int, int] = {}
    live: list[tuple[int, int, int]] = []  # (start, end, last use), ascending
    size = 0
    for buffer, (first, last, cells) in sorted(wanted.items(), key=lambda item: (item[1][0], item[0])):
        live = [entry for entry in live if entry[2] >= first]
        room = -(-cells // _LINE) * _LINE
        start = 0
        for low, high, _ in live:
            if low - start >= room:
                break
            start = high
        starts[buffer] = start
        insort(live, (start, start + room, last))
        size = max(size, start + room)
    return starts, size
