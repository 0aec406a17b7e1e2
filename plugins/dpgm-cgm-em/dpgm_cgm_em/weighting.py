"""Weights of the tables' evidence on EM's path, where their noise is unequal.

A round moves no potential of a table by more than the bound c of its noise's score, so that in the time the quietest
table takes one of ten times the noise goes a tenth of the way: it is starved, or the quiet ones overfit. But how far
potentials may go, tau, is about the model and not about noise. So each table's evidence is weighted by what brings its
bound to the largest: every table has the capacity tau, and loses its pull where its residual is what its noise leaves.
"""

from __future__ import annotations

import math

from attrs import evolve, frozen

from dpgm_core import Array, Budget, DualTerm, FloatArray, Measurement, Noise, NoisyTables, PrivacyEvent, Randomness
from dpgm_core.learning import consistent

__all__ = ["WeightedNoise", "weight_tables", "score_bound", "slowness"]


@frozen(kw_only=True)
class WeightedNoise:
    """A noise whose log-density counts `weight` times; for EM's path, never for a release."""

    noise: Noise
    weight: float

    @property
    def cost(self) -> Budget:
        """The noise's."""
        return self.noise.cost

    @property
    def event(self) -> PrivacyEvent:
        """The noise's."""
        return self.noise.event

    @property
    def variance(self) -> float:
        """The noise's, records**2."""
        return self.noise.variance

    @property
    def dual(self) -> DualTerm | None:
        """w psi has the conjugate w psi*(u / w)."""
        term = self.noise.dual
        if term is None:
            return None
        return DualTerm(bound=term.bound * self.weight, curvature=term.curvature / self.weight)

    @property
    def exact(self) -> bool:
        """The noise's."""
        return self.noise.exact

    @property
    def unsafe(self) -> str | None:
        """The noise's."""
        return self.noise.unsafe

    @property
    def support(self) -> tuple[float, float]:
        """The noise's."""
        return self.noise.support

    @property
    def log_concave(self) -> bool:
        """The noise's."""
        return self.noise.log_concave

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """The noise's."""
        return self.noise.draw(shape, randomness)

    def logpdf(self, residual: FloatArray) -> FloatArray:
        """Weighted, so no density."""
        return self.weight * self.noise.logpdf(residual)

    def score(self, residual: FloatArray) -> FloatArray:
        """The derivative of `logpdf`."""
        return self.weight * self.noise.score(residual)


def weight_tables(release: NoisyTables) -> NoisyTables:
    """The release with the evidence of each table weighted by its slowness; itself where all noise is equal.

    At one pace a loud table would pull as hard as a quiet one that contradicts it. So what they share is settled first,
    by generalised least squares.
    """
    weights = slowness(release)
    if all(weight == 1.0 for weight in weights):
        return release
    calibrations = tuple(
        evolve(
            release.calibrations[number], noise=WeightedNoise(noise=noise, weight=weight), component=None, options={}
        )
        for number, noise, weight in zip(release.measurement.of_group, release.noise, weights, strict=True)
    )
    measured = Measurement(
        structure=release.structure, calibrations=calibrations, of_group=tuple(range(len(calibrations)))
    )
    return evolve(release, tables=consistent(release.tables, release.variances), measurement=measured)


def slowness(release: NoisyTables) -> list[float]:
    """Return, for each table, how many rounds it needs for what the least noisy does in one: at least 1."""
    bounds = [_bound(noise) for noise in release.noise]
    return [max(bounds) / bound for bound in bounds]


def score_bound(release: NoisyTables) -> float:
    """c of the quietest table, 1 / records: eps / |C| for Laplace noise."""
    return max(map(_bound, release.noise))


def _bound(noise: Noise) -> float:
    """The largest derivative of log p(y|n) in a cell.

    Gaussian noise has no bound; its mean absolute score sqrt(2 / (pi variance)) stands in for it.
    """
    term = noise.dual
    finite = term is not None and math.isfinite(term.bound)
    return term.bound if term is not None and finite else math.sqrt(2 / (math.pi * noise.variance))
