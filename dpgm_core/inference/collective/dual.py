"""The dual problem of collective inference, by quasi-Newton steps."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.components.options import flag, option, positive, whole
from dpgm_core.errors import InferenceError, NotConverged
from dpgm_core.inference.collective.contract import CollectiveBeliefs
from dpgm_core.inference.collective.evidence import DualEvidence, Evidence, check_request, evidence_of, gap_of, match
from dpgm_core.inference.contract import Engine
from dpgm_core.inference.quasi_newton import Secants
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = ["CollectiveDual", "CollectiveDualEngine"]


# --- The exact E-step -----------------------------------------------------------------------------
# Bernstein et al. (2017), Problem (6):  max over n in the scaled marginal polytope of  theta.n + H(n) + w log p(y|n).
# Writing -w log p(y|n) = psi(y - n) = max_u u.(y - n) - psi*(u) and exchanging (Sion) gives
#
#     min_u  D(u) = N A(theta + u) - u.y + psi*(u),      n(u) = N mu(theta + u),
#
# smooth apart from the separable psi* (a box for Laplace noise, a ridge for Gaussian). n(u) is feasible for every u, so
# D(u) - primal(n(u)) = sum of psi(r) + psi*(u) - u r with r = y - n(u) bounds the error at every step. Convex, and the
# certificate holds, for every engine that is exact; nothing needs a decomposable model.
#
# A box keeps each step's multipliers small, and accelerated projected gradients need few calls. Without one in some
# table (Gaussian noise, alone or among others) a step can lead all the way from the uniform model to the fit, over
# which N mu changes by orders of magnitude: there projected quasi-Newton descent with a line search solves it.

# Where the local Lipschitz constant starts, in units of the metric N mu; at most the number of cliques.
_FIRST_CURVATURE = 2.0
# A fit without any misfit asks for no gap at all; the share is not followed further down than this.
_ROUNDING = 1e-4
# A step along which the curvature is more than so many times what was assumed is taken back; under a box none is.
_TOO_FAR = 20.0
# So many calls of a descent without a gap below this share of the least one before are a stall.
_PATIENCE = 300
_FALL = 0.99
# Quasi-Newton descent: pairs kept, the first step's length at most in nats, the least decrease as a share of what the
# slope promises, the steepest rise at the end of a step as a share of the slope at its start.
_MEMORY = 30
_REACH = 2.0
_DECREASE = 1e-4
_RISE = 0.5


@frozen(kw_only=True)
class CollectiveDual:
    """Exact inference over the hidden tables, to a relative duality gap; any base engine.

    >>> CollectiveDual(tolerance=1e-8).tolerance
    1e-08
    """

    tolerance: float = option(
        1e-4, help="stop when the duality gap is below this times max(1, |objective|)", validator=positive
    )
    share: float = option(
        0.3,
        help="and below this share of the evidence term: where N is large, the objective is almost all entropy",
        validator=positive,
    )
    max_calls: int = option(2000, help="at most this many inference calls", validator=whole)
    require_convergence: bool = option(
        False, help="raise NotConverged instead of returning the best point found", validator=flag
    )

    def compile(self, engine: Engine, evidence: NoisyTables) -> CollectiveDualEngine:
        """Bind an engine and a release over the same structure. Raises InferenceError or StructureError."""
        match(engine, evidence)
        return CollectiveDualEngine(engine, evidence, self)


class CollectiveDualEngine:
    """`infer` solves one E-step; no state between calls (pass `start` for a warm start)."""

    def __init__(self, engine: Engine, evidence: NoisyTables, options: CollectiveDual) -> None:
        self._engine, self._evidence, self._options = engine, evidence, options

    def infer(
        self, potentials: Tables, *, evidence_weight: float = 1.0, start: Tables | None = None
    ) -> CollectiveBeliefs:
        """Marginals n, summing to the release's total, and multipliers u with n = N mu(potentials + u).

        evidence_weight: w > 0; K merged EM steps are one step with w = K. start: multipliers to start from. gap is
        None when the engine is approximate: then it certifies nothing, and converged means stationary.
        """
        first = check_request(self._engine, potentials, evidence_weight, start)
        terms = evidence_of(self._evidence, evidence_weight)
        solve = _Solver(self._engine, potentials, terms, self._evidence.total, self._options)
        solve.run(terms.inside(first))
        if not solve.converged and self._options.require_convergence:
            raise NotConverged(
                f"collective-dual stopped after {solve.calls} inference calls at a duality gap of {solve.gap:.3g}, "
                f"above {solve.allowed():.3g}; raise max_calls or tolerance, or take smaller steps (more `steps`)"
            )
        return CollectiveBeliefs(
            marginals=Tables(potentials.structure, solve.marginals),
            multipliers=Tables(potentials.structure, solve.multipliers),
            objective=solve.dual - solve.gap,
            gap=solve.gap if self._engine.exact else None,
            residual=0.0,
            converged=solve.converged,
            calls=solve.calls,
        )


class _Solver:
    """One run: counts calls and keeps the point with the smallest gap."""

    def __init__(
        self, engine: Engine, potentials: Tables, terms: Evidence, total: float, options: CollectiveDual
    ) -> None:
        self.engine, self.theta, self.terms, self.total, self.options = engine, potentials, terms, total, options
        self.calls = 0
        self.fallen = 0  # the call at which the gap was last seen to fall
        self.gap = self.dual = self.misfit = math.inf
        self.value = math.inf  # D at the last point; `dual` is D at the best
        self.settled = False  # whether the base engine converged at the best point
        self.multipliers: FloatArray = np.zeros(0)
        self.marginals: FloatArray = np.zeros(0)

    @property
    def converged(self) -> bool:
        return self.settled and self.gap <= self.allowed()

    @property
    def ended(self) -> bool:
        return self.converged or self.calls >= self.options.max_calls

    @property
    def stalled(self) -> bool:
        """Ended, or descending among values that double precision cannot tell apart."""
        return self.ended or self.calls >= self.fallen + _PATIENCE

    def allowed(self) -> float:
        """The largest gap that counts as converged, nats."""
        relative = self.options.tolerance * max(1.0, abs(self.dual - self.gap))
        return min(relative, max(self.options.share * self.misfit, _ROUNDING * relative))

    def evaluate(self, u: FloatArray) -> FloatArray:
        """One inference call: the residual r = y - N mu(theta + u), with the best point kept."""
        beliefs = self.engine.infer(Tables(self.theta.structure, self.theta.values + u), total=self.total)
        self.calls += 1
        marginals = beliefs.marginals.values
        residual = self.terms.noisy - marginals
        gap, misfit, conjugate = gap_of(self.terms, residual, u)
        # D(u) = N A(theta + u) - u.y + psi*(u)
        self.value = self.total * beliefs.log_partition - float(u @ self.terms.noisy) + conjugate
        if not (math.isfinite(gap) and math.isfinite(self.value)):
            raise InferenceError("the duality gap is not finite; the release or the noise's dual term is at fault")
        if gap < self.gap:
            if gap < _FALL * self.gap:
                self.fallen = self.calls
            self.dual = self.value
            self.gap, self.misfit, self.settled = gap, misfit, beliefs.converged
            self.multipliers, self.marginals = u, marginals
        return residual

    def _metric(self, residual: FloatArray) -> FloatArray:
        return np.maximum(self.terms.noisy - residual, 1.0)

    def run(self, u: FloatArray) -> None:
        """Solve from these multipliers until converged, out of calls or at rounding level."""
        low, high = self.terms.ends()
        wide = np.isinf(high) if isinstance(self.terms, DualEvidence) else high - low >= 2 * _REACH
        if np.any(wide):
            self._descend(np.clip(u, low, high), low, high, wide)
        else:
            self._accelerate(u)

    def _descend(self, u: FloatArray, low: FloatArray, high: FloatArray, wide: Array) -> None:
        """Quasi-Newton descent where psi* is smooth in the box; the metric diag(N mu) + psi*'' is taken at each point.

        D is convex, so a step that ends on a falling slope has not gone too far; one that ends on too steep a rise, or
        lowers D too little, is shortened to where the slope, interpolated, is 0. Steps are cut off at the box, and
        multipliers that it holds take no part in the direction (Kim, Sra and Dhillon 2010).
        """
        residual, secants, reach = self.evaluate(u), Secants(_MEMORY), _REACH
        response = self.terms.response(u)
        # A start that is the last step of a path, before which r = psi*'(u), overshoots where it closed the distance.
        far = np.where(wide, u, 0.0)
        pull, rise = float(far @ response), float(far @ (response - residual))
        if rise > pull and not self.stalled:
            u = u - far + far * (pull / (pull + rise))
            residual, response = self.evaluate(u), self.terms.response(u)
        while not self.stalled:
            gradient, value = response - residual, self.value
            free = ((u > low) | (gradient < 0)) & ((u < high) | (gradient > 0))
            metric = _FIRST_CURVATURE * self._metric(residual) + self.terms.bend(u)
            direction = secants.descent(gradient, metric, free)
            out = ((u <= low) & (direction < 0)) | ((u >= high) & (direction > 0))  # of the box
            direction = np.where(out, 0.0, direction)
            if float(gradient @ direction) > 0:
                secants = Secants(_MEMORY)
                direction = secants.descent(gradient, metric, free)
            largest = float(np.abs(np.clip(direction, low - u, high - u)).max())
            length = min(1.0, reach / largest) if largest > 0 else 0.0
            reach *= 2.0  # of steps that need no shortening: contradictions in y alone can call for a huge u
            rounding = 1e-15 * (abs(value) + self.total)
            while True:
                step = np.clip(length * direction, low - u, high - u)
                if np.array_equal(u + step, u):
                    return  # nowhere left to go: the gap is at rounding level
                slope = float(gradient @ step)
                if slope >= 0:  # so much of it was cut off; the shorter, the less
                    length /= 2
                    continue
                residual, response = self.evaluate(u + step), self.terms.response(u + step)
                slope_after = float((response - residual) @ step)
                lower = self.value <= value + _DECREASE * slope + rounding
                if slope_after <= 0 or (slope_after <= -_RISE * slope and lower):
                    break
                if self.stalled:
                    return
                length *= min(max(slope / (slope - slope_after), 0.05), 0.7)
                reach = max(_REACH, length * largest)
            u = u + step
            secants.add(step, response - residual - gradient)

    def _accelerate(self, u: FloatArray) -> None:
        """Nesterov's second method (Auslender and Teboulle 2006), whose points all stay where psi* is finite.

        The metric diag(N mu) is the natural one: Cov(T) is at most (number of cliques) * diag(mu). The local curvature
        is measured on the way; when the momentum points uphill it restarts (O'Donoghue and Candes 2015), and the metric
        is taken anew.
        """
        residual = self.evaluate(u)
        metric = self._metric(residual)
        x = z = y = u
        curvature, momentum = _FIRST_CURVATURE, 1.0
        while not self.ended:
            ahead = self.terms.step(z, residual, momentum * curvature * metric)
            fresh = (1 - momentum) * x + momentum * ahead
            if float(np.sum(metric * (y - fresh) * (fresh - x))) > 0:
                momentum, metric = 1.0, self._metric(residual)
                ahead = fresh = self.terms.step(y, residual, curvature * metric)
            momentum_after = (math.sqrt(momentum**4 + 4 * momentum**2) - momentum**2) / 2
            point = (1 - momentum_after) * fresh + momentum_after * ahead
            step = point - y
            length = float(np.sum(metric * step**2))
            if length == 0.0:
                return  # nowhere left to go: the gap is at rounding level
            residual_after = self.evaluate(point)
            # (grad D(y') - grad D(y)).(y' - y) along the step, the smooth part only
            measured = float((residual - residual_after) @ step) / length
            if measured > _TOO_FAR * curvature:
                x = z = y
                curvature, momentum, metric = 8 * curvature, 1.0, self._metric(residual)
                continue
            curvature = max(1.5 * curvature, measured) if measured > curvature else max(0.9 * curvature, 1e-3)
            x, z, y, residual, momentum = fresh, ahead, point, residual_after, momentum_after
