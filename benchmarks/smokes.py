"""The smallest run of every benchmark that no test runs, to see that it still works.

    python -m benchmarks.smokes [NAME ...]

Every module or package here that has a `STUDY` or a `MEASUREMENT` takes --smoke, and so does each paper ("paper
bernstein").
`.ci/run` runs those that are not in `IN_TESTS`, each as a process of its own and without the data that is not part of
the project. The output of one that fails is shown, and the exit code is 1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.harness.alone import ONE_THREAD
from benchmarks.harness.main import choose
from benchmarks.harness.runs import say

FOLDER = Path(__file__).parent
#: Those whose smallest run is made by a file of tests/benchmarks: name -> file.
IN_TESTS = {name: f"test_{name}.py" for name in (
    "accuracy", "adult", "constants", "conversions", "coverage", "fig3b", "inference", "mixture", "privbayes", "scale",
    "sdnist", "selection",
)}  # fmt: skip


def names() -> dict[str, str]:
    """Return the benchmarks that take --smoke: name -> "STUDY" or "MEASUREMENT"."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
    texts |= {path.parent.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*/__main__.py"))}
    papers = sorted((FOLDER / "papers").glob("*.py"))
    texts |= {f"paper {path.stem}": path.read_text(encoding="utf-8") for path in papers}
    found = {name: re.search(r"^(STUDY|MEASUREMENT) = ", text, re.MULTILINE) for name, text in texts.items()}
    return {name: match[1] for name, match in found.items() if match}


def main(given: Sequence[str]) -> int:
    """Run those named, or all that no test runs; return how many failed."""
    known = names()
    wanted = ",".join(given or [name for name in known if name not in IN_TESTS])
    with tempfile.TemporaryDirectory(prefix="dpgm-smoke-") as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(lambda name: _fails(name, known[name], scratch), choose("benchmark", wanted, list(known))))


def _fails(name: str, kind: str, scratch: str) -> bool:
    """Run one benchmark in a process of its own and say how it went."""
    command = [sys.executable, "-m", *f"benchmarks.{name}".split(), "--smoke"]
    command += ["--store", f"{name.replace(' ', '-')}.jsonl"] if kind == "STUDY" else []
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(FOLDER.parent), "DPGM_SHARED": scratch}
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=scratch, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    say(f"{name}: {'failed' if done.returncode else 'ran'}, {time.monotonic() - began:.1f} s")
    if done.returncode:
        say(done.stdout)
    return bool(done.returncode)


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
