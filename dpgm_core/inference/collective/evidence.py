"""The evidence term of a release, cell by cell: what log p(y|n) is, and its convex conjugate.

With r = y - n and psi(r) = -w log p(y|n) up to a constant, the E-step's dual needs psi*(u) = sup_r u r - psi(r), and
psi(r) + psi*(u) - u r >= 0 (Fenchel and Young) is the duality gap of a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, ratio
from dpgm_core.errors import InferenceError, OptionError, StructureError
from dpgm_core.inference.contract import Engine
from dpgm_core.privacy.mechanism import Noise
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = [
    "DualEvidence",
    "Evidence",
    "GeneralEvidence",
    "check_request",
    "evidence_of",
    "gap_of",
    "match",
    "require_log_concave",
]

# Halvings of an interval of records until nothing is left of it in double precision.
_HALVINGS = 70
# Of a box of multipliers: the differences that second derivatives are taken by.
_SHARE = 1e-4


class Evidence(Protocol):
    """psi = -w log p(y|n) of every cell, as the E-step's solvers need it. All arrays are (cells,)."""

    @property
    def noisy(self) -> FloatArray:
        """y, records."""

    def inside(self, multipliers: FloatArray) -> FloatArray:
        """The nearest multipliers where `conjugate` is finite."""

    def pull(self, residual: FloatArray) -> FloatArray:
        """u = psi'(r), records^-1: where each cell pulls n."""

    def step(self, start: FloatArray, residual: FloatArray, metric: FloatArray) -> FloatArray:
        """argmin_z  psi*(z) - residual . z + |z - start|^2_metric / 2, the proximal step."""

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The box of u = psi'(r): no best multipliers are less or more."""

    def response(self, multipliers: FloatArray) -> FloatArray:
        """psi*'(u), records: the residual at which u = psi'(r), the least in size; within the box."""

    def bend(self, multipliers: FloatArray) -> FloatArray:
        """psi*''(u), records^2, to a few digits; within the box."""

    def misfit(self, residual: FloatArray) -> FloatArray:
        """psi(r), nats, 0 where it is least."""

    def conjugate(self, multipliers: FloatArray) -> FloatArray:
        """psi*(u), nats."""


