"""Columns of any type: the shape and the cell of a raw text, and the public lists of both.

A shape is a type with a coarse place: whole numbers and numbers by sign and power of two, dates by five years. A cell
is a finer place: a month, a calendar year from 1900 to 2047, a whole number from 128 to 1,023, or a 64th of a power of
two. Both depend on the value alone, and all of them are public. How many persons have each, and labels, come from a
private release, from which `dpgm_core.domain.tables_of_shapes` makes the table of the column.
"""

from __future__ import annotations

import bisect
import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = [
    "CALENDAR",
    "CELLS",
    "COMMON_LABELS",
    "DAYS_AS_NUMBERS",
    "DECIMALS",
    "EDGE",
    "FAR_CODES",
    "LEAST_POWER",
    "MOST_POWER",
    "PARTS",
    "RARE_KINDS",
    "SHAPES",
    "SMALL_POWER",
    "SURE",
    "TIMES",
    "SYMBOLS",
    "WORDS",
    "YEARS",
    "ZEROS",
    "YEAR_POWER",
    "cell_of",
    "cell_starts",
    "cells_of_place",
    "place_of_cell",
    "place_of",
    "date_years",
    "interval_of",
    "number_places",
    "part_of",
    "read_padded",
    "read_thousands",
    "read_zeros",
    "shape_of",
    "take_far_codes",
    "without_symbol",
]

#: Standard deviations of noise: above these a shape certainly occurs, or does if a neighbour certainly does.
SURE, EDGE = 5.0, 1.5

