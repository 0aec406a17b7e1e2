"""How long work says how far it is."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from dpgm_core.errors import OptionError

__all__ = ["Progress", "check_progress", "silent", "unfailing"]


class Progress(Protocol):
    """Where long work says how far it is; must never be given anything computed from records left of the noise."""

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """task: what is being done; behind ": " what it is at, such as a table that was chosen. done of total steps.

        total: None if unknown.
        """
        ...


def silent(task: str, done: int, total: int | None) -> None:
    """A Progress that says nothing."""


def check_progress(progress: Progress) -> Progress:
    """A Progress as it was given; OptionError for what cannot be called.

    >>> check_progress(silent) is silent
    True
    """
    if not callable(progress):
        raise OptionError(f"progress must be a function of (task, done, total), got {type(progress).__name__}")
    return progress


def unfailing(progress: Progress) -> Progress:
    """The same where nothing may be lost: between a charge and its release. What it raises there is dropped, but for
    an interrupt, which can come at any time.

    >>> unfailing(lambda task, done, total: 1 // 0)("adding noise", 0, None)
    """

    def tell(task: str, done: int, total: int | None) -> None:
        with suppress(Exception):
            progress(task, done, total)

    return tell
