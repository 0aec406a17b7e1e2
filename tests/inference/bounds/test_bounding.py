"""Certified bounds against enumeration, exact inference and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, TooLarge
from dpgm_core.inference.bounds import PartwiseBounds
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.models.model import Model
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import enumerated
from dpgm_testing.strategies import potentials


def grid(rows, columns, size):
    return Structure.grid(Domain.from_sizes({f"x{i}": size for i in range(rows * columns)}), rows, columns)


def normal(structure, seed, scale=1.0):
    return Tables(structure, scale * np.random.default_rng(seed).normal(size=structure.cells))


@settings(max_examples=60)
@given(potentials())
def test_log_z_is_inside_whatever_the_model(theta):
    """Any structure of the kit's: loops, nested, tied, empty cliques, single labels; zeros; potentials to 700 nats.

    Clusters of two cells at most, so that nothing but forests is exact.
    """
    found = PartwiseBounds(theta.structure, cells=2).bounds(theta)
    truth = enumerated(theta).log_partition
    assert found.low <= truth <= found.high
    assert math.isfinite(found.low) and math.isfinite(found.high)


def test_forests_are_exact():
    """One part holds a forest, or whatever fits: both bounds are log Z, to 1e-9."""
    structure = Structure(
        Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 1, "e": 3, "f": 4}),
        [("c", "a", "b"), ("a", "b"), ("e",), (), ("c", "d", "e"), ("e", "d")],
    )
    theta = normal(structure, seed=0)
    found = PartwiseBounds(structure, cells=2).bounds(theta)
    assert found.low <= enumerated(theta).log_partition <= found.high < found.low + 1e-9
    assert found.notes == ("one junction tree holds the model: both are exact",)


@pytest.mark.landing
def test_a_grid_of_a_hundred_attributes_is_bounded_closely():
    """Standard normal potentials, against the exact junction tree: .99 nats of log Z = 118.7 as measured."""
    structure = grid(10, 10, 2)
    theta = normal(structure, seed=0)
    found = PartwiseBounds(structure).bounds(theta)
    assert found.low <= JunctionTree().compile(structure).infer(theta).log_partition <= found.high < found.low + 1.5


@pytest.mark.landing
def test_wider_clusters_are_tighter():
    """Both bounds, on a grid of three labels."""
    structure = grid(5, 5, 3)
    theta = normal(structure, seed=0)
    narrow, wide = (PartwiseBounds(structure, cells=cells).bounds(theta) for cells in (9, 81))
    exact = JunctionTree().compile(structure).infer(theta).log_partition
    assert narrow.low < wide.low <= exact <= wide.high < narrow.high


def test_spanning_trees_reach_the_tree_reweighted_optimum():
    """A ring of four without fields: by symmetry every edge is in 3/4 of the trees, and the bound is Wainwright's."""
    coupling = 0.8
    structure = Structure(Domain.from_sizes(dict.fromkeys("abcd", 2)), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    theta = Tables(structure, np.tile([coupling, -coupling, -coupling, coupling], 4))
    found = PartwiseBounds(structure, cells=4).bounds(theta)
    # Each tree has three edges of coupling 4/3 of the true one: log Z = log 2 + 3 log(2 cosh(4/3 J)).
    assert found.high == pytest.approx(math.log(2) + 3 * math.log(2 * math.cosh(4 / 3 * coupling)), abs=1e-6)
    assert found.low <= enumerated(theta).log_partition


def test_one_block_of_mean_field_is_the_closed_form():
    """Two blocks of a ring without fields: strong coupling breaks the symmetry, and a start at a record finds it."""
    structure = grid(3, 3, 2)
    theta = Tables(structure, np.tile([4.0, -4.0, -4.0, 4.0], 12))
    found = PartwiseBounds(structure, cells=4).bounds(theta)
    # One of the two modes, which hold nearly all of Z: log Z - log 2.
    truth = enumerated(theta).log_partition
    assert truth - math.log(2) - 1e-2 <= found.low <= truth


def test_zeros_everywhere_still_leave_a_record_to_start_from():
    """Colourings of a grid by three colours: all zeros, log Z is the log of their number."""
    structure = grid(3, 4, 3)
    table = np.where(np.eye(3, dtype=bool), -np.inf, 0.0).reshape(-1)
    theta = Tables(structure, np.tile(table, len(structure.groups)))
    found = PartwiseBounds(structure, cells=9).bounds(theta)
    exact = JunctionTree().compile(structure).infer(theta).log_partition
    assert 0 < found.low <= exact <= found.high < math.inf


def test_impossible_models_are_told_or_bounded():
    """A contradiction within a part raises; one around a loop no part sees leaves nothing known below, and says so."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    unequal = np.tile([-np.inf, 0.0, 0.0, -np.inf], 3)
    found = PartwiseBounds(ring, cells=4).bounds(Tables(ring, unequal))
    assert found.low == -math.inf and "no possible record" in found.notes[0]
    with pytest.raises(InferenceError, match="probability 0"):
        PartwiseBounds(ring, cells=8).bounds(Tables(ring, unequal))
    for bad in (np.nan, np.inf):
        with pytest.raises(InferenceError):
            PartwiseBounds(ring, cells=4).bounds(Tables(ring, np.where(np.arange(12) == 5, bad, 0.0)))


def test_loopy_belief_propagation_offers_them():
    """Converged or not, over constrained domains too, for its own structure only, and no wider than asked for."""
    structure = grid(4, 4, 2)
    theta = normal(structure, seed=1, scale=3.0)
    engine = LoopyBP(damping=0.0, max_iterations=1, bound_cells=16, executor="numpy").compile(structure)
    found = engine.bounds(theta)
    assert "bounds" in engine.capabilities and not engine.infer(theta).converged
    assert found.low <= enumerated(theta).log_partition <= found.high and found == engine.bounds(theta)
    with pytest.raises(InferenceError, match="compiled for"):
        engine.bounds(normal(grid(2, 2, 2), seed=0))
    wide = Structure(Domain.from_sizes({f"x{i}": 10 for i in range(6)}), [tuple(f"x{i}" for i in range(6))])
    with pytest.raises(TooLarge):
        PartwiseBounds(wide, max_bytes=1000).bounds(Tables.zeros(wide))
    rules = {"le": {"columns": ["a", "b"], "order": "<="}}
    sizes = {name: {"size": 3, "unknown": 0} for name in "abcd"}
    domain = Domain.from_dict({"attributes": sizes, "constraints": rules})
    ring = Structure(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    theta = normal(ring, seed=2)
    found = LoopyBP(bound_cells=9, executor="numpy").compile(ring).bounds(theta)
    assert found.low <= enumerated(theta).log_partition <= found.high


def test_a_model_over_a_constrained_domain_has_them():
    """Through the model's own engine and potentials, as its documentation says, with a derived column too."""
    rules = {
        "le": {"columns": ["a", "b"], "order": "<="},
        "of": {"columns": ["c", "e"], "map": {"0": "0", "1": "1", "2": "1"}},
    }
    attributes = {name: {"size": 3, "unknown": 0} for name in "abcd"} | {"e": {"size": 2, "unknown": 0}}
    domain = Domain.from_dict({"attributes": attributes, "constraints": rules})
    ring = Structure(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("e",)])
    model = Model(ring, normal(ring, seed=4), inference=LoopyBP(bound_cells=9, executor="numpy"))
    found = model.engine.bounds(model.potentials)
    assert found.low <= model.using("junction-tree").log_partition <= found.high < found.low + 1.0
    assert found.high - found.low > 1e-6  # not by one junction tree
