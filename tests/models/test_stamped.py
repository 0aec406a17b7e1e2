"""Whatever stands in the place of a stamp, it is one or it is none."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from dpgm_core.models.model_file import read_stamp, sidecar_path

STAMP = {"dpgm": "0.2", "guarantee": "epsilon = 1"}


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"dpgm": 1}', "[" * 100_000, json.dumps(json.dumps(STAMP))])
def test_what_is_no_stamp(tmp_path, text):
    """Broken, deep or other JSON, as a file and in metadata."""
    path = sidecar_path(tmp_path / "x.csv")
    path.write_text(text)
    pyarrow.parquet.write_table(pa.table({"a": [1]}).replace_schema_metadata({"dpgm": text}), tmp_path / "x.parquet")
    assert read_stamp(path) is None and read_stamp(tmp_path / "x.parquet") is None


def test_stamps_are_read(tmp_path):
    """As a file, and in the metadata of a Parquet file; of files that are not there or broken there is none."""
    path = sidecar_path(tmp_path / "x.csv")
    path.write_text(json.dumps(STAMP))
    table = pa.table({"a": [1]}).replace_schema_metadata({"dpgm": json.dumps(STAMP)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert read_stamp(path) == read_stamp(tmp_path / "x.parquet") == STAMP
    (tmp_path / "y.arrow").write_bytes(b"no")
    assert read_stamp(tmp_path / "y.arrow") is None and read_stamp(tmp_path / "y.json") is None
