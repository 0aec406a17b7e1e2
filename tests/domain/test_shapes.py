"""Shapes of raw texts, and the tables that follow from released shapes and labels."""

import math
import re
from collections import Counter
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core import Attribute, Budget, Domain, DomainError, SeededRandomness
from dpgm_core.domain.bins_of_counts import _smooth, divide, find_spikes
from dpgm_core.domain.shapes import (
    CELLS,
    PARTS,
    SHAPES,
    cell_of,
    cells_of_place,
    interval_of,
    part_of,
    place_of_cell,
    read_thousands,
    shape_of,
)
from dpgm_core.domain.tables_of_shapes import cells_to_count, has_labels, table_of
from dpgm_core.domain.values import Values
from dpgm_core.models.within_bins import decoder, wide_bins
from dpgm_core.privacy.columns import ColumnsPlan
from dpgm_core.releases.labels import draw_columns
from dpgm_core.sources.encoding import encoder

OPEN = Attribute.from_dict("x", {"private": True})
MONTHS = [cell for cell in CELLS if cell[4:5] == "-"]


def search(columns, seed=1):
    """The attributes that a whole search finds for columns of texts, one record each, at epsilon 3."""
    plan = ColumnsPlan(
        columns=tuple(columns), whole=Budget.approx(3, "1e-6"), share=Fraction(1, 20), labels=1,
        neighbours="add-remove",
    )  # fmt: skip
    counted = [Counter(texts) for texts in columns.values()]
    by_shape, by_cell = ([dict.fromkeys(every, 0) for _ in counted] for every in (SHAPES, CELLS))
    for counts, shapes, cells in zip(counted, by_shape, by_cell, strict=True):
        for text, count in counts.items():
            shapes[shape_of(text.encode())] += count
            cell = cell_of(text.encode())
            if cell is not None:
                cells[cell] += count
    declared = [Attribute.from_dict(name, {"private": True}) for name in columns]
    released = draw_columns(plan, declared, counted, by_shape, by_cell, SeededRandomness(seed))
    return {one.declared.name: one.attribute for one in released.columns}


def moments(count, first=datetime(2019, 1, 1), days=1400, seed=2):
    rng = np.random.default_rng(seed)
    return [first + timedelta(minutes=int(at)) for at in rng.integers(0, days * 1440, count)]


def unpadded(text):
    """A date and a time without zeros before the day, the month and the hour."""
    return re.sub(r"(?<![:\d])0(?=\d)", "", text)


def written(attribute, text, at=0.0):
    """A text as the domain of its column reads it and writes it again, at the lower end of its bin or so far in it."""
    code = np.array([attribute.code(text.encode())])
    decode = decoder(attribute, np.eye(attribute.size)[code[0]])
    (again,) = decode.texts(code, decode.places(code, np.array([at]))).to_pylist()
    assert attribute.code(again.encode()) == code[0]
    return again


@given(st.one_of(st.binary(max_size=30), st.text("0123456789.,-+eE/:T ZAPM$€%", max_size=20).map(str.encode)))
def test_every_text_has_one_of_the_shapes(raw):
    assert shape_of(raw) in SHAPES
    assert len(set(SHAPES)) == len(SHAPES)
    assert cell_of(raw) is None or cell_of(raw) in CELLS
    assert (part_of(raw) in PARTS) is ("^" in (cell_of(raw) or ""))


@given(st.integers(-(10**14), 10**14), st.integers(0, 4))
def test_a_number_lies_in_its_cell(number, decimals):
    """Also whole numbers among cells that have none, and negative ones, whose cells are open below."""
    text = f"{number / 10**decimals:.{decimals}f}".encode()
    whole, value = not decimals, float(text)
    low, high = interval_of(cell_of(text), whole)
    assert low <= value < high or (not whole and low < value <= high < 0) or abs(value) < 2.0**-15
    assert interval_of("2^3 1", True)[0] == interval_of("2^3 1", True)[1]


@given(st.integers(2**22, 2**45), st.sampled_from([1, -1]), st.integers(0, 4))
def test_a_number_lies_in_its_part(number, sign, decimals):
    """All of one cell are spread over 64 intervals, and those of its part over the one that has the number."""
    text = f"{sign * number / 10**decimals:.{decimals}f}".encode()
    value, whole = float(text), not decimals
    cell, part = interval_of(cell_of(text), whole), PARTS.index(part_of(text))
    masses = divide({cell: 900.0}, [900 * (at == part) for at in range(64)], int(whole), 1.0)
    ((low, high),) = [interval for interval, mass in masses.items() if mass > 1]
    near = 1e-9 * abs(value)
    assert low - near <= value <= high + near and high - low <= (cell[1] - cell[0]) / 64 + whole


def test_a_narrow_range_of_large_numbers_has_bins():
    """Degrees, and seconds since 1970, all of one cell: two parts of it have nearly all, and a bin of each has few."""
    for shape, places in (("number.3 2^7", "2^7"), ("number,3 -2^7", "-2^7"), ("integer 2^30", "2^30")):
        wanted = cells_to_count({shape: 4000}, 10.0)
        assert wanted[-64:] == PARTS and wanted[0] == f"{places} 0"
        counts = {cell: 4000 * (cell == f"{places} 11") for cell in wanted[:-64]} | dict.fromkeys(PARTS, 9)
        counts |= {"part 30": 1900, "part 31": 1500}
        edges = table_of({shape: 4000}, {}, 64, 10.0, counts, 10.0, 10.0)["bins"]
        low, high = interval_of(f"{places} 11", shape[0] == "i")
        at = (30, 32) if low > 0 else (32, 34)
        ends = [low + (high - low) * one / 64 for one in at]
        inside = [edge for edge in edges if ends[0] <= edge <= ends[1]]
        assert len(inside) >= 8, (shape, edges)
    for others in ({"integer 2^9": 4000}, {"number.2 2^7": 4000}, {f"number.3 2^{at}": 2000 for at in range(3)}):
        assert PARTS[0] not in cells_to_count(others, 10.0)


@pytest.mark.parametrize(("shape", "border"), [("number.4 -2^6", -74), ("number.4 2^6", 100), ("integer 2^29", 2**29)])
def test_numbers_around_the_border_of_two_cells_have_bins(shape, border):
    """A town on both sides of a degree: parts count cells together, so the larger numbers have the first of them. A
    fifth of the persons was in one wide bin."""
    rng, wide = np.random.default_rng(4), 1 if shape[0] == "n" else 2**23
    values = rng.normal(border + 0.017 * wide, 0.02 * wide, 20_000)
    texts = [f"{value:.15f}" if shape[0] == "n" else str(round(value)) for value in values]
    cells = Counter(cell_of(text.encode()) for text in texts)
    parts = Counter(part_of(text.encode()) for text in texts)
    kinds = Counter(shape_of(text.encode()) for text in texts)
    counts = {cell: cells[cell] for place in {place_of_cell(cell) for cell in cells} for cell in cells_of_place(place)}
    counts = {cell: count + round(30 * rng.normal()) for cell, count in (counts | {p: parts[p] for p in PARTS}).items()}
    edges = np.array(table_of(kinds, {}, 64, 15.0, counts, 15.0, 30.0)["bins"], float)
    shares = np.histogram(values, edges)[0] / len(values)
    assert shares.max() < 0.12 and (np.diff(edges) > 1e-4 * wide).all()


def test_each_cell_is_of_one_place():
    """Cells that are stored by place are those of the place."""
    assert cell_of(b"2019-12-31 08:15:59") == cell_of(b"2019-12-31T08:15") == "2019-12"
    assert all(cell in cells_of_place(place_of_cell(cell)) for cell in CELLS)


def test_cells_by_example():
    """Months of dates in any order of day and month; none where the order is open, or outside of the years."""
    texts = ["0", "0.0", "64", "127", "-65.5", "2019-02-28T10:00", "31.12.2019", "12/31/2019", "03/04/2019", "cook"]
    assert [cell_of(text.encode()) for text in texts] == [
        "zero", "zero", "2^6 0", "2^6 63", "-2^6 1", "2019-02", "2019-12", "2019-12", None, None,
    ]  # fmt: skip
    assert cell_of(b"1712-05-06") == "1900-01" and cell_of(b"2144-05-06") == "2099-01"


@pytest.mark.parametrize(
    ("raw", "shape"),
    [
        ("0", "integer zero"), ("-3", "integer -2^1"), ("+8", "integer 2^3"), ("007", "padded"), ("00", "padded"),
        ("12A", "code"), ("V58.1", "code"), ("12 A", "text"), ("12kg", "text"), ("F", "word"),
        ("1e-05", "number.4 zero"), ("5e3", "number.4 2^12"), ("01e3", "text"),
        ("0.30000000000000004", "number.4 2^-2"), ("1.5e400", "number.4 2^46"), ("3.125", "number.3 2^1"),
        (".5", "number.1 2^-1"), ("-12.50", "number.2 -2^3"), ("0.00", "number.2 zero"),
        ("1,250", "grouped.0 2^10"), ("1234,567", "number,3 2^10"), ("0,250", "number,3 2^-2"),
        ("1,2345", "number,4 2^0"), ("27.0", "number.0 2^4"), ("-0.0", "number.0 zero"), ("27,0", "number,1 2^4"),
        ("1.5e3", "number.4 2^10"), ("12:30", "minute"), ("12:30:00", "time"), ("25:00", "text"),
        ("$5", "$0 integer 2^2"), ("-$3", "$0 integer -2^1"), ("$1,234.50", "$0 grouped.2 2^10"),
        ("$1,234", "$0 grouped.0 2^10"), ("$5.5", "$0 number.1 2^2"), ("$007", "text"), ("--$3", "text"), ("$", "text"),
        ("€ 12,50", "€ 0 number,2 2^3"), ("€12.50", "€0 number.2 2^3"), ("1.234,50\xa0€", "0 € grouped,2 2^10"),
        ("12.5 %", "0 % number.1 2^3"), ("5%", "0% integer 2^2"), ("0 %", "0 % integer zero"), ("$5%", "text"),
        ("9" * 14 + " %", "0 % integer 2^9"), ("£0.01", "£0 number.2 2^-7"), ("1,234 %", "text"),
        ("3:04 PM", "minute12"), ("03:04:59 am", "time12"), ("13:04 PM", "text"), ("0:04 AM", "text"),
        ("2019-02-30", "text"),
        ("2019-12-31", "date 2015"), ("2019-12-31 00:00:00", "date 2015"), ("2019-12-31T08:15", "datetime 2015"),
        ("2019-12-31 08:15", "datetime %Y-%m-%d %H:%M 2015"),
        ("2019-12-31 08:15:59", "datetime %Y-%m-%d %H:%M:%S 2015"),
        ("2019-12-31 08:15:59Z", "datetime 2015"), ("2019-12-31T08:15Z", "datetime 2015"),
        ("2019-12-31T08:15:59Z", "datetime %Y-%m-%dT%H:%M:%SZ 2015"), ("2019-12-31T08:15:59.5Z", "datetime 2015"),
        ("2019-12-31T00:00:00Z", "datetime %Y-%m-%dT%H:%M:%SZ 2015"), ("2019-12-31T08:15:59", "datetime 2015"),
        ("2019-12-31 25:15", "text"),
        ("13/01/2020", "date %d/%m/%Y 2020"), ("01/13/2020", "date %m/%d/%Y 2020"), ("01.02.1700", "date ?.?.%Y 1900"),
        ("5/14/2021", "date %m/%d/%Y 2020"), ("1.2.2021", "date ?.?.%Y 2020"), ("14.5.21", "date %d.%m.%y 2020"),
        ("5/14/68", "date %m/%d/%y 2060"), ("5/14/69", "date %m/%d/%y 1970"), ("5/6/21", "date ?/?/%y 2020"),
        ("69/5/14", "text"), ("5/14/21 3:04", "text"), ("2021/5/14", "date %Y/%m/%d 2020"), ("2021/14/5", "text"),
        ("5/14/2021 0:00", "date %m/%d/%Y %H:%M 2020"), ("14.5.2021 00:00", "date %d.%m.%Y %H:%M 2020"),
        ("14-5-2021 00:00", "datetime %d-%m-%Y %H:%M 2020"), ("3:04PM", "minute12pm"), ("13:04PM", "text"),
        ("5/14/2021 9:04", "datetime %m/%d/%Y %H:%M 2020"), ("4/5/2021 0:04:59", "datetime ?/?/%Y %H:%M:%S 2020"),
        ("05/14/2021 3:04 PM", "datetime %m/%d/%Y %I:%M %p 2020"), ("5/14/2021 13:04 PM", "text"),
        ("14.05.2021 15:04", "datetime %d.%m.%Y %H:%M 2020"), ("14.05.2021 24:04", "text"), ("5/14-2021", "text"),
        ("2021-5-14", "date %Y-%m-%d 2020"), ("2021-5/14", "text"), ("1.2.3", "text"), ("9:30", "minute1"),
        ("9:3", "text"), ("20210514", "date %Y%m%d 2020"), ("20210532", "integer 2^24"), ("18991231", "integer 2^24"),
        ("+20210514", "integer 2^24"), ("2021051", "integer 2^20"),
        ("12,345.5", "grouped.1 2^13"), ("-1.234.567", "grouped,0 -2^20"), ("1,23,456", "text"), ("1,234,5", "text"),
        ("yes", "word"), ("YES", "word"), ("cook", "text"), ("", "text"), ("12345678901234567890", "text"),
    ],
)  # fmt: skip
def test_shapes_by_example(raw, shape):
    """Codes with zeros before them stay texts, and so does what only looks like a number or a date."""
    assert shape_of(raw.encode()) == shape


