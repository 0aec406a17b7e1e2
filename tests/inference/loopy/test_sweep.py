"""Sweeps in either space and order reach one fixed point."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_probability_space_and_log_space_agree_where_both_can_run(lab):
    """Shifting one cell beyond float's range forces log space; the other figures do not move."""
    structure = lab.forests["chain"]
    values = lab.random_potentials(structure, seed=0).values.copy()
    values[0] = -690.0
    near = LoopyBP().compile(structure).infer(Tables(structure, values))
    values[0] = -2000.0
    far = LoopyBP().compile(structure).infer(Tables(structure, values))
    np.testing.assert_allclose(far.marginals.values, near.marginals.values, rtol=1e-11, atol=1e-200)
    assert far.log_partition == pytest.approx(near.log_partition, abs=1e-12)


def test_an_underflowing_product_does_not_make_a_record_impossible():
    """Five messages of e^-300 each against a hard zero: the only possible record keeps probability 1."""
    leaves = "bcdef"
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcdef", 2)), [("a", leaf) for leaf in leaves] + [("a",)])
    arrays = {("a", leaf): np.array([[0.0, 0.0], [-300.0, -300.0]]) for leaf in leaves}
    potentials = Tables.from_arrays(structure, arrays | {("a",): np.array([-np.inf, 0.0])})
    beliefs = LoopyBP().compile(structure).infer(potentials)
    assert beliefs.log_partition == pytest.approx(-1500 + 5 * math.log(2), abs=1e-9)
    assert beliefs.marginals["a"][0] == 0 and beliefs.marginals["a"][1] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("zeros", [False, True])
def test_schedules_and_damping_reach_the_same_fixed_point(loopy, zeros, lab):
    """Flooding, damped flooding and the residual schedule agree on moderate potentials, zeros included."""
    values = lab.random_potentials(loopy, seed=11, scale=0.7).values.copy()
    if zeros:
        values[1] = values[loopy.slices[-1].stop - 1] = -np.inf
    potentials = Tables(loopy, values)
    results = [
        LoopyBP(damping=damping, schedule=schedule, tolerance=1e-12, max_iterations=5000).compile(loopy)
        for damping, schedule in [(0.0, "flooding"), (0.5, "flooding"), (0.0, "residual"), (0.3, "residual")]
    ]
    first, *others = (engine.infer(potentials) for engine in results)
    assert first.converged and all(other.converged for other in others)
    for other in others:
        np.testing.assert_allclose(other.marginals.values, first.marginals.values, atol=1e-10)
        assert other.log_partition == pytest.approx(first.log_partition, abs=1e-9)


def test_log_space_finds_the_same_loopy_fixed_point(lab):
    """One potential out of float's range forces log space on the whole grid; the fixed point hardly moves."""
    structure = lab.grid(4, 4, 3)
    values = lab.random_potentials(structure, seed=4, scale=0.5).values.copy()
    values[0] = -np.inf
    exact_zero = lab.tight.compile(structure).infer(Tables(structure, values))
    values[0] = -5000.0
    log_space = lab.tight.compile(structure).infer(Tables(structure, values))
    np.testing.assert_allclose(log_space.marginals.values, exact_zero.marginals.values, atol=1e-11)
    assert abs(log_space.iterations - exact_zero.iterations) <= 1  # the last one is decided by rounding
