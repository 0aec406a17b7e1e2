"""The measured tables, each once, and their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from dpgm_core.releases.coarse import cells_as_drawn
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique

__all__ = ["Measured", "drawn_steps", "measured_tables"]


@frozen(kw_only=True)
class Measured:
    """One table as it was measured best. group: its cliques. cells: when it was measured; 1 for a sum of products.

    deviation: of the noise of a cell, records. average: records in the average cell. times: how often it was measured.
    holdout: only for a holdout, and not learned from.
    """

    group: tuple[Clique, ...]
    cells: int
    deviation: float
    average: float
    times: int
    holdout: bool

    @property
    def relative(self) -> float:
        """The noise of a cell over the records in the average one."""
        return self.deviation / self.average


def drawn_steps(releases: Sequence[NoisyTables]) -> list[NoisyTables]:
    """All whose noise was drawn as it is: each release, or of a session each of its steps that measured tables."""
    return [
        step for one in releases for step in (one.steps if one.session else (one,)) if isinstance(step, NoisyTables)
    ]


def measured_tables(releases: Sequence[NoisyTables]) -> list[Measured]:
    """Each table once, in the order in which they were measured first."""
    best: dict[tuple[bool, tuple[Clique, ...]], Measured] = {}
    for release in releases:
        scale = 1.0 if release.contributions is None else float(release.contributions.grid)
        own = cells_as_drawn(release)
        if release.contrasts:
            own = [(1, variance) for variance in release.measurement.sum_variances.tolist()]
        for group, (count, variance), total in zip(release.structure.groups, own, release.totals.tolist(), strict=True):
            table = Measured(
                group=group,
                cells=count,
                deviation=math.sqrt(variance) / scale,
                average=total / scale / count,
                times=1,
                holdout=release.holdout,
            )
            before = best.get((release.holdout, group))
            if before is not None:
                better = min(before, table, key=lambda one: one.relative)
                table = Measured(
                    group=group,
                    cells=better.cells,
                    deviation=better.deviation,
                    average=better.average,
                    times=before.times + 1,
                    holdout=better.holdout,
                )
            best[release.holdout, group] = table
    return list(best.values())
