"""The values of one type in their order, as whole ticks or floats, and where on it an attribute's codes may change."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from attrs import frozen

from dpgm_core import Attribute
from dpgm_core.domain import Matching, Values

__all__ = ["Axis", "Place", "axis_of"]

#: A value: a whole number of ticks, or a float.
Place: TypeAlias = int | float

_NUMERAL = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_EPOCH = date(1970, 1, 1)
_DAY = 86_400
#: Whole numbers up to it are floats.
_EXACT_WHOLE = 2**53
_DIGITS = Context(prec=80)


class Axis(Protocol):
    """All values of one type but NULL and NaN, or those that are whole numbers."""

    @property
    def kind(self) -> Any:
        """The Arrow type."""
        ...

    @property
    def least(self) -> Place:
        """The first value."""
        ...

    @property
    def most(self) -> Place:
        """The last value."""
        ...

    @property
    def whole(self) -> bool:
        """Whether values between whole numbers are left out: they are unknown."""
        ...

    def places(self, attribute: Attribute) -> Iterator[Place]:
        """Return where ranges of one code may begin, and some more places."""
        ...

    def before(self, place: Place) -> Place:
        """The value before one that is not the least."""
        ...

    def array(self, places: list[Place]) -> Any:
        """Some values as Arrow has them."""
        ...

    def text(self, place: Place) -> str:
        """A value as SQL reads it."""
        ...


def axis_of(attribute: Attribute, kind: Any) -> Axis | None:
    """The axis of the values of an Arrow type for an attribute; None where ranges do not tell its codes.

    >>> axis_of(Attribute.of_bins("a", [0, 1], unknown="?"), pa.int8()).least
    -128
    """
    values, exact = attribute.values, attribute.matching == Matching()
    binned = attribute.edges is not None
    if binned and values.kind == "boolean":
        return None
    temporal = binned and values.is_temporal
    if pa.types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        return None if temporal else _Whole(kind=kind, least=int(info.min), most=int(info.max))
    if pa.types.is_decimal(kind):
        return None if temporal else _decimals(attribute, kind)
    if pa.types.is_floating(kind):
        if temporal or not (binned or exact):
            return None
        whole = binned and values.kind == "integer"
        most = math.inf if not whole else float(np.finfo(np.float64).max)
        return _Floats(kind=pa.float64(), least=-most, most=most, whole=whole)
    if not exact or (binned and not temporal):
        return None
    if pa.types.is_time(kind):
        per_second = _per_second(kind)
        return _Clock(kind=kind, least=0, most=_DAY * per_second) if binned and values.kind == "time" else None
    if binned and values.kind == "time":
        return None
    if pa.types.is_date32(kind) and (binned or all(map(_plain_date, attribute.forms))):
        return _Days(kind=kind, least=-(2**31), most=2**31 - 1)
    if pa.types.is_timestamp(kind) and binned:
        return _Moments(kind=kind, least=-(2**63), most=2**63 - 1)
    return None


def _plain_date(form: bytes) -> bool:
    """Whether a label is a date of four digits a year, or no date at all."""
    return Values(kind="date").exact(form) is not None or re.search(rb"[0-9]", form) is None


def _decimals(attribute: Attribute, kind: Any) -> _Decimals | None:
    """Decimals are read as floats unless they are whole, so bins that only whole numbers tell apart are no ranges."""
    most = 10**kind.precision - 1
    if attribute.edges is not None and kind.scale > 0:
        wide = any(math.isfinite(edge) and abs(edge) >= _EXACT_WHOLE for edge in attribute.edges)
        if wide or attribute.values.kind == "integer":
            return None
    return _Decimals(kind=kind, least=-most, most=most)


@frozen(kw_only=True)
class _Ticks:
    """Base class of axes of whole ticks."""

    kind: Any
    least: Place
    most: Place
    whole: bool = False

    def before(self, place: Place) -> Place:
        return place - 1

    def array(self, places: list[Place]) -> Any:
        narrow = pa.types.is_date32(self.kind) or pa.types.is_time32(self.kind)
        return pa.array(places, pa.int32() if narrow else pa.int64()).cast(self.kind)


@frozen(kw_only=True)
class _Whole(_Ticks):
    """Whole numbers."""

    def places(self, attribute: Attribute) -> Iterator[Place]:
        yield from _first(_finite(attribute), Fraction(1))
        yield from _around(_numerals(attribute), Fraction(1))

    def array(self, places: list[Place]) -> Any:
        return pa.array(places, self.kind)

    def text(self, place: Place) -> str:
        return str(place)


@frozen(kw_only=True)
class _Decimals(_Ticks):
    """Decimals of a fixed number of digits after the point; a tick is the last of them."""

    def places(self, attribute: Attribute) -> Iterator[Place]:
        units = Fraction(10**self.kind.scale)
        yield from _first(_finite(attribute), units)
        yield from _around(_numerals(attribute), units)
        # A decimal is rounded to a float: which one is decided half-way between it and the next.
        for edge in _finite(attribute):
            for near in (math.nextafter(edge, -math.inf), math.nextafter(edge, math.inf)):
                if math.isfinite(near):
                    yield from _around([(Fraction(edge) + Fraction(near)) / 2], units)

    def array(self, places: list[Place]) -> Any:
        return pa.array([Decimal(int(place)).scaleb(-self.kind.scale, _DIGITS) for place in places], self.kind)

    def text(self, place: Place) -> str:
        return format(Decimal(int(place)).scaleb(-self.kind.scale, _DIGITS), "f")


@frozen(kw_only=True)
class _Floats:
    """All floats, or those that are whole numbers. least and most may be infinite."""

    kind: Any
    least: Place
    most: Place
    whole: bool

    def places(self, attribute: Attribute) -> Iterator[Place]:
        yield from (float(np.finfo(np.float64).max), -float(np.finfo(np.float64).max))
        doubles = np.array([float(str(_DIGITS.divide(n.numerator, n.denominator))) for n in _numerals(attribute)])
        with np.errstate(over="ignore"):
            # The text of a float is the shortest in single precision, where that holds it.
            numbers = [*doubles.tolist(), *doubles.astype(np.float32).astype(np.float64).tolist()]
        for number in (*_finite(attribute), *numbers):
            if math.isfinite(number):
                at = float(math.ceil(number)) if self.whole else number
                yield at + 0.0  # no minus zero
                yield self._after(at) + 0.0
        yield from (math.inf, -math.inf)

    def _after(self, place: float) -> float:
        return place + 1 if self.whole and abs(place) < _EXACT_WHOLE else math.nextafter(place, math.inf)

    def before(self, place: Place) -> Place:
        return place - 1 if self.whole and abs(place) < _EXACT_WHOLE else math.nextafter(place, -math.inf)

    def array(self, places: list[Place]) -> Any:
        return pa.array(places, pa.float64())

    def text(self, place: Place) -> str:
        return repr(float(place)) if math.isfinite(place) else "Infinity" if place > 0 else "-Infinity"


@frozen(kw_only=True)
class _Days(_Ticks):
    """Dates."""

    def places(self, attribute: Attribute) -> Iterator[Place]:
        yield from _calendar(1)
        yield from _moments(attribute, Fraction(1), Fraction(1, _DAY))

    def text(self, place: Place) -> str:
        return _day(int(place))


@frozen(kw_only=True)
class _Moments(_Ticks):
    """Dates with a time."""

    def places(self, attribute: Attribute) -> Iterator[Place]:
        per_second = _per_second(self.kind)
        yield from _calendar(_DAY * per_second)
        yield from _moments(attribute, Fraction(_DAY * per_second), Fraction(per_second))

    def text(self, place: Place) -> str:
        per_second = _per_second(self.kind)
        days, ticks = divmod(int(place), _DAY * per_second)
        zone = "" if self.kind.tz is None else "+00"
        return f"{_day(days)} {_time(ticks, per_second)}{zone}"


@frozen(kw_only=True)
class _Clock(_Ticks):
    """Times of a day, midnight at its end included."""

    def places(self, attribute: Attribute) -> Iterator[Place]:
        yield from _moments(attribute, Fraction(1), Fraction(_per_second(self.kind)))

    def text(self, place: Place) -> str:
        return _time(int(place), _per_second(self.kind))


def _finite(attribute: Attribute) -> list[float]:
    return [edge for edge in attribute.edges or () if math.isfinite(edge)]


def _numerals(attribute: Attribute) -> list[Fraction]:
    """The numbers that labels and null values write."""
    texts = (form.decode("utf-8", "replace") for form in attribute.forms)
    return [Fraction(text) for text in (*texts, *attribute.null_values) if _NUMERAL.fullmatch(text)]


def _first(edges: Iterable[float], units: Fraction) -> Iterator[int]:
    """The first tick that is not below an edge, and the one after it."""
    for edge in edges:
        yield from _around([Fraction(edge)], units)


def _around(places: Iterable[Fraction], units: Fraction) -> Iterator[int]:
    for place in places:
        yield math.ceil(place * units)
        yield math.floor(place * units) + 1


def _calendar(per_day: int) -> Iterator[int]:
    yield (date.min - _EPOCH).days * per_day
    yield ((date.max - _EPOCH).days + 1) * per_day


def _moments(attribute: Attribute, per_day: Fraction, per_second: Fraction) -> Iterator[int]:
    """The ticks of edges, labels and null values, in days or in seconds as the attribute has it."""
    values = attribute.values
    in_days = values.kind == "date"
    for edge in _finite(attribute):
        if in_days:  # whole days are cut, whatever the time
            yield from (day * int(per_day) for day in _around([Fraction(edge)], Fraction(1)))
        else:
            yield from _around([Fraction(edge)], per_second)
    kind = values.kind if values.is_temporal else "date"
    for form in (Values(kind=kind), values):
        for text in (*(form.decode("utf-8", "replace") for form in attribute.forms), *attribute.null_values):
            place = form.exact(text.encode()) if form.is_temporal else None
            if isinstance(place, int):
                one = Fraction(place, form.ticks)
                if in_days or kind == "date":
                    yield from (day * int(per_day) for day in _around([one], Fraction(1)))
                    yield from _around([one], per_day)
                else:
                    yield from _around([one], per_second)


def _per_second(kind: Any) -> int:
    return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]


def _day(days: int) -> str:
    last = (date.max - _EPOCH).days
    return (_EPOCH + timedelta(days=days)).isoformat() if days <= last else "10000-01-01"


def _time(ticks: int, per_second: int) -> str:
    seconds, rest = divmod(ticks, per_second)
    minutes, second = divmod(seconds, 60)
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}d}" if digits else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{fraction}"