_INTEGER = re.compile(rb"[+-]?(?:0|[1-9][0-9]{0,14})")
_NUMBER = re.compile(rb"([+-]?(?:0|[1-9][0-9]{0,14})?)([.,])([0-9]{1,40})(?:[eE]([+-]?[0-9]{1,3}))?")
_POWER = re.compile(rb"[+-]?[1-9][eE][+-]?[0-9]{1,3}")
_CLOCK = rb"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?"
_TIME = re.compile(_CLOCK)
_MINUTE = re.compile(rb"[0-9]{2}:[0-9]{2}")
_GROUPED = re.compile(rb"([+-]?[1-9][0-9]{0,2})([.,])([0-9]{3}(?:\2[0-9]{3}){0,4})(?:([.,])([0-9]{1,40}))?")
#: Such as 17,100, which counts as of thousands: other numbers tell whether the comma is a decimal sign.
_THOUSANDS = re.compile(rb"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_MOMENT = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ]" + _CLOCK + rb" ?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?")
_MIDNIGHT = re.compile(rb".*[T ]00:00(:00(\.0+)?)?")
#: Two digits are a year at the end, after slashes or dots and without a time: those from 69 on are of 1900, as `%y` has
#: it.
_LOCAL = re.compile(rb"([0-9]{1,2})([/.-])([0-9]{1,2})\2(?:([0-9]{4})(?: (.+))?|(?<=[/.])([0-9]{2}))")
_YEAR_FIRST = re.compile(rb"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})")
_SHORT_FIELDS = re.compile(rb"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_LAST_SHORT_YEAR = 68
#: Formats of a date with a time after a blank, or of one that ends with Z.
_FORMS = {
    "%Y-%m-%d %H:%M": re.compile(rb" [0-9:]{5}"),
    "%Y-%m-%d %H:%M:%S": re.compile(rb" [0-9:]{8}"),
    "%Y-%m-%dT%H:%M:%SZ": re.compile(rb"T[0-9:]{8}Z"),
}
_24_HOURS, _12_HOURS = rb"(?:[01]?[0-9]|2[0-3]):[0-5][0-9]", rb"(?:0?[1-9]|1[0-2]):[0-5][0-9]"
_MINUTES = "%H:%M"
_CLOCKS = {
    _MINUTES: re.compile(_24_HOURS),
    "%H:%M:%S": re.compile(_24_HOURS + rb":[0-5][0-9]"),
    "%I:%M %p": re.compile(_12_HOURS + rb" (?:[AP]M|[ap]m)"),
    "%I:%M%p": re.compile(_12_HOURS + rb"(?:[AP]M|[ap]m)"),
    "%I:%M:%S %p": re.compile(_12_HOURS + rb":[0-5][0-9] (?:[AP]M|[ap]m)"),
}
_CLOCK_SHAPES = {"minute1": _MINUTES, "minute12": "%I:%M %p", "minute12pm": "%I:%M%p", "time12": "%I:%M:%S %p"}
#: Shapes of times of day, and their formats.
TIMES = {"time": None, "minute": _MINUTES, **_CLOCK_SHAPES}
#: Formats of times after a date that is written with a sign.
_TIMES_AFTER = {
    "/": tuple(form for form in _CLOCKS if form != "%I:%M%p"),
    ".": ("%H:%M", "%H:%M:%S"),
    "-": ("%H:%M", "%H:%M:%S"),
}
#: Of days at 0:00, which are days where all are.
_SIGNS_OF_MIDNIGHTS = "/."
#: Whole numbers that are days have shapes of this kind, and this one as numbers.
DAYS_AS_NUMBERS = "date %Y%m%d", "integer 2^24"
_DIGITS = re.compile(rb"((?:19|20)[0-9]{2})([0-9]{2})([0-9]{2})")
_YEAR_FIRST_KINDS = {_DIGITS: DAYS_AS_NUMBERS[0], _YEAR_FIRST: "date %Y/%m/%d", _SHORT_FIELDS: "date %Y-%m-%d"}
#: Symbols of money and percent before and after numbers, with 0 in place of the number.
_BEFORE = {sign.encode(): f"{sign}0" for sign in ("$", "£", "€", "€ ")}
_AFTER = {f"{blank}{sign}".encode(): f"0 {sign}" for sign in "€%" for blank in (" ", "\xa0", "\u202f")} | {b"%": "0%"}
#: The symbol of numbers of which negative ones stand in parentheses, so that there are no others with it.
_NEGATIVE = "(0)"
_SYMBOL = re.compile(
    rb"(-?)(?:(%s)(-?[0-9][0-9.,]*)|([0-9][0-9.,]*)(%s))"
    % (b"|".join(map(re.escape, reversed(_BEFORE))), b"|".join(map(re.escape, _AFTER)))
)
#: Whole numbers such as 27.0, as programs write those of columns with missing values.
ZEROS = "number.0"
_DAYS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
DECIMALS = 4  # so many and more count alike, and stand for any number of decimals

#: Powers of two, below which there is zero; whole numbers begin with 0.
LEAST_POWER, MOST_POWER = -16, 46
#: The power of two of 1,000, below which no digits are grouped, and shapes of numbers with one sign of thousands.
_THOUSAND = 9
_ONCE = frozenset(f"grouped.0 {minus}2^{power}" for minus in ("", "-") for power in range(_THOUSAND, 20))
#: Powers of two of numbers with a symbol: whole ones, those with one decimal and with two, and with grouped digits.
_LEAST_OF_SYMBOL = {"integer": 0, "number.1": -4, "number,1": -4, "number.2": -7, "number,2": -7}
_LEAST_OF_SYMBOL |= {f"grouped{sign}{decimals}": _THOUSAND for sign in ".," for decimals in (0, 2)}
_SHARES = ("integer", "number.1", "number,1", "number.2", "number,2")
_AMOUNTS = {
    sign: ("integer", *(f"number{sign}{one}" for one in (1, 2)), *(f"grouped{sign}{one}" for one in (0, 2)))
    for sign in ".,"
}
#: The kinds of numbers that a symbol goes with, and the largest power of two.
SYMBOLS = {
    symbol: (_AMOUNTS[sign], 30) for symbol, sign in (("$0", "."), ("£0", "."), ("€0", "."), ("€ 0", ","), ("0 €", ","))
} | {"0%": (_SHARES, 9), "0 %": (_SHARES, 9), _NEGATIVE: (_AMOUNTS["."], 30)}
#: Years of dates, by five; those outside count with the first and the last.
_FIRST_YEAR, _LAST_YEAR, YEARS = 1900, 2095, 5
_SHORT_YEARS = range(1970, 2065, YEARS)  # all of these have two digits of their own

#: Whole numbers below this power of two may be codes.
SMALL_POWER = 7
#: A power of two has so many cells, and up to this power one for each whole number.
_CELLS, _SINGLE = 64, 9
#: Whole numbers that may be calendar years, in the power of two of most of them, have a cell each.
YEAR_POWER, CALENDAR = 10, 1900
#: Words of which the others are likely where one occurs, and certain but for the last two groups; last, marks of what
#: is missing.
WORDS = (
    ("no", "yes"), ("n", "y"), ("false", "true"), ("female", "male"), ("low", "medium", "high"),
    ("f", "m", "w", "d", "x"),
    ("na", "n/a", "nan", "nil", "none", "null", "unknown", "not known", "not stated", "?", "-"),
)  # fmt: skip


#: Texts such as 12A and V58.1, which beside numbers are codes as these are, and no remarks.
_CODE = re.compile(rb"[0-9.]{1,7}[A-Za-z]|[A-Za-z][0-9.]{1,7}")
_PADDED = re.compile(rb"0[0-9]{1,14}")
#: How words are written: `yes`, `Yes` and `YES`.
_COMMON_WORDS = dict.fromkeys(
    form.encode() for group in WORDS for word in group for form in (word, word.capitalize(), word.upper())
)


def shape_of(raw: bytes) -> str:
    """Return the shape of a text, one of `SHAPES`. Never raises.

    Examples
    --------
    >>> [shape_of(text) for text in (b"37", b"-0.5", b"1,75", b"007", b"2019-12-31", b"31.12.2019", b"03/04/2019")]
    ['integer 2^5', 'number.1 -2^-1', 'number,2 2^0', 'padded', 'date 2015', 'date %d.%m.%Y 2015', 'date ?/?/%Y 2015']
    >>> shape_of(b"20210514"), shape_of(b"20211514"), shape_of(b"5/14/2021 3:04 PM"), shape_of(b"5/14/70")
    ('date %Y%m%d 2020', 'integer 2^24', 'datetime %m/%d/%Y %I:%M %p 2020', 'date %m/%d/%y 1970')
    >>> shape_of(b"1,431.33"), shape_of(b"1.234.567"), shape_of(b"1,431"), shape_of(b"14:05"), shape_of(b"2:05 PM")
    ('grouped.2 2^10', 'grouped,0 2^20', 'grouped.0 2^10', 'minute', 'minute12')
    >>> shape_of(b"27.0"), shape_of(b"27.5"), shape_of(b"0.12345"), shape_of(b"$5.0")
    ('number.0 2^4', 'number.1 2^4', 'number.4 2^-4', '$0 number.1 2^2')
    >>> shape_of(b"$5"), shape_of(b"-$1,431"), shape_of(b"12.5 %"), shape_of(b"(44.91)")
    ('$0 integer 2^2', '$0 grouped.0 -2^10', '0 % number.1 2^3', '(0) number.2 -2^5')
    """
    day = _day_of(raw)
    if day is not None:
        short = day[0].endswith("%y")
        return f"{day[0]} {max(_SHORT_YEARS[0], min(_SHORT_YEARS[-1], _years(day[1]))) if short else _years(day[1])}"
    if _INTEGER.fullmatch(raw):
        return f"integer {place_of(float(raw), 0)}"
    match = None if _THOUSANDS.fullmatch(raw) else _NUMBER.fullmatch(raw)
    if match is not None:
        whole, sign, fraction, exponent = match.groups()
        decimals = DECIMALS if exponent else min(len(fraction), DECIMALS)
        value = float(b"%s.%se%s" % (whole, fraction, exponent or b"0"))
        if fraction == b"0" and sign == b"." and not exponent:
            return f"{ZEROS} {place_of(value, 0)}"
        return f"number{sign.decode()}{decimals} {place_of(value, LEAST_POWER)}"
    if _POWER.fullmatch(raw):
        return f"number.{DECIMALS} {place_of(float(raw), LEAST_POWER)}"
    grouped = _grouped_shape(raw)
    if grouped is not None:
        return grouped
    symbol, bare = without_symbol(raw)
    if symbol:
        kinds, most = SYMBOLS[symbol]
        for shape in filter(None, (_grouped_shape(bare), shape_of(bare))):
            kind, _, place = shape.replace(ZEROS, "number.1").rpartition(" ")
            if kind in kinds:
                minus, _, power = place.partition("2^")
                return f"{symbol} {kind} {f'{minus}2^{min(most, int(power))}' if power else place}"
    if _TIME.fullmatch(raw):
        return "minute" if _MINUTE.fullmatch(raw) else "time"
    if raw in _COMMON_WORDS:
        return "word"
    text = "padded" if _PADDED.fullmatch(raw) else "code" if _CODE.fullmatch(raw) else "text"
    return next((shape for shape, form in _CLOCK_SHAPES.items() if _CLOCKS[form].fullmatch(raw)), text)


def _grouped_shape(raw: bytes) -> str | None:
    """Return the shape of a number with grouped digits; None for another text."""
    match = _GROUPED.fullmatch(raw)
    if match is None or match[4] == match[2]:
        return None
    sign = "." if match[2] == b"," else ","
    return f"grouped{sign}{min(len(match[5] or b''), DECIMALS)} {place_of(_number_of(raw, sign), 0)}"


def without_symbol(raw: bytes) -> tuple[str, bytes]:
    """Return the symbol of a number, which is empty where there is none, and the text without it."""
    if raw[:1] == b"(" and raw[-1:] == b")":
        return _NEGATIVE, b"-" + raw[1:-1]
    match = _SYMBOL.fullmatch(raw)
    if match is None:
        return "", raw
    minus, before, number, other, after = match.groups()
    return _AFTER[after] if after else _BEFORE[before], minus + (number or other)


def _day_of(raw: bytes) -> tuple[str, int, int | None] | None:
    """Return the type, year and month of a date; no month where the order is open. None for another text."""
    match = next(filter(None, (form.fullmatch(raw) for form in (_MOMENT, *_YEAR_FIRST_KINDS))), None)
    if match is not None:
        year, month, day = (int(part) for part in match.groups()[:3])
        kind = _YEAR_FIRST_KINDS.get(match.re, "")
        if match.re is _MOMENT:
            kind = "date" if match[4] is None or _MIDNIGHT.fullmatch(raw) else f"datetime{_written(match[4])}"
        return (kind, year, month) if _is_day(year, month, day) else None
    match = _LOCAL.fullmatch(raw)
    if match is None:
        return None
    one, sign, other, time = int(match[1]), match[2].decode(), int(match[3]), match[5]
    year = int(match[4] or (b"20" if int(match[6]) <= _LAST_SHORT_YEAR else b"19") + match[6])
    months = {
        order: month
        for order, month, day in (("%d{0}%m", other, one), ("%m{0}%d", one, other))
        if _is_day(year, month, day)
    }
    forms = [f" {form}" for form in _TIMES_AFTER[sign] if time is not None and _CLOCKS[form].fullmatch(time)]
    if not months or (time is not None and not forms):
        return None
    order = next(iter(months)) if len(months) == 1 else "?{0}?"
    is_midnight = forms == [f" {_MINUTES}"] and sign in _SIGNS_OF_MIDNIGHTS and time in (b"0:00", b"00:00")
    kind = "datetime" if forms and not is_midnight else "date"
    form = f"{order.format(sign)}{sign}{'%Y' if match[4] else '%y'}{''.join(forms)}"
    return f"{kind} {form}", year, months.get(order)


def _written(time: bytes) -> str:
    """Return the format of a time that follows a date, with a blank before it; empty for ISO 8601."""
    return next((f" {form}" for form, pattern in _FORMS.items() if pattern.fullmatch(time)), "")


def read_thousands(
    shapes: Mapping[str, int], counts: Mapping[str, int], cells: Mapping[str, int]
) -> tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], dict[str, str]]:
    """Return shapes, those that certainly occur, and cells, without a sign of thousands, and which signs there are.

    17,100 is 17100 unless others, such as 0,5, show that the comma is a decimal sign. 17.100 is so where others are
    whole, and none has fewer decimals or is below 1; then its place is ten powers of two higher, nearly, and cells are
    of no use. Each keeps a kind of its own, as it has noise.
    """
    kinds = {shape.rpartition(" ")[0] for shape in counts}
    grouped = {shape for shape in counts if shape.startswith("grouped.")}
    if grouped and grouped <= _ONCE and any(kind.startswith(("number,", "grouped,")) for kind in kinds):
        shapes, counts, cells = _as_decimals(shapes), _as_decimals(counts), _cells_as_decimals(cells)
        kinds = kinds - {"grouped.0"}
    once = "number.3"
    small = ("zero", *(place for place in number_places(LEAST_POWER) if "^-" in place))
    whole = {"integer", once} <= kinds and kinds.isdisjoint(f"number.{one}" for one in (0, 1, 2, DECIMALS))
    whole = whole and counts.keys().isdisjoint(f"{once} {place}" for place in small)
    for sign, decimal in (",.", ".,"):
        if any(kind.startswith(f"grouped{decimal}") for kind in kinds) or (whole and sign == "."):
            both = [_without_thousands(one, sign, decimal) for one in (shapes, counts)]
            is_once = any(shape.startswith("integer once ") for shape in both[1])
            return both[0], both[1], {} if is_once else cells, {"thousands": sign, "decimal": decimal}
    return shapes, counts, cells, {}


