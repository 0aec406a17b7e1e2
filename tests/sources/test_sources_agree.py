"""One table, every way in: the codes do not depend on the format, the type, the batches or the row order."""

from __future__ import annotations

import datetime
import decimal
import gzip
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain import Attribute, Domain, code_dtype
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowIpcSource, ArrowSource, ParquetSource
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.contract import Source
from dpgm_core.sources.csv import CsvSource
from dpgm_core.sources.encoding import encoder
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.texts import as_text

DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
        Attribute.of_labels("coded", ["low", "high"], unknown="low", coded=True),
    ]
)


def a_table(rows: int = 500, seed: int = 0) -> pa.Table:
    """Records with unknown, null and out-of-range values in every column; age is a float, visits whole."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": pa.array(rng.integers(0, rows // 3 + 1, rows), mask=rng.random(rows) < 0.05),
            "town": rng.choice(np.array(["A", "B", "Zürich", "C", None], object), rows),
            "age": pa.array(
                rng.choice([0.0, 3.5, 18.0, 64.9, 65.0, 99.0, -1.0, 1e9], rows), mask=rng.random(rows) < 0.1
            ),
            "visits": pa.array(rng.integers(-1, 6, rows), mask=rng.random(rows) < 0.1),
            "coded": rng.integers(0, 3, rows).astype(np.int16),
            "note": ["free, text"] * rows,
        }
    )


def expected(table: pa.Table) -> Counter[tuple[int, ...]]:
    """The codes by `Attribute.code` on each value's text."""
    return Counter(
        tuple(
            attribute.code(None if record[attribute.name] is None else str(record[attribute.name]))
            for attribute in DOMAIN
        )
        for record in table.to_pylist()
    )


def codes(source: Source, domain: Domain = DOMAIN) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for batch in source.batches(domain, domain.names):
        assert [part.dtype for part in batch] == [code_dtype(attribute.size) for attribute in domain]
        found.update(zip(*(part.tolist() for part in batch), strict=True))
    return found


def write_csv(table: pa.Table, path: Path) -> Path:
    buffer = pa.BufferOutputStream()
    plain = table.drop_columns(["note"])
    arrow_csv.write_csv(plain, buffer, arrow_csv.WriteOptions(quoting_style="none"))
    content = buffer.getvalue().to_pybytes().replace(b'"', b"")  # pyarrow puts the header in quotes all the same
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path, row_group_size=97)
    return path


def write_ipc(table: pa.Table, path: Path) -> Path:
    feather.write_feather(table, path, chunksize=61)
    return path


