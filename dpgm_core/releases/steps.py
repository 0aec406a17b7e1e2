"""What a session hands out besides noisy tables: choices and noisy scores. Safe to publish.

What each cost is computed again when a file is read, from its temperature or its noise and from the terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from attrs import frozen

from dpgm_core.arrays import FloatArray
from dpgm_core.noise.choice import cost_of
from dpgm_core.noise.measurement import Calibration
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.scores import SCORE_GRID
from dpgm_core.structure import Clique
from dpgm_core.workload import Workload

__all__ = ["Choice", "NoisyScores", "SessionTerms"]


@frozen(kw_only=True)
class Choice:
    """What one call of the exponential mechanism chose, and how.

    candidates: those there were. groups: of which candidates one choice was made each, by number. chosen: of each
    group the numbers picked, in their order. temperature: h, per unit of the score. grid: units a record. move: how
    many units one person moves a score at most. kind: of budget, pure or zcdp.

    >>> one = Choice(candidates=(("a",), ("b",)), groups=((0, 1),), chosen=((1,),), temperature=Fraction(1, 32),
    ...     grid=16, move=16, kind="pure")
    >>> print(one.cliques, one.cost)
    (('b',),) epsilon = ~1
    """

    candidates: tuple[Clique, ...]
    groups: tuple[tuple[int, ...], ...]
    chosen: tuple[tuple[int, ...], ...]
    temperature: Fraction
    grid: int
    move: int
    kind: str

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The candidates chosen, group by group."""
        return tuple(self.candidates[number] for group in self.chosen for number in group)

    @property
    def cost(self) -> Budget:
        """What it cost, from its temperature; see `dpgm_core.noise.choice`."""
        return cost_of(self.temperature, sum(map(len, self.chosen)), self.move, self.kind)


@frozen(kw_only=True, eq=False)
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


@frozen(kw_only=True, eq=False)
class SessionTerms:
    """What a session was opened for, and how codes were merged in it.

    workload: over the records' domain. budget: what its steps might cost together, pure or zCDP. merges: attribute ->
    the new code of each of its codes; empty where none were.
    """

    workload: Workload
    budget: Budget
    merges: Mapping[str, tuple[int, ...]]
