"""The privacy of Gaussian noise on integer counts: sound (epsilon, delta) of the discrete one, and of the textbook one.

P(z) is proportional to exp(-z^2 / (2 sigma^2)) on the whole numbers, independent for each cell. Two neighbouring data
sets shift the counts by an integer vector s. The privacy loss of the output n + z is

    L(z) = log P(z) / P(z - s) = (|s|^2 + 2 W) / (2 sigma^2),      W = -s.z  (symmetric),

and the mechanism is (epsilon, delta)-DP iff delta >= E (1 - exp(epsilon - L))_+ for every admissible s. Everything
here is a function of public numbers, and every delta is an upper bound: truncated masses and rounding are added.

Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, arXiv 2004.00010 (CKS);
Balle and Wang (2018), Improving the Gaussian Mechanism, ICML (the continuous one).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from dpgm_core.errors import BudgetError
from dpgm_core.privacy import Sensitivity
from dpgm_core.sampling import VARIANCE_LIMIT, bounded_variance

if TYPE_CHECKING:
    from dpgm_core.tables import FloatArray

__all__ = [
    "analytic_delta",
    "concentrated_delta",
    "discrete_delta",
    "discrete_mass",
    "discrete_variance",
    "least_variance",
    "log_normaliser",
    "unit_shift_delta",
]

# Relative errors of all sums here are below 1e-10: positive terms, exponents below 1e4, fewer than 2^20 operations.
_ROUNDING = 1 + 1e-9
# The mass left out is below exp(-60) of the first that counts.
_NEGLIGIBLE = 60.0
# No delta below exp(-650) is told from it, so that no sum underflows.
_LARGEST = 650.0
# Terms of a sum, and of one that is convolved.
_TERMS, _CONVOLVED = 1 << 18, 1 << 12
# A variance from which on the discrete Gaussian's sums and the continuous one's integrals are equal in doubles.
_SMOOTH = 8.0
# Cells for which k-th powers keep ten digits.
_MOST_CELLS = 10**6


def log_normaliser(variance: float) -> float:
    """log of the sum over all whole numbers z of exp(-z^2 / (2 sigma^2)); variance: sigma^2, records**2.

    >>> round(log_normaliser(100.0) - math.log(math.sqrt(2 * math.pi * 100)), 12)
    0.0
    """
    if variance > _SMOOTH:  # by Poisson summation the rest is below 2 exp(-2 pi^2 sigma^2) < 1e-68
        return math.log(2 * math.pi * variance) / 2
    return math.log1p(2 * float(np.sum(np.exp(-(_FEW**2) / (2 * variance)))))


def discrete_variance(variance: float) -> float:
    """The variance of the discrete Gaussian with parameter sigma^2: below it, and equal from sigma of a few on.

    >>> round(discrete_variance(0.09), 6), discrete_variance(428.0)
    (0.007673, 428.0)
    """
    if variance > _SMOOTH:
        return variance
    mass = np.exp(-(_FEW**2) / (2 * variance))
    return float(2 * np.sum(_FEW**2 * mass) / (1 + 2 * np.sum(mass)))


def discrete_mass(values: FloatArray, variance: float) -> FloatArray:
    """The probability of whole numbers under one cell's discrete Gaussian; any shape.

    >>> round(float(discrete_mass(np.arange(-30.0, 31.0), 4.0).sum()), 12)
    1.0
    """
    return np.asarray(np.exp(-np.square(values) / (2 * variance) - log_normaliser(variance)))


def unit_shift_delta(variance: Fraction, cells: int, epsilon: Fraction) -> float:
    """The exact delta(epsilon) of a shift by 1 in `cells` cells, rounded up; the worst shift when Linf = 1.

    With k cells and s = (1, ..., 1), W is the sum of k independent discrete Gaussians and, all terms positive,

        delta = sum over w > w0 of P(W = w) (1 - exp((w0 - w) / sigma^2)),      w0 = epsilon sigma^2 - k / 2.

    Shifting fewer cells is a function of shifting more (forget a cell), so delta cannot grow by it, and signs do not
    matter: the noise is symmetric. P(W = w) is convolved where sigma is small; else it is bounded by
    P(W = 0) exp(-w^2 / (2 k sigma^2)), which then agrees with it to 1e-9 (see _peak). Very wide noise is summed in
    blocks, each bounded by its largest terms: below 0.1 % more.

    >>> unit_shift_delta(Fraction(429), 24, Fraction(1)) < 1e-6 < unit_shift_delta(Fraction(428), 24, Fraction(1))
    True
    """
    sigma2 = float(variance)
    w0 = epsilon * variance - Fraction(cells, 2)
    # P(|W| > reach) <= 2 exp(-reach^2 / (2 k sigma^2)), the sum being sub-Gaussian (CKS, Corollary 17); twice k times
    # that bounds the mass beyond of all partial sums together.
    exponent = max(float(w0), 0.0) ** 2 / (2 * cells * sigma2)
    if exponent > _LARGEST:
        return math.exp(-_LARGEST)
    beyond = math.exp(-min(exponent + _NEGLIGIBLE, _LARGEST))
    reach = math.ceil(math.sqrt(2 * cells * sigma2 * (exponent + _NEGLIGIBLE + math.log(4 * cells)))) + 1
    first = max(math.floor(w0) + 1, -reach)
    peak = _peak(sigma2, cells)
    if abs(peak - 1) > 1e-9 and reach < _CONVOLVED:
        w = np.arange(first, reach + 1, dtype=np.float64)
        mass = _sum_mass(sigma2, cells, reach)[first + reach :]
        block, last = 1, w
    else:
        block = -(-(reach + 1 - first) // _TERMS)
        w = np.arange(first, reach + 1, block, dtype=np.float64)
        last = w + (block - 1)
        nearest = np.clip(0.0, w, last)  # where P(W = w) is largest in the block
        mass = np.exp(-(nearest**2) / (2 * cells * sigma2)) * (peak / math.sqrt(2 * math.pi * cells * sigma2))
    gain = -np.expm1(-(float(first - w0) + last - first) / sigma2)
    return min(1.0, block * float(np.sum(mass * gain)) * _ROUNDING + beyond)


def concentrated_delta(rho: Fraction, epsilon: Fraction) -> float:
    """A delta at which every rho-zCDP mechanism is (epsilon, delta)-DP; valid for every shift.

    min over alpha > 1 of exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha; discrete Gaussian
    noise is rho-zCDP with rho = L2^2 / (2 sigma^2). Source: CKS, Theorem 14 and Corollary 13.

    >>> f"{concentrated_delta(Fraction(1, 50), Fraction(1)):.2e}"
    '8.83e-08'
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
    a = high  # alpha - 1; any value gives a valid bound
    log_delta = a * ((a + 1) * curve - target) - math.log(a) - (a + 1) * math.log1p(1 / a)
    return min(1.0, math.exp(min(0.0, log_delta)) * _ROUNDING)


