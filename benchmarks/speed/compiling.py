"""Compiling a structure, ours alone: milliseconds until an engine is there, again, and of the first call.

Again: a process remembers the plans of its last structures, because learners and selectors come back to them.
"""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

import numpy as np

from benchmarks.harness.main import choose
from benchmarks.harness.output import markdown
from benchmarks.peers.exact_dpgm import engine_of, executors
from benchmarks.speed.aimed import Aim
from benchmarks.speed.models import Case, case, names_of
from dpgm_core.inference.junction_tree.engine import plan_inference
from dpgm_core.structure.structure import Structure

#: Milliseconds that a round of adaptive selection should wait at most.
MOST = 20.0
RUNS = 7


def measure(asked: Namespace) -> dict[str, Any]:
    """Model -> executor -> [compile, again, first call], ms, the least of some; what a process pays once is not in."""
    names = choose("model", asked.models, names_of(asked.networks))[: 1 if asked.smoke else None]
    found = {}
    for name in names:
        model = case(name, asked.networks)
        found[name] = {executor or "numpy": _one(model, executor, asked) for executor in executors()}
    return found


def _one(model: Case, executor: str, asked: Namespace) -> list[float]:
    potentials = model.sets[0]
    engine_of(model.structure, executor).infer(potentials)  # whatever this process loads, and numba compiles
    found = []
    for _ in range(1 if asked.smoke else RUNS):
        plan_inference.cache_clear()
        structure = Structure(model.structure.domain, model.structure.cliques)  # an engine may hang on to the other
        clock = [time.perf_counter()]
        engine_of(structure, executor)
        clock.append(time.perf_counter())
        engine = engine_of(structure, executor)
        clock.append(time.perf_counter())
        engine.infer(potentials)
        clock.append(time.perf_counter())
        found.append(np.diff(clock))
    return [float(1e3 * least) for least in np.min(found, axis=0)]


def table(figures: dict[str, Any]) -> str:
    """A row for each model."""
    kinds = list(next(iter(figures.values())))
    head = ["model"] + [f"{kind}: {what}" for kind in kinds for what in ("compile", "again", "first call")]
    rows = [[name, *(f"{one:.3g}" for kind in kinds for one in found[kind])] for name, found in figures.items()]
    return markdown(head, rows)


def aims(figures: dict[str, Any]) -> list[Aim]:
    """Of the executor that is chosen by itself."""
    return [
        Aim(f"compile {name}, ms", next(iter(found.values()))[0], MOST)
        for name, found in figures.items()
        if name in ("chain3-k10", "er-k20", "grid10-k2")
    ]
