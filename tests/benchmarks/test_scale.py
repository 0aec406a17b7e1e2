"""The benchmark of scale: its table, what is compared before anything is timed, and the table of ratios."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("joblib")

from benchmarks import scale
from benchmarks.cases.pairs import NAMES, PAIRS, make, sha_of_tables
from benchmarks.harness.main import main
from benchmarks.peers.engines import Taken, embedded
from benchmarks.scale import Runs


def taken(seconds: float, sha: str = "same", baseline: float | None = None) -> Taken:
    return Taken(seconds=seconds, cpu=1.0, baseline_seconds=baseline, peak_mb=100.0, counts_sha=sha)


def test_the_embedded_path_counts_the_table(tmp_path: Path) -> None:
    """As numpy does, pair by pair; the table is the same wherever it is made, and is not made twice."""
    make(tmp_path, 1003)
    before = [(path, path.stat().st_mtime_ns) for path in sorted(tmp_path.iterdir())]
    make(tmp_path, 1003)
    assert before == [(path, path.stat().st_mtime_ns) for path in sorted(tmp_path.iterdir())]
    columns = pq.read_table(tmp_path).to_pydict()
    tables = [np.histogram2d(columns[one], columns[two], bins=[range(11), range(11)])[0] for one, two in PAIRS]
    assert len(columns["a0"]) == 1003 and set(NAMES) == set(columns)
    assert embedded(tmp_path)["counts_sha"] == sha_of_tables(tables, 1003)
    tables[3][4, 5] += 1
    assert embedded(tmp_path)["counts_sha"] != sha_of_tables(tables, 1003)


def test_an_engine_that_counts_otherwise_is_not_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, and nothing is printed of its seconds."""
    monkeypatch.setattr(Runs, "run", lambda self, name, folder: taken(1, "other" if name == "dask" else "same"))
    with pytest.raises(SystemExit):
        main(scale.MEASUREMENT, ["--smoke", "--engines", "embedded,spark,dask"])
    told = capsys.readouterr()
    assert "dask counted otherwise than embedded" in told.err and "|" not in told.out


def test_ratios_are_of_the_fastest_runs() -> None:
    """To the engine's own baseline, or to the embedded path."""
    runs = Runs(
        Namespace(),
        {
            "embedded": [taken(2), taken(3)],
            "before": [taken(4), taken(5)],
            "spark": [taken(9, baseline=8), taken(7, baseline=10)],
            "dask": [taken(3)],
        },
    )
    lines = runs.table().splitlines()[2:]
    assert [[cell.strip() for cell in line.split("|")[4:7]] for line in lines] == [
        ["4.00", "0.50", "1.0"],
        ["8.00", "0.88", "1.5"],
        ["2.00", "1.50", "1.5"],
    ]


def test_an_engine_runs_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Which tells what it took; one that is not there is one line."""
    main(scale.MEASUREMENT, ["--smoke", "--repeats", "1"])
    assert "| embedded |    0." in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(scale.MEASUREMENT, ["--smoke", "--engines", "hadoop"])
    assert "there is no engine 'hadoop'" in capsys.readouterr().err
