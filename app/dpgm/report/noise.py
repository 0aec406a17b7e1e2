"""Pictures of noise, and matrices of pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from attrs import evolve, frozen

from dpgm.report.parts import cut, join, per_cent
from dpgm_core._util.html import Html, tag
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.views import cells_as_drawn
from dpgm_core.structure.graphs import Clique

__all__ = ["Measured", "drawn_steps", "measured_tables", "noise_matrix"]


# --- Measured tables ---


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
    """Return all tables as drawn: each release, or the steps of a session that measured tables."""
    return [
        step for one in releases for step in (one.steps if one.session else (one,)) if isinstance(step, NoisyTables)
    ]


def measured_tables(releases: Sequence[NoisyTables]) -> list[Measured]:
    """Return each table once, in the order of first measurement."""
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
                table = evolve(better, times=before.times + 1)
            best[release.holdout, group] = table
    return list(best.values())


# --- Matrix of pairs ---

_MAX_ATTRIBUTES = 60
_SIDE_PX, _LETTER_PX = 20, 7.2
#: Upper limit of relative noise for each shade but the last.
_SHADE_LIMITS = (0.01, 0.03, 0.1, 0.3, 1.0)


def noise_matrix(names: Sequence[str], tables: Sequence[Measured]) -> Html | None:
    """The matrix with its key; None where no table holds a pair. names: of at most 60 the first that are in pairs."""
    noise = _best(tables)
    if not noise:
        return None
    measured = {one for pair in noise for one in pair}
    shown = [one for one in names if one in measured]
    left, shown = len(shown) - _MAX_ATTRIBUTES, shown[:_MAX_ATTRIBUTES]
    labels = [_short(one) for one in shown]
    # A name stands at the end of its row, which is the top of its column: one label serves both.
    wide = max(_SIDE_PX * number + _LETTER_PX * len(label) + 8 for number, label in enumerate(labels))
    place = {one: number for number, one in enumerate(shown)}
    cells: dict[int, list[str]] = {}
    for pair, relative in noise.items():
        if pair <= place.keys():
            low, high = sorted(place[one] for one in pair)
            cells.setdefault(sum(relative > limit for limit in _SHADE_LIMITS), []).append(_square(low, high))
    grid = "".join(_square(low, high) for low, high in combinations(range(len(shown)), 2))
    drawn = [tag("path", d=grid, fill="none", stroke="var(--rule)", stroke_width="1")]
    drawn += [tag("path", d="".join(parts), fill=f"var(--shade-{shade + 1})") for shade, parts in sorted(cells.items())]
    for number, label in enumerate(labels):
        drawn.append(tag("text", label, x=_SIDE_PX * number + 4, y=f"{(number + 0.5) * _SIDE_PX + 4:g}"))
    words = f"{len(noise)} pairs of attributes lie in a released table."
    svg = tag(
        "svg",
        tag("title", "Pairs of attributes that a released table holds"),
        tag("desc", words),
        *drawn,
        viewBox=f"0 0 {wide:g} {_SIDE_PX * len(shown) + 2:g}",
        width=f"{wide:g}",
        role="img",
        font_size="12",
        fill="currentColor",
    )
    more = f" The first {_MAX_ATTRIBUTES} attributes are shown, of {_MAX_ATTRIBUTES + left}." if left > 0 else ""
    caption = "Each square is a pair: the attribute at the end of its row, and the one at the top of its column. "
    return join([tag("figure", svg, _key(cells), tag("figcaption", f"{caption}{words}{more}"))])


def _best(tables: Sequence[Measured]) -> dict[frozenset[str], float]:
    """The least relative noise of a table that holds the pair, of those that are learned from."""
    least: dict[frozenset[str], float] = {}
    for table in tables:
        if table.holdout or len(table.group) > 1:
            continue
        for pair in combinations(table.group[0], 2):
            key = frozenset(pair)
            least[key] = min(least.get(key, table.relative), table.relative)
    return least


def _square(low: int, high: int) -> str:
    return f"M{_SIDE_PX * low + 1} {_SIDE_PX * high + 1}h{_SIDE_PX - 2}v{_SIDE_PX - 2}h-{_SIDE_PX - 2}z"


def _key(cells: dict[int, list[str]]) -> Html:
    limits = [*(f"up to {per_cent(limit, 0)}" for limit in _SHADE_LIMITS), "more than the average cell"]
    items = []
    for shade in sorted(cells):
        swatch = tag(
            "svg",
            tag("rect", width="14", height="14", fill=f"var(--shade-{shade + 1})"),
            width="14",
            height="14",
            aria_hidden="true",
        )
        items.append(tag("li", swatch, f"noise {limits[shade]}"))
    return tag("ul", *items, class_="keys")


def _short(name: str) -> str:
    shown = cut(name)
    return shown if len(shown) <= 24 else f"{shown[:23]}…"
