"""What a budget means for an attacker, in numbers that a reader without the theory can hold against experience.

Claim. Let P and Q be the laws of what is published under two neighbours, and let an attacker who knows both guess which
of them it was, each as likely as the other beforehand. The guess is right with probability at most (1 + TV) / 2, TV the
total variation distance of P and Q (Neyman and Pearson). And TV is at most

* (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) under (epsilon, delta) (Kairouz, Oh, Viswanath 2015), so that the guess is
  right with at most (e^epsilon + delta) / (e^epsilon + 1); delta = 0 is the pure case;
* sqrt(rho / 2) and sqrt(1 - e^-rho) under rho-zCDP: KL(P || Q) <= rho, as the Renyi divergences of order above 1 are at
  most that times the order and KL is their limit; then Pinsker's inequality, and Bretagnolle and Huber's.

A group of k persons changes one after the other: epsilons times k and deltas times sum of e^(i epsilon), i < k (Dwork
and Roth 2014, Theorem 2.2 and its proof); rho times k^2 (Bun and Steinke 2016, Proposition 1.9).
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.budget import Budget

__all__ = ["best_guess", "odds_factor", "of_group"]

#: Beyond this e^epsilon is beyond all experience, and of a double.
_LARGEST = 700.0


def odds_factor(budget: Budget) -> float | None:
    """e^epsilon: by what factor the odds of any conclusion about one unit can change at most; inf beyond e^700.

    None for budgets that bound no such factor for every outcome: rho, and epsilon with a delta.

    >>> odds_factor(Budget.pure(1)), odds_factor(Budget.zcdp(1))
    (2.7182818284590455, None)
    """
    if budget.kind != "pure":
        return None
    return math.nextafter(math.exp(budget.epsilon), math.inf) if budget.epsilon <= _LARGEST else math.inf


def best_guess(budget: Budget) -> float:
    """How often at most an attacker who knows all but one unit guesses right which of two neighbours it was.

    Of two that are equally likely beforehand, so that 0.5 is a coin's. See the module's claim.

    >>> [round(best_guess(b), 4) for b in (Budget.pure(1), Budget.approx(1, "0.01"), Budget.zcdp("0.02"))]
    [0.7311, 0.7337, 0.55]
    """
    if budget.kind == "zcdp":
        rho = float(budget.rho)
        found = (1 + min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))) / 2
    else:
        wrong = math.exp(-min(float(budget.epsilon), _LARGEST))  # 1 / e^epsilon
        found = (1 + float(budget.delta) * wrong) / (1 + wrong)
    return min(1.0, math.nextafter(found, math.inf))


def of_group(budget: Budget, size: int) -> Budget | None:
    """What the budget is worth to `size` units together, such as a family; None where that bounds nothing.

    >>> print(of_group(Budget.pure("0.5"), 3), of_group(Budget.zcdp("0.5"), 2), of_group(Budget.approx(9, "0.1"), 2))
    epsilon = 1.5 rho = 2 (zCDP) None
    """
    whole("the size of a group", size, least=1)
    if budget.kind == "zcdp":
        return Budget("zcdp", rho=budget.rho * size**2)
    if budget.kind == "pure":
        return Budget("pure", epsilon=budget.epsilon * size)
    if (size - 1) * budget.epsilon > _LARGEST:
        return None
    # e^0 is exact; the others are rounded up.
    steps = 1 + sum(math.nextafter(math.exp(number * budget.epsilon), math.inf) for number in range(1, size))
    delta = budget.delta * Fraction(steps)
    return Budget("approx", epsilon=budget.epsilon * size, delta=delta) if delta < 1 else None
