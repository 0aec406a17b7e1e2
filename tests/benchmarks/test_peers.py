"""Whole programs: their runs, cache and limits, environments, and the report of `benchmarks.peers`."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks.cases.coded import Coded, off, wide
from benchmarks.harness.alone import OutOfTime, alone
from benchmarks.peers import __main__ as peers
from benchmarks.peers import environments, whole_peer
from benchmarks.peers.environments import make_environments, python_of
from benchmarks.peers.whole_peer import Run, errors_of, synthesize, whole_missing

TABLE = wide(4, 500, 3)
DELTA = "1e-9"


@pytest.fixture(autouse=True)
def _no_peers(monkeypatch):
    for name in environments.PACKAGES:
        monkeypatch.delenv(f"DPGM_{name.upper()}_PYTHON", raising=False)
    for name in (environments.FOLDER, whole_peer.MECHANISMS):
        monkeypatch.delenv(name, raising=False)
    whole_peer.version_of.cache_clear()


def test_a_run_is_made_once_and_then_read_from_the_cache(tmp_path, monkeypatch):
    """Another study has the same records and facts without a process; another seed, budget or table is another run."""
    first = synthesize("dpgm auto", TABLE, "1", DELTA, 0, limit=60, cache=tmp_path)
    assert first.records is not None and len(first.records.codes) == pytest.approx(500, abs=100)
    assert first.facts["seconds"] > 0 and first.facts["peak"] > 0 and first.facts["version"].startswith("dpgm ")
    assert first.facts["exact"].keys() == {"error1", "error2", "error3"}
    calls = []
    monkeypatch.setattr(
        whole_peer, "_run", lambda *problem: calls.append(problem) or ({"ended": "", "limit": 60}, None)
    )
    again = synthesize("dpgm auto", TABLE, "1", DELTA, 0, limit=60, cache=tmp_path)
    assert again.facts == first.facts and np.array_equal(again.records.codes, first.records.codes) and not calls
    others = [("10", DELTA, 0), ("1", "1e-6", 0), ("1", DELTA, 1)]
    for number, (epsilon, delta, seed) in enumerate(others, 1):
        synthesize("dpgm auto", TABLE, epsilon, delta, seed, limit=60, cache=tmp_path)
        assert len(calls) == number
    changed = Coded(domain=TABLE.domain, codes=TABLE.codes[::-1])
    synthesize("dpgm auto", changed, "1", DELTA, 0, limit=60, cache=tmp_path)
    synthesize("dpgm auto", TABLE, "1", DELTA, 0, limit=60, cache=tmp_path, order=2)
    assert len(calls) == 5


def test_a_run_over_its_limit_is_a_result_until_the_limit_is_higher(tmp_path, monkeypatch):
    """What ended at a limit is not tried again at that limit or below."""
    limits = []

    def run(problem, version, limit):
        limits.append(limit)
        return {"version": version, "limit": limit, "ended": f"no result in {limit} CPU seconds"}, None

    monkeypatch.setattr(whole_peer, "_run", run)
    for limit in (20, 20, 10, 30):
        made = synthesize("dpgm auto", TABLE, "1", DELTA, 0, limit=limit, cache=tmp_path)
        assert made.records is None and errors_of(made, TABLE)["ended"].endswith("CPU seconds")
    assert limits == [20, 30]


@pytest.mark.parametrize(
    ("why", "said"),
    [(OutOfTime("used"), "20 CPU seconds"), (subprocess.TimeoutExpired("python", 200), "200 seconds on the wall")],
)
def test_a_busy_machine_is_no_limit_of_the_cpu(monkeypatch, why, said):
    def ends(*_, **__):
        raise why

    monkeypatch.setattr(whole_peer, "alone", ends)
    made = synthesize("dpgm auto", TABLE, "1", DELTA, 0, limit=20)
    assert errors_of(made, TABLE)["ended"] == f"no result in {said}"


def _spin():
    while True:
        pass


def test_a_process_ends_after_its_cpu_seconds():
    """The limit is of the CPU and not of the wall."""
    with pytest.raises(OutOfTime, match="1 CPU seconds"):
        alone(_spin, cpu_limit=1, limit=60)
    assert alone(_one, cpu_limit=60) == 1


def _one():
    return 1


def test_a_program_that_is_not_there_says_so(tmp_path, monkeypatch):
    """Without an environment it is left out; one that lacks the library is a result with its reason."""
    assert "names no folder with dpmm" in whole_missing("dpmm mst") and whole_missing("dpgm auto") is None
    monkeypatch.setenv("DPGM_DPMM_PYTHON", sys.executable)
    assert whole_missing("dpmm mst") is None
    made = synthesize("dpmm mst", TABLE, "1", DELTA, 0, limit=60)
    assert made.facts["ended"].startswith("failed: ") and "dpmm" in made.facts["ended"]
    monkeypatch.setenv("DPGM_MBI_PYTHON", "python")
    monkeypatch.setenv(whole_peer.MECHANISMS, str(tmp_path / "absent"))
    assert "checkout of mbi's repository" in whole_missing("mbi aim")


def test_missing_values_are_drawn_from_the_others_of_their_column():
    """A program's nulls are no label of the table: they cost nothing and favour no label."""
    records = np.array([[0, 2], [1, 5], [3, 2], [2, 2]])
    filled = whole_peer._fill_missing(records, np.array([3, 4]), seed=1)
    assert filled[:, 0].tolist()[:2] == [0, 1] and filled[2, 0] in (0, 1, 2) and filled[:, 1].tolist() == [2, 2, 2, 2]


