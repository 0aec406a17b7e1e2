"""Public distributions of values inside their bins, which sampling and averaging share.

In a bin [e_i, e_(i+1)), `Values.shape` spreads the values over all that the column's type can have there (its lattice):
if uniform, each whole number in the bin is as likely as any other. Where the shape is "fitted", bins much wider than a
neighbour have a rate of decrease. The last bin is closed. Of a bin without an end only the finite edge is known: all
its values are there, as in a table coded "65 or more", or at the last value below it where the bin is open downwards.
A label that is a number is that number. Bins of a column without a declared type contain whole numbers if all edges
are whole, and any numbers otherwise. Codes without a number, such as missing values, are not `present`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from attrs import evolve, frozen

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.columns.lattice import Lattice, lattice_of
from dpgm_core.columns.tables import MISSING
from dpgm_core.columns.values import EXACT_WHOLE, Kind, Values

__all__ = ["BinDistribution", "missing_code", "ordered_bin_distribution", "bin_distribution"]

#: Distance of the values of a bin that is open downwards from its edge, as a part of the next bin's width.
_OPEN_BIN_OFFSET = 1e-3
#: Last second of a day.
_LAST_SECOND = 86_399
#: Whole numbers of a bin that are summed one by one.
_MAX_TERMS = 2**20


@frozen(kw_only=True, eq=False)
class BinDistribution:
    """The numbers of each code of an attribute. values: the column's, with kind "integer" or "number" for plain bins.

    present: (codes,), whether the code has numbers. low, high: (codes,), the least and the largest it can have: places
    on the axis, or numbers of the lattice where there is one; 0 where not present. rates: (codes,), in a bin the
    probability is proportional to exp(-rate x), x in the unit of low and high; None: all are even.

    >>> dist = bin_distribution(Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?"))
    >>> dist.present.tolist(), dist.low.tolist()
    ([True, True, True, False], [0, 18, 65, 0])
    """

    values: Values
    lattice: Lattice | None
    present: Array
    low: Array
    high: Array
    rates: FloatArray | None = None

    def draw(self, codes: IntArray, at: FloatArray) -> FloatArray:
        """Return places on the axis for codes that are all present. at: quantiles inside the bin, in [0, 1)."""
        return self.between(codes, self.low[codes], self.high[codes], at)

    def between(self, codes: IntArray, low: Array, high: Array, at: FloatArray) -> FloatArray:
        """The same between ends given as `low` and `high` are: the distribution of a bin, kept to a part of it."""
        if self.values.shape == "lower":
            return self.placed(low)
        if self.rates is not None:
            at = _bent(self.rates[codes], high - low + (self.lattice is not None), at)
        if self.lattice is None:
            return self._continuous(low, high, at)
        # High + 1 is not reached, so that floor makes every number as likely as its share of the line is long.
        reach = (high - low + 1).astype(np.float64)
        numbers = low + np.minimum(np.floor(at * reach), reach - 1).astype(np.int64)
        if self.values.shape == "log":
            whole, last = np.maximum(low, 1).astype(np.float64), np.maximum(high, 1).astype(np.float64)
            scaled = np.floor(whole * ((last + 1) / whole) ** at)
            numbers = np.where(low > 0, np.clip(scaled, low, high).astype(np.int64), numbers)
        return self.lattice.place(numbers)

    def placed(self, numbers: Array) -> FloatArray:
        """Places on the axis of `low` and `high`."""
        return np.asarray(numbers, np.float64) if self.lattice is None else self.lattice.place(numbers)

    def has(self, place: float) -> bool:
        """Whether the column can have this very value."""
        at = np.array([place])
        return self.lattice is None or bool(self.lattice.place(self.lattice.first(at))[0] == place)

    def first(self, places: FloatArray) -> Array:
        """Return the smallest value at or above each place, in the unit of `low`."""
        return places if self.lattice is None else self.lattice.first(places)

    def last(self, places: FloatArray) -> Array:
        """Return the largest value at or below each place, in the unit of `high`."""
        return places if self.lattice is None else self.lattice.last(places)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """The mean and the variance inside of each code; NaN where not present."""
        means, variances = np.full(len(self.low), math.nan), np.full(len(self.low), math.nan)
        for code in np.flatnonzero(self.present):
            means[code], variances[code] = self._moments(int(code))
        return means, variances

    def quantile(self, code: int, share: float) -> float:
        """The least number of a code such that `share` of its values are not above it."""
        if self.lattice is None:
            return float(self.draw(np.array([code]), np.array([min(max(share, 0.0), 1.0)]))[0])
        # The least of n numbers at or below which lies the share: one more than those that lie wholly below it.
        return float(self.draw(np.array([code]), np.array([np.nextafter(share, 0.0) if share > 0 else 0.0]))[0])

    def _continuous(self, low: FloatArray, high: FloatArray, at: FloatArray) -> FloatArray:
        places = low * (1 - at) + high * at
        if self.values.shape == "log":
            logs = np.log(np.where(low > 0, low, 1.0)), np.log(np.where(low > 0, high, 1.0))
            places = np.where(low > 0, np.exp(logs[0] * (1 - at) + logs[1] * at), places)
        return np.asarray(np.clip(places, low, high))

    def _moments(self, code: int) -> tuple[float, float]:
        low, high, shape = self.low[code], self.high[code], self.values.shape
        if shape == "lower" or low == high:
            return float(self.placed(self.low[[code]])[0]), 0.0
        if self.rates is not None and self.rates[code]:
            first, last = self.placed(np.array([low, high]))
            steps = float(high - low) + (self.lattice is not None)
            unit = (last - first) / float(high - low)  # the lattice is evenly spaced
            mean, variance = _exponential(float(self.rates[code]), steps, whole=self.lattice is not None)
            return float(first + unit * mean), float(unit**2 * variance)
        logarithmic = shape == "log" and low > 0
        if self.lattice is None:
            low, high = float(low), float(high)
            if not logarithmic:
                return low / 2 + high / 2, (high - low) ** 2 / 12
            span = math.log(high / low)
            mean = (high - low) / span
            return mean, max(0.0, (high - low) * (high + low) / (2 * span) - mean**2)
        count = int(high) - int(low) + 1
        places: Callable[[IntArray], FloatArray] = self.lattice.place
        if count > _MAX_TERMS:
            # So many that they are as good as a line of that many parts, each at its lower end.
            numbers = np.linspace(float(low), float(high), _MAX_TERMS).astype(np.int64)
        else:
            numbers = np.arange(low, high + 1)
        weights = np.log1p(1 / numbers) if logarithmic else np.ones(len(numbers))
        line = places(numbers)
        mean = float(line @ weights / weights.sum())
        return mean, float((line - mean) ** 2 @ weights / weights.sum())


def _bent(rates: FloatArray, lengths: Array, at: FloatArray) -> FloatArray:
    """Uniform numbers of [0, 1) as parts of the length at which truncated exponential distributions reach them."""
    turns = np.abs(rates) * lengths
    back = np.where(rates < 0, 1 - at, at)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.minimum(-np.log1p(back * np.expm1(-turns)) / turns, 1.0)
    # The smallest rates bend by less than rounding.
    return np.where(turns > 1e-9, np.where(rates < 0, 1 - parts, parts), at)


def _exponential(rate: float, length: float, *, whole: bool) -> tuple[float, float]:
    """Mean and variance of exp(-rate x) on [0, length], or on the whole numbers 0 .. length - 1."""
    if rate < 0:
        mean, variance = _exponential(-rate, length, whole=whole)
        return length - whole - mean, variance
    if rate * length < 1e-3:  # where the terms below cancel; the next ones of the series are below 1e-12
        least = float(whole)
        mean = (length - least) / 2 - rate * (length**2 - least) / 12
        return mean, (length**2 - least) / 12 - rate**2 * (length**4 - least) / 240
    mean = _inverse_expm1(rate, 1.0) if whole else 1 / rate
    variance = _inverse_sinh(rate, 1.0) ** 2 if whole else 1 / rate**2
    return mean - _inverse_expm1(rate, length), variance - _inverse_sinh(rate, length) ** 2


def _inverse_expm1(rate: float, length: float) -> float:
    # length / (exp(rate length) - 1), without overflow
    return length * math.exp(-rate * length) / -math.expm1(-rate * length)


def _inverse_sinh(rate: float, length: float) -> float:
    # length / (2 sinh(rate length / 2))
    return length * math.exp(-rate * length / 2) / -math.expm1(-rate * length)


def bin_distribution(attribute: Attribute) -> BinDistribution | None:
    """The distribution of each code's numbers; None for an attribute of texts or booleans, which has none.

    >>> ages = bin_distribution(Attribute.of_bins("age", [0, 10, 30], unknown="?"))
    >>> ages.draw(np.array([1, 0]), np.array([0.5, 0.25])).tolist()
    [20.0, 2.0]
    """
    if attribute.edges is None:
        return _of_labels(attribute) if attribute.values.is_numeric else None
    values = attribute.values if attribute.values.is_numeric else Values(kind=_kind(attribute.edges))
    lattice = lattice_of(values)
    edges = np.array(attribute.edges)
    below, above = edges[:-1].copy(), np.nextafter(edges[1:], -math.inf)
    above[-1] = min(edges[-1], _LAST_SECOND) if values.kind == "time" else edges[-1]
    _end(below, above, edges, lattice)
    low: Array = below if lattice is None else lattice.first(below)
    high: Array = above if lattice is None else lattice.last(above)
    if lattice is not None:
        high[np.isinf(edges[1:])] = low[np.isinf(edges[1:])]
        low[np.isinf(edges[:-1])] = high[np.isinf(edges[:-1])]
    present = low <= high
    none = attribute.size - len(low)
    return BinDistribution(
        values=values,
        lattice=lattice,
        present=np.append(present, np.zeros(none, bool)),
        low=np.append(np.where(present, low, 0), np.zeros(none, low.dtype)),
        high=np.append(np.where(present, high, 0), np.zeros(none, high.dtype)),
    )


def _kind(edges: tuple[float, ...]) -> Kind:
    """Return the kind of bins of a column without a declared type: integers where all edges are whole."""
    whole = all(math.isinf(edge) or (edge.is_integer() and abs(edge) < EXACT_WHOLE) for edge in edges)
    return "integer" if whole else "number"


def missing_code(attribute: Attribute) -> int | None:
    """The code of values that are missing, which are written as such; None where null values have a real label.

    >>> missing_code(Attribute.of_labels("a", ["0"], unknown="missing")), missing_code(Attribute.of_size("a", 2))
    (1, None)
    """
    return attribute.null if attribute.labels[attribute.null] == MISSING else None


def _end(below: FloatArray, above: FloatArray, edges: FloatArray, lattice: Lattice | None) -> None:
    """Put the ends of bins that have none where their values are taken to stand, in place."""
    if np.isinf(edges[0]) and np.isinf(edges[-1]) and len(edges) == 2:
        below[0] = above[0] = 0.0
        return
    if np.isinf(edges[-1]):
        above[-1] = below[-1]
    if np.isinf(edges[0]):
        if lattice is None:
            width = edges[2] - edges[1] if len(edges) > 2 and np.isfinite(edges[2]) else max(abs(edges[1]), 1.0)
            above[0] = min(above[0], edges[1] - _OPEN_BIN_OFFSET * width)
        below[0] = above[0]


def ordered_bin_distribution(attribute: Attribute) -> BinDistribution:
    """Return the distribution by which an order compares; here numeric labels of a column of texts are numbers too.

    >>> ordered_bin_distribution(Attribute.of_size("a", 3)).high.tolist()
    [0.0, 1.0, 2.0]
    """
    dist = bin_distribution(attribute)
    return dist or _of_labels(evolve(attribute, values=Values(kind="number"), private=None))


def _of_labels(attribute: Attribute) -> BinDistribution:
    """Labels that are numbers, dates or times, as they stand; those that the type cannot have are none."""
    texts = map(str, range(attribute.size)) if attribute.coded else iter(attribute.labels)
    parsed = [attribute.place(text) for text in texts]
    places = np.array([math.nan if number is None else number for number in parsed], np.float64)
    if (missing := missing_code(attribute)) is not None:
        places[missing] = math.nan
    lattice = lattice_of(attribute.values)
    finite = np.isfinite(places)
    filled = np.where(finite, places, 0.0)
    numbers = filled if lattice is None else lattice.first(filled)
    present = finite if lattice is None else finite & (lattice.place(numbers) == filled)
    numbers = np.where(present, numbers, 0)
    return BinDistribution(values=attribute.values, lattice=lattice, present=present, low=numbers, high=numbers)
