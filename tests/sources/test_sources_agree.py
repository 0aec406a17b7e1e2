"""One table, every way in: the codes do not depend on the format, the type, the batches or the row order."""

from __future__ import annotations

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

from dpgm_core.domain import Attribute, Domain, code_dtype
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowIpcSource, ArrowSource, ParquetSource
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.contract import Source
from dpgm_core.sources.csv import CsvSource

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


# --- refusals ---------------------------------------------------------------------------------------------------


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