def discrete_delta(variance: Fraction, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """A sound delta(epsilon) of discrete Gaussian noise over every admissible integer shift.

    The exact one (`unit_shift_delta`) when no cell moves by more than 1 (and at most 10^6 cells move), else that of
    its zCDP bound.

    >>> pair = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    >>> discrete_delta(Fraction(50), pair, Fraction(1)) < concentrated_delta(Fraction(2, 100), Fraction(1))
    True
    """
    general = concentrated_delta(Fraction(max(sensitivity.l2_squared, 1)) / (2 * variance), epsilon)
    cells = max(1, min(sensitivity.l0, sensitivity.l1, sensitivity.l2_squared))
    if sensitivity.linf > 1 or cells > _MOST_CELLS:
        return general
    return min(general, unit_shift_delta(variance, cells, epsilon))


def analytic_delta(variance: Fraction, sensitivity: Sensitivity, epsilon: Fraction) -> float:
    """The exact delta(epsilon) of continuous Gaussian noise at L2 sensitivity D; for textbook noise only.

    Phi(D / (2 sigma) - epsilon sigma / D) - e^epsilon Phi(-D / (2 sigma) - epsilon sigma / D): Balle and Wang (2018),
    Theorem 8. Discrete noise of small sigma has a larger delta.

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> round(analytic_delta(Fraction(1), one, Fraction(1)), 6)
    0.126937
    """
    ratio = math.sqrt(max(sensitivity.l2_squared, 1) / variance)  # D / sigma
    near, far = float(epsilon) / ratio - ratio / 2, float(epsilon) / ratio + ratio / 2
    # e^epsilon Phi(-far) = exp(-near^2 / 2) Phi(-far) / exp(-far^2 / 2), with erfcx for the quotient
    scaled = [special.erfcx(x / math.sqrt(2)) / 2 for x in (near, far)] if near > -5 else None
    if scaled is not None:
        return min(1.0, math.exp(-(near**2) / 2) * float(scaled[0] - scaled[1]) * _ROUNDING)
    return float(special.ndtr(-near) - math.exp(-(near**2) / 2) * special.erfcx(far / math.sqrt(2)) / 2)


def least_variance(
    delta_of: Callable[[Fraction, Sensitivity, Fraction], float],
    sensitivity: Sensitivity,
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """The smallest variance parameter, within 1e-9, with delta_of(variance, sensitivity, epsilon) <= delta.

    Bisection between fractions that can be drawn; the one returned was checked itself. (Below sigma of about 1 record
    more noise can mean a larger delta at a fixed epsilon; then it is one of the crossings.) Raises BudgetError when
    noise would be wider than 64-bit counts allow, or delta is below 1e-200.

    >>> pair = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)
    >>> float(least_variance(discrete_delta, pair, Fraction(1), Fraction(1, 10**6)))
    35.72...
    """
    if delta < Fraction(1, 10**200):
        raise BudgetError(f"delta = {float(delta):.3g} is too small to calibrate to; ask for zCDP (rho) instead")

    def private(variance: Fraction) -> bool:
        return Fraction(delta_of(variance, sensitivity, epsilon)) <= delta

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


_FEW = np.arange(1.0, 2 * math.ceil(math.sqrt(2 * _SMOOTH * 750)))  # beyond, exp(-z^2 / (2 sigma^2)) underflows


def _peak(sigma2: float, cells: int) -> float:
    """sqrt(2 pi k sigma^2) P(W = 0): how far the sum W of k discrete Gaussians is from one of variance k sigma^2.

    The z with sum w are w / k (1, ..., 1) plus a coset of the lattice A_{k-1} = {z: sum 0}, orthogonal to it:
    P(W = w) = exp(-w^2 / (2 k sigma^2)) T(coset). A Gaussian sum over cosets is largest on the lattice itself (its
    Poisson dual has positive terms), so P(W = w) <= P(W = 0) exp(-w^2 / (2 k sigma^2)). By the same dual this number
    is a sum over A*_{k-1} that falls to 1 as sigma grows, times at most 1, so that of sigma^2 = 8 serves all above.
    P(W = 0) is at most the mean of E exp(i t Z)^k over any grid of t: that mean is the sum of P(W = jM) over j.
    """
    sigma2 = min(sigma2, _SMOOTH)
    points = 2 * math.ceil(math.sqrt(2 * cells * sigma2 * _NEGLIGIBLE)) + 2
    reach = math.ceil(math.sqrt(2 * sigma2 * _NEGLIGIBLE)) + 1
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    waves = np.cos(2 * math.pi / points * np.outer(np.arange(points), z))
    characteristic = np.maximum(waves @ discrete_mass(z, sigma2), 0.0)
    return math.sqrt(2 * math.pi * cells * sigma2) * float(np.mean(characteristic**cells))


def _sum_mass(sigma2: float, cells: int, reach: int) -> FloatArray:
    """P(W = w) for w from -reach to reach, W the sum of `cells` discrete Gaussians; partial sums beyond are dropped."""
    power = discrete_mass(np.arange(-reach, reach + 1, dtype=np.float64), sigma2)
    total: FloatArray | None = None
    while True:
        if cells & 1:
            total = power if total is None else np.convolve(total, power)[reach:-reach]
        cells >>= 1
        if not cells:
            return np.asarray(total)
        power = np.convolve(power, power)[reach:-reach]
