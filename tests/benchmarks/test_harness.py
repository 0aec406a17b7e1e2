"""The experiment harness: resuming, broken stores, failed runs, and what it says about bad input."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("joblib")

from benchmarks.harness.main import Measurement, choose, main
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import Task, finished, read, run

ROOT = Path(__file__).parents[2]
TASKS = [Task("cell", trial, "square") for trial in range(8)]


def square(task: Task, asked: object = None) -> dict[str, float]:
    return {"value": task.trial**2}


def without_times(store: Path) -> list[dict[str, object]]:
    return sorted(
        ({key: line[key] for key in ("cell", "trial", "method", "value")} for line in read(store)),
        key=lambda line: str(line),
    )


def test_one_line_per_run_with_versions_and_seconds(tmp_path):
    """Each run is one JSON line with its key, its numbers, the time it took and the versions that made it."""
    store = tmp_path / "folder" / "store.jsonl"
    assert run(TASKS, square, store, None) == 0
    lines = [json.loads(text) for text in store.read_text().splitlines()]
    assert [line["value"] for line in lines] == [trial**2 for trial in range(8)]
    assert {"cell", "trial", "method", "value", "cpu", "wall", "by"} == set(lines[0])
    assert lines[0]["by"].startswith("dpgm ") and "numpy" in lines[0]["by"] and "scipy" in lines[0]["by"]


def test_finished_runs_are_not_repeated(tmp_path):
    """A second start does only what is missing, and asking twice for a task runs it once."""
    store = tmp_path / "store.jsonl"
    run(TASKS[:3] * 2, square, store, None)
    before = store.read_bytes()
    run(TASKS[:5], square, store, None)
    assert store.read_bytes().startswith(before)
    assert len(store.read_bytes().splitlines()) == 5


SLOW = """
import sys, time
from pathlib import Path
from benchmarks.harness.runs import Task, run

def slow(task, asked):
    time.sleep(0.15)
    return {"value": task.trial**2}

