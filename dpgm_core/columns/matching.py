"""When two texts are the same value: the rules by which raw texts match labels, declared with the domain."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

__all__ = ["EXACT", "Matching"]


@frozen(kw_only=True)
class Matching:
    """Rules by which a raw text is a label: both are brought into one form and compared byte for byte.

    case: whether upper and lower case differ. blanks: "keep", or "strip" those at both ends. numbers: numbers match by
    value, so that `1.0`, `01` and `1` are one. thousands: the sign that groups digits, such as ",", dropped from
    numbers. decimal: the sign before their fraction.

    >>> Matching(case=False, blanks="strip").form(b" Yes ")
    b'yes'
    """

    case: bool = True
    blanks: Literal["keep", "strip"] = "keep"
    numbers: bool = False
    thousands: str | None = None
    decimal: str = "."

    def form(self, raw: bytes) -> bytes:
        """The form in which a raw text is compared. Never raises."""
        if self.blanks == "strip":
            raw = raw.strip()
        return (
            raw if self.case else raw.decode("utf-8", "surrogateescape").casefold().encode("utf-8", "surrogateescape")
        )


#: Byte for byte.
EXACT = Matching()
