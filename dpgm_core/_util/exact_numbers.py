"""Exact amounts: read from numbers and texts, written for people."""

from __future__ import annotations

import decimal
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from dpgm_core.errors import BudgetError

__all__ = ["Amount", "amount", "decimal_text", "exp_down", "exp_up", "round_down", "sqrt_floor", "whole"]

Amount: TypeAlias = int | float | str | Decimal | Fraction


# Digits carried through irrational formulas before they are rounded up; far beyond any amount that makes sense.
_CONTEXT = decimal.Context(prec=60)
# What `round_down` gives multiples of the inverse of.
_GRID = 10**24


def whole(what: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return the value if it is a whole number within bounds; BudgetError otherwise, also for bools and floats.

    >>> whole("rows_per_person", 3, least=1)
    3
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise BudgetError(f"{what} must be a whole number {bound}, got {value!r}")
    return value


def amount(what: str, value: Amount, *, zero: bool = False) -> Fraction:
    """Return an exact positive amount from a number or decimal text; floats mean the decimal they print as.

    zero: whether 0 is allowed. Raises BudgetError for NaN, infinities, negatives, bools and other types.
    """
    expected = "0 or a positive number" if zero else "a positive number"
    exact: Fraction | None = None
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        exact = Fraction(value)
    elif isinstance(value, float) and math.isfinite(value):
        exact = Fraction(repr(float(value)))
    elif isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 400:
        exact = Fraction(value)
    elif isinstance(value, str) and re.fullmatch(
        r"[+-]?[0-9.]{1,400}(e[+-]?[0-9]{1,3})?|[0-9]{1,400}/[0-9]{1,400}", value
    ):
        try:
            exact = Fraction(value)
        except (ValueError, ZeroDivisionError):
            exact = None
    if exact is None or exact < 0 or (exact == 0 and not zero):
        comma = re.fullmatch(r"([0-9]+),([0-9]+)", value) if isinstance(value, str) else None
        hint = "" if comma is None else f"; write {comma[1]}.{comma[2]}"
        raise BudgetError(f"{what} must be {expected} such as 0.5, got {value!r}{hint}")
    return exact


def decimal_text(value: Fraction, digits: int = 6) -> str:
    """Return an exact amount as text: exact where a short decimal says it, else rounded to `digits`, with "~"."""
    try:
        rounded = f"{float(value):.{digits}g}"
    except OverflowError:
        rounded = "inf"
    if rounded == "inf" or (value and not float(rounded)):  # beyond the range of doubles
        rounded = f"{_CONTEXT.divide(value.numerator, value.denominator).normalize():.{digits}g}".lower()
    return rounded if Fraction(rounded) == value else "~" + rounded


def round_down(value: Fraction) -> Fraction:
    """Return an exact amount rounded down to 24 decimals.

    >>> round_down(Fraction(1, 3)) < Fraction(1, 3)
    True
    """
    return Fraction(math.floor(value * _GRID), _GRID)


def sqrt_floor(value: Fraction) -> Fraction:
    """Return a rational just below (or at) the square root: exact for squares, else within 2^-64 of it, relatively."""
    top, bottom = value.numerator, value.denominator
    if math.isqrt(top) ** 2 == top and math.isqrt(bottom) ** 2 == bottom:
        return Fraction(math.isqrt(top), math.isqrt(bottom))
    # sqrt(top/bottom) = sqrt(top * bottom * 4^s) / (bottom * 2^s), floored on the integers; s makes 64 good bits
    shift = max(0, 128 - (top * bottom).bit_length()) // 2 + 2
    return Fraction(math.isqrt((top * bottom) << (2 * shift)), bottom << shift)


_NEAREST = decimal.Context(prec=60)  # exp is correctly rounded to the nearest in any context
_UP = decimal.Context(prec=60, rounding=decimal.ROUND_CEILING)
_DOWN = decimal.Context(prec=60, rounding=decimal.ROUND_FLOOR)


def exp_up(exponent: Fraction) -> Fraction:
    """e^exponent or just above it."""
    return Fraction(_UP.next_plus(_NEAREST.exp(_UP.divide(exponent.numerator, exponent.denominator))))


def exp_down(exponent: Fraction) -> Fraction:
    """e^exponent or just below it."""
    return Fraction(
        max(decimal.Decimal(0), _DOWN.next_minus(_NEAREST.exp(_DOWN.divide(exponent.numerator, exponent.denominator))))
    )
