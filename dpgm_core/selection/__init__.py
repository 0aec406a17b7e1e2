"""Choosing the structure privately: the contract of selectors, and how one is run against a session.

The face is for those who write selectors: the voters of core, what votes come to, and how much it takes to be heard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.noise.stability import likely_distance
    from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter
    from dpgm_core.releases.verdict import Verdict
    from dpgm_core.selection.contract import VotingSelector

# module -> its public names
_LAZY = {
    ".noise.stability": ["likely_distance"],
    ".privacy.votes": ["EdgeVotes", "ThresholdVotes", "Voter"],
    ".releases.verdict": ["Verdict"],
    "contract": ["VotingSelector"],
}

__all__ = ["EdgeVotes", "ThresholdVotes", "Verdict", "Voter", "VotingSelector", "likely_distance"]

__getattr__, __dir__ = face(__name__, _LAZY)
