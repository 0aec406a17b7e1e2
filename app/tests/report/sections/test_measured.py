"""What was measured, and what was not."""

import dpgm_core as dpgm
from dpgm.report import make_report


def test_unmeasured_attributes_are_named(model, parsed):
    """Nothing else on the page tells which."""
    assert (
        "Of 1 attribute no table tells anything, and the model leaves them out: town"
        in (parsed(make_report(model)).texts["measured"])
    )


def test_tables_that_drown_in_noise_are_counted(codes, model, parsed):
    """More noise in a cell than records in the average one; and a table of several releases is there once."""
    structure = dpgm.Structure(model.domain, [("sex", "age")])
    parts = [dpgm.release(codes, structure, dpgm.Budget.pure("0.001"), neighbours="add-remove") for _ in range(2)]
    held = dpgm.Model(structure, dpgm.Tables.zeros(structure), releases=parts)
    text = parsed(make_report(held)).texts["measured"]
    assert "In 1 of 1 table, as they were measured, the noise is larger than the average cell" in text
    assert "2 times" in text
    assert "the noise is larger" not in parsed(make_report(model)).texts["measured"]
