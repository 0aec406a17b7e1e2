"""Conversion between rho-zCDP and (epsilon, delta), rounded against us.

Claim (Canonne, Kamath, Steinke 2020, The Discrete Gaussian, Corollary 13). A rho-zCDP release is (epsilon, delta)-DP
for every real epsilon and every order alpha > 1 with

    delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^(alpha - 1) / alpha.

Proof. Let P and Q be its distributions on neighbours, and Z = log P(Y)/Q(Y) with Y drawn from P. The least delta is
E (1 - exp(epsilon - Z))_+. With t = exp(epsilon - Z),

    (1 - t)_+ <= exp((alpha - 1)(Z - epsilon)) max over t in [0, 1] of (1 - t) t^(alpha - 1),

the maximum is at t = 1 - 1/alpha, and E exp((alpha - 1) Z) <= exp((alpha - 1) alpha rho), which is what zCDP says. So

    delta = exp(a ((1 + a) rho - epsilon) - gain(a)),      epsilon = (1 + a) rho + (ln(1/delta) - gain(a)) / a,
    a = alpha - 1 > 0,      gain(a) = ln(1 + a) + a ln(1 + 1/a) > 0.

Without the gain this is Bun and Steinke's bound (2016, Proposition 1.3), rho + 2 sqrt(rho ln(1/delta)) at its best a;
so it is never larger. Every a gives a proof, and only its logarithms are irrational: these are rounded, on the safe
side, and all the rest is exact.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

__all__ = ["concentrated_exponent", "zcdp_epsilon", "zcdp_rho"]

_UP = decimal.Context(prec=120, rounding=decimal.ROUND_CEILING)
_DOWN = decimal.Context(prec=120, rounding=decimal.ROUND_FLOOR)
#: Orders have 30 digits, and rhos that are given out 12.
_ORDER = decimal.Context(prec=30)
_SHORT = decimal.Context(prec=12, rounding=decimal.ROUND_FLOOR)
_CLOSE = Decimal("1e-35")
#: ln(1/delta) is taken to be at least this, so that a delta of almost 1 needs no more digits.
_LEAST_LOG = Decimal("1e-100")
#: Epsilons are multiples of its inverse.
_UNIT = 10**40


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon of rho-zCDP at a delta in (0, 1): the least over all orders, rounded up to a multiple of 1e-40.

    Never falls when rho rises or delta falls: it is the least over one fixed set of orders (those of 30 digits), and
    for each of them what is computed does not. 0 for rho = 0 and positive otherwise. Source: the module's claim.

    >>> round(float(zcdp_epsilon(Fraction(1, 2), Fraction(1, 10**6))), 6)
    5.221534
    """
    if rho == 0:
        return Fraction(0)
    log = _log_inverse(delta)
    near = _ORDER.plus(_best(rho, log))
    # The bound falls up to the best a and rises from there, so the best on the grid is next to it.
    bounds = [
        (1 + Fraction(a)) * rho + (Fraction(log) - Fraction(_gain(a))) / Fraction(a)
        for a in (_ORDER.next_minus(near), near, _ORDER.next_plus(near))
    ]
    return Fraction(max(1, math.ceil(min(bounds) * _UNIT)), _UNIT)


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho of 12 digits whose `zcdp_epsilon` at delta, below 1, is at most epsilon; 0 where none is.

    >>> float(zcdp_rho(Fraction(1), Fraction(1, 10**9)))
    0.014973...
    """
    if not delta or epsilon * _UNIT < 1:
        return Fraction(0)
    log, target = _log_inverse(delta), _DOWN.divide(epsilon.numerator, epsilon.denominator)
    # Bun and Steinke's rho, then twice and half of it until the largest lies between
    root = _DOWN.divide(target, _UP.add(_UP.sqrt(_UP.add(log, target)), _UP.sqrt(log)))
    low = _SHORT.multiply(root, root)
    while zcdp_epsilon(Fraction(low), delta) > epsilon:
        low = _SHORT.divide(low, 2)
    high = _SHORT.multiply(low, 2)
    while zcdp_epsilon(Fraction(high), delta) <= epsilon:
        low, high = high, _SHORT.multiply(high, 2)
    while (middle := _SHORT.divide(_UP.add(low, high), 2)) > low:
        low, high = (middle, high) if zcdp_epsilon(Fraction(middle), delta) <= epsilon else (low, middle)
    return Fraction(low)


def concentrated_exponent(rho: Fraction, epsilon: Fraction, a: float) -> float:
    """ln of the claim's delta at order 1 + a, a > 0: above it by at most a double's rounding, never below.

    >>> round(concentrated_exponent(Fraction(1, 50), Fraction(1), 20.0), 6)
    -15.620326
    """
    exact = Fraction(a) * ((1 + Fraction(a)) * rho - epsilon) - Fraction(_gain(Decimal(a)))
    return math.nextafter(float(exact), math.inf)


def _gain(a: Decimal) -> Decimal:
    """ln(1 + a) + a ln(1 + 1/a), rounded down."""
    # ln rounds to the nearest in any context, so the number before is taken
    first = _DOWN.next_minus(_DOWN.ln(_DOWN.add(1, a)))
    second = _DOWN.next_minus(_DOWN.ln(_DOWN.add(1, _DOWN.divide(1, a))))
    return max(_DOWN.add(first, _DOWN.multiply(a, second)), Decimal(0))


def _log_inverse(delta: Fraction) -> Decimal:
    """ln(1/delta), rounded up."""
    return max(_UP.next_plus(_UP.ln(_UP.divide(delta.denominator, delta.numerator))), _LEAST_LOG)


def _best(rho: Fraction, log: Decimal) -> Decimal:
    """The a at which epsilon is least: rho a^2 + ln(1 + a) = ln(1/delta).

    d epsilon / da = rho - (ln(1/delta) - ln(1 + a)) / a^2 rises through 0 once. In u = ln a the equation's left side is
    convex and rises, so Newton's steps from above never pass the root. A worse a would be a proof as well.
    """
    with decimal.localcontext(_UP):
        curve = Decimal(rho.numerator) / Decimal(rho.denominator)
        a = min((log / curve).sqrt(), log.exp() - 1)
        for _ in range(200):
            square = curve * a * a
            step = (square + (1 + a).ln() - log) / (2 * square + a / (1 + a))
            a *= (-step).exp()
            if abs(step) < _CLOSE:
                break
        return a
