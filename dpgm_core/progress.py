"""How long work says how far it is."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "silent"]


class Progress(Protocol):
    """Where long work says how far it is; must never be given anything computed from records left of the noise."""

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """task: what is being done; behind ": " what it is at, such as a table that was chosen. done of total steps.

        total: None if unknown.
        """
        ...


def silent(task: str, done: int, total: int | None) -> None:
    """A Progress that says nothing."""
