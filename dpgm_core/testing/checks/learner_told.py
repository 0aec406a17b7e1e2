"""What a learner makes of what it is told: how many records there are, how noisy each table is, and that its engine did
not converge."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
from attrs import frozen

from dpgm_core.errors import BudgetError, DpgmError
from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.doors import TrappedRecords
from dpgm_core.testing.evidence import torn
from dpgm_core.testing.learning import CHAIN, clique_marginals, draw, learn, replayed, truth
from dpgm_core.testing.oracles import enumerated
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


@CHECKS.add()
def many_records_are_followed(subject: LearnerSubject) -> None:
    """From 100,000 records, where noise is next to nothing, every clique's marginal is the true one to 0.03, tied
    cliques included: the total is what tables are shares of. Cannot show: how strongly few records should be smoothed.
    """
    for name, structure in (("chain", CHAIN), ("tied", awkward_structures()["tied"])):
        theta = truth(structure)
        codes = draw(theta, 100_000, 1)
        fit = learn(subject, codes, structure, source=TrappedRecords(codes, rows=len(codes))).fit
        off = float(np.abs(clique_marginals(fit.model.potentials) - enumerated(theta).marginals.values).max())
        require(off <= 0.03, f"{name}: with 100,000 records a marginal is {off:.3g} from the truth")


@CHECKS.add()
def quiet_tables_count_for_more(subject: LearnerSubject) -> None:
    """Where two tables contradict each other the model lies nearer to the one with a tenth of the other's noise,
    whichever it is. Cannot show: how much nearer it should be, and learners that take rounds, all of the same noise."""
    for quiet in (0, 1):
        release = torn(quiet)
        try:
            fit = replayed(subject.component, release, release.structure)
        except BudgetError:  # it takes rounds, which no finished release can be
            return
        share = float(fit.model.marginal(("b",))[0])
        nearer = share > 0.51 if quiet == 0 else share < 0.49
        require(
            nearer,
            f"P(b = 0) is {0.8 - 0.6 * quiet:.1f} in the table with little noise, {0.2 + 0.6 * quiet:.1f} in the one "
            f"with ten times as much, and {share:.4f} in the model",
        )


@frozen(kw_only=True)
class _Restless:
    """An engine that never settles, and says so: each answer is that of other potentials near by."""

    max_order: ClassVar[None] = None

    def compile(self, structure: Structure) -> _RestlessEngine:
        return _RestlessEngine(inner=JunctionTree().compile(structure), generator=np.random.default_rng(1))


@frozen(kw_only=True)
class _RestlessEngine:
    inner: Engine
    generator: np.random.Generator
    exact: ClassVar[bool] = False
    cost: ClassVar[None] = None
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @property
    def structure(self) -> Structure:
        return self.inner.structure

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        shift = self.generator.normal(scale=0.3, size=potentials.structure.cells)
        beliefs = self.inner.infer(potentials.like(potentials.values + shift), total=total)
        return attrs.evolve(beliefs, converged=False, iterations=1000)


@CHECKS.add()
def what_never_settled_is_not_converged(subject: LearnerSubject) -> None:
    """With an engine none of whose answers converged, and each of which is another, it fails with an error of dpgm or
    says converged = false. Cannot show: that it converged where it says so."""
    restless: Inference = _Restless()
    try:
        fit = learn(subject, draw(truth(), 500, 1), inference=restless).fit
    except DpgmError:
        return
    require(not fit.converged, "no answer of its engine had converged, and it says that it did")
