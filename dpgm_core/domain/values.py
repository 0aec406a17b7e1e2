"""Numbers and dates of a column: parsing, the lattice of exact values, and cutting into bins."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.errors import DomainError, did_you_mean

__all__ = ["Cut", "EXACT_WHOLE", "Kind", "Lattice", "NANO", "PLAIN", "Values", "lattice_of", "parse_number"]

# Whole and other numbers are themselves, dates are days since 1970-01-01, dates with a time seconds since its midnight,
# times seconds since midnight; without time zone, so what has an offset is read in UTC.

Kind: TypeAlias = Literal["text", "integer", "number", "boolean", "date", "datetime", "time"]

#: Ticks of a second: dates with a time and times are compared as whole numbers of them, so that none is rounded.
NANO = 10**9
#: Whole numbers below it are float64 numbers; larger ones are compared as whole numbers.
EXACT_WHOLE = 2**53

_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST, _LAST = -_EPOCH + 1, date.max.toordinal() - _EPOCH  # the days that Python's calendar has
_CLOCK = rb"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
_TIME = re.compile(_CLOCK)
_DATETIME = re.compile(rb"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]" + _CLOCK + rb" ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?")
_DIRECTIVE = re.compile("%.", re.DOTALL)
_YEARS, _DAYS = {"%Y", "%y", "%G", "%c", "%x", "%D", "%F"}, {"%d", "%e"}  # as Pythons to come have them
_WHOLE = re.compile(rb"[+-]?[0-9]{1,400}")
_PADDED = re.compile(r"%(0[1-9][0-9]?)?d(\.0+)?")
_SAMPLES = (datetime(2001, 2, 3, 16, 5, 6), datetime(1998, 11, 30, 4, 45, 0))


def _tupled(decimals: int | Sequence[int] | None) -> int | tuple[int, ...] | None:
    return tuple(decimals) if isinstance(decimals, list) else decimals  # type: ignore[return-value]


@frozen(kw_only=True)
class Values:
    """The type of a column and how its values are written, apart from which label they fall on.

    kind: its type; sampled records have it. format: of dates and times, as `strptime` has it; None: ISO 8601; of whole
    numbers with zeros before or after them, "%05d" or "%d.0". decimals:
    how many digits after the point numbers are written with; several, such as (0, 2): the fewest of these that a number
    needs; None: as many as it needs. scale: how equal bins are
    spaced, "linear" or "log". shape: how numbers are spread inside a bin: "fitted" (evenly, and in a bin many times
    wider than a neighbour exponentially decreasing, as fits the released counts of both), or, as public knowledge,
    "uniform" (evenly), "log" (evenly on a logarithmic scale) or "lower" (all at the bin's lower edge). Raises
    DomainError.

    >>> Values(kind="integer").is_numeric
    True
    """

    kind: Kind = "text"
    format: str | None = None
    decimals: int | tuple[int, ...] | None = field(default=None, converter=_tupled)
    scale: Literal["linear", "log"] = "linear"
    shape: Literal["fitted", "uniform", "log", "lower"] = "fitted"

    def __attrs_post_init__(self) -> None:
        for key, value, known in (
            ("type", self.kind, get_args(Kind)),
            ("scale", self.scale, ("linear", "log")),
            ("shape", self.shape, ("fitted", "uniform", "log", "lower")),
        ):
            if value not in known:
                raise DomainError(f"{key} must be one of {', '.join(known)}, got {value!r}{did_you_mean(value, known)}")
        if self.kind in ("text", "boolean") and (self.scale == "log" or self.shape in ("log", "lower")):
            raise DomainError(f"scale and shape go with numbers, not with type = {self.kind!r}; say type = 'number'")
        if self.is_temporal and "log" in (self.scale, self.shape):
            raise DomainError(f"a logarithmic scale or shape goes with numbers, not with the type {self.kind}")
        if self.decimals is not None:
            every = self.decimals if isinstance(self.decimals, tuple) else (self.decimals,)
            whole = all(type(one) is int and 0 <= one <= 15 for one in every)
            if not every or not whole or sorted({*every}) != [*every]:
                raise DomainError(
                    "decimals must be a whole number from 0 to 15, or a list of such that ascends, got "
                    f"{self.decimals!r:.60}"
                )
            if self.kind != "number":
                raise DomainError(f"decimals goes with type = 'number', not with {self.kind!r}")
        if self.format is not None:
            if self.kind == "integer":
                if not isinstance(self.format, str) or not _PADDED.fullmatch(self.format):
                    raise DomainError(
                        f"format of whole numbers tells their digits, as '%05d' or '%d.0', got {self.format!r:.60}"
                    )
            elif not self.is_temporal:
                raise DomainError(f"format goes with dates, times and whole numbers, not with type = {self.kind!r}")
            elif not isinstance(self.format, str) or not all(self._survives(sample) for sample in _SAMPLES):
                raise DomainError(
                    f"format {self.format!r} does not tell a {self.kind}; write it as in '%d.%m.%Y' or '%Y-%m-%d %H:%M'"
                )

    @property
    def is_numeric(self) -> bool:
        """Whether its values stand on an axis, so that bins can cut them."""
        return self.kind not in ("text", "boolean")

    @property
    def is_temporal(self) -> bool:
        """Whether its values are dates or times."""
        return self.kind in ("date", "datetime", "time")

    @property
    def ticks(self) -> int:
        """How many whole units `exact` has to one of the axis: nanoseconds of a second, else 1."""
        return NANO if self.kind in ("datetime", "time") else 1

    @property
    def digits(self) -> int | None:
        """The most digits after the point of numbers; None: any."""
        return self.decimals[-1] if isinstance(self.decimals, tuple) else self.decimals

    @property
    def shortened(self) -> list[tuple[str, str]]:
        """Regular expressions, and what replaces them one after the other, of numbers that need fewer digits."""
        several = self.decimals[::-1] if isinstance(self.decimals, tuple) else ()
        return [
            (rf"(\.[0-9]{{{few}}})0{{{many - few}}}$", r"\1") if few else (rf"\.0{{{many}}}$", "")
            for many, few in itertools.pairwise(several)
        ]

    def number(self, text: str | bytes) -> float | None:
        """The place of a raw text on the axis; None for a text that is no such value. NaN stays NaN.

        >>> Values(kind="date").number("1970-01-03"), Values(kind="integer").number("1.5")
        (2.0, None)
        """
        exact = self.exact(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        if exact is None:
            return None
        try:
            return exact / self.ticks
        except OverflowError:  # a whole number beyond floats
            return math.copysign(math.inf, exact)

    def exact(self, raw: bytes) -> int | float | None:
        """The place in `ticks`: a whole number wherever the text says one, however large; None for no such value.

        A column of type text may have bins too; its values are then decimal numbers. Blanks around are allowed.

        >>> Values(kind="datetime").exact(b"1970-01-01T00:00:01.5+00:00"), Values().exact(b"9007199254740993")
        (1500000000, 9007199254740993)
        """
        if self.kind in ("text", "number"):
            number = parse_number(raw)
            if number is not None and abs(number) >= EXACT_WHOLE and _WHOLE.fullmatch(raw.strip()):
                return int(raw)
            return number
        if self.kind == "integer":
            if _WHOLE.fullmatch(raw.strip()):
                return int(raw)
            number = parse_number(raw)
            if number is None or math.isnan(number):
                return number
            return int(number) if number.is_integer() else None
        if self.kind == "boolean":
            return {b"true": 1, b"1": 1, b"false": 0, b"0": 0}.get(raw.strip().lower())
        return self._temporal(raw.strip()) if self.format is None else self._formatted(raw.strip(), self.format)

    def text(self, number: float) -> str:
        """How a place on the axis is written in the column's format. Raises DomainError for what is no place.

        >>> Values(kind="date", format="%d.%m.%Y").text(2.0), Values(kind="number", decimals=2).text(1.5)
        ('03.01.1970', '1.50')
        >>> [Values(kind="number", decimals=[0, 2]).text(one) for one in (999.0, 12.5)]
        ['999', '12.50']
        >>> Values(kind="integer", format="%d.0").text(27.0)
        '27.0'
        """
        try:
            if self.kind == "integer":
                return (self.format or "%d") % round(number)
            if self.kind == "boolean":
                return "true" if number else "false"
            if not self.is_temporal:
                text = repr(float(number)) if self.digits is None else f"{number:.{self.digits}f}"
                for zeros, short in self.shortened:
                    text = re.sub(zeros, short, text)
                return text
            moment = self.moment(number)
        except (ValueError, OverflowError):
            raise DomainError(f"{number!r} is no {self.kind} that can be written") from None
        return moment.isoformat() if self.format is None else _formatted(moment, self.format)

    def moment(self, number: float) -> date | datetime | time:
        """The date or time at a place of the axis, to a microsecond; ValueError or OverflowError where there is none.

        >>> Values(kind="time").moment(60.0)
        datetime.time(0, 1)
        """
        if self.kind == "date":
            return date.fromordinal(math.floor(number) + _EPOCH)
        if self.kind == "time":
            number = min(max(number, 0.0), _DAY - 1e-6)
        moment = datetime(1970, 1, 1) + timedelta(days=number // _DAY, microseconds=round(number % _DAY * 10**6))
        return moment if self.kind == "datetime" else moment.time()

    def place(self, moment: date | time) -> int:
        """Where a date or a time is, in `ticks`; what has an offset counts in UTC. ValueError where it does not fit.

        >>> Values(kind="datetime").place(date(1970, 1, 2)) == 86_400 * NANO
        True
        """
        if isinstance(moment, time):
            if self.kind != "time":
                raise ValueError("a time of day is no date")
            return _ticks(moment)
        if isinstance(moment, datetime):
            plain = moment if moment.tzinfo is None else moment.astimezone(UTC)
            return self._of(plain.toordinal() - _EPOCH, _ticks(plain.time()))
        return self._of(moment.toordinal() - _EPOCH, 0)

    def in_range(self, numbers: Any, *, per_day: int) -> Any:
        """Whether whole numbers, of which a day has so many, are dates of the years 1 to 9999, elementwise."""
        return (numbers >= _FIRST * per_day) & (numbers < (_LAST + 1) * per_day)

    def _of(self, days: int, ticks: int) -> int:
        if self.kind == "time":
            return ticks
        return days if self.kind == "date" else days * _DAY * NANO + ticks

    def _temporal(self, raw: bytes) -> int | None:
        if self.kind == "time":
            match = _TIME.fullmatch(raw)
            return None if match is None else _clock(*match.groups())
        match = _DATETIME.fullmatch(raw)
        if match is None:
            return None
        day, hour, minute, second, fraction, offset = match.groups()
        try:
            days = date.fromisoformat(day.decode()).toordinal() - _EPOCH
        except ValueError:
            return None
        ticks = 0 if hour is None else _clock(hour, minute, second, fraction)
        if ticks is None:
            return None
        if offset is not None and offset != b"Z":
            hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(b":") or b"0")
            ticks -= (-1 if offset[:1] == b"-" else 1) * (hours * 60 + minutes) * 60 * NANO
            days, ticks = days + ticks // (_DAY * NANO), ticks % (_DAY * NANO)
        return self._of(days, ticks) if _FIRST <= days <= _LAST else None

    def _formatted(self, raw: bytes, form: str) -> int | None:
        try:
            text = raw.decode()
            if "%p" in form:  # 3:04PM and 3:04 PM are alike
                text = re.sub("(?<=[0-9]) ?(?=[APap][Mm]$)", " " if " %p" in form else "", text)
            return self.place(datetime.strptime(text, form))
        except (ValueError, OverflowError):
            return None

    def _survives(self, sample: datetime) -> bool:
        # Written and read back; a format may leave out what is smaller than a day, or a minute.
        directives = set(_DIRECTIVE.findall(str(self.format)))
        if not directives & _YEARS and (self.kind != "time" or directives & _DAYS):
            return False  # newer Pythons warn of a day without its year, and will refuse to read it
        try:
            back = datetime.strptime(sample.strftime(str(self.format)), str(self.format))
        except (ValueError, OverflowError, re.error):  # the last for a directive that stands twice
            return False
        same_clock = (back.hour, back.minute) == (sample.hour, sample.minute)
        if self.kind == "date":
            return back.date() == sample.date()
        return same_clock and (self.kind == "time" or back.date() == sample.date())


#: Texts.
PLAIN = Values()


def parse_number(raw: bytes) -> float | None:
    """A decimal number in ASCII, blanks around it allowed; None for anything else. NaN texts give NaN.

    >>> parse_number(b" 1e3 "), parse_number(b"1_000"), parse_number(b"0x10")
    (1000.0, None, None)
    """
    if b"_" in raw:  # Python's float() takes underscores, no data file means them
        return None
    try:
        return float(raw.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        return None


def _clock(hour: bytes, minute: bytes, second: bytes | None, fraction: bytes | None) -> int | None:
    parts = int(hour), int(minute), int(second or b"0")
    if parts[0] > 23 or max(parts) > 59:
        return None
    return ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * NANO + int((fraction or b"").ljust(9, b"0")[:9])


def _formatted(moment: date | time, form: str) -> str:
    # Of years before 1000 C's %Y has fewer digits than are read again.
    year = "1900" if isinstance(moment, time) else f"{moment.year:04d}"
    return moment.strftime(_DIRECTIVE.sub(lambda found: year if found[0] == "%Y" else found[0], form))


def _ticks(clock: time) -> int:
    return ((clock.hour * 60 + clock.minute) * 60 + clock.second) * NANO + clock.microsecond * 1000


# --- Lattice of possible values: whole numbers, hundredths, days, minutes, or any number ----------
# They are numbered k = ..., -1, 0, 1, ... in their order, so to draw one of those in a bin is to draw a whole number.

#: Beyond, the numbers of places do not fit 64 bits; a bin there holds none.
_MAX_INDEX = 2.0**62
#: Directives of a format that tell seconds.
_SECONDS = re.compile("%[-_0^#]?[STXcrs]")


@frozen(kw_only=True)
class Lattice:
    """Places on an axis, numbered in their order. place: number -> place. near: place -> a number within 1 of its own.

    >>> tenths = lattice_of(Values(kind="number", decimals=1))
    >>> tenths.first(np.array([0.25, 0.3])).tolist(), tenths.last(np.array([0.25, 0.3])).tolist()
    ([3, 3], [2, 3])
    """

    place: Callable[[IntArray], FloatArray]
    near: Callable[[FloatArray], IntArray]

    def first(self, places: FloatArray) -> IntArray:
        """The number of the first place at or above each of these; one beyond all numbers where there is none."""
        index = self.near(np.clip(places, -_MAX_INDEX, _MAX_INDEX)) - 1
        for _ in range(2):
            index = index + (self.place(index) < places)
        return np.where(self.place(index) < places, int(_MAX_INDEX) + 2, index)

    def last(self, places: FloatArray) -> IntArray:
        """The number of the last place at or below each of these; one beyond all numbers where there is none."""
        index = self.near(np.clip(places, -_MAX_INDEX, _MAX_INDEX)) + 1
        for _ in range(2):
            index = index - (self.place(index) > places)
        return np.where(self.place(index) > places, -int(_MAX_INDEX) - 2, index)


def lattice_of(values: Values) -> Lattice | None:
    """The places that a column's values can have, as its type, decimals and format have it; None: any number.

    Dates with a time and times have whole seconds, or whole minutes where their format tells no seconds.
    """
    if values.kind == "number":
        return None if values.digits is None else _fractions(values.digits)
    if values.kind in ("integer", "date"):
        return _every(1)
    if values.kind in ("datetime", "time"):
        return _every(1 if values.format is None or _SECONDS.search(values.format) else 60)
    return None


def _every(step: int) -> Lattice:
    return Lattice(
        place=lambda numbers: (numbers * step).astype(np.float64),
        near=lambda places: np.floor(places / step).astype(np.int64),
    )


def _fractions(decimals: int) -> Lattice:
    # A quotient of two whole numbers below 2^53 is the double nearest to the decimal, which its text reads back as.
    parts = float(10**decimals)
    return Lattice(
        place=lambda numbers: numbers / parts,
        near=lambda places: np.floor(np.clip(places * parts, -_MAX_INDEX, _MAX_INDEX)).astype(np.int64),
    )


# --- Exact assignment of numbers to bins: whole numbers are never rounded -------------------------

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_Codes: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

#: Up to so many edges a search is fast.
_MAX_EDGES_FOR_COMPARISON = 256


@frozen(eq=False)
class Cut:
    """Bins [e_0, e_1), [e_1, e_2), ..., the last one closed; -1 is outside them.

    edges: ascending, ends may be infinite. cap: what is beyond an end falls in the bin at that end. ticks: how many
    whole units, which `place` takes, one unit of the edges has.
    """

    edges: tuple[float, ...]
    cap: bool
    ticks: int = 1
    _starts: tuple[float, ...] = field(init=False)
    _end: float = field(init=False)
    _edges: _Array = field(init=False)
    _width: float | None = field(init=False)
    _scaled: dict[tuple[Fraction, str], tuple[_Array, int, float | None]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        whole = self.ticks != 1
        ticks = Fraction(self.ticks)
        starts = tuple(_first(edge, ticks) for edge in self.edges) if whole else self.edges
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_edges", np.asarray(self.edges))
        object.__setattr__(self, "_width", _even_width(np.asarray(self.edges)))
        object.__setattr__(self, "_end", _last(self.edges[-1], ticks) if whole else self.edges[-1])

    def place(self, number: int | float) -> int:
        """The bin of one number in ticks; Python compares whole numbers and floats exactly."""
        at = bisect_right(self._starts, number) - 1
        bins = len(self.edges) - 1
        if 0 <= at < bins:
            return at
        if at >= bins and (self.cap or number <= self._end):
            return bins - 1
        return 0 if at < 0 and self.cap else -1

    def real(self, numbers: _Array) -> _Codes:
        """The bins of float64 numbers in units of the edges; NaN has any."""
        return self._closed(self._bins(numbers), numbers == self.edges[-1])

    def _bins(self, numbers: _Array) -> _Codes:
        if self._width is None:
            return np.searchsorted(self._edges, numbers, side="right").astype(np.int64) - 1
        # A quotient is near, and many times faster than a search among as many edges; what it misses is looked up.
        with np.errstate(invalid="ignore", over="ignore"):
            near = (numbers - self.edges[0]) / self._width
        codes = np.nan_to_num(near, copy=False).clip(0, len(self.edges) - 2).astype(np.int64)
        missed = np.flatnonzero(~((self._edges[codes] <= numbers) & (numbers < self._edges[codes + 1])))
        codes[missed] = np.searchsorted(self._edges, numbers[missed], side="right") - 1
        return codes

    def whole(self, numbers: _Array, units: Fraction | int = 1) -> _Codes:
        """The bins of whole numbers, `units` of which make one unit of the edges; exact for all 64-bit integers."""
        numbers = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64, copy=False)
        key = Fraction(units), numbers.dtype.kind
        if key not in self._scaled:  # the same for every batch of records
            self._scaled[key] = self._scale(key[0], numbers.dtype)
        inside, below, last = self._scaled[key]
        codes = np.searchsorted(inside, numbers, side="right").astype(np.int64) + (below - 1)
        return self._closed(codes, np.zeros(len(numbers), bool) if last is None else numbers == last)

    def _scale(self, units: Fraction, dtype: np.dtype[Any]) -> tuple[_Array, int, float | None]:
        """The first whole number of each bin, where the type has it; how many lie below; the closed end, if whole."""
        info = np.iinfo(dtype)
        starts = [_first(edge, units) for edge in self.edges]
        inside = np.array([start for start in starts if info.min <= start <= info.max], dtype)
        closed = starts[-1] == _last(self.edges[-1], units) and info.min <= starts[-1] <= info.max
        return inside, sum(start < info.min for start in starts), starts[-1] if closed else None

    def _closed(self, codes: _Codes, last: _Array) -> _Codes:
        bins = len(self.edges) - 1
        codes[last] = bins - 1
        if self.cap:
            return np.clip(codes, 0, bins - 1)
        codes[codes >= bins] = -1
        return codes


def _even_width(edges: _Array) -> float | None:
    """Of many bins that are nearly alike, as those of a grid are; None for others."""
    if len(edges) <= _MAX_EDGES_FOR_COMPARISON or not np.isfinite(edges).all():
        return None
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    even = edges[0] + width * np.arange(len(edges))
    return float(width) if 0 < width < math.inf and (np.abs(edges - even) < width / 4).all() else None


def _first(edge: float, units: Fraction) -> float:
    if not math.isfinite(edge):
        return edge
    if edge.is_integer() and units.denominator == 1:
        return int(edge) * units.numerator
    return math.ceil(Fraction(edge) * units)


def _last(edge: float, units: Fraction) -> float:
    return math.floor(Fraction(edge) * units) if math.isfinite(edge) else edge
