"""Protocols of mechanisms and of the noise they calibrate, in units of records.

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
    """The dual form of log p(y|n) in the E-step: |u| <= bound, plus curvature * u**2 / 2 per cell.

    Parameters
    ----------
    bound : float
        Per record; infinite if there is none (Gaussian).
    curvature : float
        records**2; 0 if there is none (Laplace).

    Examples
    --------
    >>> DualTerm(bound=0.5, curvature=0.0).bound
    0.5
    """

    bound: float
    curvature: float


@runtime_checkable
class Noise(Protocol):
    """One calibrated additive noise, independent and identically distributed for each cell.

    Implement it as a frozen attrs class with plain fields.
    """

    @property
    def cost(self) -> Budget:
        """The budget that one release with this noise spends; never more than the noise was calibrated for."""
        ...

    @property
    def event(self) -> PrivacyEvent:
        """The distribution that bounds it for every whole-numbered shift; core computes the least cost from it."""
        ...

    @property
    def variance(self) -> float:
        """The variance of a cell, records**2."""
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
        """Return fresh noise: int64 for exact noise, float64 for textbook noise.

        Parameters
        ----------
        shape : tuple of int
            The shape of the noise.
        randomness : Randomness
            The source of random words.
        """
        ...

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Return the log mass, extended to the reals between whole numbers; -inf off the support.

        Parameters
        ----------
        residual : ndarray
            noisy - true, in records.
        """
        ...

    def score(self, residual: FloatArray) -> FloatArray:
        """Return d logpdf / d residual on the support; a subgradient at kinks."""
        ...


@runtime_checkable
class Mechanism(Protocol):
    """A calibration of noise to a sensitivity and a budget."""

    @property
    def own_randomness(self) -> str | None:
        """Why a seed cannot steer its draws, in words; None when they come from the randomness passed in."""
        ...

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> Noise:
        """Return the noise calibrated to a sensitivity and a budget; touches no data.

        Raises
        ------
        BudgetError
            For budgets that the mechanism cannot serve.
        """
        ...
