"""The table of one attribute: read, refused in one line, and written so that it reads back."""

import json
from datetime import date, datetime, time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.attribute_tables import attribute_fields
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError

AGE = {"type": "integer", "min": 0, "max": 94}


@pytest.mark.parametrize(
    ("table", "labels"),
    [
        ({"labels": ["x", "y"]}, ("x", "y", "missing")),
        ({"labels": ["x", "y"], "missing": "none"}, ("x", "y", "none")),
        ({"labels": ["x", "missing"]}, ("x", "missing")),
        ({"labels": ["x", "y"], "unknown": "x"}, ("x", "y")),
        ({"labels": ["x", "y"], "unknown": "?", "null": "y"}, ("x", "y", "?")),
        ({"labels": ["x", "y"], "missing": "y"}, ("x", "y", "missing")),
        ({"size": 2}, ("0", "1", "missing")),
        ({"size": 2, "unknown": 0}, ("0", "1")),
        ({"size": 2, "unknown": "1", "missing": "none"}, ("0", "1", "none")),
        ({"bins": [0, 1, 2]}, ("[0, 1)", "[1, 2]", "missing")),
        ({"type": "boolean"}, ("false", "true", "missing")),
        (AGE | {"max": 2}, ("0", "1", "2", "missing")),
        (AGE | {"bins": 2, "cap": True}, ("up to 46", "47+", "missing")),
        (AGE | {"bins": 2, "labels": ["young", "old"]}, ("young", "old", "missing")),
        ({"min": date(2019, 1, 1), "max": date(2019, 2, 28), "bins": "month"}, ("2019-01", "2019-02", "missing")),
        ({"bins": [time(0), time(12), "23:59"]}, ("00:00/12:00", "12:00/23:59", "missing")),
        ({"min": 1, "max": 100, "bins": 2, "scale": "log"}, ("[1, 10)", "[10, 100]", "missing")),
    ],
)
def test_no_unknown_value_is_an_answer_unless_the_table_says_so(table, labels):
    """The real labels first; what is null or unknown has a label of its own that no real value has."""
    attribute = Attribute.from_dict("a", table)
    assert attribute.labels == labels
    assert attribute.code(b"\xff nonsense") == attribute.unknown and attribute.code(None) == attribute.null
    if "unknown" not in table:
        assert attribute.labels[attribute.unknown] in ("missing", "none")
        assert attribute.labels[attribute.null] == table.get("missing", "missing")


def test_times_of_day_need_no_bounds():
    """The day ends at 24:00, after the last second of it; bounds may cut it, and are kept in hours."""
    hours = Attribute.from_dict("t", {"type": "time", "format": "%H:%M", "bins": "hour"})
    assert hours.labels[:2] == ("00:00/01:00", "01:00/02:00") and hours.labels[23:] == ("23:00/24:00", "missing")
    assert [hours.code(text) for text in ("00:00", "12:59", "23:59", "24:00")] == [0, 12, 23, 24]
    assert Attribute.from_dict("t", hours.to_dict()) == hours
    half = Attribute.from_dict("t", {"type": "time", "bins": 2})
    assert half.labels == ("00:00/12:00", "12:00/24:00", "missing") and half.code("23:59:59.999999999") == 1
    day = Attribute.from_dict("t", {"min": time(6, 30), "max": time(8), "bins": "hour"})
    assert day.labels == ("06:30/07:00", "07:00/08:00", "missing")


def test_a_table_says_how_many_bins_or_gets_few():
    """Up to 200 whole numbers or days have a bin each, other ranges 32."""
    assert Attribute.from_dict("a", AGE).size == 96
    assert Attribute.from_dict("a", AGE | {"max": 200}).size == 33
    assert Attribute.from_dict("a", {"type": "number", "min": 0, "max": 5}).size == 33


