"""Budgets are exact, conversions round against us, and zCDP to (epsilon, delta) is held against its proof."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget, PrivacyEvent, concentrated_exponent, zcdp_epsilon, zcdp_rho

fractions = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)

NOT_AMOUNTS = [math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, -0.0, True, False, None, b"1", [1], 1j]


@given(fractions)
def test_ten_tenths_are_one(value):
    tenth = Budget.pure(value) * Fraction(1, 10)
    total = Budget.zero("pure")
    for _ in range(10):
        total += tenth
    assert total == Budget.pure(value)
    assert (Budget.pure(value) - total).is_zero


@pytest.mark.parametrize("value", NOT_AMOUNTS)
@pytest.mark.parametrize("make", [Budget.pure, Budget.zcdp, lambda bad: Budget.approx(bad, 1e-6)])
def test_budgets_refuse_what_is_not_a_positive_number(make, value):
    with pytest.raises(BudgetError):
        make(value)


@pytest.mark.parametrize("delta", [*NOT_AMOUNTS, 1, 1.5, "2"])
def test_delta_must_be_a_probability_strictly_between_zero_and_one(delta):
    with pytest.raises(BudgetError, match="delta"):
        Budget.approx(1, delta)
    with pytest.raises(BudgetError, match="delta"):
        Budget.zcdp(1).to_approx(delta)


@pytest.mark.parametrize("parts", [
    {"kind": "pure", "epsilon": 1.0}, {"kind": "pure", "epsilon": Fraction(-1)},
    {"kind": "pure", "epsilon": Fraction(1), "delta": Fraction(1, 2)}, {"kind": "pure", "rho": Fraction(1)},
    {"kind": "zcdp", "epsilon": Fraction(1)}, {"kind": "approx", "rho": Fraction(1)}, {"kind": "renyi"},
])  # fmt: skip
def test_a_budget_has_only_the_parts_of_its_kind(parts):
    with pytest.raises(BudgetError):
        Budget(**parts)


def test_budgets_of_different_kinds_do_not_mix():
    """Comparison is part by part, and subtracting never goes below zero."""
    pure, zcdp = Budget.pure(1), Budget.zcdp(1)
    for operation in (lambda: pure + zcdp, lambda: pure <= zcdp, lambda: pure - zcdp):
        with pytest.raises(BudgetError, match="different kinds"):
            operation()
    assert not Budget.approx(1, "1e-5") <= Budget.approx(2, "1e-6")
    assert Budget.approx(1, "1e-6") <= Budget.approx(1, "1e-6")
    with pytest.raises(BudgetError, match="cannot take"):
        pure - Budget.pure("1.0000000000000000000000001")
    with pytest.raises(TypeError):
        pure + 1
    for factor in (0, -1, True, math.nan):
        with pytest.raises(BudgetError):
            pure * factor


@given(fractions, fractions, st.sampled_from(["pure", "zcdp", "approx"]))
def test_to_dict_and_parse_are_inverse(first, second, kind):
    budget = {
        "pure": lambda: Budget.pure(first),
        "zcdp": lambda: Budget.zcdp(first),
        "approx": lambda: Budget.approx(first, second / (second + 1)),
    }[kind]()
    assert Budget.parse(budget.to_dict()) == budget


@pytest.mark.parametrize("plain", [{}, {"epsilon": 1, "rho": 1}, {"delta": 1e-6}, {"eps": 1}, 1, None, "1", [1]])
def test_parse_refuses_other_shapes(plain):
    with pytest.raises(BudgetError):
        Budget.parse(plain)


@given(fractions)
def test_pure_to_zcdp_and_back_is_exact(epsilon):
    assert Budget.pure(epsilon).to_zcdp() == Budget.zcdp(epsilon**2 / 2)
    assert Budget.pure(epsilon).to_zcdp().to_pure() == Budget.pure(epsilon)


@given(fractions)
def test_spending_rho_purely_never_costs_more_than_rho(rho):
    """sqrt(2 rho) is rounded down: its cost in zCDP is at most rho."""
    assert Budget.zcdp(rho).to_pure().to_zcdp() <= Budget.zcdp(rho)


def test_the_zcdp_within_an_approximate_budget_is_spent_back_at_most():
    """There and back is no more than there was, and 12 digits of it; other kinds have no zCDP within."""
    whole = Budget.approx("1/3", "1e-9")
    back = whole.zcdp_within().to_approx("1e-9")
    assert back <= whole and float(back.epsilon) == pytest.approx(1 / 3, rel=1e-10)
    some = Budget.pure(1), Budget.zcdp(1), Budget("approx", epsilon=Fraction(1)), Budget.zero("approx")
    for other in (*some, Budget.approx("1e-41", "0.5")):
        with pytest.raises(BudgetError, match="no zCDP stays within"):
            other.zcdp_within()


def test_conversions_that_do_not_exist_are_refused():
    budget = Budget.approx(1, 1e-6)
    for convert in (budget.to_zcdp, budget.to_pure, lambda: budget.to_approx(1e-5)):
        with pytest.raises(BudgetError):
            convert()
    assert Budget.pure(1).to_approx(1e-6) == Budget.approx(1, 1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", True, None])
def test_events_are_finite_and_of_known_kind(value):
    """An accountant never meets NaN, infinities, other types or an unknown kind."""
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="discrete-laplace", scale=value, sensitivity=1.0)
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="discrete-laplace", scale=1.0, sensitivity=value)
    with pytest.raises(BudgetError, match="no privacy event"):
        PrivacyEvent(kind="poisson", scale=1.0, sensitivity=1.0)


WIDE = decimal.Context(prec=200)
RHOS = st.fractions(min_value=Fraction(1, 10**60), max_value=10**60).filter(bool)
DELTAS = st.fractions(min_value=Fraction(1, 10**80), max_value=1 - Fraction(1, 10**80)).filter(lambda d: 0 < d < 1)


def paper(a, variant="as printed"):
    """(1 - 1/alpha)^alpha / (alpha - 1) of Corollary 13 at alpha = 1 + a, natural log; or a misreading of it."""
    alpha = 1 + a
    return {
        "as printed": alpha * math.log1p(-1 / alpha) - math.log(a),
        "exponent alpha - 1": a * math.log1p(-1 / alpha) - math.log(a),
        "exponent alpha, over alpha": alpha * math.log1p(-1 / alpha) - math.log(alpha),
        "1/alpha squared": a * math.log1p(-1 / alpha) - 2 * math.log(alpha),
        "no power": -math.log(alpha),
    }[variant]


def best_factor(a):
    """The natural log of the least c with (1 - t)_+ <= c t^-a for all t in (0, 1], on a grid of a million."""
    t = np.concatenate([np.geomspace(1e-6, 0.5, 500_000), 1 - np.geomspace(1e-8, 0.5, 500_000)])
    return float(np.max(np.log1p(-t) + a * np.log(t)))


@pytest.mark.parametrize("a", [0.01, 0.5, 1.0, 3.0, 40.0, 10_000.0])
def test_the_gain_is_the_maximum_of_the_proof(a):
    """(1 - t) t^a is at most exp(-gain), and somewhere equal: neither less nor more can be claimed at this order."""
    here = concentrated_exponent(Fraction(0), Fraction(0), a)
    assert here == pytest.approx(best_factor(a), abs=1e-8) and here == pytest.approx(paper(a), rel=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("variant", ["exponent alpha - 1", "exponent alpha, over alpha", "1/alpha squared", "no power"])
def test_a_wrong_exponent_is_found_out(variant):
    """Each misreading of the formula is refuted by the proof's own maximum at some order."""
    assert max(abs(paper(a, variant) - best_factor(a)) for a in (0.01, 1.0, 40.0)) > 1e-3


