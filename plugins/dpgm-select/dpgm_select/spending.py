"""Budgets of choices and of tables, and the noise to expect of them."""

from __future__ import annotations

import math

from dpgm_core import Budget, Structure, TableDistance, Terms, Workload
from dpgm_core.learning import deviation

__all__ = ["LEFT", "absolute", "detectable", "epsilon_of", "noise_of", "ratio"]

#: Less of a budget than this share is left only by rounding.
LEFT = 1e-4


def ratio(part: Budget, whole: Budget) -> float:
    """part / whole, of budgets of one kind, pure or zCDP."""
    return float(part.epsilon / whole.epsilon if whole.kind == "pure" else part.rho / whole.rho)


def epsilon_of(choice: Budget) -> float:
    """The epsilon of one choice for this budget: bounded range e costs e, or e^2/8 of zCDP."""
    return float(choice.epsilon) if choice.kind == "pure" else math.sqrt(8 * float(choice.rho))


def noise_of(budget: Budget, terms: Terms, workload: Workload) -> float:
    """The standard deviation of the noise in one table for this budget, records per cell.

    >>> from dpgm_core import Domain
    >>> terms, workload = Terms(neighbours="add-remove"), Workload.all(Domain.from_sizes({"a": 2, "b": 2}))
    >>> round(noise_of(Budget.zcdp("0.5"), terms, workload), 6)
    1.0
    """
    return deviation(budget, Structure(workload.domain, [max(workload.candidates, key=len)]), terms)


def absolute(budget: Budget, terms: Terms, workload: Workload) -> float:
    """The expected absolute noise of a cell in one table for this budget, records: what AIM's scores are less by."""
    spread = noise_of(budget, terms, workload)
    return spread / math.sqrt(2) if budget.kind == "pure" else spread * math.sqrt(2 / math.pi)


def detectable(choice: Budget, candidates: int, terms: Terms) -> float | None:
    """Records by which one distance must be ahead of the others, all 0, to be chosen with probability .9; None where
    there is nothing to choose. choice: what one costs. candidates: of equal weight.

    >>> detectable(Budget.pure(1), 2, Terms(neighbours="add-remove"))
    4.39...
    """
    if candidates < 2:
        return None
    return 2 * TableDistance.move(terms) / epsilon_of(choice) * math.log(9 * (candidates - 1))