NUMBERS = [shape for shape in SHAPES if shape.startswith(("integer", "number."))]
COUNTS = st.integers(30, 10_000)


@given(st.dictionaries(st.sampled_from(SHAPES), COUNTS, max_size=12), st.integers(8, 40))
def test_whatever_was_found_makes_an_attribute_of_at_most_the_planned_size(shapes, keep):
    """A session was planned for `keep` labels and two more, and refuses to have more."""
    attribute = Attribute.from_dict("x", {"private": True, "keep": keep})
    found = attribute.with_released(shapes, {"a": 500, "1": 300}, 10.0)
    assert found.private is None and found.size <= keep + 2
    assert Attribute.from_dict("x", found.to_dict()) == found


@given(
    st.dictionaries(
        st.tuples(st.integers(-(10**7), 10**7), st.integers(0, 7)).map(lambda x: f"{x[0] / 10 ** x[1]:.{x[1]}f}"),
        COUNTS, min_size=1, max_size=12,
    ),
    st.integers(8, 64), st.integers(0, 2**32 - 1), st.sampled_from(".,"),
)  # fmt: skip
def test_numbers_found_by_value_make_an_attribute(texts, keep, seed, sign):
    """Of values in any place, with any decimals, and cells with noise: edges ascend, and are as many as planned."""
    rng, texts = np.random.default_rng(seed), {text.replace(".", sign): count for text, count in texts.items()}
    kinds, cells = Counter[str](), Counter[str]()
    for text, count in texts.items():
        kinds[shape_of(text.encode())] += count
        cells[cell_of(text.encode())] += count
        cells[part_of(text.encode()) or PARTS[0]] += count
    kinds = {shape: max(15, count + round(10 * rng.normal())) for shape, count in kinds.items()}
    places = {place_of_cell(cell) for cell in cells} - {place_of_cell(PARTS[0])}
    counted = [*(cell for place in places for cell in cells_of_place(place)), *PARTS * (seed % 2)]
    noisy = {cell: cells[cell] + round(10 * rng.normal()) for cell in counted}
    attribute = Attribute.from_dict("x", {"private": True, "keep": keep})
    found = attribute.with_released(kinds, texts, 10.0, noisy, 10.0, 10.0)
    assert found.size <= keep + 2 and Attribute.from_dict("x", found.to_dict()) == found


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30), st.integers(8, 40))
def test_numbers_that_were_found_have_a_bin(numbers, keep):
    """Each value whose shape certainly occurs falls into a bin, and bins follow the order of numbers."""
    texts = [str(number).encode() for number in numbers]
    found = Attribute.from_dict("x", {"private": True, "keep": keep}).with_released(
        {shape_of(text): 100 for text in texts}, {}, 10.0
    )
    codes = [found.code(text) for text in texts]
    assert found.values.kind == "integer" and found.unknown not in codes
    assert [codes[at] for at in sorted(range(len(codes)), key=numbers.__getitem__)] == sorted(codes)


@given(
    st.lists(st.dates(date(1900, 1, 1), date(2095, 12, 31)), min_size=1, max_size=20),
    st.sampled_from(["%d.%m.%Y", "%m/%d/%Y"]),
)
def test_dates_that_were_found_have_a_bin(days, form):
    texts = [day.strftime(form).encode() for day in [*days, date(days[0].year, 12, 31)]]
    found = OPEN.with_released({shape_of(text): 100 for text in texts}, {}, 10.0)
    assert found.values.kind == "date" and found.values.format == form
    assert found.unknown not in [found.code(text) for text in texts]


LOCAL = ["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y"]
LOCAL += [f"{day} {time}" for day in LOCAL for time in ("%H:%M", "%H:%M:%S")] + ["%m/%d/%Y %I:%M %p"]


@given(
    st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2095, 12, 31)), min_size=1, max_size=9),
    st.sampled_from(LOCAL), st.booleans(), st.sampled_from([str, str.lower]),
)  # fmt: skip
def test_dates_of_a_shape_are_read_by_the_format_of_its_table(days, form, zeros, case):
    """Also with one digit for a day, a month or an hour, and with times, of which pm stands in either case."""
    days = [*days, days[0].replace(month=12, day=31)]  # of which the order of day and month is clear
    texts = [case(day.strftime(form) if zeros else unpadded(day.strftime(form))) for day in days]
    found = OPEN.with_released({shape_of(text.encode()): 100 for text in texts}, {}, 10.0)
    assert found.values.format == form and found.values.kind == ("datetime" if ":" in form else "date")
    for day, text in zip(days, texts, strict=True):
        same = datetime.strptime(day.strftime(form), form)
        assert found.values.exact(text.encode()) == found.values.place(same)
        assert found.code(text.encode()) != found.unknown
        assert cell_of(text.encode()) in (None, f"{day:%Y-%m}")


@given(
    st.lists(st.dates(date(1969, 1, 1), date(2068, 12, 31)), min_size=1, max_size=7),
    st.sampled_from(["%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%Y/%m/%d", "%Y-%m-%d"]), st.booleans(),
)  # fmt: skip
def test_days_with_two_digits_of_a_year_or_the_year_first_are_read_by_their_format(days, form, zeros):
    """All two digits: those from 69 on are of 1900. A day of 31 tells the order, and one of 1, more than a tenth of
    all, leaves it open."""
    days = [*days, days[0].replace(month=12, day=31), days[0].replace(month=1, day=1)]
    texts = [day.strftime(form if zeros else form.replace("%d", "%-d").replace("%m", "%-m")) for day in days]
    found = OPEN.with_released(Counter(shape_of(text.encode()) for text in texts for _ in range(100)), {}, 5.0)
    iso = form == "%Y-%m-%d" and texts == [str(day) for day in days]
    assert (found.values.kind, found.values.format) == ("date", None if iso else form)
    for day, text in zip(days, texts, strict=True):
        assert found.values.exact(text.encode()) == found.values.place(day) and shape_of(text.encode()) in SHAPES
        assert found.code(text.encode()) != found.unknown and cell_of(text.encode()) in (None, f"{day:%Y-%m}")
        assert datetime.strptime(written(found, text), form)


@given(st.lists(st.dates(date(1900, 1, 1), date(2095, 12, 31)), min_size=1, max_size=9), st.booleans())
def test_midnights_of_local_days_are_days(days, zeros):
    """Read and written with their time; beside another time they are dates with a time of the same format."""
    days = [*days, days[0].replace(month=12, day=31)]
    form = "%m/%d/%Y 00:00"
    texts = [day.strftime(form) if zeros else unpadded(f"{day:%m/%d/%Y}") + " 0:00" for day in days]
    shapes = {shape_of(text.encode()): 100 for text in texts}
    found = OPEN.with_released(shapes, {}, 10.0)
    assert (found.values.kind, found.values.format) == ("date", "%m/%d/%Y %H:%M")
    for day, text in zip(days, texts, strict=True):
        assert found.values.exact(text.encode()) == found.values.place(day)
        assert found.code(text.encode()) != found.unknown and written(found, text)[-6:] == " 00:00"
    both = OPEN.with_released(shapes | {shape_of(texts[-1][:10].encode() + b" 0:01"): 900}, {}, 10.0)
    assert (both.values.kind, both.values.format) == ("datetime", "%m/%d/%Y %H:%M")


def test_a_search_finds_further_dates():
    """Of two digits of a year the last are it, which an open order of some shows; 21/05/14 has labels."""
    days, rng = moments(6000), np.random.default_rng(5)
    columns = {
        "short": [unpadded(f"{day:%m/%d/%y}") for day in days], "british": [f"{day:%d/%m/%y}" for day in days],
        "reversed": [f"{day:%y/%m/%d}" for day in days], "first": [unpadded(f"{day:%Y/%m/%d}") for day in days],
        "midnight": [unpadded(f"{day:%m/%d/%Y}") + " 0:00" for day in days],
        "hours": [f"{day:%d.%m.%Y %H:00}" for day in days], "pm": [unpadded(f"{day:%I:%M%p}") for day in days],
        "births": [f"{day:%m/%d/%y}" for day in moments(6000, datetime(1971, 1, 1), 9000)],
        "two": [f"{day:%m/%d/%y}" if at % 2 else f"{day:%m/%d/%Y}" for at, day in enumerate(days)],
        "money": [f"${one / 10:g}" for one in rng.integers(1, 4000, 6000)],
        "zulu": [f"{day:%Y-%m-%dT%H:%M:%SZ}" for day in days],
    }  # fmt: skip
    found = search(columns)
    formats = {name: (one.values.kind, one.values.format) for name, one in found.items()}
    assert formats == {
        "short": ("date", "%m/%d/%y"), "british": ("date", "%d/%m/%y"), "reversed": ("text", None),
        "first": ("date", "%Y/%m/%d"), "midnight": ("date", "%m/%d/%Y %H:%M"), "hours": ("datetime", "%d.%m.%Y %H:%M"),
        "pm": ("time", "%I:%M%p"), "births": ("date", "%m/%d/%y"), "two": ("text", None), "money": ("number", None),
        "zulu": ("datetime", "%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip
    for name in formats.keys() - {"reversed", "two"}:
        assert found[name].unknown not in {found[name].code(text.encode()) for text in columns[name]}
        assert len(found[name].edges) > 20
    assert found["money"].matching.symbol == "$0" and found["money"].values.decimals == (0, 1)
    assert written(found["money"], "$399.9")[0] == "$" and written(found["pm"], "3:04PM") == "03:00PM"


def test_a_search_finds_short_fields_and_times_with_and_without_a_blank():
    """Written with two digits, which their format reads as well; a few ISO days among them count as such."""
    days = moments(6000)
    columns = {
        "iso": [f"{day:%Y-%-m-%-d}" for day in days], "dots": [f"{day:%d.%m.%y}" for day in days],
        "clock": [f"{day:%-H:%M}" for day in days], "morning": [f"{day.hour % 9}:{day:%M}" for day in days],
        "mixed": [unpadded(f"{day:%I:%M%p}" if at % 3 else f"{day:%I:%M %p}") for at, day in enumerate(days)],
    }  # fmt: skip
    found = search(columns)
    formats = {name: (one.values.kind, one.values.format) for name, one in found.items()}
    assert formats == {
        "iso": ("date", "%Y-%m-%d"), "dots": ("date", "%d.%m.%y"), "clock": ("time", "%H:%M"),
        "morning": ("time", "%H:%M"), "mixed": ("time", "%I:%M%p"),
    }  # fmt: skip
    for name, one in found.items():
        assert one.unknown not in {one.code(text.encode()) for text in columns[name]}
        assert len(one.edges) > 20
    assert written(found["clock"], "9:40") == "09:30" and written(found["mixed"], "3:04 PM") == "03:00PM"
    hand = Attribute.from_dict("x", {"type": "time", "bins": 24, "format": "%I:%M %p"})
    assert hand.code(b"3:04PM") == hand.code(b"3:04 pm") == 15


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31)), min_size=1, max_size=9))
def test_moments_with_z_are_read_by_their_format(days):
    form = "%Y-%m-%dT%H:%M:%SZ"
    texts = [day.strftime(form) for day in days]
    found = OPEN.with_released({shape_of(text.encode()): 100 for text in texts}, {}, 10.0)
    assert (found.values.kind, found.values.format) == ("datetime", form)
    for day, text in zip(days, texts, strict=True):
        assert found.values.exact(text.encode()) == found.values.place(day.replace(microsecond=0))
        assert found.code(text.encode()) != found.unknown and written(found, text)[10:] == "T00:00:00Z"


