"""Labels of a column: matching raw text, labelling, merging, and lookup of values that a user typed."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Literal

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core.domain.bins import DAY, UNIT_DAYS, UNITS, calendar_edges
from dpgm_core.domain.values import Values
from dpgm_core.errors import DomainError

__all__ = [
    "EXACT",
    "Matching",
    "bin_labels",
    "calendar_labels",
    "check_apart",
    "find_alike",
    "merge_labels",
    "place_of",
]

#: What bins are called, whatever their edges, and a few texts more.
_OF_BINS = re.compile(r"any|(below|before|up to|from) .*|\[.*[)\]]|-?\d[-\d.:/+TWQe ]*(to -?\d+)?", re.DOTALL)


def bin_labels(name: str, edges: Sequence[float], values: Values, *, cap: bool = False) -> list[str]:
    """One label per bin [e_0, e_1), [e_1, e_2), ..., the last one closed; it says exactly what is in the bin.

    Raises DomainError for a bin of integers or days that holds none.
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
    at = len(edges) - 2 if edges[-1] == 0 else bisect.bisect_right(edges, 0.0) - 1
    if values.digits is not None and 0 <= at < len(labels):
        low, high = edges[at : at + 2]
        units = round((high - low) * 10.0**values.digits, 6)
        # Of numbers with so many digits only 0 is less than a unit from it, and what `cap` puts there.
        if low * high == 0 and (units < 1 or (units == 1 and (high == 0 or at < len(labels) - 1))):
            labels[at] = "up to 0" if cap and at == 0 else "0+" if cap and at == len(labels) - 1 else "0"
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
    """The shortest text of a number that reads back."""
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
    labels = calendar_labels(edges, values) or [
        _day(low) if low == high else f"{_day(low)}/{_day(high)}" for low, high in bins
    ]
    _open(labels, edges, cap, f"up to {_day(bins[0][1])}", f"from {_day(bins[-1][0])}")
    return labels


def _moments(edges: Sequence[float], values: Values, cap: bool) -> list[str]:
    texts = [_moment(edge, values) for edge in edges]
    labels = [f"{low}/{high}" for low, high in itertools.pairwise(texts)]
    if values.kind == "datetime":
        labels = calendar_labels(edges, values) or labels
    _open(labels, edges, cap, f"before {texts[1]}", f"from {texts[-2]}")
    return labels


def calendar_labels(edges: Sequence[float], values: Values) -> list[str] | None:
    """Return the names of a calendar's units, where each bin is one, or a part at an end; else None."""
    if len(edges) < 3 or not all(map(math.isfinite, edges)) or not _written(edges[0], values):
        return None
    per_day = 1 if values.kind == "date" else 86_400
    # The last edge of days stands half a unit above a single last value.
    upper = math.floor(edges[-1]) if values.kind == "date" else edges[-1]
    for unit in UNITS[: 5 if values.kind == "date" else 6]:
        # The width of a bin tells the unit, or the attempt would be as long as the calendar.
        least = UNIT_DAYS[unit] * per_day
        inner = [high - low for low, high in itertools.pairwise(edges[1:-1])]
        if inner and not least <= min(inner) <= max(inner) <= least * 1.2:
            continue
        if edges[-1] - edges[0] > 1.2 * least * (len(edges) - 1) + per_day:
            continue
        try:
            same = calendar_edges("", edges[0], upper, unit, values) == tuple(edges)
        except DomainError:
            continue
        if same:
            labels = [_UNIT_TEXTS[unit](values.moment(edge)) for edge in edges[:-1]]
            return labels if len(set(labels)) == len(labels) else None
    return None


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


# --- Rules by which raw texts match labels --------------------------------------------------------

