"""The mechanism `opendp-gaussian`: discrete Gaussian noise drawn by OpenDP."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import opendp.prelude as dp
from attrs import frozen

from dpgm_core import Array, Budget, BudgetError, DualTerm, FloatArray, PrivacyEvent, Randomness, Sensitivity
from dpgm_core.privacy import discrete_variance, log_normaliser
from dpgm_opendp.measure import (
    LEAST_VARIANCE,
    MOST,
    OWN_RANDOMNESS,
    check_request,
    draw,
    exactly,
    numbers,
    smallest,
    unit,
    within,
)

__all__ = ["OpendpGaussian", "OpendpGaussianNoise"]

# Halvings of the interval of scales (51 doublings wide) that an (epsilon, delta) budget is searched in.
_HALVINGS = 45


@lru_cache(maxsize=64)
def _measurement(scale: float) -> Any:
    """OpenDP's Gaussian measurement on vectors of i64 ("int" would be 32 bits) under the L2 distance."""
    return dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=scale)


def _l2(sensitivity: Sensitivity) -> float:
    """The L2 sensitivity as a double that is not below it."""
    l2 = sensitivity.l2
    while Fraction(l2) ** 2 < sensitivity.l2_squared:
        l2 = math.nextafter(l2, math.inf)
    return l2


def _costs(scale: float, sensitivity: Sensitivity, asked: Budget) -> Budget:
    """What OpenDP says that this scale costs, in the kind of `asked` (and at its epsilon)."""
    l2 = _l2(sensitivity)
    what = f"Gaussian map at scale {scale!r} and L2 = {l2:.6g}"
    rho = exactly(what, lambda: _measurement(scale).map(l2))
    if asked.kind == "zcdp":
        return Budget.zcdp(rho)
    below = float(asked.epsilon)
    if Fraction(below) > asked.epsilon:
        below = math.nextafter(below, 0.0)
    approximate: Any = dp.c.make_zCDP_to_approxDP(_measurement(scale))
    delta = exactly(what, lambda: approximate.map(l2).delta(below))
    return Budget.approx(asked.epsilon, min(delta, Fraction(1) - Fraction(1, 2**60)))


@frozen(kw_only=True)
class OpendpGaussianNoise:
    """Independent discrete Gaussian noise of one width for each cell.

    scale: sigma of exp(-z^2 / (2 sigma^2)), records, in (0, 2^31]. sensitivity: what it was calibrated to. cost: zCDP
    or (epsilon, delta); BudgetError if OpenDP's own map says that it costs more.

    Privacy: L2^2 / (2 sigma^2)-zCDP for every whole-numbered shift (Canonne, Kamath, Steinke 2020, Theorem 14), which
    OpenDP's map rounds up and converts to (epsilon, delta).

    >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    >>> OpendpGaussianNoise(scale=5.0, sensitivity=one, cost=Budget.zcdp("0.03")).dual.curvature
    25.0
    """

    scale: float
    sensitivity: Sensitivity
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale <= MOST:
            raise BudgetError(f"Gaussian noise needs a scale in (0, 2**31] records, got {self.scale!r}")
        if not isinstance(self.sensitivity, Sensitivity) or self.sensitivity.l2_squared < 1:
            raise BudgetError(f"Gaussian noise needs a Sensitivity with L2 of at least 1, got {self.sensitivity!r}")
        if not isinstance(self.cost, Budget) or self.cost.kind == "pure":
            raise BudgetError(f"Gaussian noise costs zCDP or (epsilon, delta), not {self.cost}")
        claimed = _costs(self.scale, self.sensitivity, self.cost)
        if not claimed <= self.cost:
            raise BudgetError(f"OpenDP says that Gaussian noise of sigma {self.scale} costs {claimed}, not {self.cost}")

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant."""
        return PrivacyEvent(kind="discrete-gaussian", scale=self.scale, sensitivity=_l2(self.sensitivity))

    @property
    def variance(self) -> float:
        """records**2 per cell, of the discrete law; never 0, despite underflow."""
        return max(discrete_variance(self.scale**2), LEAST_VARIANCE)

    @property
    def dual(self) -> DualTerm:
        """sigma^2 u^2 / 2, no bound."""
        return DualTerm(bound=math.inf, curvature=self.scale**2)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh int64 noise from OpenDP; OptionError for seeded randomness, which it cannot follow."""
        return draw(_measurement(self.scale), shape, randomness)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """-residual^2 / (2 sigma^2) - log sum_z exp(-z^2 / (2 sigma^2)), nats.

        >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
        >>> noise = OpendpGaussianNoise(scale=2.0, sensitivity=one, cost=Budget.zcdp("0.2"))
        >>> round(float(np.exp(noise.logpdf(np.arange(-40, 41))).sum()), 12)
        1.0
        """
        with np.errstate(over="ignore"):  # then the log density is -inf, as it should be
            return np.asarray(-np.square(numbers(residual)) / (2 * self.scale**2) - log_normaliser(self.scale**2))

    def score(self, residual: FloatArray) -> FloatArray:
        """-residual / sigma^2."""
        return np.asarray(-numbers(residual) / self.scale**2)


@frozen(kw_only=True)
class OpendpGaussian:
    """Calibrates to the L2 sensitivity: the least sigma, as a double, at which OpenDP's map fits the budget.

    >>> four = Sensitivity(l0=4, l1=4, l2_squared=4, linf=1)
    >>> round(OpendpGaussian().noise(four, Budget.zcdp("0.02")).scale, 9)
    10.0
    """

    own_randomness: ClassVar[str] = OWN_RANDOMNESS

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> OpendpGaussianNoise:
        """The least noise that costs at most `budget`; touches no data.

        budget: zCDP or (epsilon, delta). An L2 of 0 is taken as 1. Raises BudgetError for other budgets and for noise
        too wide for 64-bit counts.
        """
        check_request(
            "opendp-gaussian", sensitivity, budget, ("zcdp", "approx"), "ask for Budget.zcdp or Budget.approx"
        )
        sensitivity = unit(sensitivity)
        return OpendpGaussianNoise(scale=_scale(sensitivity, budget), sensitivity=sensitivity, cost=budget)


@lru_cache(maxsize=64)
def _scale(sensitivity: Sensitivity, budget: Budget) -> float:
    """The least sigma at which OpenDP's map fits the budget. Raises BudgetError above 2^31."""

    def fits(tried: float) -> bool:
        return within(lambda: _costs(tried, sensitivity, budget), budget)

    if budget.kind == "zcdp":
        # sigma^2 = L2^2 / (2 rho)
        needed = sensitivity.l2_squared / (2 * budget.rho)
        start = math.sqrt(needed) if needed < MOST**2 else math.inf
    else:
        start = _search(fits, sensitivity.l2)
    if start > MOST:
        raise BudgetError(f"{budget} at L2 = {sensitivity.l2:.6g} needs Gaussian noise too wide for 64-bit counts")
    return smallest(start, fits, budget)


def _search(fits: Callable[[float], bool], l2: float) -> float:
    """The smallest sigma that fits, by bisection of its logarithm to 1 part in 10^12; inf if none up to 2^31 does."""
    low, high = l2 * 2.0**-20, float(MOST)
    if not fits(high):
        return math.inf
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
