"""What a learner does behind a selector: what is refused, is refused before the session is paid for."""

from __future__ import annotations

from fractions import Fraction

from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError, OptionError, StructureError
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.contract import Fitter
from dpgm_core.progress import silent
from dpgm_core.randomness import SeededRandomness
from dpgm_core.releases.steps import session_budget
from dpgm_core.selection.contract import SelectionPlan
from dpgm_core.selection.learners import check_learner
from dpgm_core.structure import Clique, Structure
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
    """It learns from the release that a selector leaves, over cliques and over a directed graph of two and three
    attributes, in a loop too, or is refused before the charge. Cannot show: what other selectors choose."""
    chain = subject.served(subject.chain)
    domain, codes = chain.domain, draw(truth(chain), 200, 1)
    alone = Structure(domain, [(name,) for name in domain.names])
    cases = [
        (table, directed, structure)
        for table in (domain.names[:2], domain.names[:3])
        for directed in (False, True)
        for structure in _structures(domain, table, directed=directed)
    ]
    for kind in ("pure", "approx"):
        for table, directed, structure in cases:
            workload = Workload.all(domain, order=len(table))
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
                session.measure([table], session.remaining)
                release = session.pooled()
            shape = "a directed graph" if directed else "cliques"
            where = f"{kind} budget, {shape} of up to {len(table)} attributes"
            replay = ReplayCurator(release, structure)
            try:
                if isinstance(subject.component, Fitter):
                    subject.component.fitter(JunctionTree())(release, structure, None)
                subject.component.learn(replay, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
            except (BudgetError, OptionError, StructureError) as error:
                require(False, f"{where}: refused when the session was paid for: {type(error).__name__}: {error}")
            require(replay.remaining.is_zero, f"{where}: it asked for nothing of the release that the session leaves")


def _structures(domain: Domain, table: Clique, *, directed: bool) -> list[Structure]:
    """What a selector may choose: the table, beside all attributes alone or those outside of it, or as a family."""
    if directed:
        return [Dag(domain, {table[0]: table[1:]}).structure()]
    alone = [(name,) for name in domain.names]
    outside = [one for one in alone if one[0] not in table]
    return [Structure(domain, [*outside, table]), Structure(domain, [*alone, table])]
