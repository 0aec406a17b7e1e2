"""Graphs and their layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from dpgm.plots.canvas import BOX, BOX_INK, LINE, Note, cut, label, number, paint
from dpgm.plots.picture import Drawing, disable_math, finish_figure, matplotlib, new_axes, specification
from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.html import Html, tag
from dpgm_core.errors import printable

__all__ = ["FONT", "Line", "Network", "Node", "place_nodes"]


# --- Pictures ---

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
class Network(Drawing):
    """Nodes and lines. width, height: of it all, pixels. standing: of all lines where that is one, else in words."""

    title: str
    standing: str
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    width: float
    height: float
    notes: tuple[Note, ...] = ()

    def _said(self) -> list[str]:
        strong = sorted(self.lines, key=lambda one: -one.weight)[:10]
        return [f"{len(self.nodes)} boxes, {len(self.lines)} lines.", *(f"{one.said}." for one in strong)]

    def _content(self) -> tuple[list[Html], float, float]:
        lines = tag("g", *map(self._line, self.lines), **paint(LINE, "stroke"))
        nodes = tag("g", *map(self._node, self.nodes), text_anchor="middle", **paint(BOX_INK))
        return [lines, nodes], max(self.width, 300.0), self.height

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

    def __repr__(self) -> str:
        return f"Network({self.title!r}, {len(self.nodes)} nodes, {len(self.lines)} lines, {self.standing})"


# --- Layout ---
#
# Each component is laid out by stress majorisation, which makes distances on the page follow those in the graph
# (Gansner, Koren and North 2004); then boxes that overlap are pushed apart, and components are packed in rows.

#: Pixels between boxes, at least and, along an edge, as it should be.
_GAP, _EDGE = 14.0, 40.0
#: Of distances in the graph: far ones are drawn nearer, or a long chain would leave most of the page empty.
_POWER = 0.75
_ROUNDS, _PUSHES = 150, 200
#: Width over height of the whole.
_ASPECT = 1.4


def place_nodes(boxes: FloatArray, edges: Sequence[tuple[int, int]]) -> tuple[FloatArray, float, float]:
    """Return the centres of boxes, (n, 2), and the width and height of the whole, pixels.

    boxes: (n, 2), width and height of each. edges: pairs of connected boxes.

    >>> centres, width, height = place_nodes(np.array([[40.0, 20.0], [40.0, 20.0]]), [(0, 1)])
    >>> bool(np.abs(centres[0] - centres[1]).max() > 40), width > 80
    (True, True)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, shortest_path

    count = len(boxes)
    one, two = np.array(edges, dtype=int).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, two)), shape=(count, count)).tocsr()
    _, part = connected_components(graph, directed=False)
    groups = [np.flatnonzero(part == number) for number in range(part.max() + 1)]
    pieces = []
    for group in sorted(groups, key=lambda one: (-len(one), one[0])):
        # dense: scipy 1.12 takes no sparse graph whose indices have 64 bits
        steps = shortest_path(graph[group][:, group].toarray(), directed=False, unweighted=True)
        # Pixels of a step in the graph: wide boxes need more room sideways.
        unit = boxes[group].mean(axis=0) * 0.75 + _EDGE * np.array([1.0, 0.8])
        pieces.append((group, _push_apart(_majorise_stress(steps**_POWER) * unit, boxes[group])))
    return _pack(pieces, boxes)


def _majorise_stress(steps: FloatArray) -> FloatArray:
    """Return positions, (n, 2), whose distances are near `steps`, (n, n), weighted by 1 / steps^2."""
    count = len(steps)
    if count == 1:
        return np.zeros((1, 2))
    places = _classical_scaling(steps)
    weights = np.divide(1.0, steps**2, out=np.zeros(steps.shape), where=steps > 0)
    # V^+ but for a shift of all places: V + 1/n has the constants as one more direction.
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1 / count)
    for _ in range(_ROUNDS):
        distances = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
        # x <- V^+ B(x) x, where B has -w d / |x_i - x_j| off its diagonal.
        ratio = -np.divide(weights * steps, distances, out=np.zeros(steps.shape), where=distances > 1e-9)
        np.fill_diagonal(ratio, ratio.diagonal() - ratio.sum(axis=1))
        before, places = places, inverse @ (ratio @ places)
        if np.abs(places - before).max() < 1e-3:
            break
    return places


def _classical_scaling(steps: FloatArray) -> FloatArray:
    """Return the two main axes of the distances, slightly perturbed so that they are unique."""
    count = len(steps)
    uneven = 0.05 * np.sin(np.outer(np.arange(1.0, count + 1), np.arange(1.0, count + 1)) * math.pi * math.sqrt(5))
    squares = (steps + (uneven + uneven.T) * (steps > 0)) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    axes = vectors[:, -1:-3:-1]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * np.sqrt(np.maximum(values[-1:-3:-1], 1e-2)))


def _push_apart(places: FloatArray, boxes: FloatArray) -> FloatArray:
    """Push boxes that overlap apart, along the axis where less is needed; what is left over is spread as a whole."""
    needed = (boxes[:, None] + boxes[None]) / 2 + _GAP
    for _ in range(_PUSHES):
        overlap = _overlaps(places, needed)
        if not overlap.any():
            return places
        away = places[:, None] - places[None]
        lack = needed - np.abs(away)
        narrow = lack.argmin(axis=2)[..., None] == np.arange(2)
        # Two at one place go apart by their order.
        order = np.sign(np.arange(len(places))[:, None] - np.arange(len(places))[None])[..., None]
        side = np.where(away == 0, order, np.sign(away))
        push = np.where(narrow & overlap[..., None], side * lack / 2, 0.0)
        places = places + push.sum(axis=1) / np.maximum(overlap.sum(axis=1), 1)[:, None] * 1.05
    while _overlaps(places, needed - 1).any():
        places = places * 1.05
    return places


def _overlaps(places: FloatArray, needed: FloatArray) -> Array:
    """(n, n): which boxes are too near each other."""
    overlaps = np.asarray((np.abs(places[:, None] - places[None]) < needed - 1e-6).all(axis=2))
    np.fill_diagonal(overlaps, False)
    return overlaps


def _pack(pieces: Sequence[tuple[Array, FloatArray]], boxes: FloatArray) -> tuple[FloatArray, float, float]:
    """Arrange components in rows, the largest first."""
    centres = np.zeros((len(boxes), 2))
    corners = [((at - boxes[group] / 2).min(axis=0), (at + boxes[group] / 2).max(axis=0)) for group, at in pieces]
    area = sum(float(np.prod(high - low + _GAP)) for low, high in corners)
    limit = max(math.sqrt(area * _ASPECT), *(float((high - low)[0]) for low, high in corners)) + 2 * _GAP
    x = y = _GAP
    row = width = 0.0
    for (group, at), (low, high) in zip(pieces, corners, strict=True):
        wide, tall = high - low
        if x > _GAP and x + wide + _GAP > limit:
            x, y, row = _GAP, y + row + _GAP, 0.0
        centres[group] = at - low + (x, y)
        x, row = x + wide + _GAP, max(row, float(tall))
        width = max(width, float(x))
    return centres, width, y + row + _GAP
