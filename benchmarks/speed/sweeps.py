"""Loopy BP on a 10 x 10 grid, 50 undamped flooding sweeps, parameters changed on every call: ours beside pgmax.

Milliseconds per call, the least of turns that alternate; ours in 64 bits, pgmax jitted and warm in 32.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from benchmarks.harness.output import markdown
from benchmarks.speed.models import SETS, Case, domain
from benchmarks.speed.race import fastest_peer, least, ours, races
from dpgm_core.structure.structure import Structure

SIZES = (2, 3, 4, 5)


def grid(size: int) -> Case:
    """Gaussian potentials."""
    structure = Structure.grid(domain(100, size), 10, 10)
    theta = np.random.default_rng(size).normal(size=(SETS, structure.cells))
    return Case(name=f"grid10-k{size}", structure=structure, theta=theta)


def measure(asked: Namespace) -> dict[str, Any]:
    """Labels -> what `race` found."""
    models = map(grid, SIZES[: 1 if asked.smoke else None])
    found = races(("dpgm-loopy", "pgmax"), models, asked)
    return {str(size): figures for size, (_, figures) in zip(SIZES, found, strict=False)}


def table(figures: dict[str, Any]) -> str:
    """A row for each number of labels."""
    rows = []
    for size, found in figures.items():
        peer = fastest_peer(found)
        mine = [least(found, f"dpgm-loopy {executor}") for executor in ("numba", "numpy")]
        rows.append([size, *mine, least(found, "pgmax"), f"{ours(found) / peer[1]:.2f}" if peer else "-"])
    return markdown(["labels", "numba", "numpy", "pgmax", "ratio"], rows)
