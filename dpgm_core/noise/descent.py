"""Descent, cost and distribution: one choice for each regression, by the exponential mechanism over the gradient.

Sensitivity. Let m_c be the largest residual of a record in choice c, in units; over c the sum of m_c^2 (zCDP), or of
m_c (pure), is at most `reach` for every record. Let `person` be how many records one person adds and takes away
together: r under add-remove, 2 r under replace-one.

Cost. With C choices at temperature h a descent is e-DP, e = 2 h person reach + C 2^-30, or rho-zCDP,
rho = (2 h person sqrt(reach) + sqrt(C) 2^-30)^2 / 8.

Proof. A record adds residual * feature to the score of a weight and the negative of it to that of the other sign, and
features are -1, 0 or 1, with a constant that is 1. So its part of the scores of choice c lies in [-m_c, m_c], with
range 2 m_c, and one person moves them by a vector of range at most the sum of 2 m_c over the records added and taken
away. By the cost of one choice, choice c is e_c-DP and e_c^2/8-zCDP between these two data sets, e_c = h range_c +
2^-30. The choices draw independent bits, so their costs add between these two data sets. Pure: the sum of e_c. zCDP: a
(root of the) sum of squares of sums is at most the sum of the roots (Minkowski): of the records, person sqrt(reach),
and of the slack, sqrt(C) 2^-30.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

import numpy as np

from dpgm_core.arrays import IntArray
from dpgm_core.errors import BudgetError
from dpgm_core.noise.choice import (
    MAX_TABLE_LENGTH,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    SLACK,
    draw_candidates,
    entries,
    rounded_down,
)
from dpgm_core.privacy.amounts import decimal_text, sqrt_floor
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.regressions import Regressions
from dpgm_core.randomness import Randomness

__all__ = ["descent_cost", "descent_temperature", "steepest"]

_BITS = 64


def descent_cost(h: Fraction, reach: int, person: int, choices: int, kind: Literal["pure", "zcdp"]) -> Budget:
    """Return the cost of one descent at temperature h, roots rounded up; the module has the proof.

    >>> print(descent_cost(Fraction(1, 200), 100, 1, 3, "zcdp"), descent_cost(Fraction(1, 200), 100, 1, 3, "pure"))
    rho = ~0.00125 (zCDP) epsilon = ~1
    """
    if kind == "pure":
        return Budget("pure", epsilon=2 * h * person * reach + choices * SLACK)
    return Budget("zcdp", rho=(2 * h * person * _root(reach) + _root(choices) * SLACK) ** 2 / 8)


def descent_temperature(budget: Budget, reach: int, person: int, choices: int) -> Fraction:
    """Return the temperature of one descent that costs a budget: the calibration of `descent_cost`.

    Parameters
    ----------
    budget : Budget
        Of the descent; pure or zCDP.
    reach : int
        How far the residuals of one record reach together; see `NodeGradients.reach`.
    person : int
        How many records one person adds and takes away together.
    choices : int
        The number of choices.

    Returns
    -------
    Fraction
        h, rounded down, so that `descent_cost` is at most the budget.

    Raises
    ------
    BudgetError
        Where h would be so small that there is no table for it; names the budget that would do.

    Examples
    --------
    >>> float(descent_temperature(Budget.pure(1), 100, 1, 3))
    0.00499999...
    """
    if budget.kind == "approx":
        raise BudgetError(f"a descent costs epsilon or rho, not {budget}; give it its share of the session's rho")
    kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
    if budget.kind == "pure":
        h = (budget.epsilon - choices * SLACK) / (2 * person * reach)
    else:
        h = (sqrt_floor(8 * budget.rho) - _root(choices) * SLACK) / (2 * person * _root(reach))
    h = rounded_down(min(h, MAX_TEMPERATURE))
    if h <= 0 or entries(h) > MAX_TABLE_LENGTH:
        # A little more than the least, so that what is said in six digits is enough.
        least = descent_cost(MIN_TEMPERATURE * Fraction(100_001, 100_000), reach, person, choices, kind)
        would = f"epsilon = {decimal_text(least.epsilon)}" if kind == "pure" else f"rho = {decimal_text(least.rho)}"
        raise BudgetError(
            f"{budget} for a descent of {choices} choices is too little to choose by: every direction would be as "
            f"likely as any other; give at least {would}, take fewer steps, or a coarser residual_grid"
        )
    return h


def steepest(
    sums: IntArray, regressions: Regressions, h: Fraction, randomness: Randomness
) -> Iterator[tuple[int, int, int]]:
    """Draw the row, the column and the sign of each choice, by the exponential mechanism.

    sums: the gradients, (rows * columns,), whole numbers. Each allowed weight is a candidate upwards, where it scores
    its sum, and downwards, where it scores the negative. Two random words for each choice.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.randomness import SeededRandomness
    >>> from dpgm_core.structure import Structure
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> own = Regressions(candidates=pair, loss="logistic")
    >>> list(steepest(np.array([0, 9, -900, 800, 0, 3]), own, Fraction(1), SeededRandomness(1)))
    [(0, 2, -1), (1, 0, 1)]
    """
    allowed, gradients = regressions.allowed, sums.reshape(regressions.allowed.shape)
    for rows in regressions.choices:
        at = [(row, int(column)) for row in rows for column in np.flatnonzero(allowed[row])]
        upwards = np.concatenate([gradients[row][allowed[row]] for row in rows])
        (picked,) = draw_candidates(np.concatenate([upwards, -upwards]), h, 1, randomness)
        yield *at[picked % len(at)], (1 if picked < len(at) else -1)


def _root(value: int) -> Fraction:
    """Return the square root, exact for squares, else rounded up by less than 2^-64."""
    root = math.isqrt(value << (2 * _BITS))
    return Fraction(root + (root**2 != value << (2 * _BITS)), 1 << _BITS)
