"""Texts as shown to people. Names and labels come from files, which may be hostile."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

__all__ = ["brief", "clipped", "listed", "printable", "spanned", "thousands"]

#: What the `repr` of a value may take: lines, and characters of each.
_LINES, _WIDTH = 3, 120


def printable(text: object) -> str:
    """One line of a text: what a terminal would obey, or nobody would see, is spelled out as `repr` spells it.

    That is control characters and escapes, line breaks, marks that reverse or hide text, blanks that are not the
    blank, and halves of characters. All else stays, so what was spelled out once does not change again. Letters that
    only look alike are not told apart.

    >>> print(printable("old\\nprivate: yes\\x1b[2J \\u202e ü"))
    old\\nprivate: yes\\x1b[2J \\u202e ü
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in shown
    )


def clipped(text: object, most: int = 40) -> str:
    """A text of any length as one line of at most `most` characters.

    >>> clipped("x" * 100, 8)
    'xxxxx...'
    """
    shown = printable(str(text)[: most + 1])
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def listed(texts: Sequence[object], most: int = 5) -> str:
    """The first of many texts on one line, and how many more there are.

    >>> listed(["a", "b", "c"], most=2), listed([])
    ('a, b, ... 1 more', 'none')
    """
    more = [f"... {len(texts) - most:,} more"] if len(texts) > most else []
    return ", ".join([*map(clipped, texts[:most]), *more]) or "none"


def thousands(number: int) -> str:
    """A whole number for people, however large: the cells of a table grow by its attributes.

    >>> thousands(12_345), thousands(10**6000)
    ('12,345', '10^6000')
    """
    return f"{number:,}" if abs(number) < 10**15 else f"10^{math.floor(math.log10(abs(number)))}"


def spanned(numbers: Sequence[float]) -> str:
    """From the least of some numbers to the largest; one where they are alike to four digits.

    >>> spanned([2.0, 2.5]), spanned([2.0, 2.0])
    ('2 to 2.5', '2')
    """
    least, most = (f"{number:.4g}" for number in (min(numbers), max(numbers)))
    return least if least == most else f"{least} to {most}"


def brief(kind: str, *facts: str) -> str:
    """The `repr` of a value of any size: what it is and its facts, at most three lines of 120 characters.

    >>> brief("Model", "3 attributes", "private")
    'Model(3 attributes, private)'
    """
    whole = f"{kind}({', '.join(map(printable, facts))})"
    lines = textwrap.wrap(
        whole, _WIDTH, max_lines=_LINES, placeholder=" ...)", subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(lines)
