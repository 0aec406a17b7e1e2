"""A session as one release: its tables pooled, its cost the amount charged.

The cost is that of the whole budget the session was opened with, whatever its steps came to: how much an adaptive run
leaves unspent may depend on what it saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dpgm_core.errors import BudgetError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.scores import SCORE_GRID
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.coarse import coarsened
from dpgm_core.releases.descents import Descent
from dpgm_core.releases.plausible import plausible
from dpgm_core.releases.pool import mean_of, total_of, united
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.steps import Choice, NoisyScores, SessionTerms
from dpgm_core.releases.verdict import Verdict
from dpgm_core.structure import Structure

__all__ = ["Step", "score_sensitivity", "session_release"]

Step = NoisyTables | Choice | NoisyScores | Descent | Verdict


def score_sensitivity(count: int, person: int) -> Sensitivity:
    """How far one person moves so many distances, in units of 1/1024 record; person: as `TableDistance.move` says.

    >>> score_sensitivity(3, 1).l2_squared
    3145728
    """
    move = SCORE_GRID * person
    return Sensitivity(l0=count, l1=count * move, l2_squared=count * move**2, linf=move)


def session_release(
    session: SessionTerms,
    steps: Sequence[Step],
    terms: Terms,
    *,
    cost: Budget,
    private: bool,
    provenance: Mapping[str, Any],
    modelled: Structure | None = None,
) -> NoisyTables:
    """All that was measured as one release over the session's last domain, each table the mean of its measurements.

    Tables of a holdout are in the steps only. modelled: what was chosen to be learned, if it was yet. Raises
    BudgetError where nothing was measured.
    """
    measured = [one for one in steps if isinstance(one, NoisyTables) and not one.holdout]
    if not measured:
        raise BudgetError("the session has measured no table yet, so there is nothing to pool; measure one first")
    fine = session.workload.domain
    views = [
        coarsened(one, session.merges) if session.merges and one.structure.domain == fine else one for one in measured
    ]
    total, variance = total_of(views)
    views = [plausible(attrs.evolve(one, total=total, total_variance=variance)) for one in views]
    if len(views) == 1:
        tables, measurement = views[0].tables, views[0].measurement
    else:
        tables, measurement = mean_of(united([one.structure for one in views]), views, total)
    return NoisyTables(
        tables=tables,
        measurement=measurement,
        terms=terms,
        total=total,
        total_variance=variance,
        cost=cost,
        private=private,
        provenance=dict(provenance),
        session=session,
        steps=tuple(steps),
        modelled=None if modelled == tables.structure else modelled,
    )
