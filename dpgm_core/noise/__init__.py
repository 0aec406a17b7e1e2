"""From a sensitivity and a budget to calibrated noise, and its exact samplers.

The face is for those who write mechanisms and selectors: exact samplers, exact accounting of discrete noise, what
noises share, the least that a choice can be made by, contrasts of binary attributes in place of tables, labels from a
threshold on, and the delta of Laplace noise that is cut off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.noise.check import Split
    from dpgm_core.noise.choice import temperature
    from dpgm_core.noise.continuous import analytic_delta
    from dpgm_core.noise.contrasts import monomials, products, spread
    from dpgm_core.noise.descent import descent_temperature
    from dpgm_core.noise.exactness import Exactness, residuals
    from dpgm_core.noise.gaussian import discrete_delta, discrete_variance, least_variance, log_normaliser
    from dpgm_core.noise.labels import LabelsPlan
    from dpgm_core.noise.samplers import bounded_variance, discrete_gaussian, discrete_laplace
    from dpgm_core.noise.threshold import ThresholdNoise, threshold_noise
    from dpgm_core.privacy.truncated import truncated_delta

# module -> its public names
_LAZY = {
    "check": ["Split"],
    "choice": ["temperature"],
    "continuous": ["analytic_delta"],
    "contrasts": ["monomials", "products", "spread"],
    "descent": ["descent_temperature"],
    "exactness": ["Exactness", "residuals"],
    "gaussian": ["discrete_delta", "discrete_variance", "least_variance", "log_normaliser"],
    "labels": ["LabelsPlan"],
    "samplers": ["bounded_variance", "discrete_gaussian", "discrete_laplace"],
    "threshold": ["ThresholdNoise", "threshold_noise"],
    "dpgm_core.privacy.truncated": ["truncated_delta"],
}

__all__ = [
    "Exactness",
    "LabelsPlan",
    "Split",
    "ThresholdNoise",
    "analytic_delta",
    "bounded_variance",
    "descent_temperature",
    "discrete_delta",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_variance",
    "least_variance",
    "log_normaliser",
    "monomials",
    "products",
    "residuals",
    "spread",
    "temperature",
    "threshold_noise",
    "truncated_delta",
]

__getattr__, __dir__ = face(__name__, _LAZY)
