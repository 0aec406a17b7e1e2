"""The evidence term of a release, cell by cell: what log p(y|n) is, and its convex conjugate.

With r = y - n and psi(r) = -w log p(y|n) up to a constant, the E-step's dual needs psi*(u) = sup_r u r - psi(r), and
psi(r) + psi*(u) - u r >= 0 (Fenchel and Young) is the duality gap of a cell.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.protocols import Engine
from dpgm_core.releases import NoisyTables
from dpgm_core.tables import FloatArray, Tables

__all__ = ["DualEvidence", "Evidence", "general_evidence", "match"]


@frozen(kw_only=True, eq=False)
class DualEvidence:
    """Evidence whose noise has a dual term: psi* is a box of half-width `bound` plus curvature u^2 / 2.

    noisy: y, (cells,). bound: per cell, records^-1, infinite for Gaussian noise. curvature: records^2, 0 for Laplace.
    """

    noisy: FloatArray
    bound: FloatArray
    curvature: FloatArray

    @classmethod
    def of(cls, release: NoisyTables, weight: float) -> DualEvidence | None:
        """The evidence at weight w (box w c, curvature s^2 / w), or None if some noise has no dual term."""
        terms = [noise.dual for noise in release.noise]
        if any(term is None for term in terms):
            return None
        tables = release.tables
        bounds = [weight * term.bound for term in terms if term is not None]
        curvatures = [term.curvature / weight for term in terms if term is not None]
        return cls(
            noisy=tables.values.astype(np.float64),
            bound=tables.repeat(bounds),
            curvature=tables.repeat(curvatures),
        )

    def clip(self, multipliers: FloatArray) -> FloatArray:
        """The nearest multipliers inside the box."""
        return np.clip(multipliers, -self.bound, self.bound)

    def step(self, start: FloatArray, residual: FloatArray, metric: FloatArray) -> FloatArray:
        """argmin_z  -residual . z + psi*(z) + |z - start|^2_metric / 2: the proximal step, in closed form."""
        return self.clip((metric * start + residual) / (metric + self.curvature))

    def gaps(self, residual: FloatArray, multipliers: FloatArray) -> FloatArray:
        """psi(r) + psi*(u) - u r per cell, >= 0; psi is |r| c for Laplace, quadratic or Huber with curvature."""
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(self.curvature > 0, residual / self.curvature, np.sign(residual) * self.bound)
        best = self.clip(np.where(np.isnan(best), 0.0, best))
        value = best * residual - self.curvature * best**2 / 2
        return value + self.curvature * multipliers**2 / 2 - multipliers * residual

    def conjugate(self, multipliers: FloatArray) -> float:
        """psi*(u), summed; the multipliers must lie in the box."""
        return float(np.sum(self.curvature * multipliers**2) / 2)


@frozen(kw_only=True, eq=False)
class Evidence:
    """Evidence of any noise, through its score and log-density alone; slower. weight: of log p(y|n)."""

    release: NoisyTables
    weight: float

    @property
    def noisy(self) -> FloatArray:
        """y, (cells,)."""
        return self.release.tables.values.astype(np.float64)

    def pull(self, residual: FloatArray) -> FloatArray:
        """u = psi'(r) = -w score(r): where each cell pulls n, (cells,)."""
        parts = [
            -self.weight * noise.score(residual[at])
            for noise, at in zip(self.release.noise, self.release.structure.slices, strict=True)
        ]
        pulled = np.concatenate(parts)
        if np.any(np.isnan(pulled)):
            raise InferenceError("the noise's score is NaN for some residual; the mechanism's score() is at fault")
        return pulled

    def gaps(self, residual: FloatArray, multipliers: FloatArray) -> FloatArray:
        """psi(r) + psi*(u) - u r per cell; psi* by bisection on the monotone psi'."""
        low, high = -np.ones_like(residual), np.ones_like(residual)
        for _ in range(60):  # bracket where psi'(low) <= u <= psi'(high), if it ever gets there
            low = np.where(self.pull(low) > multipliers, 2 * low, low)
            high = np.where(self.pull(high) < multipliers, 2 * high, high)
        for _ in range(100):
            middle = (low + high) / 2
            above = self.pull(middle) > multipliers
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        best = (low + high) / 2
        value = multipliers * best - self._psi(best) + self._psi(residual) - multipliers * residual
        return np.maximum(value, 0.0)

    def _psi(self, residual: FloatArray) -> FloatArray:
        parts = [
            -self.weight * noise.logpdf(residual[at])
            for noise, at in zip(self.release.noise, self.release.structure.slices, strict=True)
        ]
        return np.concatenate(parts)


def general_evidence(release: NoisyTables, weight: float) -> Evidence:
    """Evidence for noise without a dual term."""
    return Evidence(release=release, weight=weight)


def match(engine: Engine, evidence: NoisyTables) -> None:
    """Refuse evidence over another structure than the engine's."""
    if not isinstance(evidence, NoisyTables):
        raise InferenceError(f"collective inference needs a release as evidence, got {type(evidence).__name__}")
    if engine.structure != evidence.structure:
        raise StructureError(
            f"the release is over {evidence.structure}, but the engine was compiled for {engine.structure}; "
            "compile the engine for the release's structure"
        )


def check_weight(weight: float) -> float:
    """A positive, finite evidence weight; InferenceError otherwise."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not (0 < weight < math.inf):
        raise InferenceError(f"evidence_weight must be a positive, finite number, got {weight!r}")
    return float(weight)


def start_values(potentials: Tables, start: Tables | None) -> FloatArray:
    """The multipliers to start from: zeros, or those given."""
    return np.zeros(potentials.structure.cells) if start is None else start.values.astype(np.float64)
