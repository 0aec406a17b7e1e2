"""Results of a session's descents. Safe to publish; their cost is computed again on reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from attrs import frozen

from dpgm_core.arrays import IntArray
from dpgm_core.noise.descent import descent_cost
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gradients import reach, within_limits
from dpgm_core.privacy.regressions import Loss, Regressions
from dpgm_core.structure import Clique

__all__ = ["Descent", "shortened"]


@frozen(kw_only=True, repr=False)
class Descent:
    """One direction of each regression: where its weights move, chosen by the exponential mechanism.

    regressions: of what on what. picks: of each of its choices, in their order, the row and the column of the weights,
    and the sign, +1 or -1, of the weight's growth that lowers the loss: that of the sum of residual times feature,
    as far as noise lets it be seen. temperature: h, per unit of 1/residual_grid. radius, clip, residual_grid: as given;
    public. person: how many records one person adds and takes away. kind: of budget, pure or zcdp.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.structure import Structure
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> Descent(regressions=Regressions(candidates=pair, loss="logistic"), picks=((0, 1, 1), (1, 2, -1)),
    ...     temperature=Fraction(1, 448), radius=2, clip=None, residual_grid=128, person=1, kind="pure")
    Descent(2 choices among 1 candidates, epsilon = ~1)
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
        """What it cost, from its temperature; see `dpgm_core.noise.descent`."""
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
        """How far the residuals of one record reach together; see `dpgm_core.privacy.gradients`."""
        return reach(
            self.loss,
            self.regressions.touched,
            radius=self.radius,
            grid=self.residual_grid,
            clip=self.clip,
            kind=self.kind,
        )

    @property
    def numbers(self) -> IntArray:
        """No noisy numbers."""
        return np.zeros(0, np.int64)

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
