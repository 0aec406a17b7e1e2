"""What a learner does behind a selector: what is refused, is refused before the session is paid for."""

from __future__ import annotations

from fractions import Fraction

from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import BudgetError, OptionError, StructureError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.progress import silent
from dpgm_core.randomness import SeededRandomness
from dpgm_core.releases.steps import session_budget
from dpgm_core.selection.contract import SelectionPlan
from dpgm_core.selection.learners import check_learner
from dpgm_core.structure import Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.testing.check import Checklist, require
from dpgm_core.testing.doors import TrappedRecords, live_curator
from dpgm_core.testing.learning import draw, truth
from dpgm_core.testing.subjects import LearnerSubject
from dpgm_core.workload import Workload

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


@CHECKS.add()
def a_chosen_structure_is_learned_or_refused_unpaid(subject: LearnerSubject) -> None:
    """It learns from the release that a selector leaves, over cliques and over a directed graph, or is refused before
    the charge. Cannot show: what other selectors choose."""
    chain = subject.served(subject.chain)
    domain, codes = chain.domain, draw(truth(chain), 200, 1)
    alone = Structure(domain, [(name,) for name in domain.names])
    pair, workload = domain.names[:2], Workload.all(domain, order=2)
    rest = [(name,) for name in domain.names[2:]]
    structures = {
        False: Structure(domain, [pair, *rest]),
        True: Dag(domain, {pair[0]: pair[1:]}).structure(),
    }
    for kind in ("pure", "approx"):
        for directed, structure in structures.items():
            curator: LiveCurator = live_curator(TrappedRecords(codes), alone, kind)
            budget = session_budget(curator.remaining)
            plan = SelectionPlan(
                shares={"all": budget}, deviation=1.0, detectable=None, candidates=1, limits={}, directed=directed
            )
            try:
                check_learner(subject.component, JunctionTree(), workload, plan, curator.terms, budget)
            except (BudgetError, OptionError, StructureError):
                continue
            with curator.session(workload=workload) as session:
                session.measure(alone.cliques, session.budget * Fraction(1, 2))
                session.measure([pair], session.remaining)
                release = session.pooled()
            where = f"{kind} budget, {'a directed graph' if directed else 'cliques'}"
            replay = ReplayCurator(release, structure)
            try:
                subject.component.learn(replay, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
            except (BudgetError, OptionError, StructureError) as error:
                require(False, f"{where}: refused when the session was paid for: {type(error).__name__}: {error}")
            require(replay.remaining.is_zero, f"{where}: it asked for nothing of the release that the session leaves")
