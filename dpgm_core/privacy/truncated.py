"""Discrete Laplace noise cut off at a public bound B: mass proportional to exp(-|z| / t) for whole z in [-B, B].

Such noise is (epsilon, delta)-private and not more: an output that one of two neighbours cannot give reveals the other.
What it costs is computed here from t, B and the sensitivity alone, for the worst shift s of the counts:

1. One cell shifted by s. The outputs that only P can give are the s outermost ones of one tail, of mass q(s). On all
   others the loss log P(y) / P(y - s) lies within s / t; for s = 1 it is 1/t or -1/t, in the ratio of a randomised
   response of 1/t. So the cell reveals all with probability q(s), and otherwise is s/t-private.
2. Several cells. Something is revealed with probability 1 - prod (1 - q(s_i)); the rest loses at most |s|_1 / t, hence
   never more than a randomised response of that (Kairouz, Oh, Viswanath 2015, Theorem 3.4).
3. The worst shift. P is log-concave, so its hazard rate P(tail's next point) / (1 - q(s)) rises with s, hence
   g(s) = -log(1 - q(s)) is increasing and convex and g(0) = 0. A sum of such g is largest where the shift is most
   concentrated: the shift with as many cells as l0 and l1 allow moved by linf, and what is left of l1 in one more,
   weakly majorises all others (Marshall, Olkin, Arnold 2011, Theorems 3.C.1 and 5.A.8). Where l2 forbids it, it bounds
   them. Where linf = 1 all cells that may move do: a pair that forgets a cell never tells more.

The delta is exact at every epsilon for linf = 1, and from epsilon = l1 / t on for all shifts within l2; below that it
is an upper bound. (Truncated Laplace noise of a single number: Geng, Ding, Guo, Kumar 2020, AISTATS.)
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpgm_core.privacy.amounts import Amount, amount, whole
from dpgm_core.privacy.dominating import response_pair
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = ["laplace_delta", "revealing_mass", "truncated_delta"]

#: What floating-point arithmetic may have lost; results are rounded up by it.
_ROUNDING = 1 + 1e-9


def truncated_delta(scale: Fraction | float, bound: int, sensitivity: Sensitivity, epsilon: Amount) -> float:
    """Return the least delta at which truncated discrete Laplace noise is (epsilon, delta)-private, rounded up.

    Parameters
    ----------
    scale : Fraction or float
        The scale t of the noise, in records.
    bound : int
        The largest value B that the noise takes, in records.
    sensitivity : Sensitivity
        What one person can change.
    epsilon : Amount
        The epsilon, in nats.

    Returns
    -------
    float
        The delta of the worst shift, at most 1.

    Raises
    ------
    BudgetError
        For a scale that is not positive, a bound that is not a whole number and an epsilon below 0.

    Notes
    -----
    The documentation of the module says what is exact and what is a bound.

    Examples
    --------
    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> p = np.exp(-np.abs(np.arange(-3, 4)) / 2)
    >>> math.isclose(truncated_delta(2.0, 3, one, "1/2"), p[0] / p.sum(), rel_tol=1e-8)
    True
    """
    lost = revealing_mass(scale, bound, sensitivity)
    remaining = laplace_delta(scale, sensitivity, epsilon)
    return min(1.0, (lost + (1 - lost) * remaining) * _ROUNDING)


def laplace_delta(scale: Fraction | float, sensitivity: Sensitivity, epsilon: Amount) -> float:
    """Return a delta at which Laplace noise that is not cut off is (epsilon, delta)-private, rounded up.

    Exact for discrete noise and linf = 1; else that of one randomised response. 0 from epsilon = l1 / scale on.

    >>> laplace_delta(2.0, Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), "1/2")
    0.0
    """
    width, target = _width(scale), amount("epsilon", epsilon, zero=True)
    delta = 0.0
    if sensitivity.linf <= 1:
        cells = _cells(sensitivity)
        if target < cells / width:
            pair = response_pair(cells, float(1 / width))
            above = pair.log_p - pair.log_q > float(target)
            delta = math.fsum(np.exp(pair.log_p[above]) - np.exp(float(target) + pair.log_q[above]))
    elif target < (whole_loss := sensitivity.l1 / width):
        # (e^l - e^epsilon) / (1 + e^l), without overflow
        delta = -math.expm1(float(target - whole_loss)) / (1 + math.exp(-float(whole_loss)))
    return min(1.0, max(delta, 0.0) * _ROUNDING)


def revealing_mass(scale: Fraction | float, bound: int, sensitivity: Sensitivity) -> float:
    """Return the largest probability that some cell takes a value that the neighbour's cannot; rounded up.

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> revealing_mass(1e9, 1, one) > 1 / 3 - 1e-6
    True
    >>> revealing_mass(1.0, 1, Sensitivity(l0=1, l1=3, l2_squared=9, linf=3))
    1.0
    """
    whole("the bound of truncated noise", bound, least=1)
    rate = float(1 / _width(scale))
    if sensitivity.linf <= 1:
        moved = [(1, _cells(sensitivity))]
    else:
        full, rest = divmod(sensitivity.l1, sensitivity.linf)
        moved = [(sensitivity.linf, min(full, sensitivity.l0))] + ([(rest, 1)] if full < sensitivity.l0 else [])
    log_safe = 0.0
    for shift, cells in moved:
        revealed = _tail(shift, rate, bound)
        log_safe += -math.inf if revealed >= 1 else cells * math.log1p(-revealed)
    return min(1.0, -math.expm1(log_safe) * _ROUNDING)


def _width(scale: Fraction | float) -> Fraction:
    """The scale as it is, not as it prints. Raises BudgetError for NaN, infinities, bools and what is not positive."""
    amount("the scale of truncated noise", scale)
    return Fraction(scale)


def _cells(sensitivity: Sensitivity) -> int:
    """Return how many cells unit shifts can move: each adds 1 to L0, L1 and L2^2; at least one, to be safe."""
    return max(1, min(sensitivity.l0, sensitivity.l1, sensitivity.l2_squared))


def _tail(points: int, rate: float, bound: int) -> float:
    """q(s): the mass of the outermost `points` whole numbers of one tail."""
    if points > bound + 1:
        return 1.0 if points > 2 * bound else 1 - _tail(2 * bound + 1 - points, rate, bound)
    if points < 1:
        return 0.0
    log_whole = math.log1p(2 * -math.expm1(-bound * rate) * math.exp(-_log_expm1(rate)))
    return math.exp(_log_expm1(points * rate) - _log_expm1(rate) - bound * rate - log_whole)


def _log_expm1(x: float) -> float:
    """ln(e^x - 1), without overflow."""
    return math.log(math.expm1(x)) if x < 1 else x + math.log1p(-math.exp(-x))
