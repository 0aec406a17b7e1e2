"""Non-linear belief propagation: the papers' fixed point for the E-step, as printed and in convergent forms.

Algorithm 1 of Bernstein et al. (2017): theta' = theta + grad_n log p(y|n); n' = BP(theta'); n <- (1 - alpha) n +
alpha n'. For Laplace noise the gradient is a sign, so with constant alpha the iteration stalls at a distance of order
alpha (ALGORITHMS A.2, A.3). Damping the multipliers u instead of n, with alpha_t = 2 / (t + 2), is Frank and Wolfe's
method on the smooth dual and converges.
"""

from __future__ import annotations

import math
from typing import Literal

import attrs
import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.components.options import flag, option, positive, whole
from dpgm_core.errors import InferenceError, NotConverged
from dpgm_core.inference.collective.contract import CollectiveBeliefs
from dpgm_core.inference.collective.evidence import check_request, evidence_of, gap_of, match
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = ["Nlbp", "NlbpEngine"]


@frozen(kw_only=True)
class Nlbp:
    """The E-step's fixed point over any base engine, damped.

    >>> Nlbp(damp="marginals", schedule="constant", rate=0.5).rate
    0.5
    """

    damp: Literal["multipliers", "marginals"] = option(
        "multipliers", help="what is averaged: the multipliers (convergent) or the marginals (as printed)"
    )
    schedule: Literal["diminishing", "constant"] = option(
        "diminishing", help="step sizes: 2 / (t + 2), or the constant `rate` (as printed)"
    )
    rate: float = option(
        0.5, help="the constant step size", validator=attrs.validators.and_(positive, attrs.validators.le(1))
    )
    iterations: int = option(500, help="at most this many inference calls", validator=whole)
    tolerance: float = option(
        1e-4,
        help="converged when the duality gap is below this times max(1, |objective|), or, where there is no gap, when "
        "a step moves no more than this share of the records",
        validator=positive,
    )
    require_convergence: bool = option(
        False, help="raise NotConverged instead of returning where it stalled", validator=flag
    )

    def compile(self, engine: Engine, evidence: NoisyTables) -> NlbpEngine:
        """Bind an engine and a release over the same structure. Raises InferenceError or StructureError."""
        match(engine, evidence)
        return NlbpEngine(engine, evidence, self)


class NlbpEngine:
    """`infer` runs the fixed point; no state between calls."""

    def __init__(self, engine: Engine, evidence: NoisyTables, options: Nlbp) -> None:
        self._engine, self._evidence, self._options = engine, evidence, options

    def infer(
        self, potentials: Tables, *, evidence_weight: float = 1.0, start: Tables | None = None
    ) -> CollectiveBeliefs:
        """Marginals n and multipliers u, with residual |n - N mu(potentials + u)|_1 / N.

        converged is False when it stalled: out of iterations above the tolerance. Even then the objective is no worse
        than at the start; of damped marginals it is a bound from below. start is used when multipliers are damped; the
        printed algorithm starts from BP(potentials). Raises InferenceError where the objective is not finite.
        """
        first = check_request(self._engine, potentials, evidence_weight, start)
        run = _Run(self._engine, self._evidence, potentials, evidence_weight, self._options)
        point = run.iterate(first)
        converged = run.is_converged(point)
        if not converged and self._options.require_convergence:
            raise NotConverged(
                f"nlbp stalled: after {run.calls} inference calls its measure of convergence is {point.measure:.3g}, "
                f"above {self._options.tolerance:g}; use damp = 'multipliers' with schedule = 'diminishing', "
                "more iterations, or collective-dual"
            )
        mismatch = float(np.abs(point.marginals - point.beliefs.marginals.values).sum()) / self._evidence.total
        return CollectiveBeliefs(
            marginals=Tables(potentials.structure, point.marginals),
            multipliers=Tables(potentials.structure, point.u),
            objective=point.objective,
            gap=point.gap if self._engine.exact and run.certified else None,
            residual=mismatch,
            converged=converged,
            calls=run.calls,
        )


