"""Answers of private queries: choices, scores, descents, votes and bins. Safe to publish.

Their costs are computed again when a file is read, from temperatures or noise and the terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, Literal

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.exact_numbers import amount
from dpgm_core.components.options import converter
from dpgm_core.components.registry import make
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateBins, grid_edges
from dpgm_core.errors import BudgetError, ModelFileError, StructureError
from dpgm_core.privacy.bins import BinsPlan, nodes_of
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.descent import Loss, Regressions, descent_cost, reach, within_limits
from dpgm_core.privacy.mechanism import Calibration, Mechanism, calibrate, mechanism_name
from dpgm_core.privacy.selection import MAX_TABLE_LENGTH, MIN_TABLE_LENGTH, SCORE_GRID, cost_of, table_length
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.session_account import SessionAccount
from dpgm_core.privacy.votes import Voter
from dpgm_core.releases.calibrations import calibration_to
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.workload import Workload

__all__ = [
    "Choice",
    "Descent",
    "FoundBins",
    "NoisyScores",
    "SessionTerms",
    "Verdict",
    "mechanism_of",
    "read_bins",
    "session_budget",
    "session_mechanism",
    "shortened",
]


class _WithoutNumbers:
    """Base of answers that hold no noisy number."""

    __slots__ = ()

    @property
    def numbers(self) -> IntArray:
        """No noisy numbers."""
        return np.zeros(0, np.int64)


# --- Descents -------------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False)
class Descent(_WithoutNumbers):
    """One direction of each regression: where its weights move, chosen by the exponential mechanism.

    regressions: of what on what. picks: of each of its choices, in their order, the row and the column of the weights,
    and the sign, +1 or -1, of the weight's growth that lowers the loss: that of the sum of residual times feature,
    as far as noise lets it be seen. temperature: h, per unit of 1/residual_grid. radius, clip, residual_grid: as given;
    public. person: how many records one person adds and takes away. kind: of budget, pure or zcdp.
    """

    regressions: Regressions
    picks: tuple[tuple[int, int, int], ...]
    temperature: Fraction
    radius: Fraction
    clip: Fraction | None
    residual_grid: int
    person: int
    kind: Literal["pure", "zcdp"]

    @property
    def candidates(self) -> tuple[Clique, ...]:
        """The cliques that may have weight."""
        return self.regressions.candidates.cliques

    @property
    def loss(self) -> Loss:
        """Of the regressions."""
        return self.regressions.loss

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The candidates whose weights moved, each once, in the order of the choices; constants are of none."""
        rows, columns = self.regressions.rows, self.regressions.columns
        named = {frozenset(clique): clique for clique in self.candidates}
        moved = (frozenset({rows[row][0], *columns[column][0]}) for row, column, _ in self.picks)
        return tuple(dict.fromkeys(named[names] for names in moved if len(names) > 1))

    @property
    def cost(self) -> Budget:
        """What it cost, from its temperature; see `dpgm_core.privacy.descent`."""
        return descent_cost(self.temperature, self.reach, self.person, len(self.picks), self.kind)

    @property
    def sound(self) -> bool:
        """Whether a session could have made it: units within their limits, and one allowed weight of each choice."""
        own = self.regressions
        named = {frozenset(clique) for clique in self.candidates}
        return (
            len(self.picks) == len(own.choices)
            and all(
                row in rows
                and 0 <= column < len(own.columns)
                and sign in (1, -1)
                and (column == len(own.columns) - 1 or {own.rows[row][0], *own.columns[column][0]} in named)
                and own.rows[row][0] not in own.columns[column][0]
                for (row, column, sign), rows in zip(self.picks, own.choices, strict=True)
            )
            and within_limits(self.radius, self.residual_grid, self.clip)
            and self.reach >= 1
        )

    @property
    def reach(self) -> int:
        """How far the residuals of one record reach together; see `dpgm_core.privacy.descent`."""
        grid, touched = self.residual_grid, self.regressions.touched
        return reach(self.loss, touched, radius=self.radius, grid=grid, clip=self.clip, kind=self.kind)

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        return {
            "kind": "descend",
            "candidates": [place[clique] for clique in self.candidates],
            "loss": self.loss,
            "picks": [list(pick) for pick in self.picks],
            "temperature": str(self.temperature),
            "radius": str(self.radius),
            "clip": None if self.clip is None else str(self.clip),
            "residual_grid": self.residual_grid,
        }

    def __repr__(self) -> str:
        return f"Descent({len(self.picks)} choices among {len(self.candidates)} candidates, {self.cost})"