def write_stream(table: pa.Table, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return path


def as_pandas(table: pa.Table, _: Path) -> Any:
    pytest.importorskip("pandas")
    frame = table.to_pandas()
    return frame.astype({"id": "Int64"}) if "id" in frame else frame


def as_polars(table: pa.Table, _: Path) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def as_categorical_polars(table: pa.Table, _: Path) -> Any:
    polars = pytest.importorskip("polars")
    return polars.from_arrow(table).with_columns(polars.col("town").cast(polars.Categorical))


def as_duckdb(table: pa.Table, _: Path) -> Any:
    return pytest.importorskip("duckdb").connect().from_arrow(table)


WAYS = {
    "csv": lambda table, folder: write_csv(table, folder / "x.csv"),
    "csv.gz": lambda table, folder: write_csv(table, folder / "x.csv.gz"),
    "parquet": lambda table, folder: str(write_parquet(table, folder / "x.parquet")),
    "feather": lambda table, folder: write_ipc(table, folder / "x.feather"),
    "ipc stream": lambda table, folder: write_stream(table, folder / "x.arrow"),
    "pyarrow": lambda table, _: table,
    "pyarrow reader": lambda table, _: table.to_reader(max_chunksize=33),
    "pyarrow dictionaries": lambda table, _: pa.table(
        [table["town"].dictionary_encode(), *table.columns[2:5]], DOMAIN.names
    ),
    "pandas": as_pandas,
    "polars": as_polars,
    "polars categories": as_categorical_polars,
    "duckdb": as_duckdb,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_gives_the_reference_codes(way: str, tmp_path: Path) -> None:
    """Each format and frame yields exactly what `Attribute.code` says, value by value."""
    table = a_table()
    assert codes(as_source(WAYS[way](table, tmp_path))) == expected(table)


def test_codes_ways_in_agree() -> None:
    """A 2-d array in either layout, a mapping, and every integer type: codes outside the labels are unknown."""
    rng = np.random.default_rng(0)
    raw = rng.integers(-2, 7, size=(300, 4))
    wanted = Counter(
        tuple(int(code) if 0 <= code < a.size else a.unknown for code, a in zip(row, DOMAIN, strict=True))
        for row in raw
    )
    assert codes(as_source(raw)) == codes(as_source(np.asfortranarray(raw.astype(np.int8)))) == wanted
    assert codes(as_source({name: raw[:, i] for i, name in enumerate(DOMAIN.names)})) == wanted


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
def test_every_arrow_type_has_a_text(row: Row) -> None:
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


@pytest.mark.parametrize(
    ("labels", "hits"), [(["false", "true"], 1), (["False", "True"], 1), (["1", "0"], 0), (["yes", "no"], 2)]
)
def test_booleans_match_the_pair_the_labels_know(labels: list[str], hits: int) -> None:
    """true/false, else True/False, else 1/0: decided by the domain alone."""
    attribute = Attribute.of_labels("x", labels, unknown="?")
    assert encoder(attribute)(pa.array([True])).tolist() == [hits]


ANY_VALUE = st.one_of(
    st.binary(max_size=6),
    st.integers(-50, 50).map(lambda number: str(number).encode()),
    st.floats(width=32).map(lambda number: repr(number).encode()),
    st.sampled_from([b"", b"NA", b" 1 ", b"1_0", b"+3", b"1e1", b"nan", b"inf", b"0x1", b"1.", b"\x1c1", b"1\0", b"A"]),
    st.none(),
)
ATTRIBUTES = [
    Attribute.of_labels("x", ["A", "3", "03", "-7", ""], unknown="?", null="none", null_values=["NA", "A"]),
    Attribute.of_labels("x", ["A", "B"], unknown="B", null="A", coded=True),
    Attribute.of_bins("x", [-10, 0, 0.5, 10], unknown="?", null="none", null_values=["NA", "", "7"]),
    Attribute.of_bins("x", [float("-inf"), 0, float("inf")], unknown="?"),
    Attribute.of_size("x", 300, unknown=299, null=7),
]


@settings(deadline=None, max_examples=200)
@given(st.lists(ANY_VALUE, max_size=20), st.sampled_from(ATTRIBUTES))
def test_texts_encode_as_the_reference_does(values: list[bytes | None], attribute: Attribute) -> None:
    """`encoder` is `Attribute.code`, for any bytes, with and without a dictionary."""
    wanted = [attribute.code(value) for value in values]
    for kind in (pa.binary(), pa.large_binary()):
        array = pa.array(values, kind)
        assert encoder(attribute)(array).tolist() == wanted
        assert encoder(attribute)(array.dictionary_encode()).tolist() == wanted


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-12, 12)), max_size=20),
    st.sampled_from(ATTRIBUTES),
)
@example([10, -10, 7, 0], ATTRIBUTES[2])
def test_whole_numbers_encode_as_their_digits(values: list[int | None], attribute: Attribute) -> None:
    """As int32, int64, double and decimal, a whole number means what its digits mean."""
    wanted = [attribute.code(None if value is None else str(value)) for value in values]
    for kind in (pa.int32(), pa.int64(), pa.float64(), pa.decimal128(30, 3)):
        assert encoder(attribute)(pa.array(values, pa.int64()).cast(kind)).tolist() == wanted