def read_padded(
    shapes: Mapping[str, int], counts: Mapping[str, int]
) -> tuple[Mapping[str, int], Mapping[str, int], dict[str, str]]:
    """Return shapes, and those that certainly occur, with 02139 among whole numbers, and the format of these.

    They are so where all whole numbers have as many digits, as codes do. Those with zeros are spread evenly by size.
    """
    values = {shape for shape in counts if " " in shape}
    powers = [int(shape.removeprefix("integer 2^")) for shape in values if shape.startswith("integer 2^")]
    if "padded" not in counts or not powers or len(powers) < len(values):
        return shapes, counts, {}
    digits = max(2, len(str(2 ** max(powers))))
    least = 10 ** (digits - 1)
    if 2 ** (min(powers) + 1) <= least:
        return shapes, counts, {}
    both = []
    for one in (shapes, counts):
        spread = {shape: count for shape, count in one.items() if shape != "padded"}
        for power in range(least.bit_length()):
            share = (min(least, 2 ** (power + 1)) - 2**power) / least
            spread[f"integer 2^{power}"] = spread.get(f"integer 2^{power}", 0) + round(share * one["padded"])
        both.append(spread)
    return both[0], both[1], {"format": f"%0{digits}d"}


def _as_decimals(shapes: Mapping[str, int]) -> dict[str, int]:
    """Return shapes in which numbers such as 17,100 have three decimals."""
    counts = dict[str, int]()
    for shape, count in shapes.items():
        if not shape.startswith("grouped."):
            counts[shape] = count
        elif shape in _ONCE:
            minus, _, power = shape.removeprefix("grouped.0 ").partition("2^")
            place = f"number,3 once {minus}2^{max(0, int(power) - 10)}"
            counts[place] = counts.get(place, 0) + count
    return counts


