"""Pairs: the most dependent first, with what they rest on."""

import dpgm_core as dpgm
from dpgm.report import make_report


def test_the_most_dependent_pair_is_first(model, parsed):
    """As sex and age are in the records; a pair that no table holds says so, one of a table that it is measured."""
    text = parsed(make_report(model)).texts["pairs"]
    table = text[text.index("The 3 pairs that depend most") :]
    assert table.index("sex × age") < table.index("sex × job")
    assert "by structure" in table[table.index("sex × job") :][:60]
    assert "measured" in table[table.index("sex × age") :][:60]


def test_one_attribute_has_no_pairs(parsed):
    """And the page is whole without them."""
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2}), [("a",)])
    assert "There is no pair" in parsed(make_report(dpgm.Model(structure, dpgm.Tables.zeros(structure)))).texts["pairs"]
