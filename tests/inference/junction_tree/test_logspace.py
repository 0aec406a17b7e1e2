"""The executor on logarithms: what probabilities cannot hold, and draws."""

import math

import numpy as np
import pytest
from scipy import stats

from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree import logspace
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def test_logarithms_equal_probabilities(awkward, lab):
    """Both executors of a plan give the same answer where both apply, and where tables hold exact zeros."""
    engine = JunctionTree().compile(awkward)
    rng = np.random.default_rng(3)
    values = rng.normal(size=awkward.cells)
    values[rng.random(awkward.cells) < 0.2] = -np.inf
    theta = Tables(awkward, values)
    try:
        beliefs = engine.infer(theta)
    except InferenceError:
        with pytest.raises(InferenceError):
            lab.in_logarithms(engine, theta)
        return
    marginals, log_partition = lab.in_logarithms(engine, theta)
    np.testing.assert_allclose(beliefs.marginals.values, marginals, rtol=1e-10, atol=1e-14)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("chunk", [2**18, 60])
@pytest.mark.parametrize("inner", [1, 3, 20])
@pytest.mark.parametrize("spread", [1.0, 100.0, 500.0, 1e5])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.95])
def test_a_contraction_is_the_sum_of_its_terms(zeros, spread, inner, chunk, monkeypatch):
    """Whatever the span, however few or many terms, with rows and columns of nothing but zeros: to the last digits."""
    monkeypatch.setattr(logspace, "_CHUNK", chunk)
    rng = np.random.default_rng(int(spread) + inner)
    p, q = spread * rng.normal(size=(2, 7, inner)), spread * rng.normal(size=(2, inner, 5))
    for table in (p, q):
        table[rng.random(table.shape) < zeros] = -np.inf
    terms = (p[:, :, :, None] + q[:, None]).astype(np.longdouble)
    top = np.maximum(terms.max(axis=2, keepdims=True), -1e30)
    with np.errstate(divide="ignore"):
        expected = np.log(np.exp(terms - top).sum(axis=2)) + top[:, :, 0]
    expected[(terms == -np.inf).all(axis=2)] = -np.inf
    found = logspace.log_contract(p, q.transpose(0, 2, 1).copy().transpose(0, 2, 1))
    np.testing.assert_allclose(found, expected.astype(float), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("zeros", [0.0, 0.15])
def test_maximize_matches_brute_force(awkward, zeros, lab):
    """The record found has the largest log-probability, and its value is the one returned."""
    rng = np.random.default_rng(11)
    values = 5 * rng.normal(size=awkward.cells)
    if awkward.cells > 10:
        values[rng.random(awkward.cells) < zeros] = -np.inf
    theta = Tables(awkward, values)
    joint = lab.log_joint(awkward, theta)
    codes, value = JunctionTree().compile(awkward).maximize(theta)
    assert list(codes) == list(awkward.domain.names)
    assert value == pytest.approx(joint.max(), rel=1e-12)
    assert joint[tuple(codes.values())] == pytest.approx(joint.max(), rel=1e-12)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("block", [40_000, 5])
@pytest.mark.parametrize("name", ["cyclic", "disconnected", "large cliques, odd axes", "tied, disjoint"])
def test_samples_follow_the_model(name, block, lab):
    """Chi-squared over all cells of the joint table, for records drawn together (conditional tables) and a few at a
    time (weights of each record); false alarm 1e-6 per case (fixed seed)."""
    structure = lab.awkward[name]
    theta = Tables(structure, np.random.default_rng(13).normal(size=structure.cells))
    count = 40_000 if block == 40_000 else 3_000
    engine, generator = JunctionTree().compile(structure), np.random.default_rng(17)
    blocks = [engine.sample(theta, block, generator) for _ in range(count // block)]
    records = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    assert [column.dtype for column in records] == [np.dtype(np.uint8)] * 6
    shape = lab.domain.shape(lab.domain.names)
    seen = np.bincount(np.ravel_multi_index(records, shape), minlength=math.prod(shape))
    joint = np.exp(lab.log_joint(structure, theta)).reshape(-1)
    expected = count * joint / joint.sum()
    common = expected >= 5
    pooled_seen = np.append(seen[common], seen[~common].sum())
    pooled = np.append(expected[common], expected[~common].sum())
    keep = pooled > 0
    assert stats.chisquare(pooled_seen[keep], pooled[keep]).pvalue > 1e-6


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 33])
def test_codes_invert_the_distribution_function(size):
    """The code of a uniform number u is how many codes' weights up to it are at most u of all; never a weight of 0."""
    rng = np.random.default_rng(size)
    weights = rng.normal(size=(50, size)) * 3
    weights[rng.random(weights.shape) < 0.3] = -np.inf
    weights[:, rng.integers(size)] = 0.0
    rows = rng.integers(50, size=400)
    codes = logspace.at_random(np.random.default_rng(1))(weights)(rows)
    upto = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)[rows]
    at = np.random.default_rng(1).random(400) * upto[:, -1]
    assert codes.tolist() == (upto <= at[:, None]).sum(axis=1).tolist()
    assert np.isfinite(weights[rows, codes]).all()


def test_samples_avoid_impossible_codes_and_any_count_will_do(lab):
    """-inf cells are never drawn; 0 records are 0 records; more than one block of records is one array."""
    structure = Structure(lab.domain, [("a", "b"), ("b", "c")])
    values = np.zeros(structure.cells)
    values[[0, 4, 7, 17]] = -np.inf
    theta = Tables(structure, values)
    engine = JunctionTree().compile(structure)
    assert [len(column) for column in engine.sample(theta, 0, np.random.default_rng(0))] == [0] * 6
    records = engine.sample(theta, 70_000, np.random.default_rng(0))
    counts = np.zeros((2, 3, 4))
    np.add.at(counts, tuple(records[:3]), 1)
    forbidden = lab.log_joint(structure, theta)[:, :, :, 0, 0, 0] == -np.inf
    assert counts.sum() == 70_000 and counts[forbidden].sum() == 0 and (counts[~forbidden] > 0).all()
    with pytest.raises(InferenceError, match="whole number"):
        engine.sample(theta, -1, np.random.default_rng(0))
