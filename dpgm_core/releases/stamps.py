"""Guarantees and caveats for files and outputs computed from releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpgm_core.privacy.terms import flaws
from dpgm_core.releases.release import NoisyTables, condition_of, conditions_of

__all__ = ["UNKNOWN", "caveats_of", "stamp_of"]

#: Of a model that was made from no release.
UNKNOWN = "This model carries no release, so nothing is known about the privacy of what it was made from."


def caveats_of(releases: Sequence[NoisyTables]) -> tuple[str, ...]:
    """Why whatever is computed from releases is less private than their budget: in the words of their guarantee.

    Unsafe noise, a seed, a public N; empty if there is nothing of the kind. Of no release nothing is known.

    >>> caveats_of([])
    ('This model carries no release, so nothing is known about the privacy of what it was made from',)
    """
    if not releases:
        return (UNKNOWN.removesuffix("."),)
    faults = flaws(unsafe=(one.unsafe for one in releases), private=all(one.private for one in releases))
    return (*faults, *filter(None, [condition_of(releases)]))


def stamp_of(releases: Sequence[NoisyTables], guarantee: str) -> dict[str, Any]:
    """What files and JSON say of their privacy, as plain values.

    guarantee: of all releases together, in words. private: false with a seed, None without a release. unsafe: why the
    guarantee does not hold to the letter, or None. conditions: what else it says, of rounds and of N.

    >>> stamp_of([], UNKNOWN)["private"] is None
    True
    """
    return {
        "private": all(one.private for one in releases) if releases else None,
        "unsafe": "; ".join(dict.fromkeys(one.unsafe for one in releases if one.unsafe)) or None,
        "conditions": [text.strip() for text in conditions_of(releases)],
        "guarantee": guarantee,
    }
