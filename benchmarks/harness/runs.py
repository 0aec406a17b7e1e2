"""Runs that resume: tasks in, one JSON line per finished run out.

    run(tasks, work, store, jobs=2)

A task is plain values: a cell, a trial (its seed) and a method. `work` is a picklable function task -> mapping of plain
values. Runs are spread over processes of one thread each; only the parent writes, one line at a time, flushed and
synced. A line holds the task, what `work` returned, CPU and wall seconds, and the versions that made it.

What a kill does: the runs under way are lost, no finished line is. The next start skips every task whose key is in the
store, drops a half-written last line (or a line broken anywhere) with one line saying so, after copying the file as it
was aside, and repeats runs that failed: those are kept as lines with `error`. Workers end by themselves when the
parent is gone. Two runs never write to one store: the second is refused.
"""

from __future__ import annotations

import fcntl
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy
from attrs import asdict, frozen

from dpgm.progress import shown
from dpgm.study.one_run import Line, append, parse_lines, rewrite
from dpgm.study.runs import spread
from dpgm_core import __version__

Work = Callable[["Task"], Mapping[str, Any]]


@frozen(order=True)
class Task:
    """One run: which cell of the grid, which trial of it, which method."""

    cell: str
    trial: int
    method: str


def say(message: str) -> None:
    """One line for the user, on stderr."""
    print(message, file=sys.stderr, flush=True)


def refuse(message: str) -> NoReturn:
    """One line, and exit code 2."""
    say(message)
    raise SystemExit(2)


def run(tasks: Iterable[Task], work: Work, store: Path, *, jobs: int = 1) -> int:
    """Do what is not in the store yet, in order; the number of runs that failed."""
    store.parent.mkdir(parents=True, exist_ok=True)
    with _locked(store):
        lines = _repaired(store)
        done = {_key(line) for line in lines if "error" not in line}
        waiting = [task for task in dict.fromkeys(tasks) if task not in done]
        known = f"{len(done)} runs are in {store.name}"
        say(f"{known}, {len(waiting)} to do" if waiting else f"{known}, nothing to do")
        stamp, failed = _stamp(), 0
        with store.open("a", encoding="utf-8") as file, shown() as progress:
            progress("runs", 0, len(waiting))
            for number, line in enumerate(spread(partial(_timed, work=work), waiting, jobs), 1):
                append(file, line | {"by": stamp})
                if "error" in line:
                    failed += 1
                    say(f"failed, tried again at the next start: {_key(line)}: {line['error']}")
                progress("runs", number, len(waiting))
    return failed


def read(store: Path) -> list[Line]:
    """The lines of finished runs, the last one for each key; broken and failed ones are left out."""
    lines = _parsed(store)[0] if store.exists() else []
    return list({_key(line): line for line in lines if "error" not in line}.values())


def finished(store: Path) -> dict[Task, Line]:
    """Finished runs by task."""
    return {_key(line): line for line in read(store)}


def _timed(task: Task, work: Work) -> Line:
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        found = dict(work(task))
    except Exception as error:  # one failed run does not end the others
        found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return asdict(task) | found | {name: round(value, 3) for name, value in spent.items()}


def _key(line: Line) -> Task:
    return Task(line["cell"], line["trial"], line["method"])


def _parsed(store: Path) -> tuple[list[Line], list[int]]:
    """Whole lines, and the numbers of the others."""
    return parse_lines(store.read_bytes(), _key)


def _repaired(store: Path) -> list[Line]:
    """The store's lines; if some are broken, or the last one has no end, the file is copied aside and written anew."""
    if not store.stat().st_size:
        return []
    lines, broken = _parsed(store)
    if not broken and store.read_bytes().endswith(b"\n"):
        return lines
    if broken:
        aside = store.with_name(f"{store.name}.broken-{time.strftime('%Y%m%dT%H%M%S')}")
        shutil.copy2(store, aside)
        numbers = ", ".join(map(str, broken))
        say(f"{store.name}: line {numbers} is broken and dropped, its run is repeated; the old file is {aside.name}")
    rewrite(store, lines)
    return lines


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    store.touch()
    with store.with_name(f".{store.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            refuse(f"another run is writing to {store}; wait for it, or give this one another --store")
        yield


def _stamp() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        revision = "+" + subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        revision = ""
    return f"dpgm {__version__}{revision} numpy {np.__version__} scipy {scipy.__version__} {platform.python_version()}"
