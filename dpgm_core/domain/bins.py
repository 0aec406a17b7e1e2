"""Bins of a column: edges, and declarations of private bins and labels."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import frozen

from dpgm_core.domain.values import EXACT_WHOLE, Values
from dpgm_core.errors import DomainError

__all__ = [
    "DAY",
    "OTHER",
    "PrivateBins",
    "PrivateLabels",
    "UNITS",
    "UNIT_DAYS",
    "bin_edge",
    "bounds",
    "calendar_edges",
    "check_edges",
    "check_written",
    "equal_edges",
    "exact_share",
    "grid_cells",
    "grid_edges",
]

#: Most cells of the grid of private bins.
_MAX_GRID_CELLS = 2**16
#: Seconds: where the axis of times of day ends.
DAY = 86_400
#: Calendar bins, the coarsest first.
UNITS = ("year", "quarter", "month", "week", "day", "hour")

_MAX_BINS = 2**17  # bins that are computed


def bin_edge(name: str, edge: object, values: Values | None = None) -> float:
    """The edge as a float: a number, inf or -inf as texts, or the text of a date. DomainError otherwise."""
    if isinstance(edge, str) and edge in ("inf", "-inf"):
        return float(edge)
    if isinstance(edge, (int, float, np.integer, np.floating)) and not isinstance(edge, bool):
        with contextlib.suppress(OverflowError):
            number = float(edge)
            if isinstance(edge, (int, np.integer)) and number != edge:
                raise DomainError(
                    f"attribute {name!r}: the edge {edge} is no float64 number, so bins cannot be cut there; "
                    f"{int(number)} is one"
                )
            return number
    if values is not None and values.is_temporal:
        place = None
        if isinstance(edge, str):
            place = values.exact(edge.encode("utf-8", "surrogatepass"))
            if place is None and values.format is not None:  # ISO 8601 is understood in any case
                place = Values(kind=values.kind).exact(edge.encode("utf-8", "surrogatepass"))
        elif isinstance(edge, (date, time)):
            with contextlib.suppress(ValueError, OverflowError):
                place = values.place(edge)
        if place is not None:
            return place / values.ticks
        raise DomainError(f"attribute {name!r}: {edge!r} is no {values.kind}; write it as in {_EXAMPLES[values.kind]}")
    comma = re.fullmatch(r"([+-]?[0-9]+),([0-9]+)", edge) if isinstance(edge, str) else None
    hint = "" if comma is None else f"; write {comma[1]}.{comma[2]}"
    raise DomainError(f"attribute {name!r}: a bin edge must be a number (or inf), got {edge!r}{hint}")


_EXAMPLES = {"date": "2019-12-31", "datetime": "2019-12-31T23:59", "time": "23:59"}


def bounds(name: str, low: object, high: object, values: Values) -> tuple[float, float]:
    """The least and the largest value as places of the axis; DomainError where they are reversed or infinite.

    A date as the upper bound of dates with a time includes that day.
    """
    ends = bin_edge(name, low, values), bin_edge(name, high, values)
    if values.kind == "datetime" and _is_day(high):
        ends = ends[0], ends[1] + DAY
    if not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
        raise DomainError(f"attribute {name!r}: min and max must be finite, got {low!s:.40} and {high!s:.40}")
    if math.isinf(ends[1] - ends[0]):
        raise DomainError(f"attribute {name!r}: min and max are too far apart, {low!s:.40} and {high!s:.40}")
    if ends[0] > ends[1] or (ends[0] == ends[1] and values.kind not in ("integer", "date")):
        raise DomainError(f"attribute {name!r}: min must be below max, got {low!s:.40} and {high!s:.40}")
    if values.kind == "integer" and not (ends[0].is_integer() and ends[1].is_integer()):
        raise DomainError(f"attribute {name!r}: min and max of integers must be whole, got {low!s:.40}, {high!s:.40}")
    if values.scale == "log" and ends[0] <= 0:
        raise DomainError(f"attribute {name!r}: scale = 'log' needs min above 0, got {low!s:.40}")
    return ends


def equal_edges(name: str, low: float, high: float, count: int, values: Values) -> tuple[float, ...]:
    """Edges of `count` bins of equal width, or of equal ratio on a log scale, rounded to a part of the width:
    a 1000th, on a log scale a 100th.

    Whole numbers and days are shared out evenly. Raises DomainError where there are fewer values than bins.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise DomainError(f"attribute {name!r}: the number of bins must be a whole number of at least 1, got {count!r}")
    if count > _MAX_BINS:
        raise DomainError(f"attribute {name!r}: {count} bins are above the largest possible, {_MAX_BINS}")
    discrete = values.kind in ("integer", "date")
    if discrete and count > high - low + 1:
        raise DomainError(
            f"attribute {name!r}: there are {high - low + 1:.0f} values from min to max, too few for {count} bins"
        )
    if values.scale == "log":
        inner: Any = np.exp(np.linspace(math.log(low), math.log(high + discrete), count + 1))[1:-1]
    elif discrete:
        many = int(high) - int(low) + 1
        inner = [low + many * at // count for at in range(1, count)]
    else:
        inner = low + (high - low) * (np.arange(1, count) / count)
    places = [float(place) for place in inner]
    if discrete:
        places = _apart(places, low, high)
        last = high if high > (places[-1] if places else low) else high + 0.5
    else:
        parts = 100 if values.scale == "log" else 1000
        places, last = _rounded([low, *places, high], parts, whole=values.is_temporal)[1:-1], high
    edges = (low, *places, last)
    if not (np.diff(edges) > 0).all():
        raise DomainError(f"attribute {name!r}: float64 numbers do not tell {count} bins from min to max apart")
    return edges


def calendar_edges(name: str, low: float, high: float, unit: str, values: Values) -> tuple[float, ...]:
    """Edges at the starts of years, quarters, months, weeks (Mondays), days or hours between two dates or times."""
    if values.kind == "time" and unit == "hour":
        return (low, *(float(at) for at in range(0, DAY, 3600) if low < at < high), high)
    if values.kind not in ("date", "datetime") or (unit == "hour" and values.kind == "date"):
        raise DomainError(f"attribute {name!r}: bins = {unit!r} does not go with type = {values.kind!r}")
    step = _STEPS[unit]
    if (high - low) / UNIT_DAYS[unit] / (1 if values.kind == "date" else DAY) > _MAX_BINS:
        raise DomainError(
            f"attribute {name!r}: from min to max there are more than {_MAX_BINS:,} bins of unit {unit!r}"
        )
    per_day = 1 if values.kind == "date" else DAY
    try:
        start = values.moment(low)
        moment = datetime(start.year, start.month, start.day) if isinstance(start, date) else datetime.min
        if unit == "hour" and isinstance(start, datetime):
            moment = moment.replace(hour=start.hour)
        edges = [low]
        while (place := _place(moment := step(moment), per_day)) <= high:
            edges.append(place)
    except (ValueError, OverflowError):
        raise DomainError(f"attribute {name!r}: calendar bins need dates of the years 1 to 9998") from None
    if high > edges[-1]:
        edges.append(high)
    elif values.kind == "date" or len(edges) == 1:
        edges.append(high + 0.5)
    return tuple(edges)


def grid_edges(name: str, low: float, high: float, values: Values) -> tuple[float, ...]:
    """The public grid of private bins: one cell for each whole number or day where they are at most 65,536."""
    return equal_edges(name, low, high, grid_cells(low, high, values), values)


def grid_cells(low: float, high: float, values: Values) -> int:
    """How many cells the grid between two bounds has."""
    return int(min(high - low + 1, _MAX_GRID_CELLS)) if values.kind in ("integer", "date") else _MAX_GRID_CELLS


def check_edges(where: str, edges: tuple[float, ...], labels: int) -> None:
    """Refuse edges that do not ascend, or are too many for the labels."""
    if len(edges) < 2 or len(edges) - 1 > labels:
        raise DomainError(f"{where}: {len(edges)} edges do not fit {labels} labels")
    places = np.asarray(edges, np.float64)
    if np.isnan(places).any() or not (places[:-1] < places[1:]).all():
        raise DomainError(f"{where}: bin edges must ascend strictly, got {list(edges)!r:.200}")


def check_written(where: str, edges: Sequence[float], values: Values) -> None:
    """Refuse bins whose values are not read as what they are written as: by two digits of a year, or too many decimals.

    >>> check_written("x", [0.0, 1e4], Values(kind="number", decimals=15))
    Traceback (most recent call last):
    dpgm_core.errors.DomainError: x: float64 numbers up to 10000 have no 15 decimals; give decimals = 11 or fewer
    """
    ends = [edge for edge in edges if math.isfinite(edge)]
    if not ends:
        return
    largest = max(map(abs, ends))
    if values.digits and largest * 10.0**values.digits >= EXACT_WHOLE:
        most = max(0, math.floor(math.log10(EXACT_WHOLE / largest)))
        raise DomainError(
            f"{where}: float64 numbers up to {largest:g} have no {values.digits} decimals; give decimals = {most} or "
            "fewer"
        )
    if values.format is None or values.kind not in ("date", "datetime"):
        return
    for end in (ends[0], ends[-1]):
        try:
            read = values.number(values.text(end))
        except DomainError:  # no date at all, which nothing will be written as
            continue
        if read is None or abs(read - end) > (1 if values.kind == "date" else 86_400):
            shown = Values(kind=values.kind).text(end)
            raise DomainError(
                f"{where}: format = {values.format!r} cannot tell {shown}, an end of the bins, from other years; give "
                "one with %Y"
            )


def _is_day(bound: object) -> bool:
    if isinstance(bound, str):
        return ":" not in bound and not bound.lstrip("-").isdigit()
    return isinstance(bound, date) and not isinstance(bound, datetime)


def _apart(places: Iterable[float], low: float, high: float) -> list[float]:
    """Rounded to whole numbers, each at least one above the one before."""
    rounded = [float(round(place)) for place in places]
    least = low
    for at, place in enumerate(rounded):
        least = rounded[at] = max(place, least + 1)
    most = high + 1
    for at in range(len(rounded) - 1, -1, -1):
        most = rounded[at] = min(rounded[at], most - 1)
    return rounded


def _rounded(edges: list[float], parts: int, *, whole: bool) -> list[float]:
    """Round inner edges to a part of the width of the narrower bin next to them, as Python's `round` does."""
    places = np.asarray(edges, np.float64)
    rounded = places.copy()
    if len(places) < 3:
        return list(edges)
    with np.errstate(all="ignore"):  # all that is not finite, or may be rounded otherwise, is left to Python
        inner = places[1:-1]
        widths = np.minimum(inner - places[:-2], places[2:] - inner) / parts
        logs = np.log10(widths)
        digits = -np.floor(logs)
        if whole:
            digits = np.maximum(digits, 0)
        powers = 10.0 ** np.clip(digits, 0, 22)  # exact, as whole numbers below 2^53 are
        scaled = inner * powers
        nearest = np.rint(scaled)
        sure = (np.abs(logs - np.rint(logs)) > 1e-9) & (digits >= 0) & (digits <= 22) & (np.abs(scaled) < 2.0**40)
        sure &= (np.abs(np.abs(scaled - nearest) - 0.5) > 0.01) & (nearest != 0)
        rounded[1:-1] = np.where(sure, nearest / powers, inner)
    results: list[float] = rounded.tolist()
    for at in (np.flatnonzero(~sure) + 1).tolist():
        width = min(edges[at] - edges[at - 1], edges[at + 1] - edges[at]) / parts
        places_after = -math.floor(math.log10(width)) if 0 < width < math.inf else 400
        if places_after < 300:
            results[at] = float(round(edges[at], max(places_after, 0) if whole else places_after))
    return results


def _place(moment: datetime, per_day: int) -> float:
    since = moment - datetime(1970, 1, 1)
    return float(since.days if per_day == 1 else since.days * per_day + since.seconds)


def _month(moment: datetime, months: int) -> datetime:
    number = (moment.month - 1) // months * months + months
    return datetime(moment.year + number // 12, number % 12 + 1, 1)


#: The fewest days of a unit.
UNIT_DAYS = {"year": 365.0, "quarter": 90.0, "month": 28.0, "week": 7.0, "day": 1.0, "hour": 1 / 24}
_STEPS: dict[str, Callable[[datetime], datetime]] = {
    "year": lambda moment: datetime(moment.year + 1, 1, 1),
    "quarter": lambda moment: _month(moment, 3),
    "month": lambda moment: _month(moment, 1),
    "week": lambda moment: moment + timedelta(days=7 - moment.weekday()),
    "day": lambda moment: moment + timedelta(days=1),
    "hour": lambda moment: moment + timedelta(hours=1),
}


# --- Bins and labels that private queries release -------------------------------------------------

#: The label of all values of an open column that are not among those found.
OTHER = "other"

_MAX_KEPT_LABELS = 2**16
_FEWEST_OF_ANY_TYPE = 8
# Digits are bounded: `Fraction` takes 1e-999999999 for a number and computes it.
_SHARE = re.compile(r"[0-9]{0,30}\.?[0-9]{1,30}(e-[0-9]{1,2})?|[0-9]{1,30}/[0-9]{1,30}")


@frozen(kw_only=True)
class PrivateBins:
    """Bins whose edges are found in a session by exact selection, from a public grid between public bounds.

    count: how many bins at most, a power of two (others are rounded down). cells: of the grid, at most 65,536; whole
    numbers and days have one each where there are not more. share: of the session's budget; None: 2 %, and at most 10 %
    for all such columns together. Raises DomainError.

    >>> PrivateBins(count=33, low=0.0, high=94.0, cells=95).count
    32
    """

    count: int
    low: float
    high: float
    cells: int
    share: Fraction | None = None

    def __attrs_post_init__(self) -> None:
        _check_count("bins = { private = ... }", self.count)
        if self.count > self.cells:
            raise DomainError(f"{self.count} private bins are more than the {self.cells} cells of their grid")
        object.__setattr__(self, "count", 1 << (self.count.bit_length() - 1))


@frozen(kw_only=True)
class PrivateLabels:
    """Labels found by a thresholded release, which costs an (epsilon, delta) of its own before anything else.

    keep: at most so many, those with the largest noisy counts. share: of the run's epsilon and delta. any_type: type
    and range are found too, in one release with all such columns, of the largest of their shares of mu^2. Raises
    DomainError.
    """

    keep: int
    share: Fraction = Fraction(1, 10)
    any_type: bool = False

    def __attrs_post_init__(self) -> None:
        _check_count("labels = { private = true, keep = ... }", self.keep)
        if self.keep > _MAX_KEPT_LABELS:
            raise DomainError(f"keep = {self.keep} labels is above the largest possible, {_MAX_KEPT_LABELS}")
        if self.any_type and self.keep < _FEWEST_OF_ANY_TYPE:
            raise DomainError(f"a column of any type needs keep = {_FEWEST_OF_ANY_TYPE} or more, got {self.keep}")


def exact_share(share: object) -> Fraction:
    """A share of a budget as it is written: a number or a text such as "1/50", between 0 and 1. Raises DomainError."""
    if isinstance(share, (int, float, str, Fraction)) and not isinstance(share, bool) and _SHARE.fullmatch(str(share)):
        with contextlib.suppress(ZeroDivisionError):
            exact = Fraction(str(share))
            if 0 < exact < 1:
                return exact
    raise DomainError(f"share must be above 0 and below 1, such as 0.02 or '1/50'; got {share!r:.60}")


def _check_count(what: str, count: object) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise DomainError(f"{what} must be a whole number of at least 1, got {count!r:.60}")
