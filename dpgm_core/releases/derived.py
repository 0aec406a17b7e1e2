"""Noise of tables computed from released ones: free, and Gaussian to learners."""

from __future__ import annotations

import math
from typing import NoReturn

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import BudgetError
from dpgm_core.noise.contract import DualTerm
from dpgm_core.privacy.budget import Budget, PrivacyEvent

__all__ = ["DerivedNoise"]


class DerivedNoise:
    """A base of the noise of sums and means, to be given a variance and a draw; for learning, never for a release.

    Its density is the Gaussian of the same variance, to which sums of independent noise tend.
    """

    @property
    def cost(self) -> Budget:
        """Raises BudgetError: the releases were paid for, not what is made of them."""
        self._refuse()

    @property
    def event(self) -> PrivacyEvent:
        """Raises BudgetError, like `cost`."""
        self._refuse()

    @property
    def variance(self) -> float:
        """records**2."""
        raise NotImplementedError

    @property
    def dual(self) -> DualTerm | None:
        """The Gaussian's."""
        return DualTerm(bound=math.inf, curvature=self.variance)

    @property
    def support(self) -> tuple[float, float]:
        """The Gaussian's: all numbers."""
        return -math.inf, math.inf

    @property
    def log_concave(self) -> bool:
        """True, as the Gaussian is."""
        return True

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """The Gaussian's, per record."""
        return -(residual**2) / (2 * self.variance) - math.log(2 * math.pi * self.variance) / 2

    def score(self, residual: FloatArray) -> FloatArray:
        """The derivative of `logpdf`."""
        return -residual / self.variance

    def _refuse(self) -> NoReturn:
        raise BudgetError(
            f"{type(self).__name__} costs nothing of its own; ask the releases behind it, `NoisyTables.published`"
        )
