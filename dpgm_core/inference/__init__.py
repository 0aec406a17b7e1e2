"""Inference engines: marginals and log-partition of a structure with potentials, exact or approximate.

The public names are for authors of engines and of learners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.inference.constraining import ConstrainedEngine, constrained, engine_name
    from dpgm_core.inference.contract import (
        Bounder,
        Estimates,
        Estimator,
        Explainer,
        LogPartitionBounds,
        Querier,
        Rounder,
    )
    from dpgm_core.inference.many import Batched, infer_all
    from dpgm_core.inference.smoothness import steady

# module -> its public names
_LAZY = {
    "constraining": ["ConstrainedEngine", "constrained", "engine_name"],
    "contract": ["Bounder", "Estimates", "Estimator", "Explainer", "LogPartitionBounds", "Querier", "Rounder"],
    "many": ["Batched", "infer_all"],
    "smoothness": ["steady"],
}

__all__ = [
    "Batched",
    "Bounder",
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
    "steady",
]

__getattr__, __dir__ = face(__name__, _LAZY)
