"""Parts of a budget, and the expected noise of tables that are measured for one."""

from __future__ import annotations

import math
from fractions import Fraction

from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure import Clique, Structure

__all__ = ["deviation", "share_of"]


def share_of(whole: Budget, share: float) -> Budget:
    """Return a part of a budget, by a decimal of 9 digits rounded down; at least the smallest.

    Examples
    --------
    >>> print(share_of(Budget.pure(2), 0.05))
    epsilon = 0.1
    """
    return whole * Fraction(max(1, math.floor(share * 10**9)), 10**9)


def deviation(budget: Budget, structure: Structure, terms: Terms, *, contrasts: bool = False) -> float:
    """Return the standard deviation of the noise in a cell of these tables, measured together for this budget; records.

    Parameters
    ----------
    budget : Budget
        Pure or zCDP.
    contrasts : bool
        Products are measured, and N too where it is estimated: the noise is along the product of a table's codes, and
        each of 2^k cells has 2^-k of its variance, k attributes in each clique.

    Examples
    --------
    >>> from dpgm_core.domain import Domain
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> terms = Terms(neighbours="add-remove", total=100)
    >>> [round(deviation(Budget.zcdp("0.5"), pair, terms, contrasts=how), 3) for how in (False, True)]
    [1.0, 0.5]
    """
    counted: list[Clique] = [()] if contrasts and terms.total_policy == "estimated" else []
    measured = Structure(structure.domain, [*counted, *structure.cliques]) if counted else structure
    moved = terms.sensitivity(measured, contrasts=contrasts)
    if budget.kind == "pure":
        variance = 2 * float(moved.l1 / budget.epsilon) ** 2
    else:
        variance = float(moved.l2_squared / (2 * budget.rho))
    return math.sqrt(variance / (structure.sizes[0] if contrasts else 1))