def test_booleans_of_any_spelling_are_read():
    attribute = Attribute.from_dict("a", {"type": "boolean"})
    assert [attribute.code(text) for text in ("True", "false", "TRUE", "yes")] == [1, 0, 1, 2]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"min": 5, "max": 3, "bins": 2}, "min must be below max, got 5 and 3"),
        (AGE | {"bins": 96}, "there are 95 values from min to max, too few for 96 bins"),
        (AGE | {"bins": {"private": 96}}, "96 private bins are more than the 95 cells"),
        (AGE | {"bins": {"private": 8, "share": 2}}, "share must be above 0 and below 1"),
        (AGE | {"bins": {"privat": 8}}, "bins has no setting 'privat'.*private"),
        (AGE | {"bins": {}}, "needs private"),
        ({"min": 0, "max": "inf", "bins": {"private": 8}}, "must be finite"),
        ({"bins": {"private": 8}}, "stand with min and max"),
        ({"bins": 32}, "stand with min and max"),
        ({"bins": "month"}, "stand with min and max"),
        (AGE | {"bins": "month"}, "bins = 'month' does not go with type = 'integer'"),
        (AGE | {"bins": "moon"}, "'moon' is no unit of the calendar: year"),
        (AGE | {"bins": True}, "number of bins must be a whole number"),
        (AGE | {"bins": 0}, "number of bins must be a whole number"),
        (AGE | {"bins": [0, 50, 94]}, "both min and max and the edges"),
        (AGE | {"bins": 2, "labels": ["one"]}, "2 bins, but 1 labels"),
        (AGE | {"bins": {"private": 2}, "labels": ["a", "b"]}, "leave labels out"),
        (AGE | {"cap": "yes"}, "cap must be true or false"),
        ({"bins": [0, "inf"], "cap": True}, "cap goes with finite bounds"),
        ({"labels": ["a"], "cap": True}, "cap goes with bins"),
        ({"min": 0}, "both min and max"),
        ({"min": 0, "max": 1, "labels": ["a"]}, "min and max go with bins, not with labels"),
        ({"type": "boolean", "min": 0, "max": 1}, "bins do not go with type = 'boolean'"),
        ({"type": "integer", "bins": [0.1, 0.9]}, "holds no whole number"),
        ({"labels": {"private": True}}, "as in labels = { private = true, keep = 100 }"),
        ({"labels": {"private": False, "keep": 3}}, "as in labels ="),
        ({"labels": {"private": True, "kepp": 3}}, "no setting 'kepp'.*keep"),
        ({"labels": {"private": True, "keep": 3}, "unknown": "?"}, "leave unknown out"),
        ({"labels": {"private": True, "keep": 3}, "coded": True}, "coded goes with public labels"),
        ({"labels": ["a"], "case": 1}, "attribute 'a': case must be true or false"),
        ({"labels": ["a"], "type": "int"}, "attribute 'a': type must be one of"),
        ({"labels": ["a"], "missing": 3}, "missing must be a label"),
        ({"labels": ["a"], "todo": "say more"}, "is incomplete: say more"),
        ({"type": "date", "min": datetime(2019, 1, 1), "max": 3, "bins": ["x"]}, "both min and max"),
        ({"size": 2, "missing": 5}, "missing must be a code below 2"),
    ],
)
def test_nonsense_is_refused_in_one_line(table, said):
    with pytest.raises(DomainError, match=said) as caught:
        attribute_fields("a", table)
    assert "\n" not in str(caught.value) and "'a'" in str(caught.value)


def test_all_that_is_left_to_do_is_named_at_once():
    tables = {name: {"todo": "which labels?"} for name in "abc"} | {"d": {"labels": ["x"]}}
    with pytest.raises(DomainError, match=r"3 attributes of the domain are incomplete: 'a', 'b', 'c'; see todo"):
        Domain.from_dict({"attributes": tables})


values = st.one_of(
    st.builds(dict, type=st.just("integer"), shape=st.sampled_from(["lower", "log"])),
    st.builds(dict, type=st.just("number"), decimals=st.integers(0, 4), scale=st.sampled_from(["log", "linear"])),
    st.sampled_from([{"type": kind} for kind in ("date", "datetime", "time")]),
    st.sampled_from([{"type": "date", "format": "%d.%m.%Y"}, {"type": "datetime", "format": "%Y%m%d %H%M%S"}, {}]),
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "case": st.booleans(),
        "blanks": st.sampled_from(["keep", "strip"]),
        "numbers": st.booleans(),
        "thousands": st.sampled_from([",", "'", " "]),
        "symbol": st.sampled_from(["$0", "0 %"]),
        "null_values": st.lists(st.sampled_from(["", "NA", "-9"]), max_size=2),
        "unknown": st.sampled_from(["?", "b"]),
        "missing": st.sampled_from(["b", "none"]),
    },
)
forms = st.one_of(
    st.fixed_dictionaries({"labels": st.just(["a", "b", "c"])}, optional={"coded": st.booleans()}),
    st.fixed_dictionaries({"min": st.just(1), "max": st.integers(40, 90)}, optional={"cap": st.booleans()}),
    st.fixed_dictionaries({"min": st.just(1), "max": st.just(70), "bins": st.integers(1, 40)}),
    st.fixed_dictionaries({"min": st.just(1), "max": st.just(70), "bins": st.just({"private": 8, "share": 0.1})}),
    st.fixed_dictionaries({"bins": st.just([1, 4, 9.5, 30])}, optional={"labels": st.just(["x", "y", "z"])}),
    st.just({"bins": ["-inf", 4, "inf"]}),
    st.just({"labels": {"private": True, "keep": 4, "share": "1/3"}}),
)


@settings(max_examples=60)
@given(values, rules, forms)
def test_every_field_survives_the_file(of, matching, form):
    try:
        attribute = Attribute.from_dict("a", of | matching | form)
    except DomainError:
        return
    made = [attribute]
    if "private" in str(form):
        made.append(
            attribute.with_labels(["u", "v"]) if "labels" in form else attribute.binned([1, *attribute.edges[2::3]])
        )
    for one in made:
        assert Attribute.from_dict("a", json.loads(json.dumps(one.to_dict(), allow_nan=False))) == one


def test_a_file_holds_only_what_differs():
    for table in (
        {"labels": ["x", "y"]},
        {"type": "integer", "bins": [0, 5, 9]},
        {"type": "date", "bins": ["2019-01-01", "2020-01-01"]},
    ):
        assert Attribute.from_dict("a", table).to_dict() == table
    old = {"labels": ["x", "y"], "unknown": "x", "null": "y"}
    assert Attribute.from_dict("a", old) == Attribute.of_labels("a", ["x", "y"], unknown="x", null="y")
