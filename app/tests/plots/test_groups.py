"""Labels that share a bar or a row."""

import itertools

import numpy as np
import pytest

from dpgm.plots.bars import group_labels
from dpgm_core import Attribute


@pytest.mark.parametrize(("size", "most"), list(itertools.product([2, 3, 7, 40, 300], [2, 3, 12, 40])))
@pytest.mark.parametrize("bins", [True, False])
def test_groups_are_few_and_hold_every_code(size, most, bins):
    """At most so many, each code in one, none empty, in the order of the codes; single codes where they fit."""
    shares = np.random.default_rng(size).dirichlet(np.ones(size + bins))
    if bins:
        attribute = Attribute.of_bins("a", range(size + 1), unknown="missing")
    else:
        attribute = Attribute.of_size("a", size)
    groups = group_labels(attribute, shares, most)
    count = attribute.size
    assert len(groups.labels) == min(most, count) and groups.whole == (count <= most)
    assert sorted(set(groups.of.tolist())) == list(range(len(groups.labels)))
    assert len(set(groups.labels)) == len(groups.labels)
    if bins:
        assert (np.diff(groups.of) >= 0).all()
    assert groups.summed(shares, 0) == pytest.approx(np.bincount(groups.of, weights=shares))
    square = np.outer(shares, shares)
    assert groups.summed(square, 1).sum(axis=1) == pytest.approx(shares)
