"""Gaussian noise: the discrete and the continuous distribution, and exact (epsilon, delta)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
from scipy import special

from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import concentrated_exponent
from dpgm_core.privacy.gdp import DRAWN_APART
from dpgm_core.privacy.samplers import VARIANCE_LIMIT, bounded_variance
from dpgm_core.privacy.sensitivity import Sensitivity

__all__ = [
    "Part",
    "ROUNDING",
    "analytic_delta",
    "concentrated_delta",
    "discrete_delta",
    "discrete_variance",
    "gaussian_mu_squared",
    "gaussian_variance",
    "least_variance",
    "log_normaliser",
    "moved_cells",
    "normal_delta",
    "priced_delta",
    "smoothed",
    "smoothed_delta",
]

# Continuous noise of unequal widths is one number: cells shifted by s_i under noise of variance v_i are as easy to tell
# apart as one standard normal number shifted by mu, mu^2 = sum s_i^2 / v_i (rotate), and delta is Balle and Wang's.
#
# Discrete noise comes close, for every whole-numbered shift and any widths (Peikert 2010, An Efficient and Parallel
# Gaussian Sampler for Lattices, Theorem 3.1, has the idea). Let D_c be the discrete Gaussian of parameter v around a
# whole number c, and 0 < t < v.
#
# Claim. Draw x from the normal distribution of mean c and variance v - t, then a whole number y with probability
# proportional to exp(-(y - x)^2 / (2 t)), and let q be the distribution of y. Then (1 - h) / (1 + h) <= D_c(y) / q(y)
# <= 1 + h for every y, where h = 2 sum over j >= 1 of exp(-2 pi^2 t j^2).
#
# Proof. By Poisson summation the normaliser of the second draw is sqrt(2 pi t) (1 + 2 sum_j exp(-2 pi^2 t j^2) cos(2
# pi j x)), within sqrt(2 pi t) (1 +- h). Without those brackets the integral over x is the normal density of mean c
# and variance v at y, so q is it over something within 1 +- h. D_c is it too, over the sum of that density over the
# whole numbers, which is at least 1 and at most 1 + h, as t < v.
#
# So with k shifted cells the two discrete distributions P, Q are within those factors, to the power k, of ones that are
# drawn from continuous ones of variances v_i - t. Drawing does not help to tell apart, hence
#
#     E_P (1 - exp(epsilon) Q/P)_+  <=  (1 + h)^k delta(epsilon - k log((1 + h)^2 / (1 - h))),
#
# delta being that of mu^2 = sum s_i^2 / (v_i - t).

#: Tables with one noise: its sigma^2, and what one person can change in them.
Part = tuple[Fraction, Sensitivity]

#: Results are rounded up by it; relative errors of all sums here and of truncated noise are below 1e-10.
ROUNDING = 1 + 1e-9
# Smallest delta that is computed, so that none underflows.
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
    """Return the delta of a standard normal number shifted by mu > 0, at epsilons of any sign and shape; rounded up."""
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


# --------------------------------------------------------------------------------------------------
# Discrete noise, shift by shift
#
# P(z) is proportional to exp(-z^2 / (2 sigma^2)) on the whole numbers, independent for each cell. Two neighbouring data
# sets shift the counts by an integer vector s. The privacy loss of the output n + z is
#
#     L(z) = log P(z) / P(z - s) = (|s|^2 + 2 W) / (2 sigma^2),      W = -s.z  (symmetric),
#
# and the mechanism is (epsilon, delta)-DP iff delta >= E (1 - exp(epsilon - L))_+ for every admissible s. Everything
# here is a function of public numbers, and every delta is an upper bound: truncated masses and rounding are added.
#
# Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, arXiv 2004.00010 (CKS);
# Balle and Wang (2018), Improving the Gaussian Mechanism, ICML (the continuous one).

# Sums here have positive terms, exponents below 1e4 and fewer than 2^20 operations: relative errors below 1e-10.
# The mass left out is below exp(-60) of the first that counts.
_NEGLIGIBLE_EXPONENT = 60.0
# No delta below exp(-650) is computed, so that no sum underflows.
_MAX_EXPONENT = 650.0
# Largest k sigma^2 of a sum term by term, and reach of one that is convolved.
_WIDE, _MAX_CONVOLVED_REACH = 1 << 30, 1 << 12
# A variance from which on the discrete Gaussian's sums and the continuous one's integrals are equal in doubles.
_SMOOTH_VARIANCE = 8.0
# Shifts that are compared, cells that they move, and how much is convolved: less than a tenth of a second.
_MAX_SHIFTS, _MAX_SHIFTED_CELLS, _MAX_SHIFTED_WORK = 32, 64, 1 << 21
# Cells for which k-th powers keep ten digits.
_MAX_CELLS = 10**6


def log_normaliser(variance: float) -> float:
    """Return the log of the sum over all whole numbers z of exp(-z^2 / (2 sigma^2)).

    Parameters
    ----------
    variance : float
        sigma^2, in records**2.

    Examples
    --------
    >>> round(log_normaliser(100.0), 6), round(math.log(math.sqrt(2 * math.pi * 100)), 6)
    (3.221524, 3.221524)
    """
    if variance > _SMOOTH_VARIANCE:  # by Poisson summation the rest is below 2 exp(-2 pi^2 sigma^2) < 1e-68
        return math.log(2 * math.pi * variance) / 2
    return math.log1p(2 * float(np.sum(_few_masses(variance))))


def discrete_variance(variance: float) -> float:
    """Return the variance of the discrete Gaussian with parameter sigma^2: below it, and equal from sigma of a few on.

    Parameters
    ----------
    variance : float
        sigma^2, in records**2.

    Examples
    --------
    >>> round(discrete_variance(0.09), 6), discrete_variance(428.0)
    (0.007673, 428.0)
    """
    if variance > _SMOOTH_VARIANCE:
        return variance
    mass = _few_masses(variance)
    return float(2 * np.sum(_FIRST_NUMBERS**2 * mass) / (1 + 2 * np.sum(mass)))


def _few_masses(variance: float) -> FloatArray:
    """Return the masses of the first whole numbers over that of 0; those too small for a float are 0.

    With `np.seterr(all="raise")` an underflow here would end the run after the charge.
    """
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-(_FIRST_NUMBERS**2) / (2 * variance)))


def discrete_mass(values: FloatArray, variance: float) -> FloatArray:
    """Return the probability of whole numbers under one cell's discrete Gaussian; any shape."""
    return np.asarray(np.exp(-np.square(values) / (2 * variance) - log_normaliser(variance)))


