"""Arrow files and streams: each type has a text, damage is refused without content."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from dpgm_core.domain import Domain
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


READ = """
import sys
from dpgm_core import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
domain = Domain.from_dict({"a": {"labels": ["x", "y"], "unknown": "?"}})
for path in sys.argv[1:]:
    try:
        print([int(code) for (codes,) in as_source(path).batches(domain, ["a"]) for code in codes], flush=True)
    except DataError:
        print("refused", flush=True)
"""


def read_alone(*paths: Path) -> list[str]:
    """What a process of its own makes of files: wild memory is a signal, no exception."""
    done = subprocess.run([sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


def test_places_outside_of_a_file_are_not_read(tmp_path: Path) -> None:
    """A damaged file may say that a text begins gigabytes behind its end: Arrow went there, and the process died."""
    paths = []
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())):
        for new in (pa.ipc.new_stream, pa.ipc.new_file):
            sound, damaged = tmp_path / f"{len(paths)}.arrow", tmp_path / f"{len(paths)}-damaged.arrow"
            array = pa.array(["x", "y", "x", "zz"], pa.string()).cast(kind)
            with new(sound, pa.schema([("a", kind)])) as writer:
                writer.write_batch(pa.record_batch([array], ["a"]))
            ends = [0, 1, 2, 4] if pa.types.is_dictionary(kind) else [0, 1, 2, 3, 5]
            before = np.array(ends, np.int64 if pa.types.is_large_string(kind) else np.int32)
            after = before.copy()
            after[1:-1] = 2**30
            assert sound.read_bytes().count(before.tobytes()) == 1
            damaged.write_bytes(sound.read_bytes().replace(before.tobytes(), after.tobytes()))
            paths += [sound, damaged]
    assert read_alone(*paths) == ["[0, 1, 0, 2]", "refused"] * 8


@pytest.mark.parametrize("place", [-1, 3, 2**31 - 1])
def test_keys_outside_of_a_dictionary_are_refused(visits: SimpleNamespace, place: int) -> None:
    """They are no value that somebody could have; -1 was read as the last one."""
    keys = pa.array([0, 1, place, None], pa.int32())
    array = pa.DictionaryArray.from_arrays(keys, pa.array(["x", "y", "zz"]), safe=False)
    domain = Domain.from_dict({"a": {"labels": ["x", "y"], "unknown": "?"}})
    assert "cannot be read" in visits.refusal(lambda: list(as_source(pa.table({"a": array})).batches(domain, ["a"])))


def test_no_text_is_a_reason_to_refuse_a_file() -> None:
    """Letters that are no UTF-8 make one record unknown, also where the type promises UTF-8."""
    odd = pa.array([b"x", b"\xff\xfe", b"y"]).view(pa.string())
    domain = Domain.from_dict({"a": {"labels": ["x", "y"], "unknown": "?"}})
    for array in (odd, pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), odd)):
        ((codes,),) = as_source(pa.table({"a": array})).batches(domain, ["a"])
        assert codes.tolist() == [0, 2, 1]
