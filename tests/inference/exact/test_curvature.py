"""Second derivatives of the exact engine: against all records, and against its first derivatives."""

import itertools
from unittest import mock

import numpy as np
import pytest

from dpgm_core.domain import Domain
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.contract import SecondOrder
from dpgm_core.inference.exact import curvature as second_order
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "f": 3})
AWKWARD = {
    "long cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "e"), ("e", "f"), ("f", "a")]),
    "missing attributes": Structure(DOMAIN, [("b", "c")]),
    "nested": Structure(DOMAIN, [("f", "a", "b"), ("b",), ("a", "b"), ("b", "f")]),
    "empty clique among others": Structure(DOMAIN, [("a", "e"), (), ("c",)]),
    "disconnected": Structure(DOMAIN, [("a", "b"), ("e", "f"), ("c",)]),
    "size one": Structure(DOMAIN, [("d",), ("a", "d"), ("b", "d", "c")]),
    "nothing to learn": Structure(DOMAIN, [("d",)]),
    "whole domain": Structure(DOMAIN, [("f", "c", "a", "d", "b", "e")]),
    "large cliques, odd axes": Structure(DOMAIN, [("c", "b", "a", "e"), ("f", "b", "c"), ("e", "f", "a")]),
    "complete": Structure.complete(DOMAIN),
    "star": Structure(DOMAIN, [("c", "a"), ("b", "c"), ("c", "e"), ("c", "f"), ("d", "c")]),
    "tied, disjoint": Structure(DOMAIN, [("a", "e")], tied=[[("b", "c"), ("f", "c")]]),
    "tied, transposed twin outside": Structure(DOMAIN, [("f", "b")], tied=[[("b", "a"), ("f", "e")]]),
}


def indicators(structure):
    """T(x) of every record, (records, cells)."""
    names = structure.domain.names
    rows = []
    for record in itertools.product(*(range(size) for size in structure.domain.shape(names))):
        row = np.zeros(structure.cells)
        for number, group in enumerate(structure.groups):
            for clique in group:
                codes = [record[names.index(name)] for name in clique]
                cell = np.ravel_multi_index(codes, structure.shapes[number]) if codes else 0
                row[structure.slices[number].start + cell] += 1
        rows.append(row)
    return np.array(rows)


def covariance(structure, theta):
    """Cov(T) by summing over all records."""
    told = indicators(structure)
    with np.errstate(invalid="ignore"):
        score = np.where(told > 0, told * theta, 0.0).sum(axis=1)
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    centred = told - weight @ told
    return (centred * weight[:, None]).T @ centred


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("scale", [0.0, 1.0, 40.0])
def test_equals_the_covariance_over_all_records(name, scale):
    """Every column of Cov(T), whatever the cliques, ties and spread of the potentials."""
    structure = AWKWARD[name]
    theta = scale * np.random.default_rng(5).normal(size=structure.cells)
    found = JunctionTree().compile(structure).curvature(Tables(structure, theta))(np.eye(structure.cells))
    np.testing.assert_allclose(found, covariance(structure, theta), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["long cycle", "nested", "disconnected", "large cliques, odd axes", "tied, disjoint"])
def test_zeros_are_safe(name):
    """With a fifth of the cells at -inf the covariance is still that over all records, and 0 where a cell is."""
    structure = AWKWARD[name]
    rng = np.random.default_rng(3)
    theta = rng.normal(size=structure.cells)
    theta[rng.random(structure.cells) < 0.2] = -np.inf
    found = JunctionTree().compile(structure).curvature(Tables(structure, theta))(np.eye(structure.cells))
    np.testing.assert_allclose(found, covariance(structure, theta), rtol=1e-8, atol=1e-12)
    assert np.all(found[np.isneginf(theta)] == 0)


def test_potentials_that_probabilities_cannot_hold():
    """At potentials of +-800 nats nothing is lost: a chain whose tables span e^1600 has a known covariance."""
    structure = Structure.chain(Domain.from_sizes({"x": 2, "y": 2, "z": 2}))
    # Great potentials that cancel: x and y differ surely, z is free given y.
    theta = np.array([-800.0, 800.0, 800.0, -800.0, 0.0, 0.0, 0.0, 0.0])
    found = JunctionTree().compile(structure).curvature(Tables(structure, theta))(np.eye(8))
    np.testing.assert_allclose(found, covariance(structure, theta), atol=1e-14)
    assert found[1, 1] == pytest.approx(0.25)


@pytest.mark.parametrize("tied", [False, True])
def test_is_the_derivative_of_the_marginals(tied):
    """Central differences of `infer` on a third-order chain too large to enumerate, plain and with tied tables."""
    domain = Domain.from_sizes({f"x{place}": 4 for place in range(12)})
    structure = Structure.chain(domain, 3)
    if tied:
        structure = Structure(domain, structure.cliques[:12], tied=[structure.cliques[12:20], structure.cliques[20:]])
    rng = np.random.default_rng(1)
    theta = rng.normal(size=structure.cells)
    directions = rng.normal(size=(structure.cells, 3))
    engine = JunctionTree().compile(structure)
    found = engine.curvature(Tables(structure, theta))(directions)
    for column, direction in enumerate(directions.T):
        up, down = (engine.infer(Tables(structure, theta + step * direction)) for step in (1e-5, -1e-5))
        slope = (up.marginals.values - down.marginals.values) / 2e-5
        np.testing.assert_allclose(found[:, column], slope, atol=1e-8)


def test_columns_are_independent_of_their_company():
    """One direction alone, in a batch, and split over several walks: the same answer; also without kept weights."""
    structure = AWKWARD["large cliques, odd axes"]
    rng = np.random.default_rng(2)
    engine = JunctionTree().compile(structure)
    theta = Tables(structure, rng.normal(size=structure.cells))
    directions = rng.normal(size=(structure.cells, 7))
    together = engine.curvature(theta)(directions)
    np.testing.assert_allclose(engine.curvature(theta)(directions[:, 4]), together[:, 4], rtol=1e-10, atol=1e-14)
    with mock.patch.object(second_order, "_COLUMNS", 2), mock.patch.object(second_order, "_KEPT", 0):
        np.testing.assert_allclose(engine.curvature(theta)(directions), together, rtol=1e-10, atol=1e-14)


def test_is_declared():
    """The engine says that it has the capability, and keeps the contract."""
    engine = JunctionTree().compile(AWKWARD["nested"])
    assert "curvature" in engine.capabilities and isinstance(engine, SecondOrder)


def test_refuses_what_it_cannot_answer():
    """Directions of another length or not finite, impossible potentials, another structure."""
    structure = AWKWARD["nested"]
    engine = JunctionTree().compile(structure)
    flat = engine.curvature(Tables.zeros(structure))
    with pytest.raises(InferenceError, match="shape"):
        flat(np.zeros(3))
    with pytest.raises(InferenceError, match="finite"):
        flat(np.full(structure.cells, np.nan))
    with pytest.raises(InferenceError, match="probability 0"):
        engine.curvature(Tables(structure, np.full(structure.cells, -np.inf)))
    with pytest.raises(StructureError):
        engine.curvature(Tables.zeros(AWKWARD["star"]))
