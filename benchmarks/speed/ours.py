"""Parts of `benchmarks.inference` on our executors alone: compiling, many calls, limits, predicted time."""

from __future__ import annotations

import math
import os
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.harness.output import markdown
from benchmarks.harness.timing import cpu_seconds, wall_seconds
from benchmarks.peers.libraries import engine_of, executors
from benchmarks.speed.models import Case, cases
from benchmarks.speed.page import Aim, Part
from dpgm_core import Clique, Domain
from dpgm_core.inference.junction_tree.contraction import NUMBA, NUMPY, Search
from dpgm_core.inference.junction_tree.engine import JunctionTreeEngine, plan_along, plan_inference
from dpgm_core.learning import Limits, ModelSize
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

#: Turns of what is timed.
RUNS = 7

Figures = dict[str, Any]


def by_executor(figures: Figures, columns: tuple[str, ...], show: Callable[..., tuple[str, ...]]) -> str:
    """A row for each model, with the columns of every executor. show: from an executor's numbers to texts."""
    kinds = list(next(iter(figures.values())))
    head = ["model"] + [f"{kind}: {what}" for kind in kinds for what in columns]
    rows = [[name, *(text for kind in kinds for text in show(*found[kind]))] for name, found in figures.items()]
    return markdown(head, rows)


# --- Compiling ---


def _compiled(asked: Namespace) -> Figures:
    """Model -> executor -> [compile, again, first call], ms, the least of some; what a process pays once is not in."""
    return {
        model.name: {executor or "numpy": _clocked(model, executor, asked) for executor in executors()}
        for model in cases(asked)
    }


def _clocked(model: Case, executor: str, asked: Namespace) -> list[float]:
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


def _compiled_aims(figures: Figures) -> list[Aim]:
    """Of the executor that is chosen by itself: what a round of adaptive selection should wait at most."""
    return [
        Aim(f"compile {name}, ms", next(iter(found.values()))[0], 20.0)
        for name, found in figures.items()
        if name in ("chain3-k10", "er-k20", "grid10-k2")
    ]


COMPILE = Part(
    """Compiling a structure, ours alone: milliseconds until an engine is there, again, and of the first call.

Again: a process remembers the plans of its last structures, because learners and selectors come back to them.
""",
    _compiled,
    partial(
        by_executor,
        columns=("compile", "again", "first call"),
        show=lambda *numbers: tuple(f"{one:.3g}" for one in numbers),
    ),
    _compiled_aims,
)


# --- Many calls ---

COUNT = 40


def _many(asked: Namespace) -> Figures:
    """Model -> executor -> [one after another, many], ms for each inference."""
    found: Figures = {}
    for model in cases(asked):
        theta = np.resize(model.theta, (COUNT, model.structure.cells))
        sets = [Tables(model.structure, row) for row in theta]
        found[model.name] = {}
        for executor in executors():
            engine = engine_of(model.structure, executor)
            engine.infer(sets[0])  # what this process loads
            calls = (partial(_one_by_one, engine, sets), partial(engine.infer_many, theta))
            best = [math.inf, math.inf]
            with patch.dict(os.environ, DPGM_THREADS=str(os.cpu_count())):  # the process has one thread otherwise
                for _ in range(1 if asked.smoke else RUNS):
                    best = [min(least, wall_seconds(call)) for least, call in zip(best, calls, strict=True)]
            found[model.name][executor] = [1e3 * seconds / COUNT for seconds in best]
    return found


def _one_by_one(engine: Any, sets: list[Tables]) -> None:
    for potentials in sets:
        engine.infer(potentials)


MANY = Part(
    """Forty inferences on one structure, as `infer_many` of all and as calls one after another; ours alone.

Seconds on the wall, milliseconds for each inference, least of turns that alternate.
""",
    _many,
    partial(
        by_executor,
        columns=("calls", "infer_many", "ratio"),
        show=lambda calls, many: (f"{calls:.3g}", f"{many:.3g}", f"{many / calls:.2f}"),
    ),
)


# --- Limits ---

#: Of a plan for numpy: no limit.
MAX_BYTES = 2**62
#: A working set of so many bytes is taken to stay in the cache of one core.
CACHED = 2**20


