"""Bethe's bound on attractive models: below log Z wherever it is evaluated, however labels are called."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError
from dpgm_core.inference.bounds import Attractive, PartwiseBounds, _slope
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.oracles import enumerated


def attractive(draws, *, zeros, scale):
    """Potentials of 2 to 6 binary attributes, a label swapped here and there; zeros that leave it attractive."""
    names = [f"x{i}" for i in range(draws.integers(2, 7))]
    pairs = [pair for pair in itertools.combinations(names, 2) if draws.random() < 0.7]
    structure = Structure(Domain.from_sizes(dict.fromkeys(names, 2)), [*pairs, *((name,) for name in names)])
    swapped, values = draws.integers(0, 2, len(names)), []
    for clique in structure.cliques:
        table = scale * draws.normal(size=(2,) * len(clique))
        if len(clique) == 2:
            table[0, 1] -= max(0.0, table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1])
            if zeros:
                table[0, 1] = -np.inf if draws.random() < 0.2 else table[0, 1]
                table[1, 0] = -np.inf if draws.random() < 0.2 else table[1, 0]
                table[0] = -np.inf if draws.random() < 0.1 else table[0]
            for axis, name in enumerate(clique):
                table = np.flip(table, axis) if swapped[names.index(name)] else table
        values.append(table.reshape(-1))
    return Tables(structure, np.concatenate(values))


def log_z(theta):
    try:
        return enumerated(theta).log_partition
    except InferenceError:
        return -math.inf


@pytest.mark.parametrize("zeros", [False, True])
def test_any_locally_consistent_marginals_certify(zeros):
    """Random q, and those found: never above log Z; found to be possible wherever a record is."""
    draws = np.random.default_rng(int(zeros))
    gaps = []
    for number in range(80):
        theta = attractive(draws, zeros=zeros, scale=10 ** draws.uniform(-1, 1))
        model, truth = Attractive.of(theta), log_z(theta)
        rounding = 1e-12 * (1 + np.abs(truth)) if truth > -math.inf else 0.0
        for _ in range(5):
            assert model.value(model._possible(draws.random(len(model.names)))) <= truth + model.slack + rounding
        if number < 15:
            low, slack = model.bound([])
            assert low - slack <= truth and (low > -math.inf) == (truth > -math.inf) and slack < 1e-9
            gaps.append(truth - low if truth > -math.inf else 0.0)
    assert np.median(gaps) < 0.1


def test_the_tables_of_pairs_are_consistent_and_the_best():
    """Their margins are q, and moving mass around in any of them only loses."""
    draws = np.random.default_rng(2)
    theta = attractive(draws, zeros=False, scale=0.5)
    model = Attractive.of(theta)
    q = draws.uniform(0.05, 0.95, len(model.names))
    tables = model._tables(q)
    np.testing.assert_allclose(tables.sum(axis=2)[:, 1], q[model.first], atol=1e-12)
    np.testing.assert_allclose(tables.sum(axis=1)[:, 1], q[model.second], atol=1e-12)

    def worth(some):
        return (some * (model.pairs - np.log(some))).sum(axis=(1, 2))

    for step in (1e-5, -1e-5):
        assert (worth(tables + step * np.array([[1, -1], [-1, 1]])) < worth(tables)).all()
    steps = 1e-6 * np.eye(q.size)
    slope = [(model.value(q + step) - model.value(q - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(_slope(model, q), slope, atol=1e-6)


def test_a_ring_without_fields_is_the_closed_form():
    """At q = 1/2 log Z_B = n log(2 cosh J), and Z is Z_B (1 + tanh(J)^n). A swapped label is no matter."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abcd", 2)), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    alike = np.array([0.3, -0.3, -0.3, 0.3])
    theta = Tables(ring, np.concatenate([-alike, -alike, alike, alike]))
    low, slack = Attractive.of(theta).bound([])
    assert low == pytest.approx(4 * math.log(2 * math.cosh(0.3)), abs=1e-9) and slack < 1e-9
    assert log_z(theta) == pytest.approx(low + math.log1p(math.tanh(0.3) ** 4), abs=1e-9)


def test_only_attractive_models_have_it():
    """Not an odd number of pairs that favour unequal labels, three labels, three attributes; ties to rounding are."""
    ring = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b"), ("b", "c"), ("c", "a")])
    apart = np.array([0.0, 1.0, 1.0, 0.0])
    assert Attractive.of(Tables(ring, np.tile(apart, 3))) is None
    assert Attractive.of(Tables(ring, np.concatenate([1 - apart, 1 - apart, 1e-3 * apart]))) is None
    tied = Attractive.of(Tables(ring, np.concatenate([1 - apart, 1 - apart, [0.1 + 0.2, 0.3, 0.3, 0.3 - 1e-16]])))
    assert tied is not None
    below = Attractive.of(Tables(ring, np.concatenate([1 - apart, 1 - apart, [0.3, 0.1 + 0.2, 0.3, 0.3]])))
    assert 0 < below.slack < 1e-15
    triple = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [("a", "b", "c")])
    wide = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    assert Attractive.of(Tables.zeros(triple)) is None and Attractive.of(Tables.zeros(wide)) is None


def test_attributes_of_one_label_and_nested_cliques():
    """Two cliques that differ in attributes of one label are one pair; single ones and constants count."""
    structure = Structure(
        Domain.from_sizes({"a": 2, "b": 2, "c": 2, "s": 1, "t": 1}),
        [("a", "s", "b"), ("b", "a", "t"), ("b", "c"), ("c", "a"), ("s",), ("b",)],
    )
    values = [
        np.array([1.0, 0, 0, 1]),
        np.array([1.0, 0.2, 0, 1]),
        np.array([2.0, 0, 0.1, 1]),
        np.array([1.0, 0, 0, 2]),
    ]
    theta = Tables(structure, np.concatenate([*values, [0.7], [0.3, -0.4]]))
    model = Attractive.of(theta)
    low, slack = model.bound([])
    assert len(model.first) == 3 and low - slack <= log_z(theta) < low + 0.2


def test_the_better_of_both_is_given():
    """Weak couplings: Bethe's is 0.001 from log Z where mean field is not; and the note says whose it is."""
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(16)})
    structure = Structure.grid(domain, 4, 4)
    theta = Tables(structure, np.tile([0.2, -0.2, -0.2, 0.2], 24))
    found = PartwiseBounds(structure, cells=4).bounds(theta)
    truth = log_z(theta)
    assert found.notes == ("the lower bound is Bethe's, as the model is attractive",)
    assert found.low <= truth < found.low + 0.02
    frustrated = Tables(structure, np.where(np.arange(96) < 4, -1, 1) * theta.values)
    (note,) = PartwiseBounds(structure, cells=4).bounds(frustrated).notes
    assert note.startswith("the lower bound is structured mean field's")
