"""The (epsilon, delta) of ONE release whose tables have discrete Gaussian noise of unequal widths, fixed before it is
drawn. Never for widths that were chosen from noisy output: what several releases cost adds up in other ways.

If a person moves k cells by 1 each, under noise of variance parameters v_i, the privacy loss is a sum of independent
numbers, L = sum_i (1 + 2 W_i) / (2 v_i), W_i discrete Gaussian, and delta(epsilon) = E f(L), f(l) = (1 - exp(epsilon -
l))_+. Moving fewer cells tells less (forget a cell), and both directions have the same L. L is put on a grid and
convolved by Fourier transforms; each step can only raise delta:

1. Grid. A mass at l between the points a < b is split over them so that mass and mass * exp(-l) stay. f is convex in
   exp(-l), so E f rises (Jensen), whatever else is added to L; rounding moves mass to b, and f rises with l. What is
   split like that adds less than step^2 / 4 to the variance of L. Source: Doroshenko et al. (2022), Connect the Dots.
2. Tilt. Masses are weighted by exp(t l) / E exp(t L), with t such that L is about epsilon in the mean, and f by the
   reverse: delta = E exp(t (L - epsilon)) * E' w(L), w(l) = exp(-t (l - epsilon)) f(l) in [0, 1]. So what is lost is
   lost relatively to delta, however small that is. A tilted discrete Gaussian is one around t.
3. Tails. What is left of a W_i falls faster than a geometric series; what lies beyond the grid is at most exp(-s top)
   E' exp(s L) (Chernoff). Both are added, as w is at most 1; the grid is cyclic, and what comes round only adds.
4. Rounding. A transform of n = 2^j points has a relative error in the 2-norm of a small multiple of j 2^-53 (Higham
   2002, Accuracy and Stability of Numerical Algorithms, Theorem 24.2); 16 j are taken. A product of k factors of at
   most 1 has k times that. By Cauchy and Schwarz E' w is wrong by at most the 2-norm of w times it; that is added.
5. Cells with wide noise, and tables in which a person moves a cell by more than 1, enter as one normal number of shift
   mu (`dpgm_core.privacy.gaussian`): f(l) becomes its delta at epsilon - l, and its exponential moment the bound of w.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.gaussian import (
    ROUNDING,
    Part,
    concentrated_delta,
    log_normaliser,
    moved_cells,
    normal_delta,
    priced_delta,
    smoothed,
    smoothed_delta,
)

__all__ = ["largest_rho", "normal_parts_delta", "planned_delta", "together_delta"]

_Noises = TypeVar("_Noises")

_UNIT = 2.0**-53
# Noise from this sigma^2 on is taken as continuous: it costs a ten-thousandth of its variance.
_WIDE = 20_000
# Cells whose losses are convolved at most, and their different widths, so that no file takes long to read; of more,
# comparison with the continuous costs little.
_MAX_CELLS, _MAX_WIDTHS = 2048, 256
# What splitting may add to the variance of the loss, relatively; half of it is the error of sigma.
_MAX_ADDED_VARIANCE = 1e-5
# exp(-_FAR) of a tail is left out; standard deviations of the loss on the grid, each way.
_FAR, _REACH = 45.0, 9.0
# Whole numbers around it, and their squares, are exact enough.
_MAX_TILT = 2.0**24
# Added where a logarithm of an underflow would be taken.
_TINY = 1e-300
_FEWEST_POINTS, _MAX_POINTS = 2**14, 2**17
# The same of planned choices, whose density is split exactly, so that a session opens and is read quickly.
_ADDED_BY_CHOICES, _FEWEST_OF_CHOICES = 1e-4, 2**11


def together_delta(parts: Mapping[Part, int], epsilon: Fraction, enough: float = 0.0) -> float:
    """A delta(epsilon) of discrete Gaussian noises drawn together, over every admissible whole-numbered shift.

    parts: sigma^2 of a table and what one person can change there, and how many tables are alike. The least of four
    bounds: by zCDP, by comparison with continuous noise, by the price, and the convolved one, which is exact to about
    1e-3 of delta where no cell moves by more than 1. enough: a delta at which it stops looking for a smaller one.
    """
    if not parts:
        return 0.0  # nobody can change a thing
    rho = sum((count * _square(part) / (2 * part[0]) for part, count in parts.items()), Fraction(0))
    delta = min(concentrated_delta(rho, epsilon), smoothed_delta(parts, epsilon), priced_delta(parts, epsilon))
    return delta if delta <= enough else min(delta, _convolved(frozenset(parts.items()), epsilon))


def normal_parts_delta(parts: Mapping[Part, int], epsilon: Fraction, enough: float = 0.0) -> float:
    """The exact delta(epsilon) of continuous Gaussian noises together, as quick as none; for textbook noise only."""
    square = sum(count * _square(part) / float(part[0]) for part, count in parts.items())
    return float(normal_delta(math.sqrt(square), np.array(float(epsilon)))) if square else 0.0


def largest_rho(
    delta_of: Callable[[_Noises, Fraction, float], float],
    parts_of: Callable[[Fraction], _Noises],
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """About the largest rho, of 12 digits, whose noises have a delta_of(parts, epsilon, enough) a little below delta.

    parts_of: the noises that cost rho in all, sigma^2 in proportion to 1 / rho. Within 1e-4 of the largest, except
    where sigma is below 1 and delta is no smooth function of it. Raises BudgetError for a delta below 1e-200.
    """
    if delta < Fraction(1, 10**200):
        raise BudgetError(f"delta = {float(delta):.3g} is too small to calibrate to; ask for zCDP (rho) instead")
    goal = math.log(delta) + math.log1p(-1e-6)

    def above(rho: float, enough: float) -> float:
        return math.log(max(delta_of(parts_of(_digits(rho)), epsilon, enough), 1e-300)) - goal

    def ideal(rho: float) -> float:
        return math.log(max(float(normal_delta(math.sqrt(2 * rho), np.array(float(epsilon)))), 1e-300)) - goal

    # Continuous noise of any widths is one number of mu^2 = 2 rho; whole-numbered noise is close to it.
    trial = _crossing(ideal, 2.0**-80)
    best = _crossing(lambda rho: above(rho, math.inf), trial * 2.0**-40)
    slope = (ideal(trial * 1.001) - ideal(trial * 0.999)) / math.log(1.001 / 0.999)
    most = math.inf
    for _ in range(10):  # Newton's steps; halves where they lead out of what is left
        if min(trial, most) < best * (1 + 1e-4):
            break
        excess = above(trial, 0.0)
        best, most = (trial, most) if excess <= 0 else (best, trial)
        if -3e-4 < excess <= 0:
            break
        trial *= math.exp(-(excess + 1e-4) / slope)
        if not best < trial < most:
            trial = math.sqrt(best * most)
    return _digits(best)


def _crossing(above: Callable[[float], float], low: float) -> float:
    """The largest argument, within 1e-6, at which a rising function is not above 0; it is not at `low`."""
    high = 4 * low
    while above(high) <= 0:
        low, high = high, 4 * high
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if above(middle) <= 0 else (low, middle)
    return low


def _digits(rho: float) -> Fraction:
    return Fraction(f"{rho:.11e}")


def _square(part: Part) -> int:
    return max(part[1].l2_squared, 1)


@frozen(eq=False)
class _Cell:
    """The loss of a cell moved by 1, tilted by t: values, masses (sum 1), what was left out, log E exp(t L).

    nominal: its variance, about.
    """

    nominal: float
    tilt: float
    losses: FloatArray
    masses: FloatArray
    lost: float
    log_moment: float

    @classmethod
    def tilted(cls, variance: float, tilt: float) -> _Cell:
        reach = math.ceil(math.sqrt(2 * variance * _FAR)) + 1
        w = round(tilt) + np.arange(-reach, reach + 1, dtype=np.float64)
        squares = np.square(w - tilt)
        nearest = float(squares.min())  # the largest mass is 1, so that not all underflow
        masses = np.exp((nearest - squares) / (2 * variance))
        whole = math.fsum(masses)
        # beyond, |w - tilt| is at least reach + 1/2, and each mass at most exp(-(reach + 1/2) / variance) of the last
        far = reach + 0.5
        tails = 2 * math.exp((nearest - far**2) / (2 * variance)) / -math.expm1(-far / variance)
        log_moment = (tilt * (1 + tilt) - nearest) / (2 * variance) + math.log(whole) - log_normaliser(variance)
        return cls(1 / variance, tilt, (1 + 2 * w) / (2 * variance), masses / whole, tails / whole, log_moment)

    def on_grid(self, step: float) -> tuple[FloatArray, FloatArray, float]:
        """Numbers of points, masses on them (sum 1), log E exp(t L): each mass split over the two nearest points."""
        place = np.floor(self.losses / step)
        below = place * step - self.losses
        # the fraction of a step is known to so much
        unsure = 8 * _UNIT * float(np.abs(self.losses).max()) / step + 1e-12
        upper = np.clip(np.expm1(below) / math.expm1(-step) + unsure, 0.0, 1.0)
        # masses are split as they are and tilted where they come to lie
        lower = self.masses * (1 - upper) * np.exp(self.tilt * below)
        upper *= self.masses * np.exp(self.tilt * (below + step))
        masses = np.concatenate([lower, upper])
        whole = math.fsum(masses)
        return np.concatenate([place, place + 1]), masses / whole, self.log_moment + math.log(whole)


@lru_cache(maxsize=64)
def _convolved(parts: frozenset[tuple[Part, int]], epsilon: Fraction) -> float:
    """delta(epsilon) as in the module; 1 where it is out of reach."""
    cells: Counter[float] = Counter()
    wide: dict[Part, int] = {}
    for (variance, sensitivity), count in parts:
        if sensitivity.linf <= 1 and variance < _WIDE:
            # a little less noise than there is, so that a double holds it
            cells[math.nextafter(float(variance), 0.0)] += count * moved_cells(sensitivity)
        else:
            wide[variance, sensitivity] = count
    moved = cells.total()
    mu, price, factor = smoothed(wide) if wide else (0.0, 0.0, 1.0)
    if not 0 < moved <= _MAX_CELLS or len(cells) > _MAX_WIDTHS or not math.isfinite(mu):
        return 1.0
    rho = sum(count / variance for variance, count in cells.items()) / 2 + mu**2 / 2
    target = float(epsilon) - price
    tilt = max(0.0, (target - rho) / (2 * rho))
    if tilt > _MAX_TILT:
        return 1.0
    tilted = [(_Cell.tilted(variance, tilt), count) for variance, count in cells.items()]
    return _sum_delta(tilted, mu, target, tilt, rho, factor=factor)


def _sum_delta(
    pieces: Sequence[tuple[_Piece, int]],
    mu: float,
    target: float,
    tilt: float,
    rho: float,
    *,
    factor: float = 1.0,
    added: float = _MAX_ADDED_VARIANCE,
    fewest: int = _FEWEST_POINTS,
) -> float:
    """delta(target) of a sum of tilted losses, each so many times, and a normal number of shift mu, times a factor.

    Steps 1 to 4 of the module. rho: about half the variance of the whole sum. added: to that variance, relatively.
    fewest: points of the grid. 1 where it is out of reach.
    """
    moved = sum(count for _, count in pieces)
    nominal = sum(count * one.nominal for one, count in pieces)
    step = math.sqrt(4 * added * 2 * rho / moved)
    mean = sum(count * float(one.losses @ one.masses) for one, count in pieces)
    spread = sum(count * float(one.masses @ (one.losses - one.losses @ one.masses) ** 2) for one, count in pieces)
    half = _REACH * math.sqrt(max(spread, nominal)) + step
    points = max(1 << math.ceil(math.log2(2 * half / step + 4)), fewest)
    if points > _MAX_POINTS or tilt * step > 100:
        return 1.0
    step = 2 * half / (points - 4)
    first = math.floor((mean - half) / step)
    transform = np.ones(points // 2 + 1, dtype=np.complex128)
    # Chernoff's bound of what lies beyond the last point
    top = (first + points) * step - mean
    push = top / max(spread, nominal)
    log_beyond = -push * top
    lost = exponent = 0.0
    for one, count in pieces:
        place, masses, log_moment = one.on_grid(step)
        index = np.mod(place, points).astype(np.int64)
        transform *= _power(np.fft.rfft(np.bincount(index, masses, points)), count)
        pushed = push * (place * step - float(one.losses @ one.masses))
        if float(pushed.max()) > 600:
            return 1.0
        log_beyond += count * math.log(float(masses @ np.exp(pushed)) + _TINY)
        lost += count * one.lost
        exponent += count * log_moment
    sum_masses = np.maximum(np.fft.irfft(transform, points), 0.0)
    number = first + np.mod(np.arange(points) - first, points)
    weights, log_weight = _weights(number * step, target, tilt, mu)
    rounding = (moved + len(pieces) + 1) * 16 * math.log2(points) * _UNIT * math.sqrt(float(weights @ weights))
    lost += math.exp(min(log_beyond, 0.0)) + rounding + _TINY
    exponent += log_weight - tilt * target
    exponent += 1e-14 * (moved + tilt * (1 + tilt) * 2 * rho + tilt * abs(target))
    log_delta = exponent + math.log(float(sum_masses @ weights) + lost * ROUNDING) + math.log(factor * ROUNDING)
    return math.exp(min(0.0, max(log_delta, -650.0)))


# --- Planned choices beside Gaussian noise
#
# A choice of bounded range e is one whose log ratio lies in some [t - e, t] for each two neighbours (Durfee and Rogers
# 2019). For a given t its delta at epsilon is largest for two outcomes, (1 - exp(t - e)) (1 - exp(epsilon - t)) / (1 -
# exp(-e)), and over t largest at t = (e + epsilon) / 2, for epsilon in [-e, e]: (1 - exp((epsilon - e) / 2))^2 / (1 -
# exp(-e)). The second less the first derivative of it is the density of the losses of a pair that has just this delta,
# the *envelope*: exp((l - e) / 2) / (2 (1 - exp(-e))) under P, on [-e, e], and exp(-l) times that under Q. So the
# envelope dominates every such choice, whatever its t; that fixed response of loss e / 2 or -e / 2 does is false.


def planned_delta(choices: Mapping[Fraction, int], mu_squared: Fraction, epsilon: Fraction) -> float:
    """A delta(epsilon) of a normal number of shift mu together with the envelopes of choices; 1 where out of reach.

    choices: rho = e^2 / 8 of a choice of bounded range e, and how many are alike. mu_squared: positive.
    """
    return _planned_delta(frozenset(choices.items()), mu_squared, epsilon)


@lru_cache(maxsize=64)
def _planned_delta(choices: frozenset[tuple[Fraction, int]], mu_squared: Fraction, epsilon: Fraction) -> float:
    mu = math.sqrt(mu_squared) * (1 + 1e-14)
    if not choices:
        return float(normal_delta(mu, np.array(float(epsilon))))
    ranges = [(math.sqrt(8 * rho) * (1 + 1e-14), count) for rho, count in choices]
    rho = mu**2 / 2 + sum(count * reach**2 / 6 for reach, count in ranges)
    tilt = max(0.0, (float(epsilon) - rho) / (2 * rho))
    largest = max(reach for reach, _ in ranges)
    if len(ranges) > _MAX_WIDTHS or sum(count for _, count in ranges) > _MAX_CELLS or tilt > _MAX_TILT or largest > 20:
        return 1.0
    pieces = [(_Envelope.tilted(reach, tilt), count) for reach, count in ranges]
    return _sum_delta(pieces, mu, float(epsilon), tilt, rho, added=_ADDED_BY_CHOICES, fewest=_FEWEST_OF_CHOICES)


@frozen(eq=False)
class _Envelope:
    """The loss of one choice of bounded range `reach`, tilted by t; as `_Cell`, but its density is split exactly."""

    nominal: float
    tilt: float
    reach: float
    losses: FloatArray
    masses: FloatArray
    lost: float = 0.0

    @classmethod
    def tilted(cls, reach: float, tilt: float) -> _Envelope:
        losses = np.linspace(-reach, reach, 401)
        masses = np.exp((0.5 + tilt) * (losses - reach))
        return cls(reach**2 / 3, tilt, reach, losses, masses / masses.sum())

    def on_grid(self, step: float) -> tuple[FloatArray, FloatArray, float]:
        """Numbers of points, masses on them (sum 1), log E exp(t L).

        The density between two points a and b = a + step is split over them so that mass and mass * exp(-l) stay.
        """
        place = np.arange(math.floor(-self.reach / step), math.ceil(self.reach / step), dtype=np.float64)
        start = np.maximum(-self.reach - place * step, 0.0)
        end = np.clip(self.reach - place * step, start, step)
        # in units of the density at a, which is exp((a - reach) / 2) / (2 (1 - exp(-reach)))
        whole = 2 * np.exp(start / 2) * np.expm1((end - start) / 2)
        upper = 8 * np.sinh((start + end) / 4) * np.sinh((end - start) / 4) / -math.expm1(-step)
        upper = np.minimum(upper * (1 + 1e-12) + 1e-12 * whole, whole)
        place = np.concatenate([place, place + 1])
        at = np.concatenate([whole - upper, upper * math.exp(-step / 2)])  # in units of the density at their own point
        masses = at * np.exp((0.5 + self.tilt) * (place * step - self.reach))
        total = math.fsum(masses)
        log_moment = math.log(total / (-2 * math.expm1(-self.reach))) + self.tilt * self.reach
        return place, masses / total, log_moment


_Piece: TypeAlias = _Cell | _Envelope


def _weights(losses: FloatArray, epsilon: float, tilt: float, mu: float) -> tuple[FloatArray, float]:
    """(w, log of what w was divided by): what a loss adds to delta, tilted back; within [0, 1]."""
    left = epsilon - losses
    if mu == 0:
        above = np.minimum(left, 0.0)
        return -np.expm1(above) * np.exp(tilt * above), 0.0
    # delta of the normal number at e is at most exp(-t e) times its moment: (1 - exp(e - l))_+ <= exp(t (l - e))
    log_moment = tilt * (1 + tilt) * mu**2 / 2
    with np.errstate(divide="ignore"):
        logs = np.log(normal_delta(mu, left)) + tilt * left - log_moment
    return np.exp(np.minimum(logs, 0.0)), log_moment


def _power(values: Any, times: int) -> Any:
    """A complex array to the power `times` >= 1, by squaring: its relative error is `times` that of the values."""
    power = None
    while True:
        if times & 1:
            power = values if power is None else power * values
        times >>= 1
        if not times:
            return power
        values = values * values