@pytest.mark.parametrize("form", LOCAL)
def test_a_search_finds_dates_and_times_with_fields_of_one_digit(form):
    texts = [unpadded(moment.strftime(form)) for moment in moments(6000)]
    found = search({"x": texts, "age": [str(at % 90) for at in range(6000)]})["x"]
    assert found.values.format == form and len(found.edges) > 16
    assert found.unknown not in {found.code(text.encode()) for text in texts}
    assert found.values.text(found.values.number("4" + form[2] + "4" + form[2] + f"{moments(1)[0]:%Y{form[8:]}}"))
    assert datetime.strptime(written(found, texts[0]), form)


@given(
    st.lists(st.times(), min_size=1, max_size=9), st.booleans(), st.sampled_from([str, str.lower]),
    st.sampled_from(["%H:%M", "%I:%M %p", "%I:%M:%S %p"]),
)  # fmt: skip
def test_times_of_a_shape_are_read_by_the_format_of_its_table(clocks, zeros, case, form):
    """Noon and midnight too, with one digit or two of the hour, and pm in either case."""
    texts = [case(clock.strftime(form)) for clock in clocks]
    texts = texts if zeros else [unpadded(text) for text in texts]
    found = OPEN.with_released({shape_of(text.encode()): 100 for text in texts}, {}, 10.0)
    assert (found.values.kind, found.values.format, found.size) == ("time", form, 25)
    for clock, text in zip(clocks, texts, strict=True):
        assert found.values.exact(text.encode()) == found.values.place(datetime.strptime(clock.strftime(form), form))
        assert found.code(text.encode()) == clock.hour and found.code(written(found, text).encode()) == clock.hour


AMOUNTS = {
    "$0": "-$#,.",
    "£0": "-£#,.",
    "€0": "-€#,.",
    "€ 0": "-€ #.,",
    "0 €": "-# €.,",
    "0%": "-#%,.",
    "0 %": "-# %,.",
}


@given(
    st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=9), st.integers(0, 2), st.booleans(),
    st.sampled_from(list(AMOUNTS)),
)  # fmt: skip
def test_numbers_with_a_symbol_are_read_by_the_domain_of_their_shapes(amounts, decimals, grouped, symbol):
    """With digits in groups and without, before and after, and bare numbers beside them."""
    *form, group, point = AMOUNTS[symbol]
    share = "%" in symbol
    decimals, grouped = (decimals, False) if share else (2 * (decimals > 0), grouped)
    texts = []
    for amount in amounts:
        bare = f"{abs(amount) / 10**decimals:{',' * grouped}.{decimals}f}"
        bare = bare.translate({ord(","): group, ord("."): point})
        texts.append("".join(form[amount >= 0 :]).replace("#", bare))
    found = OPEN.with_released(Counter(shape_of(text.encode()) for text in texts for _ in range(100)), {}, 5.0)
    assert found.values.kind == ("number" if decimals else "integer") and found.matching.symbol == symbol
    for amount, text in zip(amounts, texts, strict=True):
        assert float(found.matching.numeral(text.encode())) == amount / 10**decimals
        assert found.code(text.encode()) != found.unknown and shape_of(text.encode()) in SHAPES
    assert found.code(b"0") == found.typed_code("0") != found.unknown
    again = written(found, texts[0])
    assert shape_of(again.encode()).startswith(symbol) and found.matching.numeral(again.encode())


def test_a_search_finds_amounts_and_shares():
    """Also beside bare numbers and a text for what is missing; not among as many texts, nor of two symbols."""
    rng = np.random.default_rng(3)
    money = rng.lognormal(6, 1, 6000)
    columns = {
        "money": [f"${amount:,.2f}" for amount in money], "gaps": [f"${amount:.0f}" for amount in money],
        "share": [f"{100 * share:.1f} %" for share in rng.beta(2, 5, 6000)],
        "two": [f"{'$' if amount < 400 else '€'}{amount:.2f}" for amount in money],
        "bare": [f"{amount:,.2f}" if amount < 250 else f"£{amount:,.2f}" for amount in money],
    }  # fmt: skip
    columns["gaps"][::5], columns["money"][::30] = ["none at all"] * 1200, ["-$3.00"] * 200
    found = search(columns)
    symbols = {name: one.matching.symbol for name, one in found.items()}
    assert symbols == {"money": "$0", "gaps": "$0", "share": "0 %", "two": None, "bare": "£0"}
    kinds = {name: one.values.kind for name, one in found.items()}
    assert kinds == {"money": "number", "gaps": "integer", "share": "number", "two": "text", "bare": "number"}
    for name in ("money", "share", "bare"):
        assert found[name].unknown not in {found[name].code(text.encode()) for text in columns[name]}
        assert len(found[name].edges) > 24
    assert found["gaps"].null_values[-1] == "none at all" and found["money"].edges[0] < 0
    assert written(found["money"], "$1,234.50")[:3] == "$1," and found["money"].code(b"$1,234.50") > 8
    assert written(found["share"], "12.5 %").endswith(" %") and found["share"].values.decimals == 1


@given(st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=9), st.integers(0, 2), st.booleans())
def test_negative_numbers_in_parentheses_are_read_and_written(amounts, decimals, grouped):
    """Beside positive ones without, with digits in groups and without."""
    decimals = 2 * (decimals > 0)
    amounts = [*amounts, -(10**6)]
    texts = [f"{abs(one) / 10**decimals:{',' * grouped}.{decimals}f}" for one in amounts]
    texts = [f"({text})" if one < 0 else text for one, text in zip(amounts, texts, strict=True)]
    found = OPEN.with_released(Counter(shape_of(text.encode()) for text in texts for _ in range(100)), {}, 5.0)
    assert found.values.kind == ("number" if decimals else "integer") and found.matching.symbol == "(0)"
    for amount, text in zip(amounts, texts, strict=True):
        assert float(found.matching.numeral(text.encode())) == amount / 10**decimals
        assert found.code(text.encode()) not in (found.unknown, found.null) and shape_of(text.encode()) in SHAPES
        assert (written(found, text)[0] == "(") is (written(found, text)[-1] == ")")
    assert written(found, f"({10**6 / 10**decimals:.{decimals}f})")[0] == "("


def test_a_search_finds_negative_amounts_in_parentheses():
    """Of some per cent of the records; footnotes beside texts are labels."""
    amounts = np.random.default_rng(4).normal(300, 400, 6000)
    columns = {
        "amount": [f"({-one:,.2f})" if one < 0 else f"{one:,.2f}" for one in amounts],
        "whole": [f"({-one:.0f})" if one < -100 else f"{abs(one):.0f}" for one in amounts],
        "note": [f"({at % 5})" if at % 2 else "see there" for at in range(6000)],
        "plain": [f"{one:.2f}" for one in amounts],
    }  # fmt: skip
    found = search(columns)
    assert {name: one.matching.symbol for name, one in found.items()} == {
        "amount": "(0)", "whole": "(0)", "note": None, "plain": None,
    }  # fmt: skip
    for name in ("amount", "whole"):
        one = found[name]
        assert one.unknown not in {one.code(text.encode()) for text in columns[name]} and len(one.edges) > 20
        assert one.edges[0] < -300 and one.code(b"(441)") == one.code(b"-441") < one.code(b"441")
        assert Attribute.from_dict(name, one.to_dict()) == one
    assert found["note"].edges is None


def test_a_search_finds_times_of_12_hours():
    clocks = [unpadded(f"{moment:%I:%M %p}") for moment in moments(6000)]
    found = search(
        {"all": clocks, "gaps": clocks[:5000] + ["unknown"] * 1000, "half": clocks[:3000] + ["12:30"] * 3000}
    )
    assert found["all"].values.format == found["gaps"].values.format == "%I:%M %p"
    assert found["all"].unknown not in {found["all"].code(text.encode()) for text in clocks}
    assert "unknown" in found["gaps"].null_values and found["half"].values.kind == "text"
    assert written(found["all"], "3:04 PM") == "03:00 PM"


@given(st.lists(st.dates(date(1900, 1, 1), date(2099, 12, 31)), min_size=1, max_size=9))
def test_whole_numbers_that_are_days_are_dates(days):
    """As texts, and as numbers of a file with types; numbers that are no days are unknown there."""
    texts = [f"{day:%Y%m%d}" for day in days]
    found = OPEN.with_released({shape_of(text.encode()): 100 for text in texts}, {}, 10.0)
    assert (found.values.kind, found.values.format) == ("date", "%Y%m%d")
    codes = [found.code(text.encode()) for text in texts]
    assert found.unknown not in codes and encoder(found)(pa.array(map(int, texts))).tolist() == codes
    for day, text in zip(days, texts, strict=True):
        assert found.values.exact(text.encode()) == found.values.place(day)
        assert cell_of(text.encode()) == f"{day:%Y-%m}" and found.code(f"{day:%Y%m}99") == found.unknown


def test_a_search_tells_days_from_whole_numbers_that_look_like_some():
    """Nearly all, 19 of 20, have to be days; the others among these are unknown, and texts mark what is missing."""
    rng, days = np.random.default_rng(1), [f"{moment:%Y%m%d}" for moment in moments(6000)]
    numbers = [str(number) for number in rng.integers(10**7, 3 * 10**7, 6000)]
    columns = {
        "days": days[:5900] + ["99999999"] * 100, "gaps": days[:5000] + ["unknown"] * 1000,
        "numbers": numbers, "near": [str(20210000 + number) for number in rng.integers(0, 10_000, 6000)],
        "half": days[:3000] + numbers[:3000], "most": days[:5000] + ["0"] * 1000,
    }  # fmt: skip
    found = search(columns, 2)
    for name, one in found.items():
        kind = "date" if name in ("days", "gaps") else "integer"
        assert (one.values.kind, one.values.format) == (kind, "%Y%m%d" if kind == "date" else None), name
        unknown = sum(one.code(text.encode()) == one.unknown for text in columns[name])
        assert unknown == {"days": 100, "gaps": 1000}.get(name, 0), name
    assert "unknown" in found["gaps"].null_values and written(found["days"], days[0])[:4] == days[0][:4]
    assert found["numbers"].edges[0] <= 10**7 and found["numbers"].edges[-1] in (2**25 - 1, 2**26 - 1)


def test_noise_of_days_is_no_whole_number():
    """Days below the noise widen no range of numbers, and a few that occur count as numbers."""
    noise = {f"date %Y%m%d {year}": 18 for year in range(1900, 2100, 30)}
    whole = {"integer 2^20": 900, "integer 2^21": 400}
    assert table_of(whole | noise, {}, 32, 10.0) == table_of(whole, {}, 32, 10.0)
    both = {"integer 2^23": 900, "date %Y%m%d 2020": 300}
    assert table_of(both, {}, 32, 10.0) == table_of({"integer 2^23": 900, "integer 2^24": 300}, {}, 32, 10.0)


@pytest.mark.parametrize("seed", range(5))
def test_noise_makes_no_column_one_of_another_form(seed):
    """Of whole numbers, decimals, dates in ISO 8601 and words of 1,500 records, and of free texts."""
    rng = np.random.default_rng(seed)
    columns = {
        "whole": [str(number) for number in rng.integers(0, 10**6, 1500)],
        "decimals": [f"{number:.2f}" for number in rng.lognormal(4, 1, 1500)],
        "days": [str(moment.date()) for moment in moments(1500)],
        "words": rng.choice(["yes", "no", "cook"], 1500).tolist(),
        "free": [f"no. {number}" for number in range(1500)],
    }
    found = search(columns, seed)
    kinds = {name: one.values.kind for name, one in found.items()}
    assert kinds == {"whole": "integer", "decimals": "number", "days": "date", "words": "text", "free": "text"}
    assert {(one.values.format, one.matching.symbol) for one in found.values()} == {(None, None)}


