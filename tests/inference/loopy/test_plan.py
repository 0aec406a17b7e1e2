"""A plan of messages refuses what is too large, and ties as copies do."""

from __future__ import annotations

import numpy as np
import pytest

from dpgm_core.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

TIGHT = LoopyBP(tolerance=1e-13, max_iterations=5000)


def random_potentials(structure, seed, scale=1.0):
    return Tables(structure, np.random.default_rng(seed).uniform(-scale, scale, structure.cells))


def grid(rows, columns, size):
    domain = Domain.from_sizes({f"x{i}": size for i in range(rows * columns)})
    return Structure.grid(domain, rows, columns)


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


def test_a_tied_group_equals_its_copies():
    """Tying is bookkeeping: the tied table is the sum of the tables of the untied model with equal potentials."""
    tied = LOOPY["tied ring"]
    table = np.random.default_rng(0).normal(size=9)
    untied = tied.untied()
    one = TIGHT.compile(tied).infer(Tables(tied, table))
    many = TIGHT.compile(untied).infer(Tables(untied, np.tile(table, 4)))
    np.testing.assert_allclose(one.marginals.values, sum(part.reshape(-1) for part in many.marginals.arrays()))
    assert one.log_partition == pytest.approx(many.log_partition, rel=1e-12)


def test_structures_beyond_memory_are_refused_before_allocating():
    """A table of 10^12 cells is priced, not attempted."""
    structure = Structure(Domain.from_sizes({f"x{i}": 10 for i in range(12)}), [tuple(f"x{i}" for i in range(12))])
    with pytest.raises(TooLarge, match=r"1,000,000,000,000 factor cells need about 90\.9 TiB"):
        LoopyBP().compile(structure)


def test_a_large_grid_runs():
    """A 100 x 100 grid, far beyond any junction tree, converges and stays locally consistent."""
    structure = grid(100, 100, 2)
    beliefs = LoopyBP(tolerance=1e-6).compile(structure).infer(random_potentials(structure, seed=0))
    assert beliefs.converged
    np.testing.assert_allclose(
        beliefs.marginals["x0", "x1"].sum(axis=0), beliefs.marginals["x1", "x2"].sum(axis=1), atol=1e-5
    )
