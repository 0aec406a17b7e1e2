"""When two texts are one value."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.labels import EXACT, Matching
from dpgm_core.errors import DomainError

NUMERALS = st.from_regex(r"[+-]?[0-9]{0,4}(\.[0-9]{0,4})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


def value(text: str) -> Fraction | None:
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
    """The form of two decimal numbers is the same if and only if Python's exact fractions are."""
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
    """Two labels cannot have one form: values could not tell which is meant."""
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
    ],
)
def test_nonsense_is_refused(wrong, said):
    """In one line that names the setting."""
    with pytest.raises(DomainError, match=said):
        Matching(**wrong)