def test_the_order_of_day_and_month_stays_open_without_a_day_that_tells():
    """Then the column is one of texts, rather than of dates that may be others."""
    assert table_of({"date ?/?/%Y 2015": 900}, {}, 32, 10.0) == {"labels": []}
    both = {"date %d/%m/%Y 2015": 400, "date %m/%d/%Y 2015": 400}
    assert table_of(both, {}, 32, 10.0) == {"labels": []}
    assert table_of({"date ?.?.%Y 2015": 90, "date %d/%m/%Y 2015": 400}, {}, 32, 10.0) == {"labels": []}
    hours = {"datetime ?/?/%Y %H:%M 2015": 90, "datetime %d/%m/%Y %I:%M %p 2015": 400}
    assert table_of(hours, {}, 32, 10.0) == {"labels": []}


def test_what_is_below_the_noise_does_not_count():
    """A shape of few standard deviations widens a range, fewer the nearer it is, and decides nothing."""
    sure = {"integer 2^4": 400, "integer 2^5": 900}
    assert table_of({**sure, "integer 2^6": 35}, {}, 8, 10.0)["bins"][-1] == 127
    assert table_of({**sure, "integer 2^6": 16}, {}, 8, 10.0)["bins"][-1] == 127
    assert table_of({**sure, "integer 2^9": 30}, {}, 8, 10.0)["bins"][-1] == 63
    assert table_of({**sure, "integer 2^9": 35}, {}, 8, 10.0)["bins"][-1] == 1023
    assert table_of({**sure, "integer -2^1": 25}, {}, 8, 10.0)["bins"][0] == 16
    assert table_of({**sure, "integer -2^1": 41}, {}, 8, 10.0)["bins"][0] == -3
    few = {"integer 2^0": 500, "integer 2^1": 400, "integer 2^2": 25}
    assert table_of(few, {"1": 500, "2": 400}, 8, 10.0)["bins"][-1] == 3.5  # labels cover them
    assert table_of(few, {"1": 500}, 8, 10.0)["bins"][-1] == 7.5
    assert table_of({**sure, "text": 40, "number.2 2^5": 45}, {}, 8, 10.0)["type"] == "integer"
    several = {"a": 110, "b": 110, "c": 110, "d": 110, "16": 90}
    assert table_of({**sure, "text": 500}, several, 8, 10.0) == {"labels": ["a", "b", "c", "d", "16"]}
    assert table_of({}, {}, 8, 10.0) == {"labels": []}


def test_bins_are_as_many_as_have_persons_for_the_noise():
    """Up to `keep`; none of more than two standard deviations of persons is left whole, and 16 whatever the noise."""
    counts = {f"integer 2^{power}": 1000 for power in range(8, 12)}
    many = {sigma: len(table_of(counts, {}, 64, sigma)["bins"]) - 1 for sigma in (10.0, 100.0, 150.0)}
    assert many == {10.0: 64, 100.0: 33, 150.0: 17}


def test_values_much_commoner_than_others_have_a_bin_of_their_own():
    """Decimals of few values, and peaks among whole numbers; not what is common as those next to it are."""
    index = {"integer zero": 300, "number.2 2^1": 2000, "number.1 2^3": 1000}
    found = OPEN.with_released(index, {"0": 300, "3.25": 1500, "2.5": 480, "10.5": 990}, 10.0)
    assert found.values.kind == "number" and found.values.decimals == (0, 1, 2)
    assert {"[3.25, 3.26)", "[2.5, 2.51)", "[10.5, 10.51)"} <= set(found.labels)
    codes = {text: found.code(text) for text in (b"3.24", b"3.25", b"3.26", b"10.50", b"0")}
    assert len(set(codes.values())) == 5
    ages = {"integer 2^5": 3000, "integer 2^6": 800}
    even = {str(age): 150 for age in range(40, 60)}
    assert table_of(ages, even | {"50": 900}, 64, 10.0)["bins"].count(50) == 1
    peak = table_of(ages, even | {"50": 900}, 16, 10.0)["bins"]
    assert {50, 51} <= set(peak)
    smooth = {float(age): 500 - 40 * abs(age - 50) for age in range(40, 60)}
    assert find_spikes(smooth, {"2^5": 3000}, 8, True, 1.0, 10.0) == {}
    assert find_spikes({50.0: 500}, {"2^5": 3000}, 8, True, 1.0, 10.0) == {50.0: 500}
    assert find_spikes({50.0: 500}, {"2^5": 3000}, 8, True, 1.0, 110.0) == {}  # its neighbours may be as common


def test_labels_say_where_persons_are_within_a_power_of_two():
    """The half with most of them is cut first."""
    ages = {"integer 2^6": 3000}
    edges = table_of(ages, {str(age): 200 for age in range(64, 72)}, 16, 10.0)["bins"]
    assert {64, 65, 66, 67, 68, 69, 70, 71, 72} <= set(edges) and max(edges) == 127


def test_few_texts_among_other_values_mark_what_is_missing():
    """Up to three, where most are of one type; labels that cover the column stay labels."""
    sure = {"integer 2^14": 400, "integer 2^15": 900, "text": 300}
    table = table_of(sure, {"NA": 200, "x": 90, "20000": 60}, 8, 10.0)
    assert table["type"] == "integer" and table["null_values"] == ["NA", "x"]
    assert table_of({**sure, "text": 1400}, {"NA": 1390}, 8, 10.0) == {"labels": ["NA"]}  # most are texts
    more = {**sure, "text": 500}  # of which a fifth is not known
    assert table_of(more, {"NA": 100, "20000": 60}, 8, 10.0) == {"labels": ["NA", "20000"]}
    assert table_of(sure, {"NA": 300, "20000": 400, "40000": 880}, 8, 10.0) == {"labels": ["40000", "20000", "NA"]}
    days = table_of({"date 2015": 900, "text": 300}, {"open": 290}, 32, 10.0)
    assert days["type"] == "date" and days["null_values"] == ["open"]
    clock = table_of({"time": 900, "text": 300}, {"?": 290}, 32, 10.0)
    assert clock == {"type": "time", "bins": 24, "null_values": ["?"]}
    assert [table_of({"minute": many}, {}, 64, 10.0)["bins"] for many in (1900, 1930)] == [24, 48]
    codes = {"integer 2^7": 300, "number.1 2^7": 500, "code": 50}
    assert table_of(codes, {"250.6": 500, "V58": 45, "250": 190}, 8, 10.0)["labels"] == ["250.6", "250", "V58"]
    assert table_of(codes, {"250.6": 500, "V58": 45}, 8, 10.0)["type"] == "number"
    declared = Attribute.from_dict("a", {"private": True, "null_values": ["", "n/a"]})
    assert declared.with_released(sure, {"NA": 290}, 10.0).null_values == ("", "n/a", "NA")


def test_remarks_and_several_marks_among_values_are_missing():
    """A tenth of free texts, or four marks of some per cent each; codes such as 12A beside 12 stay labels."""
    rng = np.random.default_rng(3)
    chance, count = rng.random(6000), 6000
    heat, age = [f"{one:.1f}" for one in rng.normal(12, 5, count)], [str(one) for one in rng.integers(18, 90, count)]
    days = [str(date(2020, 1, 1) + timedelta(days=int(at))) for at in rng.integers(0, 900, count)]

    def among(values, parts):
        ends = np.cumsum([share for _, share in parts])
        texts = [*(text for text, _ in parts), None]
        picked = [texts[at] for at in np.searchsorted(ends, chance, side="right")]
        return [
            value if text is None else text.format(at)
            for at, (value, text) in enumerate(zip(values, picked, strict=True))
        ]

    columns = {
        "free": among(heat, [("see note {}", 0.11)]), "ages": among(age, [("about {} or so", 0.1)]),
        "days": among(days, [("asked on day {}", 0.1)]),
        "marks": among(heat, [("-", 0.06), ("unknown", 0.05), ("refused", 0.04), ("?", 0.05)]),
        "words": among(["0", "1"] * 3000, [("yes", 0.3), ("no", 0.3)]), "most": among(heat, [("note {}", 0.3)]),
        "codes": [f"{one}{'A' if one > 90 else ''}" for one in rng.integers(1, 101, count)],
    }  # fmt: skip
    for seed in range(2):
        found = search(columns, seed)
        kinds = {name: one.values.kind for name, one in found.items()}
        assert kinds == {
            "free": "number", "ages": "integer", "days": "date", "marks": "number", "words": "text", "most": "text",
            "codes": "text",
        }  # fmt: skip
        assert {"-", "unknown", "refused", "?"} <= set(found["marks"].null_values)
        assert found["free"].code(b"see note 9") == found["free"].null
        assert set(found["words"].labels) >= {"0", "1", "yes", "no"} and not found["codes"].edges


def test_marks_that_nobody_has_are_not_said():
    """Another mark is no likelier where one occurs, and noise of 4 standard deviations is none."""
    sure = {"integer 2^14": 400, "integer 2^15": 900, "text": 20, "word": 200}
    for noise in ({"not known": 30}, {"n/a": 40}, {"Yes": 40, "high": 38}):
        assert table_of(sure, {"unknown": 200, **noise}, 32, 10.0)["null_values"] == ["unknown"]
    labels = table_of({"text": 900, "word": 200}, {"cook": 900, "unknown": 200, "not known": 30}, 32, 10.0)["labels"]
    assert labels == ["cook", "unknown"]


def test_types_by_example():
    """Decimals, decimal commas, zeros, codes far apart, times."""
    prices = OPEN.with_released({"number,2 2^9": 700, "number,1 2^10": 200, "integer zero": 100}, {}, 10.0)
    assert (prices.values.kind, prices.values.decimals, prices.matching.decimal) == ("number", (0, 1, 2), ",")
    assert [prices.code(text) for text in (b"0", b"512,00", b"-3")] == [0, 2, 0]
    codes = OPEN.with_released({"integer 2^0": 500, "integer 2^6": 100}, {"1": 500, "99": 100}, 10.0)
    assert codes.labels == ("1", "99", "other", "missing") and codes.code(b"01") == 0
    small = OPEN.with_released(
        {"integer zero": 500, "integer 2^0": 300, "integer 2^1": 100}, {"0": 500, "1": 300, "2": 90}, 10.0
    )
    assert small.labels[:4] == ("up to 0", "1", "2", "3+")
    assert OPEN.with_released({"time": 900}, {}, 10.0).values.kind == "time"
    assert OPEN.with_released({"datetime 2015": 900}, {}, 10.0).values.kind == "datetime"


def test_zeros_draw_no_other_numbers_to_them():
    """Beside many zeros a wide bin is even: their density, as of a single value, is none. Where ones follow it is."""
    for other in ("number.3 2^-3", "integer 2^9"):
        column = OPEN.with_released({"integer zero": 900, other: 300}, {}, 10.0)
        assert column.values.shape == "uniform" and wide_bins(column) == {}
    counts = {"integer zero": 900, "integer 2^0": 300, "integer 2^1": 200, "integer 2^8": 100}
    assert OPEN.with_released(counts, {}, 10.0).values.shape == "fitted"


def test_labels_are_searched_where_they_are_of_use():
    """Of texts, and cells of numbers and dates: of small whole numbers among texts the labels."""
    assert has_labels({"text": 100, "integer 2^3": 900}, 10.0) and not has_labels({"integer 2^2": 900}, 10.0)
    assert not has_labels({"date 2015": 900}, 10.0) and not has_labels({}, 10.0) and not has_labels({"text": 49}, 10.0)
    assert cells_to_count({"text": 100, "integer 2^3": 900}, 10.0) == cells_to_count({"text": 900}, 10.0) == ()
    large = {"text": 100, "integer 2^3": 900, "integer 2^7": 80, "number.1 2^8": 40, "integer zero": 20}
    assert cells_to_count(large, 10.0) == (
        *(f"2^3 {cell}" for cell in range(64)), *(f"2^7 {cell}" for cell in range(128)), "zero",
    )  # fmt: skip
    assert cells_to_count({"date 2015": 900}, 10.0)[:2] == ("2015-01", "2015-02")


