"""The executor on logarithms: what probabilities cannot hold, and draws."""

import math
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from dpgm_core.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.inference.exact.probability import ProbabilityExecutor
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 1, "e": 2, "f": 3})
AWKWARD = {
    "cyclic": Structure(DOMAIN, [("a", "b"), ("c", "b"), ("a", "c")]),
    "long cycle": Structure(DOMAIN, [("a", "b"), ("b", "c"), ("c", "e"), ("e", "f"), ("f", "a")]),
    "missing attributes": Structure(DOMAIN, [("b", "c")]),
    "duplicate": Structure(DOMAIN, [("b", "c"), ("c", "b"), ("b", "c")]),
    "nested": Structure(DOMAIN, [("f", "a", "b"), ("b",), ("a", "b"), ("b", "f")]),
    "single": Structure(DOMAIN, [("e",)]),
    "empty clique": Structure(DOMAIN, [()]),
    "empty clique among others": Structure(DOMAIN, [("a", "e"), (), ("c",)]),
    "disconnected": Structure(DOMAIN, [("a", "b"), ("e", "f"), ("c",)]),
    "size one": Structure(DOMAIN, [("d",), ("a", "d"), ("b", "d", "c")]),
    "whole domain": Structure(DOMAIN, [("f", "c", "a", "d", "b", "e")]),
    "large cliques, odd axes": Structure(DOMAIN, [("c", "b", "a", "e"), ("f", "b", "c"), ("e", "f", "a")]),
    "complete": Structure.complete(DOMAIN),
    "star": Structure(DOMAIN, [("c", "a"), ("b", "c"), ("c", "e"), ("c", "f"), ("d", "c")]),
    "tied, disjoint": Structure(DOMAIN, [("a", "e")], tied=[[("b", "c"), ("f", "c")]]),
    "tied, overlapping its own": Structure(DOMAIN, [("b",)], tied=[[("b", "f"), ("f", "b")][:1], [("b",), ("f",)]]),
    "tied, transposed twin outside": Structure(DOMAIN, [("f", "b")], tied=[[("b", "a"), ("f", "e")]]),
    "tied scalars": Structure(Domain.from_sizes({"x": 1, "y": 1, "z": 2}), [("z",)], tied=[[("x",), ("y",)]]),
}


def log_joint(structure, theta):
    """Unnormalised log-probabilities of all records, one axis per attribute."""
    names = structure.domain.names
    shape = structure.domain.shape(names)
    joint = np.zeros(shape)
    for number, group in enumerate(structure.groups):
        for clique in group:
            axes = [names.index(name) for name in clique]
            spread = [size if axis in axes else 1 for axis, size in enumerate(shape)]
            joint = joint + theta.group(number).transpose(np.argsort(axes)).reshape(spread)
    return joint


def in_logarithms(engine, theta):
    """What the engine answers when probabilities may not do."""
    with mock.patch.object(ProbabilityExecutor, "__call__", return_value=None):
        beliefs = engine.infer(theta)
    return beliefs.marginals.values, beliefs.log_partition


@pytest.mark.parametrize("name", AWKWARD)
def test_logarithms_equal_probabilities(name):
    """Both executors of a plan give the same answer where both apply, and where tables hold exact zeros."""
    structure = AWKWARD[name]
    engine = JunctionTree().compile(structure)
    rng = np.random.default_rng(3)
    values = rng.normal(size=structure.cells)
    values[rng.random(structure.cells) < 0.2] = -np.inf
    theta = Tables(structure, values)
    try:
        beliefs = engine.infer(theta)
    except InferenceError:
        with pytest.raises(InferenceError):
            in_logarithms(engine, theta)
        return
    marginals, log_partition = in_logarithms(engine, theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-10, atol=1e-14)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("zeros", [0.0, 0.15])
def test_maximize_matches_brute_force(name, zeros):
    """The record found has the largest log-probability, and its value is the one returned."""
    structure = AWKWARD[name]
    rng = np.random.default_rng(11)
    values = 5 * rng.normal(size=structure.cells)
    if structure.cells > 10:
        values[rng.random(structure.cells) < zeros] = -np.inf
    theta = Tables(structure, values)
    joint = log_joint(structure, theta)
    codes, value = JunctionTree().compile(structure).maximize(theta)
    assert list(codes) == list(structure.domain.names)
    assert value == pytest.approx(joint.max(), rel=1e-12)
    assert joint[tuple(codes.values())] == pytest.approx(joint.max(), rel=1e-12)


@pytest.mark.parametrize("block", [40_000, 5])
@pytest.mark.parametrize("name", ["cyclic", "disconnected", "large cliques, odd axes", "tied, disjoint"])
def test_samples_follow_the_model(name, block):
    """Chi-squared over all cells of the joint table, for records drawn together (conditional tables) and a few at a
    time (weights of each record); false alarm 1e-6 per case (fixed seed)."""
    structure = AWKWARD[name]
    theta = Tables(structure, np.random.default_rng(13).normal(size=structure.cells))
    count = 40_000 if block == 40_000 else 3_000
    engine, generator = JunctionTree().compile(structure), np.random.default_rng(17)
    blocks = [engine.sample(theta, block, generator) for _ in range(count // block)]
    records = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    assert [column.dtype for column in records] == [np.dtype(np.uint8)] * 6
    shape = DOMAIN.shape(DOMAIN.names)
    seen = np.bincount(np.ravel_multi_index(records, shape), minlength=math.prod(shape))
    joint = np.exp(log_joint(structure, theta)).reshape(-1)
    expected = count * joint / joint.sum()
    common = expected >= 5
    pooled_seen = np.append(seen[common], seen[~common].sum())
    pooled = np.append(expected[common], expected[~common].sum())
    keep = pooled > 0
    assert stats.chisquare(pooled_seen[keep], pooled[keep]).pvalue > 1e-6


def test_samples_avoid_impossible_codes_and_any_count_will_do():
    """-inf cells are never drawn; 0 records are 0 records; more than one block of records is one array."""
    structure = Structure(DOMAIN, [("a", "b"), ("b", "c")])
    values = np.zeros(structure.cells)
    values[[0, 4, 7, 17]] = -np.inf
    theta = Tables(structure, values)
    engine = JunctionTree().compile(structure)
    assert [len(column) for column in engine.sample(theta, 0, np.random.default_rng(0))] == [0] * 6
    records = engine.sample(theta, 70_000, np.random.default_rng(0))
    counts = np.zeros((2, 3, 4))
    np.add.at(counts, tuple(records[:3]), 1)
    forbidden = log_joint(structure, theta)[:, :, :, 0, 0, 0] == -np.inf
    assert counts.sum() == 70_000 and counts[forbidden].sum() == 0 and (counts[~forbidden] > 0).all()
    with pytest.raises(InferenceError, match="whole number"):
        engine.sample(theta, -1, np.random.default_rng(0))
