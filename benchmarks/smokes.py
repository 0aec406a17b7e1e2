"""The smallest run of every benchmark that no test runs, one after another, to see that it still works.

    python -m benchmarks.smokes [NAME ...]

Every module here that has a `STUDY` or a `MEASUREMENT` takes --smoke. `.ci/run` runs those that are not in `IN_TESTS`,
each as a process of its own and without the data that is not part of the project. The output of one that fails is
shown, and the exit code is 1.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.main import choose
from benchmarks.harness.runs import say

__all__ = ["IN_TESTS", "main", "names"]

FOLDER = Path(__file__).parent
#: Those whose smallest run is made by a file of tests/benchmarks: name -> file.
IN_TESTS = {name: f"test_{name}.py" for name in (
    "adult", "bayes_net", "coverage", "fig3b", "inference", "mrf", "privbayes", "scale", "selection",
)} | {"fig1": "test_figures.py"}  # fmt: skip


def names() -> dict[str, str]:
    """Return the benchmarks that take --smoke: name -> "STUDY" or "MEASUREMENT"."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
    found = {name: re.search(r"^(STUDY|MEASUREMENT) = ", text, re.MULTILINE) for name, text in texts.items()}
    return {name: match[1] for name, match in found.items() if match}


def main(given: Sequence[str]) -> int:
    """Run those named, or all that no test runs; return how many failed."""
    known, failed = names(), 0
    wanted = ",".join(given or [name for name in known if name not in IN_TESTS])
    with tempfile.TemporaryDirectory(prefix="dpgm-smoke-") as scratch:
        for name in choose("benchmark", wanted, list(known)):
            more = ["--store", f"{name}.jsonl"] if known[name] == "STUDY" else []
            command = [sys.executable, "-m", f"benchmarks.{name}", "--smoke", *more]
            began, before = time.monotonic(), _cpu_seconds()
            done = subprocess.run(
                command,
                cwd=scratch,
                env=os.environ | {"PYTHONPATH": str(FOLDER.parent), "DPGM_SHARED": scratch},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            spent = f"{time.monotonic() - began:.1f} s, of the CPU {_cpu_seconds() - before:.1f}"
            say(f"{name}: {'failed' if done.returncode else 'ran'}, {spent}")
            if done.returncode:
                failed += 1
                say(done.stdout)
    return failed


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