def test_a_table_of_any_type_is_read_and_written():
    """`private = true` stands alone; other settings of texts go with it."""
    plain = {"private": True, "keep": 9, "missing": "none", "null_values": ["?"], "case": False}
    attribute = Attribute.from_dict("x", plain)
    assert attribute.size == 11 and Attribute.from_dict("x", attribute.to_dict()) == attribute
    found = attribute.with_released({"text": 900}, {"yes": 500, "no": 400}, 10.0)
    assert found.labels == ("yes", "no", "other", "none") and found.code(b" YES ") == 0 and found.code(b"?") == 3
    for wrong in ({"private": True, "type": "integer"}, {"private": False}, {"keep": 9}, {"private": True, "keep": 3}):
        with pytest.raises(DomainError):
            Attribute.from_dict("x", wrong)


@given(st.floats(1e-4, 1e9), st.floats(1e-4, 1e9))
def test_wide_ranges_of_numbers_keep_their_order(one, other):
    """Two numbers far apart are in different bins, the smaller one first."""
    texts = [f"{value:.6f}".encode() for value in sorted((one, other))]
    found = OPEN.with_released({shape_of(text): 100 for text in texts}, {}, 10.0)
    codes = [found.code(text) for text in texts]
    assert codes == sorted(codes) and found.unknown not in codes
    if other > 4 * one or one > 4 * other:
        assert codes[0] < codes[1]
    assert math.isfinite(found.edges[0]) and found.cap


def test_codes_and_calendar_years_have_cells_of_their_own():
    """Codes up to 1,023 and years from 1900 have a bin each where they stand out; years that nobody has are no bins."""
    codes = {f"2^{power} {cell}": 0 for power, count in ((7, 128), (8, 256), (9, 512)) for cell in range(count)}
    codes |= {cell_of(code): 3000 for code in (b"250", b"401", b"428", b"999")}
    found = OPEN.with_released(
        {f"integer 2^{power}": count for power, count in ((7, 3000), (8, 6000), (9, 3000))}, {}, 20.0, codes
    )
    assert len({found.code(b"%d" % code) for code in (249, 250, 251, 400, 401, 402, 427, 428, 429, 999)}) >= 8
    assert found.code(b"250") != found.code(b"251") and found.code(b"401") != found.code(b"402")
    years = {f"2^10 {cell}": 0 for cell in range(203)} | {cell_of(b"%d" % year): 2000 for year in range(2015, 2024)}
    edges = table_of({"integer 2^10": 18_000}, {}, 64, 20.0, years)["bins"]
    assert {*range(2015, 2024)} <= set(edges) and edges[0] >= 1984 and edges[-1] <= 2031


def test_years_before_1900_need_persons():
    """Noise of 55 wide cells makes no bins of years before 1900; persons do, and so does a column of other numbers."""
    noisy = {f"2^10 {cell}": 60 if cell < 55 and cell % 2 else -40 if cell < 55 else 100 for cell in range(203)}
    assert table_of({"integer 2^10": 14_000}, {}, 64, 20.0, noisy, None, 100.0)["bins"][0] >= 1856
    early = noisy | {f"2^10 {cell}": 100 for cell in range(55)}
    assert table_of({"integer 2^10": 20_000}, {}, 64, 20.0, early, None, 100.0)["bins"][0] == 1024
    money = {"integer 2^10": 14_000, "integer 2^11": 6000}
    assert table_of(money, {}, 64, 20.0, noisy, None, 100.0)["bins"][0] == 1024


def test_years_before_1900_occur_as_far_back_as_persons_do():
    """Of the years of building, from 1856 on, a fifth was in one bin, as 50 earlier cells without persons hid them."""
    noisy = {f"2^10 {cell}": 60 if cell % 2 else -60 for cell in range(52)}
    built = noisy | {f"2^10 {cell}": 130 if cell < 55 else 14 for cell in range(52, 203)}
    edges = table_of({"integer 2^10": 2462}, {}, 64, 20.0, built, None, 100.0)["bins"]
    assert edges[0] in range(1840, 1857) and sum(edge < 1900 for edge in edges) >= 4


def test_signs_of_thousands_are_no_decimal_signs():
    """Three digits after each comma, unless others show decimals; after a point only beside smaller whole numbers."""
    money = {"integer 2^8": 400, "integer 2^9": 900, "grouped.0 2^10": 1000, "grouped.0 2^12": 4000}
    found = OPEN.with_released({**money, "number,3 -2^-4": 16}, {}, 10.0)
    assert found.values.kind == "integer" and found.matching.thousands == ","
    assert found.edges[0] == 0 and found.edges[-1] == 8191
    assert found.code(b"4,371") == found.code(b"4371") > found.code(b"999") > found.code(b"250")
    assert table_of({"grouped.0 2^10": 1000, "grouped.0 2^12": 4000}, {}, 32, 10.0)["thousands"] == ","
    for other in ("number,1 2^3", "number,2 2^0", "number,3 2^-2", "number,3 zero"):
        table = table_of({**money, other: 900}, {}, 32, 10.0)
        assert table["type"] == "number" and "thousands" not in table and table["decimal"] == ","
    points = {"integer 2^8": 900, "number.3 2^2": 900}
    one = OPEN.with_released(points, {}, 10.0)
    assert one.code(b"4.371") == one.code(b"4371") and one.matching.decimal == ","
    for other in ("number.1 2^3", "number.2 2^0", "number.3 2^-2", "number.3 zero"):
        assert "thousands" not in table_of({**points, other: 900}, {}, 32, 10.0)
    assert "thousands" not in table_of({"number.3 2^0": 1000, "number.3 2^2": 4000}, {}, 32, 10.0)
    OPEN.with_released({"text": 50, "integer -2^46": 50, "number.3 -2^46": 50}, {"a": 500, "1": 300}, 10.0)


@given(st.integers(1000, 999_999), st.sampled_from([1, -1]))
def test_three_digits_after_a_comma_are_read_by_the_other_numbers(number, sign):
    """Of thousands with their cells; as decimals in cells near their own, with all persons of these."""
    text = f"{sign * number:,}".encode()
    shapes, cells = {shape_of(text): 900}, {cell_of(text): 900}
    of_thousands = OPEN.with_released(shapes, {}, 10.0, cells)
    assert of_thousands.values.kind == "integer" and of_thousands.code(text) == of_thousands.code(
        text.replace(b",", b"")
    )
    assert of_thousands.unknown != of_thousands.code(text) and "," in written(of_thousands, text.decode())
    *_, moved, signs = read_thousands(shapes | {"number,1 2^0": 90}, shapes | {"number,1 2^0": 90}, cells)
    assert signs == {} and abs(sum(moved.values()) - 900) <= 3
    if number >= 1024:
        assert moved[cell_of(text.replace(b",", b"."))]
    decimal = OPEN.with_released(shapes | {"number,1 2^0": 90}, {}, 10.0, cells)
    assert (
        decimal.matching.decimal == ","
        and decimal.values.number(decimal.matching.numeral(text)) == sign * number / 1000
    )


def test_a_search_tells_thousands_from_decimals():
    rng = np.random.default_rng(6)
    pay, sizes = rng.lognormal(9.8, 0.5, 6000), rng.lognormal(1, 0.8, 6000)
    columns = {
        "pay": [f"{max(1001, round(one)):,}" for one in pay], "some": [f"{round(one / 8):,}" for one in pay],
        "trimmed": [f"{one:.3f}".rstrip("0").rstrip(".").replace(".", ",") for one in sizes],
        "below": [f"{one:.3f}".replace(".", ",") for one in sizes], "points": [f"{one:.3f}" for one in sizes + 1],
    }  # fmt: skip
    found = search(columns)
    kinds = {name: (one.values.kind, one.matching.thousands, one.matching.decimal) for name, one in found.items()}
    assert kinds["pay"] == kinds["some"] == ("integer", ",", ".")
    assert kinds["trimmed"] == kinds["below"] == ("number", None, ",") and kinds["points"] == ("number", None, ".")
    for name, one in found.items():
        assert one.unknown not in {one.code(text.encode()) for text in columns[name]}
        shares = np.bincount([one.code(text.encode()) for text in columns[name]], minlength=one.size) / 6000
        assert shares.max() < 0.1, name
    assert written(found["pay"], "17,100")[-4] == "," and written(found["trimmed"], "1,431")[:2] == "1,"


def test_grouped_digits_are_read_as_they_are_written():
    """Prices such as 1,431.33 beside 87.50 and 2,000; millions with points; each keeps its signs when it is written."""
    rng = np.random.default_rng(5)
    prices = [f"{x:,.2f}" if x % 5 > 1 else f"{x // 1:,.0f}" for x in rng.lognormal(6.5, 1.2, 20_000)]
    counts = Counter(shape_of(text.encode()) for text in prices)
    found = OPEN.with_released({shape: count for shape, count in counts.items() if count > 15}, {}, 10.0)
    assert found.values.kind == "number" and (found.matching.thousands, found.matching.decimal) == (",", ".")
    assert found.edges[-1] > 4000 and found.code(b"1,431.33") > found.code(b"87.50") > found.code(b"3.00")
    assert sum(found.code(text.encode()) != found.null for text in prices) == len(prices)
    large = OPEN.with_released({"grouped,0 2^20": 800, "grouped,0 2^21": 500, "number.3 2^8": 300}, {}, 10.0)
    assert large.values.kind == "integer" and large.edges[-1] == 2**22 - 1
    assert large.code(b"1.234.567") > large.code(b"412.000") != large.null
    for attribute, text in ((found, "1,431.33"), (large, "1.234.567")):
        code = np.array([attribute.code(text.encode())])
        decode = decoder(attribute, np.eye(attribute.size)[code[0]])
        (written,) = decode.texts(code, decode.places(code, np.array([0.5]))).to_pylist()
        assert attribute.code(written.encode()) == code[0] and attribute.matching.thousands in written


def test_noise_of_texts_is_no_other_text():
    """N is what is missing of incomes, although two standard deviations of the noise of shapes more are texts."""
    incomes = {"number.1 2^16": 82, "number.1 2^15": 69, "number.1 2^14": 44}
    for texts, kind in ((66, "number"), (75, "number"), (180, "labels")):
        table = table_of(incomes | {"text": texts}, {"N": 60, "0.0": 33, "na": 8}, 64, 10.0, None, 4.0)
        assert table.get("type", "labels") == kind and table.get("null_values") == (["N"] if kind == "number" else None)


def test_times_come_back_as_they_are_written():
    """Without seconds where no value has some; moments with a blank or a T, as most of them have it."""
    seconds, short = "datetime %Y-%m-%d %H:%M:%S 2020", "datetime %Y-%m-%d %H:%M 2020"
    zulu = "datetime %Y-%m-%dT%H:%M:%SZ 2020"
    for shapes, form in (
        ({seconds: 900, "date 2020": 40}, "%Y-%m-%d %H:%M:%S"), ({short: 900}, "%Y-%m-%d %H:%M"),
        ({"datetime 2020": 900, "date 2020": 60}, None), ({seconds: 900, "datetime 2020": 300}, None),
        ({seconds: 900, short: 300}, None), ({seconds: 900, "date 2020": 300}, None),
        ({zulu: 900}, "%Y-%m-%dT%H:%M:%SZ"), ({zulu: 900, "datetime 2020": 300}, None),
    ):  # fmt: skip
        found = OPEN.with_released(shapes, {}, 10.0)
        assert (found.values.kind, found.values.format) == ("datetime", form)
        text = "2021-03-05 07:45:30" if form is None else datetime(2021, 3, 5, 7, 45, 30).strftime(form)
        assert found.code(text.encode()) == found.labels.index("2021-03")
        assert form is None or written(found, text)[10:] == datetime(2021, 3, 1).strftime(form)[10:]
    assert cells_to_count({seconds: 900}, 10.0) == cells_to_count({"datetime 2020": 900}, 10.0) != ()
    minutes = OPEN.with_released({"minute": 900}, {}, 10.0)
    assert minutes.values.format == "%H:%M" and minutes.code(b"14:05") == 14
    both = OPEN.with_released({"minute": 900, "time": 300}, {}, 10.0)
    assert both.values.format is None and both.code(b"14:05") == both.code(b"14:05:30") == 14
    assert has_labels({"minute": 900}, 10.0) is False and cells_to_count({"minute": 900}, 10.0) == ()


def test_values_of_no_one_type_have_labels():
    """Dates of unknown order, and dates in two forms: labels are searched, as no type serves."""
    for shapes in ({"date ?/?/%Y 2020": 900}, {"date 2015": 500, "date %d.%m.%Y 2015": 500}):
        assert has_labels(shapes, 10.0) and table_of(shapes, {"01/02/2020": 400}, 32, 10.0) == {
            "labels": ["01/02/2020"]
        }


