"""What the values of a column are: read from any text, written in its own way, the bins they fall in, their places."""

import math
import warnings
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.values import NANO, Cut, Values, lattice_of
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
    assert {text: Values(kind=kind).number(text) for text in texts} == texts


def test_nan_is_kept_apart():
    """A text NaN is null where numbers are, so it stays NaN."""
    assert math.isnan(Values(kind="number").number("nan")) and math.isnan(Values(kind="integer").number("NaN"))


@given(st.binary(max_size=12), st.sampled_from(KINDS))
def test_any_bytes_are_read(raw, kind):
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
    values = Values(kind="datetime")
    for moment in (datetime(2019, 3, 1, 5, 30), datetime(2019, 3, 1, 5, 30, tzinfo=UTC)):
        assert values.place(moment) == values.exact(moment.isoformat().encode())
    assert values.place(date(2019, 3, 1)) == values.exact(b"2019-03-01")
    assert Values(kind="time").place(time(5, 30)) == Values(kind="time").exact(b"05:30")
    with pytest.raises(ValueError, match="no date"):
        values.place(time(5, 30))


def test_places_are_written_in_the_column_s_own_way():
    assert Values(kind="integer").text(37.0) == "37"
    codes = Values(kind="integer", format="%05d")
    assert [codes.text(number) for number in (2139.0, 94110.0, 123456.0)] == ["02139", "94110", "123456"]
    assert codes.number("02139") == codes.number("2139") == 2139.0
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
        ({"kind": "number", "format": "%Y"}, "format goes with dates, times and whole numbers"),
        ({"kind": "integer", "format": "%5d"}, "tells their digits"),
        ({"kind": "integer", "format": 5}, "tells their digits"),
        ({"kind": "integer", "format": "%d.5"}, "tells their digits"),
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


def test_years_before_1000_are_written_with_four_digits():
    values = Values(kind="date", format="%%Y %d.%m.%Y")
    place = values.number("%Y 28.02.0447")
    assert place is not None and values.text(place) == "%Y 28.02.0447"
    assert Values(kind="time", format="%H:%M").text(60.0) == "00:01"


ENDS = st.one_of(
    st.floats(allow_nan=False), st.integers(-5, 5).map(float), st.sampled_from([-(2.0**63), 2.0**53, 2.0**63])
)
EDGES = (
    st.lists(ENDS, min_size=2, max_size=6, unique=True).map(sorted).filter(lambda ends: ends[0] < ends[-1]).map(tuple)
)


def bin_of(edges, number, cap):
    """By the definition, in exact arithmetic."""
    ends = [edge if math.isinf(edge) else Fraction(edge) for edge in edges]
    if number < ends[0]:
        return 0 if cap else -1
    if number >= ends[-1]:
        return len(ends) - 2 if cap or number == ends[-1] else -1
    return max(at for at, edge in enumerate(ends) if edge <= number)


@settings(max_examples=50)
@given(EDGES, st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=8), st.booleans())
@example((0.0, 2.0**53, 2.0**63), [2**53 - 1, 2**53 + 1, 2**63 - 1], False)
@example((0.2, 0.8), [0, 1], False)
@example((-1.0, 0.2, 0.8), [0, 1], True)
def test_whole_numbers_have_the_bin_of_exact_arithmetic(edges, numbers, cap):
    """One by one and as arrays of either sign, in units of the edges and in parts of them."""
    cut = Cut(edges, cap)
    assert [cut.place(number) for number in numbers] == [bin_of(edges, Fraction(number), cap) for number in numbers]
    for units in (Fraction(1), Fraction(1000), Fraction(1, 7)):
        wanted = [bin_of(edges, number / units, cap) for number in numbers]
        assert cut.whole(np.array(numbers, np.int64), units).tolist() == wanted
        positive = [number for number in numbers if number >= 0]
        wanted = [bin_of(edges, number / units, cap) for number in positive]
        assert cut.whole(np.array(positive, np.uint64), units).tolist() == wanted
    ticks = Cut(edges, cap, 1000)
    assert [ticks.place(number) for number in numbers] == [
        bin_of(edges, Fraction(number, 1000), cap) for number in numbers
    ]


@settings(max_examples=50)
@given(EDGES, st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8), st.booleans())
def test_floats_have_the_bin_of_exact_arithmetic(edges, numbers, cap):
    cut = Cut(edges, cap)
    wanted = [bin_of(edges, Fraction(number), cap) for number in numbers]
    assert cut.real(np.array(numbers, float)).tolist() == [cut.place(number) for number in numbers] == wanted


@pytest.mark.parametrize("cap", [False, True])
def test_what_is_infinite_is_beyond_finite_edges(cap):
    numbers = np.array([-math.inf, math.inf])
    assert Cut((0.0, 1.0, 2.0), cap).real(numbers).tolist() == ([0, 1] if cap else [-1, -1])
    assert Cut((-math.inf, 0.0, math.inf), cap).real(numbers).tolist() == [0, 1]


@pytest.mark.parametrize("cap", [False, True])
def test_a_search_and_a_quotient_find_the_same_bin_among_many(cap):
    """A thousand edges nearly alike: on, just below and just above each, between them, far beyond, infinite, none."""
    rng = np.random.default_rng(0)
    edges = np.round(np.linspace(-3.7, 1e5, 1001) + rng.uniform(-9, 9, 1001), 2)
    cut = Cut(tuple(edges.tolist()), cap)
    assert cut._width is not None
    numbers = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), rng.uniform(-1e4, 2e5, 1000)]
    numbers = np.concatenate([*numbers, [1e308, -1e308, np.inf, -np.inf]])
    assert cut.real(numbers).tolist() == [cut.place(number) for number in numbers.tolist()]
    assert len(cut.real(np.array([np.nan]))) == 1
    for others in (edges**3, np.append(edges, np.inf), edges[:9]):
        assert Cut(tuple(np.unique(others).tolist()), cap)._width is None


LATTICES = [
    Values(kind="integer"),
    Values(kind="number", decimals=0),
    Values(kind="number", decimals=3),
    Values(kind="date"),
    Values(kind="datetime"),
    Values(kind="datetime", format="%d.%m.%Y %H:%M"),
    Values(kind="time", format="%H:%M"),
]


@pytest.mark.parametrize("values", LATTICES, ids=str)
def test_first_and_last_are_the_nearest_places(values):
    """Of places on and off the lattice: nothing lies between, and its own place is both."""
    lattice = lattice_of(values)
    places = np.random.default_rng(0).normal(size=2000) * 1e5
    first, last = lattice.first(places), lattice.last(places)
    assert (lattice.place(first) >= places).all() and (lattice.place(first - 1) < places).all()
    assert (lattice.place(last) <= places).all() and (lattice.place(last + 1) > places).all()
    on = lattice.place(first)
    np.testing.assert_array_equal(lattice.first(on), first)
    np.testing.assert_array_equal(lattice.last(on), first)


def test_whole_numbers_beyond_doubles_stay_in_their_bins():
    """What is at or above 2^60 reads back as that or more, what is below as less; nothing is beyond all numbers."""
    whole, edge, far = lattice_of(Values(kind="integer")), np.array([2.0**60]), np.array([2.0**63, -(2.0**64)])
    assert float(whole.first(edge)[0]) >= edge[0] > float(whole.last(np.nextafter(edge, 0))[0])
    assert (whole.first(far) > whole.last(far)).tolist() == [True, True]
    assert whole.first(far)[0] > 2**62 and whole.last(far)[1] < -(2**62)
    assert [lattice_of(Values(kind=kind)) for kind in ("number", "text", "boolean")] == [None] * 3
