"""Columns of Python objects: a cell means what it means in a column of its own type, whatever stands beside it."""

import datetime
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core import Attribute, DataError, Domain
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import objects
from dpgm_core.sources.csv import CsvSource
from dpgm_core.sources.encoding import as_text, encoder
from dpgm_core.sources.persons import PersonSource

pandas = pytest.importorskip("pandas")


class Refuses:
    """An object that cannot be told as text."""

    def __str__(self):
        raise ValueError("SECRET")


ODD = [None, "x", [1], object(), Refuses(), "\ud800", b"\xff", 10**5000, -(10**400), 2**64, True, 1, 1.5, 1j]
ODD += [float("nan"), np.longdouble("1e400"), np.array([1, 2]), *map(Decimal, ("sNaN", "Infinity"))]
ODD += [Decimal("1E+99999999999"), Decimal("1E-99999999999"), pandas.NA, pandas.NaT]
ODD += [pandas.Timestamp("2020-01-01T05:00", tz="Europe/Berlin"), np.datetime64("2020-01-01T05", "h")]
ODD += [np.datetime64("NaT"), np.timedelta64("NaT"), np.timedelta64(3, "Y")]
ODD += [datetime.time(5, 30), datetime.date(1, 1, 1)]


ATTRIBUTES = [
    *(
        Attribute.of_labels("a", labels, unknown="?", null="none")
        for labels in (
            ["0", "1"],
            ["False", "True"],
            ["false", "true"],
            ["-1", "0.1", "0.5", "3.4e+38", "86400", "18446744073709551615"],
            ["2020-01-01", "2020-01-01T00:00:00", "2020-01-02T05:30:00.12", "2020-01-01 00:00:00", "A"],
            ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00+0100", "1.5", "1500000000", "0.000000001"],
        )
    ),
    Attribute.of_size("a", 3, unknown=2),
    Attribute.of_bins("a", [0, 0.1, 1, float("inf")], unknown="?", null="none", null_values=["1.0", "7"]),
]
DATES = ["2020-01-01", "2020-01-02T05:30:00.12", "1969-12-31T23:59:59", None]
SPANS = ["1D", "1500ms", "0s", None]
#: Of each kind of attribute one, for what is tried thirty times: all labels together, a size, bins.
KINDS = [
    Attribute.of_labels(
        "a", dict.fromkeys(label for one in ATTRIBUTES[:6] for label in one.labels[:-2]), unknown="?", null="none"
    ),
    *ATTRIBUTES[6:],
]
COLUMNS = {
    "bool": pandas.Series([True, False]),
    "boolean": pandas.Series([True, False, None], dtype="boolean"),
    **{kind: pandas.Series([0, 1, 7, np.iinfo(kind).max], dtype=kind) for kind in ("int8", "int16", "int32", "int64")},
    **{f"u{kind}": pandas.Series([0, 1, np.iinfo(f"u{kind}").max], dtype=f"u{kind}") for kind in ("int8", "int64")},
    "Int64": pandas.Series([0, 1, None, 2**62 + 1], dtype="Int64"),
    "float32": pandas.Series([0.1, 0.5, 1, 7, -0.0, np.nan, 1e-7, 2**-20, np.inf, 3.4e38], dtype="float32"),
    "float64": pandas.Series([0.1, 0.5, 1, 7, -0.0, np.nan, 1e-7, 2**-20, np.inf, 1e22, 1e300]),
    **{f"datetime64[{unit}]": pandas.Series(pandas.to_datetime(DATES, format="ISO8601")).astype(f"datetime64[{unit}]")
       for unit in ("s", "us", "ns")},
    "nanoseconds": pandas.Series([pandas.Timestamp("2020-01-01T00:00:00.000000001"), pandas.Timestamp("2020-01-01")]),
    "UTC": pandas.Series(pandas.to_datetime(DATES, format="ISO8601")).dt.tz_localize("UTC"),
    "Berlin": pandas.Series(pandas.to_datetime(["2020-01-01", "2020-07-01"])).dt.tz_localize("Europe/Berlin"),
    **{f"timedelta64[{unit}]": pandas.Series(pandas.to_timedelta(SPANS)).astype(f"timedelta64[{unit}]")
       for unit in ("s", "us", "ns")},
    "string": pandas.Series(["A", "0.1", "true", "", None], dtype="string"),
    "string[python]": pandas.Series(["A", "0.1", "true", "", None], dtype="string[python]"),
    "category": pandas.Series(["A", "0.1", "A", None], dtype="category"),
    "whole category": pandas.Series([0, 1, 1, 7], dtype="category"),
    "bool category": pandas.Series([True, False], dtype="category"),
    "Decimal": pandas.Series([Decimal("0.10"), Decimal("1"), Decimal("-1.0"), Decimal("7")],
                             dtype=pandas.ArrowDtype(pa.decimal128(9, 2))),
    "date": pandas.Series([datetime.date(2020, 1, 1), None], dtype=pandas.ArrowDtype(pa.date32())),
    "time": pandas.Series([datetime.time(5, 30), datetime.time(0)], dtype=pandas.ArrowDtype(pa.time64("us"))),
}  # fmt: skip


def codes(column, attribute):
    frame = pandas.DataFrame({"a": column})
    return [int(code) for (batch,) in as_source(frame).batches(Domain([attribute]), ["a"]) for code in batch]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.labels[1])
