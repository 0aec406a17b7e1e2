"""Distributions: intervals, and pages of many attributes."""

import pytest

import dpgm_core as dpgm
from dpgm.report import make_report
from dpgm_core.errors import OptionError


def test_intervals_are_told_where_there_are_replicates(model, parsed):
    """Their level and ends; else how to get them."""
    assert "with 80 % intervals" in parsed(make_report(model, level=0.8)).texts["attributes"]
    structure = dpgm.Structure(dpgm.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    bare = dpgm.Model(structure, dpgm.Tables.zeros(structure))
    assert "call bootstrap(model)" in parsed(make_report(bare)).texts["attributes"]
    with pytest.raises(OptionError, match="level"):
        make_report(bare, level=1.5)


def test_many_attributes_stay_usable(parsed):
    """A box to find them, hidden without the script, pictures of the first sixty, and everything still named."""
    domain = dpgm.Domain.from_sizes({f"a{number}": 2 for number in range(70)})
    structure = dpgm.Structure(domain, [(name,) for name in domain.names])
    page = make_report(dpgm.Model(structure, dpgm.Tables.zeros(structure)))
    seen = parsed(page)
    assert len([one for one in seen.all("article") if one.get("data-find")]) == 70
    assert "The first 60 of 70 attributes have pictures" in seen.texts["attributes"]
    (box,) = seen.all("input")
    assert box["id"] == "find"
    assert [one["hidden"] for one in seen.all("div") if one.get("class") == "search"] == [None]
    assert len(page) < 1_000_000
