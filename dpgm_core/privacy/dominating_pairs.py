"""Dominating pairs of distributions, and exact (epsilon, delta) of Laplace noise, truncated or not.

A dominating pair is two distributions of one number that are at least as easy to tell apart as a release with and
without one person. From it follows the privacy loss of many subsampled draws (extra `accounting`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import frozen
from scipy.special import gammaln

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.exact_numbers import Amount, amount, whole
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.gaussian import ROUNDING, moved_cells
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = [
    "DominatingPair",
    "composed_epsilon",
    "gaussian_pair",
    "laplace_delta",
    "reduce_delta",
    "response_pair",
    "revealing_mass",
    "truncated_delta",
]


# Whole-numbered noise is treated as what it is. With unit shifts (a person changes k cells by 1):
#
# * discrete Laplace: each cell tells only on which side of the step it fell, so k cells are k randomised responses of
#   1/scale, a pair of binomials; continuous Laplace noise is dominated by the same pair (Kairouz, Oh, Viswanath 2015);
# * discrete Gaussian: the likelihood ratio depends on the sum W of the k cells alone, log P/Q = (k - 2 W) / (2
#   sigma^2).
#
# Losses are put on a grid by splitting each outcome in two so that both its probabilities stay: merging them gives the
# outcome back, so the pair on the grid dominates the true one (the bound of Doroshenko et al. 2022, "Connect the
# Dots").

#: Mass of one draw that may be counted as a certain loss; with 10^6 rounds still far below any delta.
_TAIL_MASS = 1e-22
#: Points of the grid of losses, and outcomes of a pair: what a computation of about a second can hold.
_MAX_STEPS = 2**17
_MAX_OUTCOMES = 2**22
#: What rounding errors of fast Fourier transforms may take from a delta, and what each round may: a power multiplies
#: the relative error of a transform. Measured, not proven: at most 1.4e-17 a round (tests/test_accounting.py).
_ROUNDING, _ROUNDING_A_ROUND = 1e-13, 5e-17
#: Up to it a calibration, which composes many times, takes seconds.
_MAX_ROUNDS = 2**18


@frozen(kw_only=True, eq=False)
class DominatingPair:
    """log_p, log_q: log masses of P (without the person) and Q (with), (outcomes,), nats. lost: mass of P left out."""

    log_p: FloatArray
    log_q: FloatArray
    lost: float = 0.0

    def subsampled(self, rate: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """(upper, lower) log masses of both directions when the person takes part with probability `rate`."""
        if rate == 1.0:
            return (self.log_p, self.log_q), (self.log_q, self.log_p)
        mixed = np.logaddexp(math.log1p(-rate) + self.log_p, math.log(rate) + self.log_q)
        return (mixed, self.log_p), (self.log_p, mixed)


def response_pair(cells: int, epsilon: float) -> DominatingPair:
    """`cells` independent randomised responses of `epsilon` each; outcomes are the numbers of truthful ones.

    >>> pair = response_pair(2, 1.0)
    >>> np.allclose(pair.log_p - pair.log_q, [-2, 0, 2])
    True
    """
    right = np.arange(cells + 1, dtype=np.float64)
    log_choose = gammaln(cells + 1) - gammaln(right + 1) - gammaln(cells - right + 1)
    log_true, log_false = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    log_p = log_choose + right * log_true + (cells - right) * log_false
    return DominatingPair(log_p=log_p, log_q=log_p[::-1])


def gaussian_pair(cells: int, sigma: float) -> DominatingPair | None:
    """Discrete Gaussian noise of parameter sigma on `cells` cells that all move by 1; None beyond 2^22 outcomes.

    P is the distribution of W, the sum of the noise: a discrete Gaussian of variance cells * sigma^2 up to a factor
    that differs from 1 by less than 2 cells exp(-pi^2 sigma^2) (Poisson summation), below 1e-60 from sigma = 4 on; for
    less, it is convolved directly. Tails: W is sub-Gaussian with sigma^2 cells (Canonne, Kamath, Steinke 2020).
    """
    # P(|W| > reach) <= 2 exp(-reach^2 / (2 cells sigma^2)) = _TAIL_MASS
    reach = math.ceil(sigma * math.sqrt(2 * cells * math.log(2 / _TAIL_MASS))) + 1
    if reach > _MAX_OUTCOMES or cells > _MAX_OUTCOMES:
        return None
    centre = np.arange(-reach, reach + 1, dtype=np.float64)
    if sigma >= 4:
        log_mass = -(centre**2) / (2 * cells * sigma**2)
        log_mass -= math.log(math.fsum(np.exp(log_mass)))
    else:
        with np.errstate(divide="ignore"):
            log_mass = np.log(_power(np.exp(-(centre**2) / (2 * sigma**2)), cells))
    # P where W is within reach of 0, else through Q, which is P moved by `cells`, and the ratio.
    outcomes = np.arange(-reach, cells + reach + 1, dtype=np.float64)
    loss = (cells - 2 * outcomes) / (2 * sigma**2)
    log_p, log_q = np.full(len(outcomes), -math.inf), np.full(len(outcomes), -math.inf)
    log_p[: len(centre)], log_q[-len(centre) :] = log_mass, log_mass
    far = outcomes > reach
    log_p[far] = log_q[far] + loss[far]
    log_q[~far] = log_p[~far] - loss[~far]
    return DominatingPair(log_p=log_p, log_q=log_q, lost=10 * _TAIL_MASS)


def composed_epsilon(pair: DominatingPair, rate: float, rounds: int, delta: float) -> float | None:
    """epsilon at `delta` of `rounds` subsampled draws; an upper bound, in both directions. None when out of reach.

    Composition by dp-accounting's fast Fourier transforms. Raises BudgetError when dp-accounting is missing.
    """
    less = reduce_delta(delta, rounds)
    if less is None:
        return None
    worst = 0.0
    for upper, lower in pair.subsampled(rate):
        distribution = _on_grid(upper, lower, pair.lost)
        if distribution is None:
            return None
        composed = distribution.self_compose(rounds, tail_mass_truncation=1e-15)
        worst = max(worst, float(composed.get_epsilon_for_delta(less)))
    return worst if math.isfinite(worst) else None


def reduce_delta(delta: float, rounds: int) -> float | None:
    """A little less delta, which pays for the rounding errors of `rounds` composed by transforms.

    None where they would matter (more than delta / 100), and for more than 2^18 rounds.
    """
    margin = _ROUNDING + rounds * _ROUNDING_A_ROUND
    if rounds > _MAX_ROUNDS or margin > delta / 100:
        return None
    return delta * (1 - 1e-6) - margin


def _on_grid(log_upper: FloatArray, log_lower: FloatArray, lost: float) -> Any:
    shared = (log_upper > math.log(1e-40)) & (log_lower > -math.inf)
    lost += math.fsum(np.exp(log_upper[~shared]))
    if not shared.any():  # the two never meet
        return None
    mass, loss = np.exp(log_upper[shared]), log_upper[shared] - log_lower[shared]
    mean = float(mass @ loss)
    spread = math.sqrt(float(mass @ (loss - mean) ** 2))
    # splitting adds at most step^2 / 4 to the variance of a loss: for most pairs 1/40000 of it
    step = max(spread / 100, (loss.max() - loss.min()) / _MAX_STEPS)
    step = max(step, 1e-6 * float(np.abs(loss).max()), 1e-12)  # one loss only: any grid will do
    place = np.floor(loss / step)
    low = place * step
    # a exp(-low) + b exp(-low - step) = mass exp(-loss) and a + b = mass
    above = mass * np.clip(np.expm1(low - loss) / math.expm1(-step), 0.0, 1.0)
    first = int(place.min())
    index = (place - first).astype(np.int64)
    length = int(index.max()) + 2
    grid = np.bincount(index, mass - above, length) + np.bincount(index + 1, above, length)
    return _pld_pmf().DensePLDPmf(step, first, grid, lost, True)


def _power(mass: FloatArray, times: int) -> FloatArray:
    """Return the centred distribution of a sum of `times` numbers, by direct convolution: no cancellation in tails."""
    mass = mass / math.fsum(mass)
    total = None
    while times:
        if times % 2:
            total = mass if total is None else np.convolve(total, mass, "same")
        mass, times = np.convolve(mass, mass, "same"), times // 2
    assert total is not None
    return total


def _pld_pmf() -> Any:
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError:
        pld_pmf = None
    if pld_pmf is None:
        raise BudgetError("this needs dp-accounting: pip install 'dpgm-core[accounting]'")
    return pld_pmf


# --------------------------------------------------------------------------------------------------
# Discrete Laplace noise cut off at a public bound B: mass proportional to exp(-|z| / t) for whole z in [-B, B].
#
# Such noise is (epsilon, delta)-private and not more: an output that one of two neighbours cannot give reveals the
# other. What it costs is computed here from t, B and the sensitivity alone, for the worst shift s of the counts:
#
# 1. One cell shifted by s. The outputs that only P can give are the s outermost ones of one tail, of mass q(s). On all
#    others the loss log P(y) / P(y - s) lies within s / t; for s = 1 it is 1/t or -1/t, in the ratio of a randomised
#    response of 1/t. So the cell reveals all with probability q(s), and otherwise is s/t-private.
# 2. Several cells. Something is revealed with probability 1 - prod (1 - q(s_i)); the rest loses at most |s|_1 / t,
#    hence never more than a randomised response of that (Kairouz, Oh, Viswanath 2015, Theorem 3.4).
# 3. The worst shift. P is log-concave, so its hazard rate P(tail's next point) / (1 - q(s)) rises with s, hence g(s) =
#    -log(1 - q(s)) is increasing and convex and g(0) = 0. A sum of such g is largest where the shift is most
#    concentrated: the shift with as many cells as l0 and l1 allow moved by linf, and what is left of l1 in one more,
#    weakly majorises all others (Marshall, Olkin, Arnold 2011, Theorems 3.C.1 and 5.A.8). Where l2 forbids it, it
#    bounds them. Where linf = 1 all cells that may move do: a pair that forgets a cell never tells more.
#
# The delta is exact at every epsilon for linf = 1, and from epsilon = l1 / t on for all shifts within l2; below that it
# is an upper bound. (Truncated Laplace noise of a single number: Geng, Ding, Guo, Kumar 2020, AISTATS.)


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
    return min(1.0, (lost + (1 - lost) * remaining) * ROUNDING)


def laplace_delta(scale: Fraction | float, sensitivity: Sensitivity, epsilon: Amount) -> float:
    """Return a delta at which Laplace noise that is not cut off is (epsilon, delta)-private, rounded up.

    Exact for discrete noise and linf = 1; else that of one randomised response. 0 from epsilon = l1 / scale on.

    >>> laplace_delta(2.0, Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), "1/2")
    0.0
    """
    width, target = _width(scale), amount("epsilon", epsilon, zero=True)
    delta = 0.0
    if sensitivity.linf <= 1:
        cells = moved_cells(sensitivity)
        if target < cells / width:
            pair = response_pair(cells, float(1 / width))
            above = pair.log_p - pair.log_q > float(target)
            delta = math.fsum(np.exp(pair.log_p[above]) - np.exp(float(target) + pair.log_q[above]))
    elif target < (whole_loss := sensitivity.l1 / width):
        # (e^l - e^epsilon) / (1 + e^l), without overflow
        delta = -math.expm1(float(target - whole_loss)) / (1 + math.exp(-float(whole_loss)))
    return min(1.0, max(delta, 0.0) * ROUNDING)


def revealing_mass(scale: Fraction | float, bound: int, sensitivity: Sensitivity) -> float:
    """Return the largest probability that some cell takes a value that the neighbour's cannot; rounded up."""
    whole("the bound of truncated noise", bound, least=1)
    rate = float(1 / _width(scale))
    if sensitivity.linf <= 1:
        moved = [(1, moved_cells(sensitivity))]
    else:
        full, rest = divmod(sensitivity.l1, sensitivity.linf)
        moved = [(sensitivity.linf, min(full, sensitivity.l0))] + ([(rest, 1)] if full < sensitivity.l0 else [])
    log_safe = 0.0
    for shift, cells in moved:
        revealed = _tail(shift, rate, bound)
        log_safe += -math.inf if revealed >= 1 else cells * math.log1p(-revealed)
    return min(1.0, -math.expm1(log_safe) * ROUNDING)


def _width(scale: Fraction | float) -> Fraction:
    """The scale as it is, not as it prints. Raises BudgetError for NaN, infinities, bools and what is not positive."""
    amount("the scale of truncated noise", scale)
    return Fraction(scale)


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