def shortened(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A session's steps without what descents repeat: `candidates` is None where they are those of the one before.

    >>> shortened([{"kind": "descend", "candidates": [0], "loss": "pairs", "coarse": False}] * 2)[1]["candidates"]
    """
    steps, before = [], None
    for one in documents:
        if one["kind"] == "descend":
            same = (one["candidates"], one["loss"], one["coarse"])
            one, before = (one | {"candidates": None} if same == before else one), same
        steps.append(one)
    return steps


# --- Votes ----------------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False)
class Verdict(_WithoutNumbers):
    """The graph that votes agreed on, or nothing: how many voted for what never leaves the curator.

    voter: what voted. budget: what it cost, (epsilon, delta). edges: the pairs of the graph, none perhaps; None: the
    votes were not stable enough to tell.
    """

    voter: Voter
    budget: Budget
    edges: tuple[Clique, ...] | None

    @property
    def candidates(self) -> tuple[Clique, ...]:
        """The pairs that could be edges."""
        return self.voter.pairs.cliques

    @property
    def cost(self) -> Budget:
        """What it cost, whatever came out."""
        return self.budget

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        return {
            "kind": "vote",
            "candidates": [place[pair] for pair in self.candidates],
            "voter": self.voter.to_dict(),
            "budget": self.budget.to_dict(),
            "edges": None if self.edges is None else [place[pair] for pair in self.edges],
        }

    def __repr__(self) -> str:
        outcome = "not stable enough to tell" if self.edges is None else f"{len(self.edges)} edges"
        return f"Verdict({outcome}, {self.budget})"


# --- Private bins ---------------------------------------------------------------------------------


@frozen(kw_only=True)
class FoundBins:
    """The bins of one column, found by bisection of a public grid.

    search: how they were found. choices: of each level the grid's edges that were chosen, from low to high; edge e
    stands before cell e. edges: of the bins, places on the column's axis.
    """

    search: BinsPlan
    choices: tuple[tuple[int, ...], ...]
    edges: tuple[float, ...]

    @classmethod
    def of(cls, search: BinsPlan, choices: tuple[tuple[int, ...], ...], grid: Sequence[float]) -> FoundBins:
        """What was chosen; grid: the edges of all cells. Raises StructureError for what no bisection chooses."""
        return cls(search=search, choices=choices, edges=tuple(grid[place] for place in _places(search.cells, choices)))

    @property
    def name(self) -> str:
        """The column."""
        return self.search.attribute.name

    @property
    def cost(self) -> Budget:
        """What they cost, from their temperatures; see `dpgm_core.privacy.bins`."""
        return self.search.cost

    @property
    def places(self) -> tuple[int, ...]:
        """The edges of the bins, by their number on the grid, both ends too."""
        return _places(self.search.cells, self.choices)

    @property
    def attribute(self) -> Attribute:
        """The attribute with the bins that were found."""
        return self.search.attribute.binned(self.edges)

    def recoding(self, grid: Attribute) -> IntArray:
        """The code under the found bins of each code under the grid, (codes of the grid,)."""
        attribute, cells = self.attribute, self.search.cells
        bins = np.searchsorted(np.asarray(self.places), np.arange(cells), side="right") - 1
        own = [attribute.labels.index(label) for label in grid.labels[cells:]]
        return np.concatenate([bins, np.asarray(own, np.int64)]).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """JSON values for a session's file."""
        return {
            "column": self.name,
            "declared": self.search.attribute.to_dict(),
            "cells": self.search.cells,
            "temperatures": [str(h) for h in self.search.temperatures],
            "choices": [list(level) for level in self.choices],
        }


def read_bins(plain: Any, rows: int, kind: Literal["pure", "zcdp"]) -> FoundBins:
    """The bins of one column out of a session's file. Raises ModelFileError for what no session finds.

    rows: that come or go between neighbours.
    """
    keys = {"column", "declared", "cells", "temperatures", "choices"}
    if not isinstance(plain, Mapping) or set(plain) != keys:
        raise ModelFileError(f"private bins of its session must state {', '.join(sorted(keys))}")
    attribute = Attribute.from_dict(converter.structure(plain["column"], str), plain["declared"])
    if not isinstance(attribute.private, PrivateBins):
        raise ModelFileError(
            f"its session found bins of {attribute.name!r}, which was not declared to have private bins"
        )
    search = BinsPlan(
        attribute=attribute,
        temperatures=tuple(_temperature(text) for text in converter.structure(plain["temperatures"], list[str])),
        rows=rows,
        kind=kind,
    )
    if len(search.temperatures) > attribute.private.count.bit_length() - 1:
        raise ModelFileError(f"the private bins of {attribute.name!r} have more levels than bins; it was edited")
    choices = tuple(map(tuple, converter.structure(plain["choices"], list[list[int]])))
    if search.cells != converter.structure(plain["cells"], int) or len(choices) != len(search.temperatures):
        raise ModelFileError(f"the grid or the levels of the private bins of {attribute.name!r} do not fit its choices")
    grid = grid_edges(attribute.name, attribute.private.low, attribute.private.high, attribute.values)
    try:
        return FoundBins.of(search, choices, grid)
    except StructureError as error:
        raise ModelFileError(f"the private bins of {attribute.name!r} are none that a session finds: {error}") from None


def _temperature(text: str) -> Fraction:
    temperature = amount("the temperature of a level", text)
    if not MIN_TABLE_LENGTH <= table_length(temperature) <= MAX_TABLE_LENGTH:
        raise ModelFileError("a level of its private bins has a temperature that no session has")
    return temperature


def _places(cells: int, choices: Sequence[Sequence[int]]) -> tuple[int, ...]:
    nodes = nodes_of(cells, choices)
    return (*(first for first, _ in nodes), nodes[-1][1])


# --- Choices, noisy scores and what a session was opened for --------------------------------------


def session_budget(budget: Budget, votes: Budget | None = None) -> Budget:
    """What the steps of a session may cost: pure and zCDP as they are, the largest rho within an (epsilon, delta).

    Of mu its rho, mu^2 / 2, which an exact Gaussian account proves for Gaussian steps, and a choice takes more of.

    votes: a part of the (epsilon, delta) that is for `Session.vote`; rho is of the rest, (epsilon - epsilon_1, delta -
    delta_1). Votes come before all other steps, so the two are composed one after the other: their sums are a proof.
    Raises BudgetError for votes out of another kind of budget, and where they leave nothing.
    """
    check_budget(budget)
    if votes is None:
        if budget.kind == "gdp":
            return budget.to_zcdp()
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
_MAX_SHOWN = 4
_ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)


