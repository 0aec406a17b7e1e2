"""The health example through Spark: the counts of the embedded path, a seeded release, and `dpgm fit` as it stands."""

import tomllib
from pathlib import Path

import numpy as np
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from dpgm_spark.source import SparkSource

import dpgm_core as dpgm
from dpgm.cli import main

HEALTH = Path(__file__).resolve().parents[3] / "docs" / "examples" / "health"
SPEC = tomllib.loads((HEALTH / "health.toml").read_text())
STRUCTURE = dpgm.Structure(dpgm.Domain.load(HEALTH / "domain.toml"), SPEC["structure"]["cliques"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example as Parquet, in files of 5,000 rows."""
    path = tmp_path_factory.mktemp("health")
    table = csv.read_csv(HEALTH / "health.csv")
    for start in range(0, table.num_rows, 5000):
        pq.write_table(table.slice(start, 5000), path / f"{start}.parquet")
    return path


def released(data):
    """A seeded simulation: the same counts give the same release, and one more record another one."""
    seeded = dpgm.SeededRandomness(7)
    return dpgm.release(data, STRUCTURE, dpgm.Budget.pure(1), neighbours="add-remove", randomness=seeded).tables.values


def test_a_seeded_release_is_that_of_the_embedded_path(spark, folder):
    """From the CSV file here; in Spark from the same file, from Parquet, and from a frame that `release` is given."""
    here = released(HEALTH / "health.csv")
    text = SparkSource(path=str(HEALTH / "health.csv"), format="csv", options={"header": True})
    frame = spark.read.parquet(str(folder))
    for data in (text, SparkSource(path=str(folder)), frame.repartition(7)):
        np.testing.assert_array_equal(released(data), here)
    assert (released(frame.limit(20_189)) != here).any()


def test_dpgm_fit_takes_the_source_by_its_name(spark, folder, tmp_path, capsys):
    """The example's spec with another `data`; a file that is not there costs nothing."""

    def run(path):
        settings = (f'data={{source="spark",path="{path}"}}', f"output.folder={tmp_path}", f"ledger.path={tmp_path}/l")
        options = [part for setting in (*settings, "intervals.replicates=2") for part in ("--set", setting)]
        code = 0
        try:
            main(["fit", str(HEALTH / "health.toml"), *options])
        except SystemExit as done:
            code = done.code or 0
        return code, capsys.readouterr()

    code, said = run(tmp_path / "nowhere")
    assert code == 2 and len(said.err.strip().splitlines()) == 1, said.err
    code, said = run(folder)
    assert code == 0, said.err
    assert "spent:   epsilon = 1; left in the ledger: epsilon = 9" in said.out
