"""Contestants: each library in a process of its own, under its own interpreter, asked one thing at a time."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks.harness.runs import refuse, say
from benchmarks.peers.marginals import CONTESTANTS
from dpgm_core._util.arrays import FloatArray

ROOT = Path(__file__).parents[2]
#: Environment -> what pip installs into it.
PEERS = {"mbi": ["mbi==2.0.0"], "pyagrum": ["pyagrum==3.3.1"], "pgmpy": ["pgmpy==1.1.2"], "pgmax": ["pgmax==0.6.1"]}
# One thread for the peers too, and nothing kept from an earlier run.
XLA = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
    "JAX_PLATFORMS": "cpu",
}


class Silent(Exception):
    """No answer: an error over there, or too late."""


def interpreters(folder: Path | None, wanted: Collection[str] = tuple(PEERS)) -> dict[str, Path]:
    """Peer -> its interpreter: FOLDER/NAME/bin/python, else what DPGM_NAME_PYTHON says; those that are here."""
    found = {}
    for name in PEERS:
        if name not in wanted:
            continue
        known = os.environ.get(f"DPGM_{name.upper()}_PYTHON")
        path = folder / name / "bin" / "python" if folder is not None else None
        if path is not None and path.is_file():
            found[name] = path
        elif known:
            found[name] = Path(known)
        else:
            where = folder or "FOLDER"
            say(f"{name} is left out; --peers FOLDER --install makes {where}/{name} with {' '.join(PEERS[name])}")
    return found


def make(folder: Path) -> None:
    """A virtual environment for every peer that has none there."""
    for name, wanted in PEERS.items():
        if (folder / name / "bin" / "python").is_file():
            continue
        say(f"making {folder / name}")
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        done = subprocess.run([folder / name / "bin" / "python", "-m", "pip", "install", "-q", *wanted], check=False)
        if done.returncode:
            refuse(f"{' '.join(wanted)} was not installed into {folder / name}; what pip said is above")


def contestants(names: Sequence[str], folder: Path | None) -> list[Contestant]:
    """Those of these names that are here; names: of `peers.marginals.CONTESTANTS`."""
    homes = {name: CONTESTANTS[name].home for name in names}
    here = interpreters(folder, set(homes.values())) | {"dpgm": Path(sys.executable)}
    return [Contestant(name, here[home]) for name, home in homes.items() if home in here]


class Contestant:
    """One library; see `peers/marginals.py`. A context: its process ends with it."""

    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        self._python = python
        self._process: subprocess.Popen[str] | None = None
        self._told: IO[str] | None = None  # what it says on stderr

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Its process is gone; the next question starts another one."""
        if self._process is not None:
            with suppress(BrokenPipeError), self._process:  # closes what leads there, and waits
                self._process.kill()
            self._process = None
        if self._told is not None:
            self._told.close()
            self._told = None

    def ask(self, limit: float, **request: object) -> dict[str, Any]:
        """One request, one answer within `limit` seconds; raises Silent, and then the process is another one."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended, which the empty line says
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], limit)
        line = process.stdout.readline() if ready else ""
        if not line:
            why = f"its process ended: {self._last_words()}" if ready else f"took more than {limit:.0f} s"
            self.end()
            raise Silent(why)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Silent(answer["error"])
        return answer

    def checked(self, model: Path, variant: str, limit: float) -> tuple[FloatArray, float, float]:
        """Marginals, log Z (NaN: not told) of the first parameter set, and the seconds of this first call."""
        self._has(model, limit)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "check.npz")
            seconds = self.ask(limit, check=str(path), variant=variant)["seconds"]
            with np.load(path) as found:
                return found["marginals"], float(found["log_z"]), seconds

    def fastest(self, model: Path, variant: str, limit: float, *, calls: int, seconds: float) -> float:
        """The least seconds of up to so many calls within about so many seconds, each on the next parameter set."""
        self._has(model, limit)
        found: float = self.ask(limit, calls=calls, seconds=seconds, variant=variant)["fastest"]
        return found

    def _has(self, model: Path, limit: float) -> None:
        if self._process is None:  # it was ended, and knows nothing
            self.ask(limit, load=str(model))

    def _last_words(self) -> str:
        assert self._told is not None
        self._told.seek(0)
        return (self._told.read().strip().splitlines() or ["nothing said"])[-1]

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._told = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `end`
            self._process = subprocess.Popen(
                [self._python, "-m", "benchmarks.peers.marginals", self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._told,
                text=True,
                env=os.environ | XLA,
                cwd=ROOT,
            )
        return self._process
