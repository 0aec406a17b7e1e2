"""Columns of any type: the shape of a raw text, and the table of a column from what was released of shapes and labels.

A shape is a type with a coarse place: whole numbers and numbers by sign and power of two, dates by five years. It
depends on the value alone, and all shapes are public. How many persons have each, and labels, come from a private
release; the table is computed from these and public rules, so it is post-processing.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dpgm_core.domain.values import EXACT_WHOLE

__all__ = ["EDGE", "SHAPES", "SURE", "has_labels", "shape_of", "table_of"]

#: Standard deviations of noise: above these a shape certainly occurs, or does if a neighbour certainly does.
SURE, EDGE = 5.0, 1.5

_INTEGER = re.compile(rb"[+-]?(?:0|[1-9][0-9]{0,14})")
_NUMBER = re.compile(rb"([+-]?(?:0|[1-9][0-9]{0,14})?)([.,])([0-9]{1,40})(?:[eE]([+-]?[0-9]{1,3}))?")
_POWER = re.compile(rb"[+-]?[1-9][eE][+-]?[0-9]{1,3}")
_CLOCK = rb"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?"
_TIME = re.compile(_CLOCK)
_MOMENT = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ]" + _CLOCK + rb" ?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?")
_MIDNIGHT = re.compile(rb".*[T ]00:00(:00(\.0+)?)?")
_LOCAL = re.compile(rb"([0-9]{2})([/.-])([0-9]{2})\2([0-9]{4})")
_DAYS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DECIMALS = 3  # so many and more count alike, and stand for any number of decimals

#: Powers of two, below which there is zero; whole numbers begin with 0.
_LEAST, _MOST = -16, 46
#: Years of dates, by five; those outside count with the first and the last.
_FIRST_YEAR, _LAST_YEAR, _YEARS = 1900, 2095, 5

#: Whole numbers below this power of two may be codes.
_SMALL = 7
#: A type has to hold for this share of what was found of a column, and labels have to cover it where they could be
#: numbers.
_NEARLY_ALL = 0.95
#: So many texts, at most, mark what is missing among values of another type, which at least this share has.
_MARKS, _MOST_OF_IT = 3, 0.5
#: So many times as common as the values of its power of two, a value has a bin of its own.
_SPIKE = 4
#: A place needs `EDGE` standard deviations of persons to widen a range by itself, this much of it more for each other
#: place between, up to so many times, and that many where it has the other sign. Places of numbers this many powers of
#: two below the largest, which have few values, do not count as between.
_EACH_AWAY, _FAR, _NEGATIVE, _NEAR_ZERO = 0.4, 2.7, 2.0, 4
#: Where labels cover the values, a range is widened by `EDGE` so many times.
_COVERED = 2.0
#: A number of bins that any table has, if it may; more only as far as each has a standard deviation of persons.
_FEW_BINS = 16


def shape_of(raw: bytes) -> str:
    """Return the shape of a text, one of `SHAPES`. Never raises.

    Examples
    --------
    >>> [shape_of(text) for text in (b"37", b"-0.5", b"1,75", b"007", b"2019-12-31", b"31.12.2019", b"03/04/2019")]
    ['integer 2^5', 'number.1 -2^-1', 'number,2 2^0', 'text', 'date 2015', 'date %d.%m.%Y 2015', 'date ?/?/%Y 2015']
    """
    if _INTEGER.fullmatch(raw):
        return f"integer {_place(float(raw), 0)}"
    match = _NUMBER.fullmatch(raw)
    if match is not None:
        whole, sign, fraction, exponent = match.groups()
        decimals = _DECIMALS if exponent else min(len(fraction), _DECIMALS)
        value = float(b"%s.%se%s" % (whole, fraction, exponent or b"0"))
        return f"number{sign.decode()}{decimals} {_place(value, _LEAST)}"
    if _POWER.fullmatch(raw):
        return f"number.{_DECIMALS} {_place(float(raw), _LEAST)}"
    match = _MOMENT.fullmatch(raw)
    if match is not None:
        year, month, day = (int(part) for part in match.groups()[:3])
        kind = "date" if match[4] is None or _MIDNIGHT.fullmatch(raw) else "datetime"
        return f"{kind} {_years(year)}" if _is_day(year, month, day) else "text"
    match = _LOCAL.fullmatch(raw)
    if match is not None:
        one, sign, other, year = int(match[1]), match[2].decode(), int(match[3]), int(match[4])
        possible = [
            order
            for order, fits in (("%d{0}%m", _is_day(year, other, one)), ("%m{0}%d", _is_day(year, one, other)))
            if fits
        ]
        if not possible:
            return "text"
        order = possible[0] if len(possible) == 1 else "?{0}?"
        return f"date {order.format(sign)}{sign}%Y {_years(year)}"
    return "time" if _TIME.fullmatch(raw) else "text"


def _place(value: float, least: int) -> str:
    """Return the power of two at or below the size of a number, with a minus before it for a negative one."""
    power = math.frexp(abs(value))[1] - 1 if math.isfinite(value) else _MOST
    if value == 0 or power < least:
        return "zero"
    return f"{'-' if value < 0 else ''}2^{min(_MOST, power)}"


def _years(year: int) -> int:
    return max(_FIRST_YEAR, min(_LAST_YEAR, year // _YEARS * _YEARS))


def _is_day(year: int, month: int, day: int) -> bool:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return year > 0 and 1 <= month <= 12 and 1 <= day <= _DAYS[month] - (month == 2 and not leap)


def _axis(least: int) -> list[str]:
    """The places of numbers, from the most negative to the largest."""
    powers = [f"2^{power}" for power in range(least, _MOST + 1)]
    return [*(f"-{power}" for power in reversed(powers)), "zero", *powers]


def _list_shapes() -> Iterable[str]:
    yield from ("text", "time")
    yield from (f"integer {place}" for place in _axis(0))
    yield from (
        f"number{sign}{decimals} {place}"
        for sign in ".,"
        for decimals in range(1, _DECIMALS + 1)
        for place in _axis(_LEAST)
    )
    forms = [f" {order.format(sign)}{sign}%Y" for sign in "/.-" for order in ("%d{0}%m", "%m{0}%d", "?{0}?")]
    yield from (
        f"{kind} {year}" for kind in ("date", "datetime", *(f"date{form}" for form in forms)) for year in _all_years()
    )


def _all_years() -> range:
    return range(_FIRST_YEAR, _LAST_YEAR + 1, _YEARS)


#: All shapes there are.
SHAPES = tuple(_list_shapes())


def table_of(shapes: Mapping[str, int], labels: Mapping[str, int], keep: int, sigma: float) -> dict[str, Any]:
    """Return the table of a column: its type with bins, or its labels.

    Up to three texts that are common among numbers, dates or times, such as "NA", mark what is missing there.

    Parameters
    ----------
    shapes, labels : mapping of str to int
        What was released, with noisy numbers of persons; of shapes those above `EDGE` sigma.
    keep : int
        The most labels or bins, 8 or more.
    sigma : float
        The standard deviation of the noise, persons.

    Returns
    -------
    dict
        As a domain file has it. Without a single label where nothing was found.

    Examples
    --------
    >>> table_of({"integer 2^0": 90, "integer 2^1": 210}, {"1": 90, "2": 110, "3": 100}, 32, 5.0)
    {'type': 'integer', 'bins': [1, 2, 3, 3.5], 'cap': True}
    >>> table_of({"text": 300}, {"cook": 200, "pilot": 90}, 32, 5.0)
    {'labels': ['cook', 'pilot']}
    >>> table_of({"integer 2^9": 300, "text": 95}, {"NA": 95}, 8, 5.0)["null_values"]
    ['NA']
    """
    counts = {shape: count for shape, count in shapes.items() if count >= SURE * sigma}
    every = sum(counts.values())
    commonest = [label for label, _ in sorted(labels.items(), key=lambda one: (-one[1], one[0]))][:keep]
    covered = sum(map(labels.__getitem__, commonest)) >= _NEARLY_ALL * every > 0
    marks = [label for label in commonest if shape_of(label.encode("utf-8", "surrogatepass")) == "text"]
    marked = 0 if covered or len(marks) > _MARKS else min(counts.get("text", 0), sum(map(labels.__getitem__, marks)))
    missing = {"null_values": marks} if marked else {}
    bins = min(keep, max(_FEW_BINS, int(every / max(sigma, 1.0))))

    def is_most(belongs: Callable[[str], bool]) -> bool:
        together = sum(count for shape, count in counts.items() if belongs(shape))
        return together >= max(_NEARLY_ALL * (every - marked), _MOST_OF_IT * every) > 0

    for sign in ".,":
        starts = ("integer ", f"number{sign}")
        if is_most(lambda shape, starts=starts: shape.startswith(starts)):  # type: ignore[misc]
            numbers = _starting(counts, starts), _starting(shapes, starts)
            values = {label: labels[label] for label in commonest if label not in missing.get("null_values", ())}
            return _of_numbers(*numbers, values, covered, keep, bins, sign, sigma) | missing
    for kind in ("date", "datetime"):
        starts = ("date ", f"{kind} ")
        if is_most(lambda shape, starts=starts: shape.startswith(starts)):  # type: ignore[misc]
            table = _of_days(kind, _starting(counts, starts), _starting(shapes, starts), bins, sigma)
            if table is not None:
                return table | missing
    if is_most(lambda shape: shape == "time"):
        return {"type": "time", "bins": min(24, bins)} | missing
    return {"labels": commonest}


def has_labels(shapes: Mapping[str, int], sigma: float) -> bool:
    """Return whether the labels of a column are of use: it has texts, or whole numbers of small size.

    >>> has_labels({"text": 300}, 5.0), has_labels({"integer 2^0": 300}, 5.0), has_labels({"integer 2^9": 300}, 5.0)
    (True, True, False)
    """
    sure = {shape: count for shape, count in shapes.items() if count >= SURE * sigma}
    if sum(count for shape, count in sure.items() if shape == "text") > (1 - _NEARLY_ALL) * sum(sure.values()):
        return True
    small = {f"integer {place}" for place in _axis(0) if place == "zero" or int(place.rpartition("^")[2]) < _SMALL}
    return bool(sure) and set(sure) <= small


def _starting(counts: Mapping[str, int], starts: tuple[str, ...]) -> dict[str, int]:
    return {shape: count for shape, count in counts.items() if shape.startswith(starts)}


def _around(sure: Mapping[str, int], edge: Mapping[str, int], axis: Sequence[str], least: float) -> dict[str, int]:
    """Return the places of an axis from the first to the last that occur, with their counts, 0 where none was found.

    sure: what certainly occurs, one at least. edge: what does if something near does. least: persons that the next
    place needs.
    """
    kinds = {shape.rsplit(" ", 1)[0] for shape in sure}
    counts = Counter[str]()
    for shape, count in edge.items():
        kind, place = shape.rsplit(" ", 1)
        if kind in kinds:
            counts[place] += count
    certain = [axis.index(shape.rsplit(" ", 1)[1]) for shape in sure]
    first, last = min(certain), max(certain)
    powers = [int(place.rpartition("^")[2]) if "^" in place else _LEAST for place in (axis[first], axis[last])]
    near = {
        place
        for place in axis
        if place == "zero" or ("^" in place and int(place.rpartition("^")[2]) < max(powers) - _NEAR_ZERO)
    }

    def reach(end: int, step: int) -> int:
        """The last place of a side that occurs; what is further away needs a larger count."""
        at, needed = end, 1.0
        while 0 <= at + step < len(axis):
            at += step
            if axis[at].startswith("-") is not axis[end].startswith("-"):
                needed = max(needed, _NEGATIVE)
            if counts[axis[at]] >= needed * least:
                end, needed = at, 1.0
            elif axis[at] not in near:
                needed = min(_FAR, needed + _EACH_AWAY)
        return end

    return {place: counts[place] for place in axis[reach(first, -1) : reach(last, 1) + 1]}


def _of_numbers(
    sure: Mapping[str, int],
    edge: Mapping[str, int],
    labels: Mapping[str, int],
    covered: bool,
    keep: int,
    bins: int,
    sign: str,
    sigma: float,
) -> dict[str, Any]:
    """Return the table of a column of numbers. labels: the commonest, with noisy counts."""
    whole = not any(shape.startswith("number") for shape in sure)
    decimals = max(int(shape[7]) if shape.startswith("number") else 0 for shape in sure)
    values = {value: count for label, count in labels.items() if (value := _number(label, sign, whole)) is not None}
    if whole and covered and len(values) == len(labels):
        codes = sorted(map(int, values))
        if codes[-1] - codes[0] >= 2 * len(codes):  # far apart, as in 1, 2, 99
            return {"labels": [str(code) for code in codes], "numbers": True}
    axis = _axis(0 if whole else _LEAST)
    if not whole and decimals < _DECIMALS:  # values of fewer decimals have no smaller size
        least = math.frexp(10.0**-decimals)[1] - 1
        axis = [place for place in axis if place == "zero" or int(place.rpartition("^")[2]) >= least]
    edge = {shape: count for shape, count in edge.items() if shape.rsplit(" ", 1)[1] in axis}
    sure = {shape: count for shape, count in sure.items() if shape.rsplit(" ", 1)[1] in axis} or {"integer zero": 0}
    table: dict[str, Any] = {"type": "integer" if whole else "number"}
    places = _around(sure, edge, axis, EDGE * sigma * (_COVERED if covered else 1))
    step = 1.0 if whole else 10.0**-decimals
    spikes = _spikes(values, places, keep // 3, whole, step, sigma)
    edges = _edges(places, values, spikes, min(keep, bins + 2 * len(spikes)), whole, step)
    table |= {"bins": edges, "cap": True}
    if "zero" in places and len(places) > 1 and not (whole and places.get("2^0")):
        table["shape"] = "uniform"  # many zeros, which are all alike, do not say that other numbers are near zero
    if not whole and decimals < _DECIMALS and max(map(abs, edges)) * 10**decimals < EXACT_WHOLE:
        table["decimals"] = decimals
    return table | ({"decimal": ","} if sign == "," and not whole else {})


def _number(label: str, sign: str, whole: bool) -> float | None:
    """Return the number that a label is; None for another text, or a number that is not whole where all are."""
    raw = label.encode("utf-8", "surrogatepass")
    if _INTEGER.fullmatch(raw):
        return float(label)
    match = None if whole else _NUMBER.fullmatch(raw)
    return float(label.replace(",", ".")) if match and match[2].decode() == sign and not match[4] else None


def _spikes(
    values: Mapping[float, int], places: Mapping[str, int], most: int, whole: bool, step: float, sigma: float
) -> dict[float, int]:
    """Return the values that are much commoner than others of their place, and than whole numbers next to them.

    Those next to a value that certainly occurs would have been found, were they as common.
    """
    spikes = {}
    for value, count in values.items():
        place = _place(value, 0 if whole else _LEAST)
        low, high = _interval(place, whole)
        near = max(values.get(value - 1, 0), values.get(value + 1, 0)) if whole else 0
        common = max(_SPIKE * places.get(place, 0) * step / (high - low), _SPIKE / 2 * near, SURE * sigma)
        if place != "zero" and places.get(place) and count > common:
            spikes[value] = count
    return dict(sorted(spikes.items(), key=lambda one: (-one[1], one[0]))[:most])


def _edges(
    counts: Mapping[str, int],
    values: Mapping[float, int],
    spikes: Mapping[float, int],
    keep: int,
    whole: bool,
    step: float,
) -> list[float]:
    """Return the edges of bins: places of an axis, of which the one with most persons is cut in halves again and again.

    values: found in the column, with noisy counts. spikes: those that have a bin of their own, of width step.
    """
    others = sorted((value, count) for value, count in values.items() if value not in spikes)
    masses: dict[tuple[float, float], float] = {}
    places, gap = list(counts), None
    keep -= 2 * len(spikes)
    for place, count in counts.items():
        low, high = _interval(place, whole)
        if place == "zero" and not whole:  # nothing lies on a side where nothing was found
            low, high = low * (place != places[0]), high * (len(places) == 1 or place != places[-1])
        if gap is not None and not count:
            masses.pop(gap)
            low = gap[0]
        masses[low, high] = max(0, count - sum(many for value, many in spikes.items() if low <= value < high))
        gap = None if count else (low, high)
    while len(masses) > keep:  # more powers of two than bins: the two rarest neighbours become one
        order = sorted(masses)
        one, other = min(itertools.pairwise(order), key=lambda two: masses[two[0]] + masses[two[1]])
        masses[one[0], other[1]] = masses.pop(one) + masses.pop(other)
    last = max(high for _, high in masses)
    while len(masses) < keep:
        wide = [one for one, mass in masses.items() if mass and _can_halve(*one, whole)]
        if not wide:
            break
        low, high = max(wide, key=lambda one: (masses[one], one))
        middle, mass = (low + high) / 2, masses.pop((low, high))
        lower, upper = (
            sum(count for value, count in others if start <= value < end)
            for start, end in ((low, middle), (middle, high))
        )
        rest = max(0.0, mass - lower - upper) / 2  # of values that were not found
        masses[low, middle], masses[middle, high] = lower + rest, upper + rest
    edges = [low for low, _ in masses]
    digits = max(0, round(-math.log10(step)))
    alone = [end for value in spikes for end in (value, round(value + step, digits))]
    edges = sorted({*edges, *(end for end in alone if min(edges) < end < last)})
    if whole:  # the last bin of whole numbers is closed
        last = last - 1 if last - 1 > edges[-1] else last - 0.5
    return [int(edge) if whole and edge.is_integer() else edge for edge in [*edges, last]]


def _can_halve(low: float, high: float, whole: bool) -> bool:
    return (high - low) % 2 == 0 if whole else low * high > 0


def _interval(place: str, whole: bool) -> tuple[float, float]:
    """Return [low, high) of a place."""
    tiny = 0.0 if whole else math.ldexp(1.0, _LEAST)
    if place == "zero":
        return (0.0, 1.0) if whole else (-tiny, tiny)
    minus, _, power = place.partition("2^")
    low, high = math.ldexp(1.0, int(power)), math.ldexp(1.0, int(power) + 1)
    if not minus:
        return low, high
    return (1 - high, 1 - low) if whole else (-high, -low)


def _of_days(
    kind: str, sure: Mapping[str, int], edge: Mapping[str, int], keep: int, sigma: float
) -> dict[str, Any] | None:
    """Return the table of dates; None where the order of day and month is open, or texts have several formats."""
    forms = {" ".join(shape.split(" ")[1:-1]) for shape in sure}
    clear = {form for form in forms if "?" not in form}
    if len(clear) != 1:
        return None
    (form,) = clear
    if any(other[1] not in form for other in forms - clear):  # other signs between day and month
        return None
    same = {shape: count for shape, count in edge.items() if shape.split(" ")[1] in (*forms, *map(str, _all_years()))}
    years = [int(year) for year in _around(sure, same, [str(year) for year in _all_years()], 2 * EDGE * sigma)]
    first, last = years[0], years[-1] + _YEARS - 1
    units = {"month": 12, "quarter": 4, "year": 1}
    unit = next((unit for unit, each in units.items() if (last - first + 1) * each <= keep), keep)
    table = {"type": kind, "min": f"{first:04d}-01-01", "max": f"{last:04d}-12-31", "cap": True, "bins": unit}
    return table | ({"format": form} if form else {})
