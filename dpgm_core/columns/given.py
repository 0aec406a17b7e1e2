"""A value as a user names it in a question, such as 37 or a date: its place on the column's axis."""

from __future__ import annotations

import math
from datetime import date, datetime, time

import numpy as np

from dpgm_core.columns.values import Values

__all__ = ["place_of"]

_EPOCH = datetime(1970, 1, 1)


def place_of(values: Values, value: object) -> float | None:
    """Where a value stands: a text in the column's format, a float, a date or a time; None where it stands nowhere.

    values: of a kind with an axis. Whole numbers are not taken: where users name labels they are codes.

    >>> place_of(Values(kind="date"), date(1970, 2, 1)), place_of(Values(kind="integer"), 37.0)
    (31.0, 37.0)
    """
    place: float | None = None
    if isinstance(value, str):
        place = values.number(value)
    elif isinstance(value, (float, np.floating)) and values.kind in ("integer", "number"):
        place = float(value)
    elif isinstance(value, date) and values.kind in ("date", "datetime"):
        moment = value.replace(tzinfo=None) if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
        seconds = (moment - _EPOCH).total_seconds()
        place = math.floor(seconds / 86_400) if values.kind == "date" else seconds
    elif isinstance(value, time) and values.kind == "time":
        place = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return None if place is None or math.isnan(place) else float(place)
