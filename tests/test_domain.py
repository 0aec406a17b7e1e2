"""Domains: what they accept, where every raw value goes, and that odd input is refused in dpgm's own words."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.domain import Attribute, Domain, code_dtype
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
        "bins": st.lists(edges, max_size=4) | plain_json,
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
    },
)
tables = st.dictionaries(texts, entries | plain_json, max_size=3)
domains = tables | st.builds(dict, attributes=tables) | st.builds(dict, schema=tables) | plain_json


@given(domains)
@example({"attributes": {"a": {"bins": [0, 10**400], "unknown": "?"}}})
@example({"a": ["\ud800"]})
@example({"\udfff": 2})
@example({"attributes": {"a": {"labels": ["x"], "unknown": "x", "null_values": ["\ud800"]}}})
@example({"schema": {"a": {"values": 3}}})
@example({"schema": {"a": {"min": 0, "max": math.inf, "dtype": "int"}}})
@example({"schema": {"a": {"min": -1e308, "max": 1e308}}})
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
        ({"labels": ["x", "y"]}, "unknown", "add unknown"),
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
    """The message names the attribute, what is wrong with it, and what would do."""
    with pytest.raises(DomainError) as caught:
        Domain.from_dict({"attributes": {"age": entry}})
    message = str(caught.value)
    assert "'age'" in message
    assert wrong in message
    assert hint in message


def test_every_value_lands_on_one_code():
    """Unknown, null, NaN and out-of-range values go where the owner said; the last bin is closed."""
    age = Attribute.of_bins("age", [0, 18, 65], unknown="?", null="none", null_values=["", "NA"])
    assert age.labels == ("[0, 18)", "[18, 65]", "?", "none")
    for raw, code in {
        b"0": 0,
        b"17.9": 0,
        b"18": 1,
        b"65": 1,
        b"65.1": 2,
        b"x": 2,
        b"nan": 3,
        b"NA": 3,
        None: 3,
    }.items():
        assert age.code(raw) == code, raw
    sex = Attribute.of_labels("sex", ["F", "M"], unknown="M")
    assert [sex.code(raw) for raw in ("F", "f", " F", "", None)] == [0, 1, 1, 1, 1]
    coded = Attribute.of_labels("sex", ["F", "M"], unknown="F", coded=True)
    assert [coded.code(raw) for raw in ("0", "1", "M", "2")] == [0, 1, 0, 0]


@given(st.lists(st.floats(allow_nan=True), max_size=20))
@example([0.0, -0.0, 1.0, 2.0, math.inf, -math.inf, math.nan])
def test_bin_codes_agree_with_the_definition(numbers):
    """Vectorised bins agree with reading the intervals one by one."""
    attribute = Attribute.of_bins("x", [-1, 0, 1, 2], unknown="?", null="none")

    def slow(number: float) -> int:
        if math.isnan(number):
            return 4
        inside = [i for i in range(3) if i - 1 <= number < i or (i == 2 and number == 2)]
        return inside[0] if inside else 3

    assert attribute.bin_codes(np.array(numbers, dtype=float)).tolist() == [slow(number) for number in numbers]


def test_sizes_say_where_unknown_codes_go():
    """from_sizes: code 0 unless told, no label of its own, so shapes are exactly the sizes."""
    domain = Domain.from_sizes({"a": 3, "b": 2}, unknown={"a": 2})
    assert domain.shape("ab") == (3, 2)
    assert (domain["a"].unknown, domain["a"].null, domain["b"].unknown) == (2, 2, 0)
    for wrong in ({"c": 1}, {"a": 3}):
        with pytest.raises(DomainError):
            Domain.from_sizes({"a": 3}, unknown=wrong)


@pytest.mark.parametrize("wrong", [{}, {"a": 0}, {"a": -1}, {"a": True}, {"a": 2.0}, {"a": "3"}, {"": 2}, ["a"], None])
def test_senseless_sizes_are_refused(wrong):
    """Only positive whole numbers under non-empty names are sizes."""
    with pytest.raises(DomainError):
        Domain.from_sizes(wrong)


@pytest.mark.parametrize("wrong", [[], {"a": 3}, ["a"], [Attribute.of_size("a", 2)] * 2])
def test_a_domain_holds_distinct_attributes(wrong):
    """No attribute, texts instead of attributes, and one twice are refused."""
    with pytest.raises(DomainError):
        Domain(wrong)


def test_labels_are_no_bare_text():
    """One text is not taken apart into letters."""
    with pytest.raises(DomainError, match="list of texts"):
        Attribute.of_labels("a", "abc", unknown="a")


def test_a_query_label_never_falls_on_unknown():
    """label_code suggests instead of guessing; codes are accepted, bools and others are not."""
    sex = Attribute.of_labels("sex", ["female", "male"], unknown="?")
    assert (sex.label_code("male"), sex.label_code(2), sex.label_code(np.int64(0))) == (1, 2, 0)
    for wrong in ("femal", 3, -1, True, None, 1.0):
        with pytest.raises(DomainError, match=r"sex"):
            sex.label_code(wrong)


def test_nist_schema_and_short_forms():
    """The NIST schema, {column: size} and {column: [label, ...]} are read."""
    nist = Domain.from_dict(
        {
            "schema": {
                "PUMA": {"dtype": "str", "values": ["1", "2"], "has_null": True, "null_value": "N"},
                "AGE": {"dtype": "uint8", "min": 0, "max": 3},
                "INCOME": {"dtype": "float", "min": 0, "max": 100.5},
            }
        }
    )
    assert nist.sizes == {"PUMA": 3, "AGE": 5, "INCOME": 21}
    assert nist["PUMA"].code(b"") == nist["PUMA"].code(b"N") == nist["PUMA"].code(b"?") == 2
    assert Domain.from_dict({"a": 3, "b": ["x", 2, None]})["b"].labels == ("x", "2", "null")


def test_files_are_read_or_refused(tmp_path):
    """TOML and JSON load alike; missing, foreign, broken and deep files are one DomainError each."""
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


def test_a_label_given_twice_is_found_fast():
    """A hostile list of labels costs linear time: this one would take minutes if each label were searched for."""
    labels = [str(code) for code in range(200_000)]
    with pytest.raises(DomainError, match="'199999' stands twice"):
        Attribute.of_labels("a", [*labels, labels[-1]], unknown="0")


def test_code_dtype_holds_every_code():
    """The smallest type whose largest value is at least size - 1."""
    for size in (1, 2**8, 2**8 + 1, 2**16, 2**16 + 1, 2**22):
        assert np.iinfo(code_dtype(size)).max >= size - 1
    assert [code_dtype(size).itemsize for size in (2**8, 2**8 + 1, 2**16 + 1)] == [1, 2, 4]
