"""HTML and SVG from values: the one place where texts become markup, so a label can never be more than a text."""

from __future__ import annotations

import html
from collections.abc import Sequence

from dpgm_core.printable import printable

__all__ = ["Html", "table", "tag", "text"]

#: Elements that have neither content nor an end.
_EMPTY = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})


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

    >>> tag("td", "a < b", class_="number", data_of="it's", hidden=False)
    '<td class="number" data-of="it&#x27;s">a &lt; b</td>'
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
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return tag("td", value, style="text-align:right" if number else None)

    head = tag("thead", tag("tr", *(tag("th", one, scope="col") for one in header)))
    body = tag("tbody", *(tag("tr", *map(cell, row)) for row in rows))
    return tag("table", *([] if caption is None else [tag("caption", caption)]), head, body)
