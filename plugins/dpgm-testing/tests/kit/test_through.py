"""Another engine runs the tests of learners and bootstraps in the place of the junction tree."""

from fractions import Fraction

import numpy as np
import pytest

from dpgm_core import (
    Budget,
    Domain,
    LiveCurator,
    OptionError,
    SeededRandomness,
    Structure,
    TableDistance,
    Tables,
    Terms,
    Workload,
)
from dpgm_core.components.registry import Registry
from dpgm_core.errors import UnknownComponent
from dpgm_core.inference import Batched
from dpgm_core.inference.contract import SecondOrder
from dpgm_core.sources import as_source
from dpgm_testing.check import CheckFailed
from dpgm_testing.curators import use_engine
from dpgm_testing.reference import ReferenceLaplace
from dpgm_testing.sessions import live, replayed

CHAIN = Structure.chain(Domain.from_sizes({"a": 3, "b": 2, "c": 2}))


@pytest.fixture
def through():
    """A function: the engine named, as the junction tree's name now gives it, for the chain."""

    def make(name):
        registry = Registry.discover()
        use_engine(registry, name)
        return registry.make("inference", "junction-tree").compile(CHAIN)

    return make


def test_what_learners_call_is_the_engines(through):
    """Marginals and bounds are those of loopy-bp, which has no second derivatives, so a learner sees none."""
    engine, own = through("loopy-bp"), Registry.discover().make("inference", "loopy-bp").compile(CHAIN)
    theta = Tables(CHAIN, np.random.default_rng(1).normal(size=CHAIN.cells))
    found, alone = engine.infer(theta, total=5.0), own.infer(theta, total=5.0)
    assert np.array_equal(found.marginals.values, alone.marginals.values) and found.iterations == alone.iterations > 1
    assert not isinstance(engine, SecondOrder | Batched) and engine.bounds(theta) == own.bounds(theta)
    assert "bounds" in engine.capabilities and "curvature" not in engine.capabilities


def test_what_it_cannot_comes_from_the_junction_tree(through):
    """Samples, queries across cliques and the most probable record, which models are asked for."""
    engine, theta = through("loopy-bp"), Tables.zeros(CHAIN)
    assert len(engine.sample(theta, 4, np.random.default_rng(1))[0]) == 4
    np.testing.assert_allclose(engine.answers(theta, [("a", "c")])[0], np.full((3, 2), 1 / 6))
    assert engine.maximize(theta)[1] == 0.0


def test_second_derivatives_and_many_at_once_are_seen_where_they_are(through):
    """A learner that asks for the methods finds those of the junction tree itself."""
    engine = through("junction-tree")
    assert isinstance(engine, SecondOrder) and isinstance(engine, Batched)
    assert len(engine.infer_many(np.zeros((2, CHAIN.cells)))) == 2


def test_what_is_no_engine_is_refused():
    registry = Registry.discover()
    with pytest.raises(UnknownComponent, match="did you mean 'loopy-bp'"):
        use_engine(registry, "loppy-bp")
    with pytest.raises(OptionError):
        registry.make("inference", "junction-tree", schedule="residual")


DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 2})


def test_scores_and_their_mean_are_two_requests():
    """A replay answers either as the session did, and refuses one for the other."""
    pairs = Structure.complete(DOMAIN)
    scores = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 9.0))
    curator = LiveCurator(
        as_source(np.zeros((40, 3), np.int64)), pairs, ReferenceLaplace(), terms=Terms(neighbours="add-remove"),
        budget=Budget.zcdp(1), randomness=SeededRandomness(1),
    )  # fmt: skip
    with curator.session(workload=Workload.all(DOMAIN)) as session:
        guarded = live(session)
        each = session.budget * Fraction(1, 4)
        asked = [guarded.score(scores, each), guarded.score(scores, each, mean=True)]
        assert [len(one.values) for one in asked] == [3, 1] and tuple(asked) == session.steps
    again = replayed(guarded.log)
    assert [again.score(scores, each), again.score(scores, each, mean=True)] == asked
    again = replayed(guarded.log)
    with pytest.raises(CheckFailed, match="with other arguments"):
        again.score(scores, each, mean=True)
