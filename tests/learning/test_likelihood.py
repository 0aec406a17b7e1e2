"""The penalised likelihood that learners climb."""

from __future__ import annotations

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core import Domain, Structure, Tables
from dpgm_core.learning.likelihood import Likelihood
from dpgm_core.progress import silent

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_gradient_is_that_of_the_value(l2):
    """Central differences of the objective, tied groups included."""
    structure = Structure(DOMAIN, [("a", "b")], tied=[[("a",), ("c",)]])
    rng = np.random.default_rng(4)
    target = (
        dpgm.make("inference", "junction-tree")
        .compile(structure)
        .infer(Tables(structure, rng.normal(size=structure.cells)))
    )
    problem = Likelihood(dpgm.make("inference", "junction-tree").compile(structure), target.marginals, silent)
    theta = rng.normal(size=structure.cells)
    gradient = problem.value(theta, l2)[1]
    step = 1e-5
    for cell in range(structure.cells):
        shift = np.eye(structure.cells)[cell] * step
        slope = (problem.value(theta + shift, l2)[0] - problem.value(theta - shift, l2)[0]) / (2 * step)
        assert gradient[cell] == pytest.approx(slope, abs=1e-8)
    found, converged = problem.minimise(theta, l2, 1e-7, 500)
    assert converged
    assert problem.slope <= 1e-7
    said = problem.slope
    assert np.abs(problem.value(found, l2)[1]).max() == pytest.approx(said, abs=1e-12)
