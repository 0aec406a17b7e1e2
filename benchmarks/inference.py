"""How fast inference is: ours beside mbi, pyAgrum, pgmpy and pgmax, in one run on one thread each.

    python -m benchmarks.inference [--peers FOLDER [--install]] [--only exact,...] [--models chain3-k10,...] [--smoke]

FOLDER has a virtual environment for each peer, FOLDER/mbi and so on, which --install makes; a peer without one is left
out. All that is measured goes to one file, results/inference.json, whose parts are kept until they are measured again,
and into the tables of results/inference.md, which docs/performance.md shows.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from types import ModuleType

from benchmarks.harness.main import Measurement, main
from benchmarks.speed import busy, compiling, curved, exact, first, fits, roofline, sweeps
from benchmarks.speed.contestants import make

PARTS: dict[str, ModuleType] = {
    "exact": exact,
    "loopy": sweeps,
    "compile": compiling,
    "first": first,
    "fits": fits,
    "busy": busy,
    "curvature": curved,
    "limits": roofline,
}
NETWORKS = Path(__file__).parents[2] / "shared" / "data" / "bif"


def _part(name: str, asked: Namespace) -> None:
    if asked.install:
        make(asked.peers)
    figures = PARTS[name].measure(asked)
    print(PARTS[name].table(figures))
    if asked.json:
        kept = json.loads(asked.json.read_text()) if asked.json.is_file() else {}
        asked.json.write_text(json.dumps(kept | {name: figures}, indent=1) + "\n")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--peers", type=Path, help="folder with a virtual environment for each peer")
    parser.add_argument("--install", action="store_true", help="make those that are missing there")
    parser.add_argument("--networks", type=Path, default=NETWORKS, help="folder of BIF files")
    parser.add_argument("--models", default="*", help="names or patterns, separated by commas")
    parser.add_argument("--limit", type=float, default=120, help="seconds a first call may take")
    parser.add_argument("--json", type=Path, help="write figures to this file")


def _parts():
    found = {}
    for name, module in PARTS.items():
        found[name] = partial(_part, name)
        found[name].__doc__ = module.__doc__
    return found


MEASUREMENT = Measurement(about=__doc__, parts=_parts(), arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
