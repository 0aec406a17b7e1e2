"""Networks: boxes with names in them and lines between them; attributes, or clusters of a junction tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from dpgm_core.markup import Html, tag
from dpgm_core.plots.canvas import BOX, BOX_INK, LINE, Note, cut, draw_frame, label, number, paint
from dpgm_core.plots.figure import disable_math, finish_figure, matplotlib, new_axes, save_figure
from dpgm_core.plots.vega import specification
from dpgm_core.printable import printable

__all__ = ["FONT", "Line", "Network", "Node"]

#: Pixels of the texts in boxes.
FONT = 12.0


@frozen(kw_only=True)
class Node:
    """A box. lines: the texts in it. x, y, width, height: its centre and size, pixels. dashed: it is set apart."""

    lines: tuple[str, ...]
    said: str
    x: float
    y: float
    width: float
    height: float
    dashed: bool = False


@frozen(kw_only=True)
class Line:
    """A line between two nodes, by number. weight: 0 to 1, its width."""

    first: int
    second: int
    weight: float
    said: str
    dashed: bool = False


@frozen(kw_only=True)
class Network:
    """Nodes and lines. width, height: of it all, pixels. standing: of all lines where that is one, else in words."""

    title: str
    standing: str
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    width: float
    height: float
    notes: tuple[Note, ...] = ()

    def described(self) -> str:
        """The picture in words, for those who do not see it."""
        strong = sorted(self.lines, key=lambda one: -one.weight)[:10]
        words = [f"{len(self.nodes)} boxes, {len(self.lines)} lines."]
        words += [f"{one.said}." for one in strong]
        return " ".join([*words, *(text for text, _ in self.notes)])

    def svg(self, *, bare: bool = False) -> Html:
        """One `<svg>` element; see `Picture`."""
        width = max(self.width, 300.0)
        lines = tag("g", *map(self._line, self.lines), **paint(LINE, "stroke"))
        nodes = tag("g", *map(self._node, self.nodes), text_anchor="middle", **paint(BOX_INK))
        return draw_frame(
            [lines, nodes],
            width=width,
            height=self.height,
            title=self.title,
            description=self.described(),
            notes=self.notes,
            bare=bare,
        )

    def _line(self, one: Line) -> Html:
        first, second = self.nodes[one.first], self.nodes[one.second]
        return tag(
            "line",
            tag("title", one.said),
            x1=number(first.x),
            y1=number(first.y),
            x2=number(second.x),
            y2=number(second.y),
            stroke_width=number(1 + 7 * one.weight),
            stroke_dasharray="5 4" if one.dashed else None,
        )

    def _node(self, one: Node) -> Html:
        look = {"stroke": "currentColor", "stroke_dasharray": "3 2"} if one.dashed else {}
        box = tag(
            "rect",
            x=number(one.x - one.width / 2),
            y=number(one.y - one.height / 2),
            width=number(one.width),
            height=number(one.height),
            rx=5,
            **paint(BOX),
            **look,
        )
        top = one.y - 0.6 * FONT * (len(one.lines) - 1) + 0.35 * FONT
        words = [
            label(text, one.x, top + 1.2 * FONT * at, one.width - 6, size=FONT) for at, text in enumerate(one.lines)
        ]
        return tag("g", tag("title", one.said), box, *words)

    def vega(self) -> dict[str, Any]:
        """A Vega-Lite specification with the values in it."""
        values: list[dict[str, Any]] = [
            {"kind": "line", "said": printable(one.said), "weight": one.weight}
            | {"x": self.nodes[one.first].x, "y": self.nodes[one.first].y}
            | {"x2": self.nodes[one.second].x, "y2": self.nodes[one.second].y}
            for one in self.lines
        ]
        values += [
            {
                "kind": "node",
                "said": printable(one.said),
                "label": printable(", ".join(one.lines)),
                "x": one.x,
                "y": one.y,
            }
            for one in self.nodes
        ]
        x = {"field": "x", "type": "quantitative", "axis": None, "scale": {"domain": [0, self.width]}}
        y = {"field": "y", "type": "quantitative", "axis": None, "scale": {"domain": [self.height, 0]}}
        width = {
            "field": "weight",
            "type": "quantitative",
            "legend": None,
            "scale": {"domain": [0, 1], "range": [1, 8]},
        }
        said = {"field": "said", "type": "nominal"}
        layers = [
            {
                "transform": [{"filter": "datum.kind == 'line'"}],
                "mark": {"type": "rule", "color": LINE[1]},
                "encoding": {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "strokeWidth": width, "tooltip": said},
            },
            {
                "transform": [{"filter": "datum.kind == 'node'"}],
                "mark": {"type": "point", "filled": True, "size": 300, "color": BOX[1], "opacity": 1},
                "encoding": {"tooltip": said},
            },
            {
                "transform": [{"filter": "datum.kind == 'node'"}],
                "mark": {"type": "text"},
                "encoding": {"text": {"field": "label", "type": "nominal"}},
            },
        ]
        encoding = {"x": x, "y": y}
        size = {"width": round(self.width), "height": round(self.height)}
        return specification(self.title, self.notes, values, encoding=encoding, layer=layers, **size)

    def draw(self, axes: Any = None) -> Any:
        """Draw with matplotlib; see `Picture`."""
        axes = new_axes(axes, max(self.width / 80, 4), max(self.height / 80, 3))
        for line in self.lines:
            ends = self.nodes[line.first], self.nodes[line.second]
            style = "--" if line.dashed else "-"
            across, down = [one.x for one in ends], [one.y for one in ends]
            axes.plot(across, down, color=LINE[1], linewidth=0.8 + 4 * line.weight, linestyle=style, zorder=1)
        for one in self.nodes:
            place = one.x - one.width / 2, one.y - one.height / 2
            look = {"edgecolor": "black" if one.dashed else BOX[1], "linestyle": "--" if one.dashed else "-"}
            axes.add_patch(
                matplotlib("patches").Rectangle(place, one.width, one.height, facecolor=BOX[1], zorder=2, **look)
            )
            words = "\n".join(cut(text, FONT, one.width - 6) for text in one.lines)
            text = axes.text(one.x, one.y, words, ha="center", va="center", color=BOX_INK[1], fontsize=7, zorder=3)
            disable_math([text])
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        return finish_figure(axes, self.title, self.notes)

    def save(self, path: str | Path) -> None:
        """Write a file; see `Picture`."""
        save_figure(self, path)

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Network({self.title!r}, {len(self.nodes)} nodes, {len(self.lines)} lines, {self.standing})"
