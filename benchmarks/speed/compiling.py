"""Compiling a structure made anew, ours alone: milliseconds until an engine is there, and of its first call."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from typing import Any

from benchmarks.harness.main import choose
from benchmarks.harness.output import markdown
from benchmarks.peers.exact_dpgm import engine_of, executors
from benchmarks.speed.aimed import Aim
from benchmarks.speed.models import Case, case, names_of
from dpgm_core.structure import Structure

__all__ = ["aims", "measure", "table"]

#: Milliseconds that a round of adaptive selection should wait at most.
MOST = 20.0
RUNS = 7


def measure(asked: Namespace) -> dict[str, Any]:
    """Model -> executor -> [compile, first call], ms, each the least of some; what a process pays once is not in."""
    names = choose("model", asked.models, names_of(asked.networks))[: 1 if asked.smoke else None]
    found = {}
    for name in names:
        model = case(name, asked.networks)
        found[name] = {executor or "numpy": _one(model, executor, asked) for executor in executors()}
    return found


def _one(model: Case, executor: str, asked: Namespace) -> list[float]:
    compiling = first = math.inf
    potentials = model.sets[0]
    engine_of(model.structure, executor).infer(potentials)  # whatever this process loads, and numba compiles
    for _ in range(1 if asked.smoke else RUNS):
        structure = Structure(model.structure.domain, model.structure.cliques)  # it remembers its elimination
        start = time.perf_counter()
        engine = engine_of(structure, executor)
        compiled = time.perf_counter()
        engine.infer(potentials)
        compiling = min(compiling, compiled - start)
        first = min(first, time.perf_counter() - compiled)
    return [1e3 * compiling, 1e3 * first]


def table(figures: dict[str, Any]) -> str:
    """A row for each model."""
    kinds = list(next(iter(figures.values())))
    head = ["model"] + [f"{kind}: {what}" for kind in kinds for what in ("compile", "first call")]
    rows = [[name, *(f"{one:.3g}" for kind in kinds for one in found[kind])] for name, found in figures.items()]
    return markdown(head, rows)


def aims(figures: dict[str, Any]) -> list[Aim]:
    """Of the executor that is chosen by itself."""
    return [
        Aim(f"compile {name}, ms", next(iter(found.values()))[0], MOST)
        for name, found in figures.items()
        if name in ("chain3-k10", "er-k20", "grid10-k2")
    ]
