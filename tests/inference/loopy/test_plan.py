"""A plan of messages refuses what is too large, and ties as copies do."""

from __future__ import annotations

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_a_tied_group_equals_its_copies(lab):
    """Tying is bookkeeping: the tied table is the sum of the tables of the untied model with equal potentials."""
    tied = lab.loopy["tied ring"]
    table = np.random.default_rng(0).normal(size=9)
    untied = tied.untied()
    one = lab.tight.compile(tied).infer(Tables(tied, table))
    many = lab.tight.compile(untied).infer(Tables(untied, np.tile(table, 4)))
    np.testing.assert_allclose(one.marginals.values, sum(part.reshape(-1) for part in many.marginals.arrays()))
    assert one.log_partition == pytest.approx(many.log_partition, rel=1e-12)


def test_structures_beyond_memory_are_refused_before_allocating():
    """A table of 10^12 cells is priced, not attempted."""
    structure = Structure(Domain.from_sizes({f"x{i}": 10 for i in range(12)}), [tuple(f"x{i}" for i in range(12))])
    with pytest.raises(TooLarge, match=r"1,000,000,000,000 factor cells need about 90\.9 TiB"):
        LoopyBP().compile(structure)


@pytest.mark.landing
def test_a_large_grid_runs(lab):
    """A 100 x 100 grid, far beyond any junction tree, converges and stays locally consistent."""
    structure = lab.grid(100, 100, 2)
    beliefs = LoopyBP(tolerance=1e-6).compile(structure).infer(lab.random_potentials(structure, seed=0))
    assert beliefs.converged
    np.testing.assert_allclose(
        beliefs.marginals["x0", "x1"].sum(axis=0), beliefs.marginals["x1", "x2"].sum(axis=1), atol=1e-5
    )