@pytest.mark.parametrize(
    "labels", [["5", str(2**63 - 1)], [str(-(2**63)), "5"], [str(2**64 - 1), "5"], ["5", "9" * 19]]
)
def test_labels_at_the_ends_of_the_integers(labels: list[str]) -> None:
    """No wrap-around makes a huge number a label it is not."""
    attribute = Attribute.of_labels("x", labels, unknown="?")
    for kind in (pa.int8(), pa.int64(), pa.uint64()):
        info = np.iinfo(kind.to_pandas_dtype())
        values = [value for value in (5, 0, info.min, info.max, info.max - 1) if info.min <= value]
        assert encoder(attribute)(pa.array(values, kind)).tolist() == [attribute.code(str(value)) for value in values]


# --- persons ----------------------------------------------------------------------------------------------------


def kept_by_hand(table: pa.Table, r: int) -> Counter[tuple[int, ...]]:
    """Truncation in pure Python."""
    persons: dict[str | None, list[tuple[int, ...]]] = {}
    for record in table.to_pylist():
        row = tuple(a.code(None if record[a.name] is None else str(record[a.name])) for a in DOMAIN)
        persons.setdefault(None if record["id"] is None else str(record["id"]), []).append(row)
    return Counter(row for rows in persons.values() for row in sorted(rows)[:r])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "pyarrow dictionaries"])
@pytest.mark.parametrize("r", [1, 3])
def test_every_way_in_keeps_the_same_rows_of_a_person(way: str, r: int, tmp_path: Path) -> None:
    """Truncation does not depend on the format, nor on ids being whole or text."""
    table = a_table()
    source = PersonSource(source=as_source(WAYS[way](table, tmp_path)), person="id", rows_per_person=r)
    assert codes(source) == kept_by_hand(table, r)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(1, 4), st.integers(1, 20), st.randoms(use_true_random=False))
def test_truncation_ignores_row_order_and_batches(rows: int, r: int, chunk: int, random: Any) -> None:
    """Any order of the rows and any batches keep the same rows, whichever columns are counted."""
    table = a_table(rows, seed=3)
    order = random.sample(range(rows), rows)
    shuffled = table.take(pa.array(order, pa.int64())).to_reader(max_chunksize=chunk)
    source = PersonSource(source=as_source(shuffled), person="id", rows_per_person=r)
    wanted = kept_by_hand(table, r)
    found = list(source.batches(DOMAIN, ["coded", "town"]))
    assert Counter(pair for batch in found for pair in zip(*(part.tolist() for part in batch), strict=True)) == Counter(
        pair for row, times in wanted.items() for pair in [(row[3], row[0])] * times
    )


