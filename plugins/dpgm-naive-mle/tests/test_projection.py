"""The projection on the simplex, and the targets made of it."""

from __future__ import annotations

import numpy as np
import pytest
from dpgm_naive_mle.projection import project_to_simplex, targets
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure

points = hnp.arrays(float, st.integers(1, 12), elements=st.floats(-1e15, 1e15))


@given(points, st.sampled_from([1.0, 3.0, 1e-6]))
@example(np.array([-1e15, -1e15]), 1.0)
@example(np.array([1e15, 1e15, -1.0]), 1.0)
@example(np.zeros(1), 1.0)
def test_it_lands_on_the_simplex_and_nowhere_nearer(point, total):
    """Non-negative, of the right sum, and optimal: x - p is largest exactly on the support (the KKT conditions)."""
    projected = project_to_simplex(point, total)
    assert np.all(projected >= 0)
    assert projected.sum() == pytest.approx(total, rel=1e-9)
    gap = point - projected
    slack = 1e-9 * max(1.0, np.abs(point).max())
    assert np.all(gap[projected > 0] >= gap.max() - slack)


@given(points)
def test_projecting_twice_changes_nothing(point):
    """What is on the simplex stays there."""
    once = project_to_simplex(point)
    assert np.allclose(project_to_simplex(once), once, atol=1e-12)


def test_targets_sum_to_the_number_of_cliques():
    """Projected or not, each plain table sums to 1, a tied one to m_g; only the projected are never negative."""
    domain = Domain.from_sizes({"a": 3, "b": 3, "c": 3})
    structure = Structure(domain, [("a",)], tied=[[("a", "b"), ("b", "c")]])
    release = dpgm.release(np.zeros((5, 3), int), structure, Budget.pure("0.1"), neighbours="add-remove")
    for project in (True, False):
        made = targets(release, project=project)
        assert made.sums() == pytest.approx([1.0, 2.0])
        assert not project or made.values.min() >= 0
