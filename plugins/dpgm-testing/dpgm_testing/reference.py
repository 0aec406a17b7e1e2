"""Reference mechanisms and releases for checks that need noise without a plugin: few lines, slow, and exact."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.privacy.gaussian import (
    discrete_delta,
    discrete_variance,
    gaussian_mu_squared,
    gaussian_variance,
    least_variance,
    log_normaliser,
)
from dpgm_core.privacy.measurement import measure
from dpgm_core.privacy.mechanism import DualTerm, Mechanism
from dpgm_core.privacy.samplers import bounded_variance, discrete_gaussian, discrete_laplace
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "ReferenceGaussian",
    "ReferenceGaussianNoise",
    "ReferenceLaplace",
    "ReferenceLaplaceNoise",
    "example_release",
]

_ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)


@frozen(kw_only=True)
class ReferenceLaplaceNoise:
    """Discrete Laplace noise: mass proportional to exp(-|z| / scale)."""

    scale: Fraction
    l1: int
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = True

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant."""
        scale = math.nextafter(float(self.scale), 0.0)
        return PrivacyEvent(kind="discrete-laplace", scale=scale, sensitivity=float(self.l1))

    @property
    def variance(self) -> float:
        """2 p / (1 - p)^2 with p = exp(-1 / scale)."""
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def dual(self) -> DualTerm:
        """|u| <= 1 / scale."""
        return DualTerm(bound=float(1 / self.scale), curvature=0.0)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, int64."""
        return discrete_laplace(self.scale, math.prod(shape), randomness).reshape(shape)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """log tanh(1 / (2 scale)) - |residual| / scale."""
        rate = float(1 / self.scale)
        return np.asarray(math.log(math.tanh(rate / 2)) - np.abs(residual) * rate)

    def score(self, residual: FloatArray) -> FloatArray:
        """-sign(residual) / scale."""
        return np.asarray(-np.sign(residual) * float(1 / self.scale))


@frozen(kw_only=True)
class ReferenceLaplace:
    """Discrete Laplace noise of scale L1 / epsilon, wider by up to 1/1024 where no sampler draws that; pure budgets.

    >>> ReferenceLaplace().noise(Sensitivity(l0=3, l1=3, l2_squared=3, linf=1), Budget.pure("0.1")).scale
    Fraction(30, 1)
    """

    own_randomness: ClassVar[None] = None

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> ReferenceLaplaceNoise:
        """Raises BudgetError for other budgets."""
        if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
            raise BudgetError("the reference noise is calibrated from a Sensitivity and a Budget")
        if budget.kind != "pure" or budget.is_zero:
            raise BudgetError(f"the reference Laplace noise takes a positive pure budget, got {budget}")
        l1 = max(sensitivity.l1, 1)
        scale = l1 / budget.epsilon
        if max(scale.as_integer_ratio()) >= 2**32:  # of a subsampled round, say
            scale = Fraction(math.ceil(scale * 2**10), 2**10)
        return ReferenceLaplaceNoise(scale=scale, l1=l1, cost=budget)


@frozen(kw_only=True)
class ReferenceGaussianNoise:
    """Discrete Gaussian noise: mass proportional to exp(-z^2 / (2 sigma_squared))."""

    sigma_squared: Fraction
    l2_squared: int
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = True

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant."""
        scale = math.nextafter(math.sqrt(self.sigma_squared), 0.0)
        l2 = math.nextafter(math.sqrt(self.l2_squared), math.inf)
        return PrivacyEvent(kind="discrete-gaussian", scale=scale, sensitivity=l2)

    @property
    def variance(self) -> float:
        """Of the discrete law, records**2."""
        return discrete_variance(float(self.sigma_squared))

    @property
    def dual(self) -> DualTerm:
        """sigma^2 u^2 / 2."""
        return DualTerm(bound=math.inf, curvature=float(self.sigma_squared))

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, int64."""
        return discrete_gaussian(self.sigma_squared, math.prod(shape), randomness).reshape(shape)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """-residual^2 / (2 sigma^2) - log normaliser."""
        width = float(self.sigma_squared)
        return np.asarray(-np.square(residual) / (2 * width) - log_normaliser(width))

    def score(self, residual: FloatArray) -> FloatArray:
        """-residual / sigma^2."""
        return np.asarray(-np.asarray(residual) / float(self.sigma_squared))


@frozen(kw_only=True)
class ReferenceGaussian:
    """Discrete Gaussian noise for zCDP, mu and (epsilon, delta) budgets.

    >>> ReferenceGaussian().noise(Sensitivity(l0=2, l1=2, l2_squared=2, linf=1), Budget.zcdp("0.02")).sigma_squared
    Fraction(50, 1)
    """

    own_randomness: ClassVar[None] = None

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> ReferenceGaussianNoise:
        """Raises BudgetError for other budgets."""
        if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
            raise BudgetError("the reference noise is calibrated from a Sensitivity and a Budget")
        if budget.kind == "pure" or budget.is_zero:
            raise BudgetError(f"the reference Gaussian noise takes a zCDP, mu or (epsilon, delta) budget, got {budget}")
        if not sensitivity.l2_squared:
            sensitivity = _ONE
        if budget.kind == "zcdp":
            width = bounded_variance(sensitivity.l2_squared / (2 * budget.rho))
            budget = Budget.zcdp(sensitivity.l2_squared / (2 * width))
        elif budget.kind == "gdp":
            width = gaussian_variance(budget.mu_squared, sensitivity.l2_squared)
            budget = Budget("gdp", mu_squared=gaussian_mu_squared(width, sensitivity.l2_squared))
        else:
            width = least_variance(discrete_delta, sensitivity, budget.epsilon, budget.delta)
        return ReferenceGaussianNoise(sigma_squared=width, l2_squared=sensitivity.l2_squared, cost=budget)


def example_release(
    structure: Structure,
    values: Array,
    *,
    total: float,
    mechanism: Mechanism | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours | str = "add-remove",
) -> NoisyTables:
    """A release of the given noisy values, as if `mechanism` had drawn its noise for `budget` on all tables.

    values: (cells,), records. mechanism: the reference Laplace noise when None. budget: epsilon = 1 when None.

    >>> from dpgm_core.domain.domain import Domain
    >>> example_release(Structure(Domain.from_sizes({"a": 2}), [("a",)]), np.array([-3, 8]), total=5).total
    5.0
    """
    budget = Budget.pure(1) if budget is None else budget
    terms = Terms(neighbours=neighbours, unit="one person", total=float(total))
    made = ReferenceLaplace() if mechanism is None else mechanism
    measurement = measure(made, structure, terms, budget)
    return NoisyTables(
        tables=Tables(structure, values),
        measurement=measurement,
        terms=terms,
        total=float(total),
        total_variance=0.0,
        cost=measurement.cost,
        private=False,
    )
