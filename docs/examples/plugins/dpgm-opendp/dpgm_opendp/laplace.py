"""The mechanism `opendp-laplace`: discrete Laplace noise drawn by OpenDP."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import opendp.prelude as dp
from attrs import frozen

from dpgm_core import Array, Budget, BudgetError, DualTerm, FloatArray, PrivacyEvent, Randomness, Sensitivity
from dpgm_opendp.measure import (
    LEAST_VARIANCE,
    MOST,
    OWN_RANDOMNESS,
    check_request,
    draw,
    exactly,
    numbers,
    rounded_up,
    smallest,
    unit,
    within,
)

__all__ = ["OpendpLaplace", "OpendpLaplaceNoise"]


@lru_cache(maxsize=64)
def _measurement(scale: float) -> Any:
    """OpenDP's Laplace measurement on vectors of i64 ("int" would be 32 bits) under the L1 distance."""
    return dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=scale)


def _costs(scale: float, l1: int) -> Budget:
    """What OpenDP says that this scale costs, pure."""
    epsilon = exactly(f"Laplace map at scale {scale!r} and L1 = {l1}", lambda: _measurement(scale).map(l1))
    return Budget.pure(epsilon)


@frozen(kw_only=True)
class OpendpLaplaceNoise:
    """Independent discrete Laplace noise of one scale for each cell.

    scale: records, in (0, 2^31]. l1: what it was calibrated to, records. cost: pure epsilon, or the zCDP it implies;
    BudgetError if OpenDP's own map says that it costs more, so that no file can claim less than was spent.

    Privacy: P(z) is proportional to exp(-|z| / scale), so a whole-numbered shift s changes the log probability of any
    output by at most |s|_1 / scale, however s is spread over the cells; OpenDP's map rounds l1 / scale up.

    >>> OpendpLaplaceNoise(scale=2.0, l1=1, cost=Budget.pure("0.5")).dual.bound
    0.5
    """

    scale: float
    l1: int
    cost: Budget

    exact: ClassVar[bool] = True
    unsafe: ClassVar[None] = None
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    log_concave: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale <= MOST:
            raise BudgetError(f"Laplace noise needs a scale in (0, 2**31] records, got {self.scale!r}")
        if not isinstance(self.l1, int) or isinstance(self.l1, bool) or not 1 <= self.l1 <= MOST:
            raise BudgetError(f"Laplace noise needs a whole L1 sensitivity from 1 to 2**31, got {self.l1!r}")
        if not isinstance(self.cost, Budget) or self.cost.kind == "approx":
            raise BudgetError(f"Laplace noise costs pure epsilon or zCDP, not {self.cost}")
        pure = _costs(self.scale, self.l1)
        if not (pure if self.cost.kind == "pure" else pure.to_zcdp()) <= self.cost:
            raise BudgetError(f"OpenDP says that Laplace noise of scale {self.scale} costs {pure}, not {self.cost}")

    @property
    def event(self) -> PrivacyEvent:
        """For the accountant."""
        return PrivacyEvent(kind="discrete-laplace", scale=self.scale, sensitivity=float(self.l1))

    @property
    def variance(self) -> float:
        """records**2 per cell: 2 p / (1 - p)^2 with p = exp(-1 / scale); never 0, despite underflow."""
        rate = 1 / self.scale
        return max(2 * math.exp(-rate) / math.expm1(-rate) ** 2, LEAST_VARIANCE)

    @property
    def dual(self) -> DualTerm:
        """|u| <= 1 / scale."""
        return DualTerm(bound=1 / self.scale, curvature=0.0)

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh int64 noise from OpenDP; OptionError for seeded randomness, which it cannot follow."""
        return draw(_measurement(self.scale), shape, randomness)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """log((1 - p) / (1 + p)) - |residual| / scale, nats.

        >>> noise = OpendpLaplaceNoise(scale=1.0, l1=1, cost=Budget.pure(1))
        >>> round(float(np.exp(noise.logpdf(np.arange(-40, 41))).sum()), 12)
        1.0
        """
        rate = 1 / self.scale
        with np.errstate(over="ignore"):  # then the log density is -inf, as it should be
            slope = np.abs(numbers(residual)) * rate
        # log(1 - p) by whichever of log1p and expm1 keeps its digits
        top = math.log1p(-math.exp(-rate)) if rate > 1 else math.log(-math.expm1(-rate))
        return np.asarray(top - math.log1p(math.exp(-rate)) - slope)

    def score(self, residual: FloatArray) -> FloatArray:
        """-sign(residual) / scale; 0 at the kink."""
        return np.asarray(-np.sign(numbers(residual)) / self.scale)


@frozen(kw_only=True)
class OpendpLaplace:
    """Calibrates to the L1 sensitivity: scale = L1 / epsilon, as a double at which OpenDP's map fits the budget.

    >>> four = Sensitivity(l0=4, l1=4, l2_squared=4, linf=1)
    >>> OpendpLaplace().noise(four, Budget.pure("0.5")).scale
    8.0
    """

    own_randomness: ClassVar[str] = OWN_RANDOMNESS

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> OpendpLaplaceNoise:
        """The least noise that costs at most `budget`; touches no data.

        budget: pure or zCDP, which buys epsilon = sqrt(2 rho). An L1 of 0 is taken as 1. Raises BudgetError for other
        budgets and for noise too wide for 64-bit counts.
        """
        check_request("opendp-laplace", sensitivity, budget, ("pure", "zcdp"), "ask for Budget.pure or Budget.zcdp")
        l1, pure = unit(sensitivity).l1, budget.to_pure()
        if l1 / pure.epsilon > MOST:
            raise BudgetError(f"{budget} at L1 sensitivity {l1} needs Laplace noise too wide for 64-bit counts")
        scale = smallest(rounded_up(l1 / pure.epsilon), lambda tried: within(lambda: _costs(tried, l1), pure), budget)
        return OpendpLaplaceNoise(scale=scale, l1=l1, cost=budget)