if __name__ == "__main__":
    run([Task("cell", trial, "square") for trial in range(8)], slow, Path(sys.argv[1]), None, jobs=int(sys.argv[2]))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_kill_and_resume_gives_the_same_lines(tmp_path, jobs):
    """Killed without warning in the middle, and started again: the lines of a run that was left alone."""
    script, store = tmp_path / "slow.py", tmp_path / "store.jsonl"
    script.write_text(SLOW)
    command = [sys.executable, str(script), str(store), str(jobs)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (store.exists() and store.read_bytes().count(b"\n") >= 2):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 2 <= len(read(store)) < 8
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
    run(TASKS, square, tmp_path / "whole.jsonl", None)
    assert without_times(store) == without_times(tmp_path / "whole.jsonl")
    assert store.read_bytes().count(b"\n") == 8


@pytest.mark.parametrize("damage", ["last", "middle", "foreign"])
def test_broken_lines_are_dropped_and_nothing_else(tmp_path, capsys, damage):
    """A line half-written or broken costs its own run and no other; the old file is kept, and one line says so."""
    store = tmp_path / "store.jsonl"
    run(TASKS[:4], square, store, None)
    lines = store.read_bytes().splitlines(keepends=True)
    damaged = {
        "last": b"".join(lines[:3]) + lines[3][:17],
        "middle": lines[0] + lines[1][:9] + b"\xff\n" + b"".join(lines[2:]),
        "foreign": lines[0] + b"[1, 2]\n" + b"".join(lines[2:]),
    }[damage]
    store.write_bytes(damaged)
    capsys.readouterr()
    run(TASKS[:4], square, store, None)
    said = [line for line in capsys.readouterr().err.splitlines() if "broken" in line]
    assert len(said) == 1 and f"line {4 if damage == 'last' else 2} is broken and dropped" in said[0]
    assert without_times(store) == [{"cell": "cell", "trial": t, "method": "square", "value": t**2} for t in range(4)]
    assert set(lines[2:3]) <= set(store.read_bytes().splitlines(keepends=True))
    assert [path.read_bytes() for path in tmp_path.glob("store.jsonl.broken-*")] == [damaged]


def failing(task: Task, asked: object) -> dict[str, float]:
    if task.trial == 1 and not Path(task.cell).exists():
        raise ValueError("no luck\nat all")
    return {"value": task.trial**2}


def test_failed_runs_are_recorded_and_tried_again(tmp_path, capsys):
    """An exception becomes a line with `error`, the others go on, and the next start tries it again."""
    store, cure = tmp_path / "store.jsonl", tmp_path / "cure"
    tasks = [Task(str(cure), trial, "fragile") for trial in range(3)]
    assert run(tasks, failing, store, None) == 1
    assert "ValueError: no luck" in capsys.readouterr().err
    assert len(read(store)) == 2
    errors = [json.loads(text).get("error") for text in store.read_text().splitlines()]
    assert errors == [None, "ValueError: no luck", None]
    cure.touch()
    assert run(tasks, failing, store, None) == 0
    assert sorted(line["value"] for line in finished(store).values()) == [0, 1, 4]


def test_a_second_run_on_one_store_is_refused(tmp_path, capsys):
    """Two writers would mix their lines."""
    store = tmp_path / "store.jsonl"

    def nested(task, asked):
        run(TASKS, square, store, None)

    run(TASKS[:1], nested, tmp_path / "other.jsonl", None)  # not the same store: allowed
    store.unlink()
    with pytest.raises(SystemExit) as left:
        run(TASKS[:1], nested, store, None)
    assert left.value.code == 2
    assert "another run is writing to" in capsys.readouterr().err


def test_names_are_chosen_by_pattern_and_unknown_ones_refused(capsys):
    """Patterns keep the known order; a part that matches nothing is one line and exit code 2."""
    assert choose("cell", "b, a*", ["a1", "b", "a2", "c"]) == ["a1", "b", "a2"]
    with pytest.raises(SystemExit) as left:
        choose("method", "a1,mle", ["a1", "b"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "no method is called 'mle'; there are: a1, b\n"


def first(asked):
    """What the first part does."""
    sys.stdout.write(f"first {asked.smoke}\n")


def second(asked):
    """What the second part does."""
    sys.stdout.write(f"second {asked.smoke}\n")


def test_a_measurement_prints_its_parts(capsys):
    """All parts in order, each with its docstring; those asked for alone; an unknown one is refused in one line."""
    measurement = Measurement(about=None, parts={"one": first, "two": second})
    main(measurement, ["--smoke"])
    printed = capsys.readouterr().out
    told = ["one: What the first part does.", "first True", "two: What the second part does.", "second True"]
    assert [line for line in printed.splitlines() if line] == told
    main(measurement, ["--only", "two"])
    assert "first" not in (printed := capsys.readouterr().out) and "second False" in printed
    with pytest.raises(SystemExit, match="2"):
        main(measurement, ["--only", "three"])
    assert capsys.readouterr().err == "no part is called 'three'; there are: one, two\n"


def test_a_table_reads_as_it_stands():
    """Columns are padded, text to the left, numbers to the right; a missing number does not make a column text."""
    assert markdown(["cell", "KL", "note"], [["a", "0.25", "x"], ["long one", "-", ""]]).splitlines() == [
        "| cell     |   KL | note |",
        "|----------|-----:|------|",
        "| a        | 0.25 | x    |",
        "| long one |    - |      |",
    ]


def test_no_script_has_a_cache_of_its_own():
    """A cached function of `__main__` cannot be sent to another process: `--jobs 2` would end before its first run."""
    scripts = sorted((ROOT / "benchmarks").glob("*.py"))
    assert len(scripts) > 10
    assert [path.name for path in scripts if re.search(r"^@(lru_)?cache", path.read_text("utf-8"), re.M)] == []
