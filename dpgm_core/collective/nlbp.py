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

from dpgm_core.arrays import FloatArray
from dpgm_core.collective.contract import CollectiveBeliefs
from dpgm_core.collective.evidence import check_request, evidence_of, gap_of, match
from dpgm_core.components.options import option
from dpgm_core.components.validators import flag, positive, whole
from dpgm_core.errors import NotConverged
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables

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
        0.5,
        help="the constant step size",
        validator=attrs.validators.and_(positive, attrs.validators.le(1)),
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

        converged is False when it stalled: out of iterations above the tolerance. start is used when multipliers are
        damped; the printed algorithm starts from BP(potentials).
        """
        first = check_request(self._engine, potentials, evidence_weight, start)
        run = _Run(self._engine, self._evidence, potentials, evidence_weight, self._options)
        run.iterate(first)
        if not run.converged and self._options.require_convergence:
            raise NotConverged(
                f"nlbp stalled: after {run.calls} inference calls its measure of convergence is {run.measure:.3g}, "
                f"above {self._options.tolerance:g}; use damp = 'multipliers' with schedule = 'diminishing', "
                "more iterations, or collective-dual"
            )
        mismatch = float(np.abs(run.marginals - run.beliefs.marginals.values).sum()) / self._evidence.total
        return CollectiveBeliefs(
            marginals=Tables(potentials.structure, run.marginals),
            multipliers=Tables(potentials.structure, run.u),
            objective=run.objective,
            gap=run.gap if self._engine.exact and run.certified else None,
            residual=mismatch,
            converged=run.converged,
            calls=run.calls,
        )


class _Run:
    """One run of the fixed point."""

    def __init__(self, engine: Engine, evidence: NoisyTables, potentials: Tables, weight: float, options: Nlbp) -> None:
        self.engine, self.potentials, self.options, self.total = engine, potentials, options, evidence.total
        self.terms = evidence_of(evidence, weight)
        # Damped marginals are not N mu(theta + u) of any u, so no gap speaks about them.
        self.certified = options.damp == "multipliers"
        self.calls = 0
        self.objective = self.gap = math.nan
        self.measure = math.inf
        self.u: FloatArray
        self.marginals: FloatArray
        self.beliefs: Beliefs

    @property
    def converged(self) -> bool:
        return self.beliefs.converged and self.measure <= self.options.tolerance

    def iterate(self, start: FloatArray) -> None:
        """Until converged or out of iterations; the printed algorithm starts from BP(theta) whatever `start` says."""
        damped = self.options.damp == "marginals"
        self._infer(np.zeros_like(start) if damped else self.terms.inside(start))
        self.marginals = self.beliefs.marginals.values
        while self.calls < self.options.iterations and not self.converged:
            rate = self.options.rate if self.options.schedule == "constant" else 2.0 / (self.calls + 1.0)
            pull = self.terms.pull(self.terms.noisy - self.marginals)
            if damped:
                before = self.marginals
                self._infer(pull)
                proposed = self.beliefs.marginals.values
                self.marginals = (1 - rate) * before + rate * proposed
                self.measure = float(np.abs(proposed - before).sum()) / self.total
            else:
                self._infer((1 - rate) * self.u + rate * pull)
                self.marginals = self.beliefs.marginals.values

    def _infer(self, u: FloatArray) -> None:
        self.u = u
        moved = Tables(self.potentials.structure, self.potentials.values + u)
        self.beliefs = self.engine.infer(moved, total=self.total)
        self.calls += 1
        if self.certified:
            residual = self.terms.noisy - self.beliefs.marginals.values
            self.gap, _, conjugate = gap_of(self.terms, residual, u)
            dual = self.total * self.beliefs.log_partition - float(u @ self.terms.noisy) + conjugate
            self.objective = dual - self.gap
            self.measure = self.gap / max(1.0, abs(self.objective))
