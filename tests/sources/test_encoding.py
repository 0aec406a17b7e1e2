"""Raw values become the codes that a domain says, whatever their type; every Arrow type has a text."""

import datetime
import datetime as dt
import decimal
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.labels import Matching
from dpgm_core.domain.values import Values
from dpgm_core.sources.encoding import as_text, encoder, key_texts


@pytest.mark.parametrize(
    ("labels", "hits"), [(["false", "true"], 1), (["False", "True"], 1), (["1", "0"], 0), (["yes", "no"], 2)]
)
def test_booleans_match_the_pair_the_labels_know(labels, hits):
    """true/false, else True/False, else 1/0: decided by the domain alone."""
    attribute = Attribute.of_labels("x", labels, unknown="?")
    assert encoder(attribute)(pa.array([True])).tolist() == [hits]


ANY_VALUE = st.one_of(
    st.binary(max_size=6),
    st.integers(-50, 50).map(lambda number: str(number).encode()),
    st.floats(width=32).map(lambda number: repr(number).encode()),
    st.sampled_from(
        [b"na ", b"1.000", b"1,000", b"1.000,5", b"1,5", b"+01", b"1.0", b"-0", b"1e0", b"\xc2\xa01", b"a", b"\xc3\x9f"]
    ),
    st.sampled_from(
        [
            b"2019-03-01",
            b"2019-03-01T00:00:00.000000001",
            b"2019-02-29",
            b"05:30",
            b"1.3.2019",
            b"1900-01-01",
            b"0001-01-01T00:00+01:00",
        ]
    ),
    st.integers(2**53 - 3, 2**53 + 3).map(lambda number: b"%d" % number),
    st.sampled_from([b"", b"NA", b" 1 ", b"1_0", b"+3", b"1e1", b"nan", b"inf", b"0x1", b"1.", b"\x1c1", b"1\0", b"A"]),
    st.none(),
)
ATTRIBUTES = [
    Attribute.of_labels("x", ["A", "3", "03", "-7", ""], unknown="?", null="none", null_values=["NA", "A"]),
    Attribute.of_labels("x", ["A", "B"], unknown="B", null="A", coded=True),
    Attribute.of_bins("x", [-10, 0, 0.5, 10], unknown="?", null="none", null_values=["NA", "", "7"]),
    Attribute.of_bins("x", [-10, 0, 0.5, 10], unknown="?", null="none", null_values=["inf", "-inf", "7"]),
    Attribute.of_bins("x", [float("-inf"), 0, float("inf")], unknown="?"),
    Attribute.of_size("x", 300, unknown=299, null=7),
    *(
        Attribute.of_labels("x", labels, unknown="?", null="none", null_values=["NA"], matching=rules)
        for rules, labels in (
            (Matching(case=False, blanks="strip"), ["A", " b", "SS", "1"]),
            (Matching(numbers=True), ["1", "1000", "-7", "0.50", "A", "1e45"]),
            (Matching(numbers=True, thousands=".", decimal=",", blanks="strip"), ["1", "1,5", "1.000", "A"]),
            (Matching(numbers=True, thousands=",", case=False), ["1", "1.5", "1,000", "a"]),
        )
    ),
    *(
        Attribute.of_bins("x", edges, unknown="?", null="none", null_values=["NA", "1900-01-01", "7"], **more)
        for edges, more in (
            ([-7, 0, 1.5, 10], {"values": Values(kind="integer")}),
            ([0, 2**53, 2**53 + 2], {"values": Values(kind="integer"), "cap": True}),
            ([0, 2**53, 2**53 + 2], {"values": Values(kind="number")}),
            ([-50, 0.5, 1000], {"matching": Matching(thousands=".", decimal=",", blanks="strip"), "cap": True}),
            (["1900-01-01", "2019-03-01", "2020-01-01"], {"values": Values(kind="date")}),
            (["-inf", "2019-03-01", "inf"], {"values": Values(kind="date", format="%d.%m.%Y")}),
            (["1900-01-01", "2019-03-01", "2020-01-01"], {"values": Values(kind="datetime"), "cap": True}),
            (["00:00", "05:30", "23:59:59"], {"values": Values(kind="time")}),
        )
    ),
]


