"""How long a call takes: the least of some runs, because what is slower was disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_seconds(call: Callable[[], object], runs: int = 1) -> float:
    """The least CPU seconds, of all threads of this process."""
    return _least(call, runs, time.process_time)


def wall_seconds(call: Callable[[], object], runs: int = 1) -> float:
    """The least seconds on the wall."""
    return _least(call, runs, time.perf_counter)


def _least(call: Callable[[], object], runs: int, clock: Callable[[], float]) -> float:
    least = float("inf")
    for _ in range(runs):
        start = clock()
        call()
        least = min(least, clock() - start)
    return least
