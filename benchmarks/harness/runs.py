"""Runs of a study of the benchmarks: `dpgm.study.run_tasks` on tasks of a cell, a trial and a method.

A line holds the task, what `work` returned, CPU and wall seconds, and the versions that made it. Runs that failed are
kept as lines with `error` and repeated at the next start.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy
from attrs import asdict, frozen

from dpgm.progress import shown
from dpgm.study import run_tasks
from dpgm.study.store import Line, read_lines
from dpgm_core import DpgmError, __version__


@frozen(order=True)
class Task:
    """One run: which cell of the grid, which trial of it (its seed), which method."""

    cell: str
    trial: int
    method: str


#: From a task and what the command line asked for to plain values; picklable.
Work = Callable[[Task, Namespace], Mapping[str, Any]]


def say(message: str) -> None:
    """One line for the user, on stderr."""
    print(message, file=sys.stderr, flush=True)


def refuse(message: str) -> NoReturn:
    """One line, and exit code 2."""
    say(message)
    raise SystemExit(2)


def run(tasks: Iterable[Task], work: Work, store: Path, asked: Namespace, *, jobs: int = 1) -> int:
    """Run what is not in the store yet, in order, and return the number of runs that failed."""
    store.parent.mkdir(parents=True, exist_ok=True)
    named, known = {task: task for task in tasks}, finished(store)
    waiting = len(named.keys() - known.keys())
    say(f"{len(known)} runs are in {store.name}, {f'{waiting} to do' if waiting else 'nothing to do'}")
    call = partial(_timed, work=work, asked=asked, stamp=_stamp())
    try:
        with shown() as progress:
            lines = run_tasks(call, named, store, key=_key, jobs=jobs, retry=True, progress=progress, notify=say)
    except DpgmError as error:
        refuse(str(error))
    failed = {task: line["error"] for task, line in lines.items() if "error" in line}
    for task, error in failed.items():
        say(f"failed, tried again at the next start: {task}: {error}")
    return len(failed)


def read(store: Path) -> list[Line]:
    """Return the lines of finished runs, the last one for each key, without broken and failed ones."""
    return list(finished(store).values())


def finished(store: Path) -> dict[Task, Line]:
    """Return finished runs by task."""
    return {_key(line): line for line in read_lines(store, _key)[0] if "error" not in line}


def _timed(task: Task, work: Work, asked: Namespace, stamp: str) -> Line:
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        found = dict(work(task, asked))
    except Exception as error:  # one failed run does not end the others
        found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return asdict(task) | found | {name: round(value, 3) for name, value in spent.items()} | {"by": stamp}


def _key(line: Line) -> Task:
    return Task(line["cell"], line["trial"], line["method"])


def _stamp() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        revision = "+" + subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        revision = ""
    return f"dpgm {__version__}{revision} numpy {np.__version__} scipy {scipy.__version__} {platform.python_version()}"
