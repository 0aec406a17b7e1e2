"""Every pair of attributes, with the split of the budget that makes the error least; nothing is chosen."""

from __future__ import annotations

import math

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
    Structure,
    Terms,
    Workload,
    flag,
    option,
)
from dpgm_core.learning import share_of
from dpgm_select.common import check_workload, larger_candidates, measure_attributes, noise_alone, single_candidates
from dpgm_select.split import pull

__all__ = ["AllPairs"]

#: Of the budget: to every attribute alone.
_ALONE = 0.1


@frozen(kw_only=True)
class AllPairs:
    """Attributes alone, then every pair of the workload. Serves pure and zCDP budgets.

    For a learner that needs no junction tree of the pairs: `mixture`.

    >>> AllPairs(merge=False).merge
    False
    """

    merge: bool = option(
        True, help="first merge codes whose noisy counts are below 2 standard deviations", validator=flag
    )

    @property
    def merges_codes(self) -> bool:
        """See `MergingSelector`."""
        return self.merge

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        check_workload("all-pairs", workload, budget)
        pairs, alone = larger_candidates(workload, 2), share_of(budget, _ALONE)
        return SelectionPlan(
            shares={"every attribute alone": alone, f"all {len(pairs):,} pairs": budget - alone},
            deviation=noise_alone(alone, terms, workload),
            detectable=None,
            candidates=len(pairs),
            order=2,
            limits={},
            choices=(),
            structure=Structure(workload.forecast_domain(), [*single_candidates(workload), *pairs]),
        )

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`; the pairs are left to the pipeline to measure."""
        workload, whole = session.workload, session.budget
        notes = measure_attributes(session, share_of(whole, _ALONE), self.merge)[1]
        pairs = [one for one in workload.measurable(session.domain) if len(one) == 2]
        sizes = session.domain.sizes
        cost = {pair: float(workload.weight(pair)) * math.prod(sizes[name] for name in pair) for pair in pairs}
        progress("selecting: all pairs", len(pairs), len(pairs))
        return Selection(
            structure=Structure(session.domain, [*single_candidates(workload), *pairs]),
            measure={pair: _part(cost[pair], whole) for pair in pairs},
            notes=notes,
        )


def _part(cost: float, budget: Budget) -> float:
    """The part of a pair with this w_c K_c: the noise's sum over all cells is then least."""
    return math.sqrt(cost) if budget.kind == "pure" else pull(cost)
