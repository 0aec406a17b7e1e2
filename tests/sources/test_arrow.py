"""Arrow files and streams: each type has a text, damage is refused without content."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from dpgm_core.domain import Attribute, Domain, code_dtype
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import Source
from dpgm_core.sources.persons import PersonSource

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


def test_a_stream_that_was_read_is_not_an_empty_data_set() -> None:
    """The second release from a RecordBatchReader is refused instead of counting no records."""
    source = as_source(a_table().to_reader())
    assert codes(source)
    assert "only once" in refusal(lambda: codes(source))