def test_many_merges_keep_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compacting on the way changes nothing."""
    from dpgm_core.sources import arrow, persons

    table = a_table(2000, seed=4)
    monkeypatch.setattr(persons, "BATCH_ROWS", 4)
    monkeypatch.setattr(arrow, "BATCH_ROWS", 16)
    assert codes(PersonSource(source=as_source(table), person="id", rows_per_person=2)) == kept_by_hand(table, 2)


def test_tuples_beyond_one_word_compare_in_order() -> None:
    """Rows of 40 attributes do not fit 64 bits; the smallest tuple is still the one kept."""
    rng = np.random.default_rng(5)
    domain = Domain.from_sizes({f"x{i}": int(size) for i, size in enumerate(rng.integers(1, 400, 40))})
    raw = {name: rng.integers(0, min(size, 2), 60) for name, size in domain.sizes.items()}
    person = rng.integers(0, 9, 60)
    tuples = sorted(zip(person.tolist(), *(column.tolist() for column in raw.values()), strict=True))
    wanted = {row[0]: row[1:] for row in reversed(tuples)}
    source = PersonSource(source=as_source(raw | {"id": person}), person="id")
    assert codes(source, domain) == Counter(wanted.values())


def test_keys_compare_as_texts_and_missing_keys_are_one_person(tmp_path: Path) -> None:
    """1 and "1" are one person; empty and null keys are one person; malformed lines belong to it."""
    domain = Domain.from_sizes({"a": 9}, unknown=8)
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,a\n1,3\n1,2\n,5\n,4\nbroken\n01,7\n")
    assert codes(PersonSource(source=as_source(path), person="id"), domain) == Counter([(2,), (4,), (7,)])
    for ids in (pa.array([1, 1, None]), pa.array([1, 1, None], pa.uint8()), pa.array(["1", "1", ""])):
        table = pa.table({"id": ids, "a": [3, 2, 5]})
        assert codes(PersonSource(source=as_source(table), person="id"), domain) == Counter([(2,), (5,)])


# --- refusals ---------------------------------------------------------------------------------------------------


def refusal(call: Any) -> str:
    """The message of the DataError raised; nothing planted may be in it, its cause or its context."""
    with pytest.raises(DataError) as caught:
        call()
    for error in (caught.value, caught.value.__cause__, caught.value.__context__):
        assert error is None or "SECRET" not in str(error)
    return str(caught.value)


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    """Every way in says which column is missing and what it may be called."""
    table = a_table(5)
    for way, make in WAYS.items():
        renamed = table.rename_columns(["id", "town", "age", "visitz", "coded", "note"])
        if way != "pyarrow dictionaries":
            message = refusal(lambda make=make, renamed=renamed: codes(as_source(make(renamed, tmp_path))))
            assert "no column 'visits'; did you mean 'visitz'?" in message
    assert "no column 'person'" in refusal(lambda: codes(PersonSource(source=as_source(table), person="person")))
    assert "no column 'town'" in refusal(lambda: codes(as_source({"a": np.zeros(2, int)})))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_a_damaged_file_is_refused_without_content(suffix: str, tmp_path: Path) -> None:
    """Not the format at all, cut short, or bytes overwritten in the middle: the file is named, nothing is quoted."""
    garbage = tmp_path / f"garbage{suffix}"
    garbage.write_bytes(b"SECRET" * 100)
    assert str(garbage) in refusal(lambda: codes(as_source(garbage)))
    table = pa.table({name: pa.array([f"SECRET{i % 7000}" for i in range(20_000)]) for name in DOMAIN.names})
    whole = tmp_path / f"whole{suffix}"
    (write_parquet if suffix == ".parquet" else write_ipc)(table, whole)
    content = whole.read_bytes()
    damaged = tmp_path / f"damaged{suffix}"
    damaged.write_bytes(content[: len(content) // 2])
    assert str(damaged) in refusal(lambda: codes(as_source(damaged)))
    assert "No such file" in refusal(lambda: codes(as_source(tmp_path / f"no{suffix}")))


def test_a_damaged_row_group_quotes_nothing(tmp_path: Path) -> None:
    """A Parquet page that cannot be decompressed ends the reading with the file's name alone."""
    path = tmp_path / "x.parquet"
    table = pa.table({name: pa.array([f"SECRET{i}" for i in range(3000)]) for name in DOMAIN.names})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=1000)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 300] = b"\xff" * 300
    path.write_bytes(content)
    assert refusal(lambda: codes(as_source(path))) == f"{path} cannot be read as Parquet"


def test_one_odd_value_in_an_object_column_changes_one_record() -> None:
    """A pandas column of mixed types is read value by value: neither a refusal nor another reading of the others."""
    pandas = pytest.importorskip("pandas")
    plain = pandas.DataFrame({"town": ["A", "B", "A"], "age": 1, "visits": [1, 2, 1], "coded": 1}).astype(object)
    odd = plain.copy()
    odd.at[1, "town"], odd.at[1, "visits"] = ["SECRET"], object()
    before, after = codes(as_source(plain)), codes(as_source(odd))
    assert sum((before - after).values()) == sum((after - before).values()) == 1


def test_nested_columns_are_refused() -> None:
    """Lists have no label; the refusal does not show one."""
    table = pa.table({name: pa.array([["SECRET"]]) for name in DOMAIN.names})
    assert "nested values" in refusal(lambda: codes(as_source(table)))


