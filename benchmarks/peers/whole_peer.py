"""Whole mechanisms of peers, records in and synthetic records out, each as far as it runs and ends in time.

dpmm (`pip install dpmm`) in the environment whose interpreter DPGM_DPMM_PYTHON names. mbi's AIM and MST are scripts of
its repository and not in its package: DPGM_MBI_MECHANISMS names a folder that holds them (`mechanisms/` of a checkout),
DPGM_MBI_PYTHON the interpreter of an environment with mbi, pandas, networkx and matplotlib. What they give is judged by
synthetic records, as many as there are true ones, so their errors have sampling in them.
"""

from __future__ import annotations

import os
import resource
import subprocess
from typing import Any

import numpy as np

from benchmarks.cases.coded import Coded, of_records, off
from benchmarks.harness.alone import Crashed, alone
from benchmarks.peers.mbi_peer import VARIABLE
from benchmarks.peers.whole_worker import synthetic

WHOLE = ("mbi aim", "mbi mst", "dpmm aim", "dpmm mst")
MECHANISMS, DPMM = "DPGM_MBI_MECHANISMS", "DPGM_DPMM_PYTHON"


def whole_missing(mechanism: str) -> str | None:
    """Why it cannot be run here, None if it can be tried."""
    needed = (VARIABLE, MECHANISMS) if mechanism.startswith("mbi") else (DPMM,)
    absent = [name for name in needed if not os.environ.get(name)]
    return f"set {' and '.join(absent)}; see benchmarks/peers/whole_peer.py" if absent else None


def whole(mechanism: str, table: Coded, epsilon: str, delta: str, seed: int, limit: float) -> dict[str, Any]:
    """Errors, CPU seconds and peak memory; or `ended`, what happened instead within so many seconds on the wall."""
    answer = whole_records(mechanism, table, epsilon, delta, seed, limit)
    if "ended" in answer:
        return answer
    made = Coded(domain=table.domain, codes=np.array(answer["records"]))
    found = {"seconds": round(answer["seconds"], 1), "peak": round(answer["peak"])}
    return found | off(table, of_records(made))


def whole_records(mechanism: str, table: Coded, epsilon: str, delta: str, seed: int, limit: float) -> dict[str, Any]:
    """Return `records`, CPU `seconds` and `peak` memory; or `ended`, as `whole` has it."""
    python = os.environ[VARIABLE if mechanism.startswith("mbi") else DPMM]
    problem = {
        "mechanism": mechanism,
        "codes": table.codes.tolist(),
        "sizes": dict(table.domain.sizes),
        "epsilon": float(epsilon),
        "delta": float(delta),
        "seed": seed,
        "folder": os.environ.get(MECHANISMS, ""),
    }
    before = _children()
    try:
        answer: dict[str, Any] = alone(synthetic, problem, limit=limit, python=python)
    except subprocess.TimeoutExpired:
        return {"ended": f"no result in {limit:.0f} s on the wall, {_children() - before:.0f} CPU seconds"}
    except Crashed as why:
        return {"ended": f"failed: {str(why)[:200]}"}
    return answer


def _children() -> float:
    """CPU seconds of all that has ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
