"""Import to first answer: a fresh process that loads a model, infers once and ends; seconds on the wall, least of some.

mbi with each of its oracles, jitted or not, whichever is soonest. numba's functions are on disk, as they are from a
machine's second process on.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from attrs import evolve

from benchmarks.harness.alone import ROOT, XLA
from benchmarks.harness.output import markdown
from benchmarks.harness.runs import say
from benchmarks.peers.libraries import executors
from benchmarks.speed.contestants import interpreters
from benchmarks.speed.models import cases, save
from benchmarks.speed.page import Aim

MODELS = ("chain3-k10", "grid10-k2", "asia", "alarm")
MOST = 0.333
RUNS = 5
PEERS = {
    "mbi": ("shafer_shenoy", "hugin", "implicit", "fast", "implicit plain", "shafer_shenoy plain"),
    "pyagrum": ("shafer-shenoy",),
    "pgmpy": ("belief propagation",),
}


def measure(asked: Namespace) -> dict[str, Any]:
    """Model -> who -> seconds; turns alternate."""
    here = interpreters(asked.peers)
    runners = [(sys.executable, "dpgm", executor or "numpy") for executor in executors()]
    runners += [(str(here[peer]), peer, one) for peer, some in PEERS.items() if peer in here for one in some]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in cases(asked, MODELS):
            path = Path(folder, f"{model.name}.npz")
            save(evolve(model, theta=model.theta[:1]), path)
            best: dict[str, float] = {}
            for turn in range(1 if asked.smoke else RUNS):
                for python, who, variant in runners:
                    key = f"{who} {variant}"
                    if turn and not math.isfinite(best[key]):
                        continue
                    seconds = _fresh(python, who, variant, path, asked.limit)
                    best[key] = min(best.get(key, math.inf), seconds)
            found[model.name] = {key: seconds for key, seconds in best.items() if math.isfinite(seconds)}
    return found


def _fresh(python: str, who: str, variant: str, path: Path, limit: float) -> float:
    command = [python, "-m", "benchmarks.peers.marginals", who, str(path), variant]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | XLA, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        say(f"  {who} {variant} took more than {limit:.0f} s on {path.stem}")
        return math.inf
    seconds = time.perf_counter() - start
    if done.returncode:
        say(f"  {who} {variant} is left out on {path.stem}: {(done.stderr.strip().splitlines() or [''])[-1]}")
        return math.inf
    return seconds


def _soonest(found: dict[str, float], peer: str) -> tuple[float, str]:
    return min(
        ((seconds, key) for key, seconds in found.items() if key.startswith(f"{peer} ")), default=(math.nan, "-")
    )


def table(figures: dict[str, Any]) -> str:
    """A row for each model."""
    rows = []
    for name, found in figures.items():
        mbi, how = _soonest(found, "mbi")
        rows.append(
            [name]
            + [f"{found.get(f'dpgm {executor}', math.nan):.2f}" for executor in ("numba", "numpy")]
            + [f"{seconds:.2f}" for seconds in (mbi, _soonest(found, "pyagrum")[0], _soonest(found, "pgmpy")[0])]
            + [how.removeprefix("mbi ")]
        )
    return markdown(["model", "numba", "numpy", "mbi", "pyAgrum", "pgmpy", "mbi's soonest"], rows)


def aims(figures: dict[str, Any]) -> list[Aim]:
    """Of the executor that is chosen by itself, beside mbi."""
    found = []
    for name, one in figures.items():
        mbi, how = _soonest(one, "mbi")
        if math.isfinite(mbi):
            ours = next(seconds for key, seconds in one.items() if key.startswith("dpgm "))
            found.append(Aim(f"import to first answer, {name}", ours / mbi, MOST, how))
    return found
