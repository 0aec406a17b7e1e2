"""How engines with certified bounds on log Z must behave (`Bounder`)."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpgm_core.domain import Domain
from dpgm_core.inference.contract import Bounder
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables
from dpgm_core.testing.check import Checklist, explore, require
from dpgm_core.testing.checks.engine import awkward_potentials, say
from dpgm_core.testing.oracles import enumerated
from dpgm_core.testing.strategies import potentials
from dpgm_core.testing.subjects import InferenceSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("inference")


@CHECKS.add(needs="bounds")
def bounds_hold_log_z(subject: InferenceSubject) -> None:
    """bounds gives low <= log Z <= high, as enumeration has it, a finite high, the same each time, and notes that are
    sentences; also where all pairs of 12 binary attributes are too wide for parts of 1024 cells. Cannot show:
    structures too large to enumerate; how close the bounds are."""

    def claim(theta: Tables) -> None:
        engine = subject.engine(theta.structure)
        require(isinstance(engine, Bounder), f"{type(engine).__name__} lacks members of Bounder")
        assert isinstance(engine, Bounder)
        found, truth = engine.bounds(theta), enumerated(theta).log_partition
        require(math.isfinite(found.high), f"the upper bound is {found.high} {say(theta)}")
        # Enumeration rounds too; an engine's own rounding is inside its bounds.
        rounding = 1e-12 * (1 + abs(truth))
        require(found.low <= truth + rounding, f"log Z is {truth:.12g}, below {found.low:.12g}, {say(theta)}")
        require(found.high >= truth - rounding, f"log Z is {truth:.12g}, above {found.high:.12g}, {say(theta)}")
        require(engine.bounds(theta) == found, f"another call gives other bounds {say(theta)}")
        require(all(isinstance(note, str) and note for note in found.notes), "a note is no sentence")

    explore(subject.profile, potentials(), claim, worst=awkward_potentials(20.0), share=0.5)
    for theta in _wide():
        claim(theta)


def _wide() -> list[Tables]:
    """Potentials over all pairs of 12 binary attributes: random, and attractive."""
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(12)})
    structure = Structure(domain, list(itertools.combinations(domain.names, 2)))
    random = np.random.default_rng(0).normal(scale=0.5, size=structure.cells)
    alike = np.tile([0.1, 0.0, 0.0, 0.1], len(structure.cliques))
    return [Tables(structure, random), Tables(structure, alike)]
