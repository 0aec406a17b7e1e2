"""What is protected, and what it costs: exact amounts, budgets, sensitivities, terms and their accounting.

The face is for those who write selectors and learners of sessions: what a session can be asked besides tables and their
distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.privacy.gradients import Loss, NodeGradients, Regressions
    from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter

# module -> its public names
_LAZY = {
    "gradients": ["Loss", "NodeGradients", "Regressions"],
    "votes": ["EdgeVotes", "ThresholdVotes", "Voter"],
}

__all__ = ["EdgeVotes", "Loss", "NodeGradients", "Regressions", "ThresholdVotes", "Voter"]

__getattr__, __dir__ = face(__name__, _LAZY)