def test_cells_say_where_persons_are():
    """Bins have about as many persons each; few values have bins of their own; noise cuts nothing."""
    normal = {f"2^12 {cell}": 1000 if 20 <= cell < 36 else 0 for cell in range(64)}
    edges = table_of({"integer 2^12": 16_000}, {}, 24, 10.0, normal)["bins"]
    assert {*range(5376, 6400, 64)} <= {*edges} <= {4608, 5120, *range(5376, 6401, 64), 6399, 6655}
    few = {f"2^12 {cell}": {31: 5000, 40: 3000}.get(cell, 3) for cell in range(64)}  # 6080, 6656
    edges = table_of({"integer 2^12": 8200}, {}, 64, 10.0, few)["bins"]
    assert {6080, 6144, 6656, 6720} <= set(edges) and len(edges) < 40
    flat = _smooth({(at, at + 1): float(9 * (-1) ** at) for at in range(64)}, 640.0, 10.0)
    assert set(flat.values()) == {10.0}


@given(st.lists(st.integers(-50, 900), min_size=1, max_size=64), st.integers(0, 3000))
def test_smoothed_counts_have_the_sum_of_their_place(counts, total):
    """Unless peaks alone have more."""
    masses = _smooth({(at, at + 1): float(count) for at, count in enumerate(counts)}, float(total), 30.0)
    peaks = sum(count for count in counts if count > 120)
    assert min(masses.values()) >= 0 and len(masses) == len(counts)
    assert sum(masses.values()) == pytest.approx(
        peaks if len(counts) == sum(c > 120 for c in counts) else max(total, peaks)
    )


def test_months_say_where_dates_are():
    """Years, halves, quarters and months are cut where persons are; the last edge is the last day."""
    cells = {f"{year}-{month:02d}": 300 * (year == 2017) for year in range(2015, 2020) for month in range(1, 13)}
    table = table_of({"date 2015": 3600}, {}, 32, 10.0, cells)
    months = [f"2017-{month:02d}-01" for month in range(1, 13)]
    assert table["bins"] == ["2015-01-01", *months, "2018-01-01", "2019-12-31"]
    found = OPEN.with_released({"date %d.%m.%Y 2015": 3600}, {}, 10.0, cells)
    assert found.code(b"31.01.2017") + 1 == found.code(b"01.02.2017") and found.code(b"03.02.2011") == 0


@pytest.mark.parametrize(
    ("months", "keep", "first"),
    [
        (["02"], 64, [f"2016-02-{day:02d}" for day in range(1, 30)]),
        (["01", "02"], 64, [*(f"2016-01-{day:02d}" for day in range(1, 32)), "2016-02-01"]),
        (["02"], 16, ["2016-02-01", "2016-02-11", "2016-02-21"]),
        (["03", "04", "05"], 64, ["2016-03-01", "2016-03-11", "2016-03-21", "2016-04-01"]),
        ([f"{month:02d}" for month in range(1, 10)], 64, [f"2016-{month:02d}-01" for month in range(1, 10)]),
    ],
)
def test_days_of_a_few_months_are_told_apart(months, keep, first):
    """All months that have persons are cut alike; a ride or a stay in a month was anywhere in it."""
    table = table_of({"datetime 2015": 900 * len(months)}, {}, keep, 10.0, {f"2016-{month}": 900 for month in months})
    edges = table["bins"]
    at = edges.index(first[0])
    assert edges[at : at + len(first)] == first and edges == sorted(set(edges)) and len(edges) <= keep + 1


@given(st.dictionaries(st.sampled_from(MONTHS), st.integers(1, 9000), max_size=9), st.integers(8, 64))
def test_days_are_in_order_and_few_enough(cells, keep):
    """Of any months: no more bins than may be, and each begins with a day that there is."""
    years = Counter({"date 2015": 500})
    for cell, count in cells.items():
        years[f"date {place_of_cell(cell)}"] += count
    edges = table_of(years, {}, keep, 5.0, cells)["bins"]
    assert edges == sorted(set(edges)) and len(edges) <= keep + 1
    assert all(str(date.fromisoformat(day)) == day for day in edges)


def test_dates_are_widened_as_numbers_are():
    """By one and a half standard deviations for the next five years, and more for each between."""
    sure = {"date 2005": 500, "date 2010": 500}
    ends = {count: table_of({**sure, "date 2015": count}, {}, 8, 10.0)["bins"][-1] for count in (14, 15)}
    assert ends == {14: "2014-12-31", 15: "2019-12-31"}
    starts = {count: table_of({**sure, "date 1995": count}, {}, 8, 10.0)["bins"][0] for count in (20, 21)}
    assert starts == {20: "2005-01-01", 21: "1995-01-01"}


def test_few_bins_of_dates_span_all_of_them():
    """More lots of five years than bins: the rarest neighbours are one bin."""
    years = {f"date {year}": 900 if year == 1950 else 90 for year in range(1900, 2000, 5)}
    cells = {f"{year}-{month:02d}": 2 for year in range(1900, 2000) for month in range(1, 13)}
    edges = table_of(years, {}, 8, 10.0, cells)["bins"]
    assert len(edges) == 9 and (edges[0], edges[-1]) == ("1900-01-01", "1999-12-31")
    assert "1950-01-01" in edges and "1955-01-01" in edges


def test_noise_beyond_a_range_that_thins_out_does_not_widen_it():
    """Ages end below 96, so noise of 1.6 standard deviations is nobody of 128 or more; pay is as likely to go on.

    Nor does it widen calendar years. Persons of three standard deviations do.
    """
    ages = {"integer 2^4": 900, "integer 2^5": 1800, "integer 2^6": 700}
    thin = {f"2^6 {cell}": 22 * (cell < 32) for cell in range(64)}
    thick = {f"2^6 {cell}": 15 - cell // 8 for cell in range(64)}
    young, old = {f"2^5 {cell}": 28 for cell in range(64)}, {f"2^6 {cell}": 22 * (cell >= 32) for cell in range(64)}
    for cells, beyond, last in ((thin, 16, 95), (thick, 16, 255), (thin, 31, 255), (thick, 14, 127), (None, 16, 255)):
        table = table_of(ages | {"integer 2^7": beyond}, {}, 32, 10.0, cells, 3.0, 3.0)
        assert table["bins"][-1] == pytest.approx(last, abs=0.5), (last, table)
    for cells, below, first in ((young | old, 16, 96), (young | thin, 16, 32)):
        table = table_of({"integer 2^5": below, "integer 2^6": 700}, {}, 32, 10.0, cells, 1.5, 1.5)
        assert table["bins"][0] == first, table
    years = {f"2^10 {cell}": 20 * (cell > 120) for cell in range(176)}
    for beyond, wide in ((16, False), (31, True)):
        table = table_of({"integer 2^10": 1000, "integer 2^11": beyond}, {}, 32, 10.0, years, 3.0, 3.0)
        assert (table["bins"][-1] == 4095) is wide


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_fewer_decimals_that_many_have_has_a_bin_of_its_own(sign):
    """10.3 beside 1.25 came back as 10.25 to 10.3, as its cell has several numbers of two decimals."""
    values = {f"{sign}1.25": 4000, f"{sign}3.4": 300, f"{sign}10.3": 200}
    cells = {cell: 0 for place in ("2^0", "2^1", "2^3") for cell in cells_of_place(f"{sign}{place}")}
    cells |= {cell_of(value.encode()): count for value, count in values.items()}
    shapes = {shape_of(value.encode()): count for value, count in values.items()}
    found = OPEN.with_released(shapes, {}, 10.0, cells)
    ends = {(round(100 * low), round(100 * high)) for low, high in pairwise(found.edges)}
    assert {(round(100 * float(value)), round(100 * float(value)) + 1) for value in values} <= ends


@pytest.mark.parametrize(
    ("form", "numbers"),
    [
        (str, (7.25, 13.0, 26.55, 7.8958)), (str, (3500, 10_000, 25_000)), ("{:,}".format, (1500, 25_000, 120_000)),
        (lambda x: f"${x:,.2f}", (1500.5, 12.25, 88.0, 2999.99)), (lambda x: f"{x}%", (12.5, 33.3, 7.75)),
        (lambda x: f"({-x:,.2f})" if x < 0 else f"{x:,.2f}", (-1500.5, 12.25, -88.0, 2999.99)),
        (lambda x: f"{x:.2f} €".replace(".", ","), (12.5, 33.3, 7.75)), (str, (-12.375, -3.5, 0.0, 4.625)),
    ],
)  # fmt: skip
def test_numbers_that_many_have_come_back_as_they_are_written(form, numbers):
    """Fares, loans, amounts: near ones came back, such as 7.7739. A third of the records have any number."""
    rng = np.random.default_rng(8)
    drawn = np.where(rng.random(9000) < 0.67, rng.choice(numbers, 9000), rng.permutation(9000) / 90 + 3)
    texts = [form(number if number in numbers else round(number, 2)) for number in drawn.tolist()]
    if not any(number % 1 for number in numbers):
        texts = [form(int(number)) for number in drawn.tolist()]
    found = search({"x": texts, "age": [str(at % 90) for at in range(9000)]})["x"]
    for number in numbers:
        assert written(found, form(number), 0.7) == form(number)


@pytest.mark.parametrize("sides", [("",), ("-",), ("", "-")])
@pytest.mark.parametrize("kind", ["number.2", "number.4"])
def test_the_bin_of_zeros_among_decimals_is_called_zero(kind, sides):
    """It was called "below 1e-07", by the end of the bin."""
    shapes = {f"{kind} {side}2^3": 3000 for side in sides} | {f"{kind} zero": 900, "integer zero": 500}
    found = OPEN.with_released(shapes, {}, 10.0)
    zero = {("",): "up to 0", ("-",): "0+"}.get(sides, "0")
    assert found.labels[found.code(b"0")] == found.labels[found.code(b"0.00")] == zero
    assert found.label_code(zero) == found.code(b"0") != found.code(f"{sides[0]}8.25".encode())
    assert Attribute.from_dict(found.name, found.to_dict()) == found


def test_numbers_with_few_decimals_have_bins_of_values_that_they_can_have():
    """Temperatures with one decimal lie between multiples of .1, and those that many persons have are told apart."""
    rng = np.random.default_rng(9)
    texts = [f"{value:.1f}" for value in rng.normal(36.9, 0.45, 4000)]
    cells = Counter(cell_of(text.encode()) for text in texts)
    noisy = {cell: cells[cell] + round(18 * rng.normal()) for cell in cells_of_place("2^5")}
    table = table_of({"number.1 2^5": 4010}, {}, 64, 20.0, noisy, 9.0, 18.0)
    assert table["decimals"] == 1 and all(round(10 * edge) == pytest.approx(10 * edge) for edge in table["bins"][:-1])
    assert {round(36.3 + at / 10, 1) for at in range(14)} <= {*table["bins"]}
    small = table_of({"number.2 zero": 200, "number.2 2^-7": 200, "number.2 2^-6": 300}, {}, 64, 10.0)
    assert small["bins"] == [0.0, 0.01, 0.02, 0.03, 0.035]
    money = table_of({"number.2 -2^3": 400, "number.2 zero": 900, "number.2 2^3": 500}, {}, 64, 10.0)
    assert money["bins"][0] == -15.99 and 0.0 in money["bins"] and 0.01 in money["bins"]
    mark = dict.fromkeys(cells_of_place("-2^7"), 0) | {"-2^7 72": 900}  # -200 beside .5512
    some = table_of({"number.4 2^-1": 9000, "integer -2^7": 900}, {}, 64, 10.0, mark)["bins"]
    assert any(low <= -200 < high <= -199.99 for low, high in pairwise(some))


@pytest.mark.parametrize(
    ("several", "decimals"),
    [
        ({"number.1 2^3": 900}, 1), ({"number.1 2^3": 900, "integer 2^9": 60}, [0, 1]),
        ({"number,1 2^3": 2900, "integer -2^3": 60}, 1), ({"number.2 2^3": 900, "integer 2^3": 60}, [0, 2]),
        ({"number.2 2^3": 900, "number.1 2^3": 90, "integer 2^3": 60}, [0, 1, 2]),
        ({"number.2 2^3": 90, "number.1 2^3": 900, "integer 2^3": 900}, [0, 1, 2]),
        ({"$0 number.2 2^3": 900, "$0 integer 2^3": 600}, [0, 2]), ({"number.3 2^3": 900, "integer 2^3": 600}, None),
    ],
)  # fmt: skip
def test_numbers_have_as_few_decimals_as_are_common(several, decimals):
    """At least a quarter as common as where zeros at the end are not written."""
    assert table_of(several, {}, 32, 10.0).get("decimals") == decimals


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=9), st.sampled_from([[0, 1], [0, 2], [0, 1, 2]]))
def test_numbers_come_back_with_the_decimals_that_they_have(numbers, decimals):
    """The fewest of those listed; by `text`, as a column, and in the domain of their shapes."""
    texts = []
    for number in numbers:
        full = f"{number / 10 ** decimals[-1]:.{decimals[-1]}f}"
        cut = [f"{number / 10 ** decimals[-1]:.{one}f}" for one in decimals]
        texts.append(next(text for text in cut if Fraction(text) == Fraction(full)))
    values = Values(kind="number", decimals=decimals)
    assert [values.text(float(text)) for text in texts] == texts
    ends = [float(one) for one in sorted({*map(float, texts), 10.0**7})]
    table = {"type": "number", "decimals": decimals, "bins": ends, "cap": True}
    attribute = Attribute.from_dict("x", table)
    assert attribute.to_dict() == table
    assert [written(attribute, text) for text in texts if float(text) < 10**7] == texts
    found = OPEN.with_released(Counter(shape_of(text.encode()) for text in texts for _ in range(100)), {}, 5.0)
    assert all(found.code(text.encode()) != found.unknown for text in texts)


