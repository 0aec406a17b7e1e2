"""`dpgm fit` on the health example with no variable set: seconds on the wall, alone and beside a busy process.

Beside each run, one whose environment allows BLAS one thread only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from benchmarks.harness.alone import ONE_THREAD, ROOT
from benchmarks.harness.output import markdown
from benchmarks.speed.page import Aim

EXAMPLE = ROOT / "docs" / "examples" / "health"
MOST = 1.2
RUNS = 5


def measure(asked: Namespace) -> dict[str, Any]:
    """State of the machine, "alone" or "busy" -> kind -> seconds: medians of turns that alternate."""
    found: dict[str, Any] = {}
    free = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    kinds = {"one thread": free | ONE_THREAD, "as it comes": free}
    for state, around in {"alone": _quiet, "busy": _busy}.items():
        runs: dict[str, list[float]] = {kind: [] for kind in kinds}
        with around():
            for _ in range(1 if asked.smoke else RUNS):
                for kind, environment in kinds.items():
                    runs[kind].append(_fit(environment))
        found[state] = {kind: median(seconds) for kind, seconds in runs.items()}
    return found


def _fit(environment: dict[str, str]) -> float:
    with tempfile.TemporaryDirectory() as folder:  # where its ledger is a new one
        for name in ("health.toml", "health.csv", "domain.toml"):
            shutil.copy(EXAMPLE / name, folder)
        command = [sys.executable, "-c", "from dpgm.cli import main; main()", "fit", "health.toml", "--json"]
        start = time.perf_counter()
        subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
        return time.perf_counter() - start


@contextmanager
def _quiet() -> Iterator[None]:
    yield


@contextmanager
def _busy() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def table(figures: dict[str, Any]) -> str:
    """A row for each state of the machine."""
    rows = [
        (state, *(f"{one:.2f}" for one in found.values()), f"{found['as it comes'] / found['one thread']:.2f}")
        for state, found in figures.items()
    ]
    return markdown(["machine", "one thread, s", "as it comes, s", "ratio"], rows)


def aims(figures: dict[str, Any]) -> list[Aim]:
    """Beside a busy process."""
    busy = figures["busy"]
    return [Aim("dpgm fit beside a busy process", busy["as it comes"] / busy["one thread"], MOST, "one BLAS thread")]
