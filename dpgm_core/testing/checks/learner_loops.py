"""What a learner does when a selector calls it in a loop, on releases and structures that grow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpgm_core.errors import BudgetError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.contract import Fit, Fitter
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Structure
from dpgm_core.testing.check import Checklist, Unserved, require
from dpgm_core.testing.doors import TrappedRecords, live_curator
from dpgm_core.testing.evidence import torn
from dpgm_core.testing.learning import draw, learn, replayed, truth
from dpgm_core.testing.strategies import awkward_structures
from dpgm_core.testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


@CHECKS.add()
def loops_agree_with_learning(subject: LearnerSubject) -> None:
    """A fitter gives a model over the structure it is given, with the marginals that `learn` finds to 0.005, a third
    of their error: from nothing, and from a fit to fewer tables with other noise, which stays as it was. Cannot show:
    that a start saves time, and learners without a fitter."""
    if not isinstance(subject.component, Fitter):
        return
    codes = draw(truth(subject.chain), 500, 1)
    run = learn(subject, codes)
    release = run.door.released[-1]
    plain, chain = subject.chain, subject.served(subject.chain)
    learned = replayed(subject.component, release, chain)
    alone = Structure(plain.domain, [(name,) for name in plain.domain.names])
    before = live_curator(TrappedRecords(codes), alone, run.door.budget.kind, seed=2).release()
    loop = subject.component.fitter(JunctionTree())
    _agree(loop(release, chain, None), learned, chain, "from nothing")
    start = loop(before, alone, None)
    kept = start.model.potentials.values.copy()
    roomy = subject.served(Structure(plain.domain, [plain.domain.names]))
    _agree(loop(release, roomy, start), learned, roomy, "from an earlier fit, with room to spare")
    require(np.array_equal(start.model.potentials.values, kept), "the earlier fit that it started from was changed")


@CHECKS.add()
def loops_follow_structures_and_noise(subject: LearnerSubject) -> None:
    """A fitter finds what `learn` finds, to 0.005, from contradictory tables of unequal noise and on a cycle: from
    nothing, and from a fit to another release. Cannot show: that either is right."""
    if not isinstance(subject.component, Fitter):
        return
    uneven = [torn(quiet) for quiet in (0, 1)]
    if subject.directed:
        asked = learn(subject, np.zeros((100, 3), np.int64), uneven[0].structure).door.handed[-1].structure
        uneven = [torn(quiet, measured=asked) for quiet in (0, 1)]
    _both(subject, uneven, subject.served(uneven[0].structure), "two tables that contradict each other")
    try:
        cycle = subject.served(subject.in_domain(awkward_structures()["cycle"]))
    except Unserved:
        return
    codes = draw(truth(cycle, seed=4), 2000, 1)
    releases = [learn(subject, codes, cycle, seed=seed).door.handed[-1] for seed in (1, 2)]
    _both(subject, releases, cycle, "a cycle")


def _both(subject: LearnerSubject, releases: Sequence[NoisyTables], structure: Structure, where: str) -> None:
    """Fit both releases in one loop, each from nothing and from the fit to the other one."""
    try:
        learned = [replayed(subject.component, one, structure) for one in releases]
    except BudgetError:  # it takes rounds or several, which no finished release can be
        return
    assert isinstance(subject.component, Fitter)
    loop = subject.component.fitter(JunctionTree())
    first = loop(releases[0], structure, None)
    _agree(first, learned[0], structure, f"{where}, from nothing")
    _agree(loop(releases[1], structure, first), learned[1], structure, f"{where}, from the fit to another release")


def _agree(fit: Fit, learned: Fit, structure: Structure, where: str) -> None:
    require(isinstance(fit, Fit), f"{where}: a fitter returned {type(fit).__name__}, not a Fit")
    require(fit.model.structure == structure, f"{where}: the model is not over the structure asked for")
    off = max(
        float(np.abs(fit.model.marginal(one) - learned.model.marginal(one)).max())
        for one in (("a", "b"), ("b", "c"), *learned.model.structure.cliques)
    )
    require(off <= 0.005, f"{where}: a marginal is {off:.3g} from that of `learn`")
