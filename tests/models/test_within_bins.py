"""The law of numbers inside a bin, what codes are decoded to, and bins many times wider than a neighbour."""

import math
from datetime import date, time

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from scipy import stats

from dpgm_core import Attribute, Domain, Model, SeededRandomness, Structure, Tables
from dpgm_core.domain.values import Values
from dpgm_core.models.orders import orders_among
from dpgm_core.models.within_bins import (
    bin_distribution,
    decoder,
    end_bin_note,
    fit_wide_bins,
    missing_code,
    one_bin_note,
    wide_bins,
    wide_note,
)

LAWS = [
    ([0, 18, 65, 120], Values(kind="integer")),
    ([0.5, 2, 9.5, 40], Values(kind="number")),
    ([1, 4, 60, 1000], Values(kind="integer", shape="log")),
    ([1, 4, 60, 1000], Values(kind="number", shape="log")),
    ([0, 4, 60, 1000], Values(kind="number", shape="lower")),
    ([0, 0.7, 1.3, 2], Values(kind="number", decimals=1)),
    ([0, 3600, 7200, 86400], Values(kind="time", format="%H:%M")),
]


def binned(edges, values, **more):
    return Attribute.from_dict("x", {"bins": list(edges), **_table(values), **more})


def _table(values):
    parts = {"type": values.kind, "format": values.format, "decimals": values.decimals, "shape": values.shape}
    return {key: value for key, value in parts.items() if value not in (None, "uniform")}


@pytest.mark.parametrize(("edges", "values"), LAWS, ids=str)
def test_moments_and_quantiles_are_those_of_what_is_drawn(edges, values):
    """At 20,001 evenly spaced places of the law, mean and variance agree within 1e-3 of the width: no chance in it."""
    one = binned(edges, values)
    law = bin_distribution(one)
    means, variances = law.moments()
    at = (np.arange(20_001) + 0.5) / 20_001
    for code in range(3):
        drawn = law.draw(np.full(len(at), code), at)
        width = edges[code + 1] - edges[code]
        assert abs(drawn.mean() - means[code]) < 1e-3 * width and abs(drawn.var() - variances[code]) < 1e-3 * width**2
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            found = law.quantile(code, share)
            assert (drawn <= found + 1e-9).mean() >= share - 1e-3
            assert (drawn < found - 1e-3 * width).mean() <= share + 1e-3
    assert np.isnan(means[3:]).all()


def test_uniform_whole_numbers_have_no_edge_effects():
    """Each of 18 .. 64 gets its share of the line; the last bin is closed; ten million are summed in parts."""
    law = bin_distribution(binned([0, 18, 65], Values(kind="integer")))
    at = np.arange(48 * 100) / (48 * 100) + 1e-6
    assert np.bincount(law.draw(np.ones(len(at), int), at).astype(int))[18:].tolist() == [100] * 48  # 18 .. 65
    assert law.draw(np.array([0, 0]), np.array([0.0, np.nextafter(1, 0)])).tolist() == [0, 17]
    means, variances = (moment[:2] for moment in law.moments())
    assert (means == [8.5, 41.5]).all() and np.allclose(variances, [(18**2 - 1) / 12, (48**2 - 1) / 12])
    law = bin_distribution(binned([0, 10**7], Values(kind="integer")))
    mean, variance = (moment[0] for moment in law.moments())
    assert math.isclose(mean, 5e6, rel_tol=1e-6) and math.isclose(variance, (1e7**2) / 12, rel_tol=1e-5)


def test_bins_without_an_end_stand_at_the_one_they_have():
    """65 or more is 65; below 0 is the last value below it."""
    whole = bin_distribution(binned(["-inf", 0, 65, "inf"], Values(kind="integer")))
    assert (whole.low[[0, 2]] == [-1, 65]).all() and (whole.high[[0, 2]] == [-1, 65]).all()
    real = bin_distribution(binned(["-inf", 0, 65, "inf"], Values(kind="number")))
    assert (real.low[[0, 2]] == [-0.065, 65]).all() and (real.high[[0, 2]] == [-0.065, 65]).all()
    all_numbers = bin_distribution(binned(["-inf", "inf"], Values(kind="number")))
    assert all_numbers.draw(np.array([0]), np.array([0.3])).tolist() == [0]


