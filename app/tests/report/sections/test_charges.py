"""What it cost, release by release."""

import dpgm_core as dpgm
from dpgm.report import make_report


def test_several_releases_are_listed_with_what_they_cost_together(codes, model, parsed):
    """Each has its row; no ledger is named where none paid."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [dpgm.release(codes, structure, dpgm.Budget.pure(one), neighbours="add-remove") for one in ("1", "0.5")]
    seen = parsed(make_report(dpgm.learn(parts).model))
    text = seen.texts["cost"]
    assert "2 releases. Together they cost ε = 1.5" in text
    assert "1: 1 table" in text
    assert "2: 1 table" in text
    assert "nobody adds up" in text
    assert "Together" not in parsed(make_report(model)).texts["cost"]
