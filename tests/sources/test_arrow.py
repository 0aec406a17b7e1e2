"""Arrow files and streams: each type has a text, damage is refused without content."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm_core.sources import as_source
from dpgm_core.sources.persons import PersonSource


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path, visits: SimpleNamespace) -> None:
    """Every way in says which column is missing and what it may be called."""
    table = visits.table(5)
    renamed = table.rename_columns(["id", "town", "age", "visitz", "coded", "note"])
    for make in visits.keyed_ways.values():
        message = visits.refusal(lambda make=make: visits.codes(as_source(make(renamed, tmp_path))))
        assert "no column 'visits'; did you mean 'visitz'?" in message
    nobody = PersonSource(source=as_source(table), person="person")
    assert "no column 'person'" in visits.refusal(lambda: visits.codes(nobody))
    assert "no column 'town'" in visits.refusal(lambda: visits.codes(as_source({"a": np.zeros(2, int)})))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_a_damaged_file_is_refused_without_content(suffix: str, tmp_path: Path, visits: SimpleNamespace) -> None:
    """Not the format at all, cut short, or bytes overwritten in the middle: the file is named, nothing is quoted."""
    garbage = tmp_path / f"garbage{suffix}"
    garbage.write_bytes(b"SECRET" * 100)
    assert str(garbage) in visits.refusal(lambda: visits.codes(as_source(garbage)))
    table = pa.table({name: pa.array([f"SECRET{i % 7000}" for i in range(20_000)]) for name in visits.domain.names})
    whole = tmp_path / f"whole{suffix}"
    (visits.write_parquet if suffix == ".parquet" else visits.write_ipc)(table, whole)
    content = whole.read_bytes()
    damaged = tmp_path / f"damaged{suffix}"
    damaged.write_bytes(content[: len(content) // 2])
    assert str(damaged) in visits.refusal(lambda: visits.codes(as_source(damaged)))
    assert "No such file" in visits.refusal(lambda: visits.codes(as_source(tmp_path / f"no{suffix}")))


def test_a_damaged_row_group_quotes_nothing(tmp_path: Path, visits: SimpleNamespace) -> None:
    """A Parquet page that cannot be decompressed ends the reading with the file's name alone."""
    path = tmp_path / "x.parquet"
    table = pa.table({name: pa.array([f"SECRET{i}" for i in range(3000)]) for name in visits.domain.names})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, row_group_size=1000)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 300] = b"\xff" * 300
    path.write_bytes(content)
    assert visits.refusal(lambda: visits.codes(as_source(path))) == f"{path} cannot be read as Parquet"


def test_one_odd_value_in_an_object_column_changes_one_record(visits: SimpleNamespace) -> None:
    """A pandas column of mixed types is read value by value: neither a refusal nor another reading of the others."""
    pandas = pytest.importorskip("pandas")
    plain = pandas.DataFrame({"town": ["A", "B", "A"], "age": 1, "visits": [1, 2, 1], "coded": 1}).astype(object)
    odd = plain.copy()
    odd.at[1, "town"], odd.at[1, "visits"] = ["SECRET"], object()
    before, after = visits.codes(as_source(plain)), visits.codes(as_source(odd))
    assert sum((before - after).values()) == sum((after - before).values()) == 1


def test_nested_columns_are_refused(visits: SimpleNamespace) -> None:
    """Lists have no label; the refusal does not show one."""
    table = pa.table({name: pa.array([["SECRET"]]) for name in visits.domain.names})
    assert "nested values" in visits.refusal(lambda: visits.codes(as_source(table)))


def test_a_stream_that_was_read_is_not_an_empty_data_set(visits: SimpleNamespace) -> None:
    """The second release from a RecordBatchReader is refused instead of counting no records."""
    source = as_source(visits.table().to_reader())
    assert visits.codes(source)
    assert "only once" in visits.refusal(lambda: visits.codes(source))
