"""Round by round the table that the model so far gets most wrong. Source: McKenna et al. (2022), AIM.

Beyond the source: attributes alone get a share of their own and rare codes are merged after it, and fewer rounds are
planned. The annealing test takes the model's change only from converged fits; a fit that stopped early changes little
whatever it was shown, and sigma would be halved for nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core import (
    Budget,
    Fitting,
    Inference,
    Progress,
    Randomness,
    Selection,
    SelectionPlan,
    Session,
    Terms,
    Workload,
    option,
    whole,
)
from dpgm_core.learning import share_of
from dpgm_select.common import (
    Options,
    check_choice,
    check_workload,
    clique_text,
    informative_candidates,
    larger_candidates,
    measure_attributes,
    noise_alone,
    predict_tables,
    score_candidates,
    single_candidates,
)
from dpgm_select.spending import LEFT, absolute, detectable, epsilon_of, ratio

__all__ = ["Aim"]

#: Of the budget: to every attribute alone. Of a round: to its choice.
_ALONE, _CHOICE = 0.25, 0.1


@frozen(kw_only=True)
class Aim(Options):
    """Choose the worst table by the exponential mechanism, measure it, learn, and again; with less noise once a round
    teaches less than its noise.

    Serves pure and zCDP budgets.

    >>> Aim(rounds=8).rounds
    8
    """

    rounds: int = option(
        4,
        help="so many rounds are planned; each has its share of the budget, and later ones take more",
        unit="per attribute",
        validator=whole,
    )

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        check_workload("aim", workload, budget)
        notes = self.check_room(workload)
        rounds = self.rounds * len(single_candidates(workload))
        alone = share_of(budget, _ALONE)
        rest = budget - alone
        choices = share_of(rest, _CHOICE)
        each = share_of(choices, 1 / rounds)
        check_choice("aim", each, terms)
        candidates = len(workload.candidates)
        ahead = detectable(each, candidates, terms)
        # A pair's weight is at most what the largest candidate's is, which one person moves most.
        weight = float(max(workload.weight(pair) for pair in larger_candidates(workload, 2)))
        return SelectionPlan(
            shares={
                "every attribute alone": alone,
                f"choices, of at most {rounds} rounds": choices,
                "the tables chosen": rest - choices,
            },
            deviation=noise_alone(alone, terms, workload),
            detectable=None if ahead is None else ahead / weight,
            candidates=candidates,
            limits=self.limits_by_name(),
            choices=(),  # rounds grow, and their choices with them, so planned ones would be too blunt, and lost
            notes=notes,
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`."""
        workload, budget = session.workload, session.budget
        rounds = self.rounds * len(single_candidates(workload))
        growth, notes = measure_attributes(session, share_of(budget, _ALONE), self.merge)
        sizes = session.domain.sizes
        alone = [one for one in single_candidates(workload) if sizes[one[0]] > 1]
        candidates = [*alone, *informative_candidates(session)]
        each = share_of(session.remaining, 1 / rounds)
        fit = growth.fitted(fitting)
        probabilities = predict_tables(fit, candidates)
        trace: list[dict[str, Any]] = []
        last = False
        while (
            len(candidates) > len(alone)
            and not last
            and len(trace) < rounds
            and ratio(session.remaining, budget) > LEFT
        ):
            last = ratio(session.remaining, each) < 2 or len(trace) == rounds - 1
            each = session.remaining if last else each
            to_choose, to_measure = share_of(each, _CHOICE), share_of(each, 1 - _CHOICE)
            used = 1 - ratio(session.remaining - each, budget)
            limits = self.limits(used, least=growth.size)
            fitting_in = [clique for clique in candidates if growth.size.fits(clique, limits)]
            if not fitting_in and not last:
                each = each * 2  # more of the budget used lets the model be larger
                continue
            if not fitting_in:
                notes.append("no table was small enough for another round; see max_fit_seconds")
                break
            noise = absolute(to_measure, session.terms, workload)
            total = session.pooled().total
            choice = session.select(score_candidates(session, fitting_in, probabilities, total, noise), to_choose)
            clique = choice.cliques[0]
            measured = session.measure([clique], session.remaining if last else to_measure)
            growth.add(clique)
            progress(f"selecting: {clique_text(clique)}", len(trace) + 1, rounds)
            trace.append(
                {
                    "round": len(trace) + 1,
                    "chosen": clique_text(clique),
                    "deviation": math.sqrt(float(measured.variances[0])),
                    "epsilon": epsilon_of(to_choose),
                    "cells": growth.size.cells(),
                }
            )
            if last:
                break
            before = total * probabilities[clique]
            fit = growth.fitted(fitting, fit)
            probabilities = predict_tables(fit, candidates)
            expected = noise * before.size
            if fit.converged:
                taught = float(np.abs(total * probabilities[clique] - before).sum())
            else:
                taught = float(np.abs(measured.tables.group(0) - before).sum()) - expected
            if taught <= expected:
                each = each * (2 if budget.kind == "pure" else 4)
        notes += growth.left_out(candidates, self)
        rest = growth.widest() if ratio(session.remaining, budget) > LEFT else {}
        return Selection(structure=growth.structure, measure=rest, trace=trace, notes=notes)
