"""Silence while records are read and counted: messages of other libraries about a record reach nobody.

A signalling NaN makes numpy warn and an ordinary one does not, so a warning on stderr, one that `-W error` turns into a
failure, or a line in a log would reveal something of one record.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

__all__ = ["quiet"]


class _Own(threading.local):
    """The number of blocks that this thread is in."""

    blocks = 0


class _Readers:
    """Who reads records right now: how many blocks in all threads, and how many in this one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a finaliser may read, and run anywhere
        self.blocks = 0
        self.own = _Own()

    def count(self, change: int) -> None:
        self.blocks += change
        self.own.blocks += change

    def match(self, text: str) -> bool:
        # As the pattern of a warnings filter. Filters belong to the whole process, and `catch_warnings` of another
        # thread may lose ours or keep it for good; one that fits only while somebody reads does no harm afterwards.
        return self.blocks > 0


_READERS = _Readers()
#: What is in names of threads that read for others: fsspec's, which logs the URLs that it asks for, and those of a dask
#: cluster in this process, whose scheduler logs the graph, rows and all, that it could not unpickle.
_HELPERS = ("fsspecIO", "IO loop", "Dask-")
_FILTER = ("ignore", _READERS, Warning, None, 0)


class _Muted:
    """One of the interpreter's hooks, deaf while records are read; whoever wraps it meanwhile may keep it."""

    def __init__(self, usual: Callable[..., Any]) -> None:
        self.usual = usual

    def __call__(self, *words: Any) -> Any:
        return None if _READERS.blocks else self.usual(*words)


class _MutedLog(_Muted):
    """Makes log records; in a thread that reads empty ones, of a level that no handler takes."""

    def __call__(self, *words: Any, **more: Any) -> Any:
        thread = threading.current_thread().name
        muted = _READERS.own.blocks or (_READERS.blocks and any(part in thread for part in _HELPERS))
        return logging.LogRecord("", -1, "", 0, "", (), None) if muted else self.usual(*words, **more)


@contextmanager
def quiet() -> Iterator[None]:
    """Numpy ignores what floats do, warnings are dropped, this thread logs nothing, finalisers fail in silence.

    Warnings, and what ends other threads, are dropped whoever causes them: a library may read in threads of its own.
    Not to be held over a `yield` of a generator. What is printed outright is not caught.

    >>> with quiet():
    ...     int(np.array(1.5) / 0 > 1)  # a division by zero, of which nobody hears
    1
    """
    with _READERS.lock:
        _READERS.count(1)
        _mute()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _READERS.lock:
            _READERS.count(-1)
            if not _READERS.blocks:
                _unmute()


def _mute() -> None:
    filters = cast("list[Any]", warnings.filters)
    if not filters or filters[0] is not _FILTER:  # the first that fits decides
        filters.insert(0, _FILTER)
    if not isinstance(logging.getLogRecordFactory(), _Muted):
        logging.setLogRecordFactory(_MutedLog(logging.getLogRecordFactory()))
    if not isinstance(sys.unraisablehook, _Muted):
        sys.unraisablehook = _Muted(sys.unraisablehook)
    if not isinstance(threading.excepthook, _Muted):
        threading.excepthook = _Muted(threading.excepthook)


def _unmute() -> None:
    filters = cast("list[Any]", warnings.filters)
    filters[:] = [one for one in filters if one is not _FILTER]
    factory = logging.getLogRecordFactory()
    if isinstance(factory, _Muted):
        logging.setLogRecordFactory(factory.usual)
    if isinstance(sys.unraisablehook, _Muted):
        sys.unraisablehook = sys.unraisablehook.usual
    if isinstance(threading.excepthook, _Muted):
        threading.excepthook = threading.excepthook.usual
