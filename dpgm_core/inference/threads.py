"""Threads that end with the call."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from dpgm_core._util.blas import said
from dpgm_core.errors import OptionError

__all__ = ["cores", "in_threads"]


_Result = TypeVar("_Result")

# Threads begin and end within a call, so that a forked process inherits none; that takes about .1 ms.
_MIN_SECONDS = 1e-3


class _Own(threading.local):
    """Whether this thread is one of several that work side by side."""

    shares = False


_OWN = _Own()


def cores() -> int:
    """Return how many threads may work at once: by DPGM_THREADS or else OMP_NUM_THREADS, at most the usable cores.

    Those that run many processes on one machine, such as joblib, dask and Spark, say it by OMP_NUM_THREADS. A process
    of `multiprocessing` has one, as its siblings have the others. DPGM_THREADS outdoes both. What our own programs set
    for BLAS says nothing here. Raises OptionError where DPGM_THREADS is no number above 0.
    """
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if ours := os.environ.get("DPGM_THREADS", "").strip():
        if not ours.isdecimal() or int(ours) < 1:
            raise OptionError(f"DPGM_THREADS must be a number of threads, 1 or more, got {ours!r}")
        return min(int(ours), usable)
    processes = sys.modules.get("multiprocessing.process")
    if processes and processes.parent_process():
        return 1
    first = said("OMP_NUM_THREADS").split(",")[0].strip()  # the others are for nested regions
    return min(int(first), usable) if first.isdecimal() and int(first) > 0 else usable


def in_threads(calls: Sequence[Callable[[], _Result]], *, seconds: float, workers: int | None = None) -> list[_Result]:
    """The results of independent calls, in their order; at most `workers` (None: `cores`) at once, this thread too.

    seconds: what all of them are predicted to take one after the other; below a millisecond they do so, as they do
    within a call of another `in_threads`. Of calls that raise, the first one's exception is raised, when those that had
    begun are done; no others begin, and no thread is left. The calls see the caller's context (numpy.errstate).
    """
    workers = min(len(calls), cores() if workers is None else workers)
    if workers < 2 or seconds < _MIN_SECONDS or _OWN.shares:
        return [call() for call in calls]
    waiting, taking, stopped = iter(enumerate(calls)), threading.Lock(), threading.Event()
    errors = np.geterr()  # of the thread alone, before numpy 2
    results: dict[int, _Result] = {}
    failures: dict[int, BaseException] = {}

    def work() -> None:
        _OWN.shares = True
        try:
            with np.errstate(**errors):
                while True:
                    with taking:
                        number, call = (-1, None) if stopped.is_set() else next(waiting, (-1, None))
                    if call is None:
                        return
                    try:
                        results[number] = call()
                    except BaseException as error:  # raised again in the thread that called
                        failures[number] = error
                        stopped.set()
        finally:
            _OWN.shares = False

    started = []
    try:
        for _ in range(workers - 1):
            thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
            try:
                thread.start()
            except RuntimeError:  # the system gives no more; those that are there take all
                break
            started.append(thread)
        work()
    finally:  # also where Ctrl-C came in between two calls
        stopped.set()
        for thread in started:
            thread.join()
    if failures:
        # Ctrl-C before all else; then the first of the row, whichever happened to fail first
        raise min(failures.items(), key=lambda one: (isinstance(one[1], Exception), one[0]))[1]
    return [results[number] for number in range(len(calls))]
