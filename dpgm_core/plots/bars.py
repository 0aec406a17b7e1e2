"""Bars: the shares of one attribute's labels, one row each, with whiskers for intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from dpgm_core.markup import Html, tag
from dpgm_core.plots.canvas import BAR, Note, cut, draw_frame, label, number, paint, percent
from dpgm_core.plots.figure import disable_math, finish_figure, matplotlib, new_axes, save_figure
from dpgm_core.plots.vega import specification
from dpgm_core.printable import printable

__all__ = ["Bars"]

_WIDTH, _ROW, _LABELS, _NUMBERS = 420.0, 22.0, 134.0, 62.0


@frozen(kw_only=True)
class Bars:
    """Shares with intervals. labels, shares: one per bar, in the order drawn. low, high: of the intervals, or ().

    level: of the intervals. standing: what all of it rests on. notes: lines under the picture, and whether they warn.
    """

    title: str
    standing: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    level: float | None = None
    notes: tuple[Note, ...] = ()

    @property
    def most(self) -> float:
        """The end of the axis: the largest share or end of an interval."""
        return max((*self.shares, *self.high, 1e-9))

    def said(self, at: int) -> str:
        """One bar in words."""
        words = f"{self.labels[at]}: {percent(self.shares[at])}"
        if not self.low:
            return words
        return f"{words} ({100 * (self.level or 0):g} % interval {percent(self.low[at])} to {percent(self.high[at])})"

    def described(self) -> str:
        """The picture in words, for those who do not see it."""
        largest = sorted(range(len(self.shares)), key=lambda at: -self.shares[at])[:10]
        more = "" if len(largest) == len(self.labels) else f"The largest of {len(self.labels)}: "
        return " ".join([f"{more}{'; '.join(self.said(at) for at in largest)}.", *(text for text, _ in self.notes)])

    def svg(self, *, bare: bool = False) -> Html:
        """One `<svg>` element; see `Picture`."""
        rows = [self._row(at) for at in range(len(self.labels))]
        height = _ROW * len(rows) + 6
        words = self.described()
        return draw_frame(
            rows, width=_WIDTH, height=height, title=self.title, description=words, notes=self.notes, bare=bare
        )

    def _row(self, at: int) -> Html:
        top, middle = _ROW * at + 4, _ROW * (at + 0.5) + 4
        scale = (_WIDTH - _LABELS - _NUMBERS - 16) / self.most
        start = _LABELS + 8
        bar = tag(
            "rect",
            x=number(start),
            y=number(top + 3),
            width=number(max(scale * self.shares[at], 0.5)),
            height=number(_ROW - 6),
            rx=2,
            **paint(BAR),
        )
        parts = [label(self.labels[at], _LABELS, middle + 4, _LABELS - 10, text_anchor="end"), bar]
        if self.low:
            low, high = start + scale * self.low[at], start + scale * self.high[at]
            ends = f"M{number(low)} {number(middle)}H{number(high)}M{number(low)} {number(middle - 4)}v8"
            whisker = f"{ends}M{number(high)} {number(middle - 4)}v8"
            parts.append(tag("path", d=whisker, stroke="currentColor", stroke_width=1.5, fill="none"))
        parts.append(label(percent(self.shares[at]), _WIDTH - 8, middle + 4, _NUMBERS, text_anchor="end"))
        return tag("g", tag("title", self.said(at)), *parts)

    def vega(self) -> dict[str, Any]:
        """A Vega-Lite specification with the values in it."""
        names = [printable(one) for one in self.labels]
        values: list[dict[str, Any]] = [
            {"label": name, "share": share} for name, share in zip(names, self.shares, strict=True)
        ]
        y = {"field": "label", "type": "nominal", "sort": None, "title": None}
        x = {"field": "share", "type": "quantitative", "title": "share", "axis": {"format": "%"}}
        layers: list[dict[str, Any]] = [
            {"mark": {"type": "bar", "color": BAR[1], "tooltip": True}, "encoding": {"x": x}}
        ]
        if self.low:
            for value, low, high in zip(values, self.low, self.high, strict=True):
                value |= {"low": low, "high": high}
            ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
            layers.append({"mark": {"type": "rule", "tooltip": True}, "encoding": ends})
        return specification(self.title, self.notes, values, layer=layers, encoding={"y": y}, width=400)

    def draw(self, axes: Any = None) -> Any:
        """Draw with matplotlib; see `Picture`."""
        axes = new_axes(axes, 6.0, 1.2 + 0.26 * len(self.labels))
        rows = range(len(self.labels))
        axes.barh(rows, self.shares, color=BAR[1])
        for at in rows if self.low else ():
            axes.plot([self.low[at], self.high[at]], [at, at], color="black", marker="|", markersize=6, linewidth=1.2)
        axes.set_yticks(rows, [cut(one, 9, 180) for one in self.labels], fontsize=9)
        disable_math(axes.get_yticklabels())
        axes.invert_yaxis()
        axes.set_xlim(0, None)
        axes.xaxis.set_major_formatter(matplotlib("ticker").PercentFormatter(1.0))
        axes.spines[["top", "right"]].set_visible(False)
        return finish_figure(axes, self.title, self.notes)

    def save(self, path: str | Path) -> None:
        """Write a file; see `Picture`."""
        save_figure(self, path)

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Bars({self.title!r}, {len(self.labels)} bars, {self.standing})"
