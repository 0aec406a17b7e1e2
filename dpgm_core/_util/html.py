"""HTML and SVG from values; all texts are escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice
from numbers import Real

from dpgm_core.errors import clipped, printable, thousands

__all__ = ["Html", "card", "first", "number", "table", "tag", "text"]

#: Elements that have neither content nor an end.
_EMPTY = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})
#: Rows and characters of a cell that a notebook shows.
_MAX_ROWS, _MAX_LETTERS = 20, 80
#: White on red, whatever the page's own colours are.
_STAMP = "background:#b00020;color:#fff;padding:.2em .5em;display:inline-block;margin:.2em 0"


class Html(str):
    """Markup that is safe to stand in a page: made by `tag` and `text`, or written in our own code."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as a text of a page; what is markup already stays as it is.

    >>> text("<script>alert('x')</script>")
    '&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;'
    """
    return value if isinstance(value, Html) else Html(html.escape(printable(value)))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element of HTML or SVG. children: markup, or anything else as a text.

    attributes: `class_` is class, other underlines are hyphens; True stands alone, None and False are left out. Names
    of elements and attributes are our own words, never a user's.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        parts.append(word if value is True else f'{word}="{text(value)}"')
    opened = f"<{' '.join(parts)}>"
    return Html(opened if name in _EMPTY else f"{opened}{''.join(map(text, children))}</{name}>")


def table(header: Sequence[object], rows: Sequence[Sequence[object]], *, caption: object = None) -> Html:
    """Rows under a header; numbers to the right.

    >>> table(["label"], [["<b>"]])
    '<table><thead><tr><th scope="col">label</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def cell(value: object) -> Html:
        if isinstance(value, Real) and not isinstance(value, bool):
            return tag("td", number(value), style="text-align:right")
        return tag("td", value)

    head = tag("thead", tag("tr", *(tag("th", one, scope="col") for one in header)))
    body = tag("tbody", *(tag("tr", *map(cell, row)) for row in rows))
    return tag("table", *([] if caption is None else [tag("caption", caption)]), head, body)


def number(value: Real) -> str:
    """A number for people: whole ones and large ones in full, others to four digits.

    >>> number(20013), number(20013.7), number(0.123456)
    ('20,013', '20,014', '0.1235')
    """
    if isinstance(value, int):
        return thousands(value)
    return f"{float(value):,.0f}" if 1000 <= abs(float(value)) < 10**15 else f"{float(value):.4g}"


def first(header: Sequence[object], rows: Iterable[Sequence[object]], count: int) -> Html:
    """The first 20 of `count` rows under a header, long texts cut, and how many more there are; nothing without any.

    >>> first(["clique"], ([f"c{n}"] for n in range(30)), 30).endswith("</table><p>... 10 more</p>")
    True
    """
    shown = [
        [clipped(cell, _MAX_LETTERS) if type(cell) is str else cell for cell in row] for row in islice(rows, _MAX_ROWS)
    ]
    more = tag("p", f"... {count - len(shown):,} more") if count > len(shown) else Html()
    return Html(table(header, shown) + more) if shown else more


def card(kind: str, facts: Iterable[tuple[str, object]], *more: Html, flaws: Iterable[str] = ()) -> Html:
    """What a notebook shows of a value: its kind, stamps, facts, and tables below them.

    facts: a word and what is so named; left out where that is None or "". flaws: why what is shown is less private than
    it says, each a red stamp.
    """
    stamps = [tag("p", tag("strong", flaw), role="note", style=_STAMP) for flaw in flaws]
    rows = [
        tag("tr", tag("th", word, scope="row", style="text-align:left"), tag("td", fact, style="text-align:left"))
        for word, fact in facts
        if fact is not None and fact != ""
    ]
    known = [tag("table", tag("tbody", *rows))] if rows else []
    return tag("div", tag("p", tag("strong", kind)), *stamps, *known, *more, class_="dpgm")
