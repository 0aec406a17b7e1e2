"""A file of sampled records never parts from its guarantee."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of
from dpgm.cli.records import write_records
from dpgm_core.sources import as_source


@pytest.fixture
def seeded() -> dpgm.Model:
    """A model that is not private, of labels that need no quotes."""
    structure = dpgm.Structure.chain(domain_of(sex="F M", age="young old"))
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
    """Schema metadata, or a file beside a CSV file, of each of several; the records themselves are as they were."""
    seeded.save(tmp_path / "m.dpgm")
    path = tmp_path / f"s{suffix}"
    assert dpgm_command("sample", tmp_path / "m.dpgm", "-n", 5, "-o", path, "--seed", 1)[0] == 0
    stamp = read_stamp(path)
    assert "standard errors" in stamp.pop("analysis")
    assert stamp == dpgm.load_model(tmp_path / "m.dpgm").stamp() | {"synthetic": True}
    assert stamp["private"] is False and stamp["guarantee"].startswith("NOT PRIVATE")
    assert set(stamp["provenance"]) == {"learner", "inference"}  # settings; nothing that was learned
    if suffix == ".csv":
        assert pyarrow.csv.read_csv(path).shape == (5, 2)
        assert dpgm_command("sample", tmp_path / "m.dpgm", "-n", 5, "-o", path, "--datasets", 2)[0] == 0
        assert all(read_stamp(tmp_path / f"s-{number}.csv")["private"] is False for number in (1, 2))
    data = ("compare", tmp_path / "m.dpgm", "--data", path, "--allow-non-private")
    assert dpgm_command(*data)[0] == 0  # still records that can be read


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_an_earlier_sample_is_replaced(seeded, tmp_path, monkeypatch, suffix):
    """Its stamp tells; and where only one of records and stamp could be written, no records are without their own."""
    path = tmp_path / f"s{suffix}"
    for count in (3, 5):
        write_records([seeded.sample(count)], path, quoted=False)
    assert as_source(path).names() and read_stamp(path)["private"] is False
    written: list[str] = []

    def full(temporary, path):
        written.append(path.name)
        raise OSError("the disk is full")

    monkeypatch.setattr("dpgm_core._util.files._named", full)
    with pytest.raises(dpgm.ModelFileError):
        write_records([seeded.sample(3)], path, quoted=False)
    assert not list(tmp_path.iterdir()) and written == ["s.csv.dpgm.json" if suffix == ".csv" else path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_what_is_no_sample_is_not_replaced(seeded, tmp_path, suffix):
    """Records, though of the same columns and format, and a link to a sample."""
    path, link = tmp_path / f"s{suffix}", tmp_path / f"link{suffix}"
    stamped = seeded.sample(3).replace_schema_metadata({"dpgm": b'{"dpgm": 1, "guarantee": ""}'})
    write_records([stamped], path, quoted=False)
    link.symlink_to(path)
    if suffix == ".csv":
        link.with_name("link.csv.dpgm.json").write_text('{"dpgm": 1, "guarantee": ""}')
    with pytest.raises(dpgm.ModelFileError, match="nothing is replaced there"):
        write_records([seeded.sample(4)], link, quoted=False)
    records = tmp_path / f"records{suffix}"
    plain = seeded.sample(3).replace_schema_metadata(None)
    if suffix == ".csv":
        pyarrow.csv.write_csv(plain, records)
    elif suffix == ".parquet":
        pyarrow.parquet.write_table(plain, records)
    else:
        with pyarrow.ipc.new_file(records, plain.schema) as writer:
            writer.write_table(plain)
    before = records.read_bytes()
    with pytest.raises(dpgm.ModelFileError, match="nothing is replaced there"):
        write_records([seeded.sample(4)], records, quoted=False)
    assert records.read_bytes() == before


@pytest.mark.parametrize("content", [None, b"", b"not ours", b"[1]", b'{"guarantee": 1}', b"\xff"])
def test_what_is_no_stamp_is_not_replaced(seeded, tmp_path, content):
    """Another file, or a folder, of its name stays as it is, and the records are not written either."""
    beside = tmp_path / "s.csv.dpgm.json"
    if content is None:
        beside.mkdir()
    else:
        beside.write_bytes(content)
    with pytest.raises(dpgm.ModelFileError, match="not a stamp of dpgm"):
        write_records([seeded.sample(3)], tmp_path / "s.csv", quoted=False)
    assert not (tmp_path / "s.csv").exists()
    assert beside.is_dir() if content is None else beside.read_bytes() == content


def test_fields_have_quotes_only_where_they_need_them(tmp_path):
    """And names all have, which tells readers; an empty text is no null; Python's own reader finds the texts."""
    texts = ["plain", 'say "hi"', "a,b", "c\nd", "", None]
    stamp = {"dpgm": json.dumps({"dpgm": 1, "guarantee": "x"})}
    table = pa.table({"a": texts, "b": pa.array(texts[::-1]).dictionary_encode(), "n": list("123456")}, metadata=stamp)
    write_records([table, table.slice(0, 0)], tmp_path / "s.csv", quoted=True)
    written = (tmp_path / "s.csv").read_bytes().decode()
    assert written.startswith('"a","b","n"\nplain,,1\n"say ""hi""","",2\n"a,b","c\nd",3\n') and written.endswith("6\n")
    with (tmp_path / "s.csv").open(newline="") as file:
        found = list(csv.reader(file))
    wanted = zip(texts, texts[::-1], "123456", strict=True)
    assert found[1:] == [[one or "", other or "", n] for one, other, n in wanted]