def exponent(rho, log, a):
    """epsilon at order 1 + a, 200 digits."""
    gain = WIDE.add(WIDE.ln(WIDE.add(1, a)), WIDE.multiply(a, WIDE.ln(WIDE.add(1, WIDE.divide(1, a)))))
    return (1 + Fraction(a)) * rho + (Fraction(log) - Fraction(gain)) / Fraction(a)


def exact_epsilon(rho, delta):
    """The least over all orders to 100 digits, by bisection of rho a^2 + ln(1 + a) = ln(1/delta)."""
    log = WIDE.ln(WIDE.divide(delta.denominator, delta.numerator))
    curve = WIDE.divide(rho.numerator, rho.denominator)
    low, high = Decimal("1e-200"), WIDE.sqrt(WIDE.divide(log, curve))
    for _ in range(1000):  # geometric, so that orders of any size have their digits
        middle = WIDE.sqrt(WIDE.multiply(low, high))
        left = WIDE.add(WIDE.multiply(curve, WIDE.multiply(middle, middle)), WIDE.ln(WIDE.add(1, middle)))
        low, high = (middle, high) if left < log else (low, middle)
        if WIDE.subtract(high, low) < WIDE.multiply(low, Decimal("1e-60")):
            break
    return exponent(rho, log, high)


