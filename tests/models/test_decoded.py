"""Codes become values of their column, and what is written falls on its own code again."""

from datetime import date, time

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dpgm_core.domain.attribute import Attribute
from dpgm_core.models.within_bins import decoder

TABLES = {
    "integer": {"type": "integer", "min": -3, "max": 94, "bins": 7},
    "integer, cap": {"type": "integer", "min": 0, "max": 94, "bins": 7, "cap": True},
    "integer edges": {"type": "integer", "bins": [0, 0.5, 2**53, 2**60]},
    "number": {"type": "number", "bins": [0, 0.1, 1 / 3, 7]},
    "plain bins": {"bins": [-1e300, 0, 1e-300, 1e300]},
    "open": {"type": "number", "bins": ["-inf", 0.0, 1 / 3, "inf"]},
    "lower": {"type": "number", "bins": [0, 0.1, 1 / 3], "shape": "lower"},
    "decimals": {"type": "number", "min": -2, "max": 9, "bins": 12, "decimals": 2},
    "log": {"type": "number", "min": 1, "max": 1e6, "bins": 9, "scale": "log", "shape": "log"},
    "german": {"type": "number", "min": 0, "max": 5000, "bins": 9, "decimal": ",", "thousands": "."},
    "tiny": {"type": "number", "min": -1e-8, "max": 7e-9, "bins": 6, "decimal": ","},
    "tiny decimals": {"type": "number", "min": 0, "max": 1e-5, "bins": 6, "decimals": 8},
    "years before 1000": {
        "type": "datetime",
        "min": "0447-02-28",
        "max": "0999-01-01",
        "bins": 3,
        "format": "%b %d %Y %H:%M",
    },
    "beyond 64 bits": {"type": "integer", "bins": [-(2.0**64), 0, 9]},
    "date": {"type": "date", "min": "1899-12-31", "max": "2024-02-29", "bins": "year"},
    "date, format": {"type": "date", "min": "1999-12-31", "max": "2024-02-29", "bins": 9, "format": "%d/%m/%y"},
    "month": {"type": "date", "min": "1999-12-31", "max": "2001-02-28", "bins": "month", "format": "%d %B %Y"},
    "datetime": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-09", "bins": "day"},
    "minutes": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-03", "bins": 5, "format": "%Y-%m-%d %H:%M"},
    "time": {"type": "time", "min": "00:00", "max": "23:59:59", "bins": 7},
    "clock": {"type": "time", "bins": ["00:00", "00:01", "12:30", "23:59"], "format": "%I:%M %p"},
    "labels": {"labels": ["a", "b,c"], "null_values": ["NA", "?"]},
    "whole labels": {"type": "integer", "labels": ["7", "-1", "010"], "numbers": True},
    "dates": {"type": "date", "labels": ["2020-01-01", "2020-06-30"]},
    "boolean": {"type": "boolean"},
    "yes": {"type": "boolean", "labels": ["1", "0"]},
    "coded": {"labels": ["no", "yes"], "coded": True},
    "coded integers": {"type": "integer", "labels": ["no", "yes"], "coded": True},
    "size": {"size": 4},
}
TYPES = {
    "integer": pa.int64(), "number": pa.float64(), "plain bins": pa.float64(), "date": pa.date32(),
    "datetime": pa.timestamp("s"), "time": pa.time32("s"), "labels": pa.string(), "whole labels": pa.int64(),
    "dates": pa.date32(), "boolean": pa.bool_(), "coded": pa.string(), "coded integers": pa.int64(),
    "size": pa.string(),
}  # fmt: skip


def drawn(one: Attribute, count: int = 60, seed: int = 0):
    """Codes, each `count` times, with the corners of the law among them; and what they are decoded to."""
    codes = np.repeat(np.arange(one.size), count)
    at = np.random.default_rng(seed).random(len(codes))
    at[::count], at[1::count] = 0.0, np.nextafter(1.0, 0)
    made = decoder(one)
    places = None if made.dist is None else made.places(codes, at)
    return codes, made.values(codes, places), made.texts(codes, places), made


@pytest.mark.parametrize("name", TABLES)
def test_what_is_written_falls_on_its_own_code(name):
    """Texts and typed values of every kind, the corners of each bin among them; null is the code of null values."""
    one = Attribute.from_dict("x", TABLES[name])
    codes, values, texts, made = drawn(one)
    wanted = np.where(made.empty[codes], one.null, codes)
    assert [one.code(text) for text in texts.to_pylist()] == wanted.tolist()
    assert made.empty.nonzero()[0].tolist() in ([], [one.null])
    if name in TYPES:
        assert values.type == TYPES[name]
    assert values.is_null().to_pylist() == made.empty[codes].tolist()
    for value, code in zip(values.to_pylist(), wanted.tolist(), strict=True):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert one.typed_code(repr(value)) == code
        elif isinstance(value, (date, time)) and one.edges is not None:
            assert one.label_code(value) == code