_NUMERAL = re.compile(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")
_SYMBOL = re.compile(r"[^\d+\-.,\r\n\t]{0,10}0[^\d+\-.,\r\n\t]{0,10}")
_PLAIN_DIGITS = 40  # numbers of more digits are compared as a mantissa and an exponent


@frozen(kw_only=True)
class Matching:
    """Rules by which a raw text is a label: both are brought into one form and compared byte for byte.

    case: whether upper and lower case differ. blanks: "keep", or "strip" those at both ends. numbers: numbers match by
    value, so that `1.0`, `01` and `1` are one. thousands: the sign that groups digits, such as ",", dropped from
    numbers whose groups are whole. decimal: the sign before their fraction, "." or ",". symbol: what numbers may have
    before or after them, with 0 in their place, such as "$0" or "0 %"; in "(0)" are negative ones. Raises DomainError.

    >>> Matching(case=False, blanks="strip").form(b" Yes ")
    b'yes'
    >>> german = Matching(numbers=True, thousands=".", decimal=",")
    >>> german.form(b"1.250,50"), german.form(b"1,250.5")
    (b'1250.5', b'1,250.5')
    >>> [Matching(symbol="$0").numeral(text) for text in (b"$3.50", b"-$3", b"$ 3", b"3")]
    [b'3.50', b'-3', b'3', b'3']
    >>> Matching(symbol="(0)").numeral(b"(3.50)"), Matching(symbol="(0)").numeral(b"")
    (b'-3.50', b'')
    """

    case: bool = True
    blanks: Literal["keep", "strip"] = "keep"
    numbers: bool = False
    thousands: str | None = None
    decimal: str = "."
    symbol: str | None = None
    _local: re.Pattern[str] | None = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        for key, value in (("case", self.case), ("numbers", self.numbers)):
            if not isinstance(value, bool):
                raise DomainError(f"{key} must be true or false, got {value!r}")
        if self.blanks not in ("keep", "strip"):
            raise DomainError(f"blanks must be 'keep' or 'strip', got {self.blanks!r}")
        if self.decimal not in (".", ","):
            raise DomainError(f"decimal must be '.' or ',', got {self.decimal!r}")
        sign = self.thousands
        if sign is not None and not (isinstance(sign, str) and len(sign) == 1 and (sign in ".,'_" or _is_gap(sign))):
            raise DomainError(f"thousands must be one sign such as ',' or '.' or a blank, got {sign!r}")
        if sign == self.decimal:
            raise DomainError(f"thousands and decimal are both {sign!r}; give each a sign of its own")
        if self.symbol is not None and not (
            isinstance(self.symbol, str) and _SYMBOL.fullmatch(self.symbol) and self.symbol != "0"
        ):
            raise DomainError(f"symbol must be a sign with 0 in place of numbers, as in '$0', got {self.symbol!r:.60}")
        local = None
        if sign is not None or self.decimal != "." or self.symbol is not None:
            group, point = re.escape(sign or ""), re.escape(self.decimal)
            # Groups of two are those of lakh and crore.
            grouped = rf"[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})*{group}[0-9]{{3}}|" if sign else ""
            number = rf"([+-]?)({grouped}[0-9]*)(?:{point}([0-9]*))?([eE][+-]?[0-9]{{1,9}})?"
            before, after = (re.escape(part.strip()) for part in (self.symbol or "0").split("0"))
            before, after = rf"(?:{before}\s*)?" if before else "", rf"(?:\s*{after})?" if after else ""
            local = re.compile(rf"([+-]?){before}{number}{after}" if self.symbol else f"(){number}")
        object.__setattr__(self, "_local", local)

    @property
    def typed(self) -> Matching:
        """The rules for values that are no texts, such as numbers of Parquet: they have no signs of a country.

        >>> Matching(numbers=True, decimal=",").typed.form(b"1.50")
        b'1.5'
        """
        return self if self._local is None else evolve(self, thousands=None, decimal=".", symbol=None)

    def form(self, raw: bytes) -> bytes:
        """The form in which a raw text is compared. Never raises.

        >>> [Matching(numbers=True).form(text) for text in (b"01", b"1.0", b"1e0", b"-0", b"one")]
        [b'1', b'1', b'1', b'0', b'one']
        """
        if self.blanks == "strip":
            raw = _text(raw).strip().encode("utf-8", "surrogateescape")
        if self.numbers:
            spelled = self.numeral(raw)
            number = None if spelled is None else _canonical(spelled)
            if number is not None:
                return number
            if spelled is None and _canonical(raw) is not None:
                return b"\0" + raw  # a number under other signs, which must not be taken for one under these
        return raw if self.case else _text(raw).casefold().encode("utf-8", "surrogateescape")

    def numeral(self, raw: bytes) -> bytes | None:
        """A number's text with "." and without groups; None for a text that these signs make no number.

        >>> us = Matching(thousands=",")
        >>> us.numeral(b"1,250.5"), us.numeral(b"12,50"), us.numeral(b"nan")
        (b'1250.5', None, b'nan')
        """
        if self._local is None:
            return raw
        text = _text(raw).strip()
        match = self._local.fullmatch(text)
        if match is None:
            return None if any(sign in text for sign in (".", ",", self.thousands or ".")) else raw
        first, sign, digits, fraction, exponent = (part or "" for part in match.groups())
        if self.symbol == "(0)" and text[:1] == "(":
            first = "-"
        whole = digits if self.thousands is None else digits.replace(self.thousands, "")
        return f"{first}{sign}{whole}{'.' + fraction if fraction else ''}{exponent}".encode()


#: Byte for byte.
EXACT = Matching()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _is_gap(sign: str) -> bool:
    return (sign.isspace() and sign not in "\n\r") or sign == "\u2019"


def _canonical(raw: bytes) -> bytes | None:
    """One spelling for each decimal number, whatever its length; None for what is none."""
    match = _NUMERAL.fullmatch(raw)
    if match is None:
        return None
    sign, whole, fraction, power = (part or b"" for part in match.groups())
    if not whole and not fraction:
        return None
    digits = (whole + fraction).lstrip(b"0")
    shift = int(power or b"0") - len(fraction)
    stripped = digits.rstrip(b"0")
    if not stripped:
        return b"0"
    shift += len(digits) - len(stripped)
    minus = b"-" if sign == b"-" else b""
    if 0 <= shift <= _PLAIN_DIGITS - len(stripped):
        return minus + stripped + b"0" * shift
    if -_PLAIN_DIGITS <= shift < 0:
        padded = stripped.rjust(1 - shift, b"0")
        return minus + padded[:shift] + b"." + padded[shift:]
    return minus + stripped + b"e%d" % shift


# --- Merged codes ---------------------------------------------------------------------------------


def merge_labels(name: str, labels: Sequence[str], codes: object) -> tuple[list[int], tuple[str, ...]]:
    """Old code -> new code as plain numbers, and the label of each new one; those of single codes stay.

    codes: the new code of each label, onto 0, 1, ... without a gap. Raises DomainError.
    """
    new = _merge(name, len(labels), codes)
    counted = Counter(new)
    taken, merged = set(labels), [""] * len(counted)
    for code, into in enumerate(new):
        if counted[into] == 1:
            merged[into] = labels[code]
        elif not merged[into]:
            label = f"other ({counted[into]} labels)"
            texts = itertools.chain([label], (f"{label} {number}" for number in itertools.count(2)))
            merged[into] = next(text for text in texts if text not in taken)
            taken.add(merged[into])
    return new, tuple(merged)


def _merge(name: str, size: int, codes: object) -> list[int]:
    """Old code -> new code as plain numbers, onto 0, 1, ... without a gap."""
    if isinstance(codes, (str, bytes)) or not isinstance(codes, (Sequence, np.ndarray)):
        raise DomainError(f"attribute {name!r}: a merge must be a list of new codes, got {type(codes).__name__}")
    new = list(codes)
    if len(new) != size:
        raise DomainError(f"attribute {name!r}: a merge must give each of its {size} codes a new one, got {len(new)}")
    for code in new:
        if not isinstance(code, (int, np.integer)) or isinstance(code, bool) or code < 0:
            raise DomainError(f"attribute {name!r}: a new code must be a whole number from 0 on, got {code!r}")
    plain = [int(code) for code in new]
    used = set(plain)
    missing = next(code for code in range(size + 1) if code not in used)
    if missing <= max(used):
        raise DomainError(
            f"attribute {name!r}: the merge leaves new code {missing} empty; number them 0, 1, ... without gaps"
        )
    return plain


# --- Places and codes of values that a user typed -------------------------------------------------


def find_alike(labels: Sequence[str], matching: Matching, text: str) -> int | None:
    """The code of the one label that a text is by the rules of its column; None if there is none."""
    form = matching.form(text.encode("utf-8", "surrogatepass"))
    codes = [code for code, label in enumerate(labels) if matching.form(label.encode("utf-8", "surrogatepass")) == form]
    return codes[0] if len(codes) == 1 else None


def place_of(values: Values, matching: Matching, value: object) -> float | None:
    """Where a value stands: a text in the column's format, a float, a date or a time; None where it stands nowhere.

    values: of a kind with an axis, or "text" for plain bins of numbers. Whole numbers are not taken: where users name
    labels they are codes.
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
