"""Learning: protocols of learners and selectors, their runs, and the bootstrap.

The names of `__all__` are for authors of learners and selectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm_core.curator.contract import ForwardingCurator
    from dpgm_core.learning.bootstrap import Simulator
    from dpgm_core.learning.contract import ContrastLearner, MeasuresOtherTables, Refits, ResourceEstimator, Resources
    from dpgm_core.learning.likelihood import Likelihood, consistent, expected_absolute, expected_distance, together
    from dpgm_core.learning.model_size import Limits, ModelSize, fit_bytes, fit_seconds
    from dpgm_core.learning.named_cliques import deviation, share_of
    from dpgm_core.learning.selector import SwitchingSelector, VotingSelector, WideningSelector
    from dpgm_core.learning.tuning import Rehearsal
    from dpgm_core.privacy.bins import BinsPlan
    from dpgm_core.privacy.columns import ColumnsNoise
    from dpgm_core.privacy.descent import Loss, NodeGradients, Regressions
    from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter, likely_distance
    from dpgm_core.releases.labels import Discovery, FoundColumn, FoundColumns, FoundLabels, load_discovery
    from dpgm_core.releases.steps import Descent, FoundBins, Verdict

# module -> its public names
_LAZY = {
    "dpgm_core.curator.contract": ["ForwardingCurator"],
    "bootstrap": ["Simulator"],
    "contract": ["ContrastLearner", "MeasuresOtherTables", "Refits", "ResourceEstimator", "Resources"],
    "likelihood": ["Likelihood", "consistent", "expected_absolute", "expected_distance", "together"],
    "model_size": ["Limits", "ModelSize", "fit_bytes", "fit_seconds"],
    "named_cliques": ["deviation", "share_of"],
    "selector": ["SwitchingSelector", "VotingSelector", "WideningSelector"],
    "tuning": ["Rehearsal"],
    "dpgm_core.privacy.bins": ["BinsPlan"],
    "dpgm_core.privacy.columns": ["ColumnsNoise"],
    "dpgm_core.privacy.descent": ["Loss", "NodeGradients", "Regressions"],
    "dpgm_core.privacy.votes": ["EdgeVotes", "ThresholdVotes", "Voter", "likely_distance"],
    "dpgm_core.releases.labels": ["Discovery", "FoundColumn", "FoundColumns", "FoundLabels", "load_discovery"],
    "dpgm_core.releases.steps": ["Descent", "FoundBins", "Verdict"],
}

__all__ = [
    "BinsPlan",
    "ColumnsNoise",
    "ContrastLearner",
    "Descent",
    "Discovery",
    "EdgeVotes",
    "ForwardingCurator",
    "FoundBins",
    "FoundColumn",
    "FoundColumns",
    "FoundLabels",
    "Likelihood",
    "Limits",
    "Loss",
    "MeasuresOtherTables",
    "ModelSize",
    "NodeGradients",
    "Refits",
    "Regressions",
    "Rehearsal",
    "ResourceEstimator",
    "Resources",
    "Simulator",
    "SwitchingSelector",
    "ThresholdVotes",
    "Verdict",
    "Voter",
    "VotingSelector",
    "WideningSelector",
    "consistent",
    "deviation",
    "expected_absolute",
    "expected_distance",
    "fit_bytes",
    "fit_seconds",
    "likely_distance",
    "load_discovery",
    "share_of",
    "together",
]

__getattr__, __dir__ = face(__name__, _LAZY)
