"""Cost of one release on a Poisson subsample: each person takes part with probability q, independently.

Fix the coins of all others; everything below is jointly convex or quasi-convex, so that it holds for their mixture too.
Let P0 be the distribution of the output without the person, P1 with the person's rows and P1' with other rows in their
place. Add-remove compares (1 - q) P0 + q P1 with P0. Replace-one compares

    P = (1 - q) P0 + q P1    with    Q = (1 - q) P0 + q P1'.

P0 is in both, so what a person's *presence* changes matters, not only the *exchange* of rows: under replace-one with
one row each a table of one cell never changes, but its noisy count still tells something of whether the person took
part. Both persons are arbitrary, so what is shown for P against Q holds for Q against P.

1. Pure. Let x = ln P1/P0 and x' = ln P1'/P0 at an output, with |x|, |x'| <= e (presence) and |x - x'| <= d (exchange),
   and g(x) = ln(1 - q + q exp(x)), which is rising and convex. ln P/Q = g(x) - g(x'). For a given x - x' it is largest
   at x = e, and then at the least x', e - d with d <= 2 e. So it is at most g(e) - g(e - d) = ln(1 + w (exp(d) - 1)),
   w = q exp(e - d) / (1 - q + q exp(e - d)): the exchange on a subsample at rate w, the chance that the person took
   part, after the output that says so least. For d = 2 e it is ln(1 + q (exp(e) - 1)) - ln(1 - q (1 - exp(-e))).
   Attained by one row each, in different cells of every table but those of one cell. As w <= 1 it never exceeds d.
2. zCDP. Renyi divergences are jointly quasi-convex: D_a(P, Q) <= D_a(P1, P1') at every order. A smaller rho is not
   claimed.
3. Renyi divergences of Gaussian noise at whole orders a. P = Q + q (P1 - P1'), and P1 - P1' sums to 0, so
   E_Q (P/Q)^a <= 1 + sum_{j >= 2} C(a, j) q^j B_j with B_j = E_Q |(P1 - P1') / Q|^j. As |x|^j / y^(j - 1) is jointly
   convex, B_j <= (1 - q) F_j + q S_j, F_j = E_P0 |f - f'|^j, f = P1 / P0, f' = P1' / P0, S_j = E_P1' |P1 / P1' - 1|^j.
   As Q >= (1 - q) P0, B_j <= (1 - q)^(1 - j) F_j too. For whole-numbered shifts s of P1 and s' of P1', in units of
   sigma, E_P0 f^k f'^l = exp((|k s + l s'|^2 - k |s|^2 - l |s'|^2) / 2) for whole k and l, of discrete noise as of
   continuous. Let G bound |s|^2 and |s'|^2 (presence), and D >= G bound |s - s'|^2 (exchange).
   * |x - y|^j <= x^j + y^j for x, y >= 0, so F_j <= 2 exp(j (j - 1) G / 2) and S_j <= exp(j (j - 1) D / 2) + 1.
   * S_2 <= exp(D) - 1, as P1 / P1' has mean 1.
   * F_2 = exp(|s|^2) + exp(|s'|^2) - 2 exp(<s, s'>), 2 <s, s'> = |s|^2 + |s'|^2 - |s - s'|^2. With u = exp(|s|^2 - G)
     and v = exp(|s'|^2 - G), both in [exp(-G), 1], F_2 <= exp(G) (u + v) - 2 exp(G - D / 2) sqrt(u v), whose slope in u
     is exp(G) (1 - exp(-D / 2) sqrt(v / u)) >= 0 as sqrt(v / u) <= exp(G / 2); in v likewise. So it is largest at
     u = v = 1: F_2 <= 2 exp(G) (1 - exp(-D / 2)).
   * For even j, F_j <= F_2^(j / 2) and S_j <= S_2^(j / 2) with G and D taken j - 1 times: f - f' is the smoothing T_r,
     r^2 = 1 / (j - 1), of the same difference with shifts s / r and s' / r, and |T_r h|_j <= |h|_2 (Nelson 1973). For
     discrete noise even moments are the same sums of the same numbers.
   * For odd j the logarithm is at most the mean of its neighbours', as it is convex in j (Lyapunov).
   By 2. a moment is never more than that of the whole data set, exp(a (a - 1) D / 2).

Between whole orders linear interpolation is an upper bound, as the logarithm of a moment is convex in its order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from dpgm_core.arrays import FloatArray

__all__ = ["ORDERS", "amplified", "replaced", "replaced_gaussian", "sampled_gaussian"]

#: Renyi orders: whole ones, and quarters between the small ones.
ORDERS = np.unique(np.concatenate([np.arange(1.25, 16, 0.25), np.arange(16, 65), np.geomspace(64, 4096, 40).round()]))

# Exponentials of it, and of its half times any rate, are doubles.
_MAX_EXPONENT = 500.0


def amplified(epsilon: float, rate: float) -> float:
    """ln(1 + q (e^eps - 1)): pure epsilon on a Poisson subsample at rate q under add-remove, without overflow.

    Source: Balle, Barthe, Gaboardi (2018), Theorem 9.

    >>> round(amplified(1.0, 0.5), 6) == round(math.log(1 + 0.5 * math.expm1(1.0)), 6)
    True
    """
    if epsilon < _MAX_EXPONENT:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def replaced(presence: float, exchange: float, rate: float) -> float:
    """Pure epsilon on a Poisson subsample at rate q under replace-one; see the module, 1. Exact for Laplace noise.

    presence: epsilon of the whole data set with and without a person. exchange: with one person's rows or another's.

    >>> math.isclose(replaced(1.0, 2.0, 0.5), math.log(1 + 0.5 * math.expm1(1)) - math.log(1 + 0.5 * math.expm1(-1)))
    True
    >>> replaced(1.0, 2.0, 1.0), replaced(1.0, 0.0, 0.5)
    (2.0, 0.0)
    """
    apart = min(exchange, 2 * presence)
    if rate == 1:
        return apart
    log_odds = math.log(rate) - math.log1p(-rate) + presence - apart
    log_share = -float(np.logaddexp(0.0, -log_odds))  # ln w
    if apart < _MAX_EXPONENT:
        return amplified(apart, math.exp(log_share))
    return float(np.logaddexp(-np.logaddexp(0.0, log_odds), log_share + apart))


def sampled_gaussian(slope: float, rate: float) -> FloatArray:
    """ln E_Q[(((1 - q) Q + q P) / Q)^a] for each of ORDERS, with E_Q[(P / Q)^k] <= exp(k (k - 1) slope); q < 1.

    At whole orders the binomial sum. The other direction is never larger: x -> s - x swaps P and Q (Mironov, Talwar,
    Zhang 2019, Theorem 5, whose proof holds for sums over whole numbers as it does for integrals).
    """
    orders, counts, log_choose = _binomials()
    with np.errstate(invalid="ignore"):
        terms = log_choose + (orders[:, None] - counts) * math.log1p(-rate) + counts * math.log(rate)
        terms += counts * (counts - 1) * slope
    return _between(logsumexp(terms, axis=1))


def replaced_gaussian(presence: float, exchange: float, rate: float) -> FloatArray:
    """ln E_Q[(P / Q)^a] for each of ORDERS, of Gaussian noise under replace-one, both directions; q < 1.

    presence: L2^2 / sigma^2 of a person's rows against none. exchange: of one person's rows against another's. See the
    module, 3.
    """
    orders, counts, log_choose = _binomials()
    wide, doubled = max(exchange, presence), counts * (counts - 1)

    def within(times: FloatArray) -> FloatArray:
        return math.log(2) + times * presence + _log_less(times * wide / 2)

    def without(times: FloatArray) -> FloatArray:
        return times * exchange + _log_less(times * exchange)

    log_f = _central(counts, within, math.log(2) + doubled * presence / 2)
    log_s = _central(counts, without, np.logaddexp(doubled * exchange / 2, 0.0))
    log_b = np.minimum(
        np.logaddexp(math.log1p(-rate) + log_f, math.log(rate) + log_s), log_f + (1 - counts) * math.log1p(-rate)
    )
    sampled = np.logaddexp(0.0, logsumexp((log_choose + counts * math.log(rate) + log_b)[:, 2:], axis=1))
    at_whole = np.minimum(sampled, orders * (orders - 1) * exchange / 2)
    return np.asarray(np.minimum(_between(at_whole), ORDERS * (ORDERS - 1) * exchange / 2))


def _central(counts: FloatArray, log_second: Callable[[FloatArray], FloatArray], direct: FloatArray) -> FloatArray:
    """Logarithms of bounds on the moments of orders 0, 1, 2, ..., those from 2 on good.

    log_second: of the second moment, of shifts whose squares are so many times as long. direct: other bounds.
    """
    moments = np.minimum(direct, counts / 2 * log_second(np.maximum(counts - 1, 1.0)))
    odd = np.arange(3, len(counts) - 1, 2)
    moments[odd] = np.minimum(direct[odd], (moments[odd - 1] + moments[odd + 1]) / 2)
    return moments


def _log_less(x: FloatArray) -> FloatArray:
    """ln(1 - e^-x), x > 0."""
    return np.asarray(np.log(-np.expm1(-x)))


def _between(at_whole: FloatArray) -> FloatArray:
    """Return logarithms of moments at ORDERS from those at whole orders from 2 on; ln 1 = 0 at order 1."""
    interpolated: FloatArray = np.interp(ORDERS, np.append(1.0, _binomials()[0]), np.append(0.0, at_whole))
    return interpolated


@lru_cache(maxsize=1)
def _binomials() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole orders a, counts k, and ln C(a, k), -inf for k > a."""
    orders = np.unique(np.concatenate([np.arange(2.0, 17), ORDERS[ORDERS >= 16]]))
    counts = np.arange(orders[-1] + 1)
    above = np.maximum(orders[:, None] - counts, 0)
    log_choose = gammaln(orders + 1)[:, None] - gammaln(counts + 1) - gammaln(above + 1)
    return orders, counts, np.where(counts > orders[:, None], -math.inf, log_choose)