def mechanism_of(budget: Budget) -> str:
    """Core's own noise of a session: discrete Laplace for pure budgets, discrete Gaussian for zCDP."""
    return "laplace" if budget.kind == "pure" else "gaussian"


#: What a mechanism of tables must serve in a session of this kind, and what to do where it does not.
_SERVED = {
    "pure": ("pure epsilon, which a session under a pure budget spends", "a zCDP or (epsilon, delta) budget"),
    "zcdp": ("rho, which a session under (epsilon, delta) or zCDP spends", "a pure budget"),
}


def session_mechanism(budget: Budget, mechanism: str | Mapping[str, Any] | Mechanism | None = None) -> Mechanism:
    """Return the mechanism of a session's tables: core's own for None, else the one given, if its costs compose.

    budget: what the session's steps may cost. Raises PluginError where a plugin is missing, OptionError for what is no
    mechanism, and BudgetError for one that does not serve this kind of budget, whose noise costs more than it claims,
    or is not exact and private to the letter; it is tried at a sensitivity of 1 and half the budget.
    """
    drawn: Mechanism = make("mechanism", mechanism_of(budget) if mechanism is None else mechanism)
    if mechanism is None:
        return drawn
    name, half = mechanism_name(drawn), budget * Fraction(1, 2)
    try:
        noise = drawn.noise(_ONE, half)
    except BudgetError as error:
        served, other = _SERVED["pure" if budget.kind == "pure" else "zcdp"]
        raise BudgetError(
            f"mechanism {name!r} cannot serve {served}; give it a tabulated distribution, or use {other} (it said: "
            f"{error})"
        ) from error
    calibrate(drawn, noise, _ONE, half)
    if not noise.exact or noise.unsafe:
        raise BudgetError(
            f"mechanism {name!r} draws noise that is not private to the letter ({noise.unsafe}), and a session takes "
            "exact noise only; leave its options as they are by default, or name the cliques"
        )
    return drawn


