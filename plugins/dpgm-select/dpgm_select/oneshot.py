"""All scores at once, with noise; then the structure and the split of the budget that save most, in closed form.

Source: SWIFT. Beyond it: first all pairs are scored, against independence, and their tables measured; then, once, all
candidates against the model so far. So what a table of three attributes adds to its pairs is told from what they have
already, and dependence that only three attributes show together is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    Structure,
    Terms,
    Workload,
    option,
)
from dpgm_select.common import Growth, Options, check_workload, distances, larger, opened, single, text, told_by
from dpgm_select.sizes import ModelSize
from dpgm_select.spending import deviation, share_of
from dpgm_select.split import Worth, best_subset

__all__ = ["Oneshot"]

#: Of the budget: to every attribute alone, and to the scores of one look.
_ALONE, _SCORES = 0.35, 0.05
#: Of what is measured after the first look; the second look has the rest.
_FIRST = 0.75
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
        if budget.kind == "pure":
            raise BudgetError(
                f"selector 'oneshot' scores with Gaussian noise, which {budget} does not allow; use 'mst' or 'aim', or "
                "a zCDP or (epsilon, delta) budget"
            )
        pairs = larger(workload, 2)
        alone, scores = share_of(budget, _ALONE), share_of(budget, _SCORES * self.looks)
        # Each score is a table of its own to the noise.
        noise = deviation(share_of(budget, _SCORES / len(pairs)), terms, workload)
        if terms.neighbours.value == "replace-one":
            noise *= math.sqrt(2)  # a distance moves by 2, a table's L2 norm by sqrt(2)
        return SelectionPlan(
            shares={
                "every attribute alone": alone,
                "scores of all candidates": scores,
                "the tables chosen": budget - alone - scores,
            },
            deviation=deviation(share_of(alone, 1 / len(single(workload))), terms, workload),
            detectable=None if len(pairs) < 2 else noise * (1.645 + math.sqrt(2 * math.log(20 * len(pairs)))),
            candidates=len(larger(workload) if self.looks > 1 else pairs),
            limits=self.limits_by_name(),
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
        """See `Selector.select`."""
        whole = session.budget
        growth, notes = opened(session, share_of(whole, _ALONE), self.merge)
        trace: list[dict[str, Any]] = []
        fit: Fit | None = None
        chosen: dict[Clique, float] = {}
        for look in range(1, self.looks + 1):
            progress("selecting", look - 1, self.looks)
            asked = larger(session.workload, 2 if look == 1 else None)
            candidates = [clique for clique in asked if growth.size.fits(clique, self.limits())]
            if not candidates:
                break
            fit = growth.fitted(fitting, fit)
            scores = session.score(
                distances(session, candidates, told_by(fit, candidates), session.pooled().total),
                share_of(whole, _SCORES),
            )
            errors = dict(zip(scores.candidates, scores.values.tolist(), strict=True))
            left = session.remaining
            spent = left if look == self.looks else share_of(left, _FIRST)
            worth = self._best(growth, errors, deviation(spent, session.terms, session.workload))
            if worth.shares:
                session.measure({clique: share_of(spent, part * _ROUNDED) for clique, part in worth.shares.items()})
                growth.add(*worth.shares)
                chosen |= worth.shares
            trace.append(
                {
                    "round": look,
                    "chosen": ", ".join(map(text, worth.shares)),
                    "deviation": scores.deviation,
                    "cells": growth.size.cells(),
                }
            )
        notes += growth.left_out(larger(session.workload), self.limits())
        # What nothing was found for goes to the tables there are.
        rest = chosen or dict.fromkeys(growth.cliques, 1.0)
        return Selection(structure=growth.structure, measure=rest, trace=trace, notes=notes)

    def _best(self, growth: Growth, errors: Mapping[Clique, float], noise: float) -> Worth:
        """The tables that save most, over structures that a greedy search finds at several prices of a cell.

        errors: noisy distances, records. noise: standard deviation, if one table had all the budget.
        """
        domain, workload = growth.session.domain, growth.session.workload
        cells = dict(zip(errors, Structure(domain, list(errors)).sizes, strict=True))
        weights = {clique: float(workload.weight(clique)) for clique in errors}
        weighted = {clique: weights[clique] * error for clique, error in errors.items()}
        costs = {clique: weights[clique] * cells[clique] for clique in errors}
        best = Worth(saved=0.0, shares={})
        for penalty in _PENALTIES:
            gains = {clique: weighted[clique] - penalty * noise * costs[clique] for clique in errors}
            size = ModelSize(domain, growth.cliques)
            for clique in sorted(gains, key=lambda one: -gains[one]):
                if gains[clique] > 0 and size.fits(clique, self.limits()):
                    size.add(clique)
            clusters = [frozenset(cluster) for cluster in size.clusters()]
            inside = [clique for clique in errors if any(cluster.issuperset(clique) for cluster in clusters)]
            worth = best_subset(inside, weighted, costs, 1 / noise**2)
            best = worth if worth.saved > best.saved else best
        return best