@pytest.mark.parametrize("code", [-9, -99, 999])
def test_codes_far_from_other_numbers_occur(code):
    """From 5 standard deviations on, as those next to others; larger numbers are likelier noise."""
    heat = {"number.1 2^5": 5000, shape_of(b"%d" % code): 55}
    found = OPEN.with_released(heat, {}, 10.0)
    assert found.edges[0] <= code <= found.edges[-1]
    assert table_of({"number.1 2^5": 5000, "integer 2^10": 55}, {}, 32, 10.0)["bins"][-1] < 64


def test_a_search_writes_whole_numbers_among_decimals_as_whole():
    rng = np.random.default_rng(4)
    heat = rng.normal(36.9, 0.5, 6000)
    columns = {
        "fixed": [f"{one:.1f}" for one in heat], "short": [f"{one:.1f}".removesuffix(".0") for one in heat],
        "codes": ["999" if at % 18 == 0 else "-9" if at % 19 == 0 else f"{one:.1f}" for at, one in enumerate(heat)],
    }  # fmt: skip
    found = search(columns)
    decimals = {name: one.values.decimals for name, one in found.items()}
    assert decimals == {"fixed": 1, "short": (0, 1), "codes": (0, 1)}
    codes = [found["codes"].code(text.encode()) for text in ("998.9", "999", "-9", "-8.9")]
    assert len({*codes}) == 4
    assert written(found["codes"], "999") == "999" and written(found["codes"], "36.9") == "36.9"
    assert "." not in written(found["short"], "37") and written(found["fixed"], "37.0")[-2] == "."


def test_codes_far_from_other_values_leave_them_their_bins():
    """A code in 2 % of the rows is the last or the first bin; of ages and incomes as of numbers with decimals."""
    rng = np.random.default_rng(11)
    values = {
        "heat": [f"{one:.1f}" for one in rng.normal(12, 5, 6000)],
        "age": [str(one) for one in rng.integers(18, 90, 6000)],
        "pay": [str(round(one)) for one in rng.lognormal(10, 0.6, 6000)],
    }  # fmt: skip
    plain = search(values)
    for code, text in ((999, b"999"), (-9, b"-9"), (-99, b"-99")):
        coded = {name: [str(code) if at % 50 == 0 else x for at, x in enumerate(one)] for name, one in values.items()}
        del coded["pay" if code > 0 else "heat"]
        for name, found in search(coded, 2).items():
            edges, unit = found.edges, 0.1 if name == "heat" else 1
            ends = edges[-3:] if code > 0 else edges[:3]
            assert ends[0] < code == ends[1] if code > 0 else ends[:2] == (code, pytest.approx(code + unit)), name
            others = edges[:-2] if code > 0 else edges[2:]
            # Noise widens a range by two powers of two.
            assert others[-1] - others[0] <= 4.1 * (plain[name].edges[-1] - plain[name].edges[0]), name
            assert len(others) > 0.75 * len(plain[name].edges), name
            assert float(written(found, text.decode())) == code and found.code(text) != found.code(b"25")
    coded = {"number.0 2^10": 2000, "number.0 2^13": 4000}
    zero = dict.fromkeys((*cells_of_place("2^10"), *cells_of_place("2^13")), 0)
    years = table_of(coded, {}, 32, 10.0, zero | {cell_of(b"2004"): 1990, cell_of(b"9999"): 4010})
    assert years["bins"][-2:] == [9999, 9999.5] and years["format"] == "%d.0"
    temper = {"number.1 2^4": 5000, "integer 2^9": 40}
    cells = dict.fromkeys(cells_of_place("2^9"), 0) | {cell_of(b"999"): 42}
    assert table_of(temper, {}, 32, 10.0, cells)["bins"][-3:] == [32.0, 999, 999.05]
    spread = dict.fromkeys(cells, 1)  # no code, so a range
    assert table_of(temper, {}, 32, 10.0, spread)["bins"][-1] == 1023.9
    assert table_of(temper | {"integer 2^9": 30}, {}, 32, 10.0, cells)["bins"][-1] == 31.9
    beyond = table_of(
        {"integer 2^5": 5000, "integer 2^8": 900, "integer 2^9": 300}, {}, 32, 10.0, cells | {"2^9 487": 300}
    )
    assert 512 in beyond["bins"]  # next to others, as any number


@given(st.lists(st.integers(1, 99_999), min_size=1, max_size=20), st.integers(2, 5))
def test_codes_with_zeros_before_them_come_back_with_them(numbers, digits):
    """Whatever codes of one length are found of a column, each has a bin and is written with as many digits."""
    texts = [f"{number % 10**digits:0{digits}d}" for number in [*numbers, 1, 10 ** (digits - 1), 10**digits - 1]]
    shapes = Counter(shape_of(text.encode()) for text in texts for _ in range(100))
    found = OPEN.with_released(shapes, {}, 5.0)
    assert found.values.format == f"%0{digits}d" and found.edges[-1] < 10**digits
    assert all(found.code(text.encode()) != found.unknown for text in texts)
    assert {len(written(found, text)) for text in texts} == {digits}
    assert Attribute.from_dict("x", found.to_dict()) == found


def test_a_search_keeps_zeros_before_codes():
    """As labels where these cover the column, else as whole numbers of as many digits; ages stay numbers."""
    rng = np.random.default_rng(9)
    codes = {
        "few": [f"{one:05d}" for one in rng.choice([2139, 10001, 30301, 60601, 94110], 6000)],
        "many": [f"{one:05d}" for one in rng.integers(500, 99_999, 6000)],
        "month": [f"{one:02d}" for one in rng.integers(1, 13, 6000)],
        "bare": [str(one) for one in rng.integers(10_000, 99_999, 6000)],
        "age": ["07" if at % 20 == 0 else str(one) for at, one in enumerate(rng.integers(0, 130, 6000))],
    }  # fmt: skip
    for seed in range(2):
        found = search(codes, seed)
        assert set(found["few"].labels) >= {*codes["few"]}
        assert {*found["month"].labels} == {*codes["month"], "other", "missing"}  # no 1 and 9 beside 01 and 09
        formats = {name: one.values.format for name, one in found.items()}
        assert formats == {"few": None, "many": "%05d", "month": None, "bare": None, "age": None}
        many = found["many"]
        assert 98_000 < many.edges[-1] <= 99_999 and many.null_values == OPEN.null_values and len(many.edges) > 30
        assert len({many.code(text) for text in (b"00600", b"02139", b"09999", b"11001", b"94110")}) == 5
        assert written(many, "02139")[0] == "0" and len(written(many, "94110")) == 5
        assert found["age"].code(b"07") == found["age"].code(b"7") != found["age"].null
    few = table_of({"padded": 2560, "integer 2^4": 853, "integer 2^5": 965}, {}, 8, 10.0)
    assert few["bins"][0] == 0 and len(few["bins"]) == 9
    marks = table_of({"integer 2^13": 4000, "integer 2^15": 3000, "padded": 900}, {"02139": 600}, 32, 10.0)
    assert "null_values" not in marks and marks["format"] == "%05d"
    assert has_labels({"padded": 900}, 10.0) and cells_to_count({"padded": 900}, 10.0) == ()


def test_noise_of_several_kinds_widens_no_range():
    """Whole numbers and decimals have noise each, so together they need more."""
    both = {"integer 2^4": 900, "number.1 2^4": 900}
    assert table_of({**both, "integer 2^20": 24, "number.1 2^20": 24}, {}, 32, 10.0)["bins"][-1] == 31.9
    assert table_of({**both, "integer 2^20": 48}, {}, 32, 10.0)["bins"][-1] < 32
    assert table_of({**both, "integer 2^20": 53}, {}, 32, 10.0)["bins"][-1] == 2**21 - 0.1
    seen = {"integer zero": 16715, "integer 2^0": 2411, "number.3 2^-3": 648, "number.3 2^-6": 192}
    noise = {"integer -2^46": 124, "number.3 -2^46": 88}  # drawn once: a range began at -1.2e14
    assert table_of({**seen, **noise}, {}, 64, 32.1)["bins"][0] == 0


def test_noise_beside_what_clearly_occurs_changes_no_type_and_no_range():
    """A shape or a row of five standard deviations, of another kind or far away, which one column in 500 has."""
    ages = {"integer 2^4": 900, "integer 2^5": 1800, "integer 2^6": 700}
    plain = table_of(ages, {}, 32, 10.0)
    row = {f"grouped.1 -2^{power}": 30 for power in (20, 21, 22)}
    same = {f"integer 2^{power}": 30 for power in (30, 31, 32)}
    days = {f"datetime %m/%d/%Y %I:%M %p {year}": 30 for year in (1930, 1935, 1940)}
    for noise in (row, same, days, {"number.2 -2^30": 55}, {"integer -2^44": 44}, {"date %d.%m.%Y 1930": 60}):
        assert table_of(ages | noise, {}, 32, 10.0) == plain, noise
    rare = {"datetime %m/%d/%Y %I:%M %p 2015": 59, "$0 integer 2^5": 59}
    assert table_of({"integer 2^5": 90, **rare}, {}, 32, 10.0) == table_of({"integer 2^5": 90}, {}, 32, 10.0)
    # As many as others, of another kind: two columns in 1,600 of a table whose shapes have 180 persons each.
    few = {"integer zero": 179, "integer 2^0": 185, "integer 2^1": 177}
    row = {"grouped,3 2^37": 24, "grouped,3 2^38": 25, "grouped,3 2^39": 19, "grouped,3 2^40": 22}
    dates = {f"datetime {year}": 19 for year in range(1985, 2020, 5)}
    for noise in (row, dates, {"number.2 2^34": 60}):
        assert table_of(few | noise, {}, 32, 10.0) == table_of(few, {}, 32, 10.0), noise
    # Persons in number, or that are as many as others, do.
    assert table_of(ages | {"number.2 2^5": 80}, {}, 32, 10.0)["type"] == "number"
    assert table_of({"integer 2^4": 90, "number.1 2^5": 55}, {}, 32, 10.0)["type"] == "number"
    assert table_of({"integer 2^4": 90, "integer 2^9": 55}, {}, 32, 10.0)["bins"][-1] == 1023
    assert table_of(ages | {"integer 2^9": 80}, {}, 32, 10.0)["bins"][-1] == 1023


def test_texts_by_noise_change_no_type():
    """Of 500 persons one in five is a text, as noise has it: two standard deviations more than a seventh."""
    mostly = {"integer 2^14": 150, "integer 2^15": 240, "integer 2^16": 60, "text": 52}
    assert table_of(mostly, {}, 32, 10.0)["type"] == "integer"
    assert table_of(mostly | {"text": 110}, {}, 32, 10.0)["type"] == "integer"
    assert "labels" in table_of(mostly | {"text": 140}, {}, 32, 10.0)
    assert "labels" in table_of({shape: 10 * count for shape, count in mostly.items()} | {"text": 1100}, {}, 32, 10.0)


