"""What votes and descents of a session hand out. Safe to publish; what each cost is computed again on reading."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from attrs import frozen

from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.gradients import Loss
from dpgm_core.privacy.votes import Voter
from dpgm_core.structure import Clique

__all__ = ["Descent", "Verdict"]


@frozen(kw_only=True)
class Descent:
    """One direction of each regression: where its weights move, chosen by the exponential mechanism.

    candidates, loss: of the regressions. picks: of each choice the row and the column of the regressions' weights, and
    the sign, +1 or -1, that its weight there is to grow by. temperature: h, per unit of 1/residual_grid. radius, clip,
    residual_grid: as given; public. kind: of budget, pure or zcdp.
    """

    candidates: tuple[Clique, ...]
    loss: Loss
    picks: tuple[tuple[int, int, int], ...]
    temperature: Fraction
    radius: Fraction
    clip: Fraction | None
    residual_grid: int
    kind: Literal["pure", "zcdp"]


@frozen(kw_only=True)
class Verdict:
    """The graph that votes agreed on.

    voter: what voted. budget: what it cost, (epsilon, delta). edges: the pairs of the graph, none perhaps; None: the
    votes were not stable enough to tell.
    """

    voter: Voter
    budget: Budget
    edges: tuple[Clique, ...] | None

    @property
    def cost(self) -> Budget:
        """What it cost, whatever came out."""
        return self.budget