def test_typed_objects_and_objects_agree(name, attribute):
    typed = COLUMNS[name]
    wanted = codes(typed, attribute)
    assert codes(typed.astype(object), attribute) == wanted
    assert codes(pandas.Series(list(typed), dtype=object), attribute) == wanted
    for odd in (None, "x"):
        joined = pandas.concat(
            [pandas.DataFrame({"a": typed}), pandas.DataFrame({"a": pandas.Series([odd], dtype=object)})]
        )
        assert codes(joined["a"], attribute)[:-1] == wanted  # the type is what pandas makes of it


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("attribute", KINDS, ids=["labels", "size", "bins"])
def test_typed_objects_and_objects_beside_an_odd_one_agree(name, attribute):
    typed = COLUMNS[name]
    wanted = codes(typed, attribute)
    for odd in ODD:
        more = pandas.Series([*typed.astype(object), odd], dtype=object)
        assert codes(more, attribute)[:-1] == wanted


CELLS = st.one_of(
    st.sampled_from(ODD), st.integers(), st.floats(), st.floats(width=32), st.decimals(), st.text(max_size=3),
    st.binary(max_size=3), st.datetimes(), st.dates(), st.times(), st.timedeltas(), st.booleans(), st.none(),
    st.datetimes(timezones=st.timezones()), st.fractions(), st.complex_numbers(),
)  # fmt: skip


@settings(max_examples=40)
@given(st.lists(CELLS, max_size=6), st.lists(CELLS, max_size=3), st.sampled_from(ATTRIBUTES), st.integers(0, 6))
@example(ODD, [True], ATTRIBUTES[0], 7)
def test_a_cell_means_the_same_in_any_company(cells, others, attribute, start):
    """Codes and texts are those of each cell alone, in any slice."""
    alone = [encoder(attribute)(objects([cell]).chunk(0)).item() for cell in cells]
    array = objects([*cells, *others]).chunk(0)
    assert encoder(attribute)(array)[: len(cells)].tolist() == alone
    assert encoder(attribute)(array.slice(start))[: max(len(cells) - start, 0)].tolist() == alone[start:]
    texts = as_text(array.slice(start)).to_pylist()
    assert texts == [as_text(objects([cell]).chunk(0))[0].as_py() for cell in [*cells, *others][start:]]


@given(st.one_of(st.dates(), st.datetimes(), st.times()))
@example(datetime.datetime(1, 1, 1, 0, 0, 0, 1))
def test_times_read_as_arrow_writes_them(value):
    assert as_text(objects([value]).chunk(0)).to_pylist() == as_text(pa.array([value])).to_pylist()


def test_durations_are_seconds_in_every_unit():
    """A duration's text does not tell the unit it was stored in."""
    for unit in ("s", "ms", "us", "ns"):
        assert as_text(pa.array([datetime.timedelta(days=1), None], pa.duration(unit))).to_pylist() == [b"86400", None]
    assert as_text(pa.array([datetime.timedelta(seconds=-1.5)])).to_pylist() == [b"-1.5"]


@pytest.mark.parametrize("kind", ["string[python]", "category"])
def test_an_odd_text_or_category_changes_one_record(kind):
    """Half a character, or a category of another type, is unknown; the others keep their codes."""
    attribute = Attribute.of_labels("a", ["?", "0", "1"], unknown="other")
    values = ["0", "1", "\ud800"] if kind != "category" else [0, 1, "x"]
    assert codes(pandas.Series(values, dtype=kind), attribute) == [1, 2, 3]


PAIR = Domain.from_sizes({"a": 2})


def kept(data):
    (batch,) = PersonSource(source=as_source(data), person="id").batches(PAIR, ["a"])
    return Counter(batch[0].tolist())


@pytest.mark.parametrize(
    "ids", [[1, 2, "x"], [2**53 + 1, 2**53, 2.5], [True, 2, 3], [1, 2, None], [1, 2, 2**64], [Refuses(), 1, "\ud800"]]
)
def test_keys_of_mixed_types_are_read_one_by_one(ids):
    """Three persons, whatever the third one's key; lists, object arrays and object columns agree."""
    a = np.array([0, 1, 1])
    array = np.array([*ids, None], object)[:3]
    for data in ({"id": ids, "a": a}, {"id": array, "a": a}, pandas.DataFrame({"id": array, "a": a})):
        assert kept(data) == {0: 1, 1: 2}


@pytest.mark.parametrize("ids", [[1.0, 2.0], [0.5, 1.5], [2.0**60, np.nan]])
def test_float_keys_are_refused_by_their_type(ids):
    column = np.array(ids, np.float64)
    a = np.zeros(len(ids), int)
    frame = pandas.DataFrame({"id": column, "a": a})
    for data in (frame, frame.astype({"id": "float32"}), frame.astype({"id": "category"}), {"id": column, "a": a}):
        source = PersonSource(source=as_source(data), person="id")
        with pytest.raises(DataError, match="is a column of floats"):
            list(source.batches(PAIR, ["a"]))


@pytest.mark.parametrize("odd", [None, "SECRET", 2**64, -1, 1.0, True, [1]])
def test_lists_of_codes_are_read_value_by_value(odd):
    """A list has no one type: what is no whole number is unknown by itself, and decides nothing about the others."""
    (batch,) = as_source({"a": [1, odd, 1]}).batches(PAIR, ["a"])
    assert batch[0].tolist() == [1, PAIR["a"].unknown, 1]


def test_the_suffix_of_a_gzipped_file_may_be_in_capitals(tmp_path):
    """X.CSV.GZ is decompressed as x.csv.gz is."""
    import gzip

    path = tmp_path / "X.CSV.GZ"
    path.write_bytes(gzip.compress(b"a\n0\n1\n"))
    source = as_source(path)
    assert isinstance(source, CsvSource)
    assert [batch[0].tolist() for batch in source.batches(PAIR, ["a"])] == [[0, 1]]
