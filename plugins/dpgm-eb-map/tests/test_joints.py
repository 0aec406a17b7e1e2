"""The covariance of the statistics from joint laws of two tables is the one from derivatives."""

import numpy as np
import pytest
from dpgm_eb_map import joints
from dpgm_eb_map.contrasts import basis_of
from dpgm_eb_map.joints import covariance_by_pairs

import dpgm_core as dpgm
from dpgm_core import Domain, InferenceError, Structure, Tables

MIXED = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 3, "f": 2})
STRUCTURES = {
    "a chain, axes turned": Structure(MIXED, [("a", "b"), ("c", "b"), ("e", "c")]),
    "two components": Structure(MIXED, [("a", "b"), ("f", "e")]),
    "orders 1 to 3, nested": Structure(MIXED, [("c", "a", "b"), ("b", "a"), ("e", "b"), ("c",)]),
    "a loop": Structure(MIXED, [("a", "b"), ("c", "b"), ("c", "f"), ("f", "a")]),
    "one label": Structure(MIXED, [("d", "a"), ("d",)]),
    "one table": Structure(MIXED, [("e", "c", "b")]),
    "tied": Structure(MIXED, [("a", "b"), ("a", "e")], tied=[[("b", "c"), ("e", "c")]]),
}


def drawn(name, inference="junction-tree", **options):
    """Engine, basis, and potentials at random."""
    structure = STRUCTURES[name]
    noisy = dpgm.release(
        np.zeros((100, 6), dtype=int), structure, dpgm.Budget.zcdp("0.1"), "gaussian",
        terms=dpgm.Terms(neighbours="add-remove"), randomness=dpgm.SeededRandomness(1),
    )  # fmt: skip
    basis = basis_of(noisy)
    theta = Tables(structure, basis.potentials(np.random.default_rng(2).normal(size=basis.size)))
    return dpgm.make("inference", inference, **options).compile(structure), basis, theta


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name != "tied"])
def test_the_covariance_is_the_one_from_derivatives(monkeypatch, name):
    """Whatever tables share, in whatever order, and where shares of what they tell are not alike."""
    monkeypatch.setattr(joints, "_WORTH", 0)
    engine, basis, theta = drawn(name)
    actual = covariance_by_pairs(engine, basis, theta)
    known = basis.statistics(engine.curvature(theta)(basis.matrix()))
    np.testing.assert_allclose(actual, known, rtol=0, atol=1e-14)
    assert np.diag(known).min(initial=1.0) > 1e-3


def test_derivatives_where_joint_distributions_do_not_serve(monkeypatch):
    """Ties, few parameters for the pairs, large tables, engines without exact queries, and too little memory."""
    assert covariance_by_pairs(*drawn("a loop")) is None
    monkeypatch.setattr(joints, "_WORTH", 0)
    assert covariance_by_pairs(*drawn("a loop")) is not None
    assert covariance_by_pairs(*drawn("tied")) is None
    assert covariance_by_pairs(*drawn("a loop", "loopy-bp")) is None
    assert covariance_by_pairs(*drawn("one table", max_bytes=2**11)) is None
    monkeypatch.setattr(joints, "_LARGEST", 7)
    assert covariance_by_pairs(*drawn("a loop")) is None


def test_what_the_engine_refuses_is_refused(monkeypatch):
    """NaN potentials."""
    monkeypatch.setattr(joints, "_WORTH", 0)
    engine, basis, theta = drawn("a loop")
    with pytest.raises(InferenceError):
        covariance_by_pairs(engine, basis, theta.like(np.full(theta.structure.cells, np.nan)))
