"""Domains: what they accept, where every raw value goes, and that odd input is refused in dpgm's own words."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DomainError, DpgmError

texts = st.text(max_size=4)
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(texts, inside, max_size=3),
    max_leaves=8,
)
edges = st.integers() | st.floats() | st.sampled_from(["inf", "-inf", "x", True])
entries = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.lists(texts | plain_json, max_size=3) | plain_json,
        "bins": st.lists(edges, max_size=4)
        | st.integers(-1, 9)
        | st.sampled_from(["year", "hour", {"private": 4}, {"private": 3, "share": 0.1}])
        | plain_json,
        "size": st.integers(-1, 5) | plain_json,
        "unknown": texts | plain_json,
        "null": texts | plain_json,
        "null_values": st.lists(texts, max_size=2) | plain_json,
        "coded": st.booleans() | plain_json,
        "values": st.lists(texts | st.integers(), max_size=3) | plain_json,
        "min": edges,
        "max": edges,
        "dtype": st.sampled_from(["uint8", "float"]),
        "has_null": st.booleans(),
        "null_value": plain_json,
        "lables": plain_json,
        "type": st.sampled_from(["integer", "number", "boolean", "date", "datetime", "time", "text"]) | plain_json,
        "missing": texts | plain_json,
        "cap": st.booleans() | plain_json,
        "scale": st.sampled_from(["log", "linear"]) | plain_json,
        "thousands": st.sampled_from([",", "."]) | plain_json,
        "numbers": st.booleans() | plain_json,
        "format": st.sampled_from(["%Y-%m-%d", "%H:%M"]) | texts,
    },
)
tables = st.dictionaries(texts, entries | plain_json, max_size=3)
domains = tables | st.builds(dict, attributes=tables) | st.builds(dict, schema=tables) | plain_json


@settings(max_examples=40)
@given(domains)
@example({"attributes": {"a": {"bins": [0, 10**400], "unknown": "?"}}})
@example({"a": ["\ud800"]})
@example({"\udfff": 2})
@example({"attributes": {"a": {"labels": ["x"], "unknown": "x", "null_values": ["\ud800"]}}})
@example({"schema": {"a": {"values": 3}}})
@example({"schema": {"a": {"min": 0, "max": math.inf, "dtype": "int"}}})
@example({"schema": {"a": {"min": -1e308, "max": 1e308}}})
@example({"attributes": {"a": {"type": "date", "min": -1e300, "max": 1e300, "bins": 5}}})
@example({"attributes": {"a": {"type": "datetime", "min": 0, "max": 1e15, "bins": "hour"}}})
@example({"attributes": {"a": {"type": "integer", "bins": [0, 1e308], "cap": True}}})
@example({"attributes": {"a": {"labels": {"private": True, "keep": 3}, "missing": "other"}}})
@example({"attributes": {"a": {"min": 0, "max": 1, "bins": {"private": 2}, "labels": ["x"]}}})
def test_any_json_is_a_domain_or_a_domain_error(plain):
    """from_dict raises nothing foreign, and what it accepts survives a trip through JSON."""
    try:
        domain = Domain.from_dict(plain)
    except DpgmError as error:
        assert "\n" not in str(error)
        return
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict(), allow_nan=False))) == domain
    for attribute in domain:
        for raw in (None, b"", b"nan", b"\xff", b"1e999", "\ud800"):
            assert 0 <= attribute.code(raw) < attribute.size


@pytest.mark.parametrize(
    ("entry", "wrong", "hint"),
    [
        ({"lables": ["x"], "unknown": "x"}, "lables", "labels"),
        ({"labels": ["x", "y"], "missing": "?", "null": "?"}, "missing", "leave null out"),
        ({"labels": ["x"], "todo": "give its labels"}, "1 attribute of the domain is incomplete", "delete the line"),
        ({"labels": ["x", "x"], "unknown": "x"}, "'x' stands twice", "remove"),
        ({"labels": ["x", 1], "unknown": "x"}, "[", "quotes"),
        ({"labels": [], "size": 3}, "size", "one of labels, bins or size"),
        ({"size": 0}, "0", "at least 1"),
        ({"size": True}, "True", "at least 1"),
        ({"size": 2**23}, "8388608", "largest possible"),
        ({"size": 3, "unknown": 3}, "3", "below 3"),
        ({"bins": [0, 2, 1], "unknown": "?"}, "ascend", "[0.0, 2.0, 1.0]"),
        ({"bins": [0, math.nan], "unknown": "?"}, "nan", "ascend"),
        ({"bins": [0], "unknown": "?"}, "1", "two edges"),
        ({"bins": [0, 1, 2], "labels": ["low"], "unknown": "?"}, "2 bins", "1 labels"),
        ({"bins": [0, 1], "unknown": "?", "coded": True}, "coded", "labels"),
        ({"labels": ["x"], "unknown": "x", "coded": "yes"}, "yes", "true or false"),
        ({"labels": ["x"], "unknown": 0}, "0", "text in quotes"),
    ],
)
def test_wrong_entries_say_what_and_where(entry, wrong, hint):
    with pytest.raises(DomainError) as caught:
        Domain.from_dict({"attributes": {"age": entry}})
    message = str(caught.value)
    assert "'age'" in message
    assert wrong in message
    assert hint in message


@pytest.mark.parametrize("wrong", [[], {"a": 3}, ["a"], [Attribute.of_size("a", 2)] * 2])
def test_a_domain_holds_distinct_attributes(wrong):
    with pytest.raises(DomainError):
        Domain(wrong)


def test_nist_schema_and_short_forms():
    """The NIST schema, {column: size} and {column: [label, ...]} are read; no unknown value is anybody's answer."""
    nist = Domain.from_dict(
        {
            "schema": {
                "PUMA": {"dtype": "str", "values": ["1", "2"], "has_null": True, "null_value": "N"},
                "AGE": {"dtype": "uint8", "min": 0, "max": 3},
                "INCOME": {"dtype": "float", "min": 0, "max": 100.5},
            }
        }
    )
    assert nist.sizes == {"PUMA": 3, "AGE": 5, "INCOME": 33}
    assert nist["AGE"].labels == ("0", "1", "2", "3", "missing") and nist["AGE"].values.kind == "integer"
    assert nist["PUMA"].code(b"") == nist["PUMA"].code(b"N") == nist["PUMA"].code(b"?") == 2
    assert Domain.from_dict({"a": 3, "b": ["x", 2, None]})["b"].labels == ("x", "2", "null", "missing")
    with pytest.raises(DomainError, match=r"'attributes' has a table among its labels.*\[attributes.NAME\]"):
        Domain.from_dict({"attributes": [{"name": "a", "labels": ["x"]}]})  # TOML's [[attributes]]


