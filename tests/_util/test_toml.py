"""TOML: whatever is wrong with a text is one ValueError; whatever stands in tables is read back."""

import contextlib
import time
import tomllib
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core._util.toml import comment, domain_toml, parse_toml, toml_value
from dpgm_core.errors import DomainError


@given(st.text(max_size=200))
def test_any_text_is_tables_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert isinstance(parse_toml(text), dict)


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000 + "]" * 5000, f"a = 0x{'f' * 3000}", f"a = {2**63}", f"a = [{{b = {-(2**63) - 1}}}]",
     "a = 1\na = 2"],
    ids=["nested", "long hexadecimal", "beyond 64 bits", "beyond inside", "twice"],
)  # fmt: skip
def test_what_could_hurt_later_is_refused_here(text):
    """Deep nesting and numbers that Python cannot print among it."""
    with pytest.raises(ValueError):
        parse_toml(text)


def test_the_ends_of_64_bits_are_read():
    assert parse_toml(f"a = {-(2**63)}\nb = {2**63 - 1}") == {"a": -(2**63), "b": 2**63 - 1}


@pytest.mark.parametrize("part", ["a.", "a . ", '"a".', "'é' ."])
@pytest.mark.parametrize("form", ["{}a = 1", "[{}a]\nb = 1", "b = {{ {}a = 1 }}"])
def test_a_key_of_endless_parts_is_refused_at_once(part, form):
    """tomllib takes the square of their number: 40 kB a minute, a megabyte for ever."""
    began = time.process_time()
    with pytest.raises(ValueError, match="a key of more than 100 parts"):
        parse_toml(form.format(part * 10**5))
    assert time.process_time() - began < 5
    assert parse_toml(form.format(part * 30))


@pytest.mark.parametrize("text", ['"' * 10**5, "a" * 10**6, "a." * 99 + "=" * 10**5, "'\"" * 10**5, '"a' * 10**5])
def test_looking_for_long_keys_takes_no_time(text):
    """No text makes the search itself slow."""
    began = time.process_time()
    with pytest.raises(ValueError):
        parse_toml(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text",
    ["epsilon = 0,5", "budget = { epsilon = 0,5 }\nx = 1", 'a = "x"\n[b]\nepsilon = 0,5\n', "epsilon = 0,5  # one"],
)
def test_a_decimal_comma_is_answered_with_the_number_to_write(text):
    """Of the line with the error."""
    with pytest.raises(ValueError, match=r"decimal point: write epsilon = 0\.5$"):
        parse_toml(text)


def test_bytes_are_utf_8_with_or_without_a_mark():
    """Editors of Windows write a mark; what they save in cp1252 is called by its name."""
    assert parse_toml("\ufeffa = 'é'".encode()) == {"a": "é"}
    with pytest.raises(ValueError, match="it is not UTF-8; save it"):
        parse_toml("a = 'é'".encode("latin-1"))


HOSTILE = ["plain", 'quo"te', "back\\slash", "line\nbreak", "\x1b[2J", "\x7f", "‮evil", "ü"]
HOSTILE += ["#", "]", "", "\U0001d518", "\t"]


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
    with pytest.raises(DomainError):
        toml_value(value)


def test_comments_hold_one_line_each():
    assert all(line.startswith("#") for line in comment("a\nb\r\x85c\u2028 d" + " long" * 100).splitlines())
