"""Labels: when two texts are one, values as users name them, what bins are called, and labels of merged codes."""

import itertools
import re
from datetime import date, datetime, time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import calendar_edges
from dpgm_core.domain.labels import (
    EXACT,
    Matching,
    bin_labels,
    check_apart,
    find_alike,
    merge_labels,
    number_text,
    place_of,
)
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError

NUMERALS = st.from_regex(r"[+-]?[0-9]{0,4}(\.[0-9]{0,4})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


def value(text):
    try:
        return Fraction(text)
    except ValueError:
        return None


@pytest.mark.landing
@given(NUMERALS, NUMERALS)
@example("1.0", "01")
@example("-0", "0")
@example("1e45", "10e44")
@example("0.1", ".10")
@example("5.", "5")
def test_numbers_are_one_exactly_if_their_values_are(one, other):
    rules = Matching(numbers=True)
    values = [value(text.rstrip(".") if text.endswith(".") and text[:-1] else text) for text in (one, other)]
    if None not in values:
        same = rules.form(one.encode()) == rules.form(other.encode())
        assert same == (values[0] == values[1])


@pytest.mark.parametrize(
    ("rules", "same", "different"),
    [
        ({"case": False}, [b"Yes", b"YES", b"yes"], [b" yes", b"no"]),
        ({"case": False}, [b"STRASSE", "straße".encode()], [b"\xff"]),
        ({"blanks": "strip"}, [b"a", b" a\t", b"\xc2\xa0a"], [b"A", b"a b"]),
        ({"numbers": True}, [b"1", b"1.0", b"01", b"+1", b"1e0"], [b" 1", b"1,0", b"1_0", b"one", b"nan"]),
        ({"thousands": ",", "numbers": True}, [b"1000", b"1,000", b"1,000.00"], [b"10,00", b"1,0000", b",100", b"1"]),
        ({"thousands": ",", "numbers": True}, [b"100000", b"1,00,000"], [b"1,00,00"]),
        ({"thousands": ".", "decimal": ",", "numbers": True}, [b"1,5", b"1,50"], [b"1.5", b"15", b"1.50"]),
        ({"thousands": "\u202f", "decimal": ",", "numbers": True}, [b"1000,5", "1\u202f000,5".encode()], [b"1 000,5"]),
        (
            {"symbol": "$0", "thousands": ",", "numbers": True},
            [b"-$1,000", b"$-1000", b"-1000.0", b"-$ 1000"],
            [b"$1,000", b"1000 $", b"--1000", b"-$-1000", b"-$1,00,0", b"$"],
        ),
        ({"symbol": "€ 0", "decimal": ",", "numbers": True}, ["€ 12,50".encode(), "€\xa012,5".encode()], [b"12.5"]),
        ({"symbol": "0 %", "numbers": True}, [b"5%", b"5.0 %", b" 5"], [b"%5", b"5,0 %", b"5 %%", b"0.05"]),
        ({}, [b"1"], [b"1.0", b" 1", b"01"]),
    ],
)
def test_rules_say_which_texts_are_one(rules, same, different):
    """Each rule merges what it names and nothing else; an attribute of such labels takes them all."""
    matching = Matching(**rules)
    assert len({matching.form(text) for text in same}) == 1
    assert matching.form(same[0]) not in {matching.form(text) for text in different}
    attribute = Attribute.of_labels("x", [same[0].decode()], unknown="?", matching=matching)
    assert [attribute.code(text) for text in same] == [0] * len(same)
    assert [attribute.code(text) for text in different] == [1] * len(different)


@given(st.binary(max_size=8), st.booleans(), st.booleans(), st.sampled_from([None, ",", " "]))
def test_no_bytes_are_refused(raw, case, numbers, thousands):
    """A form is a fixed point for texts, and there is one for any bytes."""
    rules = Matching(case=case, numbers=numbers, thousands=thousands, blanks="strip")
    assert isinstance(rules.form(raw), bytes)
    assert EXACT.form(raw) == raw


def test_null_values_follow_the_same_rules():
    """`n/a` written in another case is null; a label that has the form of a null value stays a label."""
    rules = Matching(case=False, blanks="strip", numbers=True)
    attribute = Attribute.of_labels(
        "x", ["a", "-9"], unknown="?", null="none", null_values=["NA", "-9"], matching=rules
    )
    assert [attribute.code(text) for text in ("na ", " Na", "-9.0", "")] == [3, 3, 1, 2]
    income = Attribute.of_bins("x", [-10, 0, 10], unknown="?", null="none", null_values=["-9"], matching=rules)
    assert [income.code(text) for text in ("-9", " -9.0", "-8")] == [3, 3, 0]


def test_labels_that_become_one_are_refused_by_name():
    with pytest.raises(DomainError, match="labels 'Yes' and 'YES' are one under its rules of matching"):
        Attribute.of_labels("x", ["Yes", "YES"], unknown="?", matching=Matching(case=False))
    with pytest.raises(DomainError, match=r"labels '1' and '1\.0' are one"):
        Attribute.from_dict("x", {"labels": ["1", "1.0"], "numbers": True})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"case": "no"}, "case must be true or false"),
        ({"numbers": 1}, "numbers must be true or false"),
        ({"blanks": "all"}, "blanks must be"),
        ({"decimal": ";"}, "decimal must be"),
        ({"decimal": 1}, "decimal must be"),
        ({"thousands": "00"}, "thousands must be one sign"),
        ({"thousands": "1"}, "thousands must be one sign"),
        ({"thousands": "-"}, "thousands must be one sign"),
        ({"thousands": "."}, "both '.'"),
        *(
            ({"symbol": symbol}, "symbol must be a sign with 0")
            for symbol in ("$", "0", "", 5, "1,0 $", "$00", "-0", "$\n0")
        ),
    ],
)
def test_rules_that_are_none_are_refused(wrong, said):
    with pytest.raises(DomainError, match=said):
        Matching(**wrong)


