"""Budgets and units in the words of a report."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

from dpgm_core.privacy.amounts import decimal_text
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.meaning import best_guess, odds_factor
from dpgm_core.report.parts import at_most

__all__ = ["CONVERTED_AT", "amounts", "guess_text", "odds_text", "rounded_up"]

#: The deltas at which zCDP is converted to (epsilon, delta).
CONVERTED_AT = ("1e-6", "1e-9")


def amounts(budget: Budget) -> str:
    """A budget in Greek letters.

    >>> amounts(Budget.pure("0.5")), amounts(Budget.approx(1, "1e-6")), amounts(Budget.zcdp("0.1"))
    ('ε = 0.5', 'ε = 1, δ = 1e-06', 'ρ = 0.1')
    """
    if budget.kind == "zcdp":
        return f"ρ = {decimal_text(budget.rho)}"
    delta = "" if budget.kind == "pure" else f", δ = {decimal_text(budget.delta)}"
    return f"ε = {decimal_text(budget.epsilon)}{delta}"


def rounded_up(value: Fraction, digits: int = 3) -> str:
    """An exact amount to so many digits and never less than it is, however small.

    >>> rounded_up(Fraction(1, 10**6)), rounded_up(Fraction("1.2341e-7"))
    ('1e-06', '1.24e-07')
    """
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))):.{digits}g}"


def odds_text(budget: Budget) -> str | None:
    """The factor by which odds change at most, rounded up; None where there is none for every outcome.

    >>> odds_text(Budget.pure(1)), odds_text(Budget.pure(30)), odds_text(Budget.zcdp(1))
    ('2.72', 'more than a million', None)
    """
    factor = odds_factor(budget)
    if factor is None:
        return None
    return at_most(factor) if factor <= 1e6 else "more than a million"


def guess_text(budget: Budget) -> str:
    """Return how often the best-informed guess is right, in per cent, rounded up.

    >>> guess_text(Budget.pure(1)), guess_text(Budget.pure(50))
    ('73.2 %', '100 %')
    """
    tenths = math.ceil(1000 * best_guess(budget) - 1e-9)
    return f"{tenths / 10:g} %" if tenths < 1000 else "100 %"
