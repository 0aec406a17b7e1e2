"""What a learner makes of what it is told: how many records there are, how noisy each table is, and that its engine did
not converge."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
from attrs import field, frozen

from dpgm_core.errors import BudgetError, DpgmError
from dpgm_core.inference.contract import Beliefs, Capability, Engine, Inference
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.ahead import planned_tables
from dpgm_core.learning.contract import MeasuresOtherTables
from dpgm_core.models.model import Model
from dpgm_core.models.networks import project
from dpgm_core.noise.contract import Mechanism
from dpgm_core.noise.measurement import measure
from dpgm_core.structure import Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.tables import Tables
from dpgm_core.testing.check import Checklist, Unserved, require
from dpgm_core.testing.directed import awkward_networks
from dpgm_core.testing.doors import TrappedRecords
from dpgm_core.testing.evidence import torn
from dpgm_core.testing.learning import draw, learn, replayed, truth
from dpgm_core.testing.oracles import enumerated, incidence
from dpgm_core.testing.reference import ReferenceGaussian, ReferenceLaplace
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


@CHECKS.add()
def many_records_are_followed(subject: LearnerSubject) -> None:
    """From 100,000 records, where noise is next to nothing, every clique's marginal is the true one to 0.03, tied
    cliques included (several parents, where directed graphs alone are taken): the total is what tables are shares of.
    Cannot show: how strongly few records should be smoothed."""
    # At this seed the marginals of an independent model are off by 0.1 and more.
    tied = subject.in_domain(awkward_structures()["tied"])
    cases = {name: truth(one, seed=5) for name, one in (("chain", subject.chain), ("tied", tied))}
    if subject.directed:
        cases["two parents"] = _network(awkward_networks()["two parents"])
    for name, theta in cases.items():
        codes = draw(theta, 100_000, 1)
        try:
            run = learn(subject, codes, theta.structure, source=TrappedRecords(codes, rows=len(codes)))
        except Unserved:
            continue
        found = incidence(theta.structure) @ enumerated(run.fit.model.potentials).probabilities
        off = float(np.abs(found - enumerated(theta).marginals.values).max())
        require(off <= 0.03, f"{name}: with 100,000 records a marginal is {off:.3g} from the truth")


def _network(structure: Structure) -> Tables:
    """Log-potentials of a network over the directed graph that is far from uniform."""
    return project(Model(structure, truth(structure, seed=5)), Dag.of(structure)).potentials


@CHECKS.add()
def quiet_tables_count_for_more(subject: LearnerSubject) -> None:
    """Where two tables contradict each other the model lies nearer to the one with a tenth of the other's noise,
    whichever it is. Cannot show: how much nearer it should be, and learners that choose the noise or take rounds."""
    for quiet in (0, 1):
        release = torn(quiet)
        if subject.directed:
            release = torn(quiet, measured=_asked(subject, release.structure))
        try:
            fit = replayed(subject.component, release, subject.served(release.structure))
        except BudgetError:  # it takes rounds or several, which no finished release can be
            return
        share = float(fit.model.marginal(("b",))[0])
        nearer = share > 0.51 if quiet == 0 else share < 0.49
        require(
            nearer,
            f"P(b = 0) is {0.8 - 0.6 * quiet:.1f} in the table with little noise, {0.2 + 0.6 * quiet:.1f} in the one "
            f"with ten times as much, and {share:.4f} in the model",
        )


@CHECKS.add()
def what_it_foresees_it_measures(subject: LearnerSubject) -> None:
    """A learner that foresees what it measures (`MeasuresOtherTables`) releases those tables, once, each with the noise
    of the split it states: a plan says what a fit does. Cannot show: learners that foresee nothing."""
    if not isinstance(subject.component, MeasuresOtherTables):
        return
    for name in ("nested", "cycle"):
        structure = subject.served(awkward_structures()[name])
        stated, split = planned_tables(subject.component, structure)
        if stated is None:  # its options make it ask for other than one release
            return
        door = learn(subject, np.zeros((50, len(structure.domain)), dtype=np.int64), structure).door
        require(len(door.handed) == 1, f"{name}: it foresees one release, and asked for {len(door.handed)}")
        mechanism: Mechanism = ReferenceLaplace() if door.budget.kind == "pure" else ReferenceGaussian()
        planned = measure(mechanism, stated, door.terms, door.budget, split or "even")
        told, found = (
            {frozenset(clique): float(value) for clique, value in zip(one.structure.cliques, variances, strict=True)}
            for one, variances in ((planned, planned.variances), (door.handed[0], door.handed[0].variances))
        )
        require(
            told.keys() == found.keys(), f"{name}: it foresees {len(told)} tables and measures {len(found)}, others"
        )
        near = all(abs(told[clique] - found[clique]) <= 1e-6 * found[clique] for clique in told)
        require(near, f"{name}: the noise of its tables is not that of the split {split!r} which it foresees")


def _asked(subject: LearnerSubject, structure: Structure) -> Structure:
    """The tables that it measures for a model over the structure."""
    return learn(subject, np.zeros((100, len(structure.domain)), dtype=np.int64), structure).door.handed[-1].structure


@frozen(kw_only=True)
class _Restless:
    """An engine that never settles, and says so: each answer is that of other potentials near by.

    asked: the structures it was asked about.
    """

    asked: list[Structure] = field(factory=list)

    max_order: ClassVar[None] = None

    def compile(self, structure: Structure) -> _RestlessEngine:
        inner = JunctionTree().compile(structure)
        return _RestlessEngine(inner=inner, generator=np.random.default_rng(1), asked=self.asked)


@frozen(kw_only=True)
class _RestlessEngine:
    inner: Engine
    generator: np.random.Generator
    asked: list[Structure]
    exact: ClassVar[bool] = False
    cost: ClassVar[None] = None
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @property
    def structure(self) -> Structure:
        return self.inner.structure

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        self.asked.append(self.structure)
        shift = self.generator.normal(scale=0.3, size=potentials.structure.cells)
        beliefs = self.inner.infer(potentials.like(potentials.values + shift), total=total)
        return attrs.evolve(beliefs, converged=False, iterations=1000)


@CHECKS.add()
def what_never_settled_is_not_converged(subject: LearnerSubject) -> None:
    """With an engine none of whose answers converged, and each of which is another, it fails with an error of dpgm or
    says converged = false, unless it asks no engine. Cannot show: that it converged where it says so."""
    restless = _Restless()
    engine: Inference = restless
    try:
        fit = learn(subject, draw(truth(subject.chain), 500, 1), inference=engine).fit
    except DpgmError:
        return
    settled = not fit.converged or not restless.asked
    require(settled, "no answer of its engine had converged, and it says that it did")
