"""Lines of means with error bars against a budget, on logarithmic axes, as one SVG element that needs nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from dpgm_core.markup import Html, tag

__all__ = ["Point", "drawn"]

#: Okabe and Ito's colours, which people tell apart however they see them; a page's style may set others.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777")
_DASHES = (None, "6 3", "2 3", "8 3 2 3")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 420, 270, 58, 34, 54, 16


@frozen(kw_only=True)
class Point:
    """One mean with its standard error, NaN for none. at: where on the axis of budgets, which says tick there."""

    line: str
    panel: str
    at: float
    tick: str
    mean: float
    error: float


def drawn(title: str, points: Sequence[Point], *, axis: str, across: int = 2, evenly: bool = False) -> Html:
    """A panel for each name of one, so many beside each other, over what the lines are.

    axis: what budgets are of. evenly: whether they are set apart evenly, as they have no common scale. Means that are
    not positive and finite are left out; the description says how many.
    """
    lines = list(dict.fromkeys(point.line for point in points))
    panels = list(dict.fromkeys(point.panel for point in points))
    shown = [point for point in points if _visible(point)]
    down = math.ceil(len(panels) / across)
    width, height = across * _WIDTH, down * _HEIGHT + 20 * len(lines) + 12
    marks = _places(points, evenly)
    parts = [
        tag(
            "g",
            *_panel(panel, [point for point in shown if point.panel == panel], lines, marks),
            tag("text", axis, x=(_LEFT + _WIDTH - _RIGHT) / 2, y=_HEIGHT - 8, text_anchor="middle"),
            transform=f"translate({number % across * _WIDTH} {number // across * _HEIGHT})",
        )
        for number, panel in enumerate(panels)
    ]
    parts += [_key(name, number, down * _HEIGHT + 20 * number + 12) for number, name in enumerate(lines)]
    left = len(points) - len(shown)
    said = f"{', '.join(lines)}: {'; '.join(panels)}." + (
        f" Not shown: {left} that are infinite or failed." if left else ""
    )
    return tag(
        "svg",
        tag("title", title),
        tag("desc", said),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        role="img",
        style="max-width:100%;height:auto;font:12px sans-serif",
        fill="currentColor",
    )


def _visible(point: Point) -> bool:
    return math.isfinite(point.mean) and point.mean > 0


def _panel(panel: str, shown: Sequence[Point], lines: Sequence[str], marks: Mapping[str, float]) -> list[Html]:
    """Title, axes and lines of one panel. marks: where each budget stands."""
    parts = [tag("text", panel, x=_LEFT, y=18, font_weight="bold")]
    if not shown:
        return [*parts, tag("text", "no run gave a number", x=_LEFT, y=_HEIGHT / 2)]
    ends = [end for point in shown for end in _ends(point)]
    up = _scale(math.log(min(ends)), math.log(max(ends)), _HEIGHT - _BOTTOM - 8, _TOP + 8)
    right, floor = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value in _ticks(min(ends), max(ends)):
        y = up(math.log(value))
        parts.append(tag("path", d=f"M{_LEFT} {y:.1f}H{right}", stroke="currentColor", stroke_opacity="0.15"))
        parts.append(tag("text", f"{value:g}", x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))
    for name, x in marks.items():
        parts.append(tag("path", d=f"M{x:.1f} {floor}v5", stroke="currentColor"))
        parts.append(tag("text", name, x=f"{x:.1f}", y=floor + 18, text_anchor="middle"))
    parts.append(tag("path", d=f"M{_LEFT} {_TOP}V{floor}H{right}", stroke="currentColor", fill="none"))
    for number, name in enumerate(lines):
        parts += _line([point for point in shown if point.line == name], number, len(lines), marks, up)
    return parts


def _line(
    points: Sequence[Point],
    number: int,
    lines: int,
    marks: Mapping[str, float],
    up: Callable[[float], float],
) -> list[Html]:
    """One method: its means joined, a bar of one standard error up and down at each, a little beside the others'."""
    beside = 3.0 * (number - (lines - 1) / 2)
    places = sorted(((marks[point.tick] + beside, point) for point in points), key=lambda place: place[0])
    path = "".join(f"{'L' if at else 'M'}{x:.1f} {up(math.log(one.mean)):.1f}" for at, (x, one) in enumerate(places))
    parts = (
        [tag("path", d=path, fill="none", stroke=_colour(number), stroke_width=1.5, **_dash(number))] if path else []
    )
    for x, one in places:
        low, high = _ends(one)
        where = f"{one.line}, {one.tick}: {one.mean:.3g}"
        said = where if math.isnan(one.error) else f"{where} ± {one.error:.1g}"
        bar = tag(
            "path",
            d=f"M{x:.1f} {up(math.log(low)):.1f}V{up(math.log(high)):.1f}",
            stroke=_colour(number),
            stroke_width=1.5,
        )
        dot = tag("circle", cx=f"{x:.1f}", cy=f"{up(math.log(one.mean)):.1f}", r=3, fill=_colour(number))
        parts.append(tag("g", tag("title", said), bar, dot))
    return parts


def _key(name: str, number: int, y: float) -> Html:
    """What a line stands for."""
    return tag(
        "g",
        tag("path", d=f"M{_LEFT} {y}h28", stroke=_colour(number), stroke_width=1.5, **_dash(number)),
        tag("circle", cx=_LEFT + 14, cy=y, r=3, fill=_colour(number)),
        tag("text", name, x=_LEFT + 36, y=y + 4),
    )


def _colour(number: int) -> Html:
    return Html(f"var(--dpgm-series-{number + 1}, {_COLOURS[number % len(_COLOURS)]})")


def _dash(number: int) -> dict[str, str | None]:
    return {"stroke_dasharray": _DASHES[number % len(_DASHES)]}


def _places(points: Sequence[Point], evenly: bool) -> dict[str, float]:
    """Tick -> where it stands: by the logarithm, or evenly, also where logarithms leave some no room."""
    found = sorted({(point.at, point.tick) for point in points})
    logs = [math.log(at) for at, _ in found]
    room = all(later - earlier >= (logs[-1] - logs[0]) / 10 for earlier, later in itertools.pairwise(logs))
    if evenly or not room:
        logs = [float(place) for place in range(len(found))]
    place = _scale(logs[0], logs[-1], _LEFT + 44, _WIDTH - _RIGHT - 44)
    return {tick: place(log) for (_, tick), log in zip(found, logs, strict=True)}


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """A straight line from [low, high] to [start, end]; the middle where both ends are one."""
    if high - low < 1e-12:
        return lambda value: (start + end) / 2
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _ends(point: Point) -> tuple[float, float]:
    """One standard error down and up; never below a tenth of the mean, as the axis is logarithmic."""
    error = 0.0 if math.isnan(point.error) else point.error
    return max(point.mean - error, point.mean / 10), point.mean + error


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... inside, or just the powers of 10 where those are many; where there is none, both ends."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(powers) > 4 else (1, 2, 5)
    found = [step * 10.0**power for power in powers for step in steps]
    return [value for value in found if low <= value <= high] or [float(f"{low:.2g}"), float(f"{high:.2g}")]
