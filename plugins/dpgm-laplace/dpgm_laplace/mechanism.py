"""Laplace noise on integer counts: exact by integer arithmetic, or textbook floats for reproducing papers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from attrs import frozen

from dpgm_core import Array, Budget, BudgetError, DualTerm, FloatArray, PrivacyEvent, Randomness, Sensitivity
from dpgm_core.privacy import Exactness, discrete_laplace, residuals

__all__ = ["Laplace", "LaplaceNoise"]

# The exact sampler takes scales whose numerator and denominator are below it.
_PARTS = 1 << 32
# Largest scale and L1: |noise| passes 2^61, where counts and noise are clamped, with probability below exp(-2^30).
_MAX_SCALE = 1 << 31
# A positive floor for variances that underflow, so that weights 1/variance and their sums stay finite.
_LEAST_VARIANCE = 2.0**-1000


@frozen(kw_only=True)
class LaplaceNoise:
    """Independent Laplace noise of one scale for each cell; on the whole numbers if `exact`, else on doubles.

    scale: records, positive, both parts below 2^32. l1: what it was calibrated to, records. cost: pure epsilon
    l1 / scale, or the zCDP rho = (l1 / scale)^2 / 2 that this implies; anything else raises BudgetError, so that a
    file cannot claim less than it spent.

    Privacy (exact): P(z) is proportional to exp(-|z| / scale), so shifting the counts by a whole-numbered s changes
    the log probability of any output by at most |s|_1 / scale <= l1 / scale, whichever cells s moves: the release of
    all cells is l1/scale-DP (Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke 2020, arXiv 2004.00010).
    eps-DP is eps^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4).

    >>> noise = LaplaceNoise(scale=Fraction(24), cost=Budget.pure("1/8"), l1=3, exact=True)
    >>> round(noise.variance, 2), noise.dual.bound == 1 / 24
    (1151.83, True)
    """

    scale: Fraction
    cost: Budget
    l1: int
    exact: bool

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        scale = self.scale
        if not isinstance(scale, Fraction) or not 0 < scale <= _MAX_SCALE or max(scale.as_integer_ratio()) >= _PARTS:
            raise BudgetError(
                "Laplace noise needs a positive exact scale of at most 2**31 records, both parts below 2**32; "
                f"got {scale!r}"
            )
        if not isinstance(self.l1, int) or isinstance(self.l1, bool) or not 1 <= self.l1 <= _MAX_SCALE:
            raise BudgetError(f"Laplace noise needs a whole L1 sensitivity from 1 to 2**31, got {self.l1!r}")
        if not isinstance(self.exact, bool):
            raise BudgetError(f"exact must be true or false, got {self.exact!r}")
        pure = Budget.pure(self.l1 / scale)
        if self.cost not in (pure, pure.to_zcdp(), pure.to_gdp()):
            raise BudgetError(f"Laplace noise of scale {scale} at L1 = {self.l1} costs {pure}, not {self.cost}")

    @property
    def unsafe(self) -> str | None:
        """Why the guarantee does not hold to the letter; None for exact noise."""
        return None if self.exact else Exactness.caveat("Laplace")

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant; the scale is rounded down to a double, never up."""
        scale = float(self.scale)
        if Fraction(scale) > self.scale:
            scale = math.nextafter(scale, 0.0)
        return PrivacyEvent(
            kind="discrete-laplace" if self.exact else "laplace", scale=scale, sensitivity=float(self.l1)
        )

    @property
    def variance(self) -> float:
        """records**2 per cell: 2 p / (1 - p)^2 with p = exp(-1 / scale), or 2 scale^2; never 0, despite underflow.

        >>> tiny = LaplaceNoise(scale=Fraction(1, 10**6), cost=Budget.pure(10**6), l1=1, exact=True)
        >>> tiny.variance > 0
        True
        """
        if not self.exact:
            return 2 * float(self.scale) ** 2
        rate = float(1 / self.scale)
        # 2 p / (1 - p)^2, where 1 - p would lose its digits for wide noise
        return max(2 * math.exp(-rate) / math.expm1(-rate) ** 2, _LEAST_VARIANCE)

    @property
    def dual(self) -> DualTerm:
        """|u| <= 1 / scale."""
        # 1 / scale, rounded once; EM asks for it with every table of every step
        return DualTerm(bound=self.scale.denominator / self.scale.numerator, curvature=0.0)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise of any shape: int64 if exact, else float64. How long it takes depends on the noise alone."""
        count = math.prod(shape)
        if self.exact:
            return discrete_laplace(self.scale, count, randomness).reshape(shape)
        words = randomness.words(count)
        # 53 bits for u in (0, 1), one of the others for the sign; |noise| = -scale ln u
        u = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        sign = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
        return np.asarray(-float(self.scale) * np.log(u) * sign).reshape(shape)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """log((1 - p) / (1 + p)) - |residual| / scale, the log mass extended to the reals; nats, any shape.

        Textbook noise: -log(2 scale) - |residual| / scale. Raises InferenceError for NaN.

        >>> noise = LaplaceNoise(scale=Fraction(1), cost=Budget.pure(1), l1=1, exact=True)
        >>> round(float(np.exp(noise.logpdf(np.arange(-40, 41))).sum()), 12)
        1.0
        """
        residual = residuals(residual)
        rate = float(1 / self.scale)
        if not self.exact:
            peak = -math.log(2 * float(self.scale))
        elif rate > 1:
            peak = math.log1p(-math.exp(-rate)) - math.log1p(math.exp(-rate))
        else:
            peak = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
        with np.errstate(over="ignore"):  # then the log density is -inf, as it should be
            return np.asarray(peak - np.abs(residual) * rate)

    def score(self, residual: FloatArray) -> FloatArray:
        """-sign(residual) / scale; at the kink 0, the middle subgradient. Raises InferenceError for NaN.

        >>> noise = LaplaceNoise(scale=Fraction(2), cost=Budget.pure("0.5"), l1=1, exact=True)
        >>> (noise.score(np.array([3.0, 0.0, -1.0])) + 0.0).tolist()
        [-0.5, 0.0, 0.5]
        """
        return np.asarray(-np.sign(residuals(residual)) * float(1 / self.scale))


@frozen(kw_only=True)
class Laplace(Exactness):
    """Calibrates Laplace noise to the L1 sensitivity: scale = L1 / epsilon.

    A zCDP budget buys epsilon = sqrt(2 rho), and one of mu epsilon = sqrt(2 / pi) mu. The scale is rounded up to a
    fraction with 32-bit parts and the cost recomputed from it, so it is never more than asked, and the same when L1 /
    epsilon is such a fraction already.
    Raises OptionError for `exact=False` without `allow_unsafe=True`.

    >>> sensitivity = Sensitivity(l0=24, l1=24, l2_squared=24, linf=1)
    >>> noise = Laplace().noise(sensitivity, Budget.pure("0.1"))
    >>> noise.scale, noise.cost == Budget.pure("0.1")
    (Fraction(240, 1), True)
    """

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> LaplaceNoise:
        """The least noise that costs at most `budget`; touches no data.

        sensitivity: only L1 counts, and 0 (nobody can change a cell) is taken as 1. budget: pure, zCDP or mu. Raises
        BudgetError for (epsilon, delta), an empty budget, and noise too wide for 64-bit counts.
        """
        if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
            raise BudgetError("Laplace noise is calibrated from a Sensitivity and a Budget, in this order")
        if budget.kind == "approx":
            raise BudgetError(
                f"mechanism 'laplace' was asked for {budget}, but its privacy is pure and has no use for delta; "
                "say budget = { epsilon = ... } or { rho = ... }, or mechanism = 'gaussian' (in Python Budget.pure or "
                "Budget.zcdp)"
            )
        if budget.is_zero:
            raise BudgetError(f"mechanism 'laplace' was asked for {budget}; nothing is left to buy noise with")
        l1 = max(sensitivity.l1, 1)
        needed = l1 / budget.to_pure().epsilon
        if l1 > _MAX_SCALE or needed > _MAX_SCALE:
            raise BudgetError(
                f"{budget} at L1 sensitivity {l1} needs Laplace noise wider than 2**31 records, too wide for 64-bit "
                "counts; use a larger budget, fewer cliques or fewer rows per person"
            )
        scale = _round_up(needed)
        pure = Budget.pure(l1 / scale)
        cost = {"zcdp": pure.to_zcdp, "gdp": pure.to_gdp}.get(budget.kind, lambda: pure)()
        return LaplaceNoise(scale=scale, cost=cost, l1=l1, exact=self.exact)


def _round_up(value: Fraction) -> Fraction:
    """A fraction with both parts below 2^32 that is the value or just above it (from 1 on, within 2^-31 of it).

    >>> _round_up(Fraction(1, 3)), _round_up(Fraction(1, 2**32)) > Fraction(1, 2**32)
    (Fraction(1, 3), True)
    """
    if max(value.as_integer_ratio()) < _PARTS:
        return value
    bottom = min(_PARTS - 1, math.floor((_PARTS - 1) / value))
    return Fraction(math.ceil(value * bottom), bottom)
