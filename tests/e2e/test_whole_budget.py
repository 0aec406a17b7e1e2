"""What the steps of a selection cost together: the whole budget of its session, whatever the selector finds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Domain, SeededRandomness, Terms, Workload
from dpgm_core.releases.session import spend_steps
from dpgm_core.releases.steps import Verdict

DOMAIN = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 5, "e": 1})
BINARY = Domain.from_sizes(dict.fromkeys("abcde", 2))
#: Each selector, and whether it is of binary attributes.
SELECTORS = [
    ({"name": "mst"}, False),
    ({"name": "grow"}, False),
    ({"name": "oneshot"}, False),
    ({"name": "aim", "rounds": 2}, False),
    ({"name": "auto"}, False),
    ({"name": "privbayes"}, False),
    ({"name": "mst", "max_fit_bytes": 160}, False),  # no pair fits, unless codes are merged
    ({"name": "mrf-select"}, True),
    ({"name": "mrf-fw", "width": 1, "steps": 3}, True),
    ({"name": "mrf-stable", "blocks": 5}, True),
]
TERMS = Terms(neighbours="add-remove")
BUDGETS = [
    Budget.pure(3), Budget.pure("1/10"), Budget.zcdp(1), Budget.zcdp("1/1000"), Budget.approx(2, "1e-6"),
    Budget.approx("1/10", "1e-9"),
]  # fmt: skip


@pytest.mark.landing
@pytest.mark.parametrize(
    ("selector", "binary"), SELECTORS, ids=lambda one: one["name"] if isinstance(one, dict) else ""
)
@settings(max_examples=25)
@given(
    st.sampled_from(BUDGETS), st.sampled_from([0, 40, 2000]), st.sampled_from([Fraction(0), Fraction(1, 20)]),
    st.integers(1, 3), st.floats(0, 1), st.integers(0, 2**16),
)  # fmt: skip
def test_the_steps_cost_what_the_session_had(selector, binary, budget, count, holdout, order, alike, seed):
    """Over budgets, numbers of records, dependence, orders of the workload and holdouts: all but 10^-6 of it is spent,
    which is rounding, and no more than all; under an exact account, of what is not for planned choices."""
    domain = BINARY if binary else DOMAIN
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 60, (count, 5))
    codes = np.where(rng.random((count, 5)) < alike, codes[:, :1], codes) % [one.size for one in domain]
    asked = {"workload": Workload.all(domain, order=max(2, order)), "terms": TERMS}
    asked |= {"split": {"holdout": holdout}} if holdout else {}
    try:
        dpgm.plan_selection(selector, budget, **asked)
    except BudgetError:  # it serves no such budget, or none so small
        assume(False)
    done = dpgm.fit(codes, selector, budget, randomness=SeededRandomness(seed), **asked)
    (release,) = done.releases
    steps = [step for step in release.steps if not isinstance(step, Verdict)]
    whole, spent = release.session.steps_budget, Budget.sum(step.cost for step in steps)
    if release.session.account is None:
        assert whole * Fraction(999_999, 1_000_000) <= spent <= whole
    else:
        account, charged = release.session.account, budget - (release.session.votes or Budget.zero("approx"))
        left = spend_steps(release.session, charged, steps).mu_squared
        assert spent <= whole and left <= account.mu_squared * Fraction(1, 10**6)
    assert any(getattr(step, "holdout", False) for step in steps) <= bool(holdout)
