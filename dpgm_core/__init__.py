"""dpgm: learn discrete graphical models from sensitive records under differential privacy.

The public face: the names in `__all__` are the contract, with those of `dpgm_core.privacy`, `.learning`, `.collective`,
`.selection` and `.sources`, which authors of one kind of plugin need, and of `dpgm.interop`, for other programs'
files. Each is imported on first use, so that `import dpgm_core` and `dpgm --help` load neither numpy nor scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face
from dpgm_core._util.version import __version__

if TYPE_CHECKING:
    from dpgm_core._util.arrays import Array, Codes, FloatArray, IntArray
    from dpgm_core._util.progress import Progress, silent
    from dpgm_core._util.randomness import Randomness, SeededRandomness, SystemRandomness
    from dpgm_core.components.options import at_least_zero, component_option, flag, option, positive, share, whole
    from dpgm_core.components.registry import Broken, Offer, Registry, make
    from dpgm_core.curator.contract import Curator, Rounds, Session
    from dpgm_core.curator.live import LiveCurator
    from dpgm_core.curator.replay import ReplayCurator
    from dpgm_core.domain.attribute import Attribute
    from dpgm_core.domain.domain import Domain
    from dpgm_core.domain.related import Related
    from dpgm_core.errors import (
        BudgetError,
        DataError,
        DomainError,
        DpgmError,
        InferenceError,
        LearningFailed,
        ModelFileError,
        NonPrivateError,
        NotConverged,
        OptionError,
        Overspent,
        PluginError,
        StructureError,
        TooLarge,
    )
    from dpgm_core.inference.collective.contract import Collective
    from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference, Maximizer, Sampler, SecondOrder
    from dpgm_core.learning.bootstrap import bootstrap
    from dpgm_core.learning.contract import Fit, Fitter, Learner, Refitter
    from dpgm_core.learning.selector import Fitting, Selection, SelectionPlan, Selector
    from dpgm_core.models.intervals import Interval, combine
    from dpgm_core.models.model import Model
    from dpgm_core.models.model_file import load_model
    from dpgm_core.models.networks import cpds, project
    from dpgm_core.pipeline.evaluation import kl_divergence, log_likelihood, total_variation
    from dpgm_core.pipeline.planning import Plan, TableError
    from dpgm_core.pipeline.run import fit, learn, plan, plan_selection, release, select
    from dpgm_core.plugin import Component, hookimpl
    from dpgm_core.privacy.budget import Budget, PrivacyEvent
    from dpgm_core.privacy.ledger import Ledger
    from dpgm_core.privacy.ledger_terms import LedgerEntry, LedgerTerms
    from dpgm_core.privacy.measurement import Measurement, optimal_split
    from dpgm_core.privacy.mechanism import Calibration, DualTerm, Mechanism, Noise
    from dpgm_core.privacy.selection import TableDistance
    from dpgm_core.privacy.sensitivity import ClippedScore, Contributions, Neighbours, Sensitivity
    from dpgm_core.privacy.terms import Terms
    from dpgm_core.releases.release import NoisyTables, Round
    from dpgm_core.releases.release_file import load_release
    from dpgm_core.releases.steps import Choice, NoisyScores, SessionTerms
    from dpgm_core.sources.contract import Source
    from dpgm_core.structure.dag import Dag
    from dpgm_core.structure.graphs import Clique, Elimination
    from dpgm_core.structure.structure import Structure, StructureReport
    from dpgm_core.structure.tables import Tables
    from dpgm_core.structure.workload import Workload

# module -> its public names
_LAZY = {
    "_util.arrays": ["Array", "Codes", "FloatArray", "IntArray"],
    "_util.progress": ["Progress", "silent"],
    "_util.randomness": ["Randomness", "SeededRandomness", "SystemRandomness"],
    "components.options": ["at_least_zero", "component_option", "flag", "option", "positive", "share", "whole"],
    "components.registry": ["Broken", "Offer", "Registry", "make"],
    "curator.contract": ["Curator", "Rounds", "Session"],
    "curator.live": ["LiveCurator"],
    "curator.replay": ["ReplayCurator"],
    "domain.attribute": ["Attribute"],
    "domain.domain": ["Domain"],
    "domain.related": ["Related"],
    "errors": [
        "BudgetError",
        "DataError",
        "DomainError",
        "DpgmError",
        "InferenceError",
        "LearningFailed",
        "ModelFileError",
        "NonPrivateError",
        "NotConverged",
        "OptionError",
        "Overspent",
        "PluginError",
        "StructureError",
        "TooLarge",
    ],
    "inference.collective.contract": ["Collective"],
    "inference.contract": ["Beliefs", "Capability", "Engine", "Inference", "Maximizer", "Sampler", "SecondOrder"],
    "learning.bootstrap": ["bootstrap"],
    "learning.contract": ["Fit", "Fitter", "Learner", "Refitter"],
    "learning.selector": ["Fitting", "Selection", "SelectionPlan", "Selector"],
    "models.model_file": ["load_model"],
    "models.intervals": ["Interval", "combine"],
    "models.model": ["Model"],
    "models.networks": ["cpds", "project"],
    "pipeline.evaluation": ["kl_divergence", "log_likelihood", "total_variation"],
    "pipeline.planning": ["Plan", "TableError"],
    "pipeline.run": ["fit", "learn", "plan", "plan_selection", "release", "select"],
    "plugin": ["Component", "hookimpl"],
    "privacy.budget": ["Budget", "PrivacyEvent"],
    "privacy.ledger": ["Ledger"],
    "privacy.ledger_terms": ["LedgerEntry", "LedgerTerms"],
    "privacy.measurement": ["Measurement", "optimal_split"],
    "privacy.mechanism": ["Calibration", "DualTerm", "Mechanism", "Noise"],
    "privacy.selection": ["TableDistance"],
    "privacy.sensitivity": ["ClippedScore", "Contributions", "Neighbours", "Sensitivity"],
    "privacy.terms": ["Terms"],
    "releases.steps": ["Choice", "NoisyScores", "SessionTerms"],
    "releases.release_file": ["load_release"],
    "releases.release": ["NoisyTables", "Round"],
    "sources.contract": ["Source"],
    "structure.dag": ["Dag"],
    "structure.graphs": ["Clique", "Elimination"],
    "structure.structure": ["Structure", "StructureReport"],
    "structure.tables": ["Tables"],
    "structure.workload": ["Workload"],
}

__all__ = [
    "__version__",
    "Array",
    "Attribute",
    "Beliefs",
    "Broken",
    "Budget",
    "BudgetError",
    "Calibration",
    "Capability",
    "Choice",
    "ClippedScore",
    "Clique",
    "Codes",
    "Collective",
    "Component",
    "Contributions",
    "Curator",
    "Dag",
    "DataError",
    "Domain",
    "DomainError",
    "DpgmError",
    "DualTerm",
    "Elimination",
    "Engine",
    "Fit",
    "Fitter",
    "Fitting",
    "FloatArray",
    "Inference",
    "InferenceError",
    "IntArray",
    "Interval",
    "Learner",
    "LearningFailed",
    "Ledger",
    "LedgerEntry",
    "LedgerTerms",
    "LiveCurator",
    "Maximizer",
    "Measurement",
    "Mechanism",
    "Model",
    "ModelFileError",
    "Neighbours",
    "Noise",
    "NoisyScores",
    "NoisyTables",
    "NonPrivateError",
    "NotConverged",
    "Offer",
    "OptionError",
    "Overspent",
    "Plan",
    "PluginError",
    "PrivacyEvent",
    "Progress",
    "Randomness",
    "Refitter",
    "Registry",
    "Related",
    "ReplayCurator",
    "Round",
    "Rounds",
    "Sampler",
    "SecondOrder",
    "SeededRandomness",
    "Selection",
    "SelectionPlan",
    "Selector",
    "Sensitivity",
    "Session",
    "SessionTerms",
    "Source",
    "Structure",
    "StructureError",
    "StructureReport",
    "SystemRandomness",
    "TableDistance",
    "TableError",
    "Tables",
    "Terms",
    "TooLarge",
    "Workload",
    "at_least_zero",
    "bootstrap",
    "combine",
    "component_option",
    "cpds",
    "fit",
    "flag",
    "hookimpl",
    "kl_divergence",
    "learn",
    "load_model",
    "load_release",
    "log_likelihood",
    "make",
    "optimal_split",
    "option",
    "plan",
    "plan_selection",
    "positive",
    "project",
    "release",
    "select",
    "share",
    "silent",
    "total_variation",
    "whole",
]

__getattr__, __dir__ = face(__name__, _LAZY)
