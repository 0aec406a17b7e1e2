"""The parameters of private Frank-Wolfe regressions, as a model over the edges that they found."""

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
    Inference,
    NoisyTables,
    Progress,
    Randomness,
    Structure,
    StructureError,
    Terms,
    TooLarge,
    Workload,
)
from dpgm_core.selection import Descent, Regressions, share_of
from dpgm_mrf.frank_wolfe import Course, rebuilt, regressions_of, walked
from dpgm_mrf.fw_options import FrankWolfe
from dpgm_mrf.fw_parameters import Parameters, fields_alone, parameters_of

__all__ = ["FrankWolfeLearner"]


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
        budget = curator.remaining.zcdp_within() if curator.remaining.kind == "approx" else curator.remaining
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
                weights, trace = walked(session, course, release.total, progress)
        if course is None:
            return self._fit(release, None, inference, [])
        return self._fit(release, parameters_of(course.regressions, weights / self.weights_grid), inference, trace)

    def _again(self, curator: Curator, inference: Inference) -> Fit:
        """From the directions that a release of a session holds."""
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
        weights = rebuilt(course, [one.picks for one in descents])
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
            "answers take selector mrf-fw or mrf-select with a learner such as eb-map",
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
    found = [sorted(clique, key=place) for clique in structure.cliques if len(clique) == 2]
    return [(one, other) for one, other in found]