@pytest.mark.parametrize(
    ("values", "value", "place"),
    [
        (Values(kind="integer"), "37", 37.0),
        (Values(kind="integer"), np.float64(37), 37.0),
        (Values(kind="integer"), 37.5, None),
        (Values(kind="number"), "37.5", 37.5),
        (Values(), "1e3", 1000.0),
        (Values(kind="number"), "old", None),
        (Values(kind="number"), float("nan"), None),
        (Values(kind="number"), 37, None),  # a code, where users name labels
        (Values(kind="number"), date(1970, 1, 2), None),
        (Values(kind="date", format="%d.%m.%Y"), "02.01.1970", 1.0),
        (Values(kind="date", format="%d.%m.%Y"), "1970-01-02", None),
        (Values(kind="date"), date(1970, 1, 2), 1.0),
        (Values(kind="date"), 1.0, None),
        (Values(kind="datetime"), datetime(1970, 1, 1, 0, 0, 1), 1.0),
        (Values(kind="time"), time(1), 3600.0),
        (Values(kind="date"), time(1), None),
    ],
)
def test_values_have_places(values, value, place):
    assert place_of(values, EXACT, value) == place
    german = Matching(thousands=".", decimal=",")  # which holds for texts alone
    assert [place_of(Values(kind="number"), german, one) for one in ("1.250,5", 1250.5)] == [1250.5] * 2


def test_labels_are_named_as_the_column_writes_them():
    loose = Matching(case=False, blanks="strip", numbers=True)
    attribute = Attribute.of_labels("smoker", ["0", "Ja"], unknown="?", matching=loose)
    assert [attribute.label_code(one) for one in ("0.0", " JA", "ja", "?")] == [0, 1, 1, 2]
    with pytest.raises(DomainError, match="has no label 'nein'"):
        attribute.label_code("nein")
    assert find_alike(["a", "A"], loose, "a") is None
    with pytest.raises(DomainError, match="has no label 'ja'"):
        Attribute.of_labels("smoker", ["0", "Ja"], unknown="?").label_code("ja")