def _cells_as_decimals(cells: Mapping[str, int]) -> dict[str, int]:
    """Return cells in which whole numbers of four to six digits are so many thousandths, spread by width."""
    counts = Counter[str]()
    for cell, count in cells.items():
        power = int(cell.rpartition(" ")[0].rpartition("^")[2]) if "^" in cell else 0
        if not 10 <= power < 20:
            counts[cell] += count
            continue
        low, high = (end / 1000 for end in interval_of(cell, 0))
        for place in dict.fromkeys(place_of(end, 0) for end in (low, high)):
            for part in cells_of_place(place):
                start, end = interval_of(part, 0)
                counts[part] += round(count * max(0.0, min(high, end) - max(low, start)) / (high - low))
    return counts


def _without_thousands(shapes: Mapping[str, int], sign: str, decimal: str) -> dict[str, int]:
    counts, once, several = dict[str, int](), "number.3 ", f"grouped{decimal}"
    for shape, count in shapes.items():
        minus, _, power = shape.removeprefix(once).partition("2^")
        if shape.startswith(several):
            kind, _, place = shape.removeprefix(several).partition(" ")
            counts[f"integer grouped {place}" if kind == "0" else f"number{decimal}{kind} grouped {place}"] = count
        elif sign == "," or not shape.startswith(once):
            counts[shape] = count
        elif power and 0 <= int(power) <= MOST_POWER - 10:
            counts[f"integer once {minus}2^{int(power) + 10}"] = count
    return counts


