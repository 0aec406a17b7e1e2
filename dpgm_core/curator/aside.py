"""Releases of holdouts, which curators keep apart from what learners are shown."""

from __future__ import annotations

from dpgm_core.releases.release import NoisyTables

__all__ = ["HoldoutKeeper", "holdouts_of"]


class HoldoutKeeper:
    """A base of curators that may hold a release that nobody is to learn from. It is on no face that a learner sees."""

    _holdouts: tuple[NoisyTables, ...] = ()


def holdouts_of(curator: object) -> tuple[NoisyTables, ...]:
    """What a curator has paid for beside what it handed out; a model carries it, and its cost.

    >>> holdouts_of(HoldoutKeeper()), holdouts_of("no curator")
    ((), ())
    """
    return curator._holdouts if isinstance(curator, HoldoutKeeper) else ()
