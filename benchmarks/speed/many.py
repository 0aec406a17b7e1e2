"""Forty inferences on one structure, as `infer_many` of all and as calls one after another; ours alone.

Seconds on the wall, milliseconds for each inference, least of turns that alternate.
"""

from __future__ import annotations

import math
from argparse import Namespace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.main import choose
from benchmarks.harness.output import markdown
from benchmarks.harness.timing import wall_seconds
from benchmarks.peers.exact_dpgm import engine_of, executors
from benchmarks.speed.models import case, names_of
from dpgm_core.structure.tables import Tables

COUNT, ROUNDS = 40, 7


def measure(asked: Namespace) -> dict[str, Any]:
    """Model -> executor -> [one after another, many], ms for each inference."""
    found: dict[str, Any] = {}
    for name in choose("model", asked.models, names_of(asked.networks))[: 1 if asked.smoke else None]:
        model = case(name, asked.networks)
        theta = np.resize(model.theta, (COUNT, model.structure.cells))
        sets = [Tables(model.structure, row) for row in theta]
        found[name] = {}
        for executor in executors():
            engine = engine_of(model.structure, executor)
            engine.infer(sets[0])  # what this process loads
            calls = (partial(_one_by_one, engine, sets), partial(engine.infer_many, theta))
            best = [math.inf, math.inf]
            for _ in range(1 if asked.smoke else ROUNDS):
                best = [min(least, wall_seconds(call)) for least, call in zip(best, calls, strict=True)]
            found[name][executor] = [1e3 * seconds / COUNT for seconds in best]
    return found


def _one_by_one(engine: Any, sets: list[Tables]) -> None:
    for potentials in sets:
        engine.infer(potentials)


def table(figures: dict[str, Any]) -> str:
    """A row for each model."""
    kinds = list(next(iter(figures.values())))
    head = ["model"] + [f"{kind}: {what}" for kind in kinds for what in ("calls", "infer_many", "ratio")]
    rows = [[name, *(text for kind in kinds for text in _shown(*found[kind]))] for name, found in figures.items()]
    return markdown(head, rows)


def _shown(calls: float, many: float) -> tuple[str, str, str]:
    return f"{calls:.3g}", f"{many:.3g}", f"{many / calls:.2f}"
