"""Zeros and ranges beyond doubles: every path of the exact engine gives what all records together say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 4, "e": 2})
STRUCTURES = [
    Structure(DOMAIN, map(tuple, cliques))
    for cliques in (
        ["e"],
        ["ab", "bc", "cd", "de", "ea"],
        ["abd", "cd", "e", "ce"],
        ["ab", "ac", "ad", "ae", "a"],
        ["bd", "ce"],
        ["abcde", "bc"],
    )
]
ENGINES = {structure: JunctionTree().compile(structure) for structure in STRUCTURES}


@st.composite
def forbidding(draw):
    """Potentials of one of the structures, many cells -inf, others thousands of nats apart; shrink to mild."""
    structure = draw(st.sampled_from(STRUCTURES))
    scale = draw(st.sampled_from([0.0, 1.0, 30.0, 150.0, 320.0, 700.0, 5000.0]))
    zeros, penalties = draw(st.sampled_from([0.0, 0.3, 0.6])), draw(st.sampled_from([0.0, 0.5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.normal(size=structure.cells)
    values -= scale * (rng.random(structure.cells) < penalties)
    values += scale * rng.normal(size=structure.cells) * (penalties == 0.0)
    values[rng.random(structure.cells) < zeros] = -np.inf
    return Tables(structure, values)


@given(forbidding())
@settings(max_examples=150, deadline=None)
def test_every_path_gives_what_all_records_say(lab, theta):
    """Probabilities, unless they give up, and logarithms: log Z, and marginals to the last digits that the potentials
    have; what is impossible is 0. Contradictions are one error on either path."""
    structure = theta.structure
    engine = ENGINES[structure]
    if (lab.log_joint(structure, theta) == -np.inf).all():
        for path in (engine.infer, lambda theta: lab.in_logarithms(engine, theta), engine.maximize, engine.curvature):
            with pytest.raises(InferenceError, match="every record has probability 0"):
                path(theta)
        return
    marginals, log_partition = lab.brute_force(structure, theta)
    beliefs = engine.infer(theta)
    digits = 1e-12 + 4e-16 * np.abs(theta.values[theta.values > -np.inf]).max()  # those of a sum of potentials
    for found, log_z in ((beliefs.marginals.values, beliefs.log_partition), lab.in_logarithms(engine, theta)):
        assert log_z == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found, marginals, rtol=4 * digits, atol=1e-36)
        assert not found[marginals == 0].any()


@given(forbidding(), st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_curvature_samples_and_maxima_are_right_too(lab, theta, seed):
    """Cov(T) along a direction by its definition; records drawn are possible; the maximum is one."""
    structure = theta.structure
    joint = lab.log_joint(structure, theta)
    if (joint == -np.inf).all():
        return
    engine, direction = ENGINES[structure], np.random.default_rng(seed).normal(size=structure.cells)
    weights = np.exp(joint - joint.max())
    weights /= weights.sum()
    slope = lab.log_joint(structure, Tables(structure, direction))
    expected = lab.project(structure, weights * (slope - (weights * slope).sum()))
    np.testing.assert_allclose(engine.curvature(theta)(direction), expected, atol=1e-9)
    codes, best = engine.maximize(theta)
    assert best == pytest.approx(joint.max(), rel=1e-12, abs=1e-12)
    assert joint[tuple(codes.values())] == pytest.approx(best, rel=1e-12, abs=1e-12)
    for draw in (engine.sample, engine.rounded):
        assert (joint[tuple(draw(theta, 50, np.random.default_rng(seed)))] > -np.inf).all()