def test_what_has_no_number_is_not_present():
    """Texts, missing labels, labels that are no numbers, and bins without a value of the type."""
    assert bin_distribution(Attribute.of_size("a", 2)) is None
    labels = Attribute.from_dict("a", {"type": "integer", "labels": ["7", "x", "1.5", "-1"]})
    assert bin_distribution(labels).present.tolist() == [True, False, False, True, False]
    assert bin_distribution(labels).low.tolist() == [7, 0, 0, -1, 0]
    empty = Attribute.of_bins("a", [0, 0.2, 0.4, 3], unknown="missing")
    assert bin_distribution(evolve(empty, values=Values(kind="integer"))).present.tolist() == [True, False, True, False]
    assert missing_code(Attribute.from_dict("a", {"labels": ["x"]})) == 1
    assert missing_code(Attribute.from_dict("a", {"labels": ["x"], "missing": "not stated"})) is None


def test_plain_bins_are_of_whole_numbers_where_all_edges_are():
    """A column that declares no type; what is said of its edges decides, and nothing else."""
    for edges, whole in (([0, 18, 65, "inf"], True), ([0, 0.5, 2], False), ([0, 1e300], False)):
        assert (bin_distribution(Attribute.from_dict("x", {"bins": edges})).lattice is not None) == whole


# --- codes become values of their column ------------------------------------------------------------------------------


MONTHS_NAMED = {"format": "%b %d %Y %H:%M"}
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
    "dollars": {"type": "integer", "min": -50, "max": 5000, "bins": 9, "symbol": "$0", "thousands": ","},
    "percent": {"type": "number", "min": 0, "max": 1, "bins": 9, "symbol": "0 \\%", "decimal": ","},
    "tiny": {"type": "number", "min": -1e-8, "max": 7e-9, "bins": 6, "decimal": ","},
    "tiny decimals": {"type": "number", "min": 0, "max": 1e-5, "bins": 6, "decimals": 8},
    "years before 1000": {"type": "datetime", "min": "0447-02-28", "max": "0999-01-01", "bins": 3} | MONTHS_NAMED,
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
    """Unless decimals are declared; without trailing zeros and without an exponent."""
    for edges, most in (([0, 5, 10], 3), ([0, 0.5, 10], 4), ([0, 5000, 10**6], 0)):
        texts = drawn(Attribute.from_dict("x", {"type": "number", "bins": edges}), 200)[2].drop_null().to_pylist()
        digits = [len(text.partition(".")[2]) for text in texts]
        assert max(digits) == most and not any(text.endswith("0") and "." in text for text in texts)
    fixed = drawn(Attribute.from_dict("x", {"type": "number", "bins": [0, 1], "decimals": 2}))[2].drop_null()
    assert {len(text) for text in fixed.to_pylist()} == {4}
    texts = drawn(Attribute.from_dict("x", {"type": "number", "min": -1e-8, "max": 1e-8, "bins": 4}), 200)[2]
    found = texts.drop_null().to_pylist()
    assert not any("E" in text for text in found) and max(map(abs, map(float, found))) <= 1e-8
    fixed = decoder(Attribute.from_dict("x", {"type": "number", "min": -1, "max": 1, "bins": 1, "decimals": 8}))
    places = np.array([-1e-7, 0.0, 1e-8, -0.5, np.nan])
    shown = ["-0.00000010", "0.00000000", "0.00000001", "-0.50000000", None]
    assert fixed.texts(np.array([0, 0, 0, 0, 1]), places).to_pylist() == shown


def test_labels_that_the_type_cannot_have_are_null():
    """A column of whole numbers has whole numbers; a column of texts all its labels but the missing one."""
    whole = Attribute.from_dict("x", {"type": "integer", "labels": ["1", "none"], "missing": "n/a"})
    assert drawn(whole, 1)[1].to_pylist() == [1, None, None]
    text = Attribute.from_dict("x", {"labels": ["1", "none"], "missing": "n/a"})
    assert drawn(text, 1)[1].to_pylist() == ["1", "none", "n/a"]
    assert drawn(Attribute.from_dict("x", {"labels": ["1", "none"]}), 1)[2].to_pylist() == ["1", "none", None]


@pytest.mark.parametrize(("form", "texts"), [("%05d", ("-0020", "00007")), ("%d.0", ("-20.0", "7.0"))])
def test_whole_numbers_come_back_in_their_format(form, texts):
    """Zeros stand after the sign."""
    attribute = Attribute.from_dict("delta", {"type": "integer", "min": -20, "max": 20, "format": form})
    codes = np.array([attribute.code(text.encode()) for text in texts])
    decode = decoder(attribute)
    assert decode.texts(codes, decode.places(codes, np.zeros(2))).to_pylist() == [*texts]


