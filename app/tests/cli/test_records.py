"""Records as files: their stamps, what is replaced, and the dialect of the data."""

import csv
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform
from dpgm.cli.records import PLAIN, write_records, written
from dpgm_core.errors import OptionError
from dpgm_core.sources import as_source
from dpgm_core.sources.csv import CsvSource


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


@pytest.fixture
def model(tmp_path):
    """A model with letters that encodings lack, and signs that separate fields."""
    path = tmp_path / "m.dpgm"
    uniform(domain_of(größe="klein groß a;b", sex="F M")).save(path)
    return path


def codes(path, domain, **options):
    found = []
    for batch in CsvSource(path=path, **options).batches(domain, domain.names):
        found += zip(*(part.tolist() for part in batch), strict=True)
    return found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("s.csv", {"delimiter": ";", "quoting": "true"}),
        ("s.csv", {"delimiter": "\\t"}),
        ("s.csv.gz", {"delimiter": "|", "encoding": "utf-16"}),
        ("s.csv", {"encoding": "cp1252", "line_ends": "crlf"}),
        ("s.csv.gz", {}),
        ("s.csv", {"encoding": "utf-16-le", "line_ends": "crlf"}),
    ],
)
def test_what_is_written_is_read_back(tmp_path, model, dpgm_command, name, options, ran):
    """In every dialect the same records as in plain CSV, with their stamp beside them; two runs give the same bytes."""
    domain = dpgm.load_model(model).domain
    plain, path = tmp_path / "p.csv", tmp_path / name
    assert dpgm_command("sample", model, "-n", 50, "--seed", 1, "-o", plain)[0] == 0
    said = [word for key, value in options.items() for word in ("--dialect", f"{key}={value}")]
    for _ in range(2):
        ran("sample", model, "-n", 50, "--seed", 1, "-o", path, *said)
    read = {key: value for key, value in options.items() if key in ("delimiter", "encoding")}
    needs = {"quoting": True} if "quoting" in options else {}
    assert codes(path, domain, **read, **needs) == codes(plain, domain)
    assert path.with_name(f"{name}.dpgm.json").exists()
    raw = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    text = raw.decode(options.get("encoding", "utf-8"))
    assert text.count("\r\n") == (51 if "line_ends" in options else 0) and text.count("\n") == 51


def test_a_spec_says_the_dialect_of_its_data(tmp_path, model, dpgm_command, refused):
    """Without a look at the data; what is said after it changes a part."""
    spec = tmp_path / "x.toml"
    spec.write_text(
        'data = { source = "csv", path = "none.csv", delimiter = ";", encoding = "cp1252", quoting = true }\n'
        'domain = { a = 2 }\nneighbours = "add-remove"\nbudget = { epsilon = 1 }\nstructure = { graph = "complete" }\n'
    )
    path = tmp_path / "s.csv"
    command = ("sample", model, "-n", 3, "-o", path, "--dialect", spec)
    assert dpgm_command(*command)[0] == 0
    assert path.read_bytes().decode("cp1252").startswith('"größe";"sex"\n')
    assert dpgm_command(*command, "--dialect", "encoding=utf-8")[0] == 0
    assert path.read_bytes().decode().startswith('"größe";"sex"\n')
    _, _, rest = spec.read_text().partition("\n")
    spec.write_text(f'data = {{ source = "parquet", path = "none.csv" }}\n{rest}')
    assert "are not a CSV file, so they have no dialect; write delimiter=" in refused(*command)


def test_several_data_sets_are_numbered_before_the_ending(spec, dpgm_command):
    folder = spec.parent
    assert dpgm_command("fit", spec)[0] == 0
    out = folder / "s.csv.gz"
    assert dpgm_command("sample", folder / "out/visits.dpgm", "-n", 2, "--datasets", 2, "--seed", 1, "-o", out)[0] == 0
    assert sorted(one.name for one in folder.glob("s*.gz")) == ["s-1.csv.gz", "s-2.csv.gz"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("delimiter=;;", "delimiter must be one ASCII sign"),
        ("encoding=utf8", "option 'encoding' of source 'csv' must be 'utf-8' or"),
        ("quoting=yes", "takes a spec or one of"),
        ("line_ends=cr", "line_ends must be lf or crlf"),
        ("delimeter=;", "did you mean 'delimiter'"),
        ("none.toml", "cannot read the spec file"),
    ],
)
def test_wrong_dialects_are_refused(option, said):
    with pytest.raises(OptionError, match=said):
        written([option])
    assert written([]) == PLAIN


def test_what_an_encoding_lacks_is_refused_before_anything_is_drawn(tmp_path, refused):
    """The label or the symbol is public, and named; Parquet has no dialect."""
    table = {"type": "integer", "min": 1, "max": 9, "symbol": "€ 0"}
    uniform(dpgm.Domain.from_dict({"a": table})).save(tmp_path / "euros.dpgm")
    said = refused(
        "sample", tmp_path / "euros.dpgm", "-n", 1, "-o", tmp_path / "s.csv", "--dialect", "encoding=latin-1"
    )
    assert "cannot be written in latin-1" in said
    path = tmp_path / "m.dpgm"
    uniform(domain_of(a="x Łódź")).save(path)
    said = refused("sample", path, "-n", 1, "-o", tmp_path / "s.csv", "--dialect", "encoding=latin-1")
    assert said == "dpgm: 'Łódź' cannot be written in latin-1; use encoding=utf-8\n"
    packed = ("sample", path, "-n", 1, "-o", tmp_path / "s.parquet")
    assert "--dialect is for CSV" in refused(*packed, "--dialect", "delimiter=;")
