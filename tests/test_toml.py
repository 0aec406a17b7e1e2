"""TOML: whatever is wrong with a text is one ValueError."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.toml import parse_toml


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
