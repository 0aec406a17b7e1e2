"""One domain, tables of records for it, and every way in: what the tests of sources share."""

import gzip
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from dpgm_core import DataError, Domain
from dpgm_core.domain.attribute import Attribute, code_dtype

DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
        Attribute.of_labels("coded", ["low", "high"], unknown="low", coded=True),
    ]
)


def a_table(rows=500, seed=0):
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


def expected(table):
    """The codes by `Attribute.code` on each value's text."""
    return Counter(
        tuple(
            attribute.code(None if record[attribute.name] is None else str(record[attribute.name]))
            for attribute in DOMAIN
        )
        for record in table.to_pylist()
    )


def codes(source, domain=DOMAIN):
    found = Counter()
    for batch in source.batches(domain, domain.names):
        assert [part.dtype for part in batch] == [code_dtype(attribute.size) for attribute in domain]
        found.update(zip(*(part.tolist() for part in batch), strict=True))
    return found


def refusal(call):
    """The message of the DataError raised; nothing planted may be in it, its cause or its context."""
    with pytest.raises(DataError) as caught:
        call()
    for error in (caught.value, caught.value.__cause__, caught.value.__context__):
        assert error is None or "SECRET" not in str(error)
    return str(caught.value)


def write_csv(table, path):
    buffer = pa.BufferOutputStream()
    plain = table.drop_columns(["note"])
    arrow_csv.write_csv(plain, buffer, arrow_csv.WriteOptions(quoting_style="none"))
    content = buffer.getvalue().to_pybytes().replace(b'"', b"")  # pyarrow puts the header in quotes all the same
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=97)
    return path


def write_ipc(table, path):
    feather.write_feather(table, path, chunksize=61)
    return path


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return path


def as_pandas(table, _):
    pytest.importorskip("pandas")
    frame = table.to_pandas()
    return frame.astype({"id": "Int64"}) if "id" in frame else frame


def as_polars(table, _):
    return pytest.importorskip("polars").from_arrow(table)


def as_categorical_polars(table, _):
    polars = pytest.importorskip("polars")
    return polars.from_arrow(table).with_columns(polars.col("town").cast(polars.Categorical))


CONNECTIONS: list[Any] = []  # one for all, which takes a tenth of a second; older relations do not keep theirs open


def as_duckdb(table, _):
    if not CONNECTIONS:
        CONNECTIONS.append(pytest.importorskip("duckdb").connect())
    return CONNECTIONS[0].from_arrow(table)


# each ends in what `as_source` takes; the first ones keep the column of persons
KEYED_WAYS = {
    "csv": lambda table, folder: write_csv(table, folder / "x.csv"),
    "csv.gz": lambda table, folder: write_csv(table, folder / "x.csv.gz"),
    "parquet": lambda table, folder: str(write_parquet(table, folder / "x.parquet")),
    "feather": lambda table, folder: write_ipc(table, folder / "x.feather"),
    "ipc stream": lambda table, folder: write_stream(table, folder / "x.arrow"),
    "pyarrow": lambda table, _: table,
    "pyarrow reader": lambda table, _: table.to_reader(max_chunksize=33),
    "pandas": as_pandas,
    "polars": as_polars,
    "polars categories": as_categorical_polars,
    "duckdb": as_duckdb,
}
WAYS = KEYED_WAYS | {
    "pyarrow dictionaries": lambda table, _: pa.table(
        [table["town"].dictionary_encode(), *table.columns[2:5]], DOMAIN.names
    )
}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture(params=KEYED_WAYS)
def keyed_way(request):
    """Each way in that keeps the column of persons."""
    return KEYED_WAYS[request.param]


@pytest.fixture(scope="session")
def visits():
    """Everything above under one name."""
    return SimpleNamespace(
        domain=DOMAIN, table=a_table, expected=expected, codes=codes, refusal=refusal, write_parquet=write_parquet,
        write_ipc=write_ipc, keyed_ways=KEYED_WAYS,
    )  # fmt: skip
