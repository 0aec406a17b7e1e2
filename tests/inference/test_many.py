"""Many inferences on one structure."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import frozen

import dpgm_core as dpgm
from dpgm_core import Beliefs, Domain, Engine, InferenceError, Structure
from dpgm_core.inference import infer_all

CHAIN = Structure.chain(Domain.from_sizes({"a": 3, "b": 2, "c": 4}))


@frozen
class Counting:
    """An engine that notes how many potentials it is asked about at once, and marks what it answers together."""

    inner: Engine
    asked: list[int]

    @property
    def structure(self):
        return self.inner.structure

    def infer(self, potentials, *, total=1.0):
        self.asked.append(1)
        return self.inner.infer(potentials, total=total)

    def infer_many(self, potentials, *, total=1.0):
        self.asked.append(len(potentials))
        return [Beliefs(marginals=dpgm.Tables(CHAIN, row), log_partition=0.0) for row in potentials]


@pytest.mark.parametrize("inference", ["junction-tree", "loopy-bp"])
def test_each_is_what_it_would_be_alone(inference):
    """In their order, whether the engine takes many (junction-tree) or not; -inf is legal, NaN is refused."""
    engine = dpgm.make("inference", inference).compile(CHAIN)
    points = list(np.random.default_rng(1).normal(size=(5, CHAIN.cells)))
    points[3][2] = -np.inf
    for point, found in zip(points, infer_all(engine, points), strict=True):
        expected = engine.infer(dpgm.Tables(CHAIN, point))
        np.testing.assert_allclose(found.marginals.values, expected.marginals.values, atol=1e-12)
        assert found.log_partition == pytest.approx(expected.log_partition, abs=1e-12)
    assert infer_all(engine, []) == []
    with pytest.raises(InferenceError, match="NaN"):
        infer_all(engine, [points[0], np.full(CHAIN.cells, np.nan)])


def test_an_engine_that_takes_many_is_asked_once():
    """And one potential alone goes the plain way."""
    engine = Counting(dpgm.make("inference", "junction-tree").compile(CHAIN), [])
    points = list(np.random.default_rng(1).normal(size=(4, CHAIN.cells)))
    found = infer_all(engine, points)
    assert all(np.array_equal(one.marginals.values, point) for one, point in zip(found, points, strict=True))
    infer_all(engine, points[:1])
    assert engine.asked == [4, 1]