def test_a_date_in_another_format_is_told_the_column_s():
    """The bins of a month are called as ISO 8601 has it, which would otherwise mislead."""
    table = {"type": "date", "format": "%d.%m.%Y", "min": "1970-01-01", "max": "1970-03-31", "bins": "month"}
    day = Attribute.from_dict("day", table)
    assert day.label_code("03.02.1970") == day.label_code("1970-02") == 1
    with pytest.raises(DomainError, match=r"has no label '1970-02-03', nor is it a date as '%d\.%m\.%Y'"):
        day.label_code("1970-02-03")


INTEGER, DAY, STAMP = Values(kind="integer"), Values(kind="date"), Values(kind="datetime")


def said(label):
    """The least and the largest whole number that a label speaks of."""
    if label == "any":
        return -np.inf, np.inf
    if found := re.fullmatch(r"up to (-?\d+)", label):
        return -np.inf, int(found[1])
    if found := re.fullmatch(r"(-?\d+)\+", label):
        return int(found[1]), np.inf
    found = re.fullmatch(r"(-?\d+)(?:(?:-| to )(-?\d+))?", label)
    return int(found[1]), int(found[2] if found[2] is not None else found[1])


@settings(max_examples=60)
@given(st.lists(st.integers(-60, 60) | st.floats(-60, 60), min_size=2, max_size=7, unique=True), st.booleans())
@example([0, 18, 19, 65], False)
@example([0, float("inf")], False)
@example([-5, -4.5, 3], True)
@example([0, 0.5], True)
def test_bins_of_integers_hold_exactly_what_they_say(edges, cap):
    """Each whole number falls in the bin whose label speaks of it; a bin without any is refused."""
    edges = sorted(map(float, edges))
    try:
        labels = bin_labels("x", edges, INTEGER, cap=cap)
    except DomainError as error:
        assert "holds no whole number; move its edges" in str(error)
        assert any(
            not any(low <= number < high for number in range(-61, 61)) for low, high in itertools.pairwise(edges)
        )
        return
    attribute = Attribute.of_bins("x", edges, unknown="?", values=INTEGER, cap=cap)
    assert attribute.labels == (*labels, "?") and len(set(labels)) == len(labels)
    for number in range(-70, 71):
        speak = [at for at, label in enumerate(labels) if said(label)[0] <= number <= said(label)[1]]
        assert [attribute.code(str(number))] == (speak or [len(labels)]), (number, labels)


@pytest.mark.parametrize(
    ("edges", "values", "cap", "labels"),
    [
        ([0, 5, 10], Values(), False, ["[0, 5)", "[5, 10]"]),
        ([0, 5, float("inf")], Values(), False, ["[0, 5)", "[5, inf]"]),
        ([0, 5, float("inf")], Values(kind="number"), False, ["[0, 5)", "5+"]),
        ([0, 0.1, 0.25], Values(kind="number"), True, ["below 0.1", "0.1+"]),
        ([0, 0.1, 0.25], Values(kind="number", decimals=1), True, ["up to 0", "0.1+"]),
        ([-0.1, 0, 0.1, 0.2], Values(kind="number", decimals=1), True, ["below 0", "0", "0.1+"]),
        ([-3, 0, 1], Values(kind="number", decimals=0), False, ["[-3, 0)", "[0, 1]"]),
        ([-9, -4, 7], INTEGER, False, ["-9 to -5", "-4 to 7"]),
        ([0, 31, 58], DAY, False, ["1970-01", "1970-02"]),
        ([0, 31, 57, 70], DAY, False, ["1970-01-01/1970-01-31", "1970-02-01/1970-02-26", "1970-02-27/1970-03-12"]),
        ([0, 31, 60], DAY, True, ["up to 1970-01-31", "from 1970-02-01"]),
        ([0, 365, 365.5], DAY, False, ["1970", "1971"]),
        ([0, 21_600, 86_400], STAMP, False, ["1970-01-01T00:00/1970-01-01T06:00", "1970-01-01T06:00/1970-01-02T00:00"]),
        ([float("-inf"), 0], STAMP, False, ["before 1970-01-01T00:00"]),
        ([0, 1.5], STAMP, False, ["1970-01-01T00:00/1970-01-01T00:00:01.500000"]),
        ([0, 3600, 86_399], Values(kind="time"), False, ["00:00/01:00", "01:00/23:59:59"]),
    ],
)
def test_labels_read_well(edges, values, cap, labels):
    """Intervals for numbers, calendar names where the bins are units of a calendar, ISO 8601 elsewhere."""
    assert bin_labels("x", [float(edge) for edge in edges], values, cap=cap) == labels


