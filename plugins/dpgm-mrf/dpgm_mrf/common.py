"""Helpers of selectors and learners: budgets of steps, validators, pairs and attributes of a workload, limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from dpgm_core import Budget, BudgetError, Clique, Domain, OptionError, StructureError, Workload, share
from dpgm_core.learning import Limits, ModelSize

__all__ = ["inside", "limits_of", "pairs_of", "singles_of", "steps_budget"]


def inside(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """A validator: a number above 0 and below 1. Raises OptionError."""
    share(instance, attribute, value)
    if value == 0:
        raise OptionError(f"{attribute.name} must be a number above 0 and below 1, got {value!r}")


def singles_of(workload: Workload) -> list[Clique]:
    """The candidates of one attribute."""
    return [clique for clique in workload.candidates if len(clique) == 1]


def pairs_of(workload: Workload, selector: str) -> list[Clique]:
    """The candidates of two attributes. Raises StructureError where there are none.

    >>> pairs_of(Workload.all(Domain.from_sizes({"a": 2, "b": 2})), "mrf-select")
    [('a', 'b')]
    """
    pairs: list[Clique] = [clique for clique in workload.candidates if len(clique) == 2]
    if not pairs:
        raise StructureError(
            f"selector {selector!r} chooses between pairs of attributes, but the workload has none that may be "
            "measured; ask for larger sets, by order = 2, targets or weights, raise max_cells, or take from `never`"
        )
    return pairs


def limits_of(domain: Domain, names: Iterable[str], seconds: float, memory: int) -> Limits:
    """The limits of an exact engine's model, with room for each of these attributes alone.

    >>> limits_of(Domain.from_sizes({"a": 20, "b": 2}), "ab", 1, 4)
    Limits(seconds=1, memory=352)
    """
    alone = ModelSize(domain, [(name,) for name in names])
    return Limits(seconds=max(seconds, alone.seconds()), memory=max(memory, alone.memory()))


def steps_budget(remaining: Budget, learner: str) -> Budget:
    """What the steps of a learner's session may spend: epsilon, rho, or the rho within an (epsilon, delta).

    Raises BudgetError for mu, of which a descent costs more than its rho says.
    """
    if remaining.kind == "gdp":
        raise BudgetError(
            f"learner {learner} spends epsilon or rho, not {remaining}; ask for (epsilon, delta), rho or epsilon"
        )
    return remaining.zcdp_within() if remaining.kind == "approx" else remaining
