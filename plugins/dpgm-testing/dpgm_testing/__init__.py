"""The public conformance kit: strategies, reference oracles, named checks and their runners (extra `testing`).

Three ways to run it: ``pytest --dpgm-plugin DIST`` (or ``dpgm check DIST``) with no code written,
``check_component(Mine)`` for a report, and ``class TestMine(MechanismConformance): component = Mine``. Checks refute;
they do not prove. Names load on first use, because pytest imports this package in every run of every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm_testing.check import Check, CheckFailed, Profile, require
    from dpgm_testing.conformance import (
        CollectiveConformance,
        InferenceConformance,
        LearnerConformance,
        MechanismConformance,
        SelectorConformance,
        SourceConformance,
    )
    from dpgm_testing.oracles import enumerated, in_local_polytope, in_marginal_polytope, incidence, worst_change
    from dpgm_testing.privacy_loss import (
        admissible_shifts,
        hockey_stick,
        renyi_divergence,
        worst_hockey_stick,
        worst_loss,
        worst_renyi,
    )
    from dpgm_testing.reference import ReferenceGaussian, ReferenceLaplace, example_release
    from dpgm_testing.runner import Outcome, Report, check_component, check_distribution, checks_of
    from dpgm_testing.strategies import (
        awkward_structures,
        budgets,
        domains,
        neighbours,
        noisy_tables,
        potentials,
        records,
        structures,
    )
    from dpgm_testing.unusual import TruncatedLaplace, TwoWidths

# module -> its public names
_LAZY = {
    "check": ["Check", "CheckFailed", "Profile", "require"],
    "conformance": [
        "CollectiveConformance",
        "InferenceConformance",
        "LearnerConformance",
        "MechanismConformance",
        "SelectorConformance",
        "SourceConformance",
    ],
    "oracles": ["enumerated", "in_local_polytope", "in_marginal_polytope", "incidence", "worst_change"],
    "privacy_loss": [
        "admissible_shifts",
        "hockey_stick",
        "renyi_divergence",
        "worst_hockey_stick",
        "worst_loss",
        "worst_renyi",
    ],
    "reference": ["ReferenceGaussian", "ReferenceLaplace", "example_release"],
    "runner": ["Outcome", "Report", "check_component", "check_distribution", "checks_of"],
    "strategies": [
        "awkward_structures",
        "budgets",
        "domains",
        "neighbours",
        "noisy_tables",
        "potentials",
        "records",
        "structures",
    ],
    "unusual": ["TruncatedLaplace", "TwoWidths"],
}

__all__ = [
    "Check",
    "CheckFailed",
    "CollectiveConformance",
    "InferenceConformance",
    "LearnerConformance",
    "MechanismConformance",
    "Outcome",
    "Profile",
    "ReferenceGaussian",
    "ReferenceLaplace",
    "Report",
    "SelectorConformance",
    "SourceConformance",
    "TruncatedLaplace",
    "TwoWidths",
    "admissible_shifts",
    "awkward_structures",
    "budgets",
    "check_component",
    "check_distribution",
    "checks_of",
    "domains",
    "enumerated",
    "example_release",
    "hockey_stick",
    "in_local_polytope",
    "in_marginal_polytope",
    "incidence",
    "neighbours",
    "noisy_tables",
    "potentials",
    "records",
    "renyi_divergence",
    "require",
    "structures",
    "worst_change",
    "worst_hockey_stick",
    "worst_loss",
    "worst_renyi",
]

__getattr__, __dir__ = face(__name__, _LAZY)
