"""Budgets are exact, conversions round against us, events and entries refuse nonsense."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget, PrivacyEvent

fractions = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)

NOT_AMOUNTS = [math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, -0.0, True, False, None, b"1", [1], 1j]


@given(fractions)
def test_ten_tenths_are_one(value):
    """Sums are exact: ten tenths of any amount equal it."""
    tenth = Budget.pure(value) * Fraction(1, 10)
    total = Budget.zero("pure")
    for _ in range(10):
        total += tenth
    assert total == Budget.pure(value)
    assert (Budget.pure(value) - total).is_zero


# --- budgets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", NOT_AMOUNTS)
@pytest.mark.parametrize("make", [Budget.pure, Budget.zcdp, lambda bad: Budget.approx(bad, 1e-6)])
def test_budgets_refuse_what_is_not_a_positive_number(make, value):
    """Every constructor checks its amounts."""
    with pytest.raises(BudgetError):
        make(value)


@pytest.mark.parametrize("delta", [*NOT_AMOUNTS, 1, 1.5, "2"])
def test_delta_must_be_a_probability_strictly_between_zero_and_one(delta):
    """delta = 0 and delta >= 1 are refused, in approx and in the conversion."""
    with pytest.raises(BudgetError, match="delta"):
        Budget.approx(1, delta)
    with pytest.raises(BudgetError, match="delta"):
        Budget.zcdp(1).to_approx(delta)


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "pure", "epsilon": 1.0},
        {"kind": "pure", "epsilon": Fraction(-1)},
        {"kind": "pure", "epsilon": Fraction(1), "delta": Fraction(1, 2)},
        {"kind": "pure", "rho": Fraction(1)},
        {"kind": "zcdp", "epsilon": Fraction(1)},
        {"kind": "approx", "rho": Fraction(1)},
        {"kind": "renyi"},
    ],
)
def test_a_budget_has_only_the_parts_of_its_kind(parts):
    """The raw constructor refuses floats, negatives and parts of another kind, which addition would then ignore."""
    with pytest.raises(BudgetError):
        Budget(**parts)


def test_budgets_of_different_kinds_do_not_mix():
    """Adding, comparing and subtracting need one kind; subtracting never goes below zero."""
    pure, zcdp = Budget.pure(1), Budget.zcdp(1)
    for operation in (lambda: pure + zcdp, lambda: pure <= zcdp, lambda: pure - zcdp):
        with pytest.raises(BudgetError, match="different kinds"):
            operation()
    with pytest.raises(BudgetError, match="cannot take"):
        pure - Budget.pure("1.0000000000000000000000001")
    with pytest.raises(TypeError):
        pure + 1
    for factor in (0, -1, True, math.nan):
        with pytest.raises(BudgetError):
            pure * factor


def test_comparison_is_part_by_part():
    """More delta is not made up for by less epsilon."""
    assert not Budget.approx(1, "1e-5") <= Budget.approx(2, "1e-6")
    assert Budget.approx(1, "1e-6") <= Budget.approx(1, "1e-6")


@given(fractions, fractions, st.sampled_from(["pure", "zcdp", "approx"]))
def test_to_dict_and_parse_are_inverse(first, second, kind):
    """A budget survives the round trip through plain texts exactly."""
    budget = {
        "pure": lambda: Budget.pure(first),
        "zcdp": lambda: Budget.zcdp(first),
        "approx": lambda: Budget.approx(first, second / (second + 1)),
    }[kind]()
    assert Budget.parse(budget.to_dict()) == budget


@pytest.mark.parametrize("plain", [{}, {"epsilon": 1, "rho": 1}, {"delta": 1e-6}, {"eps": 1}, 1, None, "1", [1]])
def test_parse_refuses_other_shapes(plain):
    """Anything but the three documented shapes is refused."""
    with pytest.raises(BudgetError):
        Budget.parse(plain)


# --- conversions ------------------------------------------------------------------------------------------------


@given(fractions)
def test_pure_to_zcdp_and_back_is_exact(epsilon):
    """sqrt(2 * eps^2 / 2) is eps again, with no loss."""
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
    """(epsilon, delta) implies no zCDP, no pure epsilon and no other delta."""
    budget = Budget.approx(1, 1e-6)
    for convert in (budget.to_zcdp, budget.to_pure, lambda: budget.to_approx(1e-5)):
        with pytest.raises(BudgetError):
            convert()
    assert Budget.pure(1).to_approx(1e-6) == Budget.approx(1, 1e-6)


# --- events -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", True, None])
def test_events_are_finite_and_of_known_kind(value):
    """An accountant never meets NaN, infinities, other types or an unknown kind."""
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="discrete-laplace", scale=value, sensitivity=1.0)
    with pytest.raises(BudgetError):
        PrivacyEvent(kind="discrete-laplace", scale=1.0, sensitivity=value)
    with pytest.raises(BudgetError, match="no privacy event"):
        PrivacyEvent(kind="poisson", scale=1.0, sensitivity=1.0)
