"""Sampled records in the dialect of the data: a source of that dialect reads them back, code by code."""

import gzip

import pytest

import dpgm_core as dpgm
from app.tests.made import domain_of, uniform
from dpgm.cli.records import PLAIN, written
from dpgm_core.errors import OptionError
from dpgm_core.sources.csv import CsvSource


@pytest.fixture
def model(tmp_path):
    """A model with letters that encodings lack, and signs that separate fields."""
    path = tmp_path / "m.dpgm"
    uniform(domain_of(größe="klein groß a;b", sex="F M")).save(path)
    return path


def codes(path, domain, **options):
    """What a source reads."""
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
    """Both endings of a compressed file stay."""
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
    """By what is wrong with them."""
    with pytest.raises(OptionError, match=said):
        written([option])
    assert written([]) == PLAIN


def test_what_an_encoding_lacks_is_refused_before_anything_is_drawn(tmp_path, refused):
    """The label is public, and named; Parquet has no dialect."""
    path = tmp_path / "m.dpgm"
    uniform(domain_of(a="x Łódź")).save(path)
    said = refused("sample", path, "-n", 1, "-o", tmp_path / "s.csv", "--dialect", "encoding=latin-1")
    assert said == "dpgm: 'Łódź' cannot be written in latin-1; use encoding=utf-8\n"
    packed = ("sample", path, "-n", 1, "-o", tmp_path / "s.parquet")
    assert "--dialect is for CSV" in refused(*packed, "--dialect", "delimiter=;")
