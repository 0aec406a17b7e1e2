"""Sweeps in either space and order reach one fixed point."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgm_core.domain import Domain
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

TIGHT = LoopyBP(tolerance=1e-13, max_iterations=5000)


def random_potentials(structure, seed, scale=1.0):
    return Tables(structure, np.random.default_rng(seed).uniform(-scale, scale, structure.cells))


def grid(rows, columns, size):
    domain = Domain.from_sizes({f"x{i}": size for i in range(rows * columns)})
    return Structure.grid(domain, rows, columns)


DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 3, "f": 4})
FORESTS = {
    "chain": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]),
    "star": Structure(DOMAIN, [(other, "a") for other in "bcdef"]),
    "axes in any order, nested, duplicate, unary and empty cliques": Structure(
        DOMAIN, [("b", "a"), ("c", "a", "b"), ("a", "b"), ("e",), (), ("c", "d", "e"), ("f",), ("e", "d")]
    ),
    "disconnected with attributes in no clique": Structure(DOMAIN, [("a", "b"), ("e", "f")]),
    "one attribute": Structure(DOMAIN, [("b",)]),
    "the empty clique alone": Structure(DOMAIN, [()]),
    "one factor of all": Structure(DOMAIN, [tuple("fedcba"), ("a",), ("b", "f")]),
    "size-1 attribute alone": Structure(DOMAIN, [("d",)]),
    "tied": Structure(
        Domain.from_sizes(dict.fromkeys("abcd", 3)), [("b",)], tied=[[("a", "b"), ("b", "c"), ("d", "c")], [("a",)]]
    ),
    "tied and nested in one another": Structure(
        Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ()], tied=[[("b", "a"), ("b", "c")], [("a",), ("c",)]]
    ),
}


def test_probability_space_and_log_space_agree_where_both_can_run():
    """Shifting one cell beyond float's range forces log space; the other figures do not move."""
    structure = FORESTS["chain"]
    values = random_potentials(structure, seed=0).values.copy()
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


LOOPY = {
    "grid": grid(4, 4, 3),
    "higher order": Structure(
        Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 2}),
        [("a", "b", "c"), ("c", "d", "e"), ("e", "a"), ("b", "d"), ("d",)],
    ),
    "tied ring": Structure(
        Domain.from_sizes(dict.fromkeys("abcd", 3)), [], tied=[[("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]]
    ),
}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", LOOPY)
def test_schedules_and_damping_reach_the_same_fixed_point(name, zeros):
    """Flooding, damped flooding and the residual schedule agree on moderate potentials, zeros included."""
    structure = LOOPY[name]
    values = random_potentials(structure, seed=11, scale=0.7).values.copy()
    if zeros:
        values[1] = values[structure.slices[-1].stop - 1] = -np.inf
    potentials = Tables(structure, values)
    results = [
        LoopyBP(damping=damping, schedule=schedule, tolerance=1e-12, max_iterations=5000).compile(structure)
        for damping, schedule in [(0.0, "flooding"), (0.5, "flooding"), (0.0, "residual"), (0.3, "residual")]
    ]
    first, *others = (engine.infer(potentials) for engine in results)
    assert first.converged and all(other.converged for other in others)
    for other in others:
        np.testing.assert_allclose(other.marginals.values, first.marginals.values, atol=1e-10)
        assert other.log_partition == pytest.approx(first.log_partition, abs=1e-9)


def test_log_space_finds_the_same_loopy_fixed_point():
    """One potential out of float's range forces log space on the whole grid; the fixed point hardly moves."""
    structure = grid(4, 4, 3)
    values = random_potentials(structure, seed=4, scale=0.5).values.copy()
    values[0] = -np.inf
    exact_zero = TIGHT.compile(structure).infer(Tables(structure, values))
    values[0] = -5000.0
    log_space = TIGHT.compile(structure).infer(Tables(structure, values))
    np.testing.assert_allclose(log_space.marginals.values, exact_zero.marginals.values, atol=1e-11)
    assert abs(log_space.iterations - exact_zero.iterations) <= 1  # the last one is decided by rounding
