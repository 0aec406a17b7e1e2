"""Compiled sweeps give what numpy's do: the same schedule, damping and stopping."""

from __future__ import annotations

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, NotConverged, OptionError
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

pytest.importorskip("numba")

MIXED = Structure(
    Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "f": 3}),
    [("a", "b", "c", "e"), ("c", "d", "f"), ("e", "f", "b"), ("a", "f"), ("c",), (), ("e", "a")],
)


def both(structure, potentials, **options):
    """Beliefs by numba and by numpy."""
    return [LoopyBP(executor=name, **options).compile(structure).infer(potentials) for name in ("numba", "numpy")]


def agree(structure, potentials, **options):
    """Marginals, log Z, sweeps and convergence are the same."""
    fast, plain = both(structure, potentials, **options)
    np.testing.assert_allclose(fast.marginals.values, plain.marginals.values, rtol=1e-12, atol=1e-15)
    assert fast.log_partition == pytest.approx(plain.log_partition, rel=1e-12, abs=1e-12)
    assert (fast.converged, fast.iterations) == (plain.converged, plain.iterations)
    return fast


def test_forests_agree(forest, lab):
    """Trees of any shape, nested, tied and empty cliques included, with and without zeros."""
    values = lab.random_potentials(forest, seed=1).values.copy()
    agree(forest, Tables(forest, values))
    values[np.random.default_rng(2).random(values.size) < 0.3] = -np.inf
    for where in forest.slices:
        values[where.start] = 0.0
    agree(forest, Tables(forest, values))


@pytest.mark.parametrize("damping", [0.0, 0.3, 0.5])
def test_loops_agree(loopy, damping, lab):
    """After a few sweeps and at convergence, whatever the damping."""
    potentials = lab.random_potentials(loopy, seed=4, scale=0.7)
    agree(loopy, potentials, damping=damping, max_iterations=3)
    assert agree(loopy, potentials, damping=damping).converged


def test_factors_of_many_orders_and_sizes_agree():
    """One to four attributes to a factor, sizes 1 to 4, some zeros."""
    values = np.random.default_rng(0).normal(size=MIXED.cells)
    values[5:20:3] = -np.inf
    agree(MIXED, Tables(MIXED, values))


def test_wide_classes_and_high_degrees_agree():
    """More factors of one shape than are worked on at a time, with hubs of 3 to 70 neighbours."""
    names = [f"x{i}" for i in range(60)]
    draws = np.random.default_rng(3)
    pairs = {tuple(sorted(draws.choice(60, 2, replace=False))) for _ in range(500)}
    pairs |= {(0, i) for i in range(1, 60)}
    structure = Structure(Domain.from_sizes(dict.fromkeys(names, 3)), [(names[i], names[j]) for i, j in sorted(pairs)])
    agree(structure, Tables(structure, draws.uniform(-0.05, 0.05, structure.cells)))


def test_what_underflows_is_left_to_numpy(lab):
    """Products that might leave float's range: hubs of strong messages, spans of thousands of nats."""
    names = [f"x{i}" for i in range(400)]
    structure = Structure(Domain.from_sizes({"hub": 3} | dict.fromkeys(names, 2)), [("hub", name) for name in names])
    agree(structure, lab.random_potentials(structure, seed=1, scale=3.0))
    grid = lab.grid(4, 4, 3)
    agree(grid, lab.random_potentials(grid, seed=1, scale=600.0), max_iterations=20)


def test_the_residual_schedule_is_numpys(lab):
    """It runs, and gives what it gave."""
    grid = lab.grid(4, 4, 3)
    agree(grid, lab.random_potentials(grid, seed=1), schedule="residual")


def test_contradictions_and_failures_to_converge_are_told_alike(lab):
    """Both say that every record is impossible, and by how much messages still change."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    values = np.zeros(12)
    values[[1, 3, 4, 5]] = -np.inf
    grid = lab.grid(5, 5, 2)
    strong = lab.random_potentials(grid, seed=1, scale=4.0)
    said = []
    for name in ("numba", "numpy"):
        with pytest.raises(InferenceError, match="every record has probability 0"):
            LoopyBP(executor=name).compile(ring).infer(Tables(ring, values))
        with pytest.raises(NotConverged) as caught:
            LoopyBP(executor=name, damping=0.0, max_iterations=5, require_convergence=True).compile(grid).infer(strong)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_other_executors_are_refused():
    """Also "log", which only the junction tree has."""
    with pytest.raises(OptionError, match="executor must be 'auto' or 'numpy' or 'numba', got 'log'"):
        LoopyBP(executor="log")