@pytest.mark.parametrize(
    ("unit", "form"),
    [
        ("year", r"\d{4}"),
        ("quarter", r"\d{4} Q[1-4]"),
        ("month", r"\d{4}-\d\d"),
        ("week", r"\d{4}-W\d\d"),
        ("day", r"\d{4}-\d\d-\d\d"),
        ("hour", r"\d{4}-\d\d-\d\dT\d\d"),
    ],
)
@pytest.mark.parametrize("values", [DAY, STAMP])
def test_a_calendar_names_its_units(unit, form, values):
    """Also where the bounds cut the first and the last of them."""
    if (unit, values) == ("hour", DAY):
        return
    per_day = 1 if values == DAY else 86_400
    span = {"year": 1500, "quarter": 700, "month": 200, "week": 60, "day": 12, "hour": 3}[unit]
    labels = bin_labels("x", calendar_edges("x", 17_900.0 * per_day, (17_900.0 + span) * per_day, unit, values), values)
    assert all(re.fullmatch(form, label) for label in labels) and len(set(labels)) == len(labels) > 4


@settings(max_examples=50)
@given(st.floats(allow_nan=False))
def test_a_number_s_text_reads_back(number):
    assert float(number_text(number)) == number and not number_text(number).endswith(".0")


MOMENTS = [-1e9, 0.0, 0.25, 86_400.0, 86_461.5, 1e9, 1e14]


@pytest.mark.parametrize("cap", [False, True])
@pytest.mark.parametrize(
    ("edges", "values"),
    [
        ([-9, -5, -4, 0, 1, 40, 1e15, 1e17], INTEGER),
        ([0, 9], INTEGER),
        ([-1e300, -2.5, 0, 1e-9, 0.5, 7, 1e300], Values(kind="number")),
        ([-np.inf, 0, np.inf], Values(kind="number")),
        ([-9e9, -400, 0, 1, 31, 90, 9e9], DAY),
        (calendar_edges("x", 0.0, 400.0, "week", DAY), DAY),
        (calendar_edges("x", 0.0, 400.0, "quarter", DAY), DAY),
        (calendar_edges("x", 0.0, 4e5, "hour", STAMP), STAMP),
        (MOMENTS, STAMP),
        (MOMENTS[1:4], Values(kind="time")),
    ],
)
def test_no_missing_value_may_be_called_as_a_bin(edges, values, cap):
    """Claim: every name that a bin can have is refused, and usual names of missing values are not."""
    if cap and not np.isfinite(edges).all():
        return
    for label in bin_labels("x", edges, values, cap=cap):
        with pytest.raises(DomainError, match="need a label of their own"):
            check_apart("x", label)
    for label in ("missing", "N", "?", "", "not asked", "n/a", "99 = not stated", "anyone", "other", "Q1"):
        check_apart("x", label)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.sampled_from(["label", "other (2 labels)"]))
def test_every_new_code_has_a_label_of_its_own(codes, name):
    """Single codes keep theirs, no merged one takes a label that there was."""
    new = [sorted(set(codes)).index(code) for code in codes]
    labels = [name, *(f"{name} {at}" for at in range(2, len(codes) + 1))]
    plain, merged = merge_labels("a", labels, new)
    assert plain == new and len(set(merged)) == len(merged) == len(set(new))
    for code, label in enumerate(merged):
        olds = [old for old, into in enumerate(new) if into == code]
        assert label == labels[olds[0]] if len(olds) == 1 else label not in labels
