"""At most r rows of a person are kept, whatever their order."""

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
from hypothesis import given, settings
from hypothesis import strategies as st

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


def refusal(call: Any) -> str:
    """The message of the DataError raised; nothing planted may be in it, its cause or its context."""
    with pytest.raises(DataError) as caught:
        call()
    for error in (caught.value, caught.value.__cause__, caught.value.__context__):
        assert error is None or "SECRET" not in str(error)
    return str(caught.value)


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