def test_money_comes_back_as_it_is_written():
    """With its decimals, its decimal sign and its digits in groups; and is read back into the same bin."""
    table = {"type": "number", "min": 0, "max": 2_000_000, "bins": 8, "decimals": 2, "decimal": ",", "thousands": "."}
    money = Attribute.from_dict("money", table)
    places = np.array([0.5, 999.99, 1000.0, 1_234_567.891, np.nan])
    codes = np.array([0, 0, 0, 4, money.null])
    texts = decoder(money).texts(codes, places).to_pylist()
    assert texts == ["0,50", "999,99", "1.000,00", "1.234.567,89", None]
    assert [money.code(text) for text in texts] == codes.tolist()


@pytest.mark.parametrize(("symbol", "first"), [("$0", "-$1,234.50"), ("€ 0", "-€ 1,234.50"), ("0 %", "-1,234.50 %")])
def test_numbers_come_back_with_their_symbol(symbol, first):
    """The minus stands before it, and typed values have none."""
    table = {"type": "number", "min": -2000, "max": 2000, "bins": 8, "decimals": 2, "thousands": ",", "symbol": symbol}
    money = Attribute.from_dict("money", table)
    codes, places = np.array([1, money.null]), np.array([-1234.5, np.nan])
    texts = decoder(money).texts(codes, places).to_pylist()
    assert texts == [first, None] and [money.code(text) for text in texts] == codes.tolist()
    assert money.code("-1234.5") == money.typed_code("-1234.5") == money.label_code(first) == 1
    assert money.typed_code(first) == money.unknown and Attribute.from_dict("money", money.to_dict()) == money
    assert decoder(money).values(codes, places).to_pylist() == [-1234.5, None]


@pytest.mark.parametrize(("form", "text"), [("%H:%M", "13:05"), ("%I:%M %p", "01:05 PM"), (None, "13:05:00")])
def test_a_time_needs_no_ends_and_comes_back_in_its_format(form, text):
    """A day has its own: 24 bins where nobody says another number."""
    clock = Attribute.from_dict("t", {"type": "time"} | ({} if form is None else {"format": form}))
    assert clock.size == 25 and clock.labels[13] == "13:00/14:00" and clock.code(text) == 13
    assert decoder(clock).texts(np.array([13]), np.array([13 * 3600 + 300.0])).to_pylist() == [text]


# --- the exponential fit, against closed forms and what is drawn ------------------------------------------------------


VISITS = [0, 1, 2, 3, 5, 9, 366]


def column(edges, kind="integer", **more):
    return Attribute.from_dict("x", {"type": kind, "bins": list(edges), **more})


def table_of(one, cdf):
    """The marginal of a column whose values have this distribution function, over its bins and missing values."""
    law = bin_distribution(one)
    bins = len(one.edges) - 1
    before = law.low if law.lattice is None else law.lattice.place(law.low - 1)
    masses = (cdf(law.placed(law.high)) - cdf(before))[:bins]
    return np.append(masses / masses.sum(), np.zeros(one.size - bins))


def mean_of(one, table, law):
    return float(table[law.present] @ law.moments()[0][law.present])


@pytest.mark.parametrize("kind", ["integer", "date"])
def test_the_mean_of_geometric_numbers_is_exact(kind):
    """The two counts give the rate of a geometric distribution without error, at whichever end the wide bin is."""
    truth = stats.geom(0.3, loc=-1)
    visits = column(VISITS, kind)
    assert math.isclose(fit_wide_bins(visits, table_of(visits, truth.cdf)).rates[5], -math.log(0.7))
    for edges, cdf, where in (
        (VISITS, truth.cdf, 5),
        ([-400, -9, -5, 0], lambda x: 1 - truth.cdf(-np.asarray(x) - 1), 0),
        ([-400, -9, -5, 0, 1], lambda x: 1 - truth.cdf(-np.asarray(x) - 1), 0),
    ):
        one = column(edges, kind)
        mean = fit_wide_bins(one, table_of(one, cdf)).moments()[0][where]
        wanted = 9 + 7 / 3 if where else -10 - 7 / 3  # memoryless: the bin's near end, and the mean of the distribution
        assert math.isclose(mean, wanted, rel_tol=1e-9), edges