def test_values_are_spread_evenly_over_a_bin():
    """Of 20,000 whole numbers in 18 .. 64 and of dates of a month: chi-squared, false alarm 1e-6 each, seed fixed."""
    for table, code, many in (
        ({"type": "integer", "bins": [0, 18, 65]}, 0, 18),
        ({"type": "integer", "bins": [0, 18, 65]}, 1, 48),
        ({"type": "date", "min": "2021-02-01", "max": "2021-03-31", "bins": "month"}, 0, 28),
        ({"type": "number", "bins": [0, 1, 2], "decimals": 1}, 1, 11),
    ):
        made = decoder(Attribute.from_dict("x", table))
        codes = np.full(20_000, code)
        places = made.places(codes, np.random.default_rng(1).random(len(codes)))
        counts = np.unique(places, return_counts=True)[1]
        assert len(counts) == many and stats.chisquare(counts).pvalue > 1e-6


def test_numbers_have_three_digits_more_than_their_bins():
    """Unless decimals are declared; without trailing zeros."""
    for edges, most in (([0, 5, 10], 3), ([0, 0.5, 10], 4), ([0, 5000, 10**6], 0)):
        texts = drawn(Attribute.from_dict("x", {"type": "number", "bins": edges}), 200)[2].drop_null().to_pylist()
        digits = [len(text.partition(".")[2]) for text in texts]
        assert max(digits) == most and not any(text.endswith("0") and "." in text for text in texts)
    texts = (
        drawn(Attribute.from_dict("x", {"type": "number", "bins": [0, 1], "decimals": 2}))[2].drop_null().to_pylist()
    )
    assert {len(text) for text in texts} == {4}


def test_labels_that_the_type_cannot_have_are_null():
    """A column of whole numbers has whole numbers; a column of texts all its labels but the missing one."""
    whole = Attribute.from_dict("x", {"type": "integer", "labels": ["1", "none"], "missing": "n/a"})
    assert drawn(whole, 1)[1].to_pylist() == [1, None, None]
    text = Attribute.from_dict("x", {"labels": ["1", "none"], "missing": "n/a"})
    assert drawn(text, 1)[1].to_pylist() == ["1", "none", "n/a"]
    assert drawn(Attribute.from_dict("x", {"labels": ["1", "none"]}), 1)[2].to_pylist() == ["1", "none", None]


def test_small_numbers_are_written_without_an_exponent():
    """Arrow's 3.60E-10 without its last zero would be 3.6."""
    texts = drawn(Attribute.from_dict("x", {"type": "number", "min": -1e-8, "max": 1e-8, "bins": 4}), 200)[2]
    found = texts.drop_null().to_pylist()
    assert not any("E" in text for text in found) and max(map(abs, map(float, found))) <= 1e-8
    fixed = decoder(Attribute.from_dict("x", {"type": "number", "min": -1, "max": 1, "bins": 1, "decimals": 8}))
    places = np.array([-1e-7, 0.0, 1e-8, -0.5, np.nan])
    shown = ["-0.00000010", "0.00000000", "0.00000001", "-0.50000000", None]
    assert fixed.texts(np.array([0, 0, 0, 0, 1]), places).to_pylist() == shown


def test_money_comes_back_as_it_is_written():
    """With its decimals, its decimal sign and its digits in groups; and is read back into the same bin."""
    table = {"type": "number", "min": 0, "max": 2_000_000, "bins": 8, "decimals": 2, "decimal": ",", "thousands": "."}
    money = Attribute.from_dict("money", table)
    places = np.array([0.5, 999.99, 1000.0, 1_234_567.891, np.nan])
    codes = np.array([0, 0, 0, 4, money.null])
    texts = decoder(money).texts(codes, places).to_pylist()
    assert texts == ["0,50", "999,99", "1.000,00", "1.234.567,89", None]
    assert [money.code(text) for text in texts] == codes.tolist()


@pytest.mark.parametrize(("form", "text"), [("%H:%M", "13:05"), ("%I:%M %p", "01:05 PM"), (None, "13:05:00")])
def test_a_time_needs_no_ends_and_comes_back_in_its_format(form, text):
    """A day has its own: 24 bins where nobody says another number."""
    clock = Attribute.from_dict("t", {"type": "time"} | ({} if form is None else {"format": form}))
    assert clock.size == 25 and clock.labels[13] == "13:00/14:00" and clock.code(text) == 13
    assert decoder(clock).texts(np.array([13]), np.array([13 * 3600 + 300.0])).to_pylist() == [text]
