"""Descents of a session: their cost from public facts, then their directions from records."""

from __future__ import annotations

from typing import Literal

import attrs

from dpgm_core.counting.gradients import GradientSums
from dpgm_core.counting.rows import Rows
from dpgm_core.curator.shield import redact_source_errors, strip_traceback
from dpgm_core.noise.descent import descent_temperature, steepest
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gradients import NodeGradients
from dpgm_core.privacy.scores import TableDistance
from dpgm_core.privacy.terms import Terms
from dpgm_core.randomness import Randomness
from dpgm_core.releases.descents import Descent

__all__ = ["DescentStep"]


class DescentStep:
    """One direction of each regression by the exponential mechanism, asked for and not drawn yet.

    Raises BudgetError for a budget by which nothing could be told apart.
    """

    def __init__(self, gradients: NodeGradients, budget: Budget, terms: Terms) -> None:
        own = gradients.regressions
        kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
        person = TableDistance.move(terms)
        self._sums = GradientSums(gradients, kind)
        self._descent = Descent(
            regressions=own,
            picks=((0, 0, 1),) * len(own.choices),
            temperature=descent_temperature(budget, gradients.reach(kind), person, len(own.choices)),
            radius=gradients.radius,
            clip=gradients.clip,
            residual_grid=gradients.residual_grid,
            person=person,
            kind=kind,
        )

    @property
    def cost(self) -> Budget:
        """It depends on how many choices there are, not on what they give."""
        return self._descent.cost

    def drawn(self, source: object, rows: Rows, randomness: Randomness) -> Descent:
        """To be called once it is paid for. source: of the rows, whose errors are dropped."""
        own, h, sums = self._descent.regressions, self._descent.temperature, self._sums

        def directions() -> tuple[tuple[int, int, int], ...]:
            sums_of_rows = redact_source_errors(source, lambda: rows.total(sums))
            return tuple(steepest(sums_of_rows, own, h, randomness))

        return attrs.evolve(self._descent, picks=strip_traceback(directions))
