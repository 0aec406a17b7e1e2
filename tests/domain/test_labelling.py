"""What bins are called."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import calendar_edges
from dpgm_core.domain.labels import bin_labels, check_apart, number_text
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError

INTEGER, DAY, STAMP = Values(kind="integer"), Values(kind="date"), Values(kind="datetime")


def said(label: str) -> tuple[float, float]:
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
        ([-9, -4, 7], INTEGER, False, ["-9 to -5", "-4 to 7"]),
        ([0, 31, 58], DAY, False, ["1970-01", "1970-02"]),
        ([0, 31, 57, 70], DAY, False, ["1970-01-01/1970-01-31", "1970-02-01/1970-02-26", "1970-02-27/1970-03-12"]),
        ([0, 31, 60], DAY, True, ["up to 1970-01-31", "from 1970-02-01"]),
        ([0, 365, 365.5], DAY, False, ["1970", "1971"]),
        ([0, 21_600, 86_400], STAMP, False, ["1970-01-01T00:00/1970-01-01T06:00", "1970-01-01T06:00/1970-01-02T00:00"]),
        (
            [float("-inf"), 0, 1.5],
            STAMP,
            False,
            ["before 1970-01-01T00:00", "1970-01-01T00:00/1970-01-01T00:00:01.500000"],
        ),
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
    """And whole ones have no point."""
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
