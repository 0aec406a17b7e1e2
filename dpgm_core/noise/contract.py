"""What a mechanism must offer, and the noise it calibrates. Units are records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import frozen

from dpgm_core.randomness import Randomness

if TYPE_CHECKING:
    from dpgm_core.arrays import Array, FloatArray
    from dpgm_core.privacy.budget import Budget, PrivacyEvent
    from dpgm_core.privacy.sensitivity import Sensitivity


__all__ = ["DualTerm", "Mechanism", "Noise"]


@frozen(kw_only=True)
class DualTerm:
    """What log p(y|n) becomes in the dual of the E-step: |u| <= bound, plus curvature * u**2 / 2 per cell.

    bound: per record; infinite if there is none (Gaussian). curvature: records**2; 0 if there is none (Laplace).

    >>> DualTerm(bound=0.5, curvature=0.0).bound
    0.5
    """

    bound: float
    curvature: float


@runtime_checkable
class Noise(Protocol):
    """One calibrated additive noise, independent and equal for each cell. A frozen attrs class with plain fields."""

    @property
    def cost(self) -> Budget:
        """The budget ONE release with this noise spends; never more than what was asked."""
        ...

    @property
    def event(self) -> PrivacyEvent:
        """What an accountant needs to compose it."""
        ...

    @property
    def variance(self) -> float:
        """records**2, per cell."""
        ...

    @property
    def dual(self) -> DualTerm | None:
        """The dual form of logpdf; None when only the general, slower evidence path serves it."""
        ...

    def sample(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise: int64 for exact noise, float64 for textbook noise."""
        ...

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Concave extension of the log mass to the reals; residual = noisy - true."""
        ...

    def score(self, residual: FloatArray) -> FloatArray:
        """d logpdf / d residual; a subgradient at kinks."""
        ...


class Mechanism(Protocol):
    """Calibrates a noise to a sensitivity and a budget."""

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        """Raises BudgetError for budgets it cannot serve; touches no data."""
        ...