def read_zeros(
    shapes: Mapping[str, int], counts: Mapping[str, int], least: float
) -> tuple[dict[str, int], dict[str, int]]:
    """Return shapes, and those that certainly occur, in which 27.0 is whole if all numbers are, else of one decimal.

    Numbers of decimals that are as large as these occur from `least` persons on.
    """
    places = {shape.rpartition(" ")[2] for shape in counts if shape.startswith(ZEROS)} - {"zero"}
    some = {
        shape: count
        for shape, count in shapes.items()
        if shape.startswith("number") and (shape in counts or (count >= least and shape.rpartition(" ")[2] in places))
    }
    kind = "integer zeros" if all(shape.startswith(ZEROS) for shape in some) else "number.1 zeros"
    both = [{shape.replace(ZEROS, kind): count for shape, count in one.items()} for one in (shapes, {**counts, **some})]
    return both[0], both[1]


def _number_of(raw: bytes, decimal: str) -> float:
    """Return the number that a text with this decimal sign is; the other sign groups digits."""
    return float(raw.replace(b"," if decimal == "." else b".", b"").replace(b",", b"."))


def place_of(value: float, least: int) -> str:
    """Return the power of two at or below the size of a number, with a minus before it for a negative one."""
    power = math.frexp(abs(value))[1] - 1 if math.isfinite(value) else MOST_POWER
    if value == 0 or power < least:
        return "zero"
    return f"{'-' if value < 0 else ''}2^{min(MOST_POWER, power)}"