def test_the_mean_of_exponential_numbers_is_exact():
    """Of real numbers, in the last bin and in the first one, and the variance too."""
    for sign in (1, -1):
        edges = sorted(sign * edge for edge in (0, 1, 3, 500))
        one = column(edges, "number")
        law = fit_wide_bins(one, table_of(one, lambda x, sign=sign: np.exp(x / 2) if sign < 0 else 1 - np.exp(-x / 2)))
        where = 2 if sign > 0 else 0
        assert math.isclose(law.moments()[0][where], sign * 5) and math.isclose(law.moments()[1][where], 4)


WIDE_LAWS = [
    (VISITS, "integer", {}),
    ([-400, -9, -5, 0], "integer", {}),
    ([0, 1, 3, 500], "number", {}),
    ([-500, -3, -1, 0], "number", {}),
    ([0, 1, 3, 50], "number", {"decimals": 1}),
    ([0, 1, 10, 100, 1000], "number", {}),
    ([0, 60, 180, 86400], "time", {"format": "%H:%M"}),
]


@pytest.mark.parametrize("scale", [0.3, 3.0, 1e4])
@pytest.mark.parametrize(("edges", "kind", "more"), WIDE_LAWS, ids=str)
def test_wide_moments_and_quantiles_are_those_of_what_is_drawn(edges, kind, more, scale):
    """At 20,001 evenly spaced places of the law, for steep, ordinary and nearly even ones: no chance in it."""
    one = column(edges, kind, **more)
    scale *= 60 if kind == "time" else 1
    table = table_of(one, lambda x: stats.expon.cdf(np.abs(x), scale=scale) * np.sign(x))
    law = fit_wide_bins(one, table)
    wide = [code for code in wide_bins(one) if table[code] > 0]
    assert wide and (law.rates[wide] != 0).all()
    means, variances = law.moments()
    at = (np.arange(20_001) + 0.5) / 20_001
    for code in wide:
        drawn = law.draw(np.full(len(at), code), at)
        ends = law.placed(law.low)[code], law.placed(law.high)[code]
        assert (ends[0] <= drawn).all() and (drawn <= ends[1]).all() and (np.diff(drawn) >= 0).all()
        sd = math.sqrt(variances[code])
        assert abs(drawn.mean() - means[code]) < 2e-3 * sd + 1e-9
        assert math.isclose(drawn.var(), variances[code], rel_tol=2e-2, abs_tol=1e-9)
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            found = law.quantile(code, share)
            assert ends[0] <= found <= ends[1] and (drawn <= found + 1e-9 * abs(found)).mean() >= share - 1e-3


def test_a_bin_as_dense_as_its_neighbour_stays_even():
    """Uniform numbers have rate 0; so have denser bins, empty ones and those beside an empty one."""
    one = column([0, 5, 9, 366], "number")
    assert fit_wide_bins(one, table_of(one, lambda x: x / 366)).rates[2] < 1e-12
    for masses in ([0.1, 0.001, 0.899, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.5, 0, 0.5, 0]):
        law = fit_wide_bins(one, np.array(masses, float))
        assert not law.rates.any() and law.moments()[0][2] == 187.5


def test_which_bins_are_wide():
    """Four times as wide as the narrower neighbour that has an end and a value; inner ones too."""
    assert wide_bins(column([0, 10, 48])) == {} and wide_bins(column([0, 10, 49.5, 50])) == {1: 2}
    assert wide_bins(column([0, 10, 50], "number")) == {1: 0}
    assert wide_bins(column([0, 1, 100, 102, 104])) == {1: 0}
    assert wide_bins(column([-math.inf, 0, 18, 65, math.inf])) == {}
    assert wide_bins(column([0, 366])) == {}
    for shape in ("uniform", "lower", "log"):
        assert wide_bins(column(VISITS, shape=shape)) == {}
    assert wide_bins(Attribute.from_dict("x", {"labels": ["1", "2", "90"], "type": "integer"})) == {}
    assert wide_bins(Attribute.of_size("x", 3)) == {}


