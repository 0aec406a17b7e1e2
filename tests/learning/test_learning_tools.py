"""What learners share: consistent tables, the expected noise, and the penalised likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure, Tables
from dpgm_core.learning.consistency import consistent
from dpgm_core.learning.discrepancy import expected_absolute
from dpgm_core.learning.likelihood import Likelihood
from dpgm_core.progress import silent

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2})
OVERLAPPING = Structure(DOMAIN, [("a", "b"), ("c", "b"), ("b", "a", "c"), ("a",), ()])


def statistics(structure: Structure) -> np.ndarray:
    """(cells, records): which cells each possible record counts in; its columns span the consistent tables."""
    grid = np.stack(np.meshgrid(*(range(size) for size in structure.domain.sizes.values()), indexing="ij"), axis=-1)
    columns = []
    for record in grid.reshape(-1, len(structure.domain)):
        code = dict(zip(structure.domain.names, record, strict=True))
        column = np.zeros(structure.cells)
        for number, group in enumerate(structure.groups):
            cell = np.ravel_multi_index([code[name] for name in group[0]], structure.shapes[number]) if group[0] else 0
            column[structure.slices[number].start + cell] = 1
        columns.append(column)
    return np.array(columns).T


@given(st.integers(0, 2**32 - 1))
def test_consistent_is_the_orthogonal_projection(seed):
    """On the span of the sufficient statistics, which least squares computes another way."""
    values = np.random.default_rng(seed).normal(size=OVERLAPPING.cells) * 100
    basis = statistics(OVERLAPPING)
    nearest = basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
    assert np.allclose(consistent(Tables(OVERLAPPING, values)).values, nearest, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_consistent_weighs_tables_by_their_noise(seed):
    """Generalised least squares computed another way; equal variances change no digit."""
    generator = np.random.default_rng(seed)
    tables = Tables(OVERLAPPING, generator.normal(size=OVERLAPPING.cells) * 100)
    variances = 10.0 ** generator.uniform(-1, 1, size=len(OVERLAPPING.groups))
    scale = np.repeat(variances**0.5, OVERLAPPING.sizes)
    basis = statistics(OVERLAPPING)
    nearest = basis @ np.linalg.lstsq(basis / scale[:, None], tables.values / scale, rcond=None)[0]
    assert np.allclose(consistent(tables, variances).values, nearest, atol=1e-8)
    same = consistent(tables, np.full(len(OVERLAPPING.groups), 0.3))
    assert np.array_equal(same.values, consistent(tables).values)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5", "40"])
def test_the_expected_noise_of_discrete_laplace(epsilon):
    """E|Z| = 2 p / (1 - p^2) with p = exp(-epsilon), from narrow to wide."""
    structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    sensitivity = dpgm.Sensitivity.of(structure, "add-remove")
    noise = dpgm.make("mechanism", "laplace").noise(sensitivity, Budget.pure(epsilon))
    p = math.exp(-float(epsilon))
    assert expected_absolute(noise) == pytest.approx(2 * p / (1 - p * p), rel=1e-3)


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
