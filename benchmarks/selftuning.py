"""Which learner needs no tuning? Every rule beside the oracles, on many data sets.

    python -m benchmarks.selftuning [--smoke | --full | --report] [--jobs N] [--cells A,B] [--only-methods A,B]

Runs go to benchmarks/results/trials.jsonl (see trials.py); at the end, or with --report alone, tables and the plot are
written from it.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from benchmarks.trials import Grid, cells, main

__all__ = ["GRIDS"]

BOTH = ("chain3", "er")
RECORDS = (10**4, 10**5, 10**6)
POINTS = tuple(product(RECORDS, (0.1, 0.5, 1.0)))
FEW = ((10**4, 1.0), (10**5, 0.1), (10**5, 1.0), (10**6, 0.1))


def full() -> Grid:
    """The study: cells and draws."""
    grid: Grid = {}
    grid |= dict.fromkeys(cells(BOTH, 5, POINTS), 10)
    grid |= dict.fromkeys(cells(BOTH, 5, FEW, noise="gaussian"), 10)
    grid |= dict.fromkeys(cells(BOTH, 10, POINTS), 5)
    grid |= dict.fromkeys(cells(BOTH, 10, ((10**4, 0.5), (10**5, 0.1)), noise="gaussian"), 5)
    grid |= dict.fromkeys(cells(("chain1",), 20, FEW), 5)
    for truth in ("gaussian", "weak", "sparse"):
        grid |= dict.fromkeys(cells(BOTH, 5, FEW, truth=truth), 5)
    health = ((20_000, 0.1), (20_000, 0.5), (20_000, 1.0), (10**5, 0.1))
    grid |= dict.fromkeys(cells(("health",), 0, health, truth="health"), 5)
    return grid


GRIDS = {
    "smoke": dict.fromkeys(cells(("chain1",), 3, ((3000, 0.5), (10**4, 1.0))), 2),
    "usual": dict.fromkeys(cells(BOTH, 5, POINTS), 2),
    "full": full(),
}


def report(store: Path, out: Path) -> None:
    """Later."""


if __name__ == "__main__":
    main(__doc__, GRIDS, report)
