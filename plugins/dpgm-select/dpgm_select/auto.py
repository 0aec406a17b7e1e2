"""Choice of the selector by the kind of budget and by size."""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve, frozen

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
    flag,
    option,
    whole,
)
from dpgm_core.learning import fit_bytes, fit_seconds
from dpgm_select.aim import Aim
from dpgm_select.common import Options, single_candidates
from dpgm_select.grow import Grow
from dpgm_select.mst import Mst

__all__ = ["Auto"]

_Chosen = TypeVar("_Chosen", Aim, Grow, Mst)


@frozen(kw_only=True)
class Auto(Options):
    """`grow` where noise may be Gaussian; for pure budgets `aim` where its rounds are few, and `mst` beyond.

    >>> from dpgm_core import Domain
    >>> workload = Workload.all(Domain.from_sizes(dict.fromkeys("abc", 2)))
    >>> Auto().decide(workload, Budget.pure(1))[1]
    "auto: 'aim', as a pure budget allows no noisy scores, and there are 3 attributes and 7 candidates"
    """

    max_fit_seconds: float = fit_seconds(
        2.0,
        "tables with which a fit's exact inferences are predicted to take longer are left out",
    )
    max_fit_bytes: int = fit_bytes(2**23)
    classes: bool = option(
        True,
        help="of `grow`: where most attributes depend on most others, measure all pairs and fit latent classes, if the "
        "run names no learner",
        validator=flag,
    )
    aim_attributes: int = option(40, help="`aim` up to so many, for pure budgets", unit="attributes", validator=whole)
    aim_candidates: int = option(1000, help="and up to so many", unit="candidates", validator=whole)

    def without_switch(self) -> Auto:
        """See `SwitchingSelector`."""
        return evolve(self, classes=False)

    def widen(self, workload: Workload, budget: Budget) -> Workload:
        """See `WideningSelector`: as `grow`."""
        return Grow().widen(workload, budget)

    def decide(self, workload: Workload, budget: Budget) -> tuple[Aim | Grow | Mst, str]:
        """The selector for a session with this budget, and why, in words; public facts alone."""
        attributes, candidates = len(single_candidates(workload)), len(workload.candidates)
        size = f"{attributes} attributes and {candidates:,} candidates"
        if budget.kind != "pure":
            return self._alike(Grow(classes=self.classes)), (
                "auto: 'grow', as the budget allows Gaussian noise: a forest of pairs, then tables as long as they are "
                "predicted to be worth their noise"
            )
        if attributes <= self.aim_attributes and candidates <= self.aim_candidates:
            return self._alike(Aim()), f"auto: 'aim', as a pure budget allows no noisy scores, and there are {size}"
        return self._alike(Mst()), (
            f"auto: 'mst', as a pure budget allows no noisy scores, and with {size} it would not reach far with 'aim'"
        )

    def _alike(self, selector: _Chosen) -> _Chosen:
        return evolve(
            selector, merge=self.merge, max_fit_seconds=self.max_fit_seconds, max_fit_bytes=self.max_fit_bytes
        )

    def plan(self, workload: Workload, budget: Budget, terms: Terms, records: float | None = None) -> SelectionPlan:
        """See `Selector.plan`."""
        selector, why = self.decide(workload, budget)
        plan = selector.plan(workload, budget, terms, records)
        return evolve(plan, notes=[*plan.notes, why])

    def select(
        self, session: Session, *, inference: Inference, fitting: Fitting, randomness: Randomness, progress: Progress
    ) -> Selection:
        """See `Selector.select`."""
        selector, why = self.decide(session.workload, session.budget)
        selection = selector.select(
            session, inference=inference, fitting=fitting, randomness=randomness, progress=progress
        )
        return evolve(selection, notes=[*selection.notes, why])