def test_errors_of_a_run_are_those_of_its_records():
    """The records themselves have none; with a column of one label the errors are those of that column."""
    assert set(off(TABLE, lambda cliques: {}, orders=())) == set()
    same = errors_of(Run(facts={"seconds": 1.0}, records=TABLE), TABLE)
    assert same == {"seconds": 1.0, "error1": 0, "error2": 0, "error3": 0}
    codes = TABLE.codes.copy()
    codes[:, 0] = 0
    share = np.mean(TABLE.codes[:, 0] == 0)
    worse = errors_of(Run(facts={}, records=Coded(domain=TABLE.domain, codes=codes)), TABLE)
    assert worse["error1"] == pytest.approx((1 - share) / 4) and worse["error2"] > worse["error1"]


def test_interpreters_are_of_the_folder_then_of_variables(tmp_path, monkeypatch):
    """An option's folder comes first, then DPGM_NAME_PYTHON, then DPGM_PEERS."""
    folders = [tmp_path / "option", tmp_path / "shared"]
    for folder in folders:
        (folder / "mbi" / "bin").mkdir(parents=True)
        (folder / "mbi" / "bin" / "python").touch()
    assert python_of("mbi") is None
    monkeypatch.setenv("DPGM_PEERS", str(folders[1]))
    assert python_of("mbi") == folders[1] / "mbi" / "bin" / "python" and python_of("dpmm") is None
    monkeypatch.setenv("DPGM_MBI_PYTHON", "other")
    assert str(python_of("mbi")) == "other"
    assert python_of("mbi", folders[0]) == folders[0] / "mbi" / "bin" / "python"


def test_what_cannot_be_installed_says_why(tmp_path, monkeypatch):
    """pip's own error, or the checkout that is missing; nothing half made stays, and nothing is made twice."""
    ran = []

    def run(command, **options):
        ran.append([str(part) for part in command])
        if "venv" in ran[-1]:
            (tmp_path / ran[-1][-1] / "bin").mkdir(parents=True)
            (tmp_path / ran[-1][-1] / "bin" / "python").touch()
        bad = "dpmm==0.1.9" in ran[-1]
        return subprocess.CompletedProcess(command, int(bad), stderr="WARNING: slow\nERROR: No matching dpmm\n")

    monkeypatch.setattr(environments.subprocess, "run", run)
    failed = make_environments(tmp_path, ("dpmm", "opendp", "dpsynth"))
    assert failed.keys() == {"dpmm", "dpsynth"} and failed["dpmm"].endswith("ERROR: No matching dpmm")
    assert "checkout" in failed["dpsynth"] and not (tmp_path / "dpmm").exists() and (tmp_path / "opendp").exists()
    for name in ("mbi", "dpsynth"):
        (tmp_path / "sources" / name).mkdir(parents=True)
    before = len(ran)
    assert make_environments(tmp_path, ("opendp", "dpsynth")) == {} and len(ran) == before + 3
    assert ran[-1][-2:] == [str(tmp_path / "sources" / name) for name in ("mbi", "dpsynth")]


def test_every_program_has_an_environment_that_can_be_made():
    """Its environment is one of those that --install makes, and its versions are read."""
    homes = {environment for environment, _ in peers.PROGRAMS.values() if environment}
    assert homes <= environments.PACKAGES.keys() and homes == whole_peer._COUNTED.keys()
    pairs = itertools.product(peers.TASKS, peers.WHOLE)
    assert {*pairs, *itertools.product(peers.GENERATED, peers.WHOLE)} >= whole_peer.OVER_LIMIT


def run(cell, program, seed, error, **more):
    facts = {"cell": cell, "trial": seed, "method": program, "version": f"{program} 1", "seconds": 2.0, "peak": 100}
    exact = {"exact": {"error1": error / 4, "error2": error / 4, "error3": error / 2}} if program == "dpgm auto" else {}
    return facts | exact | {"error1": error / 2, "error2": error / 2, "error3": error} | more


def test_the_report_has_means_the_best_and_what_did_not_end():
    """Means over seeds by epsilon; the best of several programs is bold, exact answers never; reasons by cell."""
    ended = {"cell": "adult 10", "trial": 0, "method": "mbi aim", "version": "mbi 1", "limit": 300, "by": ""}
    lines = [
        run("adult 1", "dpgm auto", 0, 0.10),
        run("adult 1", "dpgm auto", 1, 0.20, seconds=6.0),
        run("adult 1", "mbi mst", 0, 0.12),
        run("adult 10", "dpgm auto", 0, 0.08),
        ended | {"ended": "no result in 300 CPU seconds"},
    ]
    text = " ".join(peers.tables(lines).split())
    assert "| dpgm auto | - .1500 .0800 |" in text and "| exact answers of its model | - .0750 .0400 |" in text
    assert "| mbi mst | - **.1200** - |" in text
    assert "| dpgm auto | dpgm auto 1 | 3 | 2 (2-6) | 100 (100-100) | |" in text
    assert "| mbi aim | mbi 1 | 0 | - | - | adult 10: no result in 300 CPU seconds |" in text
    assert "| dpmm mst | | 0 | - | - | not run |" in text
    assert "| adult 1 | dpgm auto | 2 | 0.0500-0.1000 | 0.0500-0.1000 | 0.1000-0.2000 |" in text
