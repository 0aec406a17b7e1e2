"""Attribute tables as TOML: whatever stands in them is read back, and no comment ends early."""

import tomllib
from datetime import date

import pytest

from dpgm_core._util.toml import comment, domain_toml, toml_value
from dpgm_core.errors import DomainError

HOSTILE = [
    "plain",
    'quo"te',
    "back\\slash",
    "line\nbreak",
    "\x1b[2J",
    "\x7f",
    "‮evil",
    "ü",
    "#",
    "]",
    "",
    "\U0001d518",
    "\t",
]


def test_whatever_stands_in_a_table_is_read_back():
    """Names and labels of any letters, numbers, tables, dates; with meanings in comments and without."""
    tables = {
        name or "empty?": {
            "type": "text",
            "labels": HOSTILE,
            "null_values": HOSTILE,
            "bins": {"private": 32},
            "min": -1.5,
            "max": date(2024, 1, 31),
            "coded": True,
        }
        for name in HOSTILE
    }
    for meanings in ({}, {name: dict.fromkeys(HOSTILE, "a\nb\x1b # \"'") for name in tables}):
        text = domain_toml(tables, dict.fromkeys(tables, "said\nlabels = 3\r\x0b\u2028"), meanings)
        assert tomllib.loads(text) == {"attributes": tables}
        assert "\x1b" not in text and "‮" not in text


def test_long_lists_stand_in_lines_of_full_width():
    """Wrapped, and read back."""
    labels = [str(number) for number in range(500)]
    text = domain_toml({"a": {"labels": labels}}, {}, {})
    assert max(map(len, text.split("\n"))) <= 120
    assert tomllib.loads(text)["attributes"]["a"]["labels"] == labels


def test_meanings_stand_beside_their_labels():
    """One label a line; that of the missing value below."""
    text = domain_toml(
        {"sex": {"labels": ["1", "2"], "missing": "N"}},
        {"sex": "Of a person"},
        {"sex": {"1": "Male", "N": "Not asked"}},
    )
    assert text.endswith(
        '# Of a person\n[attributes.sex]\nlabels = [\n    "1",  # Male\n    "2",\n]\nmissing = "N"\n# "N": Not asked\n'
    )


def test_private_bins_are_offered_where_bins_are_a_choice():
    """Not where each whole number has its own."""
    tables = {
        "a": {"type": "integer", "min": 0, "max": 9, "bins": 10},
        "b": {"type": "number", "min": 0, "max": 9, "bins": 32},
    }
    text = domain_toml(tables, {}, {})
    assert text.count("private = 32") == 1 and "bins = 10\n" in text


@pytest.mark.parametrize("value", [None, object(), "\ud800", 2**63, b"x", {"a": None}])
def test_what_toml_has_not_is_refused(value):
    """By a DomainError."""
    with pytest.raises(DomainError):
        toml_value(value)


def test_comments_hold_one_line_each():
    """However the text breaks its lines."""
    assert all(line.startswith("#") for line in comment("a\nb\r\x85c\u2028 d" + " long" * 100).splitlines())
