"""Records for checks of learners, and calls of learners on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.progress import silent
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import BudgetError
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit, Learner
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.cases import CHAIN
from dpgm_testing.curators import GuardedCurator, SunkMechanism, TrappedRecords, live_curator
from dpgm_testing.oracles import all_records, enumerated
from dpgm_testing.subjects import LearnerSubject

__all__ = ["CHAIN", "Run", "clique_marginals", "draw", "learn", "replayed", "truth"]


@frozen(kw_only=True)
class Run:
    """One call of `learn` and what it left behind."""

    fit: Fit
    curator: GuardedCurator


def truth(structure: Structure = CHAIN, seed: int = 3) -> Tables:
    """Log-potentials of a population that is far from uniform."""
    return Tables(structure, np.random.default_rng(seed).normal(scale=1.2, size=structure.cells))


def draw(theta: Tables, count: int, seed: int) -> IntArray:
    """Codes of so many records of the model, (records, attributes)."""
    rows = all_records(theta.structure)
    return rows[np.random.default_rng(seed).choice(len(rows), size=count, p=enumerated(theta).probabilities)]


def learn(
    subject: LearnerSubject,
    codes: IntArray,
    structure: Structure | None = None,
    *,
    inference: Inference | None = None,
    seed: int = 1,
    sunk: bool = False,
    source: TrappedRecords | None = None,
) -> Run:
    """Learn with the first budget that the learner takes: pure epsilon with Laplace noise, else (epsilon, delta).

    structure: is learned as `LearnerSubject.served` has it; None: the subject's chain. Raises Unserved.
    """
    engine: Inference = JunctionTree() if inference is None else inference
    structure = subject.served(subject.chain if structure is None else structure)
    refusal: BudgetError | None = None
    for kind in ("pure", "approx"):
        records = TrappedRecords(codes) if source is None else source
        curator = live_curator(records, structure, kind, seed=seed, wrap=SunkMechanism if sunk else None)
        guarded = GuardedCurator(curator)
        try:
            fit = subject.component.learn(guarded, engine, randomness=SeededRandomness(seed), progress=silent)
        except BudgetError as error:
            refusal = error
            continue
        return Run(fit=fit, curator=guarded)
    assert refusal is not None
    raise refusal


def replayed(learner: Learner, releases: NoisyTables | Sequence[NoisyTables], structure: Structure) -> Fit:
    """The fit to finished releases."""
    curator = ReplayCurator(releases, structure)
    return learner.learn(curator, JunctionTree(), randomness=SeededRandomness(1), progress=silent)


def clique_marginals(potentials: Tables) -> FloatArray:
    """Of one record, (cells,)."""
    return JunctionTree().compile(potentials.structure).infer(potentials).marginals.values
