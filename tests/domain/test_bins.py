"""The edges of bins from public bounds, and bins and labels that are to be found privately."""

import math
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import (
    PrivateBins,
    PrivateLabels,
    _rounded,
    bin_edge,
    bounds,
    calendar_edges,
    equal_edges,
    exact_share,
    grid_cells,
    grid_edges,
)
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError

INTEGER, NUMBER, DAY = Values(kind="integer"), Values(kind="number"), Values(kind="date")


@settings(max_examples=50)
@given(st.integers(-(10**6), 10**6), st.integers(0, 2000), st.integers(1, 60), st.booleans())
@example(1, 999, 32, True)
@example(1, 31, 32, True)
def test_whole_numbers_are_shared_out(low, span, count, log):
    """As many bins as asked for, each with a whole number at least; sizes differ by one at most on a linear scale."""
    values = Values(kind="integer", scale="log" if log else "linear")
    low = abs(low) + 1 if log else low
    if count > span + 1:
        with pytest.raises(DomainError, match="too few for"):
            equal_edges("x", float(low), float(low + span), count, values)
        return
    edges = equal_edges("x", float(low), float(low + span), count, values)
    held = np.histogram(np.arange(low, low + span + 1), edges)[0]
    assert len(edges) == count + 1 and held.sum() == span + 1 and held.min() >= 1
    assert log or held.max() - held.min() <= 1
    assert all(edge == int(edge) for edge in edges[:-1]) and edges[-1] - (low + span) in (0, 0.5)


@settings(max_examples=50)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9), st.integers(1, 200))
@example(0.0, 1.0, 3)
def test_numbers_are_cut_evenly_without_noise_digits(low, span, count):
    """Widths differ by a hundredth at most; inner edges have no more digits than that takes."""
    edges = equal_edges("x", low, low + span, count, NUMBER)
    widths = np.diff(edges)
    assert len(widths) == count and edges[0] == low and edges[-1] == low + span
    assert np.abs(widths / (span / count) - 1).max() < 0.01
    digits = 3 - math.floor(math.log10(span / count)) + 1
    assert all(round(edge, digits) == edge for edge in edges[1:-1])


def test_a_log_scale_has_equal_ratios():
    assert equal_edges("x", 1.0, 1000.0, 3, Values(kind="number", scale="log")) == pytest.approx((1, 10, 100, 1000))


def steps(first, last, unit):
    """The days from first to last at which a unit of the calendar begins."""
    begins = {
        "year": lambda day: (day.month, day.day) == (1, 1),
        "quarter": lambda day: day.month % 3 == 1 and day.day == 1,
        "month": lambda day: day.day == 1,
        "week": lambda day: day.weekday() == 0,
        "day": lambda day: True,
    }[unit]
    days = [first + timedelta(days=at) for at in range((last - first).days + 1)]
    return [day for day in days if begins(day)]


@settings(max_examples=50)
@given(
    st.dates(date(1995, 1, 1), date(2005, 1, 1)),
    st.integers(0, 900),
    st.sampled_from(["year", "quarter", "month", "week", "day"]),
)
@example(date(2000, 1, 1), 0, "year")
@example(date(1999, 12, 31), 366, "month")
def test_calendar_bins_begin_where_the_calendar_s_do(first, span, unit):
    """Compared day by day; bounds inside a unit cut it."""
    last = first + timedelta(days=span)
    low, high = (float((day - date(1970, 1, 1)).days) for day in (first, last))
    wanted = sorted({low, *(float((day - date(1970, 1, 1)).days) for day in steps(first, last, unit))})
    edges = calendar_edges("x", low, high, unit, DAY)
    assert list(edges[:-1]) == (wanted if edges[-1] > high else wanted[:-1] if wanted[-1] == high else wanted)
    assert edges[-1] in (high, high + 0.5) and np.histogram(np.arange(low, high + 1), edges)[0].sum() == span + 1
    hours = calendar_edges("x", low * 86_400, (low + 1) * 86_400, "hour", Values(kind="datetime"))
    assert np.diff(hours).tolist() == [3600.0] * 24


def test_a_grid_has_a_cell_for_each_whole_number_where_that_fits():
    """Else 65,536 cells, evenly or on a log scale, each with a whole number in it."""
    assert len(grid_edges("x", 0.0, 65_535.0, INTEGER)) - 1 == grid_cells(0.0, 65_535.0, INTEGER) == 2**16
    for values in (INTEGER, Values(kind="integer", scale="log"), NUMBER):
        edges = grid_edges("x", 1.0, 10.0**6, values)
        assert len(edges) - 1 == grid_cells(1.0, 10.0**6, values) == 2**16
    assert grid_edges("x", 3.0, 3.0, INTEGER) == (3.0, 3.5)


