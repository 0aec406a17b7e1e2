"""Choices and noisy scores of a session. Safe to publish.

What each cost is computed again when a file is read, from its temperature or its noise and from the terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.errors import BudgetError
from dpgm_core.noise.calibration import Calibration
from dpgm_core.noise.choice import cost_of
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.scores import SCORE_GRID
from dpgm_core.releases.bins import FoundBins
from dpgm_core.releases.calibrations import calibration_to
from dpgm_core.structure import Clique
from dpgm_core.workload import Workload

__all__ = ["Choice", "NoisyScores", "SessionTerms", "mechanism_of", "session_budget"]


def session_budget(budget: Budget, votes: Budget | None = None) -> Budget:
    """What the steps of a session may cost: pure and zCDP as they are, the largest rho within an (epsilon, delta).

    votes: a part of the (epsilon, delta) that is for `Session.vote`; rho is of the rest, (epsilon - epsilon_1, delta -
    delta_1). Votes come before all other steps, so the two are composed one after the other: their sums are a proof.
    Raises BudgetError for votes out of another kind of budget, and where they leave nothing.

    >>> print(session_budget(Budget.approx(1, "1e-9")))
    rho = ~0.0149731 (zCDP)
    >>> print(session_budget(Budget.approx(2, "2e-9"), votes=Budget.approx(1, "1e-9")))
    rho = ~0.0149731 (zCDP)
    """
    check_budget(budget)
    if votes is None:
        return budget.zcdp_within() if budget.kind == "approx" else budget
    check_budget(votes)
    if votes.kind != "approx" or budget.kind != "approx":
        raise BudgetError(
            f"votes cost an (epsilon, delta) out of an (epsilon, delta), as delta is what they spend; got {votes} out "
            f"of {budget}"
        )
    if not (votes.epsilon < budget.epsilon and votes.delta < budget.delta):
        raise BudgetError(
            f"votes for {votes} leave nothing of {budget} to measure tables with; give them a share of it"
        )
    return (budget - votes).zcdp_within()


#: Cliques that a choice names where it is shown.
_MOST_SHOWN = 4


def mechanism_of(budget: Budget) -> str:
    """The noise of a session: discrete Laplace for pure budgets, discrete Gaussian for zCDP.

    >>> mechanism_of(Budget.pure(1))
    'laplace'
    """
    return "laplace" if budget.kind == "pure" else "gaussian"


@frozen(kw_only=True, repr=False)
class Choice:
    """What one call of the exponential mechanism chose, and how.

    candidates: those there were. groups: of which candidates one choice was made each, by number. chosen: of each
    group the numbers picked, in their order. temperature: h, per unit of the score. grid: units a record. person: how
    far one person moves a distance at most, records. kind: of budget, pure or zcdp.

    >>> one = Choice(candidates=(("a",), ("b",)), groups=((0, 1),), chosen=((1,),), temperature=Fraction(1, 32),
    ...     grid=16, person=1, kind="pure")
    >>> print(one.cliques, one.cost)
    (('b',),) epsilon = ~1
    """

    candidates: tuple[Clique, ...]
    groups: tuple[tuple[int, ...], ...]
    chosen: tuple[tuple[int, ...], ...]
    temperature: Fraction
    grid: int
    person: int
    kind: Literal["pure", "zcdp"]

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The candidates chosen, group by group."""
        return tuple(self.candidates[number] for group in self.chosen for number in group)

    @property
    def cost(self) -> Budget:
        """What it cost, from its temperature; see `dpgm_core.noise.choice`."""
        return cost_of(self.temperature, sum(map(len, self.chosen)), self.grid * self.person, self.kind)

    @property
    def numbers(self) -> IntArray:
        """No noisy numbers."""
        return np.zeros(0, np.int64)

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        return {
            "kind": "select",
            "candidates": [place[clique] for clique in self.candidates],
            "groups": None
            if self.groups == (tuple(range(len(self.candidates))),)
            else [list(group) for group in self.groups],
            "chosen": [list(group) for group in self.chosen],
            "temperature": str(self.temperature),
            "grid": self.grid,
        }

    def __repr__(self) -> str:
        names = [" x ".join(clique) for clique in self.cliques]
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        return f"Choice({', '.join(names[:_MOST_SHOWN])}{more} of {len(self.candidates)} candidates, {self.cost})"


@frozen(kw_only=True, eq=False, repr=False)
class NoisyScores:
    """The distance of each candidate's table from its prediction, with noise.

    candidates: their cliques. values: (candidates,), records. calibration: of the noise, in units of 1/1024 record.
    """

    candidates: tuple[Clique, ...]
    values: FloatArray
    calibration: Calibration

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, records."""
        return math.sqrt(self.calibration.noise.variance) / SCORE_GRID

    @property
    def cost(self) -> Budget:
        """What they cost: that of the noise."""
        return self.calibration.noise.cost

    @property
    def numbers(self) -> IntArray:
        """As they were drawn, whole multiples of 1/1024 record."""
        drawn: IntArray = np.rint(self.values * SCORE_GRID).astype(np.int64)
        return drawn

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        return {
            "kind": "score",
            "candidates": [place[clique] for clique in self.candidates],
            "calibration": calibration_to(self.calibration),
        }

    def __repr__(self) -> str:
        return f"NoisyScores({len(self.candidates)} candidates, deviation {self.deviation:.4g} records, {self.cost})"


@frozen(kw_only=True, eq=False)
class SessionTerms:
    """What a session was opened for, and how codes were merged in it.

    workload: over the records' domain. budget: what its steps might cost together, pure or zCDP. merges: attribute ->
    the new code of each of its codes; empty where none were. votes: what votes might cost besides, (epsilon, delta).
    bins: that were found first, out of the budget; the workload's domain has them. named: whether the cliques to model
    were named by the owner, and the session was there for the bins alone.
    """

    workload: Workload
    budget: Budget
    merges: Mapping[str, tuple[int, ...]]
    votes: Budget | None = None
    bins: tuple[FoundBins, ...] = ()
    named: bool = False

    @property
    def steps_budget(self) -> Budget:
        """What its steps might cost together, when the bins were found."""
        left = self.budget
        for one in self.bins:
            left = left - one.cost
        return left

    def to_dict(self) -> dict[str, Any]:
        """Plain values. planned: how many labels open columns might have had, which says what candidates there are."""
        bins = {one.name for one in self.bins}
        sizes = self.workload.domain.sizes
        planned = {
            name: size for name, size in self.workload.planned_sizes.items() if name not in bins and size != sizes[name]
        }
        return {
            "workload": self.workload.to_dict(),
            "budget": self.budget.to_dict(),
            "merges": {name: list(codes) for name, codes in self.merges.items()},
            **({} if self.votes is None else {"votes": self.votes.to_dict()}),
            **({"bins": [one.to_dict() for one in self.bins]} if self.bins else {}),
            **({"planned": planned} if planned else {}),
            **({"named": True} if self.named else {}),
        }
