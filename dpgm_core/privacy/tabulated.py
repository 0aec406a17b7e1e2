"""Noise of a tabulated distribution: what it loses, exact draws, and calibration.

A third party brings the distribution as whole weights (`NoiseDistribution`); core computes the loss and draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np
from attrs import frozen
from scipy.special import ndtri

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError, InferenceError
from dpgm_core.privacy.budget import MAX_WEIGHTS, Budget, BudgetKind, NoiseDistribution, PrivacyEvent
from dpgm_core.privacy.gaussian import normal_delta
from dpgm_core.privacy.gdp import PURE_MU_SQUARED
from dpgm_core.privacy.samplers import Words, uniform_below
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = [
    "LAST_DIGITS",
    "TabulatedNoise",
    "calibrate_tabulated",
    "log_moment",
    "tabulated_cost",
    "tabulated_delta",
    "tabulated_variance",
]

# What noise W loses, when the counts move by the whole-numbered vector s, independent noise in each cell. Nothing here
# needs W to be log-concave, and all of it holds for both directions, as W is symmetric.
#
# 1. Pure. Let e(s) be the largest |log P(W = k) - log P(W = k + s)|. Losses of independent cells add, so all of it
#    costs the sum of e(s_j). As e(s) <= |s| e(1), that is at most L1 e(1); it is at most L0 times the largest e(s), s
#    up to Linf, too.
# 2. GDP (Dong, Roth, Su 2022). A pair (P, Q) is mu-GDP if Phi^-1(P(A)) - Phi^-1(Q(A)) <= mu for every event A, in both
#    directions. Let mu(s) be that of W + s against W. By Neyman and Pearson the best events hold the values of largest
#    ratio P / Q; there are finitely many ratios, as those of either tail are one and the same, hence finitely many
#    events between which the trade-off is linear. The trade-off of two normal laws is convex, so where it is below all
#    of these corners it is below all of the trade-off, and mu(s) is the largest difference at a corner. Independent
#    cells compose: mu^2 is the sum of mu(s_j)^2 (Theorem 3.2 there, Corollary 3.3). mu(s) <= |s| mu(1) by the triangle
#    (Theorem 2.14), so mu^2 <= L2^2 mu(1)^2; and at most L0 times the largest mu(s)^2.
#    Of log-concave W the corners are the events W >= t. A tail's own thresholds need no look: the chord is above them.
# 3. zCDP. mu-GDP is a function of the normal pair (Blackwell), so rho = mu^2 / 2; and rho = epsilon^2 / 2 of 1. (Bun
#    and Steinke 2016, Proposition 1.4). The lesser holds.
# 4. (epsilon, delta). The curve of the normal pair; 0 from the pure epsilon on.

# Shifts by more than it are composed of shifts by 1.
_MAX_SHIFT = 16
# Room for the doubles of a loss: logarithms are below 100, so their differences are within 1e-13. Cumulated sums of n
# terms are within n 2^-53 relatively, and Phi^-1 of such a sum within 1.26 n 2^-53.
_LOG_ROOM, _CUMULATED_ROOM = 1e-13, 1e-15
# Losses are rounded up by so much, and may be claimed less by half of it: a machine with other last digits finds a
# cost covered that was computed elsewhere, and no cost is below the loss.
_ROUNDED_UP, LAST_DIGITS = 1 + 1e-9, 1 - Fraction(1, 2 * 10**9)
# Where the differences of log weights rise by less, they are taken not to: weights are whole.
_CONCAVE_ROOM = 2e-9
# A calibrated table's weights are below 2^61, and end above 2^34, so that rounding is below 1e-10 of any.
_PEAK_BITS, _LAST_BITS = 61, 34
_CLAMP_BITS = 60
_ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
# The tail of a table that ends early falls by a factor of e over so many records at most, so that counts hold it.
_MAX_TAIL = 2.0**29
# Scales are sought among these, records.
_MIN_SCALE, _MAX_SCALE = 2.0**-20, 2.0**31


@frozen(kw_only=True)
class TabulatedNoise:
    """Independent noise of a tabulated distribution for each cell, drawn exactly by core.

    Parameters
    ----------
    distribution : NoiseDistribution
        Of a cell.
    sensitivity : Sensitivity
        What it was calibrated to.
    cost : Budget
        At least what core computes (see `tabulated_cost`); less raises BudgetError.

    Examples
    --------
    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> halves = NoiseDistribution(weights=(2, 1), tail=Fraction(1, 2))
    >>> noise = TabulatedNoise(distribution=halves, sensitivity=one, cost=Budget.pure("0.7"))
    >>> round(noise.variance, 6), noise.log_concave
    (4.0, True)
    """

    distribution: NoiseDistribution
    sensitivity: Sensitivity
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    dual: ClassVar[None] = None
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def __attrs_post_init__(self) -> None:
        for name, kind in (("distribution", NoiseDistribution), ("sensitivity", Sensitivity), ("cost", Budget)):
            if type(getattr(self, name)) is not kind:
                raise BudgetError(f"the {name} of tabulated noise must be a {kind.__name__}")
        if self.cost.kind == "approx":
            delta = tabulated_delta(self.distribution, self.sensitivity, self.cost.epsilon)
            covered, least = delta * float(LAST_DIGITS) <= self.cost.delta, f"delta = {delta:.6g} at this epsilon"
        else:
            cost = tabulated_cost(self.distribution, self.sensitivity, self.cost.kind)
            covered, least = cost * LAST_DIGITS <= self.cost, str(cost)
        if not covered:
            raise BudgetError(f"tabulated noise claims to cost {self.cost}, but costs {least}")

    @property
    def event(self) -> PrivacyEvent:
        """The distribution itself."""
        return PrivacyEvent(
            kind="tabulated",
            scale=1 / _losses(self.distribution, 1)[0][0],
            sensitivity=float(max(self.sensitivity.l1, 1)),
            distribution=self.distribution,
        )

    @property
    def variance(self) -> float:
        """The variance of a cell, records**2."""
        return tabulated_variance(self.distribution)

    @property
    def log_concave(self) -> bool:
        """Whether the differences of the log weights never rise, but for the rounding of weights."""
        return _is_log_concave(self.distribution)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Return fresh noise of any shape, int64, exactly; see `_draw`."""
        return _draw(self.distribution, math.prod(shape), randomness).reshape(shape)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Return the log mass, linear between whole numbers; nats, any shape. Raises InferenceError for NaN."""
        logs, log_tail, log_total = _log_weights(self.distribution)
        sizes = np.abs(_checked(residual))
        last = len(logs) - 1
        with np.errstate(invalid="ignore"):
            beyond = np.maximum(sizes - last, 0.0) * log_tail
        return np.asarray(np.interp(sizes, np.arange(last + 1.0), logs) + beyond - log_total)

    def score(self, residual: FloatArray) -> FloatArray:
        """Return the slope of `logpdf`; at whole numbers that of the side away from 0, and 0 at 0."""
        logs, log_tail, _ = _log_weights(self.distribution)
        residual = _checked(residual)
        slopes = np.append(np.diff(logs), log_tail)
        place = np.minimum(np.abs(residual), len(slopes) - 1.0).astype(np.int64)
        return np.asarray(np.sign(residual) * slopes[place])


def _checked(residual: FloatArray) -> FloatArray:
    residual = np.asarray(residual, dtype=np.float64)
    if np.isnan(residual).any():
        raise InferenceError("a residual is NaN; releases and expected tables hold numbers only")
    return residual


# --------------------------------------------------------------------------------------------------
# Losses


def tabulated_cost(distribution: NoiseDistribution, sensitivity: Sensitivity, kind: BudgetKind) -> Budget:
    """Return what one release with this noise costs, rounded up: pure epsilon, rho or mu.

    Parameters
    ----------
    distribution : NoiseDistribution
        Of the noise of each cell.
    sensitivity : Sensitivity
        What one person can change.
    kind : {"pure", "zcdp", "gdp"}
        Of the budget. What an (epsilon, delta) costs is `tabulated_delta`.
    """
    if kind == "approx":
        raise BudgetError("the cost of tabulated noise in (epsilon, delta) is its delta at an epsilon; ask for that")
    if not sensitivity.l1:
        return Budget.zero(kind)
    epsilon = _pure_epsilon(distribution, sensitivity)
    if kind == "pure":
        return Budget.pure(epsilon)
    if kind == "gdp":
        return Budget("gdp", mu_squared=min(_mu_squared(distribution, sensitivity), PURE_MU_SQUARED * epsilon**2))
    return Budget.zcdp(min(_mu_squared(distribution, sensitivity), epsilon**2) / 2)


def tabulated_delta(distribution: NoiseDistribution, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """Return a delta at which one release with this noise is (epsilon, delta)-private, rounded up."""
    if _pure_epsilon(distribution, sensitivity) <= epsilon:
        return 0.0
    mu = math.sqrt(_mu_squared(distribution, sensitivity)) * (1 + 1e-15)
    return float(normal_delta(mu, np.array(float(epsilon))))


def _pure_epsilon(distribution: NoiseDistribution, sensitivity: Sensitivity) -> Fraction:
    losses = [loss for loss, _ in _losses(distribution, _shifts(sensitivity))]
    return _over_cells(losses, sensitivity, sensitivity.l1)


def _mu_squared(distribution: NoiseDistribution, sensitivity: Sensitivity) -> Fraction:
    squares = [mu**2 * (1 + 1e-15) for _, mu in _losses(distribution, _shifts(sensitivity))]
    return _over_cells(squares, sensitivity, sensitivity.l2_squared)


def _shifts(sensitivity: Sensitivity) -> int:
    """Of how many shifts of a cell, by 1 and more, the losses count: of all where they are few, else of that by 1."""
    return max(sensitivity.linf, 1) if sensitivity.linf <= _MAX_SHIFT else 1


def _over_cells(by_shift: list[float], sensitivity: Sensitivity, norm: int) -> Fraction:
    """Return the largest sum over cells: of shifts by 1 as often as the norm allows, or of the worst in each cell."""
    unit = Fraction(by_shift[0]) * norm
    return unit if sensitivity.linf > len(by_shift) else min(unit, Fraction(max(by_shift)) * sensitivity.l0)


@lru_cache(maxsize=32)
def _losses(distribution: NoiseDistribution, shifts: int) -> tuple[tuple[float, float], ...]:
    """Return the largest |log ratio| and the GDP parameter mu of shifts by 1, 2, ..., rounded up; above, 1. and 2."""
    logs, log_tail, log_total = _log_weights(distribution)
    last, result = len(logs) - 1, []
    for shift in range(1, shifts + 1):
        far = np.concatenate([logs, logs[-1] + log_tail * np.arange(1, 2 * shift + 1)])
        both = np.concatenate([far[:0:-1], far])  # of -(K + 2 s) to K + 2 s
        loss = float(np.abs(both[shift:] - both[:-shift]).max()) * _ROUNDED_UP + _LOG_ROOM
        values = np.arange(1 - last, last + shift)
        rest = logs[-1] - math.log(-math.expm1(log_tail))  # log weight of W >= K
        log_p = np.concatenate([[rest], far[np.abs(values - shift)], [rest + shift * log_tail]]) - log_total
        log_q = np.concatenate([[rest + shift * log_tail], far[np.abs(values)], [rest]]) - log_total
        order = np.argsort(log_q - log_p, kind="stable")
        with np.errstate(under="ignore"):
            gaps = _quantiles(np.exp(log_p[order])) - _quantiles(np.exp(log_q[order]))
        result.append((loss, float(gaps.max()) * _ROUNDED_UP + _CUMULATED_ROOM * (len(order) + 100)))
    return tuple(result)


def _quantiles(masses: FloatArray) -> FloatArray:
    """Return Phi^-1 of the cumulated masses but the last, from whichever side is the smaller."""
    below, above = np.cumsum(masses)[:-1], np.cumsum(masses[::-1])[-2::-1]
    return np.asarray(np.where(below <= above, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 0.5))))


@lru_cache(maxsize=32)
def _log_weights(distribution: NoiseDistribution) -> tuple[FloatArray, float, float]:
    """Return the logarithms of the weights, of the tail, and of the sum of all weights."""
    weights = np.array(distribution.weights, dtype=np.float64)
    tail = distribution.tail
    log_tail = math.log1p((tail.numerator - tail.denominator) / tail.denominator)
    rest = weights[-1] * tail.numerator / (tail.denominator - tail.numerator)
    total = math.fsum([weights[0], 2 * float(weights[1:].sum()), 2 * rest])
    return np.log(weights), log_tail, math.log(total)


@lru_cache(maxsize=32)
def tabulated_variance(distribution: NoiseDistribution) -> float:
    """Return the variance of a distribution, records**2.

    >>> tabulated_variance(NoiseDistribution(weights=(2, 1), tail=Fraction(1, 2)))
    4.0
    """
    weights, tail, last = np.array(distribution.weights, dtype=np.float64), distribution.tail, len(distribution.weights)
    total = math.exp(_log_weights(distribution)[2])
    short = float(1 - tail)
    # sum over j >= 1 of (K + j)^2 q^j
    beyond = (last - 1) ** 2 / short + 2 * (last - 1) / short**2 + float(1 + tail) / short**3
    squares = np.square(np.arange(last, dtype=np.float64)) @ weights + weights[-1] * float(tail) * beyond
    return max(float(2 * squares / total), 2.0**-1000)


@lru_cache(maxsize=32)
def _is_log_concave(distribution: NoiseDistribution) -> bool:
    logs, log_tail, _ = _log_weights(distribution)
    slopes = np.append(np.diff(logs), log_tail)
    return bool(slopes[0] <= 0 and (np.diff(slopes) <= _CONCAVE_ROOM).all())


def log_moment(distribution: NoiseDistribution, slopes: FloatArray) -> FloatArray:
    """Return log E exp(s W) for each slope s, any shape; infinite where there is none."""
    logs, log_tail, log_total = _log_weights(distribution)
    result = np.full(np.shape(slopes), math.inf)
    for place, slope in np.ndenumerate(np.abs(slopes)):
        if slope + log_tail < -1e-9:
            up = np.append(logs, logs[-1] - math.log(-math.expm1(slope + log_tail)) + slope + log_tail)
            down = np.append(logs, logs[-1] - math.log(-math.expm1(log_tail - slope)) + log_tail - slope)
            steps = slope * np.append(np.arange(len(logs)), len(logs) - 1)
            both = np.concatenate([up + steps, (down - steps)[1:]])
            result[place] = np.logaddexp.reduce(both) - log_total
    return result


# --------------------------------------------------------------------------------------------------
# Calibration


def calibrate_tabulated(
    family: Callable[[FloatArray, float], FloatArray], sensitivity: Sensitivity, budget: Budget
) -> TabulatedNoise:
    """Return the noise of least scale, within 1e-7, that costs at most a budget.

    Parameters
    ----------
    family : callable
        `family(values, scale)`: the log weight of each of the whole numbers 0, 1, 2, ... (float64), up to a constant,
        at a scale in records. Wider for larger scales.
    sensitivity : Sensitivity
        What one person can change; where nobody changes anything, one record is taken.
    budget : Budget
        Pure, zCDP or (epsilon, delta).

    Raises
    ------
    BudgetError
        For what is no sensitivity or positive budget, and for noise wider than 2**29 records, or than 2**16 weights
        hold where it is not log-concave.

    Notes
    -----
    The table ends where weights fall below 2^-27 of the largest, as smaller ones, rounded, would bend; that of wide
    log-concave noise after 2**16 weights, so that its tail is heavier than the family's. From there on the
    tail falls as the last weight does, or, where the distribution is not log-concave, no steeper than the table over
    several records.

    Examples
    --------
    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> noise = calibrate_tabulated(lambda z, scale: -((z / scale) ** 1.5), one, Budget.zcdp("1/8"))
    >>> round(noise.variance, 3), noise.cost <= Budget.zcdp("1/8")
    (5.774, True)
    """
    if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
        raise BudgetError("noise is calibrated from a Sensitivity and a Budget, in this order")
    if budget.is_zero or (budget.kind == "approx" and not budget.delta):
        raise BudgetError(f"tabulated noise was asked for {budget}; it takes a positive budget of one kind")
    sensitivity = sensitivity if sensitivity.l1 else _ONE

    def noise_at(scale: float) -> TabulatedNoise | None:
        distribution = _tabulate(family, scale)
        if budget.kind == "approx":
            covered = tabulated_delta(distribution, sensitivity, budget.epsilon) <= budget.delta
            return TabulatedNoise(distribution=distribution, sensitivity=sensitivity, cost=budget) if covered else None
        cost = tabulated_cost(distribution, sensitivity, budget.kind)
        if not cost <= budget:
            return None
        return TabulatedNoise(distribution=distribution, sensitivity=sensitivity, cost=cost)

    def find(scale: float) -> TabulatedNoise | None:
        try:
            return noise_at(scale)
        except _TooWide:
            raise BudgetError(
                f"{budget} at L1 sensitivity {sensitivity.l1}, L2 {sensitivity.l2:.6g} needs tabulated noise wider "
                "than 2**16 weights hold, or 2**29 records; use a larger budget, fewer cliques or fewer rows per person"
            ) from None

    low = high = 1.0
    best = find(high)
    while best is None and high < _MAX_SCALE:
        low, high = high, 2 * high
        best = find(high)
    while best is not None and low == high and high > _MIN_SCALE:
        narrower = find(high / 2)
        low, high, best = high / 2, high / 2 if narrower else high, narrower or best
    if best is None:
        raise BudgetError(f"no scale of this noise costs at most {budget}")
    while high > low * (1 + 1e-7):
        middle = math.sqrt(low * high)
        one = find(middle)
        low, high, best = (low, middle, one) if one else (middle, high, best)
    return best


class _TooWide(Exception):
    """Raised for noise whose table would be too long."""


def _tabulate(family: Callable[[FloatArray, float], FloatArray], scale: float) -> NoiseDistribution:
    """Return the table of a family at a scale; raises _TooWide."""
    cut, length, end = (_LAST_BITS - _PEAK_BITS) * math.log(2), 2**6, 0
    while not end:
        logs = np.asarray(family(np.arange(length, dtype=np.float64), scale), dtype=np.float64)
        if logs.shape != (length,) or not np.isfinite(logs).all():
            raise BudgetError("a family of noise must give a finite log weight for each value it is called with")
        logs = logs - logs.max()
        end = int(np.argmax(logs < cut))
        if logs[0] < cut:
            raise BudgetError("a family of noise must give the value 0 a weight near the largest")
        if not end and length == MAX_WEIGHTS:
            slopes = np.diff(logs)
            falls = slopes[0] <= 0 and (np.diff(slopes) <= _CONCAVE_ROOM).all()
            if not falls or slopes[-1] > -1 / _MAX_TAIL:
                raise _TooWide
            end = length
        length = min(4 * length, MAX_WEIGHTS)
    weights = tuple(int(one) for one in np.exp(logs[:end]) * 2.0**_PEAK_BITS)
    log_weights = np.log(weights)
    slopes = np.diff(log_weights)
    if end == 1 or (slopes[0] <= 0 and (np.diff(slopes) <= _CONCAVE_ROOM).all()):
        ratio = Fraction(weights[-1], weights[-2]) if end > 1 else Fraction(math.exp(max(logs[1] - logs[0], -40.0)))
    else:
        shifts = range(1, min(_MAX_SHIFT, end - 1) + 1)
        steepest = min(float((log_weights[:-shift] - log_weights[shift:]).max()) / shift for shift in shifts)
        ratio = Fraction(math.exp(-steepest))
    grid = 1 << _PEAK_BITS
    return NoiseDistribution(weights=weights, tail=Fraction(max(1, min(ratio * grid // 1, grid - 2**21)), grid))


# --------------------------------------------------------------------------------------------------
# Exact draws
#
# |W| is drawn by inversion: U uniform on [0, 1) by its binary digits, and the cumulated weights as exact fractions of
# the whole. 64 digits tell the value, unless U shares them with a bound, which has a probability below 2^-46; then U's
# next digits are drawn until they tell. Beyond the table |W| - K - 1 is geometric, whose binary digits are independent:
# digit i is 1 with probability q / (1 + q), q = tail^(2^i). These are found to as many digits as telling takes, by
# intervals around tail^(2^i). So no draw is off by anything, and how long it takes depends on the noise alone.


@lru_cache(maxsize=32)
def _bounds(distribution: NoiseDistribution) -> tuple[tuple[int, ...], int, Words]:
    """Return the cumulated weights of |W| = 0, ..., K, the whole, and the first over the whole in units of 2^-64."""
    tail = distribution.tail
    short = tail.denominator - tail.numerator
    sums, total = [], 0
    for number, weight in enumerate(distribution.weights):
        total += weight * short * (2 if number else 1)
        sums.append(total)
    total += 2 * distribution.weights[-1] * tail.numerator
    return tuple(sums), total, np.array([(one << 64) // total for one in sums], dtype=np.uint64)


def _draw(distribution: NoiseDistribution, count: int, randomness: Randomness) -> IntArray:
    """Return independent draws of W, int64, (count,)."""
    sums, total, first = _bounds(distribution)
    words = np.asarray(randomness.words(count))
    sizes = np.searchsorted(first, words, side="right").astype(np.int64)
    doubtful = np.flatnonzero(first[np.minimum(np.searchsorted(first, words), len(first) - 1)] == words)
    for place in doubtful:
        sizes[place] = _told(int(words[place]), lambda bits: [(one << bits) // total for one in sums], randomness)
    far = np.flatnonzero(sizes == len(sums))
    sizes[far] += _geometric(distribution.tail, far.size, randomness)
    return np.where(uniform_below(2, count, randomness) == 1, -sizes, sizes)


def _told(digits: int, bounds: Callable[[int], list[int]], randomness: Randomness) -> int:
    """Return how many bounds U has passed, drawing digits of it until that is certain.

    digits: its first 64. bounds: at so many digits, each rounded down by at most 2 units.
    """
    bits = 64
    while True:
        bits += 64
        digits = (digits << 64) | int(randomness.words(1)[0])
        at = bounds(bits)
        if not any(one <= digits <= one + 2 for one in at):
            return sum(one < digits for one in at)


def _geometric(tail: Fraction, count: int, randomness: Randomness) -> IntArray:
    """Return independent G >= 0 with P(G >= g) = tail^g, cut at 2^60; (count,)."""
    result = np.zeros(count, dtype=np.int64)
    if not count:
        return result
    for digit in range(_CLAMP_BITS):
        (first,) = _odds(tail, digit, 64)
        words = np.asarray(randomness.words(count))
        ones = words < np.uint64(first)
        for place in np.flatnonzero((words >= np.uint64(first)) & (words - np.uint64(first) <= np.uint64(2))):
            passed = _told(int(words[place]), partial(_odds, tail, digit), randomness)
            ones[place] = not passed
        result += ones.astype(np.int64) << digit
    return result


@lru_cache(maxsize=4096)
def _odds(tail: Fraction, digit: int, bits: int) -> list[int]:
    """Return q / (1 + q), q = tail^(2^digit), in units of 2^-bits, rounded down by at most 2 units.

    A power is off by at most twice its square root's error and one unit; so 2 digit + 8 more bits are enough.
    """
    work = bits + 2 * digit + 8
    power = (tail.numerator << work) // tail.denominator
    for _ in range(digit):
        power = power * power >> work
    return [(power << bits) // ((1 << work) + power)]
