"""dpgm: learn discrete graphical models from sensitive records under differential privacy.

The public face: the names in `__all__` are the contract. Each is imported on first use, so that `import dpgm_core`
and `dpgm --help` load neither numpy nor scipy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpgm_core._version import __version__

if TYPE_CHECKING:
    from dpgm_core.allocation import optimal_split
    from dpgm_core.attribute import Attribute
    from dpgm_core.consistency import consistent
    from dpgm_core.contributions import Contributions
    from dpgm_core.curator import LiveCurator, silent
    from dpgm_core.discrepancy import expected_absolute, expected_distance
    from dpgm_core.domain import Domain
    from dpgm_core.errors import (
        BudgetError,
        ContestedComponent,
        DataError,
        DomainError,
        DpgmError,
        IncompatiblePlugin,
        InferenceError,
        ModelFileError,
        NonPrivateError,
        NotConverged,
        OptionError,
        Overspent,
        PluginError,
        PluginLoadError,
        StructureError,
        TooLarge,
        UnknownComponent,
    )
    from dpgm_core.evaluate import kl_divergence, total_variation
    from dpgm_core.exactness import Exactness, residuals
    from dpgm_core.gaussian_privacy import (
        analytic_delta,
        discrete_delta,
        discrete_variance,
        least_variance,
        log_normaliser,
    )
    from dpgm_core.ledger import Ledger
    from dpgm_core.levelling import levelled
    from dpgm_core.likelihood import Likelihood
    from dpgm_core.model import Model, load_model
    from dpgm_core.options import at_least_zero, component_option, flag, option, positive, share, whole
    from dpgm_core.pipeline import fit, learn, plan, release
    from dpgm_core.plugin import Component, hookimpl
    from dpgm_core.privacy import Budget, Neighbours, PrivacyEvent, Sensitivity
    from dpgm_core.protocols import (
        Beliefs,
        Capability,
        Codes,
        Collective,
        CollectiveBeliefs,
        CollectiveEngine,
        Curator,
        DualTerm,
        Engine,
        Fit,
        Inference,
        Learner,
        Mechanism,
        Noise,
        Progress,
        Randomness,
        Refitter,
        Rounds,
        SecondOrder,
        Source,
    )
    from dpgm_core.randomness import SeededRandomness, SystemRandomness
    from dpgm_core.registry import Registry, make
    from dpgm_core.rehearsal import Rehearsal
    from dpgm_core.releases import NoisyTables, load_release
    from dpgm_core.replay import ReplayCurator
    from dpgm_core.rounds import ClippedScore
    from dpgm_core.sampling import bounded_variance, discrete_gaussian, discrete_laplace
    from dpgm_core.simulate import Simulator
    from dpgm_core.structure import Clique, Structure
    from dpgm_core.tables import Array, FloatArray, IntArray, Tables
    from dpgm_core.uncertainty import Interval, combine

# module -> its public names; `__all__` is read off it
_LAZY = {
    "allocation": ["optimal_split"],
    "consistency": ["consistent"],
    "contributions": ["Contributions"],
    "curator": ["LiveCurator", "silent"],
    "discrepancy": ["expected_absolute", "expected_distance"],
    "attribute": ["Attribute"],
    "domain": ["Domain"],
    "errors": [
        "BudgetError",
        "ContestedComponent",
        "DataError",
        "DomainError",
        "DpgmError",
        "IncompatiblePlugin",
        "InferenceError",
        "ModelFileError",
        "NonPrivateError",
        "NotConverged",
        "OptionError",
        "Overspent",
        "PluginError",
        "PluginLoadError",
        "StructureError",
        "TooLarge",
        "UnknownComponent",
    ],
    "evaluate": ["kl_divergence", "total_variation"],
    "exactness": ["Exactness", "residuals"],
    "gaussian_privacy": [
        "analytic_delta",
        "discrete_delta",
        "discrete_variance",
        "least_variance",
        "log_normaliser",
    ],
    "ledger": ["Ledger"],
    "levelling": ["levelled"],
    "likelihood": ["Likelihood"],
    "model": ["Model", "load_model"],
    "options": ["at_least_zero", "component_option", "flag", "option", "positive", "share", "whole"],
    "pipeline": ["fit", "learn", "plan", "release"],
    "plugin": ["Component", "hookimpl"],
    "privacy": ["Budget", "Neighbours", "PrivacyEvent", "Sensitivity"],
    "protocols": [
        "Beliefs",
        "Capability",
        "Codes",
        "Collective",
        "CollectiveBeliefs",
        "CollectiveEngine",
        "Curator",
        "DualTerm",
        "Engine",
        "Fit",
        "Inference",
        "Learner",
        "Mechanism",
        "Noise",
        "Progress",
        "Randomness",
        "Refitter",
        "Rounds",
        "SecondOrder",
        "Source",
    ],
    "randomness": ["SeededRandomness", "SystemRandomness"],
    "registry": ["Registry", "make"],
    "rehearsal": ["Rehearsal"],
    "releases": ["NoisyTables", "load_release"],
    "replay": ["ReplayCurator"],
    "rounds": ["ClippedScore"],
    "sampling": ["bounded_variance", "discrete_gaussian", "discrete_laplace"],
    "simulate": ["Simulator"],
    "structure": ["Clique", "Structure"],
    "tables": ["Array", "FloatArray", "IntArray", "Tables"],
    "uncertainty": ["Interval", "combine"],
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "Array",
    "Attribute",
    "Beliefs",
    "Budget",
    "BudgetError",
    "Capability",
    "ClippedScore",
    "Clique",
    "Codes",
    "Collective",
    "CollectiveBeliefs",
    "CollectiveEngine",
    "Component",
    "ContestedComponent",
    "Contributions",
    "Curator",
    "DataError",
    "Domain",
    "DomainError",
    "DpgmError",
    "DualTerm",
    "Engine",
    "Exactness",
    "Fit",
    "FloatArray",
    "IncompatiblePlugin",
    "Inference",
    "InferenceError",
    "IntArray",
    "Interval",
    "Learner",
    "Ledger",
    "Likelihood",
    "LiveCurator",
    "Mechanism",
    "Model",
    "ModelFileError",
    "Neighbours",
    "Noise",
    "NoisyTables",
    "NonPrivateError",
    "NotConverged",
    "OptionError",
    "Overspent",
    "PluginError",
    "PluginLoadError",
    "PrivacyEvent",
    "Progress",
    "Randomness",
    "Refitter",
    "Registry",
    "Rehearsal",
    "ReplayCurator",
    "Rounds",
    "SecondOrder",
    "SeededRandomness",
    "Sensitivity",
    "Simulator",
    "Source",
    "Structure",
    "StructureError",
    "SystemRandomness",
    "Tables",
    "TooLarge",
    "UnknownComponent",
    "__version__",
    "analytic_delta",
    "at_least_zero",
    "bounded_variance",
    "combine",
    "component_option",
    "consistent",
    "discrete_delta",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_variance",
    "expected_absolute",
    "expected_distance",
    "fit",
    "flag",
    "hookimpl",
    "kl_divergence",
    "learn",
    "least_variance",
    "levelled",
    "load_model",
    "load_release",
    "log_normaliser",
    "make",
    "optimal_split",
    "option",
    "plan",
    "positive",
    "release",
    "residuals",
    "share",
    "silent",
    "total_variation",
    "whole",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpgm_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpgm_core.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