@pytest.mark.parametrize(
    ("low", "high", "values", "said"),
    [
        (5, 3, NUMBER, "min must be below max, got 5 and 3"),
        (3, 3, NUMBER, "min must be below max"),
        (0, math.inf, NUMBER, "must be finite"),
        ("-inf", 0, INTEGER, "must be finite"),
        (math.nan, 0, NUMBER, "must be finite"),
        (0, 1.5, INTEGER, "must be whole"),
        (0, 10, Values(kind="number", scale="log"), "needs min above 0"),
        (-1e308, 1e308, NUMBER, "too far apart"),
        (True, 3, NUMBER, "must be a number"),
        ("2020-01-01", "2019-01-01", DAY, "min must be below max"),
        ("2019-02-29", "2020-01-01", DAY, "'2019-02-29' is no date; write it as in 2019-12-31"),
        (0, 2**53 + 1, INTEGER, "9007199254740993 is no float64 number"),
    ],
)
def test_senseless_bounds_are_refused(low, high, values, said):
    with pytest.raises(DomainError, match=f"attribute 'x'.*{said}"):
        bounds("x", low, high, values)


def test_bounds_may_be_dates_of_toml_and_texts_of_either_form():
    german = Values(kind="date", format="%d.%m.%Y")
    assert bounds("x", "02.01.1970", date(1970, 1, 3), german) == (1.0, 2.0) == bounds("x", 1, "1970-01-03", german)
    stamps = Values(kind="datetime")
    assert bounds("x", "1970-01-01", "1970-01-01", stamps) == (0.0, 86_400.0)
    assert bounds("x", "1970-01-01", "1970-01-01T12:00", stamps) == (0.0, 43_200.0)
    assert bin_edge("x", np.float64(0.5)) == 0.5


@pytest.mark.parametrize(
    ("unit", "values", "high"),
    [
        ("hour", DAY, 9.0),
        ("year", INTEGER, 9.0),
        ("day", Values(kind="time"), 9.0),
        ("day", DAY, 2.0**18),
        ("year", DAY, 1e9),
        ("year", DAY, 1e6 * 3),
    ],
)
def test_a_calendar_goes_with_dates(unit, values, high):
    """Not with numbers or times, not with more bins than memory holds, and not beyond the calendar."""
    with pytest.raises(DomainError, match="attribute 'x'"):
        calendar_edges("x", 0.0, high, unit, values)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"type": "date", "min": "1930-01-01", "max": "2004-03-01", "format": "%d.%m.%y"}, "cannot tell 1930-01-01"),
        ({"type": "date", "min": "2004-03-01", "max": "2070-01-01", "format": "%d.%m.%y"}, "cannot tell 2070-01-0"),
        ({"type": "datetime", "min": "0447-01-01", "max": "0448-01-01", "format": "%c"}, "cannot tell 0447-01-01"),
        ({"type": "number", "min": 0, "max": 4e9, "decimals": 11}, "give decimals = 6 or fewer"),
        ({"type": "number", "bins": ["-inf", -1e17, 0], "decimals": 1}, "give decimals = 0 or fewer"),
    ],
)
def test_bins_whose_values_would_be_read_as_others_are_refused(table, error):
    with pytest.raises(DomainError, match=error):
        Attribute.from_dict("x", table)
    Attribute.from_dict("x", {key: value for key, value in table.items() if key not in ("format", "decimals")})
    Attribute.from_dict("x", {"type": "date", "min": "1969-01-01", "max": "2068-12-31", "format": "%d.%m.%y"})


AGE = {"type": "integer", "min": 0, "max": 94, "bins": {"private": 16, "share": 0.05}}


@pytest.mark.parametrize(
    "wrong", [0, 1, -0.1, 1.5, True, None, "x", "1/0", float("nan"), float("inf"), "1e-9999999999", []]
)
def test_shares_are_exact_and_part_of_one(wrong):
    """As they are written, not as floats hold them; nothing takes for ever to compute."""
    assert exact_share(0.1) == Fraction(1, 10) and exact_share("1/3") == Fraction(1, 3)
    with pytest.raises(DomainError, match="share must be above 0 and below 1"):
        exact_share(wrong)


def test_counts_are_whole_numbers_and_no_more_than_cells():
    """A cell is not cut; a count is rounded down to a power of two."""
    for wrong in (0, -1, True, 2.0, "3", None):
        with pytest.raises(DomainError, match="whole number of at least 1"):
            PrivateBins(count=wrong, low=0.0, high=9.0, cells=10)
        with pytest.raises(DomainError, match="whole number of at least 1"):
            PrivateLabels(keep=wrong)
    with pytest.raises(DomainError, match="11 private bins are more than the 10 cells"):
        PrivateBins(count=11, low=0.0, high=9.0, cells=10)
    assert PrivateBins(count=10, low=0.0, high=9.0, cells=10).count == 8
    with pytest.raises(DomainError, match="above the largest possible"):
        PrivateLabels(keep=10**6)


