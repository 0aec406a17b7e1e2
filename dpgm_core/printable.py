"""How a text from anywhere is shown to people: names and labels come from files, and a file may be hostile."""

from __future__ import annotations

__all__ = ["printable"]


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
