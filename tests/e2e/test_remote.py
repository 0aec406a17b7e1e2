"""A run whose records are remote, by the command line: a spec names a URL. Skipped without fsspec."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm.cli import main

fsspec = pytest.importorskip("fsspec")

SPEC = """
data = {data}
domain = "domain.toml"
neighbours = "add-remove"
budget = {{ epsilon = 1 }}
structure = {{ graph = "chain" }}
[ledger]
path = "out/visits.ledger"
budget = {{ epsilon = 2.5 }}
create = true
[output]
folder = "out"
"""
CSV = b"sex,age\n" + b"F,30\nM,50\nM,60\n" * 40
URL = "memory://b/visits.csv"


@pytest.fixture
def memory():
    """The records in fsspec's memory."""
    system = fsspec.filesystem("memory")
    system.pipe("/b/visits.csv", CSV)
    yield system
    system.store.clear()


@pytest.fixture
def run(capfd):
    """Runs `dpgm ...` here; returns exit code, stdout and stderr."""

    def command(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
            sys.exit(0)
        return (int(left.value.code or 0), *capfd.readouterr())

    return command


@pytest.fixture
def written(tmp_path):
    """Writes a spec whose data are these."""
    (tmp_path / "domain.toml").write_text(
        '[attributes.sex]\nlabels = ["F", "M"]\nunknown = "F"\n[attributes.age]\nbins = [0, 40, 99]\nunknown = "?"\n'
    )

    def write(data: str) -> Path:
        (tmp_path / "visits.toml").write_text(SPEC.format(data=data))
        return tmp_path / "visits.toml"

    return write


@pytest.mark.parametrize("data", [f'"{URL}"', f'{{ source = "csv", path = "{URL}" }}'])
def test_a_spec_names_a_url(memory, run, written, data):
    """Validated, planned, fitted and compared; the exact distance is that from the same records here."""
    spec = written(data)
    for command in ("validate", "plan", "fit"):
        code, out, err = run(command, spec)
        assert code == 0, (command, out, err)
    model = max((spec.parent / "out").glob("*.dpgm"), key=lambda file: file.stat().st_mtime_ns)
    (spec.parent / "visits.csv").write_bytes(CSV)
    places = (URL, spec.parent / "visits.csv")
    exact = [run("compare", model, "--data", where, "--allow-non-private") for where in places]
    assert exact[0][:2] == exact[1][:2] and exact[0][0] == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://b/none.csv", "cannot read memory://b/none.csv: there is no such file, or nobody may know of it"),
        ("s3://b/x.csv?X-Amz-Signature=5ECRET", "a URL with a signature or a key in it"),
        ("https://me:5ECRET@h/x.csv", "must hold no password"),
        ("nothing://b/x.csv", "its protocol is not known to fsspec"),
    ],
)
def test_what_cannot_be_read_costs_nothing(memory, run, written, url, said):
    """One line, exit 2, no ledger is spent, and no secret is said."""
    spec = written(f'"{url}"')
    for command in ("fit", "validate"):
        code, out, err = run(command, spec)
        assert code == 2 and said in err and len(err.splitlines()) == 1 and "5ECRET" not in out + err
    assert not list((spec.parent / "out").glob("*.dpgm"))


def test_init_writes_the_url(memory, run, tmp_path, monkeypatch):
    """Which it does not read; what describes the columns is here."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"sex": ["F"], "age": [1]}), "visits.parquet")
    Path("book.csv").write_text("column,code,label\nsex,F,F\nsex,M,M\n")
    code, _, err = run("init", "--codebook", "book.csv", "--data", URL)
    assert code == 0, err
    assert f'data = "{URL}"' in Path("spec.toml").read_text() and 'name = "visits"' in Path("spec.toml").read_text()
    for words, said in (
        (["init", URL], "name remote records by --data"),
        (["init", "--codebook", "book.csv", "--data", URL + "?sig=5ECRET"], "a URL with a signature"),
    ):
        code, _, err = run(*words, "--overwrite")
        assert code == 2 and said in err and "5ECRET" not in err
