"""Strategies shrink to what they say and reach every awkwardness; what the kit calls the shapes of structures."""

import math

import numpy as np
import pytest
from attrs import frozen
from hypothesis import find, given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, Domain, Sensitivity, StructureError
from dpgm_testing import (
    budgets,
    domains,
    enumerated,
    incidence,
    neighbours,
    noisy_tables,
    potentials,
    records,
    structures,
)
from dpgm_testing.cases import BINARY_CHAIN, CHAIN, SHAPES, shapes_of
from dpgm_testing.check import Unserved
from dpgm_testing.runner import subject_of
from dpgm_testing.strategies import awkward_structures


@pytest.mark.landing
def test_strategies_shrink_to_what_they_say():
    """The smallest examples are those of the docstrings."""
    assert find(domains(), lambda _: True).sizes == {"a": 1}
    assert find(structures(), lambda _: True).cliques == ((),)
    assert find(potentials(), lambda _: True).values.tolist() == [0.0]
    assert find(budgets(), lambda _: True) == Budget.pure(1)
    assert find(records(domain=Domain.from_sizes({"a": 2})), len).tolist() == [[0]]
    pair = find(neighbours(domain=Domain.from_sizes({"a": 2}), relation="add-remove"), lambda _: True)
    assert [one.tolist() for one in pair] == [[[0]], []]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "wanted",
    [
        lambda s: any(len(group) > 1 for group in s.groups),
        lambda s: () in s.cliques,
        lambda s: s.duplicates,
        lambda s: s.nested,
        lambda s: s.describe().components > 1,
        lambda s: s.describe().treewidth > 1,
    ],
    ids=["tied", "empty", "duplicate", "nested", "disconnected", "cyclic"],
)
def test_structures_reach_every_awkwardness(wanted):
    assert wanted(find(structures(), lambda one: bool(wanted(one)), settings=settings(max_examples=2000)))


@given(potentials())
@settings(max_examples=60)
def test_potentials_leave_a_record_possible(theta):
    """No NaN, no +inf, and some record has a positive probability."""
    assert not np.isnan(theta.values).any() and not np.isposinf(theta.values).any()
    assert math.isfinite(enumerated(theta).log_partition)


@given(st.data(), structures(max_attributes=3), st.sampled_from(["add-remove", "replace-one"]))
@settings(max_examples=60)
def test_neighbours_are_neighbours(data, structure, relation):
    one, two = data.draw(neighbours(domain=structure.domain, relation=relation))
    change = np.abs(incidence(structure, one).sum(axis=1) - incidence(structure, two).sum(axis=1))
    bound = Sensitivity.of(structure, relation)
    assert len(one) - len(two) == (relation == "add-remove")
    assert change.sum() <= bound.l1 and change.max(initial=0) <= bound.linf and (change > 0).sum() <= bound.l0


@given(noisy_tables(over=structures(max_attributes=3)))
@settings(max_examples=30)
def test_noisy_tables_are_releases(release):
    """Whole-numbered, with a total of at least 1 and the noise they were drawn with."""
    assert release.tables.values.dtype == np.int64 and release.total >= 1
    assert len(release.noise) == len(release.structure.groups) and release.private is False


def test_each_shape_is_found_where_it_is():
    """In its own example, and in none of an ordinary chain."""
    for name, structure in SHAPES.items():
        assert name in shapes_of(structure)
    assert shapes_of(CHAIN) == shapes_of(BINARY_CHAIN) == frozenset()
    found = {name for name, structure in awkward_structures().items() if "tied cliques" in shapes_of(structure)}
    assert found == {"tied", "tied cycle"}


@frozen(kw_only=True)
class _Learner:
    labels: int
    ties: bool

    def check(self, structure, inference):
        sizes = structure.domain.sizes.values()
        if max(sizes) > self.labels or (not self.ties and max(structure.multiplicities) > 1):
            raise StructureError("no")

    def learn(self, curator, inference, *, randomness, progress):
        raise NotImplementedError


@pytest.mark.parametrize(("labels", "ties"), [(2, True), (9, False), (9, True), (2, False)])
def test_a_learner_shows_what_it_refuses(labels, ties):
    """Two labels alone, ties, both, or nothing; what it refuses is not served, and anything else is."""
    subject, _ = subject_of(_Learner(labels=labels, ties=ties), "learner")
    assert subject.binary is (labels == 2)
    assert subject.refused == (frozenset() if ties else {"tied cliques"})
    assert ("restricted" in subject.capabilities) is not (labels == 9 and ties)
    assert not subject.directed
    tied = awkward_structures()["tied"]
    if ties:
        assert subject.served(tied) == subject.in_domain(tied)
    else:
        with pytest.raises(Unserved, match="has tied cliques, which _Learner refuses"):
            subject.served(tied)
        assert subject.in_domain(tied).multiplicities == tied.multiplicities
    assert subject.chain == subject.in_domain(CHAIN) == (BINARY_CHAIN if labels == 2 else CHAIN)
