"""What inference over hidden true tables must offer, and what it gives back."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

from dpgm_core.inference.contract import Engine
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables

__all__ = ["Collective", "CollectiveBeliefs", "CollectiveEngine"]


@frozen(kw_only=True)
class CollectiveBeliefs:
    """Inference over the hidden true tables.

    marginals: the tables n, summing to the evidence's total. multipliers: the dual variables u, in nats per record.
    objective: what is maximised, nats, at these tables or below; finite. gap: duality gap, nats (None if the engine has
    no certificate). residual: change of the last step. calls: base inference calls spent.
    """

    marginals: Tables
    multipliers: Tables
    objective: float
    gap: float | None
    residual: float
    converged: bool
    calls: int


class CollectiveEngine(Protocol):
    """Maximises theta.n + H(n) + weight * log p(y|n) for one fixed release."""

    def infer(
        self, potentials: Tables, *, evidence_weight: float = 1.0, start: Tables | None = None
    ) -> CollectiveBeliefs:
        """The maximiser for these potentials; start: multipliers of an earlier call, to begin from."""
        ...


class Collective(Protocol):
    """Inference over hidden true tables (nlbp, collective-dual); wraps any plain engine."""

    def compile(self, engine: Engine, evidence: NoisyTables) -> CollectiveEngine:
        """All work that depends on the release once; each clique measured lies in one of the engine's."""
        ...
