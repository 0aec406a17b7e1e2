"""What an engine keeps between calls: nothing. Calls from two threads do not meet, and hundreds leave no trace."""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar

import numpy as np

from dpgm_core.tables import Tables
from dpgm_core.testing.check import CheckFailed, Checklist, require
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS", "at_once", "growth", "held_up"]

T = TypeVar("T")

CHECKS = Checklist("inference")

# Calls of each of two threads, and places where one is held up; of engines whose calls take longer than this many
# seconds, about as many fewer.
_TIMES, _PLACES, _LONG = 30, 48, 0.0005
# How long one thread waits for the other, seconds, besides twice its own time.
_PATIENCE = 0.05
# Calls of one stretch whose memory is measured, and what each may leave behind, bytes. A number kept in a list takes
# 32; what the interpreter itself keeps is some hundred bytes in all.
_CALLS = 350
_FEWEST = 50  # of engines that take long; they may leave as much in all
_BYTES = 24  # less than a kept float and its place in a list; other threads of the process allocate too


@CHECKS.add()
def threads_do_not_meet(subject: InferenceSubject) -> None:
    """A call gives the same while another thread calls the engine, held up at some fifty of its lines of Python (fewer
    where a call takes long) until the other's call is over, and both at once. Cannot show: races within compiled code
    that never came up."""
    for name in ("chain", "cycle", "tied"):
        structure = awkward_structures()[name]
        engine = subject.engine(structure)
        one, two = (Tables(structure, np.random.default_rng(seed).normal(size=structure.cells)) for seed in (1, 2))
        calls = partial(engine.infer, one), partial(engine.infer, two, total=1e4)
        expected = [call() for call in calls]
        fewer = max(1.0, _seconds(calls[0]) / _LONG)
        times, places = max(4, round(_TIMES / fewer)), max(9, round(_PLACES / fewer))
        for number, answer in (*held_up(*calls, places=places), *at_once(*calls, times=times)):
            where = f"{name}: with two threads at once"
            if isinstance(answer, Exception):
                raise CheckFailed(f"{where} infer raises {type(answer).__name__}: {answer}")
            same = np.array_equal(expected[number].marginals.values, answer.marginals.values)
            require(same, f"{where} the tables are others than one call after the other")
            require(expected[number].log_partition == answer.log_partition, f"{where} log Z is another")


@CHECKS.add()
def calls_leave_nothing_behind(subject: InferenceSubject) -> None:
    """Hundreds of calls, each with potentials of its own, leave no memory taken: what learners do all day. Cannot show:
    memory that compiled code takes without telling Python."""
    structure = awkward_structures()["chain"]
    engine = subject.engine(structure)
    generator = np.random.default_rng(1)

    def call() -> object:
        return engine.infer(Tables(structure, generator.normal(size=structure.cells)))

    calls = max(_FEWEST, round(_CALLS / max(1.0, _seconds(call) / _LONG)))
    left = growth(call, calls, _CALLS * _BYTES)
    require(
        left <= _CALLS * _BYTES, f"every {calls} calls leave {left:,} bytes behind or more, {left / calls:.0f} each"
    )


def _seconds(call: Callable[[], object]) -> float:
    """What a call takes of the processor: the least of a few, the first of which may have filled something."""
    found = []
    for _ in range(4):
        started = time.thread_time()
        call()
        found.append(time.thread_time() - started)
    return min(found)


def at_once(one: Callable[[], T], two: Callable[[], T], *, times: int) -> list[tuple[int, T | Exception]]:
    """What two calls give when each is made so often by a thread of its own: (0 or 1, answer or exception).

    >>> sorted(at_once(lambda: "a", lambda: "b", times=2))
    [(0, 'a'), (0, 'a'), (1, 'b'), (1, 'b')]
    """
    answers: list[tuple[int, T | Exception]] = []
    threads = [
        threading.Thread(target=lambda number=number, call=call: answers.extend(_made(number, call, times)))
        for number, call in enumerate((one, two))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def held_up(one: Callable[[], T], two: Callable[[], T], *, places: int = 48) -> list[tuple[int, T | Exception]]:
    """What they give when `one` is held up before a line that it runs until `two`, in another thread, is through.

    Once for each of so many lines: a third of them the first that run, a third the last, a third from in between. Where
    `two` waits for `one`, as with a lock, `one` goes on after a moment.

    >>> shared = []
    >>> def first():
    ...     shared[:] = [1]
    ...     return shared[0]
    >>> def second():
    ...     shared[:] = [2]
    ...     return shared[0]
    >>> sorted(set(held_up(first, second)))
    [(0, 1), (0, 2), (1, 2)]
    """
    lines = _Lines(one)
    start = time.perf_counter()
    lines.run(-1, lambda: None)
    patience = _PATIENCE + 2 * (time.perf_counter() - start)
    count, third = lines.seen, places // 3
    chosen = {*range(third), *range(count - third, count), *range(0, count, max(1, count // third))}
    answers: list[tuple[int, T | Exception]] = []
    for place in sorted(chosen & set(range(count))):
        other = threading.Thread(target=lambda: answers.extend(_made(1, two, 1)))

        def meanwhile(other: threading.Thread = other) -> None:
            other.start()
            other.join(patience)

        answers.append((0, lines.run(place, meanwhile)))
        if other.ident is not None:  # it need not have come to that line again
            other.join()
    return answers


class _Lines(Generic[T]):
    """A call that can be held up before any line of Python that it runs."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.call, self.seen = call, 0

    def run(self, place: int, meanwhile: Callable[[], None]) -> T | Exception:
        """Its answer, or its exception; `meanwhile` is called before line number `place`."""
        self.seen = 0

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            if event == "line":
                self.seen += 1
                if self.seen == place + 1:
                    meanwhile()
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            return self.call()
        except Exception as error:
            return error
        finally:
            sys.settrace(before)


def _made(number: int, call: Callable[[], T], times: int) -> Iterator[tuple[int, T | Exception]]:
    for _ in range(times):
        try:
            yield number, call()
        except Exception as error:
            yield number, error


def growth(call: Callable[[], object], calls: int, allowed: int = 0) -> int:
    """How many bytes more are taken after so many calls, by Python's own count; the least of three such stretches,
    after a first one that fills what is filled once. The first stretch that leaves no more than allowed is the last:
    more of them could not make the least one larger.

    >>> kept = []
    >>> growth(lambda: kept.append(bytes(100)), 100) > 100 * 100
    True
    """
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        left: list[int] = []
        while len(left) < 4 and min(left[1:], default=allowed + 1) > allowed:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(calls):
                call()
            gc.collect()
            left.append(tracemalloc.get_traced_memory()[0] - before)
        return max(0, min(left[1:]))
    finally:
        if started:
            tracemalloc.stop()
