"""Loopy BP beside pgmax: 50 undamped flooding sweeps of a 10 x 10 grid, potentials changed on every call.

    python -m benchmarks.loopy [--smoke] [--pgmax PYTHON] [--sizes 2,3,4,5]

PYTHON is the interpreter of a virtual environment with `pgmax==0.6.1`; peers/pgmax_grid.py is then run there. Times
are minima over interleaved repetitions, ours in float64, pgmax's in float32, jitted, compilation not counted.
"""

from __future__ import annotations

import json
import subprocess
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from benchmarks.harness.main import Measurement, choose, main
from benchmarks.peers.pgmax_grid import COLUMNS, ROWS, SWEEPS, fastest, tables
from dpgm_core.domain import Domain
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

ROUNDS = 5
SIZES = ("2", "3", "4", "5")


def ours(size):
    """A timing function and the first variable's marginal."""
    domain = Domain.from_sizes({f"x{i}": size for i in range(ROWS * COLUMNS)})
    structure = Structure.grid(domain, ROWS, COLUMNS)
    potentials = Tables(structure, tables(size).reshape(-1))
    engine = LoopyBP(damping=0.0, tolerance=0.0, max_iterations=SWEEPS).compile(structure)
    beliefs = engine.infer(potentials)
    return lambda: fastest(lambda: engine.infer(potentials)), beliefs.marginals["x0", "x1"].sum(axis=1)


def grid(asked: Namespace) -> None:
    """10 x 10, 50 sweeps, milliseconds per call."""
    server = None
    if asked.pgmax:
        command = [asked.pgmax, str(Path(__file__).parent / "peers" / "pgmax_grid.py")]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for size in map(int, choose("size", asked.sizes, SIZES)[: 1 if asked.smoke else None]):
        measure, marginal = ours(size)
        mine, theirs, difference = float("inf"), float("inf"), 0.0
        for _ in range(1 if asked.smoke else ROUNDS):
            mine = min(mine, measure())
            if server is not None:
                print(size, file=server.stdin, flush=True)
                milliseconds, other = json.loads(server.stdout.readline())
                theirs = min(theirs, milliseconds)
                difference = float(np.abs(marginal - np.array(other)).max())
        line = f"k = {size}: loopy-bp {mine:6.2f}"
        if server is not None:
            line += f"   pgmax {theirs:6.2f}   ratio {mine / theirs:5.2f}   marginals differ by {difference:.1e}"
        print(line, flush=True)
    if server is not None:
        server.stdin.close()
        server.wait()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--pgmax", metavar="PYTHON", help="interpreter that has pgmax 0.6.1")
    parser.add_argument("--sizes", default="*", help=f"numbers of labels, of {', '.join(SIZES)}")


MEASUREMENT = Measurement(about=__doc__, parts={"grid": grid}, arguments=_arguments)

if __name__ == "__main__":
    main(MEASUREMENT)
