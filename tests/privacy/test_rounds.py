"""The least noise for many rounds uses the budget up and no more."""

import math
from fractions import Fraction

import pytest

from dpgm_core import Budget, BudgetError, PrivacyEvent, Sensitivity
from dpgm_core.privacy.accounting import compose, replaced_epsilon, sampling_probability
from dpgm_core.privacy.rounds import round_noise


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (8, 1e-9), (1, 1e-12)])
@pytest.mark.parametrize(("rounds", "rate"), [(1, 1.0), (50, 1.0), (200, 0.05)])
def test_bisected_noise_uses_the_budget_up_and_no_more(epsilon, delta, rounds, rate, accountant, unit, gauss):
    """The noise found composes to within the budget, and 1 % less noise does not."""
    noise, each = round_noise(
        gauss(), unit(24), Budget.approx(epsilon, delta), rounds=rounds, sampling_rate=rate, neighbours="add-remove"
    )
    assert noise.cost == each
    assert accountant("discrete-gaussian", noise.event.scale, 24, rounds=rounds, rate=rate).epsilon(
        delta
    ) <= epsilon * (1 + 1e-12)
    less = accountant("discrete-gaussian", noise.event.scale * 0.99, 24, rounds=rounds, rate=rate)
    assert less.epsilon(delta) > epsilon


def test_pure_rounds_use_the_budget_up(unit, lap):
    """Pure budgets invert the amplification exactly, small, large and at rate 1."""
    for epsilon, rounds, rate in [(1, 10, 0.1), (5000, 2, 0.1), ("1/3", 3, 1), ("1e-8", 1, 1e-9)]:
        _, each = round_noise(
            lap(), unit(3), Budget.pure(epsilon), rounds=rounds, sampling_rate=rate, neighbours="add-remove"
        )
        base, q = float(each.epsilon), float(sampling_probability(rate))
        amplified = math.log1p(q * math.expm1(base)) if base < 1 else base + math.log(q + (1 - q) * math.exp(-base))
        assert rounds * amplified == pytest.approx(float(Fraction(epsilon)), rel=1e-9)
        assert rounds * amplified <= float(Fraction(epsilon)) * (1 + 1e-12)


# Of three tables, one of them with one cell, under replace-one; and what a person's rows change there.
EXCHANGE, PRESENCE = Sensitivity(l0=4, l1=4, l2_squared=4, linf=1), Sensitivity(l0=3, l1=3, l2_squared=3, linf=1)
REPLACED = {"neighbours": "replace-one", "presence": PRESENCE}


def test_zcdp_rounds_share_rho(unit, gauss):
    """rho / n each; subsampling is not credited."""
    _, each = round_noise(gauss(), unit(3), Budget.zcdp(1), rounds=4, sampling_rate=0.1, neighbours="add-remove")
    assert each == Budget.zcdp("1/4")
    noise, each = round_noise(gauss(), EXCHANGE, Budget.zcdp(1), rounds=4, sampling_rate=0.1, **REPLACED)
    assert each == Budget.zcdp("1/4") and noise.event.sensitivity == 2


@pytest.mark.parametrize(
    ("epsilon", "rounds", "rate"), [(1, 10, 0.1), (5000, 2, 0.1), ("1/3", 3, 1), ("1e-6", 1, 1e-6)]
)
def test_pure_rounds_under_replace_one_use_the_budget_up(lap, epsilon, rounds, rate):
    """The scale is that at which presence and exchange cost the budget together."""
    noise, _ = round_noise(lap(), EXCHANGE, Budget.pure(epsilon), rounds=rounds, sampling_rate=rate, **REPLACED)
    q, scale = float(sampling_probability(rate)), noise.event.scale
    spent = rounds * replaced_epsilon(3 / scale, 4 / scale, q)
    wanted = float(Fraction(epsilon))
    assert wanted * (1 - 1e-9) <= spent <= wanted * (1 + 1e-12)


@pytest.mark.landing
def test_bisected_noise_under_replace_one_uses_the_budget_up(gauss):
    """The noise found composes to within the budget, 1 % less noise does not, and it needs more than add-remove."""
    budget, rate = Budget.approx(1, 1e-6), 0.3
    noise, _ = round_noise(gauss(), EXCHANGE, budget, rounds=20, sampling_rate=rate, **REPLACED)
    for factor in (1, 0.99):
        event = PrivacyEvent(kind="discrete-gaussian", scale=noise.event.scale * factor, sensitivity=2.0)
        spent = compose(event, EXCHANGE, rounds=20, sampling_rate=rate, **REPLACED).epsilon(1e-6)
        assert (spent <= 1 + 1e-12) == (factor == 1)
    joining, _ = round_noise(gauss(), PRESENCE, budget, rounds=20, sampling_rate=rate, neighbours="add-remove")
    assert joining.event.scale < noise.event.scale < 2 * joining.event.scale


@pytest.mark.parametrize("which", ["gauss", "lap"])
def test_a_mechanism_that_cannot_says_so(which, request, unit):
    """The mechanism's own refusal is what the user reads."""
    mechanism = request.getfixturevalue(which)()
    budget = Budget.pure(1) if which == "gauss" else Budget.approx(1, 1e-6)
    with pytest.raises(BudgetError, match="only"):
        round_noise(mechanism, unit(3), budget, rounds=2, sampling_rate=0.5, neighbours="add-remove")


@pytest.mark.landing
def test_infeasible_budgets_are_refused(unit, gauss):
    """An epsilon that no noise of 64 bits reaches is refused, with what would do."""

    class Narrow(gauss):
        def noise(self, sensitivity, budget):
            if budget.rho < 1:
                raise BudgetError("too wide")
            return super().noise(sensitivity, budget)

    with pytest.raises(BudgetError, match="fewer rounds"):
        round_noise(Narrow(), unit(1), Budget.approx("0.01", 1e-6), rounds=9, sampling_rate=1, neighbours="add-remove")
