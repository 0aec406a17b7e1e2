"""The soft-sign E-step: multipliers from the posterior mean of the noise's score instead of its mode.

For a Gaussian approximation n ~ N(N mu, N Cov) of the hidden tables, Stein's lemma gives E[n|y] = N mu + N Cov u with
u_i = -E[score(y_i - n_i) | y] (ALGORITHMS A.6a). Cells are treated as independent with variance s_i^2 = N mu_i (1 -
mu_i); for Laplace noise of scale b the mean is then u = -c tanh-like in closed form:

    t1 = r/b + log erfc((s/b + r/s)/sqrt 2),  t2 = -r/b + log erfc((s/b - r/s)/sqrt 2),  u = -c tanh((t1 - t2)/2).

A smooth replacement of the sign whose width is the sampling error. No step is longer than the inverse of the largest
eigenvalue of N Cov diag(du/dr), or it chatters: an evidence weight beyond that is gone through in several steps. The
eigenvalue is that of the first tables; where a step that it allows overshoots, it is taken back and halved.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen
from scipy.special import log_ndtr

from dpgm_core._util.arrays import FloatArray
from dpgm_core.components.options import option, whole
from dpgm_core.errors import InferenceError
from dpgm_core.inference.collective.contract import CollectiveBeliefs
from dpgm_core.inference.collective.evidence import DualEvidence, check_request, evidence_of, match
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = ["SoftSign", "SoftSignEngine"]

# A step that ends on a pull the other way, by more than this share of the pull at its start, is halved.
_SLACK = 1e-6
# And later ones lengthen again by this factor.
_FASTER = 1.25


@frozen(kw_only=True)
class SoftSign:
    """The posterior-mean E-step, in as many short steps as are stable; Laplace and Gaussian noise only.

    >>> SoftSign(power_iterations=6).power_iterations
    6
    """

    power_iterations: int = option(4, help="inference pairs spent on the longest stable step", validator=whole)
    max_steps: int = option(200, help="at most this many short steps per E-step", validator=whole)

    def compile(self, engine: Engine, evidence: NoisyTables) -> SoftSignEngine:
        """Bind an engine and a release over the same structure.

        Raises StructureError, or InferenceError for noise that is neither Laplace-like nor Gaussian.
        """
        match(engine, evidence)
        terms = evidence_of(evidence, 1.0)
        if not isinstance(terms, DualEvidence) or np.any((terms.curvature > 0) & np.isfinite(terms.bound)):
            raise InferenceError(
                "soft-sign knows Laplace and Gaussian noise only; use collective-dual for this mechanism"
            )
        return SoftSignEngine(engine, evidence, terms, self)


class SoftSignEngine:
    """`infer` goes through one evidence weight; no state between calls, and `start` is not needed."""

    def __init__(self, engine: Engine, evidence: NoisyTables, terms: DualEvidence, options: SoftSign) -> None:
        self._engine, self._evidence, self._terms, self._options = engine, evidence, terms, options

    def infer(
        self, potentials: Tables, *, evidence_weight: float = 1.0, start: Tables | None = None
    ) -> CollectiveBeliefs:
        """Multipliers u, w times the posterior-mean score along the way, and the marginals N mu(potentials + u).

        objective: what collective-dual maximises, at these tables, which are not its maximum; so there is no gap
        (None). residual is 0 by construction. converged is False when max_steps steps were not enough for the weight.
        Raises InferenceError where the objective is not finite.
        """
        check_request(self._engine, potentials, evidence_weight, start)
        here = self._infer(potentials.values)
        marginals = here.marginals.values
        slope = self._slope(self._terms.noisy - marginals, self._spread(marginals))
        largest, calls = self._largest_eigenvalue(potentials.values, slope)
        # Euler steps on d theta / d w = pull(theta), none longer than is stable
        steps = math.ceil(evidence_weight * max(largest, 1e-300) - 1e-9)
        longest = evidence_weight / max(1, steps)
        u, left, length, tried = np.zeros_like(marginals), float(evidence_weight), longest, 0
        converged = here.converged
        while left > 1e-9 * evidence_weight and tried < self._options.max_steps:
            spread = self._spread(marginals)
            pull = soft_sign(self._terms.noisy - marginals, spread, self._terms)
            step = min(length, left)
            if np.any(np.isnan(pull)):
                raise InferenceError("the posterior-mean score is NaN; the release holds values out of any range")
            ahead = self._infer(potentials.values + (u + step * pull))
            tried += 1
            after = ahead.marginals.values
            moved = after - marginals
            # At a given spread the pull falls from psi, convex in n: a step that still pulls its way has not overshot.
            still = soft_sign(self._terms.noisy - after, spread, self._terms)
            if float(still @ moved) < -_SLACK * abs(float(pull @ moved)):
                length = step / 2
                continue
            here, u, marginals, left = ahead, u + step * pull, after, left - step
            length = min(_FASTER * length, longest)
            converged = converged and here.converged
        misfit = evidence_of(self._evidence, evidence_weight).misfit(self._terms.noisy - marginals)
        objective = self._evidence.total * here.log_partition - float(u @ marginals) - float(misfit.sum())
        if not math.isfinite(objective):
            raise InferenceError("the objective is not finite; the release holds values out of any range")
        return CollectiveBeliefs(
            marginals=Tables(potentials.structure, marginals),
            multipliers=Tables(potentials.structure, u),
            objective=objective,
            gap=None,
            residual=0.0,
            converged=converged and left <= 1e-9 * evidence_weight,
            calls=1 + calls + tried,
        )

    def _spread(self, marginals: FloatArray) -> FloatArray:
        """The sampling error of each cell, records."""
        totals = np.repeat(self._evidence.totals, self._evidence.structure.sizes)
        return np.asarray(np.sqrt(np.maximum(marginals * (1 - marginals / totals), 1e-12)))

    def _slope(self, residual: FloatArray, spread: FloatArray) -> FloatArray:
        """d pull / d residual by central differences, (cells,)."""
        step = 1e-3 * np.maximum(1.0, spread)
        rise = soft_sign(residual + step, spread, self._terms) - soft_sign(residual - step, spread, self._terms)
        return np.asarray(np.maximum(rise / (2 * step), 0.0))

    def _infer(self, theta: FloatArray) -> Beliefs:
        return self._engine.infer(Tables(self._evidence.structure, theta), total=self._evidence.total)

    def _largest_eigenvalue(self, theta: FloatArray, slope: FloatArray) -> tuple[float, int]:
        """Return that of diag(sqrt W) N Cov diag(sqrt W), by power iteration with central differences."""
        root = np.sqrt(slope)
        vector = root / max(float(np.linalg.norm(root)), 1e-300)
        # A fixed, irregular start: no randomness, and not orthogonal to anything in particular.
        vector = vector * (1 + 0.5 * np.cos(np.arange(len(vector))))
        value, calls = 0.0, 0
        for _ in range(self._options.power_iterations):
            direction = root * vector
            length = float(np.abs(direction).max())
            if length == 0.0:
                return 0.0, calls
            h = 1e-3 / length
            up, down = (self._infer(theta + way * h * direction).marginals.values for way in (1, -1))
            moved = (up - down) / (2 * h)
            calls += 2
            product = root * moved
            value = float(np.linalg.norm(product)) / max(float(np.linalg.norm(vector)), 1e-300)
            vector = product / max(float(np.linalg.norm(product)), 1e-300)
        return 1.25 * value, calls  # power iteration approaches from below


def soft_sign(residual: FloatArray, spread: FloatArray, terms: DualEvidence) -> FloatArray:
    """-E[score(r - s Z)] under the posterior, for Laplace (box) or Gaussian (ridge) cells: (cells,), records^-1."""
    pulled = np.empty_like(residual)
    gaussian = terms.curvature > 0
    # Gaussian noise: the posterior mean of r / s^2 is r / (s^2 + N mu (1 - mu)).
    pulled[gaussian] = (residual / (terms.curvature + spread**2))[gaussian]
    laplace = ~gaussian
    r, s, c = residual[laplace], spread[laplace], terms.bound[laplace]
    # log erfc(x / sqrt 2) = log 2 + log_ndtr(-x); the constants cancel in t1 - t2.
    t1 = r * c + log_ndtr(-(s * c + r / s))
    t2 = -r * c + log_ndtr(-(s * c - r / s))
    pulled[laplace] = -c * np.tanh((t1 - t2) / 2)
    return pulled
