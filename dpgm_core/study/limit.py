"""A limit on how long one run may take."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dpgm_core.errors import OptionError

__all__ = ["OutOfTime", "check_limit", "time_limit"]


#: Seconds that timers can keep: a microsecond to three years.
_MIN_SECONDS, _MAX_SECONDS = 1e-6, 10**8


class OutOfTime(BaseException):
    """A run took longer than it may. No Exception, as components catch those."""


def check_limit(seconds: float | None) -> None:
    """Refuse, with OptionError, a limit that cannot be kept."""
    if seconds is None:
        return
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not _MIN_SECONDS <= seconds <= _MAX_SECONDS
    ):
        raise OptionError(f"a limit must be a positive number of seconds, at most {_MAX_SECONDS:,}, got {seconds!r}")
    if sys.platform == "win32":
        raise OptionError("this system has no timer that could end a run; leave the limit out")
    if threading.current_thread() is not threading.main_thread():
        raise OptionError("a limit can be kept in the main thread only; leave it out, or run the study there")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise OutOfTime inside after so many seconds on the wall, between two steps of Python; None: never."""
    if seconds is None:
        yield
        return

    def end(signum: int, frame: object) -> None:
        raise OutOfTime(f"it took longer than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, end)
    try:
        # Again each second, as what is raised inside a destructor is lost.
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
