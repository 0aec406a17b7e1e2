"""The learner and the selector `mrf-fw`: a model over the edges of private Frank-Wolfe regressions, or their tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Curator,
    Fit,
    Fitting,
    Inference,
    NoisyTables,
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
from dpgm_core.learning import Descent, Regressions, deviation, share_of
from dpgm_mrf.common import inside, pairs_of, singles_of, steps_budget
from dpgm_mrf.frank_wolfe.course import Course, FrankWolfe, rebuild_weights, regressions_of, take_steps
from dpgm_mrf.frank_wolfe.parameters import Parameters, fields_alone, parameters_of

__all__ = ["FrankWolfeLearner", "FrankWolfeSelector"]


@frozen(kw_only=True)
class FrankWolfeLearner(FrankWolfe):
    """Regressions of each attribute on its partners in the structure; weights on both sides of a pair are averaged.

    The structure names the pairs that may have an edge; the model has those above least / 2, and every attribute alone.
    It is the method of the paper, for comparison: `mrf-select` finds the same edges from fewer records, and its learner
    fits the tables, which these parameters do not.

    >>> FrankWolfeLearner(width=1.2).least
    0.4
    """

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse what is no structure of pairs, StructureError, and what is too large.

        Which edges there will be is not known before the charge, so only the attributes alone are asked of the engine.
        """
        if max(structure.multiplicities) > 1:
            raise StructureError(
                "learner mrf-fw has parameters for each pair, and the structure has tied cliques; untie"
            )
        long = next((clique for clique in structure.cliques if len(clique) > 2), None)
        if long is not None:
            raise StructureError(
                f"learner mrf-fw learns pairs of attributes, and the structure has {' x '.join(long)}; name its pairs"
            )
        pairs = _pairs(structure)
        if not pairs:
            raise StructureError(
                "learner mrf-fw needs pairs of attributes that may depend on each other, and the structure has none; "
                "name some, or take another learner, as with a selector"
            )
        inference.compile(Structure(structure.domain, [(name,) for name in _names(structure)]))
        regressions = regressions_of(self, structure.domain, pairs)
        if regressions is not None:  # refuses grids that core does not take, whatever the terms and the budget
            course = Course.of(self, regressions, Terms(neighbours="add-remove"), Budget.zcdp(1))
            course.gradients(regressions.zeros())

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Open a session, take all steps, and read the parameters off the weights.

        Of saved releases it takes the one of a run of its own, whose directions lead to the same weights. Raises
        StructureError as `check` does, and BudgetError for a budget too small to choose by; before any record is read.
        """
        if curator.replayed:
            return self._again(curator, inference)
        structure = curator.structure
        self.check(structure, inference)
        domain, pairs = structure.domain, _pairs(structure)
        regressions = regressions_of(self, domain, pairs)
        budget = steps_budget(curator.remaining, "mrf-fw")
        alone = share_of(budget, self.share_one_way)
        course = None
        if regressions is not None:
            course = Course.of(self, regressions, curator.terms, budget - alone)
            course.check()
        singles = [(name,) for name in _names(structure)]
        cells = max(math.prod(domain.shape(pair)) for pair in pairs)
        workload = Workload.of(domain, [*singles, *pairs], max_cells=max(cells, *domain.sizes.values()))
        with curator.session(workload=workload) as session:
            release = session.measure(singles, budget if course is None else alone)
            if course is not None:
                weights, trace = take_steps(session, course, release.total, progress)
        if course is None:
            return self._fit(release, None, inference, [])
        return self._fit(release, parameters_of(course.regressions, weights / self.weights_grid), inference, trace)

    def _again(self, curator: Curator, inference: Inference) -> Fit:
        """Fit from the directions that a release of a session holds."""
        release = curator.release()
        descents = [step for step in release.steps if isinstance(step, Descent)]
        if not descents:
            raise BudgetError(
                "learner mrf-fw learns from directions that it asked for in a session, and this release holds none; "
                "take another learner, or give the release of a run of mrf-fw"
            )
        pairs = list(descents[0].candidates)
        regressions = Regressions(candidates=Structure(release.structure.domain, pairs), loss=descents[0].loss)
        course = Course.of(self, regressions, curator.terms, Budget.zero(descents[0].kind))
        if max(course.radii) != descents[0].radius or any(one.candidates != descents[0].candidates for one in descents):
            raise BudgetError(
                f"the release was made with a radius of {float(descents[0].radius):g} on {len(pairs)} pairs, and width "
                f"= {self.width:g} has one of {float(max(course.radii)):g}; learn again with the width of then"
            )
        weights = rebuild_weights(course, [one.picks for one in descents])
        return self._fit(release, parameters_of(regressions, weights / self.weights_grid), inference, [])

    def _fit(
        self,
        release: NoisyTables,
        parameters: Parameters | None,
        inference: Inference,
        trace: Sequence[Mapping[str, Any]],
    ) -> Fit:
        known = Parameters(pairs={}, fields={}) if parameters is None else parameters
        edges = known.edges(self.least)
        model = known.model(release.structure.domain, edges, fields_alone(release, known.fields))
        notes = [
            f"{len(edges)} of {len(known.pairs)} pairs have a parameter above least / 2 = {self.least / 2:g}; the "
            "parameters are those of regressions, and the model's tables are not fitted to the records: for calibrated "
            "answers take selector mrf-fw or mrf-select with a learner such as eb-map"
        ]
        try:
            inference.compile(model.structure)
        except TooLarge as error:
            notes.append(
                f"the model does not fit its engine, so nothing is answered by it: {error}; ask it with "
                "inference 'loopy-bp' or 'gibbs', both approximate"
            )
        return Fit(model=model, trace=trace, notes=notes)


def _names(structure: Structure) -> list[str]:
    """The attributes that the structure is about, in the domain's order."""
    used = {name for clique in structure.cliques for name in clique}
    return [name for name in structure.domain.names if name in used]


