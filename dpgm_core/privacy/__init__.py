"""Privacy: budgets, sensitivity, mechanisms, the cost of each private question, and the ledger.

The names of `__all__` are for authors of mechanisms, selectors and learners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm_core.privacy.budget import NoiseDistribution, Split
    from dpgm_core.privacy.contrasts import monomials, products, spread
    from dpgm_core.privacy.descent import descent_temperature
    from dpgm_core.privacy.dominating_pairs import truncated_delta
    from dpgm_core.privacy.gaussian import (
        analytic_delta,
        discrete_delta,
        discrete_variance,
        gaussian_mu_squared,
        gaussian_variance,
        least_variance,
        log_normaliser,
    )
    from dpgm_core.privacy.labels import LabelsPlan, ThresholdNoise, threshold_noise
    from dpgm_core.privacy.mechanism import Exactness, residuals
    from dpgm_core.privacy.ranges import RangeStrategy
    from dpgm_core.privacy.samplers import bounded_variance, discrete_gaussian, discrete_laplace
    from dpgm_core.privacy.selection import temperature
    from dpgm_core.privacy.session_account import SessionAccount
    from dpgm_core.privacy.tabulated import TabulatedNoise, calibrate_tabulated

# module -> its public names
_LAZY = {
    "budget": ["NoiseDistribution", "Split"],
    "contrasts": ["monomials", "products", "spread"],
    "descent": ["descent_temperature"],
    "dominating_pairs": ["truncated_delta"],
    "gaussian": [
        "analytic_delta",
        "discrete_delta",
        "discrete_variance",
        "gaussian_mu_squared",
        "gaussian_variance",
        "least_variance",
        "log_normaliser",
    ],
    "labels": ["LabelsPlan", "ThresholdNoise", "threshold_noise"],
    "mechanism": ["Exactness", "residuals"],
    "ranges": ["RangeStrategy"],
    "samplers": ["bounded_variance", "discrete_gaussian", "discrete_laplace"],
    "selection": ["temperature"],
    "session_account": ["SessionAccount"],
    "tabulated": ["TabulatedNoise", "calibrate_tabulated"],
}

__all__ = [
    "Exactness",
    "LabelsPlan",
    "NoiseDistribution",
    "RangeStrategy",
    "SessionAccount",
    "Split",
    "TabulatedNoise",
    "ThresholdNoise",
    "analytic_delta",
    "bounded_variance",
    "calibrate_tabulated",
    "descent_temperature",
    "discrete_delta",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_variance",
    "gaussian_mu_squared",
    "gaussian_variance",
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
