"""Results of a session's votes: a graph or nothing, and the cost. Safe to publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core.arrays import IntArray
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.votes import Voter
from dpgm_core.structure import Clique

__all__ = ["Verdict"]


@frozen(kw_only=True, repr=False)
class Verdict:
    """The graph that votes agreed on, or nothing: how many voted for what never leaves the curator.

    voter: what voted. budget: what it cost, (epsilon, delta). edges: the pairs of the graph, none perhaps; None: the
    votes were not stable enough to tell.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.privacy.votes import ThresholdVotes
    >>> from dpgm_core.structure import Structure
    >>> voter = ThresholdVotes(pairs=Structure.complete(Domain.from_sizes({"a": 2, "b": 2})), tau=0.3)
    >>> Verdict(voter=voter, budget=Budget.approx(1, "1e-6"), edges=None)
    Verdict(not stable enough to tell, (epsilon, delta) = (1, 1e-06))
    """

    voter: Voter
    budget: Budget
    edges: tuple[Clique, ...] | None

    @property
    def candidates(self) -> tuple[Clique, ...]:
        """The pairs that could be edges."""
        return self.voter.pairs.cliques

    @property
    def cost(self) -> Budget:
        """What it cost, whatever came out."""
        return self.budget

    @property
    def numbers(self) -> IntArray:
        """No noisy numbers."""
        return np.zeros(0, np.int64)

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        return {
            "kind": "vote",
            "candidates": [place[pair] for pair in self.candidates],
            "voter": self.voter.to_dict(),
            "budget": self.budget.to_dict(),
            "edges": None if self.edges is None else [place[pair] for pair in self.edges],
        }

    def __repr__(self) -> str:
        outcome = "not stable enough to tell" if self.edges is None else f"{len(self.edges)} edges"
        return f"Verdict({outcome}, {self.budget})"
