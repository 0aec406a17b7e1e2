"""The privacy of continuous Gaussian noise, and of discrete Gaussian noise by comparison with it.

Continuous noise of unequal widths is one number: cells shifted by s_i under noise of variance v_i are as easy to tell
apart as one standard normal number shifted by mu, mu^2 = sum s_i^2 / v_i (rotate), and delta is Balle and Wang's.

Discrete noise comes close, for every whole-numbered shift and any widths (Peikert 2010, An Efficient and Parallel
Gaussian Sampler for Lattices, Theorem 3.1, has the idea). Let D_c be the discrete Gaussian of parameter v around a
whole number c, and 0 < t < v.

Claim. Draw x from the normal distribution of mean c and variance v - t, then a whole number y with probability
proportional to exp(-(y - x)^2 / (2 t)), and let q be the distribution of y. Then (1 - h) / (1 + h) <= D_c(y) / q(y) <=
1 + h for every y, where h = 2 sum over j >= 1 of exp(-2 pi^2 t j^2).

Proof. By Poisson summation the normaliser of the second draw is sqrt(2 pi t) (1 + 2 sum_j exp(-2 pi^2 t j^2) cos(2 pi j
x)), within sqrt(2 pi t) (1 +- h). Without those brackets the integral over x is the normal density of mean c and
variance v at y, so q is it over something within 1 +- h. D_c is it too, over the sum of that density over the whole
numbers, which is at least 1 and at most 1 + h, as t < v.

So with k shifted cells the two discrete distributions P, Q are within those factors, to the power k, of ones that are
drawn from continuous ones of variances v_i - t. Drawing does not help to tell apart, hence

    E_P (1 - exp(epsilon) Q/P)_+  <=  (1 + h)^k delta(epsilon - k log((1 + h)^2 / (1 - h))),

delta being that of mu^2 = sum s_i^2 / (v_i - t).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from scipy import special

from dpgm_core.arrays import FloatArray
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = ["ROUNDING", "Part", "analytic_delta", "moved_cells", "normal_delta", "smoothed", "smoothed_delta"]

#: Tables with one noise: its sigma^2, and what one person can change in them.
Part = tuple[Fraction, Sensitivity]

# Relative errors of all sums here are below 1e-10.
ROUNDING = 1 + 1e-9
# No delta below it is told from it, so that none underflows.
_MIN_DELTA = math.exp(-650)
# What the comparison may cost in epsilon: less of it needs more of t.
_EPSILON_COSTS = (1e-3, 1e-5, 1e-9)


def analytic_delta(variance: Fraction, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """Return the exact delta of continuous Gaussian noise at an epsilon; for textbook noise only.

    Parameters
    ----------
    variance : Fraction
        sigma^2, in records**2.
    sensitivity : Sensitivity
        What one person can change; its L2 norm D counts.
    epsilon : Fraction
        Nats.

    Notes
    -----
    Phi(D / (2 sigma) - epsilon sigma / D) - e^epsilon Phi(-D / (2 sigma) - epsilon sigma / D): Balle and Wang (2018),
    Theorem 8. Discrete noise of small sigma has a larger delta.

    Examples
    --------
    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> round(analytic_delta(Fraction(1), one, Fraction(1)), 6)
    0.126937
    """
    return float(normal_delta(math.sqrt(max(sensitivity.l2_squared, 1) / variance), np.array(float(epsilon))))


def normal_delta(mu: float, epsilon: FloatArray) -> FloatArray:
    """Return the delta of a standard normal number shifted by mu > 0, at epsilons of any sign and shape; rounded up.

    >>> normal_delta(1.0, np.array([-800.0, 1.0])).round(6).tolist()
    [1.0, 0.126937]
    """
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # e^epsilon Phi(-far) = exp(-near^2 / 2) erfcx(far / sqrt 2) / 2, and so Phi(-near) where that keeps its digits
        envelope = np.exp(-np.square(near) / 2) / 2
        scaled = np.where(
            far > 0,
            special.erfcx(np.maximum(far, 0.0) / math.sqrt(2)) * envelope,
            np.exp(np.minimum(epsilon, 0.0)) * special.ndtr(-far),
        )
        direct = (special.ndtr(-near) - scaled) * ROUNDING
        careful = (special.erfcx(np.maximum(near, -5.0) / math.sqrt(2)) * envelope - scaled) * (ROUNDING + 1e-14 / mu)
    return np.asarray(np.clip(np.where(near < -5, direct, careful), 0.0, 1.0))


def smoothed_delta(parts: Mapping[Part, int], epsilon: Fraction) -> float:
    """A delta(epsilon) of discrete Gaussian noises together, over every whole-numbered shift; 1 where it cannot tell.

    parts: and how often each; at least one. Above the exact one by what a record**2 or two less of sigma^2 make.

    >>> pair, epsilon = Sensitivity(l0=2, l1=4, l2_squared=8, linf=2), Fraction(1, 5)
    >>> smoothed_delta({(Fraction(5000), pair): 1}, epsilon) / analytic_delta(Fraction(5000), pair, epsilon)
    1.00...
    """
    delta = 1.0
    for price in _EPSILON_COSTS:
        mu, cost, factor = smoothed(parts, price)
        if math.isfinite(mu):
            delta = min(delta, factor * float(normal_delta(mu, np.array(float(epsilon) - cost))) + _MIN_DELTA)
    return delta


def smoothed(parts: Mapping[Part, int], price: float = _EPSILON_COSTS[-1]) -> tuple[float, float, float]:
    """(mu, what to take from epsilon, what to multiply delta by); mu is infinite where some sigma^2 is too small.

    price: about what is taken from epsilon. See the module for the proof.
    """
    moved = sum(count * moved_cells(sensitivity) for (_, sensitivity), count in parts.items())
    spread = math.log(6 * moved / price) / (2 * math.pi**2)
    square = 0.0
    for (variance, sensitivity), count in parts.items():
        if variance <= spread:
            return math.inf, 0.0, 1.0
        square += count * max(sensitivity.l2_squared, 1) / (float(variance) - spread)
    height = 2 * math.exp(-2 * math.pi**2 * spread) * (1 + 1e-3)  # the terms from j = 2 on are below its fourth power
    cost = moved * (2 * math.log1p(height) - math.log1p(-height))
    return math.sqrt(square) * (1 + 1e-14), cost * (1 + 1e-9), math.exp(moved * height)


def moved_cells(sensitivity: Sensitivity) -> int:
    """Return how many cells a person can move: each adds at least 1 to L0, L1 and L2^2; at least one, to be safe."""
    return max(1, min(sensitivity.l0, sensitivity.l1, sensitivity.l2_squared))
