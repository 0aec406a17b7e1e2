"""Models full of zeros: published instances of competitions, and random constraint problems; and what one takes."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.harness.timing import cpu_seconds
from dpgm.interop.uai import read_uai
from dpgm.interop.uai_tasks import apply_evidence, read_evidence, variable_marginals
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


def beside(path: Path, ending: str) -> Path:
    """What belongs to a file: its name with another ending added."""
    return path.with_name(path.name + ending)


def timed(potentials: Tables, calls: int) -> dict[str, object]:
    """What one model takes, and what mild potentials without zeros take on the same structure."""
    structure = potentials.structure
    one = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    JunctionTree().compile(one).infer(Tables.zeros(one))  # before the clock: what a process loads once
    start = time.process_time()
    try:
        engine = JunctionTree().compile(structure)
    except TooLarge as error:
        return {"refused": str(error)}
    compiled = time.process_time() - start
    beliefs = engine.infer(potentials)
    mild = Tables(structure, np.random.default_rng(0).normal(size=structure.cells))
    both = [
        [cpu_seconds(lambda model=model: engine.infer(model)) for model in (potentials, mild)] for _ in range(calls)
    ]
    seconds, without = np.min(both, axis=0)
    return {
        "attributes": len(structure.domain),
        "tables": len(structure.cliques),
        "treewidth": structure.elimination.treewidth,
        "zeros": float(np.mean(potentials.values == -np.inf)),
        "compile ms": 1e3 * compiled,
        "ms": 1e3 * float(seconds),
        "of mild potentials": float(seconds / without),
        "MB": _peak(potentials),
        "MB, mild": _peak(mild),
        "log10 Z": beliefs.log_partition / math.log(10),
        "marginals": [margin.tolist() for margin in variable_marginals(beliefs.marginals)],
    }


def _peak(potentials: Tables) -> float:
    """The most memory that is allocated, in MB, while an inference is compiled and made for the second time."""
    structure = potentials.structure
    JunctionTree().compile(structure).infer(potentials)  # what is made once in a process is not an inference's
    tracemalloc.start()
    JunctionTree().compile(structure).infer(potentials)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def instance(path: str, calls: int) -> dict[str, object]:
    """One published instance, with its evidence."""
    potentials = read_uai(path, names=False).potentials
    evidence = beside(Path(path), ".evid")
    if evidence.is_file():
        potentials = apply_evidence(potentials, read_evidence(evidence))
    return timed(potentials, calls)


def constrained(name: str, size: int, calls: int) -> dict[str, object]:
    """One made-up model."""
    return timed(MADE[name](size), calls)


def planted(
    size: int, labels: int, arity: int, forbidden: float, penalty: float, spread: float, window: int = 8
) -> Tables:
    """A random constraint problem that has a solution: 3 constraints per variable, each on some of `window` variables.

    forbidden: the share of combinations each rules out. penalty: what that adds to their potentials, nats; -inf for
    hard constraints. spread: standard deviation of all potentials.
    """
    rng = np.random.default_rng(0)
    solution = rng.integers(labels, size=size)
    tables: dict[tuple[str, ...], np.ndarray] = {}
    for _ in range(3 * size):
        start = int(rng.integers(0, size - window + 1))
        some = np.sort(start + rng.choice(window, size=arity, replace=False))
        table = spread * rng.normal(size=(labels,) * arity)
        broken = rng.random(table.shape) < forbidden
        broken[tuple(solution[some])] = False
        table[broken] += penalty
        clique = tuple(f"x{number}" for number in some)
        tables[clique] = tables.get(clique, 0.0) + table
    structure = Structure(Domain.from_sizes({f"x{number}": labels for number in range(size)}), list(tables))
    return Tables.from_arrays(structure, tables)


MADE: Mapping[str, Callable[[int], Tables]] = {
    "hard, 2 labels, triples": lambda size: planted(size, 2, 3, 0.3, -np.inf, 1.0),
    "hard, 2 labels, wide": lambda size: planted(size, 2, 3, 0.3, -np.inf, 1.0, window=min(size, 20)),
    "hard, 4 labels, pairs": lambda size: planted(size, 4, 2, 0.4, -np.inf, 1.0),
    "hard, 3 labels, few weights": lambda size: planted(size, 3, 3, 0.6, -np.inf, 0.0),
    "penalties of 1e-4": lambda size: planted(size, 2, 3, 0.3, math.log(1e-4), 0.0),
    "penalties of 1e-4, wide": lambda size: planted(size, 2, 3, 0.3, math.log(1e-4), 0.0, window=min(size, 20)),
    "penalties of 1e-30": lambda size: planted(size, 3, 2, 0.3, math.log(1e-30), 1.0),
    "hard, potentials up to 100 nats": lambda size: planted(size, 3, 3, 0.4, -np.inf, 30.0),
    "hard, potentials up to 1000 nats": lambda size: planted(size, 3, 3, 0.4, -np.inf, 300.0),
}
