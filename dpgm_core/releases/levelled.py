"""Releases of normalised contributions as learners see them: in persons, all tables of one total.

Weighted tables need not sum to the same: a person may have nothing to add to one and much to another. Learners know
one total only. So each table is multiplied by what brings its own noisy sum to m_g N, and its noise with it; that is
post-processing, and free. The release itself, as saved and shown, stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.curator.contract import Curator, Rounds
from dpgm_core.noise.contract import DualTerm, Noise
from dpgm_core.noise.measurement import Calibration
from dpgm_core.privacy.budget import Budget, PrivacyEvent
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

if TYPE_CHECKING:
    from dpgm_core.privacy.contributions import ClippedScore

__all__ = ["LevelledCurator", "ScaledNoise", "levelled"]


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

    def sample(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise, float64."""
        return self.factor * self.noise.sample(shape, randomness).astype(np.float64)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """That of the noise at residual / factor, per record."""
        return self.noise.logpdf(residual / self.factor) - math.log(self.factor)

    def score(self, residual: FloatArray) -> FloatArray:
        """The derivative of `logpdf`."""
        return self.noise.score(residual / self.factor) / self.factor


def levelled(release: NoisyTables) -> NoisyTables:
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
        calibrations=tuple(
            Calibration(
                noise=ScaledNoise(noise=noise, factor=float(factor)),
                component=None,
                options={},
                sensitivity=release.calibrations[number].sensitivity,
                budget=release.calibrations[number].budget,
            )
            for noise, factor, number in zip(release.noise, factors, release.calibration_of, strict=True)
        ),
        calibration_of=tuple(range(len(factors))),
        contributions=None,
    )


class LevelledCurator:
    """A curator whose releases are `levelled`; `original` gives back what was released."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator
        self._made: list[tuple[NoisyTables, NoisyTables]] = []

    @property
    def structure(self) -> Structure:
        """The model's structure."""
        return self._curator.structure

    @property
    def neighbours(self) -> Neighbours:
        """The declared relation."""
        return self._curator.neighbours

    @property
    def budget(self) -> Budget:
        """What it was given to spend."""
        return self._curator.budget

    @property
    def remaining(self) -> Budget:
        """What it may still spend."""
        return self._curator.remaining

    def release(
        self,
        *,
        budget: Budget | Mapping[Clique, Budget] | None = None,
        cliques: Iterable[Clique] | None = None,
        sampling_rate: float = 1.0,
    ) -> NoisyTables:
        """The curator's release, levelled."""
        original = self._curator.release(budget=budget, cliques=cliques, sampling_rate=sampling_rate)
        view = levelled(original)
        self._made.append((view, original))
        return view

    def rounds(
        self, n: int, *, sampling_rate: float, budget: Budget | None = None, clip: ClippedScore | None = None
    ) -> AbstractContextManager[Rounds]:
        """The curator's rounds; they hold no normalised contributions."""
        return self._curator.rounds(n, sampling_rate=sampling_rate, budget=budget, clip=clip)

    def original(self, view: NoisyTables) -> NoisyTables:
        """The release behind a view; the last one for anything a learner made of its views."""
        behind = (original for seen, original in self._made if seen is view)
        return next(behind, self._made[-1][1] if self._made else view)

    def __repr__(self) -> str:
        return f"LevelledCurator({self._curator!r})"
