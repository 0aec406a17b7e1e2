"""Labels of bins: "18-24" for whole numbers, "2019-03" for months, intervals for other numbers."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

from dpgm_core.columns.edges import DAY, UNIT_DAYS, UNITS, calendar_edges
from dpgm_core.columns.values import Values
from dpgm_core.errors import DomainError

__all__ = ["bin_labels", "check_apart", "number_text"]

#: What bins are called, whatever their edges, and a few texts more.
_OF_BINS = re.compile(r"any|(below|before|up to|from) .*|\[.*[)\]]|-?\d[-\d.:/+TWQe ]*(to -?\d+)?", re.DOTALL)


def bin_labels(name: str, edges: Sequence[float], values: Values, *, cap: bool = False) -> list[str]:
    """One label per bin [e_0, e_1), [e_1, e_2), ..., the last one closed; it says exactly what is in the bin.

    Raises DomainError for a bin of integers or days that holds none.

    >>> bin_labels("age", [0, 18, 19, 65], Values(kind="integer"))
    ['0-17', '18', '19-65']
    >>> bin_labels("age", [0, 18, 65], Values(kind="integer"), cap=True), bin_labels("x", [0, 0.5, 1], Values())
    (['up to 17', '18+'], ['[0, 0.5)', '[0.5, 1]'])
    """
    if values.kind in ("integer", "date"):
        return _discrete(name, edges, values, cap)
    if values.is_temporal:
        return _moments(edges, values, cap)
    texts = [number_text(edge) for edge in edges]
    labels = [f"[{low}, {high})" for low, high in itertools.pairwise(texts)]
    labels[-1] = labels[-1][:-1] + "]"
    if cap or values.kind == "number":
        _open(labels, edges, cap, f"below {texts[1]}", f"{texts[-2]}+")
    return labels


def check_apart(where: str, special: str) -> None:
    """Refuse, with DomainError, a label of unknown or missing values of a column whose bins are still to be found,
    where one of these bins could be called so: such values take no part in finding them, and must not fall on one.

    >>> check_apart("attribute 'age'", "missing")
    """
    if _OF_BINS.fullmatch(special):
        raise DomainError(
            f"{where}: its bins are found from known values, so unknown and missing ones need a label of their own, "
            f"which no bin can have, and {special!r:.60} could be one; say missing = 'missing', or unknown"
        )


def number_text(number: float) -> str:
    """The shortest text of a number that reads back.

    >>> number_text(1000000.0), number_text(0.1), number_text(1e300)
    ('1000000', '0.1', '1e+300')
    """
    if math.isfinite(number) and number == int(number) and abs(number) < 1e16:
        return str(int(number))
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def _open(labels: list[str], edges: Sequence[float], cap: bool, first: str, last: str) -> None:
    # What has no end is called by the end it has.
    low, high = cap or edges[0] == -math.inf, cap or edges[-1] == math.inf
    if len(labels) == 1 and low and high:
        labels[0] = "any"
        return
    if low:
        labels[0] = first
    if high:
        labels[-1] = last


def _discrete(name: str, edges: Sequence[float], values: Values, cap: bool) -> list[str]:
    def ends() -> list[tuple[float, float]]:
        ranges = []
        for at, (low, high) in enumerate(itertools.pairwise(edges)):
            first = math.ceil(low) if math.isfinite(low) else low
            after = high if not math.isfinite(high) else math.ceil(high) - 1
            last = after if at < len(edges) - 2 or not math.isfinite(high) else math.floor(high)
            if first > last:
                what = "whole number" if values.kind == "integer" else "day"
                raise DomainError(f"attribute {name!r}: the bin [{low:g}, {high:g}) holds no {what}; move its edges")
            ranges.append((first, last))
        return ranges

    bins = ends()
    if values.kind == "integer":
        between = " to " if bins[0][0] < 0 else "-"
        labels = [f"{low:.0f}" if low == high else f"{low:.0f}{between}{high:.0f}" for low, high in bins]
        _open(labels, edges, cap, f"up to {bins[0][1]:.0f}", f"{bins[-1][0]:.0f}+")
        return labels
    labels = _calendar(edges, values) or [
        _day(low) if low == high else f"{_day(low)}/{_day(high)}" for low, high in bins
    ]
    _open(labels, edges, cap, f"up to {_day(bins[0][1])}", f"from {_day(bins[-1][0])}")
    return labels


def _moments(edges: Sequence[float], values: Values, cap: bool) -> list[str]:
    texts = [_moment(edge, values) for edge in edges]
    labels = [f"{low}/{high}" for low, high in itertools.pairwise(texts)]
    if values.kind == "datetime":
        labels = _calendar(edges, values) or labels
    _open(labels, edges, cap, f"before {texts[1]}", f"from {texts[-2]}")
    return labels


def _calendar(edges: Sequence[float], values: Values) -> list[str] | None:
    """The names of the calendar's units, if each bin is one of them, the first and the last perhaps a part."""
    if len(edges) < 3 or not all(map(math.isfinite, edges)) or not _written(edges[0], values):
        return None
    per_day = 1 if values.kind == "date" else 86_400
    for unit in UNITS[: 5 if values.kind == "date" else 6]:
        # The width of a bin tells the unit, or the attempt would be as long as the calendar.
        least = UNIT_DAYS[unit] * per_day
        inner = [high - low for low, high in itertools.pairwise(edges[1:-1])]
        if inner and not least <= min(inner) <= max(inner) <= least * 1.2:
            continue
        if edges[-1] - edges[0] > 1.2 * least * (len(edges) - 1) + per_day:
            continue
        try:
            same = calendar_edges("", edges[0], _upper(edges, values), unit, values) == tuple(edges)
        except DomainError:
            continue
        if same:
            labels = [_UNIT_TEXTS[unit](values.moment(edge)) for edge in edges[:-1]]
            return labels if len(set(labels)) == len(labels) else None
    return None


def _upper(edges: Sequence[float], values: Values) -> float:
    # The last edge stands half a unit above a single last value.
    return math.floor(edges[-1]) if values.kind == "date" else edges[-1]


def _written(number: float, values: Values) -> bool:
    try:
        values.moment(number)
    except (ValueError, OverflowError):
        return False
    return True


def _day(number: float) -> str:
    return _moment(number, Values(kind="date"))


def _moment(number: float, values: Values) -> str:
    if values.kind == "time" and number == DAY:
        return "24:00"
    try:
        moment = values.moment(number)
    except (ValueError, OverflowError):
        return number_text(number)
    if isinstance(moment, date) and not isinstance(moment, datetime):
        return moment.isoformat()
    if moment.microsecond or not number.is_integer():
        return moment.isoformat()
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")


_UNIT_TEXTS: dict[str, Callable[..., str]] = {
    "year": lambda day: f"{day.year:04d}",
    "quarter": lambda day: f"{day.year:04d} Q{(day.month + 2) // 3}",
    "month": lambda day: f"{day.year:04d}-{day.month:02d}",
    "week": lambda day: "{:04d}-W{:02d}".format(*(day - timedelta(days=day.weekday())).isocalendar()[:2]),
    "day": lambda day: day.isoformat()[:10],
    "hour": lambda day: day.isoformat(timespec="hours"),
}
