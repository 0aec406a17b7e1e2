"""Exact marginals and log Z on a fixed structure, parameters changed on every call: ours beside every peer.

Milliseconds per call, the least of turns that alternate. One thread; ours in 64 bits with log Z, which no peer gives;
mbi jitted and warm on arrays that are ready, its fastest oracle; pyAgrum and pgmpy rebuilt for each parameter set.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from benchmarks.harness.output import markdown
from benchmarks.speed.models import cases
from benchmarks.speed.page import Aim
from benchmarks.speed.race import fastest_peer, least, ours, races

CONTESTANTS = ("dpgm", "mbi", "mbi64", "pyagrum", "pgmpy")
#: Ours over the fastest peer.
TARGETS = {
    "chain3-k10": 0.09,
    "chain3-k20": 0.22,
    "er-k10": 0.13,
    "er-k20": 0.35,
    "chain100-k50": 0.2,
    "grid10-k2": 0.05,
    "grid10-k3": 0.02,
    **dict.fromkeys(("asia", "sachs", "child", "alarm", "hailfinder"), 0.06),
}
#: The same of numpy's executor.
WITHOUT = 0.2


def measure(asked: Namespace) -> dict[str, Any]:
    """Model -> its size and what `race` found."""
    figures = {}
    for model, found in races(CONTESTANTS, cases(asked), asked):
        size = {"attributes": len(model.structure.domain.names), "cells": model.structure.cells}
        figures[model.name] = size | found
        print(table({model.name: figures[model.name]}), flush=True)
    return figures


def table(figures: dict[str, Any]) -> str:
    """A row for each model."""
    head = ["model", "numba", "numpy", "mbi 32", "mbi 64", "pyAgrum", "pgmpy", "fastest peer", "ratio", "target"]
    rows = []
    for name, found in figures.items():
        peer = fastest_peer(found)
        rows.append(
            [name]
            + [f"{found['ms'][who]:.3g}" if who in found["ms"] else "-" for who in ("dpgm numba", "dpgm numpy")]
            + [least(found, one) for one in ("mbi", "mbi64", "pyagrum", "pgmpy")]
            + ([peer[0], f"{ours(found) / peer[1]:.3f}"] if peer else ["-", "-"])
            + [str(TARGETS.get(name, "-"))]
        )
    return markdown(head, rows)


def aims(figures: dict[str, Any]) -> list[Aim]:
    """The executor that is chosen by itself over the fastest peer, then numpy's."""
    found, without = [], []
    for name, one in figures.items():
        peer = fastest_peer(one)
        if peer is not None and name in TARGETS:
            found.append(Aim(f"{name}, ours / fastest peer", ours(one) / peer[1], TARGETS[name], peer[0]))
        if peer is not None and "dpgm numba" in one["ms"]:
            without.append(Aim(f"{name}, without numba", one["ms"]["dpgm numpy"] / peer[1], WITHOUT, peer[0]))
    return found + without
