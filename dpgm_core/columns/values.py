"""What the values of a column are: texts, numbers, dates. A number stands for each, on an axis that bins cut.

Whole and other numbers are themselves, dates are days since 1970-01-01, dates with a time seconds since its midnight,
times seconds since midnight; without time zone.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

__all__ = ["PLAIN", "Kind", "Values"]

Kind: TypeAlias = Literal["text", "integer", "number", "boolean", "date", "datetime", "time"]


@frozen(kw_only=True)
class Values:
    """The type of a column and how its values are written, apart from which label they fall on.

    kind: its type; sampled records have it. format: of dates and times, as `strptime` has it; None: ISO 8601. decimals:
    how many digits after the point numbers are written with; None: as many as they need. scale: how equal bins are
    spaced, "linear" or "log". shape: how numbers are spread inside a bin, public knowledge: "uniform", "log" (uniform
    on a logarithmic scale) or "lower" (all at the bin's lower edge).

    >>> Values(kind="integer").is_numeric
    True
    """

    kind: Kind = "text"
    format: str | None = None
    decimals: int | None = None
    scale: Literal["linear", "log"] = "linear"
    shape: Literal["uniform", "log", "lower"] = "uniform"

    @property
    def is_numeric(self) -> bool:
        """Whether its values stand on an axis, so that bins can cut them."""
        return self.kind not in ("text", "boolean")

    def number(self, text: str | bytes) -> float | None:
        """The place of a raw text on the axis; None for a text that is no such value. NaN stays NaN."""
        raise NotImplementedError

    def text(self, number: float) -> str:
        """How a place on the axis is written in the column's format."""
        raise NotImplementedError


#: Texts.
PLAIN = Values()