@pytest.mark.landing
@settings(max_examples=40)
@given(RHOS, DELTAS)
@example(Fraction(1, 2), Fraction(1, 10**6))
@example(Fraction(10**60), Fraction(1, 3))
@example(Fraction(1), 1 - Fraction(1, 10**80))
@example(Fraction(1, 10**60), Fraction(1, 10**300))
@example(Fraction(1, 10**300), Fraction(1, 2))
def test_zcdp_epsilon_is_the_least_over_all_orders_rounded_up(rho, delta):
    """Never below the exact least, and above it by at most 1e-40 plus 1e-50 of it (delta not within 1e-20 of 1)."""
    exact, given_out = exact_epsilon(rho, delta), zcdp_epsilon(rho, delta)
    assert max(exact, 0) * (1 - Fraction(1, 10**90)) <= given_out
    if 1 - delta > Fraction(1, 10**20):
        assert given_out <= max(exact, 0) * (1 + Fraction(1, 10**50)) + Fraction(2, 10**40)


@pytest.mark.landing
@settings(max_examples=100)
@given(RHOS, DELTAS)
@example(Fraction(10**60), Fraction(1, 3))
def test_it_is_never_more_than_bun_and_steinke(rho, delta):
    """rho + 2 sqrt(rho ln(1/delta)), up to the last digit."""
    log = WIDE.ln(WIDE.divide(delta.denominator, delta.numerator))
    root = WIDE.sqrt(WIDE.multiply(WIDE.divide(rho.numerator, rho.denominator), log))
    assert zcdp_epsilon(rho, delta) <= (rho + 2 * Fraction(root)) * (1 + Fraction(1, 10**60)) + Fraction(2, 10**40)


@settings(max_examples=30)
@given(RHOS, DELTAS, st.integers(1, 70))
def test_more_rho_or_less_delta_never_means_less_epsilon(rho, delta, digits):
    """However little they differ."""
    more, less = rho * (1 + Fraction(1, 10**digits)), delta * (1 - Fraction(1, 10**digits))
    here = zcdp_epsilon(rho, delta)
    assert 0 < here <= zcdp_epsilon(more, delta) and here <= zcdp_epsilon(rho, less)


def test_nothing_costs_nothing():
    """rho = 0 costs no epsilon; any other rho costs some, so that what it costs can be charged and read back."""
    assert zcdp_epsilon(Fraction(0), Fraction(1, 10**6)) == 0
    assert zcdp_epsilon(Fraction(1, 10**9), Fraction(1, 2)) > 0


