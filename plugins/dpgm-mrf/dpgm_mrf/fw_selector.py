"""The edges that private Frank-Wolfe regressions find, chosen in a session whose rest measures their tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Fitting,
    Inference,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    Structure,
    StructureError,
    Terms,
    TooLarge,
    Workload,
    option,
)
from dpgm_core.selection import deviation, share_of
from dpgm_mrf.common import inside, pairs_of, singles_of
from dpgm_mrf.frank_wolfe import Course, regressions_of, walked
from dpgm_mrf.fw_options import FrankWolfe
from dpgm_mrf.fw_parameters import parameters_of

__all__ = ["FrankWolfeSelector"]


@frozen(kw_only=True)
class FrankWolfeSelector(FrankWolfe):
    """Attributes alone, then regressions by Frank-Wolfe; the rest measures the pairs with parameters above least / 2.

    It is the method of the paper, for comparison: `mrf-select` finds the same edges from fewer records, for any labels.
    Serves pure and zCDP budgets.

    >>> FrankWolfeSelector(width=1.2, share=0.4).share
    0.4
    """

    share: float = option(
        0.5, help="of what is left, for the regressions; the rest measures the edges", validator=inside
    )

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`. detectable: at the first step, of two binary attributes."""
        if budget.kind == "approx":
            raise BudgetError(f"a session spends epsilon or rho, not {budget}; plan with its zcdp_within()")
        course = self._course(workload, budget, terms)
        course.check()
        known = terms.declared_total if records is None else records
        steps = course.steps(1.0 if known is None else known)
        singles, pairs = singles_of(workload), pairs_of(workload, "mrf-fw")
        alone = share_of(budget, self.share_one_way)
        notes = ["mrf-fw is a paper's method, for comparison; mrf-select finds the same edges from fewer records"]
        if known is None and self.steps == "auto":
            notes.append(f"it takes more steps than {steps - 1} where the number of records, once known, pays for them")
        left = budget - alone - course.budget
        return SelectionPlan(
            shares={
                "every attribute alone": alone,
                f"regressions, {steps - 1} steps": course.budget,
                "the tables of the edges": left,
            },
            deviation=deviation(alone, Structure(workload.domain, singles), terms),
            detectable=self._detectable(course, steps),
            candidates=len(pairs),
            order=2,
            limits={"steps": steps},
            notes=notes,
        )

    def select(
        self,
        session: Session,
        *,
        inference: Inference,
        fitting: Fitting,
        randomness: Randomness,
        progress: Progress,
    ) -> Selection:
        """See `Selector.select`; the tables of the edges are left to the pipeline to measure."""
        workload = session.workload
        course = self._course(workload, session.budget, session.terms)
        singles = singles_of(workload)
        release = session.measure(singles, share_of(session.budget, self.share_one_way))
        weights, trace = walked(session, course, release.total, progress)
        found = parameters_of(course.regressions, weights / self.weights_grid)
        allowed = set(workload.candidates)
        edges = [pair for pair in found.edges(self.least) if pair in allowed]
        held = _held(session, singles, sorted(edges, key=found.strength, reverse=True), inference)
        notes = [f"{len(edges)} of {len(found.pairs)} pairs have a parameter above least / 2 = {self.least / 2:g}"]
        if len(held) < len(edges):
            notes.append(
                f"the {len(edges) - len(held)} weakest of {len(edges)} edges were left out, as the engine cannot hold "
                "a model of more; raise least, or take inference 'loopy-bp'"
            )
        kept = [pair for pair in edges if pair in set(held)]
        trace += [{"edge": " x ".join(pair), "parameter": found.strength(pair)} for pair in kept]
        joined = {name for pair in kept for name in pair}
        tables: list[Clique] = [*kept, *(one for one in singles if one[0] not in joined)]
        return Selection(
            structure=Structure(session.domain, [*singles, *kept]),
            measure=dict.fromkeys(tables, 1.0),
            trace=trace,
            notes=notes,
        )

    def _course(self, workload: Workload, budget: Budget, terms: Terms) -> Course:
        """Raises StructureError where the workload has nothing to choose from."""
        regressions = regressions_of(self, workload.domain, pairs_of(workload, "mrf-fw"))
        if regressions is None:
            raise StructureError(
                "selector 'mrf-fw' chooses between pairs of attributes of two labels and more, but in all of the "
                "workload's one has a single label; ask for other attributes"
            )
        left = budget - share_of(budget, self.share_one_way)
        return Course.of(self, regressions, terms, share_of(left, self.share))

    def _detectable(self, course: Course, steps: int) -> float | None:
        """|n - m|_1 of a pair of binary attributes whose first step goes its way with probability .9.

        At weights of 0 the score of z_j is half the sum of z_i z_j, which is |n - m|_1 where labels are alike.
        """
        ways = 2 * int(course.regressions.allowed.sum(axis=1).max())
        lead = math.log(9 * (ways - 1)) / float(course.temperature(steps)) / self.residual_grid
        return 2 * lead


def _held(
    session: Session, singles: Sequence[Clique], edges: Sequence[Clique], inference: Inference
) -> Sequence[Clique]:
    """As many of the edges, the first ones, as the engine holds a model of."""

    def fits(count: int) -> bool:
        try:
            inference.compile(Structure(session.domain, [*singles, *edges[:count]]))
        except TooLarge:
            return False
        return True

    if fits(len(edges)):
        return edges
    least, most = 0, len(edges)  # what fits, and what does not
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return edges[:least]
