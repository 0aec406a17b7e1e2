"""A file is what it says it is, and a table of records is synthetic by its stamp alone."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from dpgm.comparison import Synthetic, read_subject
from dpgm.comparison.subjects import subject_of
from dpgm_core import DataError, Model, ModelFileError, NoisyTables

STAMP = {"dpgm": "0.2", "guarantee": "epsilon = 1", "synthetic": True, "private": True, "cost": {"epsilon": "1"}}


def test_each_kind_is_told(folder):
    """By what the file holds, and of records by the stamp."""
    assert isinstance(read_subject(folder / "m.dpgm"), Model)
    assert isinstance(read_subject(folder / "m.release.dpgm"), NoisyTables)
    assert isinstance(read_subject(folder / "s.parquet"), Synthetic)
    with pytest.raises(ModelFileError, match="there is no file"):
        read_subject(folder / "none.dpgm")
    with pytest.raises(DataError, match="there is no file"):
        read_subject(folder / "none.csv")


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        (None, "it may hold records of people"),
        ({**STAMP, "synthetic": False}, "it may hold records of people"),
        ({**STAMP, "synthetic": "yes"}, "it may hold records of people"),
        ({**STAMP, "guarantee": 1}, "it may hold records of people"),
        ({**STAMP, "completed": True}, "rows of people that dpgm complete filled in"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_records_without_a_stamp_are_refused(tmp_path, stamp, words, suffix):
    """Beside a CSV file, in the metadata of a Parquet file; the records are not read."""
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        path.write_bytes(b"\xff\xff")
        if stamp is not None:
            (tmp_path / "x.csv.dpgm.json").write_text(json.dumps(stamp))
    else:
        told = {} if stamp is None else {"dpgm": json.dumps(stamp)}
        pyarrow.parquet.write_table(pa.table({"a": ["x"]}).replace_schema_metadata(told), path)
    with pytest.raises(DataError, match=words):
        read_subject(path)


@pytest.mark.parametrize(
    ("stamp", "caveat"),
    [
        ({}, None),
        ({"private": False}, "NOT PRIVATE"),
        ({"private": "yes"}, "NOT PRIVATE"),
        ({"private": None}, "nothing is known"),
        ({"unsafe": "textbook noise"}, "UNSAFE: textbook noise"),
        ({"conditions": ["It is CONDITIONAL on N.", 3]}, "CONDITIONAL"),
        ({"cost": {"epsilon": []}, "provenance": {"learner": {"name": 3}}}, None),
    ],
)
def test_what_a_stamp_says_is_repeated(tmp_path, stamp, caveat):
    """Its caveats go with all that is computed from the records; what makes no sense is left out."""
    (tmp_path / "x.csv").write_text("a\nx\n")
    (tmp_path / "x.csv.dpgm.json").write_text(json.dumps(STAMP | stamp))
    found = subject_of("x", read_subject(tmp_path / "x.csv"))
    assert bool(found.caveats) is (caveat is not None)
    assert caveat is None or caveat in found.caveats[0]
    assert found.facts["cost"] == (None if "cost" in stamp else "epsilon = 1") and found.facts["learner"] is None
