"""A spanning tree of dependent pairs, each edge by the exponential mechanism. Source: McKenna et al. (2021), MST.

Beyond the source: scores are less by the noise that the pair's own table would have, as in AIM, so that large tables
of little dependence are left alone, and the last share goes to the tables so that their noise, summed over cells, is
least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from dpgm_core import (
    Budget,
    Clique,
    Fitting,
    Inference,
    OptionError,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    TableDistance,
    Terms,
    Workload,
)
from dpgm_core.learning import share_of
from dpgm_select.common import (
    Options,
    check_choice,
    check_workload,
    choose_forest,
    clique_text,
    count_edges,
    informative_candidates,
    larger_candidates,
    measure_attributes,
    noise_alone,
    predict_tables,
    score_candidates,
)
from dpgm_select.spending import absolute, detectable, epsilon_of

__all__ = ["Mst"]

#: Of the budget: to every attribute alone, and to all choices.
_ALONE, _CHOICES = 1 / 3, 1 / 3


@frozen(kw_only=True)
class Mst(Options):
    """Attributes alone, then the edges of a spanning tree by Kruskal's algorithm with noisy choices, then their tables.

    Serves pure and zCDP budgets.

    >>> Mst(merge=False).merge
    False
    """

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        check_workload("mst", workload, budget)
        if terms.related is not None:
            raise OptionError(
                "selector 'mst' would spend its tree of two related tables on links between absent children; use 'aim'"
            )
        notes = self.check_room(workload)
        edges = count_edges(workload)
        each = share_of(budget, _CHOICES / edges)
        check_choice("mst", each, terms)
        alone, choices = share_of(budget, _ALONE), share_of(budget, _CHOICES)
        pairs = larger_candidates(workload, 2)
        return SelectionPlan(
            shares={
                "every attribute alone": alone,
                f"choosing {edges} pairs": choices,
                "their tables": budget - alone - choices,
            },
            deviation=noise_alone(alone, terms, workload),
            detectable=detectable(each, len(pairs), terms),
            candidates=len(pairs),
            order=2,
            limits=self.limits_by_name(),
            choices=((edges, each),),
            notes=["mst models a tree of pairs, and nothing among three attributes beyond their pairs", *notes],
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`; the tables of the tree are left to the pipeline to measure."""
        workload, whole = session.workload, session.budget
        edges = count_edges(workload)
        growth, notes = measure_attributes(session, share_of(whole, _ALONE), self.merge)
        pairs = informative_candidates(session, 2)
        probabilities = predict_tables(growth.fitted(fitting), pairs)
        total = session.pooled().total
        each = share_of(whole, _CHOICES / edges)
        noise = absolute(share_of(whole, (1 - _ALONE - _CHOICES) / edges), session.terms, workload)
        sizes = session.domain.sizes

        def fitting_in(some: Sequence[Clique]) -> list[Clique]:
            # In a forest each pair is a cluster of its own.
            room = growth.size.room(self.limits())
            return [(one, two) for one, two in some if room.allows(sizes[one] * sizes[two], 2)]

        def scored(some: Sequence[Clique]) -> TableDistance:
            return score_candidates(session, some, probabilities, total, noise)

        chosen = choose_forest(growth, pairs, fitting_in, scored, each)
        progress("selecting: a tree of pairs", len(chosen), edges)
        trace: list[dict[str, Any]] = [
            {"round": number, "chosen": clique_text(pair), "epsilon": epsilon_of(each)}
            for number, pair in enumerate(chosen, 1)
        ]
        if len(chosen) < edges:
            notes += growth.left_out(pairs, self)
        power = 1 / 2 if whole.kind == "pure" else 2 / 3
        return Selection(
            structure=growth.structure,
            measure={pair: math.prod(sizes[name] for name in pair) ** power for pair in chosen} or growth.widest(),
            trace=trace,
            notes=notes,
        )
