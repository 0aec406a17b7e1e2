"""Sections on the model: distributions, pairs, the graph, and how well it fits."""

import numpy as np
import pytest

import dpgm_core as dpgm
from app.tests.made import uniform
from dpgm.report import make_report
from dpgm.report.model_sections import _score_text
from dpgm_core.errors import OptionError


def test_intervals_are_told_where_there_are_replicates(model, parsed):
    """Their level and ends; else how to get them."""
    assert "with 80 % intervals" in parsed(make_report(model, level=0.8)).texts["attributes"]
    bare = uniform({"a": 2, "b": 3})
    assert "call bootstrap(model)" in parsed(make_report(bare)).texts["attributes"]
    with pytest.raises(OptionError, match="level"):
        make_report(bare, level=1.5)


def test_many_attributes_stay_usable(parsed):
    """A box to find them, hidden without the script, pictures of the first sixty, and everything still named."""
    domain = dpgm.Domain.from_sizes({f"a{number}": 2 for number in range(70)})
    structure = dpgm.Structure(domain, [(name,) for name in domain.names])
    page = make_report(uniform(structure))
    seen = parsed(page)
    assert len([one for one in seen.all("article") if one.get("data-find")]) == 70
    assert "The first 60 of 70 attributes have pictures" in seen.texts["attributes"]
    (box,) = seen.all("input")
    assert box["id"] == "find"
    assert [one["hidden"] for one in seen.all("div") if one.get("class") == "search"] == [None]
    assert len(page) < 1_000_000


def test_the_most_dependent_pair_is_first(model, parsed):
    """As sex and age are in the records; standings are stated, and one attribute makes a page without pairs."""
    text = parsed(make_report(model)).texts["pairs"]
    table = text[text.index("The 3 pairs that depend most") :]
    assert table.index("sex × age") < table.index("sex × job")
    assert "by structure" in table[table.index("sex × job") :][:60]
    assert "measured" in table[table.index("sex × age") :][:60]
    assert "There is no pair" in parsed(make_report(uniform({"a": 2}))).texts["pairs"]


def test_the_junction_tree_is_folded_away(model, parsed):
    """One picture is to be seen, the other on demand; sizes in words."""
    page = make_report(model)
    part = page[page.index('id="graph"') : page.index('id="fit"')]
    assert part.count("<svg") == 2
    assert part.index("<svg") < part.index("<details>") < part.rindex("<svg")
    assert "2 cliques over 4 attributes" in parsed(page).texts["graph"]


def test_misfit_and_a_structure_check_are_told(codes, model, parsed):
    """A uniform model misses its release, a sound one does not; a holdout has its total variation and interval."""
    wrong = uniform(model.structure, releases=model.releases)
    assert "it does not fit what it was learned from" in parsed(make_report(wrong)).texts["fit"]
    sound = parsed(make_report(model)).texts["fit"]
    assert "All 2 tables lie as near to the model" in sound
    assert "No table was set aside" in sound
    domain = dpgm.Domain.from_sizes(dict.fromkeys("abcd", 2))
    structure = dpgm.Structure.chain(domain)
    many = np.tile(codes, (5, 1))
    checked = dpgm.fit(many, structure, dpgm.Budget.pure(5), neighbours="add-remove", split={"holdout": 0.2}).model
    assert "the model is off by about" in parsed(make_report(checked)).texts["fit"]


def test_no_score_is_minus_zero():
    """A reader takes it for a slip."""
    scores = [-0.04, -0.06, 1.66, -11]
    assert list(map(_score_text, scores)) == ["0.0", "-0.1", "1.7", "below -10"]
