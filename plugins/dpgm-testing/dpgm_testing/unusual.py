"""Mechanisms with unusual noise: bounded, not log-concave, or tabulated. Few lines, slow, and exact.

What is handed such a release serves it or refuses it with an error of dpgm; see `dpgm_testing.checks.unusual`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.exact_numbers import whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.privacy.dominating_pairs import truncated_delta
from dpgm_core.privacy.samplers import discrete_laplace
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.tabulated import TabulatedNoise, calibrate_tabulated

__all__ = ["Power", "TruncatedLaplace", "TruncatedLaplaceNoise", "TwoWidths", "TwoWidthsNoise"]

_ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
_MOST = 1 << 20


def _checked(sensitivity: object, budget: object, kind: str) -> Sensitivity:
    if not isinstance(sensitivity, Sensitivity) or not isinstance(budget, Budget):
        raise BudgetError("noise is calibrated from a Sensitivity and a Budget, in this order")
    if budget.kind != kind or budget.is_zero or (kind == "approx" and not (budget.epsilon and budget.delta)):
        raise BudgetError(f"this noise takes a positive {kind} budget, got {budget}")
    return sensitivity if sensitivity.l1 else _ONE


@frozen(kw_only=True)
class TruncatedLaplaceNoise:
    """Discrete Laplace noise drawn again until it lies within the bound.

    scale, bound: records. sensitivity: what it was calibrated to. cost: (epsilon, delta) that holds, by
    `truncated_delta`; anything else raises BudgetError, so that a file cannot claim less than it spent.
    """

    scale: Fraction
    bound: int
    sensitivity: Sensitivity
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    log_concave: ClassVar[bool] = True
    dual: ClassVar[None] = None

    def __attrs_post_init__(self) -> None:
        whole("the bound of truncated noise", self.bound, least=1, most=_MOST)
        if not isinstance(self.scale, Fraction) or not 0 < self.scale <= _MOST:
            raise BudgetError(f"truncated noise needs a positive exact scale of at most {_MOST:,}, got {self.scale!r}")
        if self.cost.kind != "approx":
            raise BudgetError(f"truncated noise costs (epsilon, delta), not {self.cost}")
        if truncated_delta(self.scale, self.bound, self.sensitivity, self.cost.epsilon) > self.cost.delta:
            raise BudgetError(f"noise of scale {self.scale} within {self.bound} costs more than {self.cost}")

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant. The scale is the nearest double: more and less of it could both cost more."""
        return PrivacyEvent(
            kind="truncated-discrete-laplace",
            scale=float(self.scale),
            sensitivity=float(self.sensitivity.l1),
            bound=self.bound,
        )

    @property
    def support(self) -> tuple[float, float]:
        """-bound to bound."""
        return float(-self.bound), float(self.bound)

    def _masses(self) -> tuple[FloatArray, FloatArray]:
        values = np.arange(-self.bound, self.bound + 1.0)
        masses = np.exp(-np.abs(values) * float(1 / self.scale))
        return values, masses

    @property
    def variance(self) -> float:
        """By summation; never 0, despite underflow."""
        values, masses = self._masses()
        return max(float(values**2 @ masses / masses.sum()), 2.0**-1000)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, int64, by rejection."""
        found = discrete_laplace(self.scale, math.prod(shape), randomness)
        while (outside := np.flatnonzero(np.abs(found) > self.bound)).size:
            found[outside] = discrete_laplace(self.scale, outside.size, randomness)
        return found.reshape(shape)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """-|residual| / scale - log normaliser within the bound, -inf beyond."""
        size = np.abs(np.asarray(residual, np.float64))
        inside = -size * float(1 / self.scale) - math.log(self._masses()[1].sum())
        return np.where(size > self.bound, -np.inf, inside)

    def score(self, residual: FloatArray) -> FloatArray:
        """-sign(residual) / scale, which means something within the bound only."""
        return np.asarray(-np.sign(np.asarray(residual, np.float64)) * float(1 / self.scale))


@frozen(kw_only=True)
class TruncatedLaplace:
    """Truncated discrete Laplace noise of scale L1 / epsilon, with the least bound that delta allows.

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> noise = TruncatedLaplace().noise(one, Budget.approx(1, "1e-6"))
    >>> noise.scale, noise.bound
    (Fraction(1, 1), 14)
    """

    own_randomness: ClassVar[None] = None

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> TruncatedLaplaceNoise:
        """Raises BudgetError for what is no (epsilon, delta), and where the bound would be above 2^20."""
        sensitivity = _checked(sensitivity, budget, "approx")
        scale = Fraction(math.ceil(sensitivity.l1 / budget.epsilon * 2**10), 2**10)
        low, high = 0, 1
        while high <= _MOST and truncated_delta(scale, high, sensitivity, budget.epsilon) > budget.delta:
            low, high = high, 2 * high
        if high > _MOST or scale > _MOST:
            raise BudgetError(f"{budget} needs truncated noise wider than {_MOST:,} records; use a larger budget")
        while high - low > 1:
            middle = (low + high) // 2
            enough = truncated_delta(scale, middle, sensitivity, budget.epsilon) <= budget.delta
            low, high = (low, middle) if enough else (middle, high)
        return TruncatedLaplaceNoise(scale=scale, bound=high, sensitivity=sensitivity, cost=budget)


@frozen(kw_only=True)
class TwoWidthsNoise:
    """Discrete Laplace noise of one of two scales, by a fair coin for each cell; its log mass is convex off 0.

    The ratio of two mixtures is at most the largest ratio of their parts, so it costs what the narrow part costs.
    """

    scale: Fraction
    l1: int
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = False
    dual: ClassVar[None] = None

    def __attrs_post_init__(self) -> None:
        if self.cost != Budget.pure(self.l1 / self.scale):
            raise BudgetError(f"noise of scale {self.scale} at L1 = {self.l1} does not cost {self.cost}")

    @property
    def event(self) -> PrivacyEvent:
        """That of the narrow part."""
        scale = math.nextafter(float(self.scale), 0.0)
        return PrivacyEvent(kind="discrete-laplace", scale=scale, sensitivity=float(self.l1))

    def _rates(self) -> tuple[float, float]:
        return float(1 / self.scale), float(1 / (5 * self.scale))

    @property
    def variance(self) -> float:
        """The mean of both."""
        return sum(math.exp(-rate) / math.expm1(-rate) ** 2 for rate in self._rates())

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, int64."""
        count = math.prod(shape)
        parts = [discrete_laplace(scale, count, randomness) for scale in (self.scale, 5 * self.scale)]
        coin = (randomness.words(count) & np.uint64(1)).astype(bool)
        return np.where(coin, *parts).reshape(shape)

    def _logs(self, residual: FloatArray) -> list[FloatArray]:
        size = np.abs(np.asarray(residual, np.float64))
        return [math.log(math.tanh(rate / 2) / 2) - size * rate for rate in self._rates()]

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """The log of the mean of both masses."""
        return np.asarray(np.logaddexp(*self._logs(residual)))

    def score(self, residual: FloatArray) -> FloatArray:
        """Its derivative; 0 at the kink."""
        one, other = self._rates()
        wider = math.log(math.tanh(other / 2) / math.tanh(one / 2)) + np.abs(residual) * (one - other)
        share = 1 / (1 + np.exp(np.minimum(wider, 700.0)))  # of the narrow part
        return np.asarray(-np.sign(residual) * (share * one + (1 - share) * other))


@frozen(kw_only=True)
class TwoWidths:
    """Noise of scale L1 / epsilon or five times that; pure budgets only.

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> TwoWidths().noise(one, Budget.pure("1/2")).scale
    Fraction(2, 1)
    """

    own_randomness: ClassVar[None] = None

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> TwoWidthsNoise:
        """Raises BudgetError for other budgets."""
        sensitivity = _checked(sensitivity, budget, "pure")
        return TwoWidthsNoise(scale=sensitivity.l1 / budget.epsilon, l1=sensitivity.l1, cost=budget)


def _power(values: FloatArray, scale: float) -> FloatArray:
    return np.asarray(-((values / scale) ** 1.5))


@frozen(kw_only=True)
class Power:
    """Tabulated noise of log weights -|z / scale|^1.5, between Laplace and Gaussian; any budget.

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> round(Power().noise(one, Budget.zcdp("1/8")).variance, 3)
    5.774
    """

    own_randomness: ClassVar[None] = None

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> TabulatedNoise:
        """Raises BudgetError where it would be too wide."""
        return calibrate_tabulated(_power, sensitivity, budget)
