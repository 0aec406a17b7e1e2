"""What a budget means for an attacker: bounds that hold, against laws of which the truth is known."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import norm

from dpgm_core import Budget
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.terms import best_guess, group_budget, odds_factor


@pytest.mark.parametrize("epsilon", ["0.1", "1", "7"])
def test_the_guess_at_pure_epsilon_is_what_randomised_response_gives(epsilon):
    """The bound is attained: who answers truly with probability e^eps / (1 + e^eps) is found out as often."""
    e = float(epsilon)
    assert best_guess(Budget.pure(epsilon)) == pytest.approx(math.exp(e) / (1 + math.exp(e)), rel=1e-12)
    assert odds_factor(Budget.pure(epsilon)) == pytest.approx(math.exp(e), rel=1e-12)


@pytest.mark.parametrize("rho", ["0.001", "0.02", "0.5", "3", "50"])
def test_the_guess_at_rho_is_no_less_than_gaussian_noise_allows(rho):
    """Gaussian noise of one unit's shift mu is mu^2/2-zCDP, and its best test is right with Phi(mu / 2)."""
    mu = math.sqrt(2 * float(rho))
    assert best_guess(Budget.zcdp(rho)) >= norm.cdf(mu / 2)
    assert 0.5 < best_guess(Budget.zcdp(rho)) <= 1


def test_the_guess_with_a_delta_is_that_of_the_worst_pair():
    """With probability delta the answer is told outright, else as by randomised response."""
    epsilon, delta = 0.7, 0.05
    factor = math.exp(epsilon)
    # the worst pair: P = (delta, (1-delta) e/(1+e), (1-delta)/(1+e), 0), Q mirrored; the test picks the larger
    right = delta + (1 - delta) * factor / (1 + factor)
    assert best_guess(Budget.approx("0.7", "0.05")) == pytest.approx(right, rel=1e-9)


def test_a_large_epsilon_is_told_as_no_limit():
    """Beyond what a double holds nothing is bounded, and nothing fails."""
    assert odds_factor(Budget.pure(10_000)) == math.inf
    assert best_guess(Budget.pure(10_000)) == 1.0
    assert group_budget(Budget.approx(900, "1e-6"), 2) is None


def test_groups_pay_more_than_their_size_for_delta_and_rho():
    """Hand-computed: delta (1 + e^eps) of two, rho four times."""
    two = group_budget(Budget.approx(1, "1e-6"), 2)
    assert two is not None
    assert float(two.delta) == pytest.approx(1e-6 * (1 + math.e), rel=1e-12)
    assert two.epsilon == 2
    assert group_budget(Budget.zcdp("0.1"), 3) == Budget.zcdp(Fraction(9, 10))
    for one in (Budget.pure("0.1"), Budget.approx("1.5", "1.1e-6"), Budget.zcdp("0.3")):
        assert group_budget(one, 1) == one
    with pytest.raises(BudgetError):
        group_budget(Budget.pure(1), 0)
