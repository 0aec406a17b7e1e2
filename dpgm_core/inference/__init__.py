"""Inference in graphical models, and collective inference over hidden true tables.

The names of `__all__` are for authors of inference engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm_core.inference.collective.contract import CollectiveBeliefs, CollectiveEngine
    from dpgm_core.inference.collective.evidence import require_log_concave
    from dpgm_core.inference.constraints import ConstrainedEngine, constrained, engine_name
    from dpgm_core.inference.contract import (
        Batched,
        Bounder,
        Estimates,
        Estimator,
        Explainer,
        LogPartitionBounds,
        Querier,
        Rounder,
    )
    from dpgm_core.inference.quasi_newton import infer_all, steady

# module -> its public names
_LAZY = {
    "collective.contract": ["CollectiveBeliefs", "CollectiveEngine"],
    "collective.evidence": ["require_log_concave"],
    "constraints": ["ConstrainedEngine", "constrained", "engine_name"],
    "contract": [
        "Batched",
        "Bounder",
        "Estimates",
        "Estimator",
        "Explainer",
        "LogPartitionBounds",
        "Querier",
        "Rounder",
    ],
    "quasi_newton": ["infer_all", "steady"],
}

__all__ = [
    "Batched",
    "Bounder",
    "CollectiveBeliefs",
    "CollectiveEngine",
    "ConstrainedEngine",
    "Estimates",
    "Estimator",
    "Explainer",
    "LogPartitionBounds",
    "Querier",
    "Rounder",
    "constrained",
    "engine_name",
    "infer_all",
    "require_log_concave",
    "steady",
]

__getattr__, __dir__ = face(__name__, _LAZY)
