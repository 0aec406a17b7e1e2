"""The section on two related tables says who is protected, as household and as person, and how far samples lie off."""

import numpy as np
import pytest

import dpgm
from app.tests.made import uniform
from dpgm.report import make_report

RELATED = dpgm.Related(
    root=dpgm.Domain.from_sizes({"own": 2}), children=dpgm.Domain.from_sizes({"age": 3}), key="id", max_children=2
)
CLIQUES = [("own", "size"), ("size", "first.age"), ("size", "age")]
HOMES = {"id": np.arange(200), "own": np.arange(200) % 2}
PERSONS = {"id": np.arange(300) % 200, "age": np.arange(300) % 3}


def model_under(neighbours: str) -> dpgm.Model:
    terms = dpgm.Terms(neighbours=neighbours, related=RELATED)
    structure, budget = dpgm.Structure(RELATED.pair, CLIQUES), dpgm.Budget.pure(3)
    return dpgm.fit({"root": HOMES, "children": PERSONS}, structure, budget, terms=terms).model


@pytest.mark.parametrize(
    ("neighbours", "said"),
    [
        ("add-remove", "at most that of an exchange of the household: ε = 6"),
        ("replace-one", "the loss is the same: ε = 3"),
    ],
)
def test_what_it_means_for_a_person(parsed, neighbours, said):
    """Twice the epsilon where a household goes and another one comes, the same where its values change."""
    text = parsed(make_report(model_under(neighbours))).texts["related"]
    assert said in text and "as far as 2 of them count" in text
    assert "at most 2 children for each key" in text and "age" in text and "total variation" in text


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_rows_without_a_key_are_told(parsed, neighbours):
    """Those of a household that has some count with the rows of others, so that two records may change."""
    text = parsed(make_report(model_under(neighbours))).texts["guarantee"]
    assert "A person with rows under several keys is such a group" in text and "with several rows" not in text
    assert "count together as one root" in text and "and others with the key, loses up to" in text


def test_both_tables_have_their_columns(parsed):
    """Children's columns are shown as of all children, and first. and position not at all."""
    text = parsed(make_report(model_under("add-remove"))).texts["attributes"]
    assert "Of children are age." in text and "Shares of own" in text and "Shares of size" in text
    assert "first.age" not in text and "position" not in text


def test_columns_of_children_have_pictures():
    """Their bars are the shares of all children, with the intervals of these."""
    from dpgm.report.inputs import Material
    from dpgm.report.related_section import child_bars

    material = Material(model_under("add-remove"), file="m.dpgm", digest=None, ledger=None, level=0.9)
    assert material.shares is not None
    bars = child_bars(material, material.answers.domain["age"], material.shares["age"])
    shares = material.answers.intervals("age", level=0.9)
    assert bars.shares == pytest.approx(shares.estimate.tolist()) and bars.low == pytest.approx(shares.low.tolist())
    cards = str(make_report(material.model)).split("<article")[1:]
    assert len(cards) == 3 and all("<svg" in one.split("</article>")[0] for one in cards)


def test_a_model_of_one_table_has_no_such_section(parsed):
    """Nor has one that was learned from nothing."""
    assert "related" not in parsed(make_report(uniform({"a": 2}))).texts
