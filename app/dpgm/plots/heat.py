"""Heat maps and their colours."""

from __future__ import annotations

import math
from typing import Any

from attrs import frozen

from dpgm.plots.canvas import LINE, Note, cut, label, number, paint, percent, width_of
from dpgm.plots.picture import Drawing, disable_math, finish_figure, finite, matplotlib, new_axes, specification
from dpgm_core._util.html import Html, tag
from dpgm_core.errors import printable

__all__ = ["Cell", "Heat", "SHARE", "contrast", "ink", "sequential"]


# --- Colours ---

#: Lightness, chroma and hue (degrees) of OKLCH at 0 and at 1: from a pale yellow through green to a dark blue.
_PALE, _DARK = (0.965, 0.045, 108.0), (0.33, 0.115, 272.0)


def sequential(share: float) -> str:
    """The colour of a number from 0, pale, to 1, dark, as `#rrggbb`; of what is outside that of the nearer end.

    >>> sequential(0.0), sequential(1.0)
    ('#f6f6d4', '#232d6f')
    """
    at = min(max(share, 0.0), 1.0)
    lightness, chroma, hue = (pale + at * (dark - pale) for pale, dark in zip(_PALE, _DARK, strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in _srgb(lightness, chroma, hue))


def ink(paper: str) -> str:
    """Black or white, whichever is read better on a colour.

    >>> ink(sequential(0.0)), ink(sequential(1.0))
    ('#000000', '#ffffff')
    """
    return max("#000000", "#ffffff", key=lambda one: contrast(one, paper))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21; texts need 4.5, lines and bars 3.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _srgb(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """OKLCH as sRGB, cut to 0 to 1. Source: Ottosson (2020), A perceptual color space for image processing."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    red, green, blue = (
        min(max(12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055, 0.0), 1.0) for part in linear
    )
    return red, green, blue


# --- Pictures ---

#: The unit of probabilities, which are written as percentages.
SHARE = "share"
#: Pixels: the room of row labels, and of column labels above; the width that cells share.
_LEFT, _TOP, _CELLS, _RIGHT = 118.0, 84.0, 290.0, 118.0
_LEGEND = 16.0
#: The smallest letters.
_MIN_FONT_SIZE = 7.0


@frozen(kw_only=True)
class Cell:
    """One cell. row, column: its place, from 0. value: NaN where nothing is known. shown: texts to stand in it.

    said: the cell in words, with interval and standing. outlined: whether it is marked.
    """

    row: int
    column: int
    value: float
    said: str
    shown: tuple[str, ...] = ()
    outlined: bool = False


@frozen(kw_only=True)
class Heat(Drawing):
    """Cells by rows and columns. paired: rows and columns are the same attributes, and cells lie below the diagonal.

    top: the number that the darkest colour stands for. unit: what numbers are. standing: of all cells where that is
    one, else in words. notes: lines under the picture, and whether they warn.
    """

    title: str
    standing: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    top: float
    unit: str
    row_title: str = ""
    column_title: str = ""
    paired: bool = False
    notes: tuple[Note, ...] = ()

    def _said(self) -> list[str]:
        known = sorted((one for one in self.cells if not math.isnan(one.value)), key=lambda one: -one.value)
        words = "; ".join(one.said for one in known[:10])
        more = f"The largest of {len(self.cells)}: " if len(self.cells) > 10 else ""
        return [f"{more}{words}."]

    def colour(self, value: float) -> str:
        """Of a number; of one that is unknown none."""
        return "none" if math.isnan(value) else sequential(value / self.top if self.top > 0 else 0.0)

    def _content(self) -> tuple[list[Html], float, float]:
        size = self._size()
        turned = max((width_of(name, self._font(size)) for name in self.columns), default=0.0)
        left, top = (8.0, 0.0) if self.paired else (_LEFT, min(turned + 8, _TOP) + 22)
        width = left + size * len(self.columns) + (_RIGHT if self.paired else 14.0)
        width = max(width, 300.0)
        words = self._paired_labels(left, top, size) if self.paired else self._labels(left, top, size)
        cells = [self._cell(one, left, top, size) for one in self.cells]
        height = top + size * len(self.rows) + 10
        legend = self._legend(8.0, height, width)
        return [*words, *cells, *legend], width, height + _LEGEND

    def _size(self) -> float:
        room = _CELLS * (1 if len(self.columns) <= 12 else 1.6 if len(self.columns) <= 40 else 2.0)
        return min(max(room / max(len(self.columns), 1), 9.0), 62.0)

    def _font(self, size: float) -> float:
        return min(12.0, max(size * 0.8, 8.0))

    def _cell(self, one: Cell, left: float, top: float, size: float) -> Html:
        x, y, colour = left + size * one.column, top + size * one.row, self.colour(one.value)
        look: dict[str, object] = {"fill": colour}
        inset = 0.5
        if one.outlined:
            inset = 1.25
            look |= {"stroke": "currentColor", "stroke_width": 1.5}
        elif math.isnan(one.value):
            look |= {"stroke_dasharray": 2, **paint(LINE, "stroke"), "fill": "none"}
        side = number(size - 2 * inset)
        parts = [
            tag("title", one.said),
            tag("rect", x=number(x + inset), y=number(y + inset), width=side, height=side, **look),
        ]
        parts += self._texts(one, x + size / 2, y + size / 2, size, colour)
        return tag("g", *parts)

    def _texts(self, one: Cell, x: float, y: float, size: float, colour: str) -> list[Html]:
        """What stands in a cell: as many of its texts as can be read there, the first larger than the others."""
        large = min(12.0, size / 4.2)
        texts = one.shown if 0.8 * large >= _MIN_FONT_SIZE else one.shown[:1] if large >= _MIN_FONT_SIZE else ()
        parts = []
        for at, text in enumerate(texts):
            font = large if at == 0 else 0.8 * large
            place = y + large * (0.36 + 1.15 * (at - (len(texts) - 1) / 2))
            fill = "currentColor" if colour == "none" else ink(colour)
            parts.append(label(text, x, place, size - 2, size=font, text_anchor="middle", fill=fill))
        return parts

    def _labels(self, left: float, top: float, size: float) -> list[Html]:
        font = self._font(size)
        labels = [
            label(self.column_title, left, 14, size * len(self.columns), size=12, font_style="italic"),
            label(self.row_title, left - 8, top - 6, left - 12, size=12, font_style="italic", text_anchor="end"),
        ]
        for at, name in enumerate(self.rows):
            labels.append(label(name, left - 6, top + size * (at + 0.5) + 4, left - 12, size=font, text_anchor="end"))
        for at, name in enumerate(self.columns):
            x = number(left + size * (at + 0.5) + 0.35 * font)
            turned = f"translate({x} {number(top - 6)}) rotate(-90)"
            labels.append(tag("g", label(name, 0, 0, _TOP - 8, size=font), transform=turned))
        return labels

    def _paired_labels(self, left: float, top: float, size: float) -> list[Html]:
        """On the diagonal: a name stands at the end of its row and on top of its column."""
        font = self._font(size)
        width = left + size * len(self.columns) + _RIGHT - 6
        labels = []
        for at, name in enumerate(self.rows):
            x = left + size * at + 4
            labels.append(label(name, x, top + size * at + size - max(3.0, (size - font) / 2), width - x, size=font))
        return labels

    def _legend(self, x: float, y: float, width: float) -> list[Html]:
        """The scale: ten steps of colour, and the numbers at its ends."""
        steps = [
            tag("rect", x=number(x + 12 * at), y=number(y), width=12, height=10, fill=sequential(at / 9))
            for at in range(10)
        ]
        words = f"0 to {percent(self.top)}" if self.unit == SHARE else f"0 to {self.top:.3g} {self.unit}"
        return [*steps, label(words, x + 128, y + 9, width - x - 132, size=11)]

    def vega(self) -> dict[str, Any]:
        """A Vega-Lite specification with the values in it."""
        rows, columns = [printable(one) for one in self.rows], [printable(one) for one in self.columns]
        values = [
            {
                "row": rows[one.row],
                "column": columns[one.column],
                "value": finite(one.value),
                "said": printable(one.said),
            }
            for one in self.cells
        ]
        scale = {"domain": [0, self.top or 1.0], "range": [sequential(at / 9) for at in range(10)]}
        encoding = {
            "x": {"field": "column", "type": "nominal", "sort": columns, "title": printable(self.column_title) or None},
            "y": {"field": "row", "type": "nominal", "sort": rows, "title": printable(self.row_title) or None},
            "color": {"field": "value", "type": "quantitative", "title": self.unit, "scale": scale},
            "tooltip": {"field": "said", "type": "nominal"},
        }
        return specification(self.title, self.notes, values, mark="rect", encoding=encoding)

    def draw(self, axes: Any = None) -> Any:
        """Draw with matplotlib; see `Picture`."""
        axes = new_axes(axes, 1.8 + 0.32 * len(self.columns), 1.8 + 0.32 * len(self.rows))
        table = [[math.nan] * len(self.columns) for _ in self.rows]
        for one in self.cells:
            table[one.row][one.column] = one.value
        colours = matplotlib("colors").LinearSegmentedColormap.from_list(
            "dpgm", [sequential(at / 32) for at in range(33)]
        )
        image = axes.imshow(table, cmap=colours, vmin=0, vmax=self.top or 1.0)
        axes.figure.colorbar(image, ax=axes, label=self.unit)
        for one in self.cells:
            if one.outlined:
                place = (one.column - 0.47, one.row - 0.47)
                axes.add_patch(matplotlib("patches").Rectangle(place, 0.94, 0.94, fill=False, linewidth=1.0))
            if one.shown and len(self.cells) <= 64:
                words = axes.text(one.column, one.row, "\n".join(one.shown), ha="center", va="center", fontsize=6)
                words.set_color("black" if math.isnan(one.value) else ink(self.colour(one.value)))
        axes.set_xticks(range(len(self.columns)), [cut(one, 8, 100) for one in self.columns], rotation=90, fontsize=8)
        axes.set_yticks(range(len(self.rows)), [cut(one, 8, 100) for one in self.rows], fontsize=8)
        axes.set_ylabel(cut(self.row_title, 10, 220))
        disable_math([*axes.get_xticklabels(), *axes.get_yticklabels(), axes.yaxis.label])
        return finish_figure(axes, self.title, self.notes, below=self.column_title)

    def __repr__(self) -> str:
        return f"Heat({self.title!r}, {len(self.rows)} x {len(self.columns)}, {self.standing})"
