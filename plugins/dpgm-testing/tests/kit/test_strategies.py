"""Strategies shrink to what they say and reach every awkwardness."""

import math

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from dpgm_core import Budget, Domain, Sensitivity
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
    """Each kind of awkward structure is found by search."""
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
    """The tables of the two data sets differ by no more than the declared sensitivity."""
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
