"""Values in a query, such as 37, a date or a label: their places on the axis, or their codes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from datetime import date, time

import numpy as np

from dpgm_core.columns.matching import Matching
from dpgm_core.columns.values import Values

__all__ = ["find_alike", "place_of"]


def find_alike(labels: Sequence[str], matching: Matching, text: str) -> int | None:
    """The code of the one label that a text is by the rules of its column; None if there is none.

    >>> find_alike(["w", "m"], Matching(case=False, blanks="strip"), " M "), find_alike(["w", "m"], Matching(), "M")
    (1, None)
    """
    form = matching.form(text.encode("utf-8", "surrogatepass"))
    codes = [code for code, label in enumerate(labels) if matching.form(label.encode("utf-8", "surrogatepass")) == form]
    return codes[0] if len(codes) == 1 else None


def place_of(values: Values, matching: Matching, value: object) -> float | None:
    """Where a value stands: a text in the column's format, a float, a date or a time; None where it stands nowhere.

    values: of a kind with an axis, or "text" for plain bins of numbers. Whole numbers are not taken: where users name
    labels they are codes.

    >>> place_of(Values(kind="date"), Matching(), date(1970, 2, 1)), place_of(Values(), Matching(decimal=","), "1,5")
    (31.0, 1.5)
    >>> place_of(Values(), Matching(decimal=","), "1.5")
    1.5
    """
    place: float | None = None
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        spelled = raw if values.is_temporal else matching.numeral(raw)
        if spelled is None and b"," not in raw:  # a number with a point, whatever sign the column has
            spelled = raw
        place = None if spelled is None else values.number(spelled)
    elif isinstance(value, (float, np.floating)) and not values.is_temporal:
        place = float(value) if values.kind != "integer" or float(value).is_integer() else None
    elif isinstance(value, (date, time)) and values.is_temporal:
        with contextlib.suppress(ValueError, OverflowError):
            place = values.place(value) / values.ticks
    return None if place is None or math.isnan(place) else place
