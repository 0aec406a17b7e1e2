"""All scores at once, with noise; then the structure and the split of the budget that save most, in closed form.

Source: SWIFT. Beyond it: first all pairs are scored, against independence, and their tables measured; then, once, all
candidates against the model so far. So what a table of three attributes adds to its pairs is told from what they have
already, and dependence that only three attributes show together is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Fit,
    Fitting,
    Inference,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    TableDistance,
    Terms,
    Workload,
    option,
)
from dpgm_core.learning import ModelSize, share_of
from dpgm_select.common import (
    Growth,
    Options,
    check_workload,
    clique_text,
    informative_candidates,
    larger_candidates,
    measure_attributes,
    noise_alone,
    predict_tables,
    score_candidates,
)
from dpgm_select.spending import LEFT, noise_of, ratio
from dpgm_select.split import Worth, best_subset, level_up, pull

__all__ = ["Oneshot"]

#: Of the budget: to every attribute alone, and to the scores of one look.
_ALONE, _SCORES = 0.35, 0.03
#: Of what is left after the first look: to its tables at once. The rest goes to all tables, once the last are known.
_FIRST = 0.5
#: What a cell costs in the greedy search for a structure, in standard deviations of the noise if there were one table.
_PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
#: Millionths that rounding might take too much.
_ROUNDED = 1 - 1e-6


def _looks(instance: object, attribute: Any, value: object) -> None:
    if isinstance(value, bool) or value not in (1, 2):
        raise ValueError(f"{attribute.name} must be 1 or 2, got {value!r}")


@frozen(kw_only=True)
class Oneshot(Options):
    """Every candidate's distance from what the model so far says, with noise, once or twice.

    Serves zCDP budgets: noisy scores have Gaussian noise.

    >>> Oneshot(looks=1).looks
    1
    """

    looks: int = option(
        2, help="1: pairs only, scored once; 2: all candidates again, against a model of those", validator=_looks
    )

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        check_workload("oneshot", workload, budget)
        notes = self.check_room(workload)
        if budget.kind == "pure":
            raise BudgetError(
                f"selector 'oneshot' scores with Gaussian noise, which {budget} does not allow; use 'mst' or 'aim', or "
                "a zCDP or (epsilon, delta) budget"
            )
        pairs = larger_candidates(workload, 2)
        alone, scores = share_of(budget, _ALONE), share_of(budget, _SCORES * self.looks)
        # One person moves every distance by as much, so the variances of all share rho.
        noise = TableDistance.move(terms) / math.sqrt(2 * float(share_of(budget, _SCORES / len(pairs)).rho))
        return SelectionPlan(
            shares={
                "every attribute alone": alone,
                "scores of all candidates": scores,
                "the tables chosen": budget - alone - scores,
            },
            deviation=noise_alone(alone, terms, workload),
            detectable=None if len(pairs) < 2 else noise * (1.645 + math.sqrt(2 * math.log(20 * len(pairs)))),
            candidates=len(larger_candidates(workload) if self.looks > 1 else pairs),
            order=2 if self.looks == 1 else None,
            limits=self.limits_by_name(),
            choices=(),
            notes=notes,
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`."""
        whole = session.budget
        growth, notes = measure_attributes(session, share_of(whole, _ALONE), self.merge)
        trace: list[dict[str, Any]] = []
        fit: Fit | None = None
        had: dict[Clique, float] = {}  # by the tables chosen, as shares of the whole budget
        for look in range(1, self.looks + 1):
            progress("selecting", look - 1, self.looks)
            candidates = [
                clique
                for clique in informative_candidates(session, 2 if look == 1 else None)
                if clique not in growth.cliques and growth.size.may_fit(clique, self.limits())
            ]
            if not candidates:
                break
            fit = growth.fitted(fitting, fit)
            scores = session.score(
                score_candidates(session, candidates, predict_tables(fit, candidates), session.pooled().total),
                share_of(whole, _SCORES),
            )
            errors = dict(zip(scores.candidates, scores.values.tolist(), strict=True))
            left = ratio(session.remaining, whole)
            taken = self._best(growth, errors, had, share_of(whole, left + sum(had.values()))).taken
            growth.add(*taken)
            spent = left * _ROUNDED * (1 if look == self.looks else _FIRST)
            costs = self._costs(growth, [*had, *taken])
            parts = level_up({clique: pull(cost) for clique, cost in costs.items()}, had, spent) if costs else {}
            if parts:
                session.measure({clique: share_of(whole, part) for clique, part in parts.items()})
                had |= {clique: had.get(clique, 0.0) + part for clique, part in parts.items()}
            trace.append(
                {
                    "round": look,
                    "chosen": ", ".join(map(clique_text, taken)),
                    "deviation": scores.deviation,
                    "cells": growth.size.cells(),
                }
            )
            progress(f"selecting: {len(taken)} tables", look, self.looks)
        notes += growth.left_out(informative_candidates(session), self)
        # Something is left if nothing was worth a table, or nothing more was there to look at.
        rest = (had or growth.widest()) if ratio(session.remaining, whole) > LEFT else {}
        return Selection(structure=growth.structure, measure=rest, trace=trace, notes=notes)

    def _costs(self, growth: Growth, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """w_c K_c of tables."""
        sizes, workload = growth.session.domain.sizes, growth.session.workload
        return {
            clique: float(workload.weight(clique)) * math.prod(sizes[name] for name in clique) for clique in cliques
        }

    def _best(
        self, growth: Growth, errors: Mapping[Clique, float], had: Mapping[Clique, float], budget: Budget
    ) -> Worth:
        """The tables that save most, over structures that a greedy search finds at several prices of a cell.

        errors: noisy distances, records. had: tables chosen before. budget: of all tables, theirs too.
        """
        session = growth.session
        noise = noise_of(budget, session.terms, session.workload)  # if one table had all of it
        costs = self._costs(growth, list(errors))
        weighted = {clique: float(session.workload.weight(clique)) * error for clique, error in errors.items()}
        committed = sum(map(pull, self._costs(growth, list(had)).values()))
        # What would not be worth its noise in a model of any size is not tried in those that are small enough.
        tried = best_subset(list(errors), weighted, costs, 1 / noise**2, committed).taken
        best = Worth()
        for penalty in _PENALTIES:
            gains = {clique: weighted[clique] - penalty * noise * costs[clique] for clique in tried}
            size = ModelSize(session.domain, growth.cliques)
            for clique in sorted(gains, key=lambda one: -gains[one]):
                if gains[clique] > 0 and size.may_fit(clique, self.limits()) and size.fits(clique, self.limits()):
                    size.add(clique)
            clusters = [frozenset(cluster) for cluster in size.clusters()]
            inside = [clique for clique in errors if any(cluster.issuperset(clique) for cluster in clusters)]
            worth = best_subset(inside, weighted, costs, 1 / noise**2, committed)
            best = worth if worth.saved > best.saved else best
        return best