def unit_shift_delta(variance: Fraction, cells: int, epsilon: Fraction) -> float:
    """Return the exact delta(epsilon) of a shift by 1 in `cells` cells, rounded up; the worst shift when Linf = 1.

    With k cells and s = (1, ..., 1), W is the sum of k independent discrete Gaussians and, all terms positive,

        delta = sum over w > w0 of P(W = w) (1 - exp((w0 - w) / sigma^2)),      w0 = epsilon sigma^2 - k / 2.

    Shifting fewer cells is a function of shifting more (forget a cell), so delta cannot grow by it, and signs do not
    matter: the noise is symmetric. P(W = w) is convolved where sigma is small; else it is bounded by
    P(W = 0) exp(-w^2 / (2 k sigma^2)), which then agrees with it to 1e-9 (see _peak). Takes about 10 sqrt(k) sigma
    terms.
    """
    sigma2 = float(variance)
    w0 = epsilon * variance - Fraction(cells, 2)
    # P(|W| > reach) <= 2 exp(-reach^2 / (2 k sigma^2)): E exp(t Z) <= exp(t^2 sigma^2 / 2), because a Gaussian sum over
    # the whole numbers is largest where it is centred on one. 2 k times that bounds what all partial sums leave out.
    reach = _reach(float(w0), cells * sigma2, cells)
    if reach is None:
        return math.exp(-_MAX_EXPONENT)
    beyond = math.exp(-min(_exponent(float(w0), cells * sigma2) + _NEGLIGIBLE_EXPONENT, _MAX_EXPONENT))
    first = max(math.floor(w0) + 1, -reach)
    w = np.arange(first, reach + 1, dtype=np.float64)
    peak = _peak(sigma2, cells)
    if abs(peak - 1) > 1e-9 and reach < _MAX_CONVOLVED_REACH:
        mass = _sum_mass(discrete_mass(np.arange(-reach, reach + 1.0), sigma2), cells)[first + reach :]
    else:
        mass = np.exp(-np.square(w) / (2 * cells * sigma2)) * (peak / math.sqrt(2 * math.pi * cells * sigma2))
    gain = -np.expm1(-(float(first - w0) + (w - first)) / sigma2)
    return min(1.0, float(np.sum(mass * gain)) * ROUNDING + beyond)