@given(st.lists(ANY_VALUE, max_size=20), st.sampled_from(ATTRIBUTES))
def test_texts_encode_as_the_reference_does(values, attribute):
    wanted = [attribute.code(value) for value in values]
    for kind in (pa.binary(), pa.large_binary()):
        array = pa.array(values, kind)
        assert encoder(attribute)(array).tolist() == wanted
        assert encoder(attribute)(array.dictionary_encode()).tolist() == wanted


@pytest.mark.landing
@settings(max_examples=80)
@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-12, 12), st.just(1000)), max_size=20),
    st.sampled_from(ATTRIBUTES),
)
@example([10, -10, 7, 0], ATTRIBUTES[2])
@example([1000], ATTRIBUTES[7])
def test_whole_numbers_encode_as_their_digits(values, attribute):
    wanted = [attribute.typed_code(None if value is None else str(value)) for value in values]
    for kind in (pa.int32(), pa.int64(), pa.float64(), pa.decimal128(30, 3)):
        assert encoder(attribute)(pa.array(values, pa.int64()).cast(kind)).tolist() == wanted


@pytest.mark.parametrize(
    "labels", [["5", str(2**63 - 1)], [str(-(2**63)), "5"], [str(2**64 - 1), "5"], ["5", "9" * 19]]
)
def test_labels_at_the_ends_of_the_integers(labels):
    """No wrap-around makes a huge number a label it is not."""
    attribute = Attribute.of_labels("x", labels, unknown="?")
    for kind in (pa.int8(), pa.int64(), pa.uint64()):
        info = np.iinfo(kind.to_pandas_dtype())
        values = [value for value in (5, 0, info.min, info.max, info.max - 1) if info.min <= value]
        assert encoder(attribute)(pa.array(values, kind)).tolist() == [attribute.code(str(value)) for value in values]


WHOLE = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(2**53 - 3, 2**53 + 3), st.integers(-12, 12), st.just(2**63 - 1)
)
EDGES = WHOLE.map(lambda edge: min(int(float(edge)), 2**63 - 1024))  # floats that are 64-bit integers


@settings(max_examples=50)
@given(st.lists(WHOLE, max_size=12), st.lists(EDGES, min_size=2, unique=True))
def test_whole_numbers_are_never_rounded_into_a_bin(values, edges):
    """Beyond 2^53, where floats have gaps, 64-bit integers and their texts stand on the right side of each edge."""
    edges = sorted(edges)
    attribute = Attribute.of_bins("x", edges, unknown="?", values=Values(kind="integer"), labels=map(str, edges[1:]))

    def slow(value):
        inside = [at for at, (low, high) in enumerate(itertools.pairwise(edges)) if low <= value < high]
        return inside[0] if inside else len(edges) - (2 if value == edges[-1] else 1)

    wanted = [slow(value) for value in values]
    assert encoder(attribute)(pa.array(values, pa.int64())).tolist() == wanted
    assert encoder(attribute)(pa.array(list(map(str, values)))).tolist() == wanted
    assert encoder(attribute)(pa.array(values, pa.decimal128(30, 2))).tolist() == wanted
    assert encoder(attribute)(pa.array([abs(value) for value in values], pa.uint64())).tolist() == [
        slow(abs(value)) for value in values
    ]


TEMPORAL = [one for one in ATTRIBUTES if one.values.is_temporal]
MARCH = int(dt.datetime(2019, 3, 1, tzinfo=dt.UTC).timestamp()) * 10**9
HALF_PAST_FIVE = (5 * 60 + 30) * 60 * 10**9
MOMENTS = st.one_of(
    st.none(),
    st.integers(-(2**62), 2**62),
    st.integers(MARCH - 5, MARCH + 5),
    st.integers(HALF_PAST_FIVE - 5, HALF_PAST_FIVE + 5),
)