def _groups_document(groups: Sequence[Sequence[int]], count: int) -> list[list[int]] | None:
    """Return groups of so many candidates as JSON values; None where all candidates are the one group."""
    return None if tuple(map(tuple, groups)) == (tuple(range(count)),) else [list(group) for group in groups]


@frozen(kw_only=True, repr=False)
class Choice(_WithoutNumbers):
    """What one call of the exponential mechanism chose, and how.

    candidates: those there were. groups: of which candidates one choice was made each, by number. chosen: of each
    group the numbers picked, in their order. forest: of a forest, the cliques whose attributes were connected before,
    so that no pick closed a cycle; None: picks of any kind. temperature: h, per unit of the score. grid: units a
    record. person: how far one person moves a distance at most, records. kind: of budget, pure or zcdp.

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
    forest: tuple[Clique, ...] | None = None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The candidates chosen, group by group."""
        return tuple(self.candidates[number] for group in self.chosen for number in group)

    @property
    def cost(self) -> Budget:
        """What it cost, from its temperature; see `dpgm_core.privacy.selection`."""
        return cost_of(self.temperature, sum(map(len, self.chosen)), self.grid * self.person, self.kind)

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        return {
            "kind": "select",
            "candidates": [place[clique] for clique in self.candidates],
            "groups": _groups_document(self.groups, len(self.candidates)),
            "chosen": [list(group) for group in self.chosen],
            "temperature": str(self.temperature),
            "grid": self.grid,
            **({} if self.forest is None else {"forest": [list(clique) for clique in self.forest]}),
        }

    def __repr__(self) -> str:
        names = [" x ".join(clique) for clique in self.cliques]
        more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
        return f"Choice({', '.join(names[:_MAX_SHOWN])}{more} of {len(self.candidates)} candidates, {self.cost})"


@frozen(kw_only=True, eq=False, repr=False)
class NoisyScores:
    """The distance of each candidate's table from its prediction, or the mean of each group of them, with noise.

    candidates: their cliques. values: (candidates,) or (groups,), records. calibration: of the noise, in units of
    1/1024 record. groups: of which candidates one mean was released each, by number; None where each distance was.
    """

    candidates: tuple[Clique, ...]
    values: FloatArray
    calibration: Calibration
    groups: tuple[tuple[int, ...], ...] | None = None

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
        return np.rint(self.values * SCORE_GRID).astype(np.int64)

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values for a session's file; place: the number of each candidate of the workload."""
        candidates, calibration = [place[clique] for clique in self.candidates], calibration_to(self.calibration)
        if self.groups is None:
            return {"kind": "score", "candidates": candidates, "calibration": calibration}
        groups = _groups_document(self.groups, len(candidates))
        return {"kind": "mean", "candidates": candidates, "groups": groups, "calibration": calibration}

    def __repr__(self) -> str:
        count = f"{len(self.candidates)} candidates"
        what = count if self.groups is None else f"{len(self.groups)} means over {count}"
        return f"NoisyScores({what}, deviation {self.deviation:.4g} records, {self.cost})"


@frozen(kw_only=True, eq=False)
class SessionTerms:
    """What a session was opened for, and how codes were merged in it.

    workload: over the records' domain. budget: what its steps might cost together, pure or zCDP. merges: attribute ->
    the new code of each of its codes; empty where none were. votes: what votes might cost besides, (epsilon, delta).
    bins: that were found first, out of the budget; the workload's domain has them. named: whether the cliques to model
    were named by the owner, and the session was there for the bins alone. account: what proves that a zCDP budget is
    within an (epsilon, delta), or mu; None: the conversion of zCDP.
    """

    workload: Workload
    budget: Budget
    merges: Mapping[str, tuple[int, ...]]
    votes: Budget | None = None
    bins: tuple[FoundBins, ...] = ()
    named: bool = False
    account: SessionAccount | None = None

    @property
    def steps_budget(self) -> Budget:
        """What its steps might cost together, when the bins were found."""
        return reduce(lambda left, one: left - one.cost, self.bins, self.budget)

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
            **({"order_before_merging": order} if (order := self.workload.order_before_merging) else {}),
            **({"named": True} if self.named else {}),
            **({} if self.account is None else {"account": self.account.to_dict()}),
        }