@pytest.mark.parametrize(
    "data",
    [
        np.zeros((3, 4)),
        np.zeros((3, 4), bool),
        np.full((3, 4), "SECRET", object),
        np.zeros(3, int),
        np.zeros((3, 5), int),
        {},
        {1: np.zeros(3, int)},
        dict.fromkeys(DOMAIN.names, np.array(["SECRET"])),
        dict.fromkeys(DOMAIN.names, np.array([1.0])),
        {name: np.zeros(number, int) for number, name in enumerate(DOMAIN.names)},
        "x.txt",
        "x",
        Path("SECRET.gz"),
        None,
        7,
        [1, 2],
        object(),
        CsvSource,
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_cannot_hold_records_is_refused(data: object) -> None:
    """One clear line, nothing of the content."""
    with pytest.raises(DataError) as caught:
        codes(as_source(data))
    assert "SECRET" not in str(caught.value).replace("SECRET.gz", "")


def test_a_stream_that_was_read_is_not_an_empty_data_set() -> None:
    """The second release from a RecordBatchReader is refused instead of counting no records."""
    source = as_source(a_table().to_reader())
    assert codes(source)
    assert "only once" in refusal(lambda: codes(source))


def test_a_source_without_keys_cannot_serve_persons() -> None:
    """A third party's plain source is refused before anything is read."""

    class Plain:
        def batches(self, domain, columns):  # type: ignore[no-untyped-def]
            raise AssertionError

    assert "keyed_batches" in refusal(lambda: PersonSource(source=Plain(), person="id"))


@pytest.mark.parametrize(
    ("batch", "keys"),
    [
        ([np.array([0.5])], pa.array(["SECRET"])),
        ([np.array([0])], pa.array(["SECRET", "SECRET"])),
        ([np.array([0])], ["SECRET"]),
        ([], pa.array(["SECRET"])),
    ],
)
def test_a_third_partys_keyed_batches_are_checked(batch: list[Any], keys: Any) -> None:
    """Faults name the source; codes out of range are unknown instead of another record's."""

    class Mine:
        def batches(self, domain, columns):  # type: ignore[no-untyped-def]
            raise AssertionError

        def keyed_batches(self, domain, columns, key):  # type: ignore[no-untyped-def]
            yield [np.array([9, -1])], pa.array(["p", "q"])
            yield batch, keys

    domain = Domain.from_sizes({"a": 3}, unknown=2)
    assert "source Mine" in refusal(lambda: codes(PersonSource(source=Mine(), person="id"), domain))
    batch[:], keys = [np.array([1])], pa.array(["p"])
    assert codes(PersonSource(source=Mine(), person="id"), domain) == Counter([(1,), (2,)])


def test_reprs_hide_records() -> None:
    """A source's repr, as a debugger or an error may show it, has no value in it."""
    assert repr(ArrowSource(data=pa.table({"a": ["SECRET"]}))) == "ArrowSource(data=Table)"
    assert repr(CodesSource(data=np.full((1, 1), 777))) == "CodesSource(data=ndarray)"


def test_sources_are_told_by_the_name_of_the_file() -> None:
    """Each suffix, in any case, has its reader; a source stays what it is."""
    kinds = {"a.CSV": CsvSource, "a.csv.gz": CsvSource, "a.parquet": ParquetSource, "a.ipc": ArrowIpcSource}
    for name, kind in kinds.items():
        source = as_source(name)
        assert isinstance(source, kind) and as_source(source) is source


def test_memory_does_not_grow_with_the_file() -> None:
    """Reading a Parquet file of 64 MB of texts in one row group holds a few batches of it at a time."""
    rows = 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        column = pa.array([f"{i:032d}" for i in range(1000)]).take(pa.array(np.arange(rows) % 1000))
        pq.write_table(pa.table({"a": column}), path, row_group_size=rows, use_dictionary=False)
        del column
        before = pa.total_allocated_bytes()
        domain = Domain([Attribute.of_labels("a", [f"{5:032d}"], unknown="?")])
        peak = seen = 0
        for batch in ParquetSource(path=path).batches(domain, ["a"]):
            seen += len(batch[0])
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == rows
    assert peak < 32e6
