"""Errors: one tree, hints that help, one line of characters that print; exact functions of records by name."""

import ast
import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgm_core as dpgm
from dpgm_core import errors
from dpgm_core.errors import DpgmError, LearningFailed, NonPrivateError, did_you_mean, printable, require_non_private

EVERY = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Exception)]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.__name__)
def test_every_error_is_one_of_dpgm_and_travels(error):
    """It is a DpgmError with its words, between processes too."""
    assert issubclass(error, DpgmError)
    back = pickle.loads(pickle.dumps(error("what would do")))
    assert type(back) is error and str(back) == "what would do"


def test_a_failed_learner_keeps_what_was_paid_for():
    """Through a pickle as well, as work in other processes comes back by one."""
    failed = LearningFailed("no", releases=("one", "two"))
    assert failed.releases == ("one", "two")
    assert pickle.loads(pickle.dumps(failed)).releases == ("one", "two")


def test_hints_name_the_nearest_word_or_all_there_are():
    """And no more than twenty of them."""
    assert did_you_mean("naive_mle", ["cgm-em", "naive-mle"]) == "; did you mean 'naive-mle'?"
    assert did_you_mean("x", []) == "; there are none"
    many = did_you_mean("zzz", [f"word{number}" for number in range(30)])
    assert many.count("word") == 20 and many.endswith("(30 in all)")


@pytest.mark.parametrize("allowed", [False, None, 1, "yes", [True]])
def test_only_true_asks_for_what_is_not_private(allowed):
    """A truthy accident does not."""
    with pytest.raises(NonPrivateError, match="NOT PRIVATE"):
        require_non_private("the score", allowed)
    require_non_private("the score", True)


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
