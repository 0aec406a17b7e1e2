"""Budgets in words: rounded against us."""

import pytest

from dpgm.report.parts import amounts, guess_text, odds_text
from dpgm_core import Budget
from dpgm_core.privacy.terms import best_guess


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.7", "1", "3", "5.5", "9"])
def test_what_is_read_is_never_less_than_what_is_proven(epsilon):
    """Tenths of a per cent, and three digits of the factor."""
    budget = Budget.pure(epsilon)
    guess = float(guess_text(budget).removesuffix(" %")) / 100
    assert best_guess(budget) <= guess + 1e-12 <= best_guess(budget) + 0.0011
    factor = odds_text(budget)
    assert factor is not None
    assert float(factor.replace(",", "")) >= 2.718281 ** float(epsilon)


def test_amounts_have_greek_letters():
    """One of each kind."""
    assert [amounts(one) for one in (Budget.pure(1), Budget.zcdp(1), Budget.approx(1, "1e-6"))] == [
        "ε = 1",
        "ρ = 1",
        "ε = 1, δ = 1e-06",
    ]
