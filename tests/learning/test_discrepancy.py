"""How far noisy tables are expected to be from the truth."""

from __future__ import annotations

import math

import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure
from dpgm_core.learning.discrepancy import expected_absolute


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5", "40"])
def test_the_expected_noise_of_discrete_laplace(epsilon):
    """E|Z| = 2 p / (1 - p^2) with p = exp(-epsilon), from narrow to wide."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    sensitivity = dpgm.Sensitivity.of(structure, "add-remove")
    noise = dpgm.make("mechanism", "laplace").noise(sensitivity, Budget.pure(epsilon))
    p = math.exp(-float(epsilon))
    assert expected_absolute(noise) == pytest.approx(2 * p / (1 - p * p), rel=1e-3)
