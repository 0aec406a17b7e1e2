"""Protocols of collective inference and the value it returns."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

from dpgm_core.inference.contract import Engine
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.tables import Tables

__all__ = ["Collective", "CollectiveBeliefs", "CollectiveEngine"]


@frozen(kw_only=True)
class CollectiveBeliefs:
    """Result of inference over the hidden true tables.

    Attributes
    ----------
    marginals : Tables
        The tables n; they sum to the evidence's total.
    multipliers : Tables
        The dual variables u, nats per record.
    objective : float
        A lower bound of the maximised objective at these tables, nats; finite.
    gap : float or None
        Duality gap, nats; None if the engine has no certificate.
    residual : float
        Change of the last step.
    calls : int
        Calls of the base engine.
    """

    marginals: Tables
    multipliers: Tables
    objective: float
    gap: float | None
    residual: float
    converged: bool
    calls: int


class CollectiveEngine(Protocol):
    """Maximiser of theta.n + H(n) + weight * log p(y|n) for one fixed release."""

    def infer(
        self, potentials: Tables, *, evidence_weight: float = 1.0, start: Tables | None = None
    ) -> CollectiveBeliefs:
        """Return the maximiser for these potentials, from the multipliers `start` of an earlier call, if any."""


class Collective(Protocol):
    """Factory of inference over hidden true tables (nlbp, collective-dual) around any plain engine."""

    def compile(self, engine: Engine, evidence: NoisyTables) -> CollectiveEngine:
        """Return an engine for the release; each measured clique must lie in one of the engine's cliques."""
