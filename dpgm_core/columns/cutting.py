"""Assignment of numbers to bins, exact: whole numbers and ticks of time are never rounded to floats."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from attrs import field, frozen

__all__ = ["Cut"]

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_Codes: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

#: Up to so many edges a search is fast.
_MAX_EDGES_FOR_COMPARISON = 256


@frozen(eq=False)
class Cut:
    """Bins [e_0, e_1), [e_1, e_2), ..., the last one closed; -1 is outside them.

    edges: ascending, ends may be infinite. cap: what is beyond an end falls in the bin at that end. ticks: how many
    whole units, which `place` takes, one unit of the edges has.

    >>> Cut((0.0, 18.0, 65.0), cap=False).place(65), Cut((0.0, 18.0, 65.0), cap=True).place(-3)
    (1, 0)
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
        """The bins of float64 numbers in units of the edges; NaN has any.

        >>> Cut((0.0, 1.0, 2.0), cap=False).real(np.array([0.5, 2.0, 7.0])).tolist()
        [0, 1, -1]
        """
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
        """The bins of whole numbers, `units` of which make one unit of the edges; exact for all 64-bit integers.

        >>> Cut((0.0, 2.0**53, 2.0**60), cap=False).whole(np.array([2**53 - 1, 2**53, 2**53 + 1])).tolist()
        [0, 1, 1]
        """
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
