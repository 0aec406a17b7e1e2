"""What a user asks of a selection: a selector, a workload, no split over cliques, no other noise."""

import pytest

from dpgm_core import Budget, Domain, OptionError, StructureError, Workload
from dpgm_core.learning.selector_run import selector_of, share_only, workload_of

DOMAIN = Domain.from_sizes({"a": 2, "b": 2})


def test_a_domain_is_short_for_its_default_workload():
    """And only the attributes that are wanted stand alone in the first structure."""
    assert workload_of(DOMAIN) == Workload.default(DOMAIN)
    wanted = Workload.all(DOMAIN, 1)
    assert workload_of(wanted) is wanted


def test_what_does_not_go_with_a_selection_is_refused_in_one_line():
    """No workload, no selector, a split over cliques that nobody named, and another mechanism than the session's."""
    with pytest.raises(OptionError, match="what the model is for"):
        workload_of(None)
    with pytest.raises(StructureError, match="a selector such as 'auto' that chooses one; got int"):
        selector_of(3)
    with pytest.raises(OptionError, match="split = 'optimal' divides a budget over named cliques"):
        share_only("optimal", "laplace", Budget.pure(1))
    with pytest.raises(OptionError, match="leave the mechanism out"):
        share_only("even", "staircase", Budget.pure(1))
    assert share_only({"tables": "even", "holdout": 0.25}, "laplace", Budget.pure(1)) == 0.25
