"""Under which conditions alone a guarantee holds: the words that a release, a model and the ledger's entry share."""

from __future__ import annotations

from dpgm_core.privacy.terms import Terms

__all__ = ["PUBLIC_N", "SEEDED", "UNSAFE", "charge_conditions", "publishes_total"]

PUBLIC_N = "conditional on public N"
UNSAFE = "unsafe"
SEEDED = "the noise came from a seed, for simulation only"


def publishes_total(terms: Terms) -> bool:
    """Whether the exact number of records is published where the guarantee does not cover it."""
    return terms.policy == "public" and not terms.covers_total


def charge_conditions(terms: Terms, *, unsafe: str | None, private: bool) -> tuple[str, ...]:
    """What a ledger's entry says of the release that it pays for; empty for a guarantee without conditions.

    unsafe: why the noise does not keep the budget to the letter, if so. private: False when a seed is involved.

    >>> charge_conditions(Terms(neighbours="add-remove", total="public"), unsafe=None, private=True)
    ('conditional on public N',)
    """
    found = {PUBLIC_N: publishes_total(terms), f"{UNSAFE} noise": unsafe is not None, SEEDED: not private}
    return tuple(condition for condition, holds in found.items() if holds)
