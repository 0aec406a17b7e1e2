"""TOML: whatever is wrong with a text is one ValueError."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core._util.toml import parse_toml


@given(st.text(max_size=200))
def test_any_text_is_tables_or_a_value_error(text):
    """Nothing else is raised, whatever the text holds."""
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
    """-2^63 and 2^63 - 1."""
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
