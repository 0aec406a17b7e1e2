"""What the values of a column are: read from any text, and written in its own way."""

from __future__ import annotations

import math
import warnings
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.domain.values import NANO, Values
from dpgm_core.errors import DomainError

KINDS = ["text", "integer", "number", "boolean", "date", "datetime", "time"]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (
            "integer",
            {"7": 7, " 07 ": 7, "-3.0": -3, "1e3": 1000, "1.5": None, "": None, "inf": None, "1_0": None, "x": None},
        ),
        ("number", {"7": 7, "1e3": 1000, "-inf": -math.inf, "": None, "0x1": None, "1,5": None}),
        ("boolean", {"True": 1, "0": 0, "yes": None}),
        ("date", {"1970-01-02": 1, "1969-12-31T23:59": -1, "1970-1-2": None, "2019-02-29": None, "19700102": None}),
        (
            "datetime",
            {"1970-01-01": 0, "1970-01-01 00:01": 60, "1970-01-01T00:00:01.5Z": 1.5, "1970-01-01T02:00+02:00": 0}
            | {"1970-01-01T24:00": None, "1970-01-01T00:60": None, "12:00": None, "0001-01-01T00:00+00:01": None},
        ),
        ("time", {"00:01": 60, "23:59:59.25": 86_399.25, "24:00": None, "1:00": None, "1970-01-01": None}),
    ],
)
def test_texts_have_a_place_or_none(kind, texts):
    """Values of the type stand where they belong; others have no place, and nothing raises."""
    assert {text: Values(kind=kind).number(text) for text in texts} == texts


def test_nan_is_kept_apart():
    """A text NaN is null where numbers are, so it stays NaN."""
    assert math.isnan(Values(kind="number").number("nan")) and math.isnan(Values(kind="integer").number("NaN"))


@given(st.binary(max_size=12), st.sampled_from(KINDS))
def test_any_bytes_are_read(raw, kind):
    """Never raises."""
    assert Values(kind=kind).number(raw) is None or Values(kind=kind).exact(raw) is not None


@given(st.datetimes(), st.sampled_from(["%Y-%m-%d %H:%M:%S.%f", "%d.%m.%Y %H:%M:%S.%f"]))
def test_dates_and_times_come_back(moment, form):
    """What is read is written again, in ISO 8601 and in its own format, to the microsecond; UTC where it counts."""
    for values, texts in (
        (Values(kind="datetime"), [moment.isoformat(), moment.isoformat(" ") + "Z"]),
        (Values(kind="datetime", format=form), [moment.strftime(form)] if moment.year >= 1000 else []),
    ):
        for text in texts:
            exact = values.exact(text.encode())
            assert exact == (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000
            if 1900 < moment.year < 2100:
                assert abs(values.moment(exact / NANO) - moment) <= timedelta(microseconds=1)
    days = Values(kind="date")
    assert days.text(days.number(moment.date().isoformat())) == moment.date().isoformat()
    clock = Values(kind="time")
    assert clock.text(clock.number(moment.time().isoformat())) == moment.time().isoformat()


def test_python_s_own_dates_have_the_same_place():
    """What TOML reads as a date is where its text is."""
    values = Values(kind="datetime")
    for moment in (datetime(2019, 3, 1, 5, 30), datetime(2019, 3, 1, 5, 30, tzinfo=UTC)):
        assert values.place(moment) == values.exact(moment.isoformat().encode())
    assert values.place(date(2019, 3, 1)) == values.exact(b"2019-03-01")
    assert Values(kind="time").place(time(5, 30)) == Values(kind="time").exact(b"05:30")
    with pytest.raises(ValueError, match="no date"):
        values.place(time(5, 30))


def test_places_are_written_in_the_column_s_own_way():
    """Integers without a point, numbers with as many digits as are asked for, dates in their format."""
    assert Values(kind="integer").text(37.0) == "37"
    assert Values(kind="number").text(0.1) == "0.1" and Values(kind="number", decimals=2).text(3) == "3.00"
    assert Values(kind="date", format="%d.%m.%y").text(17_956.0) == "01.03.19"
    assert Values(kind="datetime").text(90.0) == "1970-01-01T00:01:30"
    for values, number in (
        (Values(kind="date"), 1e12),
        (Values(kind="datetime"), math.inf),
        (Values(kind="integer"), math.nan),
    ):
        with pytest.raises(DomainError, match=f"no {values.kind} that can be written"):
            values.text(number)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "int"}, "type must be one of .* got 'int'"),
        ({"kind": "number", "decimals": -1}, "decimals must be a whole number from 0 to 15"),
        ({"kind": "number", "decimals": True}, "decimals must be"),
        ({"kind": "integer", "decimals": 2}, "decimals goes with type = 'number'"),
        ({"kind": "number", "format": "%Y"}, "format goes with dates and times"),
        ({"kind": "date", "format": "%Y"}, "does not tell a date"),
        ({"kind": "date", "format": "%d.%m"}, "does not tell a date"),
        ({"kind": "time", "format": "%d %H:%M"}, "does not tell a time"),
        ({"kind": "date", "format": "%d.%m.%%Y"}, "does not tell a date"),
        ({"kind": "date", "format": "%d%d.%m.%Y"}, "does not tell a date"),
        ({"kind": "datetime", "format": "%d.%m.%Y"}, "does not tell a datetime"),
        ({"kind": "date", "format": 3}, "does not tell a date"),
        ({"kind": "date", "format": "\0"}, "does not tell a date"),
        ({"kind": "number", "scale": "sqrt"}, "scale must be one of linear, log"),
        ({"kind": "number", "shape": "normal"}, "shape must be one of"),
        ({"kind": "date", "scale": "log"}, "goes with numbers, not with the type date"),
        ({"kind": "text", "shape": "lower"}, "say type = 'number'"),
    ],
)
def test_nonsense_is_refused(wrong, said):
    """In one line that names the setting as a file has it, and without a warning: newer Pythons warn of %d alone."""
    with warnings.catch_warnings(), pytest.raises(DomainError, match=said):
        warnings.simplefilter("error")
        Values(**wrong)


def test_years_before_1000_are_written_with_four_digits() -> None:
    values = Values(kind="date", format="%%Y %d.%m.%Y")
    place = values.number("%Y 28.02.0447")
    assert place is not None and values.text(place) == "%Y 28.02.0447"
    assert Values(kind="time", format="%H:%M").text(60.0) == "00:01"