@pytest.mark.landing
@settings(max_examples=50)
@given(st.lists(MOMENTS, max_size=12), st.sampled_from(TEMPORAL), st.sampled_from(["s", "ms", "us", "ns"]))
@example([MARCH - 1, MARCH, MARCH + 1], TEMPORAL[2], "ns")
@example([10**21, -(10**21)], TEMPORAL[1], "s")
@example([HALF_PAST_FIVE - 1, HALF_PAST_FIVE], TEMPORAL[3], "ns")
def test_dates_and_times_encode_as_their_texts(values, attribute, unit):
    if attribute.values.format is not None:  # texts of that format; Arrow's own dates are what they are
        attribute = Attribute.of_bins("x", attribute.edges, unknown="?", values=Values(kind="date"))
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    raw = [None if value is None else value * per // 10**9 for value in values]
    day = [None if value is None else value % (86_400 * per) for value in raw]
    arrays = [
        pa.array(raw, pa.timestamp(unit)),
        pa.array(raw, pa.timestamp(unit, "UTC")),
        pa.array([None if value is None else value // (86_400 * per) for value in raw], pa.int32()).cast(pa.date32()),
        pa.array(day, pa.int64())
        .cast(pa.int32() if unit in ("s", "ms") and max(filter(None, day), default=0) < 2**31 else pa.int64())
        .cast(pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)),
    ]
    for array in arrays:
        texts = [None if text is None else text.replace(" ", "T") for text in array.cast(pa.string()).to_pylist()]
        assert encoder(attribute)(array).tolist() == [attribute.code(text) for text in texts], array.type


@settings(max_examples=50)
@given(st.lists(st.floats() | st.sampled_from([0.5, 1.5, 1000.0, -7.0]), max_size=20), st.sampled_from(ATTRIBUTES))
@example([7.0, 1.5, 0.5, math.inf, -math.inf, math.nan, 2.0**53 + 2], ATTRIBUTES[9])
@example([1.5, 1000.0, 15.0], ATTRIBUTES[7])
def test_floats_fall_where_their_digits_do(values, attribute):
    """Doubles are read exactly, whatever signs the texts of the column have; NaN is null."""
    array = pa.array(values, pa.float64(), from_pandas=False)
    texts = as_text(array).to_pylist() if attribute.edges is None else [_digits(value).encode() for value in values]
    wanted = [
        attribute.typed_code(text) if value == value else attribute.null
        for value, text in zip(values, texts, strict=True)
    ]
    assert encoder(attribute)(array).tolist() == wanted


def _digits(value):
    return str(int(value)) if math.isfinite(value) and value.is_integer() else repr(value)


@pytest.mark.parametrize(
    "odd", [None, b"2019-02-29T00:00:00", b"2019-03-01T24:00:00", b"\xff", b"2019-03-01T00:00:00Z\n", b""]
)
def test_many_dates_at_once_are_read_as_one_by_one(odd):
    """What Arrow reads for us is what `code` says, and one odd text among the many changes nothing."""
    attribute = Attribute.from_dict(
        "x", {"type": "datetime", "min": "1969-12-01", "max": "2019-06-30", "bins": "month"}
    )
    start = dt.datetime(2019, 2, 1)
    texts = [(start + dt.timedelta(hours=7.25 * at)).isoformat(" ").encode() for at in range(600)]
    texts += [
        b"0000-01-01T00:00:00",
        b"0001-01-01T00:00:00",
        b"1969-12-31T23:59:59",
        *([odd] if odd is not None else []),
    ]
    assert encoder(attribute)(pa.array(texts, pa.binary())).tolist() == [attribute.code(text) for text in texts]


def test_many_texts_are_read_once_each():
    """Rules are applied to distinct texts, not to a million cells."""
    calls = 0

    class Counting(Matching):
        def form(self, raw):
            nonlocal calls
            calls += 1
            return super().form(raw)

    attribute = Attribute.of_labels("x", ["a", "b"], unknown="?", matching=Counting(case=False))
    encode = encoder(attribute)
    calls = 0
    codes = encode(pc.take(pa.array(["A", "b", "c"]), pa.array(np.arange(30_000) % 3)))
    assert codes[:3].tolist() == [0, 1, 2] and calls <= 6


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_dates_in_milliseconds_need_be_no_whole_days(kind):
    # Arrow refuses to cast them to days: one record would be a reason to refuse a table.
    attribute = Attribute.from_dict("when", {"type": kind, "min": "1970-01-01", "max": "1970-01-03", "bins": "day"})
    raw = pa.array([0, 1, 86_399_999, 86_400_000, -1, 2**62, -(2**63)], pa.int64()).view(pa.date64())
    assert encoder(attribute)(raw).tolist() == [0, 0, 0, 1, *[attribute.unknown] * 3]


@pytest.mark.parametrize("values", [[], [None], [0]], ids=["no row", "a null", "a value"])
def test_a_zone_that_nobody_knows_is_refused_by_the_type(values):
    raw = pa.array(values, pa.timestamp("s", "No/Where"))
    with pytest.raises(pa.ArrowInvalid):  # which the sources shield
        encoder(Attribute.of_labels("a", ["x"], unknown="x"))(raw)
    with pytest.raises(pa.ArrowInvalid):
        as_text(raw)


@frozen
class Row:
    kind: Any
    value: Any
    text: str | None


ROWS = [
    Row(pa.int8(), 1, "1"),
    Row(pa.uint64(), 2**64 - 1, str(2**64 - 1)),
    Row(pa.int64(), -(2**63), str(-(2**63))),
    Row(pa.float64(), 1.0, "1"),
    Row(pa.float64(), -0.0, "0"),
    Row(pa.float64(), 0.1, "0.1"),
    Row(pa.float32(), 0.1, "0.1"),
    Row(pa.float64(), 1e22, "1" + "0" * 22),
    Row(pa.float64(), float("nan"), None),
    Row(pa.float64(), float("inf"), "inf"),
    Row(pa.float16(), np.float16(1.5), "1.5"),
    Row(pa.decimal128(9, 2), decimal.Decimal("1.00"), "1"),
    Row(pa.decimal128(9, 2), decimal.Decimal("-0.50"), "-0.5"),
    Row(pa.bool_(), True, "true"),
    Row(pa.date32(), datetime.date(2020, 1, 31), "2020-01-31"),
    Row(pa.timestamp("ns"), datetime.datetime(2020, 1, 31), "2020-01-31"),
    Row(pa.timestamp("us"), datetime.datetime(2020, 1, 31, 5, 30, 0, 120000), "2020-01-31T05:30:00.12"),
    Row(pa.timestamp("s", "UTC"), datetime.datetime(2020, 1, 31, tzinfo=datetime.UTC), "2020-01-31T00:00:00Z"),
    Row(pa.time64("us"), datetime.time(5, 30), "05:30:00"),
    Row(pa.string(), "Zürich", "Zürich"),
    Row(pa.large_string(), "Zürich", "Zürich"),
    Row(pa.string_view(), "Zürich", "Zürich"),
    Row(pa.binary(), b"\xff", "\udcff"),
    Row(pa.binary(2), b"ab", "ab"),
    Row(pa.dictionary(pa.int8(), pa.string()), "ab", "ab"),
    Row(pa.dictionary(pa.uint16(), pa.int64()), 7, "7"),
    Row(pa.run_end_encoded(pa.int32(), pa.int64()), 7, "7"),
    Row(pa.null(), None, None),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.text!r}")
def test_every_arrow_type_has_a_text(row):
    """Labels and person keys of any plain type compare by the documented text; nulls beside it stay null."""
    array = pa.array([row.value, None, row.value], row.kind)
    raw = None if row.text is None else row.text.encode("utf-8", "surrogateescape")
    assert as_text(array).to_pylist() == [raw, None, raw]
    label = row.text if row.text is not None and "\udcff" not in row.text else "other"
    attribute = Attribute.of_labels("x", ["first", label], unknown="?", null="none")
    code = attribute.code(raw)
    assert encoder(attribute)(array).tolist() == [code, 3, code]
    assert encoder(attribute)(array.slice(1)).tolist() == [3, code]
    assert encoder(attribute)(array.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_keys_of_a_part_are_the_keys_of_its_rows(kind):
    """A slice has its own keys and no bytes of other rows', as a kernel of pyarrow 18 to 23 would give it."""
    texts = ["", None, *(str(place) * (place % 4) for place in range(300))]
    wanted = [text.encode() if text else None for text in texts]
    for start, stop in ((0, 302), (7, 290), (7, 7), (302, 302)):
        part = key_texts("id", pa.array(texts, pa.string()).cast(kind)[start:stop])
        part.validate(full=True)
        assert part.to_pylist() == wanted[start:stop]
