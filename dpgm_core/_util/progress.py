"""The protocol of progress functions."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from dpgm_core.errors import OptionError

__all__ = ["Progress", "check_progress", "silent", "unfailing"]


class Progress(Protocol):
    """Function that long work calls to report how far it is; nothing computed from records before noise is passed."""

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """Report progress.

        Parameters
        ----------
        task : str
            What is being done, and after ": " its current item, such as a chosen table.
        done : int
            Steps done.
        total : int or None
            Steps in all; None if unknown.
        """


def silent(task: str, done: int, total: int | None) -> None:
    """Ignore progress."""


def check_progress(progress: Progress) -> Progress:
    """Return `progress`. Raises OptionError if it cannot be called.

    >>> check_progress(silent) is silent
    True
    """
    if not callable(progress):
        raise OptionError(f"progress must be a function of (task, done, total), got {type(progress).__name__}")
    return progress


def unfailing(progress: Progress) -> Progress:
    """Return a progress function that drops exceptions of `progress`, for use between a charge and its release.

    An interrupt is still raised.

    >>> unfailing(lambda task, done, total: 1 // 0)("adding noise", 0, None)
    """

    def tell(task: str, done: int, total: int | None) -> None:
        with suppress(Exception):
            progress(task, done, total)

    return tell
