"""Commands of the page; that they work is tested with the command."""

import dpgm_core as dpgm
from dpgm.report import make_report


def test_the_file_and_names_are_quoted(model, tmp_path, parsed):
    """As a shell needs them."""
    path = tmp_path / "my model.dpgm"
    model.save(path)
    assert "dpgm query 'my model.dpgm' sex age" in parsed(make_report(model, file=path)).texts["use"]


def test_names_that_do_not_print_make_no_example(parsed):
    """A command that holds one would not be what it looks like."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"\u202ea": 2}), [("\u202ea",)])
    text = parsed(make_report(dpgm.Model(structure, dpgm.Tables.zeros(structure)))).texts["use"]
    assert "dpgm query model.dpgm ATTRIBUTE" in text
    assert "202e" not in text
