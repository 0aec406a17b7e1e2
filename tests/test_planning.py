"""What a release would cost, before any record is read."""

from __future__ import annotations

import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Structure

DOMAIN = Domain.from_sizes({"a": 3, "b": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b")])


def test_plan_says_what_proposition_4_says():
    """MSE = mu (1 - mu) / N + 2 (L1/eps)^2 / N^2 at the average cell, with the discrete noise's own variance."""
    planned = dpgm.plan(STRUCTURE, Budget.pure("0.1"), neighbours="replace-one", records=1000)
    assert (planned.sensitivity.l1, planned.scale, planned.cost) == (2, 20.0, Budget.pure("0.1"))
    [table] = planned.tables
    assert table.noise == pytest.approx(20 * 2**0.5, rel=1e-3)
    assert table.relative == pytest.approx((1 / 6 * 5 / 6 / 1000 + 2 * 20**2 / 1000**2) ** 0.5, rel=1e-3)
    for wrong in (0, float("nan"), float("inf"), True, "many"):
        with pytest.raises(dpgm.BudgetError):
            dpgm.plan(STRUCTURE, Budget.pure(1), neighbours="add-remove", records=wrong)
