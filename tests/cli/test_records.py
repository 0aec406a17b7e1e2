"""A file of sampled records never parts from its guarantee."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from dpgm_core.cli.records import write_records


@pytest.fixture
def seeded() -> dpgm.Model:
    """A model that is not private, of labels that need no quotes."""
    structure = dpgm.Structure.chain(dpgm.Domain.from_dict({"sex": ["F", "M"], "age": ["young", "old"]}))
    options = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(1)}
    return dpgm.fit(np.zeros((50, 2), int), structure, dpgm.Budget.pure(5), **options).model


def read_stamp(path) -> dict[str, object]:
    if path.suffix == ".csv":
        return json.loads(path.with_name(f"{path.name}.dpgm.json").read_text())
    if path.suffix == ".parquet":
        schema = pyarrow.parquet.read_schema(path)
    else:
        schema = pyarrow.ipc.open_file(path).schema
    return json.loads(schema.metadata[b"dpgm"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_every_format_carries_the_stamp(seeded, tmp_path, suffix, dpgm_command):
    """Schema metadata, or a file beside a CSV file; the records themselves are as they were."""
    seeded.save(tmp_path / "m.dpgm")
    path = tmp_path / f"s{suffix}"
    assert dpgm_command("sample", tmp_path / "m.dpgm", "-n", 5, "-o", path, "--seed", 1)[0] == 0
    stamp = read_stamp(path)
    assert stamp == dpgm.load_model(tmp_path / "m.dpgm").stamp()
    assert stamp["private"] is False and stamp["guarantee"].startswith("NOT PRIVATE")
    assert set(stamp["provenance"]) == {"learner", "inference"}  # settings; nothing that was learned
    if suffix == ".csv":
        assert pyarrow.csv.read_csv(path).shape == (5, 2)
    data = ("evaluate", tmp_path / "m.dpgm", "--data", path, "--allow-non-private")
    assert dpgm_command(*data)[0] == 0  # still records that can be read


def test_each_data_set_has_its_own(seeded, tmp_path, dpgm_command):
    """Two CSV files, two stamps."""
    seeded.save(tmp_path / "m.dpgm")
    assert dpgm_command("sample", tmp_path / "m.dpgm", "-n", 5, "-o", tmp_path / "s.csv", "--datasets", 2)[0] == 0
    assert all(read_stamp(tmp_path / f"s-{number}.csv")["private"] is False for number in (1, 2))


def test_a_stamp_is_replaced_with_its_records(seeded, tmp_path, monkeypatch):
    """And where only one of the two could be written, no stamp of other records is left."""
    path, beside = tmp_path / "s.csv", tmp_path / "s.csv.dpgm.json"
    beside.write_text('{"dpgm": "0.1", "guarantee": "", "private": true}')
    write_records(seeded.sample(3), path, quoted=False)
    assert json.loads(beside.read_text())["private"] is False

    def full(path, content):
        raise dpgm.ModelFileError("the disk is full")

    monkeypatch.setattr("dpgm_core.files.atomic_write", full)
    with pytest.raises(dpgm.ModelFileError):
        write_records(seeded.sample(3), path, quoted=False)
    assert path.exists() and not beside.exists()


@pytest.mark.parametrize("content", [None, b"", b"not ours", b"[1]", b'{"guarantee": 1}', b"\xff"])
def test_what_is_no_stamp_is_not_replaced(seeded, tmp_path, content):
    """Another file, or a folder, of its name stays as it is, and the records are not written either."""
    beside = tmp_path / "s.csv.dpgm.json"
    if content is None:
        beside.mkdir()
    else:
        beside.write_bytes(content)
    with pytest.raises(dpgm.ModelFileError, match="no stamp of dpgm"):
        write_records(seeded.sample(3), tmp_path / "s.csv", quoted=False)
    assert not (tmp_path / "s.csv").exists()
    assert beside.is_dir() if content is None else beside.read_bytes() == content
