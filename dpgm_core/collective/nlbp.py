"""Non-linear belief propagation: the papers' fixed point for the E-step, as printed and in convergent forms.

Algorithm 1 of Bernstein et al. (2017): theta' = theta + grad_n log p(y|n); n' = BP(theta'); n <- (1 - alpha) n +
alpha n'. For Laplace noise the gradient is a sign, so with constant alpha the iteration stalls at a distance of order
alpha (ALGORITHMS A.2, A.3). Damping the multipliers u instead of n, with alpha_t = 2 / (t + 2), is Frank and Wolfe's
method on the smooth dual and converges.
"""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np
from attrs import frozen

from dpgm_core.collective.evidence import DualEvidence, Evidence, check_weight, match, start_values
from dpgm_core.errors import NotConverged
from dpgm_core.options import option
from dpgm_core.protocols import Beliefs, CollectiveBeliefs, Engine
from dpgm_core.releases import NoisyTables
from dpgm_core.tables import FloatArray, Tables

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
        validator=attrs.validators.and_(attrs.validators.gt(0), attrs.validators.le(1)),
    )
    iterations: int = option(500, help="at most this many inference calls", validator=attrs.validators.ge(1))
    tolerance: float = option(
        1e-4,
        help="converged when a step changes no more than this share of all records",
        validator=attrs.validators.gt(0),
    )
    require_convergence: bool = option(False, help="raise NotConverged instead of returning where it stalled")

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
        """Marginals n and multipliers u; residual = |n - N mu(potentials + u)|_1 / N of the last step.

        converged is False when the residual stalled above the tolerance. start is used when multipliers are damped;
        the printed algorithm starts from BP(potentials).
        """
        terms = Evidence(release=self._evidence, weight=check_weight(evidence_weight))
        settings, total = self._options, self._evidence.total
        u = start_values(potentials, start)
        beliefs = self._call(potentials, u)
        marginals = beliefs.marginals.values
        calls, residual = 1, np.inf
        while calls < settings.iterations and residual > settings.tolerance:
            rate = settings.rate if settings.schedule == "constant" else 2.0 / (calls + 1.0)
            pull = terms.pull(terms.noisy - marginals)
            if settings.damp == "marginals":
                u = pull
                beliefs = self._call(potentials, u)
                proposed = beliefs.marginals.values
                # how far the fixed point n = BP(theta + grad log p(y|n)) is from holding
                residual = float(np.abs(proposed - marginals).sum()) / total
                marginals = (1 - rate) * marginals + rate * proposed
            else:
                u = (1 - rate) * u + rate * pull
                beliefs = self._call(potentials, u)
                residual = float(np.abs(beliefs.marginals.values - marginals).sum()) / total
                marginals = beliefs.marginals.values
            calls += 1
        converged = residual <= settings.tolerance
        if not converged and settings.require_convergence:
            raise NotConverged(
                f"nlbp stalled: after {calls} inference calls a step still moves {residual:.3g} of the records, above "
                f"{settings.tolerance:g}; use damp = 'multipliers' with schedule = 'diminishing', more iterations, "
                "or collective-dual"
            )
        mismatch = float(np.abs(marginals - beliefs.marginals.values).sum()) / total
        objective, gap = self._certify(potentials, u, beliefs, evidence_weight)
        exact = self._engine.exact and settings.damp == "multipliers"
        return CollectiveBeliefs(
            marginals=Tables(potentials.structure, marginals),
            multipliers=Tables(potentials.structure, u),
            objective=objective,
            gap=gap if exact else None,
            residual=mismatch if settings.damp == "marginals" else 0.0,
            converged=converged,
            calls=calls,
        )

    def _call(self, potentials: Tables, u: FloatArray) -> Beliefs:
        moved = Tables(potentials.structure, potentials.values + u)
        return self._engine.infer(moved, total=self._evidence.total)

    def _certify(self, potentials: Tables, u: FloatArray, beliefs: Beliefs, weight: float) -> tuple[float, float]:
        terms = DualEvidence.of(self._evidence, weight)
        if terms is None:
            return float("nan"), float("nan")
        residual = terms.noisy - beliefs.marginals.values
        gap = float(np.sum(terms.gaps(residual, u)))
        dual = self._evidence.total * beliefs.log_partition - float(u @ terms.noisy) + terms.conjugate(u)
        return dual - gap, gap
