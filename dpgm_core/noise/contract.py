"""What a mechanism must offer, and the noise it calibrates. Units are records.

Constants may be declared on the class: `support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)`.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from attrs import frozen

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.randomness import Randomness

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
        """The law that bounds it for every whole-numbered shift; core computes the least cost from it."""
        ...

    @property
    def variance(self) -> float:
        """records**2, per cell."""
        ...

    @property
    def dual(self) -> DualTerm | None:
        """The dual form of logpdf; None when only the general, slower evidence path serves it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether draws are whole numbers (int64), made by exact arithmetic; textbook noise is float64."""
        ...

    @property
    def unsafe(self) -> str | None:
        """Why the guarantee does not hold to the letter, in words; None if it does."""
        ...

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value a draw can take, records; infinite where there is none."""
        ...

    @property
    def log_concave(self) -> bool:
        """Whether logpdf is concave on the support; what follows the likelihood of single cells needs it."""
        ...

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise: int64 for exact noise, float64 for textbook noise."""
        ...

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Log mass, extended to the reals between whole numbers; -inf off the support; residual = noisy - true."""
        ...

    def score(self, residual: FloatArray) -> FloatArray:
        """d logpdf / d residual on the support; a subgradient at kinks."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """Calibrates a noise to a sensitivity and a budget."""

    @property
    def own_randomness(self) -> str | None:
        """Why a seed cannot steer its draws, in words; None when they come from the randomness they are given."""
        ...

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        """Raises BudgetError for budgets it cannot serve; touches no data."""
        ...
