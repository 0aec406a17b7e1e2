"""What was chosen privately."""

from __future__ import annotations

import dpgm_core as dpgm
from dpgm_core.report import make


def test_what_a_session_chose_is_told(codes, model, parsed):
    """Who chose, out of how many, and each step with its cost."""
    workload = dpgm.Workload.all(model.domain, order=2)
    chosen = dpgm.fit(codes, "auto", dpgm.Budget.pure(4), neighbours="add-remove", workload=workload).model
    text = parsed(make(chosen)).texts["chosen"]
    assert "The structure was chosen by the selector" in text
    assert "measure tables" in text
    assert "was chosen by the selector" not in parsed(make(model)).texts["chosen"]
