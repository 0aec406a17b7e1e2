"""What is shown to people is one line of characters that print, and still tells what was there."""

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core.errors import printable

HOSTILE = "a\x1b]0;owned\x07\nprivate: yes\r\x9b2J\u202e\u200b\u2028\x00\x7f"


@given(st.text(st.characters(), max_size=20))
def test_only_what_prints_is_left(text):
    """Any text, halves of characters too: one line that every terminal can show; showing it twice changes nothing."""
    shown = printable(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown
    assert printable(shown) == shown
    if "\\" not in text:  # spelled out as Python does, so that it can be read back
        assert ast.literal_eval('"' + shown.replace('"', '\\"') + '"') == text


def test_letters_of_all_languages_stay():
    """What prints is not touched."""
    for text in ("", "naïve ü", "Ελλάδα", "日本語", "שלום", "😀", "<5 [red]x[/red]"):
        assert printable(text) == text


def test_texts_and_errors_spell_their_names_out():
    """`repr` and `str` of what quotes names, an unknown unit in a guarantee too; one line stays one line."""
    domain = dpgm.Domain.from_dict(
        {HOSTILE: {"labels": ["x", HOSTILE], "unknown": "x"}, "b": {"labels": ["0", "1"], "unknown": "0"}}
    )
    twice = dpgm.Structure(domain, [(HOSTILE, "b"), ("b", HOSTILE), (HOSTILE,)])
    terms = dpgm.Terms(neighbours="add-remove", unit=HOSTILE)
    release = dpgm.release(np.array([[0, 1]]), twice, dpgm.Budget.pure(1), terms=terms)
    with pytest.raises(dpgm.DomainError) as unknown:
        domain["zzz"]
    with pytest.raises(dpgm.DomainError) as other:
        domain[HOSTILE].label_code("nothing like it")
    for text in (repr(domain), repr(domain[HOSTILE]), release.guarantee(), str(unknown.value), str(other.value)):
        assert text.isprintable(), ascii(text)
        assert "\\x1b" in text
    for line in str(twice.describe()).split("\n"):
        assert line.isprintable(), ascii(line)
