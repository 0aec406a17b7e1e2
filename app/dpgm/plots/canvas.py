"""SVG: a frame with a title, a description and notes, and texts that are cut or wrapped to the room they have.

Nothing measures a font here, as none comes with the picture: widths are taken from above, for the widest font in use.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from dpgm_core._util.html import Html, tag
from dpgm_core.errors import printable

__all__ = [
    "BAR",
    "BOX",
    "BOX_INK",
    "LINE",
    "Note",
    "WARNING",
    "cut",
    "draw_frame",
    "label",
    "number",
    "paint",
    "percent",
    "width_of",
    "wrap_text",
]

#: CSS variable and default of what is drawn; the defaults stand out on white as on black.
BAR, LINE, WARNING = ("bar", "#4a86bd"), ("line", "#7d8590"), ("warning", "#d03c3c")
#: Of boxes with text in them: both are given, so that they fit on any page.
BOX, BOX_INK = ("box", "#dce8f4"), ("box-ink", "#12263a")

#: A line under a picture, and whether it is a warning.
Note = tuple[str, bool]

_TITLE, _SMALL, _MARGIN, _PAGE = 14.0, 11.0, 8.0, 720.0
_NARROW, _WIDE = frozenset("iIjlftr.,:;|!'()[]{}/\\ "), frozenset("mwMW@%—")


def paint(colour: tuple[str, str], what: str = "fill") -> dict[str, str]:
    """Attributes for a colour: the variable for pages, the default also for programs that know no variables.

    >>> paint(("bar", "#123456"))
    {'fill': '#123456', 'style': 'fill:var(--dpgm-bar,#123456)'}
    """
    name, default = colour
    return {what: default, "style": f"{what}:var(--dpgm-{name},{default})"}


def width_of(text: str, size: float) -> float:
    """About the most that a text takes, in the unit of `size`, the height of its letters' line.

    >>> width_of("ill", 10) < width_of("sum", 10) < width_of("WWW", 10)
    True
    """
    return size * sum(map(_letter, text))


def _letter(letter: str) -> float:
    if letter in _NARROW:
        return 0.4
    if letter.isascii():
        return 1.0 if letter in _WIDE else 0.74 if letter.isupper() else 0.65
    if unicodedata.combining(letter):
        return 0.0
    return 1.2 if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF else 0.8


def cut(text: object, size: float, room: float) -> str:
    """A text on one line that fits, with an ellipsis for what is left out.

    >>> cut("a long story", 10, 40), cut("short", 10, 40)
    ('a lon…', 'short')
    """
    shown = printable(text)
    if width_of(shown, size) <= room:
        return shown
    taken, left = 0, room - 0.8 * size
    for letter in shown:
        left -= width_of(letter, size)
        if left < 0:
            break
        taken += 1
    return shown[:taken].rstrip() + "…"


def wrap_text(text: object, size: float, room: float) -> list[str]:
    """A text as lines that fit; words that do not are cut.

    >>> wrap_text("as long as it takes", 10, 60)
    ['as long as', 'it takes']
    """
    lines: list[str] = []
    for word in printable(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(cut(word, size, room))
    return lines


def label(text: object, x: float, y: float, room: float, *, size: float = 12.0, **attributes: object) -> Html:
    """A text at a place, cut to its room; the whole of it in a title where it was cut."""
    shown = cut(text, size, room)
    whole = [] if shown == printable(text) else [tag("title", text)]
    return tag("text", shown, *whole, x=number(x), y=number(y), font_size=number(size), **attributes)


def number(value: float) -> str:
    """A coordinate, with two digits at most.

    >>> number(3.0), number(1 / 3)
    ('3', '0.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"


def percent(share: float) -> str:
    """A share as a text; small ones keep a digit that says something.

    >>> percent(0.1234), percent(0.00012), percent(0.0)
    ('12.3 %', '0.012 %', '0 %')
    """
    hundredths = 100 * share
    if hundredths >= 1 or hundredths == 0:
        return f"{hundredths:.1f} %" if hundredths else "0 %"
    return f"{hundredths:.2g} %" if hundredths >= 1e-4 else "< 0.0001 %"


def draw_frame(
    content: Sequence[Html],
    *,
    width: float,
    height: float,
    title: str,
    description: str,
    notes: Sequence[Note],
    bare: bool = False,
) -> Html:
    """The whole `<svg>`: a title, the content below it, which is (width, height) large, and notes under it.

    bare: without a title and notes to be seen, for a page that has its own.
    """
    room = width - 2 * _MARGIN
    # What is wider than a page is drawn smaller on it.
    large, small = (size * max(1.0, width / _PAGE) for size in (_TITLE, _SMALL))
    y = _MARGIN + large
    parts = []
    for line in () if bare else wrap_text(title, large, room):
        parts.append(tag("text", line, x=number(_MARGIN), y=number(y), font_size=number(large), font_weight="bold"))
        y += 1.3 * large
    parts.append(tag("g", *content, transform=f"translate(0 {number(y - 0.8 * large)})"))
    y += height + 0.4 * small
    for text, warns in () if bare else notes:
        lines = wrap_text(text, small, 0.95 * room if warns else room)
        look = {**paint(WARNING), "font_weight": "bold"} if warns else {"fill_opacity": 0.85}
        for line in lines:
            parts.append(tag("text", line, x=number(_MARGIN), y=number(y), font_size=number(small), **look))
            y += 1.35 * small
    tall = y - small + _MARGIN
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {number(width)} {number(tall)}",
        width=number(width),
        height=number(tall),
        fill="currentColor",
        style="max-width:100%;height:auto;font-family:system-ui,sans-serif",
    )
