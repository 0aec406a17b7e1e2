"""Columns of any type: the shape of a raw text, and the table of a column from what was released of shapes and labels.

A shape is a type with a coarse place: whole numbers and numbers by sign and power of two, dates by year. It depends on
the value alone. Which shapes occur, how often, and the labels come from a private release; the table is computed from
these and public rules, so it is post-processing.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["shape_of", "table_of"]

_INTEGER = re.compile(rb"[+-]?(?:0|[1-9][0-9]{0,14})")
_NUMBER = re.compile(rb"([+-]?(?:0|[1-9][0-9]{0,14})?)([.,])([0-9]{1,15})(?:[eE]([+-]?[0-9]{1,2}))?")
_CLOCK = rb"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?"
_TIME = re.compile(_CLOCK)
_MOMENT = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ]" + _CLOCK + rb" ?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?")
_LOCAL = re.compile(rb"([0-9]{2})([/.-])([0-9]{2})\2([0-9]{4})")
_YEARS = range(1800, 2200)
_EXPONENTS = 48  # powers of two of numbers, from -48 to 48
_DECIMALS = 3  # so many and more count alike, and stand for any number of decimals
_DAYS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

#: A type has to hold for this share of what was released of a column.
_NEARLY_ALL = 0.95
#: Labels have to cover this share, or a column of numbers is cut into bins.
_COVERED = 0.95
_MIDNIGHT = re.compile(rb".*[T ]00:00(:00(\.0+)?)?")


def shape_of(raw: bytes) -> str:
    """Return the shape of a text. Never raises.

    Examples
    --------
    >>> [shape_of(text) for text in (b"37", b"-0.5", b"1,75", b"007", b"2019-12-31", b"31.12.2019", b"03/04/2019")]
    ['integer 5', 'number.1 -1 -', 'number,2 0', 'text', 'date 2019', 'date %d.%m.%Y 2019', 'date ?/?/%Y 2019']
    """
    if _INTEGER.fullmatch(raw):
        return f"integer {_magnitude(float(raw))}"
    match = _NUMBER.fullmatch(raw)
    if match is not None:
        whole, sign, fraction, exponent = match.groups()
        value = float(b"%s.%se%s" % (whole, fraction, exponent or b"0"))
        decimals = _DECIMALS if exponent else min(len(fraction), _DECIMALS)
        return f"number{sign.decode()}{decimals} {_magnitude(value)}"
    match = _MOMENT.fullmatch(raw)
    if match is not None:
        year, month, day = (int(part) for part in match.groups()[:3])
        kind = "date" if match[4] is None or _MIDNIGHT.fullmatch(raw) else "datetime"
        return f"{kind} {year}" if _is_day(year, month, day) else "text"
    match = _LOCAL.fullmatch(raw)
    if match is not None:
        one, sign, other, year = int(match[1]), match[2].decode(), int(match[3]), int(match[4])
        orders = {f"%d{sign}%m": _is_day(year, other, one), f"%m{sign}%d": _is_day(year, one, other)}
        possible = [order for order, fits in orders.items() if fits]
        if not possible:
            return "text"
        return f"date {possible[0] if len(possible) == 1 else f'?{sign}?'}{sign}%Y {year}"
    return "time" if _TIME.fullmatch(raw) else "text"


def _magnitude(value: float) -> str:
    """Return the power of two at or below the size of a number, with a minus behind it for a negative one."""
    if value == 0:
        return "zero"
    power = math.frexp(abs(value))[1] - 1
    return f"{max(-_EXPONENTS, min(_EXPONENTS, power))}{' -' if value < 0 else ''}"


def _is_day(year: int, month: int, day: int) -> bool:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return year in _YEARS and 1 <= month <= 12 and 1 <= day <= _DAYS[month] - (month == 2 and not leap)


def table_of(shapes: Mapping[str, int], labels: Mapping[str, int], keep: int) -> dict[str, Any]:
    """Return the table of a column: its type with bins, or its labels.

    Parameters
    ----------
    shapes, labels : mapping of str to int
        What was released, with noisy numbers of persons.
    keep : int
        The most labels or bins, 8 or more.

    Returns
    -------
    dict
        As a domain file has it. Without a single label where nothing was found.

    Examples
    --------
    >>> table_of({"integer 0": 90, "integer 1": 210}, {"1": 90, "2": 110, "3": 100}, 32)
    {'type': 'integer', 'min': 1, 'max': 3, 'cap': True}
    >>> table_of({"text": 300}, {"cook": 200, "pilot": 90}, 32)
    {'labels': ['cook', 'pilot']}
    """
    counts = {shape: count for shape, count in shapes.items() if count > 0}
    every = sum(counts.values())
    found = [label for label, _ in sorted(labels.items(), key=lambda one: (-one[1], one[0]))][:keep]
    covered = bool(every) and sum(map(labels.__getitem__, found)) >= _COVERED * every
    kinds = Counter[str]()
    for shape, count in counts.items():
        kinds[shape.split(" ")[0].rstrip("0123456789")] += count
    for sign in (".", ","):
        numbers = {shape: count for shape, count in counts.items() if shape.startswith(("integer ", f"number{sign}"))}
        if numbers and sum(numbers.values()) >= _NEARLY_ALL * every:
            return _of_numbers(numbers, found, covered, keep, sign)
    for kind in ("date", "datetime"):
        days = {shape: count for shape, count in counts.items() if shape.startswith(("date ", f"{kind} "))}
        table = _of_days(kind, days, keep) if sum(days.values()) >= _NEARLY_ALL * max(every, 1) else None
        if table is not None:
            return table
    if kinds["time"] >= _NEARLY_ALL * max(every, 1):
        return {"type": "time", "bins": min(24, keep)}
    return {"labels": found}


def _of_numbers(counts: Mapping[str, int], found: Sequence[str], covered: bool, keep: int, sign: str) -> dict[str, Any]:
    whole = not any(shape.startswith("number") for shape in counts)
    if covered and found and all(_is_whole(label) for label in found):
        codes = sorted(map(int, found))
        if whole and codes[-1] - codes[0] < min(keep, 2 * len(codes)):
            return {"type": "integer", "min": codes[0], "max": codes[-1], "cap": True}
        if whole:
            return {"labels": [str(code) for code in codes], "numbers": True}
    edges = _edges(counts, keep, whole)
    table: dict[str, Any] = {"type": "integer" if whole else "number", "bins": edges, "cap": True}
    decimals = max(int(shape[7]) if shape.startswith("number") else 0 for shape in counts)
    if not whole and decimals < _DECIMALS:
        table["decimals"] = decimals
    return table | ({"decimal": ","} if sign == "," and not whole else {})


def _is_whole(label: str) -> bool:
    return _INTEGER.fullmatch(label.encode("utf-8", "surrogatepass")) is not None


def _edges(counts: Mapping[str, int], keep: int, whole: bool) -> list[float]:
    """Return the edges of bins: each power of two has bins by its share, equally wide."""
    masses = Counter[tuple[float, float]]()
    for shape, count in counts.items():
        masses[_interval(shape.split(" ", 1)[1], whole)] += count
    if not whole and (0.0, 0.0) in masses:  # zeros fall into the bin that begins with zero
        zeros = masses.pop((0.0, 0.0))
        above = min((one for one in masses if one[0] > 0), default=(1.0, 1.0))
        masses[(0.0, above[0])] += zeros
    intervals = sorted(masses)
    gaps = sum(one[1] < other[0] for one, other in itertools.pairwise(intervals))
    while len(intervals) + gaps > keep:  # more powers of two than bins: the two rarest neighbours become one
        at = min(range(len(intervals) - 1), key=lambda i: masses[intervals[i]] + masses[intervals[i + 1]])
        one, other = intervals[at], intervals[at + 1]
        masses[(one[0], other[1])] = masses.pop(one) + masses.pop(other)
        intervals = sorted(masses)
        gaps = sum(one[1] < other[0] for one, other in itertools.pairwise(intervals))
    parts = dict.fromkeys(intervals, 1)
    free = keep - gaps - len(intervals)
    while True:  # halve the bins of the interval that has most in each, while there is room
        wide = {one: masses[one] / parts[one] for one in intervals if _can_halve(one, parts[one], whole, free)}
        if not wide:
            break
        one = max(wide, key=lambda interval: (wide[interval], interval))
        free -= parts[one]
        parts[one] *= 2
    edges = [
        low + (high - low) * part / parts[low, high] for low, high in intervals for part in range(parts[low, high])
    ]
    edges += [high for _, high in intervals]
    distinct = sorted(set(edges))
    if whole:  # the last bin of whole numbers is closed
        distinct[-1] -= 1 if distinct[-1] - 1 > distinct[-2] else 0.5
    return [int(edge) if whole and edge.is_integer() else edge for edge in distinct]


def _can_halve(interval: tuple[float, float], parts: int, whole: bool, free: int) -> bool:
    low, high = interval
    if parts > free or (low == 0 and not whole):  # zeros need no finer bins
        return False
    return not whole or (high - low) % (2 * parts) == 0


def _interval(magnitude: str, whole: bool) -> tuple[float, float]:
    """Return [low, high) of a power of two."""
    if magnitude == "zero":
        return (0.0, 1.0) if whole else (0.0, 0.0)
    power, _, minus = magnitude.partition(" ")
    low, high = math.ldexp(1.0, int(power)), math.ldexp(1.0, int(power) + 1)
    if not minus:
        return low, high
    return (1 - high, 1 - low) if whole else (-high, -low)


def _of_days(kind: str, counts: Mapping[str, int], keep: int) -> dict[str, Any] | None:
    """Return the table of dates; None where the order of day and month is open, or texts have several formats."""
    years, forms = [], Counter[str]()
    for shape, count in counts.items():
        parts = shape.split(" ")
        years.append(int(parts[-1]))
        forms[parts[1] if len(parts) == 3 else ""] += count
    clear = {form for form in forms if "?" not in form}
    signs = {form[1] for form in forms if "?" in form}
    if len(clear) != 1 or not all(sign in form for sign in signs for form in clear):
        return None
    (form,) = clear
    first, last = min(years), max(years)
    table: dict[str, Any] = {"type": kind, "min": f"{first:04d}-01-01", "max": f"{last:04d}-12-31", "cap": True}
    units = {"month": 12, "quarter": 4, "year": 1}
    unit = next((unit for unit, each in units.items() if (last - first + 1) * each <= keep), None)
    return table | {"bins": keep if unit is None else unit} | ({"format": form} if form else {})