@pytest.mark.parametrize(
    ("unit", "kind", "low", "high"),
    [
        ("week", "date", "2023-01-01", "2023-03-06"),  # both ends are a day
        ("month", "date", "2022-12-31", "2023-06-01"),
        ("year", "date", "2021-12-31", "2022-12-31"),
        ("day", "datetime", "2023-01-01T23:30", "2023-01-05T00:10"),
    ],
)
def test_units_of_a_calendar_beside_one_that_the_range_cuts_stay_even(unit, kind, low, high):
    """The one day before has many people, and yet the next week is drawn evenly; there is no note on it."""
    one = Attribute.from_dict("day", {"type": kind, "min": low, "max": high, "bins": unit})
    table = np.append([0.5], np.full(one.size - 1, 0.5 / (one.size - 1)))
    law = fit_wide_bins(one, table)
    assert wide_bins(one) == {} and wide_note([one]) is None and law.rates is None
    at = (np.arange(7000) + 0.5) / 7000
    drawn = law.draw(np.ones(len(at), int), at)
    assert abs(drawn.mean() - law.placed((law.low + law.high) / 2)[1]) < 1e-3 * (drawn.max() - drawn.min())


def test_bins_by_hand_beside_a_day_are_wide():
    one = Attribute.from_dict("day", {"type": "date", "bins": ["2023-01-01", "2023-01-02", "2023-01-10", "2023-01-18"]})
    assert wide_bins(one) == {1: 0}


