"""Published instances of competitions, which are full of zeros, and what one takes."""

from __future__ import annotations

import math
import time
import tracemalloc
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
