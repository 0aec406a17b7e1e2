"""Contestants: each library in a process of its own, under its own interpreter, asked one thing at a time."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness.alone import XLA, Served
from benchmarks.harness.runs import say
from benchmarks.peers.environments import PACKAGES, python_of
from benchmarks.peers.marginals import CONTESTANTS
from dpgm_core._util.arrays import FloatArray

#: The environments of contestants; see `peers/environments.py`.
PEERS = ("mbi", "pyagrum", "pgmpy", "pgmax")


def interpreters(folder: Path | None, wanted: Collection[str] = PEERS) -> dict[str, Path]:
    """Peer -> its interpreter; those that are here."""
    found = {}
    for name in PEERS:
        if name not in wanted:
            continue
        path = python_of(name, folder)
        if path is not None:
            found[name] = path
        else:
            where = folder or "FOLDER"
            say(f"{name} is left out; --peers FOLDER --install makes {where}/{name} with {' '.join(PACKAGES[name])}")
    return found


def contestants(names: Sequence[str], folder: Path | None) -> list[Contestant]:
    """Those of these names that are here; names: of `peers.marginals.CONTESTANTS`."""
    homes = {name: CONTESTANTS[name].home for name in names}
    here = interpreters(folder, set(homes.values())) | {"dpgm": Path(sys.executable)}
    return [Contestant(name, here[home]) for name, home in homes.items() if home in here]


class Contestant(Served):
    """One library; see `peers/marginals.py`."""

    def __init__(self, name: str, python: Path) -> None:
        super().__init__([python, "-m", "benchmarks.peers.marginals", name], os.environ | XLA)
        self.name = name

    def checked(self, model: Path, variant: str, limit: float) -> tuple[FloatArray, float, float]:
        """Marginals, log Z (NaN: not told) of the first parameter set, and the seconds of this first call."""
        self._has(model, limit)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "check.npz")
            seconds = self.ask({"check": str(path), "variant": variant}, limit)["seconds"]
            with np.load(path) as found:
                return found["marginals"], float(found["log_z"]), seconds

    def fastest(self, model: Path, variant: str, limit: float, *, calls: int, seconds: float) -> float:
        """The least seconds of up to so many calls within about so many seconds, each on the next parameter set."""
        self._has(model, limit)
        found: float = self.ask({"calls": calls, "seconds": seconds, "variant": variant}, limit)["fastest"]
        return found

    def _has(self, model: Path, limit: float) -> None:
        if self.process is None:  # it was ended, and knows nothing
            self.ask({"load": str(model)}, limit)