@frozen(kw_only=True, eq=False)
class DualEvidence:
    """Evidence whose noise has a dual term: psi* is a box of half-width `bound` plus curvature u^2 / 2, closed forms.

    bound: records^-1, infinite for Gaussian noise. curvature: records^2, 0 for Laplace noise; both at weight w (box
    w c, curvature s^2 / w).
    """

    noisy: FloatArray
    bound: FloatArray
    curvature: FloatArray
    _flat: bool = field(init=False)  # psi* is the box alone: Laplace noise throughout

    @_flat.default
    def _has_no_curvature(self) -> bool:
        return not self.curvature.any()

    def inside(self, multipliers: FloatArray) -> FloatArray:
        return np.minimum(np.maximum(multipliers, -self.bound), self.bound)

    def pull(self, residual: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # no curvature: the sign of r, times infinity until it is clipped
            return self.inside(residual / np.maximum(self.curvature, 1e-300))

    def step(self, start: FloatArray, residual: FloatArray, metric: FloatArray) -> FloatArray:
        return self.inside((metric * start + residual) / (metric + self.curvature))

    def ends(self) -> tuple[FloatArray, FloatArray]:
        return -self.bound, self.bound

    def response(self, multipliers: FloatArray) -> FloatArray:
        return self.curvature * multipliers

    def bend(self, multipliers: FloatArray) -> FloatArray:
        return self.curvature

    def misfit(self, residual: FloatArray) -> FloatArray:
        # psi(r) = u r - psi*(u) at u = psi'(r): c |r|, quadratic, or Huber's function of both
        if self._flat:
            return self.bound * np.abs(residual)
        u = self.pull(residual)
        return u * residual - self.conjugate(u)

    def conjugate(self, multipliers: FloatArray) -> FloatArray:
        return self.curvature if self._flat else self.curvature * multipliers**2 / 2


@frozen(kw_only=True, eq=False)
class GeneralEvidence:
    """Evidence of any log-concave noise, through its score and log-density alone, by bisection in each cell.

    Slower than closed forms by some hundred evaluations of the score per inference call. weight: of log p(y|n).
    """

    release: NoisyTables
    weight: float

    @property
    def noisy(self) -> FloatArray:
        return self.release.tables.values.astype(np.float64)

    def inside(self, multipliers: FloatArray) -> FloatArray:
        return multipliers

    def pull(self, residual: FloatArray) -> FloatArray:
        noises = zip(self.release.noise, self.release.structure.slices, strict=True)
        pulled = np.concatenate([-self.weight * noise.score(residual[at]) for noise, at in noises])
        if np.any(np.isnan(pulled)):
            raise InferenceError("the noise's score is NaN for some residual; the mechanism's score() is at fault")
        return pulled

    def step(self, start: FloatArray, residual: FloatArray, metric: FloatArray) -> FloatArray:
        # Moreau: with v = start + residual / metric the step is v - x / metric, where x + metric psi'(x) = metric v.
        target = metric * start + residual
        other_end = target - metric * self.pull(np.zeros_like(target))
        low, high = np.minimum(0.0, other_end), np.maximum(0.0, other_end)
        x = self._bisect(low, high, lambda point: point + metric * self.pull(point) - target)
        return (target - x) / metric

    def ends(self) -> tuple[FloatArray, FloatArray]:
        least, most = self._residuals()
        return self.pull(least), self.pull(most)

    def response(self, multipliers: FloatArray) -> FloatArray:
        # Where psi' stands still there are many; the last of those below 0, the first of those above it.
        def past(point: FloatArray) -> FloatArray:
            pull = self.pull(point)
            return np.where(multipliers > 0, pull >= multipliers, pull > multipliers).astype(np.float64)

        return self._bisect(*self._residuals(), past)

    def bend(self, multipliers: FloatArray) -> FloatArray:
        low, high = self.ends()
        move = _SHARE * (high - low)
        above, below = np.minimum(multipliers + move, high), np.maximum(multipliers - move, low)
        return ratio(self.response(above) - self.response(below), above - below)

    def misfit(self, residual: FloatArray) -> FloatArray:
        return self._psi(residual) - self._psi(np.zeros_like(residual))

    def conjugate(self, multipliers: FloatArray) -> FloatArray:
        best = self._bisect(*self._residuals(), lambda point: self.pull(point) - multipliers)
        return multipliers * best - self.misfit(best)

    def _residuals(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest residual of each cell for n in [0, m N]; psi* by them alone is finite."""
        noisy = self.noisy
        return noisy - np.repeat(self.release.totals, self.release.structure.sizes), noisy

    def _bisect(self, low: FloatArray, high: FloatArray, rising: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return where a non-decreasing function of each cell crosses 0 in [low, high], or the end nearest to that."""
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = rising(middle) > 0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return (low + high) / 2

    def _psi(self, residual: FloatArray) -> FloatArray:
        noises = zip(self.release.noise, self.release.structure.slices, strict=True)
        return np.concatenate([-self.weight * noise.logpdf(residual[at]) for noise, at in noises])


def evidence_of(release: NoisyTables, weight: float) -> DualEvidence | GeneralEvidence:
    """The evidence of a release at weight w, in closed form if every noise in it has a dual term."""
    terms = [noise.dual for noise in release.noise]
    known = [term for term in terms if term is not None]
    if len(known) < len(terms):
        return GeneralEvidence(release=release, weight=weight)
    tables = release.tables
    return DualEvidence(
        noisy=tables.values.astype(np.float64),
        bound=tables.repeat([weight * term.bound for term in known]),
        curvature=tables.repeat([term.curvature / weight for term in known]),
    )


def gap_of(evidence: Evidence, residual: FloatArray, multipliers: FloatArray) -> tuple[float, float, float]:
    """(gap, psi(r), psi*(u)), summed over cells, nats.

    The gap of a cell, psi(r) + psi*(u) - u r, is 0 where u = psi'(r) and never negative but for rounding.
    """
    misfit, conjugate = evidence.misfit(residual), evidence.conjugate(multipliers)
    gaps = np.maximum(misfit + conjugate - multipliers * residual, 0.0)
    return float(gaps.sum()), float(misfit.sum()), float(conjugate.sum())


def match(engine: Engine, evidence: NoisyTables) -> None:
    """Refuse evidence over another structure than the engine's."""
    if not isinstance(evidence, NoisyTables):
        raise InferenceError(f"collective inference needs a release as evidence, got {type(evidence).__name__}")
    if engine.structure != evidence.structure:
        raise StructureError(
            f"the release is over {evidence.structure}, but the engine was compiled for {engine.structure}; "
            "compile the engine for the release's structure"
        )
    require_log_concave(evidence.noise)


def require_log_concave(noises: Sequence[Noise]) -> None:
    """Refuse noise that inference over hidden tables cannot take: bounded, or not log-concave.

    A learner passes this function to `Curator.release(accept=...)`, so that nothing is paid for in vain.

    Parameters
    ----------
    noises : sequence of Noise
        The noise of each table.

    Raises
    ------
    OptionError
        For such noise.
    """
    for noise in noises:
        if not noise.log_concave or noise.support != (-math.inf, math.inf):
            low, high = noise.support
            what = "is not log-concave" if not noise.log_concave else f"ends at {low:g} and {high:g} records"
            raise OptionError(
                "inference over hidden tables (the E-step of cgm-em) needs log-concave noise without bounds, but this "
                f"noise {what}; learn with naive-mle or eb-map instead, which need its variance only"
            )


def check_request(engine: Engine, potentials: Tables, weight: float, start: Tables | None) -> FloatArray:
    """The multipliers to start from, zeros unless given: (cells,).

    Raises StructureError for potentials or a start over another structure, InferenceError for a weight that is not a
    positive, finite number and for a start that is not finite. The engine itself refuses NaN potentials.
    """
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not (0 < weight < math.inf):
        raise InferenceError(f"evidence_weight must be a positive, finite number, got {weight!r}")
    for what, tables in (("potentials", potentials), ("start multipliers", start)):
        if tables is not None and tables.structure != engine.structure:
            raise StructureError(f"the {what} are over {tables.structure}, but the engine is for {engine.structure}")
    if start is None:
        return np.zeros(engine.structure.cells)
    if not np.all(np.isfinite(start.values)):
        raise InferenceError("start must hold finite multipliers, those of an earlier result; it has NaN or infinity")
    return start.values.astype(np.float64)
