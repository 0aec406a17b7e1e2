"""Collective inference: posterior modes of the hidden true tables, from noisy ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.collective.contract import CollectiveBeliefs, CollectiveEngine
    from dpgm_core.collective.evidence import require_log_concave

# module -> its public names
_LAZY = {
    "contract": ["CollectiveBeliefs", "CollectiveEngine"],
    "evidence": ["require_log_concave"],
}

__all__ = [
    "CollectiveBeliefs",
    "CollectiveEngine",
    "require_log_concave",
]

__getattr__, __dir__ = face(__name__, _LAZY)
