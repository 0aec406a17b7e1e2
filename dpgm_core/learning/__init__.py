"""Learning: the contract of learners, a run against a curator, likelihood, simulation and bootstrap.

The public names are for authors of learners: likelihood, consistent tables, expected distances, simulated releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.curator.contract import ForwardingCurator
    from dpgm_core.learning.consistency import consistent
    from dpgm_core.learning.contract import ContrastLearner, MeasuresOtherTables, Refits
    from dpgm_core.learning.discrepancy import expected_absolute, expected_distance
    from dpgm_core.learning.likelihood import Likelihood, together
    from dpgm_core.learning.rehearsal import Rehearsal
    from dpgm_core.learning.resources import ResourceEstimator, Resources
    from dpgm_core.learning.simulator import Simulator

# module -> its public names
_LAZY = {
    "dpgm_core.curator.contract": ["ForwardingCurator"],
    "consistency": ["consistent"],
    "contract": ["ContrastLearner", "MeasuresOtherTables", "Refits"],
    "discrepancy": ["expected_absolute", "expected_distance"],
    "likelihood": ["Likelihood", "together"],
    "rehearsal": ["Rehearsal"],
    "resources": ["ResourceEstimator", "Resources"],
    "simulator": ["Simulator"],
}

__all__ = [
    "ContrastLearner",
    "ForwardingCurator",
    "MeasuresOtherTables",
    "Likelihood",
    "Refits",
    "Rehearsal",
    "ResourceEstimator",
    "Resources",
    "Simulator",
    "consistent",
    "expected_absolute",
    "expected_distance",
    "together",
]

__getattr__, __dir__ = face(__name__, _LAZY)
