"""A picture of a study: means with error bars against a budget, on logarithmic axes, as one SVG element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from dpgm.plots.canvas import draw_frame, label, number, paint
from dpgm_core._util.html import Html, tag

__all__ = ["Point", "draw_result"]

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


def draw_result(title: str, points: Sequence[Point], *, axis: str, across: int = 2, evenly: bool = False) -> Html:
    """A panel for each name of one, so many beside each other, over what the lines are.

    axis: what budgets are of. evenly: whether they are set apart evenly, as they have no common scale. Means that are
    not positive and finite are left out; the description says how many.
    """
    lines = list(dict.fromkeys(point.line for point in points))
    panels = list(dict.fromkeys(point.panel for point in points))
    shown = [point for point in points if _visible(point)]
    marks = _places(points, evenly)
    content = [
        tag(
            "g",
            *_panel(panel, [point for point in shown if point.panel == panel], lines, marks),
            label(axis, (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, _WIDTH - _LEFT, text_anchor="middle"),
            transform=f"translate({at % across * _WIDTH} {at // across * _HEIGHT})",
        )
        for at, panel in enumerate(panels)
    ]
    below = math.ceil(len(panels) / across) * _HEIGHT
    width = min(across, len(panels)) * _WIDTH
    content += [_key(name, at, below + 20 * at + 12, width) for at, name in enumerate(lines)]
    left = len(points) - len(shown)
    notes = [
        "Bars are one standard error up and down.",
        *([f"Not shown: {left} that are infinite or failed."] * bool(left)),
    ]
    return draw_frame(
        content,
        width=width,
        height=below + 20 * len(lines) + 12,
        title=title,
        description=f"{', '.join(lines)}: {'; '.join(panels)}. {' '.join(notes)}",
        notes=[(note, False) for note in notes],
    )


def _visible(point: Point) -> bool:
    return math.isfinite(point.mean) and point.mean > 0


def _panel(panel: str, shown: Sequence[Point], lines: Sequence[str], marks: Mapping[str, float]) -> list[Html]:
    """Title, axes and lines of one panel. marks: where each budget stands."""
    right, floor = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [label(panel, _LEFT, 18, right - _LEFT)]
    if not shown:
        return [*parts, label("no run gave a number", _LEFT, _HEIGHT / 2, right - _LEFT)]
    ends = [end for point in shown for end in _ends(point)]
    up = _scale(math.log(min(ends)), math.log(max(ends)), _HEIGHT - _BOTTOM - 8, _TOP + 8)
    for value in _ticks(min(ends), max(ends)):
        y = up(math.log(value))
        parts.append(tag("path", d=f"M{_LEFT} {number(y)}H{right}", stroke="currentColor", stroke_opacity="0.15"))
        parts.append(label(f"{value:g}", _LEFT - 6, y + 4, _LEFT, text_anchor="end"))
    room = (right - _LEFT) / len(marks)
    for name, x in marks.items():
        parts.append(tag("path", d=f"M{number(x)} {floor}v5", stroke="currentColor"))
        parts.append(label(name, x, floor + 18, room, text_anchor="middle"))
    parts.append(tag("path", d=f"M{_LEFT} {_TOP}V{floor}H{right}", stroke="currentColor", fill="none"))
    for at, name in enumerate(lines):
        offset = 3.0 * (at - (len(lines) - 1) / 2)
        parts += _line([point for point in shown if point.line == name], at, offset, marks, up)
    return parts


def _line(
    points: Sequence[Point], at: int, offset: float, marks: Mapping[str, float], up: Callable[[float], float]
) -> list[Html]:
    """One method, a little beside the others: its means joined, with a bar of one standard error up and down."""
    places = sorted(((marks[point.tick] + offset, point) for point in points), key=lambda place: place[0])
    path = " ".join(f"{number(x)},{number(up(math.log(one.mean)))}" for x, one in places)
    parts = [tag("polyline", points=path, fill="none", stroke_width=1.5, stroke_dasharray=_dash(at), **_stroke(at))]
    for x, one in places:
        low, high = _ends(one)
        said = f"{one.line}, {one.tick}: {one.mean:.3g}" + ("" if math.isnan(one.error) else f" ± {one.error:.1g}")
        bar = f"M{number(x)} {number(up(math.log(low)))}V{number(up(math.log(high)))}"
        dot = tag("circle", cx=number(x), cy=number(up(math.log(one.mean))), r=3, **paint(_colour(at)))
        parts.append(tag("g", tag("title", said), tag("path", d=bar, stroke_width=1.5, **_stroke(at)), dot))
    return parts


def _key(name: str, at: int, y: float, width: float) -> Html:
    """What a line stands for."""
    return tag(
        "g",
        tag("path", d=f"M{_LEFT} {y}h28", stroke_width=1.5, stroke_dasharray=_dash(at), **_stroke(at)),
        tag("circle", cx=_LEFT + 14, cy=y, r=3, **paint(_colour(at))),
        label(name, _LEFT + 36, y + 4, width - _LEFT - 44),
    )


def _colour(at: int) -> tuple[str, str]:
    return f"series-{at + 1}", _COLOURS[at % len(_COLOURS)]


def _stroke(at: int) -> dict[str, str]:
    return paint(_colour(at), "stroke")


def _dash(at: int) -> str | None:
    return _DASHES[at % len(_DASHES)]


def _places(points: Sequence[Point], evenly: bool) -> dict[str, float]:
    """Tick -> where it stands: by the logarithm, or evenly, also where logarithms leave some no room."""
    ticks = sorted({(point.at, point.tick) for point in points})
    logs = [math.log(at) for at, _ in ticks]
    room = all(later - earlier >= (logs[-1] - logs[0]) / 10 for earlier, later in itertools.pairwise(logs))
    if evenly or not room:
        logs = [float(place) for place in range(len(ticks))]
    place = _scale(logs[0], logs[-1], _LEFT + 44, _WIDTH - _RIGHT - 44)
    return {tick: place(log) for (_, tick), log in zip(ticks, logs, strict=True)}


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
    candidates = [step * 10.0**power for power in powers for step in steps]
    return [value for value in candidates if low <= value <= high] or [float(f"{low:.2g}"), float(f"{high:.2g}")]