UNLIKE = {  # on 0 .. 366; others than the rule was chosen on
    "logarithmic series": stats.logser(0.8, loc=-1),
    "Poisson mixture": stats.nbinom(0.3, 0.1),
    "Zipf": stats.zipf(2.2, loc=-1),
    "beta-binomial": stats.betabinom(366, 1, 60),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_the_mean_of_unlike_numbers_is_off_by_a_quarter_of_what_even_bins_are_off_by(name):
    """At 10,000 records and noise of a standard deviation of 10 a cell; the seed is fixed, so no chance is left."""
    one, truth, draws = column(VISITS), UNLIKE[name], np.random.default_rng(1)
    numbers = np.arange(367)
    mean = (numbers * truth.pmf(numbers)).sum() / truth.pmf(numbers).sum()
    counts = draws.multinomial(10_000, table_of(one, truth.cdf)) + 10 * draws.normal(size=7)
    table = np.maximum(counts * (np.arange(7) < 6), 0.0)
    table /= table.sum()
    even, bent = (abs(mean_of(one, table, law) - mean) for law in (bin_distribution(one), fit_wide_bins(one, table)))
    assert bent < even / 4


DOMAIN = Domain.from_dict(
    {"x": {"type": "integer", "bins": VISITS}, "sex": {"labels": ["F", "M"], "unknown": "F"}, "y": ["p", "q"]}
)


def model_of_visits():
    structure = Structure(DOMAIN, [("x", "sex"), ("y",)])
    masses = table_of(DOMAIN["x"], stats.geom(0.3, loc=-1).cdf) + 0.02 * (np.arange(7) == 6)
    tables = {("x", "sex"): np.log(np.outer(masses, [0.5, 0.5]) * [1, 2]), ("y",): np.zeros(3)}
    tables[("x", "sex")][5] += [1.0, -1.0]  # the wide bin is commoner among F
    return Model(structure, Tables.from_arrays(structure, tables))


def test_samples_means_quantiles_and_completed_rows_share_one_law():
    """Whatever is given; records within 5 standard errors of the exact answers (false alarm 1e-6 each, seed fixed)."""
    model = model_of_visits()
    for given in (None, {"sex": "F"}):
        table = model.sample(20_000, given=given, form="values", randomness=SeededRandomness(1))
        numbers = table["x"].drop_null().to_numpy()
        sd = math.sqrt(model.variance("x", given))
        assert abs(numbers.mean() - model.mean("x", given)) < 5 * sd / math.sqrt(len(numbers))
        for share in (0.5, 0.9, 0.99):
            found = model.quantile("x", share, given)
            error = 5 * math.sqrt(share * (1 - share) / len(numbers))
            assert (numbers <= found).mean() >= share - error and (numbers < found).mean() <= share + error
    filled = model.complete(table.select(["sex"]).slice(0, 5000), randomness=SeededRandomness(2))
    filled = filled["x"].drop_null().to_numpy()
    assert abs(filled.mean() - model.mean("x", {"sex": "F"})) < 5 * sd / math.sqrt(len(filled))
    assert filled.max() < 120  # evenly, 19 in 20 of the bin would be beyond


def test_each_replicate_has_its_own_rate():
    """So an interval of a mean holds what noise does to the rate."""
    model = model_of_visits()
    theta = model.potentials.values + np.random.default_rng(0).normal(size=(4, model.structure.cells)) * 0.1
    rates = {one._numbers_of("x").rates[5] for one in model.with_replicates(theta).replicates}
    assert len(rates) == 4


def test_an_order_keeps_a_part_of_the_law():
    """Of x above y = 100 in one bin: memoryless, so 100 and the same mean again (5 standard errors, seed fixed)."""
    bins, rules = {"type": "integer", "bins": [0, 10, 1000]}, {"later": {"columns": ["a", "b"], "order": "<="}}
    pair = Domain.from_dict({"attributes": {"a": bins, "b": bins}, "constraints": rules})
    table = np.array([1 - math.exp(-0.2), math.exp(-0.2), 0.0])
    decoders = {name: decoder(pair[name], table) for name in ("a", "b")}
    codes = {name: np.ones(4000, np.int64) for name in ("a", "b")}
    places = orders_among(pair.constraints, decoders).places(codes, {"a": 100.0}, np.random.default_rng(1))
    rate = decoders["b"].dist.rates[1]
    wanted = 100 + 1 / math.expm1(rate)
    assert 0.019 < rate < 0.021
    assert places["b"].min() >= 100 and abs(places["b"].mean() - wanted) < 5 / rate / math.sqrt(4000)


def test_an_even_shape_can_be_stated_and_the_note_names_the_bins():
    """A domain file keeps a stated shape; the note names wide bins, and private bins only once they are found."""
    assert "shape" not in column(VISITS).to_dict()
    even = column(VISITS, shape="uniform")
    assert even.to_dict()["shape"] == "uniform" and Attribute.from_dict("x", even.to_dict()) == even
    assert fit_wide_bins(even, np.ones(7) / 7).rates is None
    note = wide_note([column(VISITS), column([0, 18, 65])])
    assert note is not None and "'x' (9-366)" in note and "shape = 'uniform'" in note
    assert "'x' (100-1000 and 2 more)" in str(wide_note([column([0, 1, 10, 100, 1000])]))
    private = Attribute.from_dict("p", {"type": "number", "min": 0, "max": 9, "bins": {"private": 4}})
    assert wide_note([column([0, 18, 65]), private]) is None


def test_columns_with_nearly_all_numbers_in_one_bin_are_named():
    """Of the records that have a number, and not where the bin holds a single number, or labels are no bins."""
    wide, single = column([0, 151, 152, 360], kind="number"), column([0, 1, 152, 360])
    inside = np.array([0.01, 0.6, 0.01, 0.38])
    note = one_bin_note([(wide, inside)])
    assert note is not None and "over 90 % of a column's numbers lie in one bin: 'x' ([151, 152))" in note
    assert one_bin_note([(wide, np.array([0.05, 0.54, 0.03, 0.38]))]) is None
    assert one_bin_note([(single, inside[[1, 0, 2, 3]])]) is None
    assert one_bin_note([(wide, np.array([0.0, 0.0, 0.0, 1.0]))]) is None
    assert one_bin_note([(Attribute.of_labels("y", ["1", "2"], unknown="1"), np.array([1.0, 0.0]))]) is None


def test_a_dense_bin_at_an_end_may_hold_values_from_beyond():
    """By width, at either end, with at least 5 %; not where one value is common, or values beyond are unknown."""
    capped = column([40, 42, 44, 48, 63], cap=True)
    note = end_bin_note([(capped, np.array([0.25, 0.08, 0.4, 0.27, 0.0]))])
    assert note is not None and "'x' (up to 41: 25 %)" in note and "48" not in note
    note = end_bin_note([(capped, np.array([0.06, 0.08, 0.06, 0.8, 0.0]))])
    assert note is not None and "'x' (48+: 80 %)" in note
    for shares in ([0.04, 0.01, 0.5, 0.45, 0], [0.25, 0.15, 0.3, 0.3, 0]):
        assert end_bin_note([(capped, np.array(shares))]) is None
    assert end_bin_note([(column([40, 42, 44, 48, 63]), np.array([0.25, 0.08, 0.4, 0.27, 0.0]))]) is None
    assert end_bin_note([(column([0, 1, 2, 9], cap=True), np.array([0.8, 0.1, 0.1, 0.0]))]) is None
    many = np.array([0.8, 0.1, 0.1, 0.0])
    assert end_bin_note([(column([0, 0.001, 2, 9], kind="number", cap=True), many)]) is None
    assert end_bin_note([(column([1, 1.001, 2, 9], kind="number", cap=True), many)]) is not None
