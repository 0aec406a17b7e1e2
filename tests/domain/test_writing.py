"""What is written of an attribute reads back."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.errors import DomainError

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


@settings(max_examples=150, deadline=None)
@given(values, rules, forms)
def test_every_field_survives_the_file(of, matching, form):
    """What is written reads back to the same attribute, through JSON, found bins and labels included."""
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
    """Labels and nothing else, where nothing else is said; dates as dates; old files read as they did."""
    for table in (
        {"labels": ["x", "y"]},
        {"type": "integer", "bins": [0, 5, 9]},
        {"type": "date", "bins": ["2019-01-01", "2020-01-01"]},
    ):
        assert Attribute.from_dict("a", table).to_dict() == table
    old = {"labels": ["x", "y"], "unknown": "x", "null": "y"}
    assert Attribute.from_dict("a", old) == Attribute.of_labels("a", ["x", "y"], unknown="x", null="y")
