"""Gaussian noise on integer counts: exact by integer arithmetic, or textbook floats for reproducing papers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from attrs import frozen
from scipy import special

from dpgm_core import Array, Budget, BudgetError, DualTerm, FloatArray, PrivacyEvent, Randomness, Sensitivity
from dpgm_core.privacy import (
    Exactness,
    analytic_delta,
    bounded_variance,
    discrete_delta,
    discrete_gaussian,
    discrete_variance,
    gaussian_mu_squared,
    gaussian_variance,
    least_variance,
    log_normaliser,
    residuals,
)

__all__ = ["Gaussian", "GaussianNoise"]

# A positive floor for variances that underflow, so that weights 1/variance and their sums stay finite.
_LEAST_VARIANCE = 2.0**-1000


@frozen(kw_only=True)
class GaussianNoise:
    """Independent Gaussian noise of one width for each cell; on the whole numbers if `exact`, else on doubles.

    sigma_squared: the parameter sigma^2 of the density exp(-z^2 / (2 sigma^2)), records**2, as `bounded_variance` gives
    it. sensitivity: what it was calibrated to. cost: the zCDP rho = L2^2 / (2 sigma^2), its price in mu, or an
    (epsilon, delta) that holds at this width; anything else raises BudgetError, so that a file cannot claim less than
    it spent.

    Privacy: rho-zCDP by Canonne, Kamath, Steinke (2020), Theorem 14, for every whole-numbered shift; (epsilon, delta)
    from the exact mass function over the worst shift (`dpgm_core.privacy.discrete_delta`).

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> noise = GaussianNoise(sigma_squared=Fraction(50), cost=Budget.zcdp("0.01"), sensitivity=one, exact=True)
    >>> noise.variance, noise.dual.curvature
    (50.0, 50.0)
    """

    sigma_squared: Fraction
    cost: Budget
    sensitivity: Sensitivity
    exact: bool

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        width = self.sigma_squared
        if not isinstance(width, Fraction) or width <= 0 or bounded_variance(width) != width:
            raise BudgetError(f"Gaussian noise needs a positive exact sigma^2 from bounded_variance(), got {width!r}")
        if not isinstance(self.sensitivity, Sensitivity) or self.sensitivity.l2_squared < 1:
            raise BudgetError(f"Gaussian noise needs a Sensitivity with L2 of at least 1, got {self.sensitivity!r}")
        if not isinstance(self.exact, bool):
            raise BudgetError(f"exact must be true or false, got {self.exact!r}")
        if not isinstance(self.cost, Budget) or self.cost.kind == "pure" or self.cost.is_zero:
            raise BudgetError(f"Gaussian noise costs zCDP, mu or (epsilon, delta), not {self.cost}")
        if self.cost.kind in ("zcdp", "gdp"):
            covered = self.cost == _cost(self.cost.kind, self.sensitivity, width)
        else:
            delta_of = discrete_delta if self.exact else analytic_delta
            covered = Fraction(delta_of(width, self.sensitivity, self.cost.epsilon)) <= self.cost.delta
        if not covered:
            raise BudgetError(
                f"Gaussian noise with sigma^2 = {float(width):.6g} at L2 = {self.sensitivity.l2:.6g} does not cost "
                f"{self.cost}"
            )

    @property
    def unsafe(self) -> str | None:
        """Why the guarantee does not hold to the letter; None for exact noise."""
        return None if self.exact else Exactness.caveat("Gaussian")

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant; sigma is rounded down and L2 up to doubles, never the other way."""
        sigma, l2 = math.sqrt(self.sigma_squared), self.sensitivity.l2
        while Fraction(sigma) ** 2 > self.sigma_squared:
            sigma = math.nextafter(sigma, 0.0)
        while Fraction(l2) ** 2 < self.sensitivity.l2_squared:
            l2 = math.nextafter(l2, math.inf)
        return PrivacyEvent(kind="discrete-gaussian" if self.exact else "gaussian", scale=sigma, sensitivity=l2)

    @property
    def variance(self) -> float:
        """records**2 per cell: of the discrete distribution, which is below sigma^2; never 0, despite underflow."""
        width = float(self.sigma_squared)
        return max(discrete_variance(width), _LEAST_VARIANCE) if self.exact else width

    @property
    def dual(self) -> DualTerm:
        """sigma^2 u^2 / 2, no bound."""
        return DualTerm(bound=math.inf, curvature=float(self.sigma_squared))

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise of any shape: int64 if exact, else float64. How long it takes depends on the noise alone."""
        count = math.prod(shape)
        if self.exact:
            return discrete_gaussian(self.sigma_squared, count, randomness).reshape(shape)
        # 53 bits for u in (0, 1)
        u = ((randomness.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        return np.asarray(math.sqrt(self.sigma_squared) * special.ndtri(u)).reshape(shape)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """-residual^2 / (2 sigma^2) - log sum_z exp(-z^2 / (2 sigma^2)), the log mass extended to the reals; nats.

        Textbook noise: the normal log density. Raises InferenceError for NaN.

        >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
        >>> noise = GaussianNoise(sigma_squared=Fraction(2), cost=Budget.zcdp("0.25"), sensitivity=one, exact=True)
        >>> round(float(np.exp(noise.logpdf(np.arange(-40, 41))).sum()), 12)
        1.0
        """
        width = float(self.sigma_squared)
        peak = log_normaliser(width) if self.exact else math.log(2 * math.pi * width) / 2
        with np.errstate(over="ignore"):  # then the log density is -inf, as it should be
            return np.asarray(-np.square(residuals(residual)) / (2 * width) - peak)

    def score(self, residual: FloatArray) -> FloatArray:
        """-residual / sigma^2. Raises InferenceError for NaN.

        >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
        >>> noise = GaussianNoise(sigma_squared=Fraction(2), cost=Budget.zcdp("0.25"), sensitivity=one, exact=True)
        >>> noise.score(np.array([3.0, -1.0])).tolist()
        [-1.5, 0.5]
        """
        return np.asarray(-residuals(residual) / float(self.sigma_squared))


@frozen(kw_only=True)
class Gaussian(Exactness):
    """Calibrates Gaussian noise to the L2 sensitivity.

    zCDP: sigma^2 = L2^2 / (2 rho), rounded up to a fraction that can be drawn, and rho recomputed from it; mu likewise.
    (epsilon, delta): the least sigma^2 whose exact delta at epsilon is at most delta; where a person moves cells by
    more than 1 (tied groups, several rows), a bound over every shift, about 1 % wider. Never more than asked. Raises
    OptionError for `exact=False` without `allow_unsafe=True`.

    >>> sensitivity = Sensitivity(l0=24, l1=24, l2_squared=24, linf=1)
    >>> Gaussian().noise(sensitivity, Budget.zcdp("0.1")).sigma_squared
    Fraction(120, 1)
    >>> round(Gaussian().noise(sensitivity, Budget.approx(1, "1e-6")).variance, 2)
    428.35
    """

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> GaussianNoise:
        """The least noise that costs at most `budget`; touches no data.

        sensitivity: an L2 of 0 (nobody can change a cell) is taken as 1. budget: zCDP, mu or (epsilon, delta). Raises
        BudgetError for pure epsilon, an empty budget, and noise too wide for 64-bit counts.
        """
        if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
            raise BudgetError("Gaussian noise is calibrated from a Sensitivity and a Budget, in this order")
        if budget.kind == "pure":
            raise BudgetError(
                f"mechanism 'gaussian' was asked for {budget}, but Gaussian noise is never purely private; "
                "say budget = { rho = ... } or { epsilon = ..., delta = ... }, or mechanism = 'laplace' (in Python "
                "Budget.zcdp or Budget.approx)"
            )
        if budget.is_zero or (budget.kind == "approx" and not (budget.epsilon and budget.delta)):
            raise BudgetError(
                f"mechanism 'gaussian' was asked for {budget}; rho, or both epsilon and delta, must be positive"
            )
        if sensitivity.l2_squared == 0:
            sensitivity = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
        if budget.kind == "zcdp":
            width = bounded_variance(sensitivity.l2_squared / (2 * budget.rho))
            return self._of(width, _cost("zcdp", sensitivity, width), sensitivity)
        if budget.kind == "gdp":
            width = gaussian_variance(budget.mu_squared, sensitivity.l2_squared)
            return self._of(width, _cost("gdp", sensitivity, width), sensitivity)
        delta_of = discrete_delta if self.exact else analytic_delta
        width = least_variance(delta_of, sensitivity, budget.epsilon, budget.delta)
        return self._of(width, budget, sensitivity)

    def _of(self, width: Fraction, cost: Budget, sensitivity: Sensitivity) -> GaussianNoise:
        return GaussianNoise(sigma_squared=width, cost=cost, sensitivity=sensitivity, exact=self.exact)


def _cost(kind: str, sensitivity: Sensitivity, sigma_squared: Fraction) -> Budget:
    """rho = L2^2 / (2 sigma^2), or mu^2."""
    if kind == "gdp":
        return Budget("gdp", mu_squared=gaussian_mu_squared(sigma_squared, sensitivity.l2_squared))
    return Budget.zcdp(sensitivity.l2_squared / (2 * sigma_squared))