@frozen(kw_only=True, eq=False)
class _Point:
    """A place of the fixed point: n, the u of the last inference call, and what that gave.

    worth: theta.n + H(n) at least, nats; concave in n, so that of an average is no less than the average of worths.
    """

    u: FloatArray
    marginals: FloatArray
    beliefs: Beliefs
    worth: float
    objective: float
    gap: float
    measure: float


class _Run:
    """One run of the fixed point."""

    def __init__(self, engine: Engine, evidence: NoisyTables, potentials: Tables, weight: float, options: Nlbp) -> None:
        self.engine, self.potentials, self.options, self.total = engine, potentials, options, evidence.total
        self.terms = evidence_of(evidence, weight)
        # Damped marginals are not N mu(theta + u) of any u, so no gap speaks about them.
        self.certified = options.damp == "multipliers"
        self.calls = 0

    def is_converged(self, point: _Point) -> bool:
        return point.beliefs.converged and point.measure <= self.options.tolerance

    def iterate(self, start: FloatArray) -> _Point:
        """Return the last point; the printed algorithm starts from BP(theta) whatever `start` is.

        Of noise whose score has no bound a constant rate can lead ever further from the tables. So a step that ends
        below where all began is taken back, and halves the rate; diminishing rates recover by themselves, and where
        they did not the best on the way is taken. theta.n + H(n) is greatest at BP(theta): whatever is no worse than
        that heeds the evidence.
        """
        damped, constant = not self.certified, self.options.schedule == "constant"
        here = self._at(np.zeros_like(start) if damped else self.terms.inside(start))
        first = best = here = attrs.evolve(here, gap=math.nan, measure=math.inf) if damped else here
        rate = self.options.rate
        while self.calls < self.options.iterations and not self.is_converged(here):
            if not constant:
                rate = 2.0 / (self.calls + 1.0)
            pull = self.terms.pull(self.terms.noisy - here.marginals)
            ahead = self._averaged(here, pull, rate) if damped else self._at((1 - rate) * here.u + rate * pull)
            if constant and ahead.objective < first.objective:
                rate /= 2
                continue
            here = ahead
            if here.objective > best.objective:
                best = here
        return here if self.is_converged(here) or here.objective >= first.objective else best

    def _at(self, u: FloatArray) -> _Point:
        """N mu(theta + u)."""
        self.calls += 1
        beliefs = self.engine.infer(Tables(self.potentials.structure, self.potentials.values + u), total=self.total)
        marginals = beliefs.marginals.values
        residual = self.terms.noisy - marginals
        gap, misfit, _ = gap_of(self.terms, residual, u)
        worth = self.total * beliefs.log_partition - float(u @ marginals)
        objective = worth - misfit
        if not (math.isfinite(objective) and math.isfinite(gap)):
            raise InferenceError(
                "nlbp: the objective is not finite; the release, or what its mechanism says, is at fault"
            )
        measure = gap / max(1.0, abs(objective))
        return _Point(
            u=u, marginals=marginals, beliefs=beliefs, worth=worth, objective=objective, gap=gap, measure=measure
        )

    def _averaged(self, before: _Point, pull: FloatArray, rate: float) -> _Point:
        """(1 - rate) n + rate N mu(theta + pull)."""
        proposed = self._at(pull)
        marginals = (1 - rate) * before.marginals + rate * proposed.marginals
        worth = (1 - rate) * before.worth + rate * proposed.worth
        return attrs.evolve(
            proposed,
            marginals=marginals,
            worth=worth,
            objective=worth - float(np.sum(self.terms.misfit(self.terms.noisy - marginals))),
            gap=math.nan,
            measure=float(np.abs(proposed.marginals - before.marginals).sum()) / self.total,
        )