def rates(runs: int = 30) -> dict[str, float]:
    """exp, multiply-adds and calls of numpy per second; bytes per second of a copy, read and written, in memory and in
    the cache. What takes milliseconds is of the CPU, so that other processes take nothing from it."""
    large, small, few = np.ones(2**23), np.ones(2**14), np.ones(8)
    into_large, into_small, into_few = np.empty_like(large), np.empty_like(small), np.empty_like(few)
    matrix = np.ones((512, 512))
    product = np.empty_like(matrix)
    return {
        "exp": small.size / wall_seconds(lambda: np.exp(small, out=into_small), 10 * runs),
        "multiply-add": matrix.size * 512 / cpu_seconds(lambda: np.matmul(matrix, matrix, out=product), runs),
        "call": 1 / wall_seconds(lambda: np.multiply(few, few, into_few), 1000 * runs),
        "memory": 2 * large.nbytes / cpu_seconds(lambda: np.copyto(into_large, large), runs),
        "cache": 2 * small.nbytes / wall_seconds(lambda: np.copyto(into_small, small), 10 * runs),
    }


def limit(cells: int, multiply_adds: int, bytes_touched: int, rate: dict[str, float]) -> float:
    """Milliseconds."""
    arithmetic = cells / rate["exp"] + multiply_adds / rate["multiply-add"]
    moving = bytes_touched / rate["cache" if bytes_touched <= CACHED else "memory"]
    return 1e3 * max(arithmetic, moving)


def _limits(asked: Namespace) -> Figures:
    """Rates of the machine, and of each model what it needs, its limit and what it takes, ms."""
    rate, models = rates(3 if asked.smoke else 30), {}
    for model in cases(asked):
        cells, engine, potentials = model.structure.cells, engine_of(model.structure, ""), model.sets[0]
        needs = engine.needs
        taken = _cpu_seconds(partial(engine.infer, potentials))
        program = plan_inference(model.structure, MAX_BYTES).program
        models[model.name] = {
            "calls": sum(map(len, (*program.forward, *program.backward))),
            "plans": _by_plan(model),
            "cells": cells,
            "multiply-adds": needs.multiply_adds,
            "bytes": needs.peak_bytes,
            "limit ms": limit(cells, needs.multiply_adds, needs.peak_bytes, rate),
            "ms": 1e3 * taken,
        }
    return {"rates": rate, "models": models}


def _by_plan(model: Case) -> list[float]:
    """CPU milliseconds of an inference along each order that was priced, the cheapest by its price first."""
    search, found = Search(model.structure, NUMBA if "numba" in executors() else NUMPY, MAX_BYTES), []
    for candidate in search.candidates:
        engine = JunctionTreeEngine(model.structure, plan_along(search, candidate), MAX_BYTES, "auto")
        found.append(1e3 * _cpu_seconds(partial(engine.infer, model.sets[0])))
    return found


def _limits_table(figures: Figures) -> str:
    """The rates, then a row for each model."""
    rate = figures["rates"]
    rows = [
        (
            name,
            f"{one['cells']:,}",
            f"{one['multiply-adds'] / 1e6:.3g}",
            f"{one['bytes'] / 1e6:.3g}",
            f"{1e3 * one['cells'] / rate['exp']:.2g}",
            f"{1e3 * one['multiply-adds'] / rate['multiply-add']:.2g}",
            f"{one['limit ms']:.2g}",
            f"{one['ms']:.3g}",
            f"{one['ms'] / one['limit ms']:.1f}",
            f"{one['calls']}",
            f"{1e3 * one['calls'] / rate['call']:.2g}",
            f"{len(one['plans'])}",
            f"{one['plans'][0] / min(one['plans']):.2f}",
        )
        for name, one in figures["models"].items()
    ]
    head = [
        "model",
        "exp",
        "M multiply-adds",
        "MB",
        "exp, ms",
        "multiply-adds, ms",
        "limit, ms",
        "taken, ms",
        "in limits",
        "numpy calls",
        "their least, ms",
        "plans",
        "first / fastest",
    ]
    return (
        f"A second: {rate['exp'] / 1e9:.2g} billion exp, {rate['multiply-add'] / 1e9:.3g} billion multiply-adds, "
        f"copies of {rate['memory'] / 1e9:.3g} GB in memory and of {rate['cache'] / 1e9:.3g} in the cache; a call of "
        f"numpy on eight numbers takes {1e9 / rate['call']:.0f} ns.\n\n" + markdown(head, rows)
    )


LIMITS = Part(
    """What this machine does at most, and what each model cannot cost less than.

An inference takes exp of every log-potential, makes each multiply-add of its plan, once forwards and once backwards per
operand, and touches its arrays at least once. Rates: exp of numpy on an array that stays in the cache, multiply-adds
of a large product of matrices, bytes of a copy in memory and in the cache. The limit is the longer of arithmetic and
bytes; interpreting, checking and waiting for a step's operands come on top of it. Beside it what an inference takes,
in milliseconds and in limits, and without numba the calls of numpy's program, one after another, and what they take on
eight numbers each; and the plans that were priced, and what the cheapest one takes beside the fastest.
""",
    _limits,
    _limits_table,
)


