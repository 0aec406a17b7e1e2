"""Private structure selection: the contract of selectors, and runs of a selector against a session.

The public names are for authors of selectors: model sizes, parts of a budget and the noise that they buy, gradients of
regressions that a session can descend by, voters and the distances that their votes need, and bins and labels that
were found privately before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.noise.bisection import BinsPlan
    from dpgm_core.noise.stability import likely_distance
    from dpgm_core.privacy.gradients import NodeGradients
    from dpgm_core.privacy.regressions import Loss, Regressions
    from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter
    from dpgm_core.releases.bins import FoundBins
    from dpgm_core.releases.descents import Descent
    from dpgm_core.releases.discovery import Discovery, FoundLabels, load_discovery
    from dpgm_core.releases.verdict import Verdict
    from dpgm_core.selection.contract import VotingSelector
    from dpgm_core.selection.shares import deviation, share_of
    from dpgm_core.selection.sizes import Limits, ModelSize

# module -> its public names
_LAZY = {
    "contract": ["VotingSelector"],
    "dpgm_core.noise.bisection": ["BinsPlan"],
    "dpgm_core.noise.stability": ["likely_distance"],
    "dpgm_core.privacy.gradients": ["NodeGradients"],
    "dpgm_core.privacy.regressions": ["Loss", "Regressions"],
    "dpgm_core.privacy.votes": ["EdgeVotes", "ThresholdVotes", "Voter"],
    "dpgm_core.releases.bins": ["FoundBins"],
    "dpgm_core.releases.descents": ["Descent"],
    "dpgm_core.releases.discovery": ["Discovery", "FoundLabels", "load_discovery"],
    "dpgm_core.releases.verdict": ["Verdict"],
    "shares": ["deviation", "share_of"],
    "sizes": ["Limits", "ModelSize"],
}

__all__ = [
    "BinsPlan",
    "Descent",
    "Discovery",
    "EdgeVotes",
    "FoundBins",
    "FoundLabels",
    "Limits",
    "Loss",
    "ModelSize",
    "NodeGradients",
    "Regressions",
    "ThresholdVotes",
    "Verdict",
    "Voter",
    "VotingSelector",
    "deviation",
    "load_discovery",
    "likely_distance",
    "share_of",
]

__getattr__, __dir__ = face(__name__, _LAZY)
