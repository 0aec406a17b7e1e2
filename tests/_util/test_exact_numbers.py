"""Amounts are the decimals that were written, and roots are rounded down."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core._util.exact_numbers import amount, decimal_text, sqrt_floor
from dpgm_core.errors import BudgetError

NOT_AMOUNTS = [math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, -0.0, True, False, None, b"1", [1], 1j]


NOT_TEXTS = ["", "nan", "inf", "Infinity", "-1", "0", "0.0", "1/0", "1 / 3"]
NOT_TEXTS += ["1_000", "0x1", "1.2.3", ".", "1e9999", "\uff11"]


@pytest.mark.parametrize("value", [*NOT_AMOUNTS, *NOT_TEXTS, Decimal("NaN"), Decimal("Infinity"), Decimal("1e999")])
def test_amount_refuses_what_is_not_a_positive_number(value):
    with pytest.raises(BudgetError, match="epsilon must be a positive number"):
        amount("epsilon", value)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        ("1e-6", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        (3, Fraction(3)),
        (5e-324, Fraction(5, 10**324)),
        (1.7976931348623157e308, Fraction("1.7976931348623157e308")),
    ],
)
def test_amount_is_the_decimal_that_was_written(value, exact):
    """A float means the decimal it prints as, and texts and decimals are taken exactly."""
    assert amount("epsilon", value) == exact


def test_amount_allows_zero_only_when_asked():
    assert amount("rate", 0, zero=True) == 0
    with pytest.raises(BudgetError, match="0 or a positive"):
        amount("rate", -1, zero=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 3), "~0.333333"),
        (Fraction(1234567), "~1.23457e+06"),
        (Fraction(0), "0"),
        (Fraction(10**400), "1e+400"),
        (Fraction(1, 10**400), "1e-400"),
        (Fraction(1, 3 * 10**400), "~3.33333e-401"),
    ],
)
def test_decimal_text_marks_what_it_rounds(value, text):
    assert decimal_text(value) == text


@given(st.fractions(min_value=Fraction(1, 10**400), max_value=10**400))
@example(Fraction(1, 3))
@example(Fraction(2))
@example(Fraction(2**127 - 1, 2**89 - 1))
@example(Fraction(1, 10**400))
def test_sqrt_floor_is_below_and_close(value):
    """The root's square never exceeds the value, and stays within 2^-62 of it, relatively."""
    root = sqrt_floor(value)
    assert root**2 <= value < (root * (1 + Fraction(1, 2**62))) ** 2
