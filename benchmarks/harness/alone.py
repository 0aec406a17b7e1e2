"""A call in a process of its own, so that memory is its own and a time limit can end it.

    alone(work, task, limit=600)

What it was asked for and what it returns travel as a pickle and as JSON; the function is named by its module. One
thread, whatever the machine has.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: For the environment of whatever is to run on one thread.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ROOT = Path(__file__).parents[2]


class Crashed(Exception):
    """The process ended without an answer."""


def alone(call: Callable[..., Any], *args: object, limit: float | None = None) -> Any:
    """What the call returns, plain values; limit: seconds on the wall, after which TimeoutExpired. Raises Crashed."""
    with tempfile.TemporaryDirectory(prefix="dpgm-alone-") as folder:
        given, answered = Path(folder, "given"), Path(folder, "answered")
        given.write_bytes(pickle.dumps((call, args)))
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.harness.alone", str(given), str(answered)],
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            stderr=subprocess.PIPE,
            text=True,
            timeout=limit,
            check=False,
        )
        if done.returncode or not answered.is_file():
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise Crashed(f"it ended with code {done.returncode} and said: {said}")
        return json.loads(answered.read_text(encoding="utf-8"))


def peak_megabytes() -> float:
    """The most memory this process has had so far, since it became this program; 1 MB is 10**6 bytes."""
    try:
        # ru_maxrss counts what the process was before it became this program too.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        kilobytes = next(float(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return kilobytes * 1024 / 1e6


if __name__ == "__main__":
    called, arguments = pickle.loads(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_text(json.dumps(called(*arguments)), encoding="utf-8")
