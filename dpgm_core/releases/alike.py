"""Checks that the guarantees of several releases add up to one."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dpgm_core.errors import BudgetError
from dpgm_core.releases.release import NoisyTables

__all__ = ["check_alike"]


def check_alike(releases: Sequence[NoisyTables]) -> None:
    """Refuse, with BudgetError, releases whose guarantees do not add up to one: other relation, people or weights."""
    for other in releases[1:]:
        first = releases[0]
        if other.neighbours is not first.neighbours:
            raise BudgetError(
                f"releases under {first.neighbours.value} and {other.neighbours.value} neighbours do not add up to one "
                "guarantee; learn from those of one relation"
            )
        if other.contributions != first.contributions:
            raise BudgetError("releases that weight rows differently do not go together; learn from one of them")
        if attrs.evolve(other.terms, total="estimated") != attrs.evolve(first.terms, total="estimated"):
            raise BudgetError(
                "releases that protect different units do not add up to one guarantee: "
                + ", and ".join(
                    f"{one.unit}, {one.rows_per_person} row(s) by {one.terms.person!r}" for one in (first, other)
                )
            )