def test_files_are_read_or_refused(tmp_path):
    domain = Domain([Attribute.of_bins("x", [0, 1, math.inf], unknown="?"), Attribute.of_size("y", 2)])
    (tmp_path / "d.json").write_text(json.dumps(domain.to_dict()))
    (tmp_path / "d.toml").write_text(
        '[attributes.x]\nbins = [0, 1, inf]\nunknown = "?"\n[attributes.y]\nlabels = ["0", "1"]\nunknown = "0"\n'
    )
    assert Domain.load(tmp_path / "d.json") == Domain.load(tmp_path / "d.toml") == domain
    (tmp_path / "d.txt").write_text("{}")
    (tmp_path / "broken.toml").write_text("a = ")
    (tmp_path / "deep.json").write_text("[" * 10**5)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 10**5)
    (tmp_path / "huge.toml").write_text("a = 0x" + "f" * 10**4)
    (tmp_path / "latin.toml").write_bytes(b'a = "\xe4"')
    for name in ("none.toml", "d.txt", "broken.toml", "deep.json", "deep.toml", "huge.toml", "latin.toml", "a\0.toml"):
        with pytest.raises(DomainError) as caught:
            Domain.load(tmp_path / name)
        assert name.replace("\0", "\\x00") in str(caught.value)


def test_what_a_few_letters_declare_is_bounded_together():
    """Sizes, private labels and computed bins: nothing takes gigabytes, or is made before it is refused."""
    for entry in (
        {"labels": {"private": True, "keep": 2**16}},
        {"min": 0, "max": 1, "bins": {"private": 2**16}},
        {"min": 0, "max": 1, "bins": 2**16},
    ):
        with pytest.raises(DomainError, match=r"add up to 5,242,880 labels; at most 4,194,304"):
            Domain.from_dict({"attributes": {f"x{at}": entry for at in range(80)}})
    for plain in ({"a": 2**21, "b": 2**21, "c": 1}, {"attributes": {"a": {"size": 2**22}, "b": {"size": 1}}}):
        with pytest.raises(DomainError, match="add up to 4,194,305 labels; at most 4,194,304"):
            Domain.from_dict(plain)


def test_a_domain_file_is_not_read_whole_whatever_its_size(tmp_path):
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(DomainError, match="larger than 67,108,864 bytes"):
        Domain.load(path)


def test_some_attributes_are_merged_and_the_others_stay():
    """A coarse domain survives its file; names that are no attribute are refused."""
    domain = Domain.from_dict({"attributes": {"a": {"size": 4}, "b": {"bins": [0, 1, 2], "unknown": "?"}}})
    assert domain.sizes == {"a": 5, "b": 3}
    domain = Domain.from_dict({"attributes": {"a": {"size": 4, "unknown": 0}, "b": domain["b"].to_dict()}})
    coarse = domain.coarsened({"a": [0, 1, 1, 1]})
    assert coarse.sizes == {"a": 2, "b": 3} and coarse["b"] == domain["b"] and domain.coarsened({}) == domain
    assert Domain.from_dict(coarse.to_dict()) == coarse
    with pytest.raises(DomainError, match="no attribute 'c'"):
        domain.coarsened({"c": [0]})
    with pytest.raises(DomainError, match="must be a mapping"):
        domain.coarsened([("a", [0, 1, 1, 1])])


def test_sizes_are_the_callers_own():
    domain = Domain.from_sizes({"a": 2, "b": 3})
    domain.sizes["a"] = 7
    domain.sizes.clear()
    assert domain.sizes == {"a": 2, "b": 3} and domain.shape(["b", "a"]) == (3, 2)
    with pytest.raises(DomainError, match="no attribute 'c'"):
        domain.shape(name for name in "abc")
