"""Conversion between mu-GDP and (epsilon, delta), rounded against the owner; needs neither numpy nor scipy."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpgm_core._util.exact_numbers import decimal_text
from dpgm_core.errors import BudgetError

__all__ = [
    "APART",
    "DRAWN_APART",
    "MOVED_CELLS",
    "PURE_MU_SQUARED",
    "ROOM",
    "drawn_cells",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu_squared",
]

# A pair of distributions P, Q is mu-GDP if Phi^-1(P(A)) - Phi^-1(Q(A)) <= mu for every event A, and with P and Q
# swapped. Then it is (epsilon, delta)-DP for every epsilon with
#
#     delta = Phi(-near) - e^epsilon Phi(-far),    near = epsilon / mu - mu / 2,    far = epsilon / mu + mu / 2
#
# (Dong, Roth, Su 2022, Gaussian Differential Privacy, Corollary 2.13). Pure epsilon implies mu^2 = (pi / 2) epsilon^2:
# P(A) / Q(A) and (1 - Q(A)) / (1 - P(A)) are at most e^epsilon, so the logits of P(A) and Q(A) are at most 2 epsilon
# apart, and d Phi^-1(p) / d logit p <= sqrt(2 pi) / 4 (`dpgm_core.privacy.session_account` has the proof). Randomised
# response attains it as epsilon falls.
#
# Drawn noise is whole-numbered, and priced for what it differs from by at most `DRAWN_APART` in total variation, for
# each cell that one person moves (`dpgm_core.privacy.gaussian`). So a charge of mu stands for at most `MOVED_CELLS`
# moved cells, and of delta the part `APART` pays for (1 + e^epsilon) `DRAWN_APART` of each. Whatever core prices at mu
# is also (mu^2 / 2)-zCDP, without this difference: discrete Gaussian noise costs L2^2 / (2 sigma^2), a choice of range
# e costs e^2 / 8, pure epsilon costs epsilon^2 / 2, and of tabulated noise mu is exact.

#: mu^2 of what is 1-DP: pi / 2, rounded up.
PURE_MU_SQUARED = Fraction(355, 226)
#: By how much the distribution of one moved cell differs from what its price is proven for, in total variation.
DRAWN_APART = 2.0**-111
#: Cells that one person may move under one charge of mu.
MOVED_CELLS = 2**30
#: Of delta, what is kept for that difference; and what is kept so that a machine whose doubles differ in their last
#: digits accepts an account too.
APART, ROOM = Fraction(1, 10**6), Fraction(1, 10**6)

_DOWN = decimal.Context(prec=12, rounding=decimal.ROUND_FLOOR)
_UP = decimal.Context(prec=12, rounding=decimal.ROUND_CEILING)
#: Deltas are computed from there on.
_MIN_DELTA = Fraction(1, 10**90)
_MAX_EPSILON = 700
#: Among these a square root is a double, and delta neither 0 nor 1; it rises with mu.
_MIN_MU_SQUARED, _MAX_MU_SQUARED = Fraction(1, 10**200), Fraction(10**7)


def gdp_delta(mu_squared: Fraction, epsilon: Fraction) -> float:
    """Return the delta of a normal number shifted by mu, rounded up; epsilon from 0 to 700."""
    if mu_squared > _MAX_MU_SQUARED:
        return 1.0
    mu = math.sqrt(max(mu_squared, _MIN_MU_SQUARED)) * (1 + 1e-15)
    lost = float(epsilon) * (1 - 1e-15)
    near, far = lost / mu - mu / 2, lost / mu + mu / 2
    first = math.erfc(near / math.sqrt(2)) / 2
    second = math.exp(lost) * math.erfc(far / math.sqrt(2)) / 2
    # Both are wrong by a few roundings of their arguments, x phi(x) for each, relatively, and by those of erfc and exp.
    wrong = (first + second) * (near**2 + abs(lost) + 8) * 1e-15
    return min(1.0, max(first - second + wrong, 1e-300))


def drawn_cells(epsilon: Fraction, delta: Fraction) -> int:
    """Return how many moved cells `APART` of delta pays for: (1 + e^epsilon) C `DRAWN_APART` is at most that."""
    if epsilon > _MAX_EPSILON:
        return 0
    return math.floor(delta * APART / (Fraction(1 + math.exp(epsilon) * (1 + 1e-9)) * Fraction(DRAWN_APART)))


def gdp_epsilon(mu_squared: Fraction, delta: Fraction, most: Fraction) -> Fraction:
    """Return the least epsilon of 12 digits that mu-GDP implies at delta, rounded up; `most` where it tells no less.

    most: the epsilon that (mu^2 / 2)-zCDP implies.

    >>> float(gdp_epsilon(Fraction(1, 16), Fraction(1, 10**6), Fraction(2)))
    1.06...
    """
    goal = delta * (1 - APART)
    if delta < _MIN_DELTA or most > _MAX_EPSILON:
        return most

    def covered(epsilon: float | Decimal) -> bool:
        return Fraction(gdp_delta(mu_squared, Fraction(epsilon))) <= goal

    low, high = float(most) * 1e-100, float(most)
    for _ in range(64):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if covered(middle) else (middle, high)
    least = _search(Decimal(high), _UP.plus, _UP.next_plus, lambda one: Fraction(one) >= most or covered(one))
    epsilon = min(Fraction(least), most)
    return epsilon if drawn_cells(epsilon, delta) >= MOVED_CELLS else most


@lru_cache(maxsize=256)
def gdp_mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest mu^2 of 12 digits whose delta at epsilon is below delta by `APART` and `ROOM` of it.

    Raises BudgetError where drawn noise would differ by more than `APART` of delta from what it is priced for.

    >>> float(gdp_mu_squared(Fraction(1), Fraction(1, 10**6)))
    0.056...
    """
    if delta < _MIN_DELTA or drawn_cells(epsilon, delta) < MOVED_CELLS:
        raise _no_curve(epsilon, delta)
    goal = delta * (1 - APART - ROOM)

    def covered(mu_squared: float | Decimal) -> bool:
        return Fraction(gdp_delta(Fraction(mu_squared), epsilon)) <= goal

    low = high = max(float(epsilon) ** 2 * 2.0**-12, 1e-190)
    while covered(high):
        low, high = high, 4 * high
    while not covered(low):
        low /= 4
        if low < _MIN_MU_SQUARED:
            raise _no_curve(epsilon, delta)
    while high > low * (1 + 1e-15):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (middle, high) if covered(middle) else (low, middle)
    return Fraction(_search(Decimal(low), _DOWN.plus, _DOWN.next_minus, covered))


def _no_curve(epsilon: Fraction, delta: Fraction) -> BudgetError:
    return BudgetError(
        f"(epsilon, delta) = ({decimal_text(epsilon)}, {decimal_text(delta)}) has no exact Gaussian curve: delta is "
        "too small, or epsilon too small or too large, for noise on whole numbers; state mu, or ask for zCDP (rho)"
    )


def _search(
    start: Decimal,
    rounded: Callable[[Decimal], Decimal],
    following: Callable[[Decimal], Decimal],
    covered: Callable[[Decimal], bool],
) -> Decimal:
    """Return the first of the short decimals from `start` on that is covered."""
    result = rounded(start)
    while not covered(result):
        result = following(result)
    return result