# --- Predicted time ---

#: Numbers of labels of the tables that structures are drawn over.
KINDS = {
    "mixed": (74, 9, 16, 7, 15, 6, 5, 2, 20, 20, 20, 42, 2, 20),
    "16 binary": (2,) * 16,
    "23 binary": (2,) * 23,
    "60 wide": (2, 9, 30, 5, 14, 22) * 10,
    "75 small": (2, 3, 11, 5, 7) * 15,
    "few": (5, 5, 4, 3, 5, 6, 10),
    "hours": (4,) * 24,
}
#: Milliseconds, below which structures are no matter of limits.
SHORT = 0.1
#: Cells that a drawn structure's clusters have at most.
SIZES = tuple(2**power for power in (12, 14, 16, 18, 19, 21))


def _drawn(domain: Domain, cells: int, order: int, rng: np.random.Generator) -> list[Clique]:
    """Return a random tree of pairs, then random sets of 2 to `order` attributes, as far as the cells allow."""
    names, limits = domain.names, Limits(seconds=math.inf, memory=16 * cells)
    alone: list[Clique] = [(name,) for name in names]
    size, cliques, missed = ModelSize(domain, alone), alone, 0
    waiting: list[Clique] = [(names[int(rng.integers(place))], names[place]) for place in range(1, len(names))]
    while missed < 40:
        places = np.sort(rng.choice(len(names), int(rng.integers(2, order + 1)), replace=False))
        clique = waiting.pop() if waiting else tuple(names[place] for place in places.tolist())
        if clique in cliques or not size.fits(clique, limits):
            missed += 1
        else:
            size.add(clique)
            cliques.append(clique)
    return cliques


def _predicted(asked: Namespace) -> Figures:
    """Kind of table -> of each structure its cells, CPU milliseconds of an inference, and those predicted."""
    rng, figures = np.random.default_rng(0), {}
    for name, labels in list(KINDS.items())[: 1 if asked.smoke else None]:
        domain = Domain.from_sizes({f"x{place}": count for place, count in enumerate(labels)})
        figures[name] = []
        for cells in SIZES[-1 if asked.smoke else 0 :]:
            for order in (2, 3):
                cliques = _drawn(domain, cells, order, rng)
                size, structure = ModelSize(domain, cliques), Structure(domain, cliques)
                potentials = Tables(structure, 0.1 * rng.standard_normal(structure.cells))
                seconds = _cpu_seconds(partial(engine_of(structure, "").infer, potentials))
                figures[name].append([size.cells(), 1e3 * seconds, 1e3 * size.seconds() / 400])
    return figures


def _cpu_seconds(call: Callable[[], object]) -> float:
    """Seconds of the CPU, the least of some turns."""
    call()
    turns = []
    for _ in range(RUNS):
        start, calls = time.process_time(), 0
        while time.process_time() - start < 0.02:
            call()
            calls += 1
        turns.append((time.process_time() - start) / calls)
    return min(turns)


def _predicted_table(figures: Figures) -> str:
    """A row for each kind of table, and one for all."""
    figures = {name: [one for one in some if one[1] > SHORT] for name, some in figures.items()}

    def row(name: str, some: list[list[float]]) -> list[str]:
        cells, taken, told = np.array(some).T
        by_time, by_cells = np.log(told / taken), np.log(cells / taken)
        return [
            name,
            f"{len(some)}",
            f"{taken.min():.2g} to {taken.max():.2g}",
            f"{np.exp(by_time.mean()):.2f}",
            f"{np.exp(by_time.min()):.2f} to {np.exp(by_time.max()):.2f}",
            f"{np.exp(by_time.std()):.2f}",
            f"{np.exp(by_cells.std()):.2f}",
        ]

    rows = [row(name, some) for name, some in figures.items()]
    rows.append(row("all", [one for some in figures.values() for one in some]))
    head = ["table", "structures", "ms", "predicted / taken", "range", "standard deviation", "the same, by cells"]
    return markdown(head, rows)


PREDICTED = Part(
    """How well `ModelSize` predicts the time of an inference from the clusters of a structure alone.

Selectors leave out tables with which a fit would take too long, so hundreds of candidates are priced between two rounds
and none is compiled. Structures are random trees with random pairs and triples, up to a number of cells. Seconds are of
the CPU. Structures of less than .1 ms, .04 s a fit, are left out of the table, as what a step costs whatever its size
is not predicted. Standard deviations are factors; the last is of a prediction by cells alone, whatever its constant is.
""",
    _predicted,
    _predicted_table,
)