def _pairs(structure: Structure) -> list[Clique]:
    """Its pairs, as a workload has them."""
    place = structure.domain.names.index
    pairs = [sorted(clique, key=place) for clique in structure.cliques if len(clique) == 2]
    return [(one, other) for one, other in pairs]


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
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`; the tables of the edges are left to the pipeline to measure."""
        workload = session.workload
        course = self._course(workload, session.budget, session.terms)
        singles = singles_of(workload)
        release = session.measure(singles, share_of(session.budget, self.share_one_way))
        weights, trace = take_steps(session, course, release.total, progress)
        parameters = parameters_of(course.regressions, weights / self.weights_grid)
        allowed = set(workload.candidates)
        edges = [pair for pair in parameters.edges(self.least) if pair in allowed]
        feasible = _feasible_edges(session, singles, sorted(edges, key=parameters.strength, reverse=True), inference)
        notes = [f"{len(edges)} of {len(parameters.pairs)} pairs have a parameter above least / 2 = {self.least / 2:g}"]
        if len(feasible) < len(edges):
            notes.append(
                f"the {len(edges) - len(feasible)} weakest of {len(edges)} edges were left out, as the engine cannot "
                "hold a model of more; raise least, or take inference 'loopy-bp'"
            )
        chosen = [pair for pair in edges if pair in set(feasible)]
        trace += [{"edge": " x ".join(pair), "parameter": parameters.strength(pair)} for pair in chosen]
        joined = {name for pair in chosen for name in pair}
        tables: list[Clique] = [*chosen, *(one for one in singles if one[0] not in joined)]
        return Selection(
            structure=Structure(session.domain, [*singles, *chosen]),
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


def _feasible_edges(
    session: Session, singles: Sequence[Clique], edges: Sequence[Clique], inference: Inference
) -> Sequence[Clique]:
    """Return the first edges, as many as the engine can hold a model of."""

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