def _years(year: int) -> int:
    return max(_FIRST_YEAR, min(_LAST_YEAR, year // YEARS * YEARS))


def _is_day(year: int, month: int, day: int) -> bool:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return year > 0 and 1 <= month <= 12 and 1 <= day <= _DAYS[month] - (month == 2 and not leap)


def number_places(least: int, most: int = MOST_POWER) -> list[str]:
    """The places of numbers, from the most negative to the largest."""
    powers = [f"2^{power}" for power in range(least, most + 1)]
    return [*(f"-{power}" for power in reversed(powers)), "zero", *powers]


#: Formats of dates that are written with a sign, and the sign.
_LOCAL_FORMS = {
    f"{order.format(sign)}{sign}%Y": sign for sign in _TIMES_AFTER for order in ("%d{0}%m", "%m{0}%d", "?{0}?")
}
#: Types of shapes that few columns have. There are many, so they need more persons, or noise would often have one.
RARE_KINDS = (
    *_YEAR_FIRST_KINDS.values(),
    *(f"date {form[:-1]}y" for form, sign in _LOCAL_FORMS.items() if sign in "/."),
    *(f"date {form} {_MINUTES}" for form, sign in _LOCAL_FORMS.items() if sign in _SIGNS_OF_MIDNIGHTS),
    *(f"datetime {form} {time}" for form, sign in _LOCAL_FORMS.items() for time in _TIMES_AFTER[sign]),
    *(f"{symbol} {kind}" for symbol, (kinds, _) in SYMBOLS.items() for kind in kinds),
)


def _list_shapes() -> Iterable[str]:
    yield from ("text", "word", "code", "padded", *TIMES)
    yield from (f"{kind} {place}" for kind in ("integer", ZEROS) for place in number_places(0))
    large = [place for place in number_places(_THOUSAND) if place != "zero"]
    yield from (
        f"grouped{sign}{decimals} {place}" for sign in ".," for decimals in range(DECIMALS + 1) for place in large
    )
    yield from (
        f"number{sign}{decimals} {place}"
        for sign in ".,"
        for decimals in range(1, DECIMALS + 1)
        for place in number_places(LEAST_POWER)
    )
    kinds = ("date", *(f"date {form}" for form in _LOCAL_FORMS), "datetime")
    kinds += tuple(f"datetime {form}" for form in _FORMS)
    kinds += tuple(kind for kind in RARE_KINDS if kind.startswith("date"))
    yield from (f"{kind} {year}" for kind in kinds for year in (_SHORT_YEARS if kind.endswith("%y") else date_years()))
    yield from (
        f"{symbol} {kind} {place}"
        for symbol, (kinds_of_symbol, most) in SYMBOLS.items()
        for kind in kinds_of_symbol
        for place in number_places(_LEAST_OF_SYMBOL[kind], most)
        if (place != "zero" or kind[0] != "g") and (symbol != _NEGATIVE or place[0] in "-z")
    )


#: The least share of a place's persons that the code there has, if it is one.
_MOST = 0.95
_AXIS = {place: at for at, place in enumerate(number_places(LEAST_POWER))}
#: Codes of what is missing, which may be far from all other numbers, and their places; those far away first.
FAR_CODES = {code: place_of(code, 0) for code in (9999, -9999, 999, -999, 99, -99, -9)}


def take_far_codes(
    sure: Mapping[str, int], edge: Mapping[str, int], cells: Mapping[str, int], most: int, least: float, unclear: float
) -> tuple[Mapping[str, int], Mapping[str, int], list[int]]:
    """Return shapes of numbers without those of up to `most` codes such as 999 that are far from others, and the codes.

    Their cells have `least` persons, and nearly all of their place but for the noise, `unclear`; nobody is beyond them.
    """
    codes: list[int] = []
    for code, place in FAR_CODES.items():
        at = _AXIS[place]
        shape = next((one for one in (f"integer {place}", f"integer zeros {place}") if one in sure), "")
        away = {one: math.copysign(1, code) * (at - _AXIS[one.rpartition(" ")[2]]) for one in {*sure, *edge}}
        persons = cells.get(str(cell_of(b"%d" % code)), 0)
        is_far = len(codes) < most and len(sure) > 1 and all(away[one] > 1 for one in sure if one != shape)
        if shape in sure and is_far and persons >= max(least, _MOST * sure[shape] - unclear):
            sure = {one: count for one, count in sure.items() if one != shape}
            edge = {one: count for one, count in edge.items() if away[one] > 0}
            codes.append(code)
    return sure, edge, codes


def date_years() -> range:
    return range(_FIRST_YEAR, _LAST_YEAR + 1, YEARS)


#: All shapes there are.
SHAPES = tuple(_list_shapes())


def cell_of(raw: bytes) -> str | None:
    """Return the cell of a text, one of `CELLS`; None for what is neither a number nor a date whose month is clear.

    Examples
    --------
    >>> [cell_of(text) for text in (b"37", b"-0.5", b"0", b"2019-12-31", b"31.12.2019", b"03/04/2019")]
    ['2^5 10', '-2^-1 0', 'zero', '2019-12', '2019-12', None]
    >>> cell_of(b"Yes"), cell_of(b"not known"), cell_of(b"cook")
    ('word Yes', 'word not known', None)
    """
    if raw in _COMMON_WORDS:
        return f"word {raw.decode()}"
    number = _number_in(raw)
    if number is not None:
        return number[0] if number[0] == "zero" else f"{number[0]} {_cell_at(*number)[0]}"
    day = _day_of(raw)
    if day is None or day[2] is None:
        return None
    _, year, month = day
    if _FIRST_YEAR <= year < _LAST_YEAR + YEARS:
        return f"{year}-{month:02d}"
    return f"{_FIRST_YEAR if year < _FIRST_YEAR else _LAST_YEAR + YEARS - 1}-01"


def _number_in(raw: bytes) -> tuple[str, float] | None:
    """Return the place and the size of a number; None for another text."""
    kind, _, place = shape_of(raw).rpartition(" ")
    symbol, bare = without_symbol(raw)
    if symbol and kind.startswith(symbol):
        kind, raw = kind.removeprefix(f"{symbol} "), bare
    if not kind.startswith(("integer", "number", "grouped")):
        return None
    decimal = kind[7] if kind[0] == "g" else "," if kind[:7] == "number," else "."
    return place, abs(_number_of(raw, decimal))


def _cell_at(place: str, size: float) -> tuple[int, float]:
    """Return the cell of a size in a place, and the share of the cell that is below it."""
    power = int(place.rpartition("^")[2])
    starts = (*cell_starts(power), math.ldexp(1.0, power + 1))
    at = max(0, min(len(starts) - 1, bisect.bisect_right(starts, size)) - 1)
    return at, (size - starts[at]) / (starts[at + 1] - starts[at])


def part_of(raw: bytes) -> str | None:
    """Return in which 64th of its cell a number lies by its size, one of `PARTS`; None for other texts and for 0.

    Examples
    --------
    >>> [part_of(text) for text in (b"151.2", b"-33.87", b"1700000000", b"0", b"yes")]
    ['part 12', 'part 47', 'part 20', None, None]
    """
    number = _number_in(raw)
    if number is None or number[0] == "zero":
        return None
    return PARTS[max(0, min(_CELLS - 1, int(_CELLS * _cell_at(*number)[1])))]


def place_of_cell(cell: str) -> str:
    """Return the place that a cell is a part of.

    >>> place_of_cell("2^5 10"), place_of_cell("zero"), place_of_cell("2019-12"), place_of_cell("word not known")
    ('2^5', 'zero', '2015', 'word')
    """
    return str(_years(int(cell[:4]))) if cell[:4].isdigit() else cell.partition(" ")[0]


@functools.cache
def cell_starts(power: int) -> tuple[float, ...]:
    """Return where the cells of a power of two begin; the last one ends with it."""
    low = math.ldexp(1.0, power)
    if power == YEAR_POWER:
        wide = 1 << (power - _CELLS.bit_length() + 1)
        return (*map(float, range(int(low), CALENDAR, wide)), *map(float, range(CALENDAR, 2 * int(low))))
    count = max(_CELLS, 1 << power) if power in range(_SINGLE + 1) else _CELLS
    return tuple(low + low * cell / count for cell in range(count))


def cells_of_place(place: str) -> tuple[str, ...]:
    """The cells of a place of numbers, of five years, or of words."""
    if place == "zero":
        return (place,)
    if place == "word":
        return tuple(f"word {word.decode()}" for word in _COMMON_WORDS)
    if "^" in place:
        return tuple(f"{place} {cell}" for cell in range(len(cell_starts(int(place.rpartition("^")[2])))))
    return tuple(f"{year}-{month:02d}" for year in range(int(place), int(place) + YEARS) for month in range(1, 13))


def interval_of(place: str, scale: int) -> tuple[float, float]:
    """Return [low, high) of a place or cell, in units; an empty one of a cell without any value."""
    tiny = 0.0 if scale else math.ldexp(1.0, LEAST_POWER)
    if place == "zero":
        return (0.0, 1.0) if scale else (-tiny, tiny)
    minus, _, power = place.partition("2^")
    power, _, cell = power.partition(" ")
    low, high = math.ldexp(1.0, int(power)), math.ldexp(1.0, int(power) + 1)
    if cell:
        starts = (*cell_starts(int(power)), high)
        low, high = starts[int(cell)], starts[int(cell) + 1]
    if scale:
        low, high = float(math.ceil(low * scale)), float(math.ceil(high * scale))
    if not minus:
        return low, high
    return (1 - high, 1 - low) if scale else (-high, -low)


#: All cells there are.
CELLS = tuple(
    cell for place in (*number_places(LEAST_POWER), *map(str, date_years()), "word") for cell in cells_of_place(place)
)
#: Parts of a cell, of all cells of a column together, so that of a column in one or two cells more is told.
PARTS = tuple(f"part {at}" for at in range(_CELLS))
#: Labels that have noise whether anybody has them or not: small whole numbers, and words.
COMMON_LABELS = (*map(str, range(2**SMALL_POWER)), *(word.decode() for word in _COMMON_WORDS))