@pytest.mark.landing
@settings(max_examples=10)
@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**4).filter(bool),
    st.fractions(min_value=Fraction(1, 10**30), max_value=Fraction(1, 2)).filter(bool),
)
@example(Fraction(1, 3), Fraction(1, 10**9))
@example(Fraction(1, 10**40), Fraction(9, 10))
@example(Fraction(10**300), Fraction(1, 10**300))
def test_zcdp_rho_is_the_largest(epsilon, delta):
    """It stays within (epsilon, delta), and the next number of 12 digits does not; more epsilon, no less rho."""
    rho = zcdp_rho(epsilon, delta)
    following = Decimal(rho.numerator) / Decimal(rho.denominator)
    following = decimal.Context(prec=12).next_plus(following)
    assert zcdp_epsilon(rho, delta) <= epsilon < zcdp_epsilon(Fraction(following), delta)
    assert zcdp_rho(epsilon * (1 + Fraction(1, 10**13)), delta) >= rho


@pytest.mark.parametrize(("epsilon", "rho", "wider"), [("0.1", 1.771e-4, 21), ("1", 1.497e-2, 13), ("10", 1.091, 5)])
def test_noise_was_wider_than_need_be(epsilon, rho, wider):
    """By 21, 13 and 5 % at delta = 1e-9, sigma being 1 / sqrt(2 rho): Bun and Steinke's rho, solved for by hand."""
    found, log = float(zcdp_rho(Fraction(epsilon), Fraction(1, 10**9))), math.log(1e9)
    older = (math.sqrt(log + float(epsilon)) - math.sqrt(log)) ** 2
    assert found == pytest.approx(rho, rel=5e-4)
    assert 100 * (math.sqrt(found / older) - 1) == pytest.approx(wider, abs=0.5)


def test_the_census_of_2020():
    """rho = 2.56 at delta = 1e-10 is epsilon = 17.14: US Census Bureau, persons of the redistricting data, rounded."""
    assert zcdp_epsilon(Fraction("2.555"), Fraction(1, 10**10)) < Fraction("17.145")
    assert zcdp_epsilon(Fraction("2.565"), Fraction(1, 10**10)) > Fraction("17.135")


def gaussian_delta(variance, epsilon):
    """E (1 - exp(epsilon - L))_+ of one cell's discrete Gaussian moved by 1, output by output."""
    reach = math.ceil(60 * math.sqrt(variance)) + 2
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(z**2) / (2 * variance))
    loss = (1 - 2 * z) / (2 * variance)
    return float(np.sum(mass / math.fsum(mass) * np.maximum(0.0, -np.expm1(epsilon - loss))))


def response_delta(true, epsilon):
    """Of randomised response that tells the truth with odds exp(true)."""
    return max(0.0, (math.exp(true) - math.exp(epsilon)) / (1 + math.exp(true)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("delta", ["0.3", "1e-2", "1e-5", "1e-9", "1e-14"])
@pytest.mark.parametrize("rho", ["1e-4", "0.015", "0.3", "1", "5", "30"])
def test_it_is_never_below_the_true_loss(rho, delta):
    """At the epsilon given out: discrete Gaussian noise of that rho, and randomised response of that largest rho."""
    epsilon, limit = float(zcdp_epsilon(Fraction(rho), Fraction(delta))), float(delta) * (1 + 1e-9)
    assert gaussian_delta(1 / (2 * float(rho)), epsilon) <= limit
    orders = np.geomspace(1e-6, 1e6, 20_001)
    for true in np.geomspace(1e-3, 100, 200):
        # E exp(a L), a = alpha - 1, as logs; D_alpha / alpha at every order, KL at order 1
        moment = np.logaddexp(true + orders * true, -orders * true) - np.logaddexp(0.0, true)
        curve = max(true * math.tanh(true / 2), float(np.max(moment / (orders * (1 + orders)))))
        if curve <= float(rho):
            assert response_delta(true, epsilon) <= limit
