"""Interpretation of a budget: what an attacker can learn, in numbers for readers without the theory.

Claim. Let P and Q be the distributions of what is published under two neighbours, and let an attacker who knows both
guess which of them it was, each as likely as the other beforehand. The guess is right with probability at most (1 + TV)
/ 2, TV the total variation distance of P and Q (Neyman and Pearson). And TV is at most

* (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) under (epsilon, delta) (Kairouz, Oh, Viswanath 2015), so that the guess is
  right with at most (e^epsilon + delta) / (e^epsilon + 1); delta = 0 is the pure case;
* sqrt(rho / 2) and sqrt(1 - e^-rho) under rho-zCDP: KL(P || Q) <= rho, as the Renyi divergences of order above 1 are at
  most that times the order and KL is their limit; then Pinsker's inequality, and Bretagnolle and Huber's.

A group of k persons changes one after the other: epsilons times k and deltas times sum of e^(i epsilon), i < k (Dwork
and Roth 2014, Theorem 2.2 and its proof); rho times k^2 (Bun and Steinke 2016, Proposition 1.9).

To exchange the data of one person is to remove one person and to add another, so it costs what a group of two costs
under add-remove. Under zCDP tables alone cost less, twice the rho. Proof. The person moves the tables by a vector u of
whole numbers before the exchange and by v after it, neither of them negative, so that no cell moves by more than the
larger of u_i and v_i. Noise of one cell does not depend on the others, so Renyi divergences of cells add up. That of a
cell grows with its shift, as the noise is symmetric and log-concave: the best test of P against P + s is a threshold,
and its power grows with s. So the divergence of the exchange is at most that of u and that of v together, each of
which is at most rho times its order. Contrasts, scores, gradients and ranks have entries of both signs: there u = -v
has four times the divergence of u under Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.budget import Budget, BudgetKind

__all__ = ["best_guess", "exchange_text", "odds_factor", "of_exchange", "of_group"]

#: Beyond this e^epsilon is beyond all experience, and of a double.
_MAX_EPSILON = 700.0


def odds_factor(budget: Budget) -> float | None:
    """Return e^epsilon: by what factor the odds of any conclusion about one unit can change at most; inf beyond e^700.

    None for budgets that bound no such factor for every outcome: rho, and epsilon with a delta.

    >>> odds_factor(Budget.pure(1)), odds_factor(Budget.zcdp(1))
    (2.7182818284590455, None)
    """
    if budget.kind != "pure":
        return None
    return math.nextafter(math.exp(budget.epsilon), math.inf) if budget.epsilon <= _MAX_EPSILON else math.inf


def best_guess(budget: Budget) -> float:
    """Return how often at most an attacker who knows all but one unit guesses right which of two neighbours it was.

    Of two that are equally likely beforehand, so that 0.5 is a coin's. The module has the proof.

    >>> [round(best_guess(b), 4) for b in (Budget.pure(1), Budget.approx(1, "0.01"), Budget.zcdp("0.02"))]
    [0.7311, 0.7337, 0.55]
    """
    if budget.kind == "zcdp":
        rho = float(budget.rho)
        probability = (1 + min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))) / 2
    else:
        wrong = math.exp(-min(float(budget.epsilon), _MAX_EPSILON))  # 1 / e^epsilon
        probability = (1 + float(budget.delta) * wrong) / (1 + wrong)
    return min(1.0, math.nextafter(probability, math.inf))


def of_group(budget: Budget, size: int) -> Budget | None:
    """Return what the budget is worth to `size` units together, such as a family; None where that bounds nothing.

    >>> print(of_group(Budget.pure("0.5"), 3), of_group(Budget.zcdp("0.5"), 2), of_group(Budget.approx(9, "0.1"), 2))
    epsilon = 1.5 rho = 2 (zCDP) None
    """
    whole("the size of a group", size, least=1)
    if budget.kind == "zcdp":
        return Budget("zcdp", rho=budget.rho * size**2)
    if budget.kind == "pure":
        return Budget("pure", epsilon=budget.epsilon * size)
    if (size - 1) * budget.epsilon > _MAX_EPSILON:
        return None
    # e^0 is exact; the others are rounded up.
    steps = 1 + sum(math.nextafter(math.exp(number * budget.epsilon), math.inf) for number in range(1, size))
    delta = budget.delta * Fraction(steps)
    return Budget("approx", epsilon=budget.epsilon * size, delta=delta) if delta < 1 else None


def of_exchange(budget: Budget, *, tables_alone: bool) -> Budget | None:
    """Return what exchanging the data of one person costs where `budget` bounds adding or removing one.

    Parameters
    ----------
    budget : Budget
        The loss under add-remove neighbours.
    tables_alone : bool
        Whether everything released is noisy tables of counts, and no contrast, score, choice or gradient.

    Returns
    -------
    Budget or None
        The loss between two data sets that differ in the data of one person; None where nothing is bounded.

    Notes
    -----
    See the claim of the module. `exchange_text` says the same in words.

    Examples
    --------
    >>> rho = Budget.zcdp("0.5")
    >>> print(of_exchange(rho, tables_alone=True), "|", of_exchange(rho, tables_alone=False))
    rho = 1 (zCDP) | rho = 2 (zCDP)
    """
    if budget.kind == "zcdp" and tables_alone:
        return Budget("zcdp", rho=budget.rho * 2)
    return of_group(budget, 2)


def exchange_text(kinds: Iterable[BudgetKind], *, tables_alone: bool) -> str:
    """Return in words what `of_exchange` computes.

    Parameters
    ----------
    kinds : iterable of {"pure", "zcdp", "approx"}
        The kinds of budget to state the loss for.
    tables_alone : bool
        As in `of_exchange`.

    Returns
    -------
    str
        The bounds, in terms of the epsilon, rho or (epsilon, delta) of the guarantee.

    Examples
    --------
    >>> exchange_text(["zcdp"], tables_alone=True), exchange_text(["pure", "zcdp"], tables_alone=False)
    ('2 rho', '2 epsilon or 4 rho')
    """
    words = {
        "pure": "2 epsilon",
        "zcdp": "2 rho" if tables_alone else "4 rho",
        "approx": "(2 epsilon, (1 + e^epsilon) delta)",
    }
    *most, last = [words[kind] for kind in kinds]
    return f"{', '.join(most)} or {last}" if most else last
