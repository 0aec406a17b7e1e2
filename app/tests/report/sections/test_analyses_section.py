"""The section on planned analyses: the answers of `dpgm.analyse`, or why there is none."""

import pytest

import dpgm
from dpgm.report import make_report
from dpgm.report.analyses_section import _read

pytest.importorskip("formulaic")


def planned(model: dpgm.Model, *analyses: object) -> dpgm.Model:
    selector = {"name": "research", "options": {"analyses": list(analyses)}}
    return dpgm.Model(
        model.structure,
        model.potentials,
        releases=model.releases,
        provenance={**model.provenance, "selector": selector},
    )


def test_planned_analyses_are_answered(model, parsed):
    """Each as a table with a caption, and its sentences; one that has no answer says why."""
    stated = ["age ~ sex", "job ~ age, event 'y', by groups", "job ~ town", "age ~ __import__('os')", 7]
    page = parsed(make_report(planned(model, *stated)))
    shown = page.texts["analyses"]
    assert "age ~ sex: logistic regression, event 'old'" in shown and "sex[T.M]" in shown
    assert "job ~ age: groups, event 'y'" in shown and "p(y): age=old" in shown
    assert "All coefficients are measured" in shown
    assert "job ~ town: no answer, as no release behind the model measured 'town'" in shown
    assert "__import__('os') is no part of a formula" in shown
    assert page.sections.index("analyses") == page.sections.index("use") - 1
    found = dpgm.analyse(model, "age ~ sex", level=0.9)
    assert found.rows()[1][1] in shown


def test_without_a_plan_there_is_no_section(model, parsed):
    assert "analyses" not in parsed(make_report(model)).sections
    assert "analyses" not in parsed(make_report(planned(model))).sections


def test_a_stated_analysis_is_read_as_it_was_planned():
    every = {"formula": "C(a, Treatment('x, y')) ~ b", "family": "linear", "event": "it's", "groups": True}
    assert _read("C(a, Treatment('x, y')) ~ b, linear, event \"it's\", by groups") == every
    plain = {"formula": "a ~ b", "family": None, "event": None, "groups": False}
    assert _read("a ~ b") == plain and _read("a ~ b, event ''") == {**plain, "event": ""}
