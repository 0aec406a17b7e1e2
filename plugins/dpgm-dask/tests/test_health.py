"""The health example through dask: the release of the embedded path, bit for bit, and `dpgm fit` as it stands."""

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

pytest.importorskip("dask.dataframe", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")

import dask.dataframe as dd
from distributed import Client
from dpgm_dask.source import DaskSource

import dpgm_core as dpgm

HEALTH = Path(__file__).resolve().parents[3] / "docs/examples/health"
SPEC = tomllib.loads((HEALTH / "health.toml").read_text())
STRUCTURE = dpgm.Structure(dpgm.Domain.load(HEALTH / "domain.toml"), SPEC["structure"]["cliques"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example as Parquet, in row groups of 5,000."""
    path = tmp_path_factory.mktemp("health")
    pq.write_table(csv.read_csv(HEALTH / "health.csv"), path / "health.parquet", row_group_size=5_000)
    return path


def released(data):
    """A seeded simulation: the same counts give the same release, and one more record another one."""
    seeded = dpgm.SeededRandomness(7)
    return dpgm.release(data, STRUCTURE, dpgm.Budget.pure(1), neighbours="add-remove", randomness=seeded).tables.values


def test_a_seeded_release_is_that_of_the_embedded_path(folder, cluster):
    """From the CSV file here; from Parquet and from a frame of dask, on threads and on two processes."""
    here = released(HEALTH / "health.csv")
    frame = dd.from_pandas(pd.read_csv(HEALTH / "health.csv"), npartitions=5)
    source = DaskSource(path=str(folder))
    for data in (source, frame):
        np.testing.assert_array_equal(released(data), here)
    with Client(cluster):
        for data in (source, frame):
            np.testing.assert_array_equal(released(data), here)
    one_less = dd.from_pandas(pd.read_csv(HEALTH / "health.csv").iloc[1:], npartitions=5)
    assert (released(one_less) != here).any()


def test_dpgm_fit_takes_the_source_by_its_name(folder, tmp_path):
    """The example's own spec with another `data`, a path or a URL; and a file that is not there costs nothing."""

    def run(path):
        settings = (
            f'data={{source="dask",path="{path}"}}',
            f"output.folder={tmp_path}",
            f"ledger.path={tmp_path}/l",
            "intervals.replicates=2",
        )
        options = [part for setting in settings for part in ("--set", setting)]
        command = [str(Path(sys.executable).with_name("dpgm")), "fit", str(HEALTH / "health.toml"), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    missing = run(tmp_path / "nowhere.parquet")
    assert missing.returncode == 2 and len(missing.stderr.strip().splitlines()) == 1, missing.stderr
    for left, path in ((9, folder / "health.parquet"), (8, f"file://{folder}/health.parquet")):
        done = run(path)
        assert done.returncode == 0, done.stderr
        assert f"spent:   epsilon = 1; left in the ledger: epsilon = {left}" in done.stdout