def worst_shift_delta(variance: Fraction, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """The exact delta(epsilon) of the worst admissible shift, rounded up; 1 where there are too many or noise is wide.

    Moving a cell further never tells less: for each of the other cells' values the best test of one cell is a
    threshold, whose other error falls. So the shifts count to which nothing can be added. W = s.z is summed as in
    `unit_shift_delta`, with S = |s|^2 for the number of cells.
    """
    if moved_cells(sensitivity) > _MAX_SHIFTED_CELLS:
        return 1.0
    shifts = list(islice(_widest_shifts(sensitivity), _MAX_SHIFTS + 1))
    sigma2, square = float(variance), max(sensitivity.l2_squared, 1)
    reach = _reach(float(epsilon * variance) - square / 2, square * sigma2, sensitivity.l1)
    if len(shifts) > _MAX_SHIFTS or reach is None or len(shifts) * reach**2 > _MAX_SHIFTED_WORK:
        return 1.0
    return max(_shifted_delta(variance, Counter(shift), epsilon) for shift in shifts)


def _widest_shifts(sensitivity: Sensitivity, shift: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the admissible shifts of falling numbers to which no cell can be added; among them the ones that count."""
    left = sensitivity.l1 - sum(shift), sensitivity.l2_squared - sum(one**2 for one in shift)
    most = min(shift[-1] if shift else sensitivity.linf, left[0], math.isqrt(left[1]))
    if most < 1 or len(shift) == sensitivity.l0:
        yield shift or (1,)
        return
    least = most if len(shift) + 1 == sensitivity.l0 else 1
    for one in range(most, least - 1, -1):
        yield from _widest_shifts(sensitivity, (*shift, one))


def _shifted_delta(variance: Fraction, shift: Mapping[int, int], epsilon: Fraction) -> float:
    """Return the exact delta(epsilon), rounded up; shift: by how much cells are moved, and how many so."""
    sigma2, square = float(variance), sum(one**2 * count for one, count in shift.items())
    w0 = epsilon * variance - Fraction(square, 2)
    cells = sum(shift.values())
    reach = _reach(float(w0), square * sigma2, cells)
    if reach is None:
        return math.exp(-_MAX_EXPONENT)
    mass: FloatArray | None = None
    for one, count in shift.items():
        strided = np.zeros(2 * reach + 1)
        most = reach // one
        strided[reach - most * one :: one][: 2 * most + 1] = discrete_mass(np.arange(-most, most + 1.0), sigma2)
        power = _sum_mass(strided, count)
        mass = power if mass is None else np.convolve(mass, power)[reach:-reach]
    assert mass is not None
    first = max(math.floor(w0) + 1, -reach)
    w = np.arange(first, reach + 1, dtype=np.float64)
    gain = -np.expm1(-(float(first - w0) + (w - first)) / sigma2)
    beyond = math.exp(-min(_exponent(float(w0), square * sigma2) + _NEGLIGIBLE_EXPONENT, _MAX_EXPONENT))
    return min(1.0, float(np.sum(mass[first + reach :] * gain)) * ROUNDING + beyond)


def concentrated_delta(rho: Fraction, epsilon: Fraction) -> float:
    """A delta at which every rho-zCDP mechanism is (epsilon, delta)-DP; valid for every shift.

    The least over all orders, as in `dpgm_core.privacy.budget`; discrete Gaussian noise is rho-zCDP with
    rho = L2^2 / (2 sigma^2). Source: CKS, Theorem 14 and Corollary 13.
    """
    curve, target = float(rho), float(epsilon)
    # The log is convex in alpha; its derivative (2 alpha - 1) rho - epsilon + log(1 - 1/alpha) rises through 0.
    low, high = 0.0, (target + 1) / curve + 2  # bounds of alpha - 1
    for _ in range(200):
        middle = (low + high) / 2
        if (2 * middle + 1) * curve - target + math.log(middle / (middle + 1)) < 0:
            low = middle
        else:
            high = middle
    # alpha - 1: any value gives a valid bound, so that only what it gives is computed exactly
    log_delta = concentrated_exponent(rho, epsilon, high)
    return min(1.0, math.exp(min(0.0, max(log_delta, -_MAX_EXPONENT))) * ROUNDING)


def discrete_delta(variance: Fraction, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """Return a sound delta(epsilon) of discrete Gaussian noise over every admissible whole-numbered shift.

    Parameters
    ----------
    variance : Fraction
        sigma^2, in records**2.
    sensitivity : Sensitivity
        What one person can change.
    epsilon : Fraction
        Nats.

    Notes
    -----
    The exact one where no cell moves by more than 1 (`unit_shift_delta`), and where few shifts are admissible and noise
    is narrow (`worst_shift_delta`); else, and for very wide noise, the least of `priced_delta`, `smoothed_delta` and
    `concentrated_delta`.

    Examples
    --------
    >>> pair = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    >>> discrete_delta(Fraction(50), pair, Fraction(1)) < concentrated_delta(Fraction(2, 100), Fraction(1))
    True
    """
    rho = Fraction(max(sensitivity.l2_squared, 1)) / (2 * variance)
    alone = {(variance, sensitivity): 1}
    general = min(concentrated_delta(rho, epsilon), smoothed_delta(alone, epsilon), priced_delta(alone, epsilon))
    if sensitivity.linf > 1:
        return min(general, worst_shift_delta(variance, sensitivity, epsilon))
    cells = moved_cells(sensitivity)
    if cells > _MAX_CELLS or cells * variance > _WIDE:
        return general
    return min(general, unit_shift_delta(variance, cells, epsilon))


def least_variance(
    delta_of: Callable[[Fraction, Sensitivity, Fraction], float],
    sensitivity: Sensitivity,
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """Return the smallest variance parameter, within 1e-9, whose delta is within a budget.

    Parameters
    ----------
    delta_of : callable
        The delta of (variance, sensitivity, epsilon), such as `discrete_delta` or `analytic_delta`.
    sensitivity : Sensitivity
        What one person can change.
    epsilon, delta : Fraction
        The budget.

    Returns
    -------
    Fraction
        sigma^2, records**2, which was checked itself.

    Raises
    ------
    BudgetError
        When noise would be wider than 64-bit counts allow, or delta is below 1e-200.

    Notes
    -----
    Bisection between fractions that can be drawn. Below sigma of about 1 record more noise can mean a larger delta at a
    fixed epsilon; then the result is one of the crossings.

    Examples
    --------
    >>> pair = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    >>> float(least_variance(discrete_delta, pair, Fraction(1), Fraction(1, 10**6)))
    35.72...
    """
    if delta < Fraction(1, 10**200):
        raise BudgetError(f"delta = {float(delta):.3g} is too small to calibrate to; state a larger one")

    def private(variance: Fraction) -> bool:
        # a little below, so that a machine with other last digits finds it private too when it reads the file
        return Fraction(delta_of(variance, sensitivity, epsilon)) <= delta * (1 - Fraction(1, 10**12))

    low, high = Fraction(1, 1 << 29), Fraction(1, 1 << 29)
    while not private(high):
        low, high = high, 4 * high
        if high > VARIANCE_LIMIT:
            raise BudgetError(
                f"(epsilon, delta) = ({float(epsilon):.3g}, {float(delta):.3g}) at L2 sensitivity "
                f"{sensitivity.l2:.6g} needs Gaussian noise wider than 2**29 records, too wide for 64-bit counts; "
                "use a larger budget, fewer cliques or fewer rows per person"
            )
    while high > low * Fraction(1 + 1e-9):
        middle = bounded_variance(Fraction(math.sqrt(float(low) * float(high))))
        if not low < middle < high:
            break
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


# Beyond, exp(-z^2 / (2 sigma^2)) underflows.
_FIRST_NUMBERS = np.arange(1.0, math.ceil(math.sqrt(2 * _SMOOTH_VARIANCE * 750)))


def _peak(sigma2: float, cells: int) -> float:
    """sqrt(2 pi k sigma^2) P(W = 0): how far the sum W of k discrete Gaussians is from one of variance k sigma^2.

    The z with sum w are w / k (1, ..., 1) plus a coset of the lattice A_{k-1} = {z: sum 0}, orthogonal to it:
    P(W = w) = exp(-w^2 / (2 k sigma^2)) T(coset). A Gaussian sum over cosets is largest on the lattice itself (its
    Poisson dual has positive terms), so P(W = w) <= P(W = 0) exp(-w^2 / (2 k sigma^2)). By the same dual this number
    is a sum over A*_{k-1} that falls to 1 as sigma grows, times at most 1, so that of sigma^2 = 8 serves all above.
    P(W = 0) is at most the mean of E exp(i t Z)^k over any grid of t: that mean is the sum of P(W = jM) over j.
    """
    return _peak_below(min(sigma2, _SMOOTH_VARIANCE), cells)


@lru_cache(maxsize=256)
def _peak_below(sigma2: float, cells: int) -> float:
    points = 2 * math.ceil(math.sqrt(2 * cells * sigma2 * _NEGLIGIBLE_EXPONENT)) + 2
    reach = math.ceil(math.sqrt(2 * sigma2 * _NEGLIGIBLE_EXPONENT)) + 1
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    waves = np.cos(2 * math.pi / points * np.outer(np.arange(points), z))
    characteristic = np.maximum(waves @ discrete_mass(z, sigma2), 0.0)
    return math.sqrt(2 * math.pi * cells * sigma2) * float(np.mean(characteristic**cells))


def _exponent(w0: float, spread: float) -> float:
    """Minus the logarithm of what lies beyond w0, about; spread: sigma^2 of W."""
    return max(w0, 0.0) ** 2 / (2 * spread)


def _reach(w0: float, spread: float, cells: int) -> int | None:
    """Return how far W is summed, so that what all partial sums leave out is negligible; None where all of it is."""
    exponent = _exponent(w0, spread)
    if exponent > _MAX_EXPONENT:
        return None
    return math.ceil(math.sqrt(2 * spread * (exponent + _NEGLIGIBLE_EXPONENT + math.log(4 * max(cells, 1))))) + 1


def _sum_mass(power: FloatArray, cells: int) -> FloatArray:
    """P(W = w), W the sum of `cells` numbers of these masses, as centred; partial sums beyond them are dropped."""
    reach = len(power) // 2
    total: FloatArray | None = None
    while True:
        if cells & 1:
            total = power if total is None else np.convolve(total, power)[reach:-reach]
        cells >>= 1
        if not cells:
            return np.asarray(total)
        power = np.convolve(power, power)[reach:-reach]


# --------------------------------------------------------------------------------------------------
# The price of discrete noise in squared signal-to-noise ratios
#
# A pair of distributions P, Q is mu-GDP if Phi^-1(P(A)) - Phi^-1(Q(A)) <= mu for every event A, and with P and Q
# swapped (Dong, Roth, Su 2022, Gaussian Differential Privacy); then its delta(epsilon) is at most that of a normal
# number that is shifted by mu, at every epsilon. The price of continuous noise, mu^2 = L2^2 / sigma^2, is false for
# discrete noise: at sigma^2 = 1 and epsilon = 0 the two are .3829 and .3989.
#
# Claim. Let W be whole-numbered, symmetric and log-concave, T(t) = P(W >= t), z(t) = -Phi^-1(T(t)), and mu_1 the
# largest z(t + 1) - z(t). A person who moves cells by whole numbers s_j under independent W_j is mu-GDP, mu^2 = mu_1^2
# sum s_j^2.
#
# Proof. W + s against W has a monotone likelihood ratio, so by Neyman and Pearson the best tests are W + s >= t;
# randomised ones are chords of these, and the Gaussian's curve is concave. Such a test has values of Phi^-1 apart by
# z(t) - z(t - s), a sum of |s| spacings. Independent pairs that are mu_j-GDP are together mu-GDP, mu^2 = sum mu_j^2.
#
# Discrete Gaussian noise costs L2^2 / (sigma^2 - 1/11) for 1/4 <= sigma^2 < 10^5, certified for each sigma^2: z(1),
# ..., z(R + 1) are computed, R = ceil(14 sigma), z(0) = -z(1), and the largest spacing has to be below 1 / sqrt(sigma^2
# - 1/11) by 1e-9, where doubles are off by less than 5e-10. Beyond R the masses are replaced by a geometric tail of
# ratio r = T(R + 1) / T(R), which keeps T up to R + 1: r is a mean of falling ratios of masses, so the distribution
# stays log-concave, and the later spacings fall: d/dT of Phi^-1(T) - Phi^-1(r T) is (1 / T) (T / phi(z(T)) - r T /
# phi(z(r T))) >= 0, as Mills' ratio falls. That moves each cell's distribution by at most 2 T(R) < 1e-43 in total
# variation.
#
# From 10^5 on it costs L2^2 / (sigma^2 - 4): what is drawn from continuous noise of variance sigma^2 - t by the claim
# above `Part` is within 2 h of it, h = 2 exp(-2 pi^2 t) < 1.1e-34 at t = 4, and drawing does not help to tell apart.
#
# So where one person moves at most C cells in all, delta is at most that of mu plus (1 + e^epsilon) C `DRAWN_APART`
# (`dpgm_core.privacy.gdp`).

_SMALL_LOSS, _WIDE_LOSS, _WIDE_VARIANCE, _LEAST_PRICED = Fraction(1, 11), 4, 10**5, Fraction(1, 4)


def gaussian_mu_squared(variance: Fraction, l2_squared: int) -> Fraction:
    """Return the exact price of discrete Gaussian noise: mu^2 of what one person changes.

    Parameters
    ----------
    variance : Fraction
        The variance parameter sigma^2, in records**2.
    l2_squared : int
        The squared L2 norm of what one person can change.

    Raises
    ------
    BudgetError
        For a variance parameter below 1/4, which has no price.

    Notes
    -----
    L2^2 / (sigma^2 - 1/11), certified for each sigma^2, and L2^2 / (sigma^2 - 4) from 10^5 on; docs/proofs.md has the
    claim.

    Examples
    --------
    >>> gaussian_mu_squared(Fraction(12, 11), 3)
    Fraction(3, 1)
    """
    if variance >= _WIDE_VARIANCE:
        return Fraction(l2_squared) / (variance - _WIDE_LOSS)
    if variance < _LEAST_PRICED or not _has_price(variance):
        raise BudgetError(
            f"Gaussian noise with sigma^2 = {float(variance):.4g} is too narrow for the exact curve; spend less on it"
        )
    return Fraction(l2_squared) / (variance - _SMALL_LOSS)


def gaussian_variance(mu_squared: Fraction, l2_squared: int) -> Fraction:
    """Return the least variance parameter that can be drawn and costs at most mu^2, rounded up.

    Parameters
    ----------
    mu_squared : Fraction
        The square of mu.
    l2_squared : int
        The squared L2 norm of what one person can change, at least 1.

    Returns
    -------
    Fraction
        sigma^2, in records**2, at least 1/4.

    Examples
    --------
    >>> gaussian_mu_squared(gaussian_variance(Fraction(1, 7), 2), 2) <= Fraction(1, 7)
    True
    """
    continuous = Fraction(l2_squared) / mu_squared
    variance = bounded_variance(max(continuous + _SMALL_LOSS, _LEAST_PRICED))
    if variance >= _WIDE_VARIANCE:
        variance = bounded_variance(max(continuous + _WIDE_LOSS, Fraction(_WIDE_VARIANCE)))
    return variance


def priced_delta(parts: Mapping[Part, int], epsilon: Fraction) -> float:
    """A delta(epsilon) of discrete Gaussian noises together, over every whole-numbered shift; 1 where one has no price.

    parts: and how often each; at least one. That of their mu, and what drawn noise differs from what it is priced for.
    """
    square, moved = Fraction(0), 0
    for (variance, sensitivity), count in parts.items():
        try:
            square += count * gaussian_mu_squared(variance, max(sensitivity.l2_squared, 1))
        except BudgetError:
            return 1.0
        moved += count * moved_cells(sensitivity)
    apart = moved * (1 + math.exp(min(float(epsilon), 100.0))) * DRAWN_APART
    mu = math.sqrt(square) * (1 + 1e-14)
    return min(1.0, float(normal_delta(mu, np.array(float(epsilon)))) + apart * ROUNDING + _MIN_DELTA)


@lru_cache(maxsize=1024)
def _has_price(variance: Fraction) -> bool:
    """Whether the certificate holds: the largest spacing is below 1 / sqrt(variance - 1/11)."""
    return largest_spacing(float(variance)) <= (1 - 1e-9) / math.sqrt(variance - _SMALL_LOSS)


def largest_spacing(variance: float) -> float:
    """Return mu_1 of a discrete Gaussian up to 14 sigma, by one sum from the tail."""
    sigma = math.sqrt(variance)
    reach = math.ceil(14 * sigma)
    numbers = np.arange(0.0, reach + math.ceil(8 * sigma) + 40)
    with np.errstate(under="ignore"):
        tails = np.cumsum(np.exp(-np.square(numbers) / (2 * variance))[::-1])[::-1]
    z = -special.ndtri_exp(np.log(tails[1 : reach + 2]) - math.log(2 * tails[0] - 1))
    return float(np.diff(np.concatenate([[-z[0]], z])).max())
