"""The health example through each engine: the same counts, so the same release; and no password anywhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv as arrow_csv
import pytest
from dpgm_sql.source import SqlSource

import dpgm_core as dpgm
from dpgm.cli import main
from dpgm.spec import load_spec

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "health"
PLANTED = "pl4nted"


@pytest.fixture(scope="module")
def records():
    return arrow_csv.read_csv(EXAMPLE / "health.csv")


def release(data):
    run = load_spec(EXAMPLE / "health.toml")
    seeded = {"neighbours": "add-remove", "randomness": dpgm.SeededRandomness(7)}
    return dpgm.release(data, run.structure, dpgm.Budget.pure(1), **seeded)


@pytest.mark.parametrize("way", ["stream", "auto"])
def test_a_release_is_that_of_the_file(database, records, way):
    """With the same seed the noisy tables are the same numbers, so the counts are."""
    database.fill("health", records)
    actual = release(SqlSource(database=database.address, table="health", count=way))
    expected = release(EXAMPLE / "health.csv")
    assert actual.total == expected.total
    for clique in expected.structure.cliques:
        assert np.array_equal(actual.tables[clique], expected.tables[clique])


def dpgm_command(*words, **variables):
    code = "from dpgm.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, env=os.environ | variables
    )


def everything(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def spec(tmp_path):
    """Makes the example's spec with other data, in a folder of its own."""

    def made(data):
        folder = tmp_path / "run"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("out", "*.csv"))
        text = (folder / "health.toml").read_text().replace('data = "health.csv"', f"data = {data}")
        (folder / "health.toml").write_text(text.replace("replicates = 40", "replicates = 2"))
        return folder / "health.toml"

    return made


def test_a_file_beside_the_spec_is_found(spec, records, sqlite_file):
    """`sqlite:///health.db` is relative to the spec, from wherever dpgm is called."""
    sqlite_file.fill("health", records)
    path = spec('{ source = "sql", database = "sqlite:///health.db", table = "health" }')
    Path(sqlite_file.address.removeprefix("sqlite:///")).rename(path.parent / "health.db")
    done = dpgm_command("fit", path)
    assert done.returncode == 0, done.stderr


def test_no_password_is_in_anything_that_dpgm_writes(spec, records, postgresql_database):
    """One in the variable that `address_from` names: not on stdout or stderr, not in ledger, release or model."""
    postgresql_database.fill("health", records)
    secret = postgresql_database.address.replace("postgresql://", f"postgresql://postgres:{PLANTED}@").replace(
        "&user=postgres", ""
    )
    path = spec('{ source = "sql", address_from = "env:CLINIC", table = "health" }')
    for command in ("plan", "validate", "fit"):
        done = dpgm_command(command, path, CLINIC=secret)
        assert done.returncode == 0, done.stderr
        assert PLANTED not in done.stdout + done.stderr
    assert list((path.parent / "out").rglob("*.ledger"))
    assert PLANTED.encode() not in everything(path.parent)
    wrong = dpgm_command("fit", path, CLINIC=secret.replace("/postgres?", "/nowhere?"))
    assert wrong.returncode == 2
    assert "no connection to the address in env:CLINIC" in wrong.stderr
    assert PLANTED not in wrong.stdout + wrong.stderr


@pytest.mark.parametrize(
    "data",
    [
        '{{ source = "sql", database = "{0}", table = "health" }}',
        '{{ source = "sql", database = ["{0}"], table = "health" }}',
        '{{ source = "sql", databse = "{0}", table = "health" }}',
        '{{ source = "sql", address_from = "{0}", table = "health" }}',
        '{{ source = "sqll", database = "{0}", table = "health" }}',
        '"{0}"',
    ],
)
def test_a_password_in_a_spec_is_refused_and_not_repeated(spec, data, capfd):
    """By `dpgm plan`, which reads no data, wherever in `data` it stands."""
    path = spec(data.format(f"postgresql://me:{PLANTED}@localhost/clinic"))
    with pytest.raises(SystemExit) as left:
        main(["plan", str(path)])
    assert left.value.code == 2
    assert PLANTED not in "".join(capfd.readouterr())
