"""Releases of normalised contributions as learners see them: in persons, all tables of one total.

Weighted tables need not sum to the same: a person may have nothing to add to one and much to another. Learners know
one total only. So each table is multiplied by what brings its own noisy sum to m_g N, and its noise with it; that is
post-processing, and free. The release itself, as saved and shown, stays as it was.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve, frozen

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.noise.contract import DualTerm, Noise
from dpgm_core.noise.measurement import Measurement
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables

__all__ = ["ScaledNoise", "equalize_totals"]


@frozen(kw_only=True)
class ScaledNoise:
    """The noise of a table that was multiplied by `factor`; for learning, never for a release.

    >>> from dpgm_core import Sensitivity, make
    >>> noise = make("mechanism", "laplace").noise(Sensitivity(l0=1, l1=60, l2_squared=3600, linf=60), Budget.pure(1))
    >>> ScaledNoise(noise=noise, factor=1 / 60).dual.bound
    1.0
    """

    noise: Noise
    factor: float

    @property
    def cost(self) -> Budget:
        """That of the noise as it was drawn."""
        return self.noise.cost

    @property
    def event(self) -> PrivacyEvent:
        """Scale and sensitivity change together; truncated noise keeps its event, as a bound is whole."""
        event = self.noise.event
        if event.bound is not None:
            return event
        return evolve(event, scale=event.scale * self.factor, sensitivity=event.sensitivity * self.factor)

    @property
    def variance(self) -> float:
        """records**2, per cell."""
        return self.noise.variance * self.factor**2

    @property
    def dual(self) -> DualTerm | None:
        """psi(r / f) has the conjugate psi*(f u)."""
        term = self.noise.dual
        if term is None:
            return None
        return DualTerm(bound=term.bound / self.factor, curvature=term.curvature * self.factor**2)

    @property
    def exact(self) -> bool:
        """False: its values are multiples of the factor."""
        return False

    @property
    def unsafe(self) -> str | None:
        """That of the noise as it was drawn."""
        return self.noise.unsafe

    @property
    def support(self) -> tuple[float, float]:
        """That of the noise, scaled."""
        low, high = self.noise.support
        return low * self.factor, high * self.factor

    @property
    def log_concave(self) -> bool:
        """That of the noise."""
        return self.noise.log_concave

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, float64."""
        return self.factor * self.noise.draw(shape, randomness).astype(np.float64)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """That of the noise at residual / factor, per record."""
        return self.noise.logpdf(residual / self.factor) - math.log(self.factor)

    def score(self, residual: FloatArray) -> FloatArray:
        """The derivative of `logpdf`."""
        return self.noise.score(residual / self.factor) / self.factor


def equalize_totals(release: NoisyTables) -> NoisyTables:
    """The release in persons, each group's table brought to m_g N by its own noisy sum; itself if it counts records.

    The sampling variance that learners derive from `total`, one record drawn per person, is nominal: a person's rows
    count together as one.
    """
    if release.contributions is None:
        return release
    structure = release.structure
    factors = release.total * np.asarray(structure.multiplicities, np.float64) / release.totals
    return evolve(
        release,
        tables=Tables(structure, release.tables.values * release.tables.repeat(factors)),
        measurement=Measurement(
            structure=structure,
            calibrations=tuple(
                evolve(
                    release.calibrations[number],
                    noise=ScaledNoise(noise=noise, factor=float(factor)),
                    component=None,
                    options={},
                )
                for noise, factor, number in zip(release.noise, factors, release.measurement.of_group, strict=True)
            ),
            of_group=tuple(range(len(factors))),
            together=release.measurement.together,
        ),
        terms=evolve(release.terms, contributions=None),
        original=release,
    )
