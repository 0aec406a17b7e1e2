"""Texts become markup in one place, and none of them can be more than a text."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core._util.html import Html, card, first, number, table, tag, text

HOSTILE = "<script>alert('x')</script>\"&\x1b[2J"


@given(st.text())
def test_no_text_opens_an_element(found):
    """Whatever a label holds, in a child or an attribute: no bracket or quote of it is left."""
    made = tag("td", found, title=found)
    inside = made.removeprefix('<td title="').removesuffix("</td>").replace('">', "", 1)
    assert not set("<>\"'") & set(inside)


def test_markup_is_not_escaped_twice():
    assert tag("p", tag("b", "x"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert isinstance(text(Html("<b>")), Html) and text(Html("<b>")) == "<b>"


def test_numbers_are_for_people_and_stand_to_the_right():
    """Python's, numpy's and fractions alike, however large; a flag is a word."""
    shown = [number(one) for one in (0.1 + 0.2, 20013.7, 7, np.float64(0.5), np.int64(12_345), Fraction(1, 3))]
    assert shown == ["0.3", "20,014", "7", "0.5", "12,345", "0.3333"]
    assert [number(one) for one in (10**6000, 1e300, float("inf"), float("nan"))] == ["10^6000", "1e+300", "inf", "nan"]
    assert table(["n"], [[np.float64(0.5)], [True]]).count("text-align:right") == 1


def test_the_first_rows_are_shown_and_the_rest_is_counted():
    """Twenty rows of many, each taken only if it is shown; long texts are cut, and without rows there is nothing."""
    taken = []
    shown = first(["a"], ([taken.append(n) or f"{n}" * 500] for n in range(10**9)), 10**9)
    assert shown.count("<tr>") == 21 and taken == list(range(20)) and "<p>... 999,999,980 more</p>" in shown
    assert len(shown) < 4000
    assert first(["a"], [], 0) == ""


def test_a_card_has_stamps_facts_and_tables_in_this_order():
    """Flaws come before what they are about; facts that say nothing are left out; all of it is escaped."""
    made = card(HOSTILE, [(HOSTILE, HOSTILE), ("none", None), ("empty", "")], tag("p", "last"), flaws=[HOSTILE])
    assert "<script" not in made and made.count("&lt;script&gt;") == 4
    assert made.index('role="note"') < made.index("<table>") < made.index("<p>last</p>")
    assert made.count("<tr>") == 1 and "\x1b" not in made
