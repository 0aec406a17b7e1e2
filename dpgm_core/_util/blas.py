"""One BLAS thread while dpgm works: its matrices are small, and threads wait for each other longer than they work.

BLAS takes a thread for every core unless it is limited. Where a core is busy with something else, each product then
waits for the slowest thread: a fit took two to three times as long with one other busy process. The limit holds for the
whole process while anyone is inside, whatever thread they are in; after the last has left, the libraries have what they
had before. Whoever says in the environment how many threads BLAS takes (`OPENBLAS_NUM_THREADS` and its like) is heard,
also where a library was loaded too early to hear it.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ContextDecorator
from typing import Any

__all__ = ["one_thread", "said", "start_with_one_thread"]

# What BLAS libraries read when they are loaded.
_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# Those that `start_with_one_thread` has set.
_OURS: set[str] = set()


class OneThread(ContextDecorator):
    """A context manager and decorator; nested and from several threads. Entering costs microseconds, the first time
    and after imports a millisecond.

    A process that is forked inside keeps the limit until as many have left there as were inside.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._inside = 0
        self._modules = 0
        self._libraries: list[Any] = []
        self._most = 1
        # What was limited, in order, and to how many threads it goes back.
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            # A library comes with a module: where no module is new, no library is.
            modules = len(sys.modules)
            if self._modules != modules:
                self._libraries, self._most = _blas(), _said() or 1
                self._modules = modules  # last: where the look failed, the next entry looks again
                self._limit()
            elif not self._inside:
                self._limit()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self._inside -= 1
            while self._before and not self._inside:
                library, threads = self._before.pop()
                library.set_num_threads(threads)

    def _limit(self) -> None:
        for library in self._libraries:
            threads = library.get_num_threads()
            if threads is not None and threads > self._most:
                self._before.append((library, threads))
                library.set_num_threads(self._most)


def _blas() -> list[Any]:
    """The controllers of what is loaded now."""
    from threadpoolctl import ThreadpoolController

    return [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]


def _said() -> int:
    """The most threads that the environment grants any library; 0 where it says nothing."""
    texts = [said(name) for name in _VARIABLES]
    return max(int(one) if one.isdecimal() else sys.maxsize if one else 0 for one in texts)


def said(name: str) -> str:
    """What the user says by a variable of the environment; "" for nothing, or what `start_with_one_thread` has set."""
    return "" if name in _OURS and os.environ.get(name) == "1" else os.environ.get(name, "")


def start_with_one_thread() -> None:
    """Have BLAS make no threads at all, if it is not loaded yet: those it makes when it is loaded spin for a while
    before they sleep, 0.15 CPU seconds of a process. For programs, as the environment is the process's.

    What the user has set in any of the variables stands.
    """
    if "numpy" not in sys.modules and not _said():
        _OURS.update(_VARIABLES)
        os.environ |= dict.fromkeys(_VARIABLES, "1")


#: The limit of this process, entered by runs, refits and answers of models.
one_thread = OneThread()
if sys.platform != "win32":  # a forked process must not wait for a lock that a thread it does not have holds
    os.register_at_fork(
        before=one_thread.lock.acquire, after_in_parent=one_thread.lock.release, after_in_child=one_thread.lock.release
    )
