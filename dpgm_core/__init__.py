"""dpgm: learn discrete graphical models from sensitive records under differential privacy.

The public face: the names in `__all__` are the contract, with those of `dpgm_core.noise`, `.learning`, `.collective`,
`.selection` and `.sources`, which authors of one kind of plugin need, and of `dpgm_core.interop`, for other programs'
files. Each is imported on first use, so that `import dpgm_core` and `dpgm --help` load neither numpy nor scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._version import __version__
from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core import plots as plots
    from dpgm_core.arrays import Array, Codes, FloatArray, IntArray
    from dpgm_core.attribute import Attribute
    from dpgm_core.collective.contract import Collective
    from dpgm_core.components.options import component_option, option
    from dpgm_core.components.registry import Broken, Offer, Registry, make
    from dpgm_core.components.validators import at_least_zero, flag, positive, share, whole
    from dpgm_core.curator.contract import Curator, Rounds, Session
    from dpgm_core.curator.live import LiveCurator
    from dpgm_core.curator.replay import ReplayCurator
    from dpgm_core.domain import Domain
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
    from dpgm_core.evaluate import kl_divergence, log_likelihood, total_variation
    from dpgm_core.foresight.plans import Plan, TableError
    from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference, Maximizer, Sampler, SecondOrder
    from dpgm_core.learning.bootstrap import bootstrap
    from dpgm_core.learning.contract import Fit, Fitter, Learner, Refitter
    from dpgm_core.ledger.entries import LedgerEntry, LedgerTerms
    from dpgm_core.ledger.ledger import Ledger
    from dpgm_core.models.intervals import Interval, combine
    from dpgm_core.models.model import Model
    from dpgm_core.models.networks import cpds, project
    from dpgm_core.models.reading import load_model
    from dpgm_core.noise.calibration import Calibration
    from dpgm_core.noise.contract import DualTerm, Mechanism, Noise
    from dpgm_core.noise.measurement import Measurement
    from dpgm_core.noise.split import optimal_split
    from dpgm_core.pipeline import fit, learn, plan, plan_selection, release, select
    from dpgm_core.plugin import Component, hookimpl
    from dpgm_core.privacy.budget import Budget, PrivacyEvent
    from dpgm_core.privacy.contributions import ClippedScore, Contributions
    from dpgm_core.privacy.scores import TableDistance
    from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity
    from dpgm_core.privacy.terms import Terms
    from dpgm_core.progress import Progress, silent
    from dpgm_core.randomness import Randomness, SeededRandomness, SystemRandomness
    from dpgm_core.releases.reading import load_release
    from dpgm_core.releases.release import NoisyTables
    from dpgm_core.releases.round import Round
    from dpgm_core.releases.steps import Choice, NoisyScores, SessionTerms
    from dpgm_core.selection.contract import Fitting, Selection, SelectionPlan, Selector
    from dpgm_core.sources.contract import Source
    from dpgm_core.structure.dag import Dag
    from dpgm_core.structure.graphs import Clique, Elimination
    from dpgm_core.structure.report import StructureReport
    from dpgm_core.structure.shape import Structure
    from dpgm_core.tables import Tables
    from dpgm_core.workload import Workload

# module -> its public names; `__all__` is read off it
_LAZY = {
    "arrays": ["Array", "Codes", "FloatArray", "IntArray"],
    "attribute": ["Attribute"],
    "collective.contract": ["Collective"],
    "components.options": ["component_option", "option"],
    "components.registry": ["Broken", "Offer", "Registry", "make"],
    "components.validators": ["at_least_zero", "flag", "positive", "share", "whole"],
    "curator.contract": ["Curator", "Rounds", "Session"],
    "curator.live": ["LiveCurator"],
    "curator.replay": ["ReplayCurator"],
    "structure.dag": ["Dag"],
    "domain": ["Domain"],
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
    "evaluate": ["kl_divergence", "log_likelihood", "total_variation"],
    "structure.graphs": ["Clique", "Elimination"],
    "inference.contract": ["Beliefs", "Capability", "Engine", "Inference", "Maximizer", "Sampler", "SecondOrder"],
    "learning.bootstrap": ["bootstrap"],
    "learning.contract": ["Fit", "Fitter", "Learner", "Refitter"],
    "ledger.entries": ["LedgerEntry", "LedgerTerms"],
    "ledger.ledger": ["Ledger"],
    "models.intervals": ["Interval", "combine"],
    "models.model": ["Model"],
    "models.networks": ["cpds", "project"],
    "models.reading": ["load_model"],
    "noise.contract": ["DualTerm", "Mechanism", "Noise"],
    "noise.calibration": ["Calibration"],
    "noise.measurement": ["Measurement"],
    "noise.split": ["optimal_split"],
    "pipeline": ["fit", "learn", "plan", "plan_selection", "release", "select"],
    "foresight.plans": ["Plan", "TableError"],
    "plugin": ["Component", "hookimpl"],
    "privacy.budget": ["Budget", "PrivacyEvent"],
    "privacy.contributions": ["ClippedScore", "Contributions"],
    "privacy.scores": ["TableDistance"],
    "privacy.sensitivity": ["Neighbours", "Sensitivity"],
    "privacy.terms": ["Terms"],
    "progress": ["Progress", "silent"],
    "randomness": ["Randomness", "SeededRandomness", "SystemRandomness"],
    "releases.reading": ["load_release"],
    "releases.release": ["NoisyTables"],
    "releases.round": ["Round"],
    "releases.steps": ["Choice", "NoisyScores", "SessionTerms"],
    "selection.contract": ["Fitting", "Selection", "SelectionPlan", "Selector"],
    "sources.contract": ["Source"],
    "structure.shape": ["Structure"],
    "structure.report": ["StructureReport"],
    "tables": ["Tables"],
    "workload": ["Workload"],
}

__all__ = [
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
    "__version__",
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