def test_an_end_goes_where_cells_show_that_it_is_empty():
    """Of 6,300 heights none is below 160 by these cells, which shows it where their noise is little."""
    heights = {f"2^7 {cell}": 0 for cell in range(128)} | {f"2^7 {at}": 450 for at in range(32, 46)}
    start = {}
    for fine, low in ((15.0, 0), (200.0, -60)):
        cells = {cell: count + low * (int(cell.split()[1]) < 32) for cell, count in heights.items()}
        start[fine] = table_of({"integer 2^7": 6300}, {}, 32, 20.0, cells, fine, fine)["bins"][0]
    assert start == {15.0: 160, 200.0: 128}


def test_a_row_of_places_occurs_beside_a_commoner_place():
    """Amounts of which many are 0: neither of two places occurs by itself, and they are as sure together."""
    bills = {"number.2 zero": 66, "number.2 2^6": 44, "number.2 2^7": 40, "number.2 -2^22": 27}
    assert table_of(bills, {}, 64, 10.0)["bins"][-1] == 255.99
    assert table_of(bills | {"number.2 2^7": 24}, {}, 64, 10.0)["bins"][-1] < 1


def test_several_places_in_a_row_occur_together():
    """No place of a few records certainly has anybody; three do together, and two, or three far apart, do not."""
    births = {f"date {year}": 30 for year in range(1930, 2010, 5)}
    first = table_of(births | {"number.2 2^3": 20}, {}, 32, 10.0)
    assert first["type"] == "date" and first["bins"][0] == "1930-01-01" and first["bins"][-1] == "2009-12-31"
    codes = {"integer zero": 30, "integer 2^0": 30, "integer 2^1": 30}
    assert table_of(codes, {}, 32, 10.0)["bins"] == [0, 1, 2, 3, 3.5]
    for few in ({"integer zero": 30, "integer 2^0": 30}, {"integer zero": 30, "integer 2^2": 30, "integer 2^4": 30}):
        assert table_of(few, {}, 32, 10.0) == {"labels": []} and cells_to_count(few, 10.0) == ()
    scattered = {"integer 2^1": 30, "number.1 2^1": 30, "date 1930": 30}
    assert table_of(scattered, {}, 32, 10.0) == {"labels": []}


def test_noise_seldom_looks_like_a_kind():
    """In 2,000 columns without persons; 1.25 in a thousand by simulation, so more than 12 in 3 of a million tests."""
    rng = np.random.default_rng(20261130)
    noise = 10.0 * rng.normal(size=(2000, len(SHAPES)))
    columns = [{SHAPES[at]: round(row[at]) for at in np.flatnonzero(row > 15)} for row in noise]
    found = sum(table_of(column, {}, 32, 10.0) != {"labels": []} for column in columns)
    assert found <= 12


def test_two_and_three_are_told_apart_where_nobody_was_found():
    """A range of small codes ends with 3, and 2 and 3 each have a bin; other places without persons are not cut."""
    assert table_of({"integer zero": 500, "integer 2^0": 400}, {}, 32, 10.0)["bins"] == [0, 1, 2, 3, 3.5]
    gap = {"integer zero": 500, "integer 2^0": 400, "integer 2^3": 400}
    assert [edge for edge in table_of(gap, {}, 32, 10.0)["bins"] if edge <= 8] == [0, 1, 2, 8]


def test_common_labels_need_less():
    """Less where a word of the group and the same case occurs; small codes come with those between."""
    many = {"text": 100, "word": 900}
    assert table_of(many, {"no": 850, "yes": 21, "Yes": 21, "y": 19, "male": 34}, 32, 10.0)["labels"] == ["no", "yes"]
    assert table_of(many, {"no": 850, "male": 36}, 32, 10.0)["labels"] == ["no", "male"]
    codes = table_of({"text": 300, "integer 2^1": 600}, {"NA": 290, "2": 300, "3": 300, "7": 40, "5": 16}, 32, 10.0)
    assert codes["labels"] == ["2", "3", "NA", "1", "5"]  # 7 has no shape, and twice 3 is less


def test_words_alone_need_no_threshold():
    """Yes and no have cells, not labels: where `no` occurs `yes` does, as written; others need noise to be below."""
    assert not has_labels({"word": 900}, 10.0) and has_labels({"word": 900, "text": 60}, 10.0)
    cells = cells_to_count({"word": 900}, 10.0)
    assert cells == cells_of_place("word") and "word No" in cells and "word 7" not in cells
    counts = dict.fromkeys(cells, 3)
    for words, labels in (
        ({"no": 850}, ["no", "yes"]), ({"No": 850, "Male": 34}, ["No", "Yes"]), ({"n": 850}, ["n", "y"]),
        ({"LOW": 50}, ["LOW", "HIGH", "MEDIUM"]), ({"unknown": 850, "x": 30}, ["unknown"]),
        ({"no": 850, "YES": 36}, ["no", "YES", "NO", "yes"]),
    ):  # fmt: skip
        found = table_of({"word": 900}, {}, 32, 10.0, counts | {f"word {one}": many for one, many in words.items()})
        assert [one for one in found["labels"] if one in labels] == labels and len(found["labels"]) == len(labels)
    # Among numbers they may be codes, which labels tell from marks of what is missing.
    assert has_labels({"word": 400, "integer zero": 300, "integer 2^0": 300}, 10.0)
    codes = {"0": 300, "1": 290, "yes": 210, "no": 200}
    table = table_of({"word": 410, "integer zero": 300, "integer 2^0": 290}, codes, 32, 10.0)
    assert table["labels"] == ["0", "1", "yes", "no"]
    assert "word" not in {place_of_cell(one) for one in cells_to_count({"integer 2^9": 900, "word": 90}, 10.0)}
    gaps = table_of({"integer 2^9": 900, "word": 90}, {"NA": 95, "high": 40, "Y": 36, "male": 36}, 32, 10.0)
    assert gaps["type"] == "integer" and gaps["null_values"][0] == "NA"


def test_ranges_of_whole_numbers_have_their_ends():
    """From 0 or 1 on where they are small or of several powers of two; a single value has others."""
    assert table_of({"integer 2^2": 600, "integer 2^3": 300}, {}, 32, 10.0)["bins"][:2] == [0, 4]
    assert table_of({"integer 2^5": 600, "integer 2^7": 300}, {}, 32, 10.0)["bins"][:2] == [0, 32]
    assert table_of({"integer 2^1": 600, "integer 2^2": 300}, {}, 32, 10.0)["bins"][:2] == [1, 2]
    assert table_of({"integer 2^7": 600}, {}, 32, 10.0)["bins"][0] == 128
    assert table_of({"integer zero": 600}, {}, 32, 10.0)["bins"] == [0, 1, 3]


def test_whole_numbers_with_a_zero_after_the_point_are_whole():
    """As programs write those of columns with gaps; beside numbers of decimals they are numbers of one."""
    rng = np.random.default_rng(3)
    ages, some = rng.integers(18, 95, 4000), rng.normal(60, 12, 4000).round(1)
    columns = {
        "age": [f"{one}.0" for one in ages[:3900]] + [""] * 100, "weight": [str(one) for one in some],
        "both": [f"{one}.0" for one in ages[:2000]] + [str(one) for one in ages[2000:]],
        "visits": rng.choice(["0.0", "1.0", "2.0", "5.5"], 4000, p=(0.5, 0.3, 0.1, 0.1)).tolist(),
    }  # fmt: skip
    for seed in range(3):
        found = search(columns, seed)
        kinds = {name: (one.values.kind, one.values.decimals, one.values.format) for name, one in found.items()}
        assert kinds.pop("both")[0] == "integer"
        assert kinds == {"age": ("integer", None, "%d.0"), **dict.fromkeys(("weight", "visits"), ("number", 1, None))}
        assert re.fullmatch(r"[0-9]+\.0", written(found["age"], "33.0", 0.7))
        assert found["visits"].code(b"5.5") not in {found["visits"].unknown, found["visits"].code(b"2.0")}


@pytest.mark.parametrize("zero", ["0", "0.0"])
def test_numbers_of_many_decimals_keep_their_places_and_zeros(zero):
    """Logarithms beside zeros are no thousands, and zeros come back as such, not as numbers near zero."""
    rng = np.random.default_rng(4)
    logs = np.where(rng.random(6000) < 0.5, -1, rng.choice([3.258096, 3.931826, 4.564348, 4.61512], 6000))
    columns = {
        "coins": [zero if one < 0 else str(one) for one in logs],
        "p": [f"{one:.6f}" for one in rng.random(6000)],
    }
    for seed in range(3):
        found = search(columns, seed)
        assert all(one.values.kind == "number" and one.matching.thousands is None for one in found.values())
        coins = found["coins"]
        code = coins.code(zero.encode())
        assert coins.code(b"3.258096") not in {code, coins.unknown, coins.code(b"3.931826"), coins.code(b"4.564348")}
        assert {float(written(coins, zero, at)) for at in (0.0, 0.5, 0.99)} == {0.0}
    # 17.100 among whole numbers is of thousands where all decimals are three.
    shapes = {"integer 2^8": 900, "number.3 2^4": 800}
    assert table_of(shapes, {}, 32, 10.0)["thousands"] == "." and "thousands" not in table_of(
        shapes | {"number.4 2^4": 800}, {}, 32, 10.0
    )


def test_few_zeros_of_counts_come_back():
    """Where 1 is rarer than others, as of months it is not. Room for zeros does not say that many occur."""
    rng = np.random.default_rng(8)
    visits = np.where(rng.random(6000) < 0.008, 0, rng.poisson(7, 6000) + 1)
    for seed in range(3):
        found = search({"visits": [str(one) for one in visits], "flag": ["no"] * 6000}, seed)["visits"]
        assert found.edges[0] == 0 and found.code(b"0") != found.code(b"4")
    large = table_of({"integer 2^2": 2400, "integer 2^3": 3500}, {}, 32, 10.0)
    assert large["bins"][0] == 0 and "shape" not in large
    months = {"integer 2^0": 500, "integer 2^1": 1000, "integer 2^2": 2000, "integer 2^3": 2500}
    assert table_of(months, {}, 32, 10.0)["bins"][0] == 1
    assert table_of(months | {"integer 2^0": 100}, {}, 32, 10.0)["bins"][:2] == [0, 1]


def test_a_long_span_of_dates_has_as_many_bins_as_may_be():
    days = [date(1920, 1, 1) + timedelta(days=1826 * number) for number in range(20)]
    found = OPEN.with_released({shape_of(str(day).encode()): 100 for day in days}, {}, 10.0)
    assert found.values.kind == "date" and len(found.edges) == 64  # a lot of five years is cut into years


def test_constraints_of_columns_of_any_type_name_no_labels():
    """What labels there will be is not known; an order of two numbers waits for what is found."""
    columns = {"a": {"private": True}, "b": {"private": True}, "c": {"labels": ["x", "y"]}}
    rule = {"columns": ["a", "c"], "impossible": [["1", "x"]]}
    with pytest.raises(DomainError, match="a column of any type"):
        Domain.from_dict({"attributes": columns, "constraints": {"r": rule}})


@pytest.mark.parametrize(
    "rule",
    [
        {"columns": ["a", "c"], "impossible": [["2000", "x"]]},
        {"columns": ["c", "a"], "map": [["x", "1000"], ["y", "2000"]]},
        {"columns": ["a", "c"], "possible": [["1000", "x"], ["2000", "y"]]},
    ],
)
@pytest.mark.parametrize("labels", [(), ("1000",), ("1000", "2000"), ("z",)])
def test_a_domain_with_labels_that_were_found_reads_back(rule, labels):
    """Also where none of the labels that a constraint names was found: then it says nothing and goes."""
    open_one = {"labels": {"private": True, "keep": 4}}
    domain = Domain.from_dict({"attributes": {"a": open_one, "c": {"labels": ["x", "y"]}}, "constraints": {"r": rule}})
    found = domain.with_attributes({"a": domain["a"].with_labels(labels)})
    assert Domain.from_dict(found.to_dict()) == found