def test_private_bins_are_placeholders_until_they_are_found():
    """As many bins as there will be at most, a grid of single years, and then bins that are named as public ones."""
    age = Attribute.from_dict("age", AGE)
    assert isinstance(age.private, PrivateBins) and (age.private.cells, age.private.share) == (95, Fraction(1, 20))
    assert age.size == 17 and age.labels[-1] == "missing"
    grid = age.grid()
    assert grid.labels == (*map(str, range(95)), "missing") and grid.private is None
    assert [grid.code(text) for text in ("0", "94", "95", "", "x")] == [0, 94, 95, 95, 95]
    found = age.binned([0, 1, 40, grid.edges[-1]])
    assert found.labels == ("0", "1-39", "40-94", "missing") and found.private is None
    public = Attribute.from_dict("age", {"type": "integer", "bins": [0, 1, 40, 94.5]})
    assert found == public == Attribute.from_dict("age", found.to_dict())
    for attribute in (found, Attribute.of_size("a", 2)):
        with pytest.raises(DomainError, match="no bins that are found privately"):
            attribute.grid()
        with pytest.raises(DomainError, match="no bins that are found privately"):
            attribute.binned([0, 1])


def test_null_and_unknown_keep_their_labels_when_bins_are_found():
    """Two labels of their own stand after the cells and after the bins, whatever their number."""
    age = Attribute.from_dict("age", AGE | {"unknown": "?", "missing": "not asked", "cap": True})
    for one in (age, age.grid(), age.binned([0, 50, 94])):
        assert one.labels[-2:] == ("?", "not asked")
        assert [one.labels[one.code(text)] for text in ("x", None)] == ["?", "not asked"]
    assert age.binned([0, 50, 94]).code("120") == 1


@pytest.mark.parametrize(
    "own", [{"missing": "0"}, {"missing": "0-5"}, {"unknown": "40-94"}, {"unknown": "?", "missing": "94"}]
)
def test_missing_values_that_could_fall_on_a_found_bin_are_refused_when_the_domain_is_read(own):
    """A cell's name, a placeholder's, or one that a found bin might have: no session has to open to say so."""
    with pytest.raises(DomainError, match="attribute 'age': its bins are found from known values, so unknown and"):
        Attribute.from_dict("age", AGE | own)


def test_private_labels_are_placeholders_until_they_are_found():
    """Those found, then other, then missing; what cannot be told from these, or from one another, is left out."""
    job = Attribute.from_dict(
        "job", {"labels": {"private": True, "keep": 3}, "case": False, "null_values": ["", "n/a"]}
    )
    assert job.labels == ("label 1", "label 2", "label 3", "other", "missing") and job.private == PrivateLabels(keep=3)
    found = job.with_labels(["Cook", "cook", "Other", "pilot", "N/A", "missing"])
    assert found.labels == ("Cook", "pilot", "other", "missing") and found.private is None
    codes = [found.code(text) for text in ("COOK", "diver", None, "N/A")]
    assert [found.labels[code] for code in codes] == ["Cook", "other", "missing", "missing"]
    assert Attribute.from_dict("job", found.to_dict()) == found
    assert job.with_labels([]).labels == ("other", "missing")
    with pytest.raises(DomainError, match="no labels that are found privately"):
        found.with_labels([])


def _rounded_one_by_one(edges, parts, *, whole):
    rounded = list(edges)
    for at, (before, edge, after) in enumerate(zip(edges, edges[1:], edges[2:], strict=False), start=1):
        width = min(edge - before, after - edge) / parts
        digits = -math.floor(math.log10(width)) if 0 < width < math.inf else 400
        if digits < 300:
            rounded[at] = float(round(edge, max(digits, 0) if whole else digits))
    return rounded


@given(
    st.one_of(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30),
        st.lists(st.integers(-(10**6), 10**6).map(lambda n: n / 2**7), max_size=30),
        st.lists(st.integers(-(10**6), 10**6).map(lambda n: n / 10**4), max_size=30),
        st.lists(st.integers(-40, 40).map(lambda n: 10.0**n), max_size=30),
    ).map(lambda edges: sorted(set(edges))),
    st.sampled_from([100, 1000]),
    st.booleans(),
)
def test_edges_are_rounded_as_one_by_one(edges, parts, whole):
    """Bit for bit as Python rounds them: halves, powers of ten, neighbours on the line of floats, the largest."""
    assert list(map(float.hex, _rounded(edges, parts, whole=whole))) == list(
        map(float.hex, _rounded_one_by_one(edges, parts, whole=whole))
    )


@pytest.mark.parametrize(
    ("low", "high"), [(0.1, 7.3e4), (-1e-3, 1e-3), (1e15, 1e15 + 7e4), (-3e300, 2e300), (0.5, 65536.5)]
)
def test_a_whole_grid_is_rounded_as_one_by_one(low, high):
    edges = (low + (high - low) * (np.arange(65_537) / 65_536)).tolist()
    for parts, whole in ((1000, False), (100, True)):
        assert _rounded(edges, parts, whole=whole) == _rounded_one_by_one(edges, parts, whole=whole)
