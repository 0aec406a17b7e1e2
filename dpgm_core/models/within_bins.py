"""Values within bins: densities, decoding of codes, and wide bins."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.attribute_tables import MISSING
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.labels import calendar_labels
from dpgm_core.domain.values import EXACT_WHOLE, Kind, Lattice, Values, lattice_of
from dpgm_core.models.distribution import Distribution
from dpgm_core.models.merged_codes import MergedDistribution

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BinDistribution",
    "Decoder",
    "bin_distribution",
    "decoder",
    "decoders_of",
    "fit_wide_bins",
    "end_bin_note",
    "missing_code",
    "one_bin_note",
    "ordered_bin_distribution",
    "tables_of_wide",
    "wide_bins",
    "wide_note",
]


# --- Distributions inside bins --------------------------------------------------------------------
# In a bin [e_i, e_(i+1)), `Values.shape` spreads the values over all that the column's type can have there (its
# lattice): if uniform, each whole number in the bin is as likely as any other. Where the shape is "fitted", bins much
# wider than a neighbour have a rate of decrease. The last bin is closed. Of a bin without an end only the finite edge
# is known: all its values are there, as in a table coded "65 or more", or at the last value below it where the bin is
# open downwards. A label that is a number is that number. Bins of a column without a declared type contain whole
# numbers if all edges are whole, and any numbers otherwise. Codes without a number, such as missing values, are not
# `present`.

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
    """The distribution of each code's numbers; None for an attribute of texts or booleans, which has none."""
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
    """The code of values that are missing, which are written as such; None where null values have a real label."""
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


# --- Wide bins ------------------------------------------------------------------------------------
# A bin such as 9-366 after 5-8 does not say where its numbers lie, and spread evenly they are usually far too large.
# The counts of both bins tell more: the numbers of the two together are taken to follow one truncated exponential
# distribution (geometric, on whole numbers), whose rate is the maximum likelihood estimate from these two counts. It
# falls away from the narrow bin, in either direction. A wide bin as dense as its neighbour, or denser, stays even. The
# estimate is a function of the model's marginal of the attribute, hence post-processing. It is exact for exponential
# and geometric numbers; of numbers with a heavier tail the mean comes out too low, though much nearer than the middle
# of the bin. Numbers that gather far from the narrow bin are described badly: `shape = "uniform"` keeps a column's
# bins even.

#: A bin is wide if it is at least so many times as wide as the narrower of its neighbours. Below, on the distributions
#: that it was chosen on, the mean gains less than 1 % of a standard deviation.
_MIN_WIDTH_RATIO = 4
_MAX_NAMED = 5  # attributes in a note
_MAX_BIN_SHARE = 0.9  # of a column's numbers, in a bin of several possible ones
#: A bin at an end has this share of a column, and is so many times as dense as the one beside it, where values beyond
#: the edges may have been counted.
_MIN_END_SHARE, _MIN_END_RATIO = 0.05, 3.0
_MAX_HALVINGS = 200


def wide_bins(attribute: Attribute) -> dict[int, int]:
    """Return the wide bins whose shape is fitted: code -> the code of the neighbour that it is fitted with.

    Bins without an end, or without a value, are neither wide nor neighbours. Units of a calendar are not wide: where
    the range cuts the first or the last one to a day, the next one stays even.
    """
    dist = None if attribute.edges is None else bin_distribution(attribute)
    if attribute.edges is None or dist is None or dist.values.shape != "fitted":
        return {}
    if dist.values.is_temporal and calendar_labels(attribute.edges, dist.values) is not None:
        return {}
    bins = len(attribute.edges) - 1
    widths = _widths(dist)[:bins]
    known = dist.present[:bins] & np.isfinite(np.diff(attribute.edges)) & (widths > 0)
    widths = np.where(known, widths, math.inf)
    neighbour_of = {}
    for code in np.flatnonzero(known).tolist():
        neighbours = [near for near in (code - 1, code + 1) if 0 <= near < bins]
        near = min(neighbours, key=lambda other: widths[other], default=code)
        if widths[code] >= _MIN_WIDTH_RATIO * widths[near]:
            neighbour_of[code] = near
    return neighbour_of


def fit_wide_bins(attribute: Attribute, table: FloatArray) -> BinDistribution | None:
    """Return the distribution of an attribute's numbers, with its wide bins fitted to a model.

    table: the model's marginal of the attribute, (codes,), without any condition: a number is independent of all else
    given its code, so one distribution serves every query and every record.
    """
    dist = bin_distribution(attribute)
    wide = wide_bins(attribute)
    if dist is None or not wide:
        return dist
    rates, widths = np.zeros(len(dist.low)), _widths(dist)
    for code, near in wide.items():
        rate = _rate(float(table[near]), float(widths[near]), float(table[code]), float(widths[code]))
        rates[code] = rate if near < code else -rate
    return evolve(dist, rates=rates)


def tables_of_wide(
    distribution: Distribution | MergedDistribution, attributes: Sequence[Attribute]
) -> dict[str, FloatArray]:
    """Return the marginal of each attribute that has wide bins, by name; nothing is inferred for the others."""
    names = [one.name for one in attributes if wide_bins(one)]
    return dict(zip(names, distribution.marginals_of([(name,) for name in names], {}), strict=True))


def wide_note(attributes: Iterable[Attribute]) -> str | None:
    """Return a sentence that names the wide bins of some attributes, None where there are none."""
    parts = []
    for one in attributes:
        wide = {} if one.private is not None else wide_bins(one)
        if wide:
            more = "" if len(wide) == 1 else f" and {len(wide) - 1} more"
            parts.append(f"{one.name!r} ({one.labels[max(wide)]}{more})")
    if not parts:
        return None
    return (
        f"some bins are at least {_MIN_WIDTH_RATIO} times as wide as a neighbour: {_first(parts)}; numbers in them are "
        "not spread evenly, but decrease exponentially at the rate that the counts of both bins give; add edges there "
        "if you can, or keep such bins even with shape = 'uniform'"
    )


def one_bin_note(tables: Iterable[tuple[Attribute, FloatArray]]) -> str | None:
    """Return a sentence that names columns with nearly all numbers in one bin of several values; None without any.

    tables: attributes with a model's marginals of them, (codes,) each.
    """
    parts = []
    for one, table in tables:
        dist = None if one.edges is None else bin_distribution(one)
        if dist is not None:
            inside = np.where(dist.present, table, 0.0)
            code = int(inside.argmax())
            if dist.low[code] < dist.high[code] and inside[code] > _MAX_BIN_SHARE * inside.sum():
                parts.append(f"{one.name!r} ({one.labels[code]})")
    if not parts:
        return None
    return (
        f"over {100 * _MAX_BIN_SHARE:.0f} % of a column's numbers lie in one bin: {_first(parts)}; means, quantiles "
        "and correlations are known no closer than that bin, and intervals do not include it; describe narrower bins "
        "in the domain"
    )


def end_bin_note(tables: Iterable[tuple[Attribute, FloatArray]]) -> str | None:
    """Return a sentence that names columns of which many values may lie beyond the edges; None without any.

    These count in the bins at the ends, which are then much denser than their neighbours; but at 0, which many values
    are. tables: as of `one_bin_note`.
    """
    parts = []
    for one, table in tables:
        dist = bin_distribution(one) if one.cap and one.edges is not None and len(one.edges) > 2 else None
        if dist is not None and one.edges is not None:
            widths, inside = _widths(dist), np.where(dist.present, table, 0.0)
            for end, near, last in ((0, 1, one.edges[0]), (len(one.edges) - 2, len(one.edges) - 3, one.edges[-1])):
                is_large = inside[end] > _MIN_END_SHARE * inside.sum() and dist.low[end] < dist.high[end]
                if last and is_large and inside[end] * widths[near] > _MIN_END_RATIO * inside[near] * widths[end]:
                    parts.append(f"{one.name!r} ({one.labels[end]}: {100 * inside[end] / inside.sum():.0f} %)")
    if not parts:
        return None
    return (
        f"bins at an end have over {_MIN_END_RATIO:.0f} times as many numbers as their neighbours, by width: "
        f"{_first(parts)}; values beyond the edges count there, so that some may lie beyond, which means and quantiles "
        "do not know"
    )


def _first(parts: Sequence[str]) -> str:
    return ", ".join(parts[:_MAX_NAMED]) + (", ..." if len(parts) > _MAX_NAMED else "")


def _widths(dist: BinDistribution) -> FloatArray:
    """The widths of bins, in numbers of the lattice where there is one."""
    return np.asarray(dist.high - dist.low, np.float64) + (dist.lattice is not None)


def _rate(near: float, near_width: float, wide: float, wide_width: float) -> float:
    """The rate r at which exp(-r x), over a bin and the wide one after it, gives them masses in this ratio; 0 at least.

    The ratio is expm1(r w) / -expm1(-r W), which grows with r from w / W on.
    """
    if not (near > 0 and wide > 0 and near / near_width > wide / wide_width):
        return 0.0
    ratio = math.log(near) - math.log(wide)
    low, high = 0.0, float(np.logaddexp(0.0, ratio)) / near_width  # of a wide bin without an end
    for _ in range(_MAX_HALVINGS):
        rate = (low + high) / 2
        if rate in (low, high):
            break
        # log(expm1(x)) as x + log(-expm1(-x)), which does not overflow.
        x = rate * near_width
        reached = x + math.log(-math.expm1(-x)) - math.log(-math.expm1(-rate * wide_width))
        low, high = (rate, high) if reached < ratio else (low, rate)
    return high


# --- Decoding -------------------------------------------------------------------------------------
# A decoder draws each number from the distribution inside its bin; an order that the domain demands of two columns
# holds for drawn values too. Missing values, and labels that a typed column cannot have, become null. A column of
# texts keeps all its labels except the default label of missing values. Reading a written value gives its code again.
# Numbers without declared `decimals` have three digits more than their narrowest bin; more digits would carry no
# information.

_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: Directives that Arrow writes as Python does.
_PLAIN_FORMAT = re.compile(r"(%[YmdHMSjy]|[^%])*")
#: Arrow writes smaller decimals with an exponent.
_PLAIN_DECIMALS = 6
#: Whole parts of numbers whose digits are grouped.
_DIGITS = re.compile(r"-?[1-9][0-9]{3,}")
_ISO = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S", "time": "%H:%M:%S"}


@frozen(kw_only=True, eq=False)
class Decoder:
    """One attribute's codes as Arrow arrays. dist: of its numbers; None for texts and booleans.

    >>> ages = decoder(Attribute.of_bins("age", [0, 10, 30], unknown="missing"))
    >>> ages.values(np.array([0, 2, 1]), ages.places(np.array([0, 2, 1]), np.array([0.5, 0.5, 0.5]))).to_pylist()
    [5, None, 20]
    """

    attribute: Attribute
    dist: BinDistribution | None
    _raw: tuple[str | None, ...]
    _decimals: int | None

    @property
    def empty(self) -> Array:
        """(codes,), which are written as null."""
        if self.dist is not None:
            return ~self.dist.present
        return np.array([text is None for text in self._raw])

    def places(self, codes: IntArray, at: FloatArray) -> FloatArray:
        """A place on the axis for each code, NaN for codes without one. at: in [0, 1), uniform."""
        assert self.dist is not None
        return self.round(codes, self.dist.draw(codes, at))

    def round(self, codes: IntArray, places: FloatArray) -> FloatArray:
        """Places as they are written, still inside of their bins; NaN for codes without any."""
        assert self.dist is not None
        if self.dist.lattice is None and self._decimals is not None and self.attribute.edges is not None:
            edges, bins = np.array(self.attribute.edges), np.minimum(codes, len(self.attribute.edges) - 2)
            parts = 10.0**self._decimals
            scaled = np.rint(places * parts)
            scaled += scaled / parts < edges[bins]
            scaled -= scaled / parts >= edges[bins + 1]
            places = scaled / parts
        return np.where(self.dist.present[codes], places, np.nan)

    def next_written(self, places: FloatArray, *, up: bool) -> FloatArray:
        """The next places, up or down, with as many digits as are written."""
        if self._decimals is None:
            return places
        parts = 10.0**self._decimals
        return (np.ceil(places * parts) if up else np.floor(places * parts)) / parts

    def values(self, codes: IntArray, places: FloatArray | None = None) -> pa.Array:
        """Return values of the column's own type; places: from `places`, where there is a distribution."""
        import pyarrow as pa

        if self.dist is None:
            kind = pa.bool_() if self.attribute.values.kind == "boolean" else pa.string()
            made: Sequence[object] = self._raw
            if kind == pa.bool_():
                made = [None if text is None else _TRUTH[text.lower()] for text in self._raw]
            return pa.array(made, kind).take(pa.array(codes))
        assert places is not None
        return _typed(self.dist.values, places)

    def none(self) -> pa.Array:
        """No values, of the column's own type."""
        return self.values(np.zeros(0, np.int64), np.zeros(0))

    def texts(self, codes: IntArray, places: FloatArray | None = None) -> pa.Array:
        """As they are written in the column's format, for files without types."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.dist is None or self.attribute.edges is None:
            texts = pa.array(self._raw, pa.string()).take(pa.array(codes))
        else:
            assert places is not None
            texts = _written(self.dist.values, places, self._decimals)
            if self.dist.values.decimals is None and self._decimals:
                texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
            for zeros, short in self.dist.values.shortened:
                texts = pc.replace_substring_regex(texts, zeros, short)
            sign = self.attribute.matching.decimal
            if sign != "." and self.dist.values.kind in ("number", "integer"):
                texts = pc.replace_substring(texts, ".", sign)
            if self.attribute.matching.thousands is not None and not self.dist.values.is_temporal:
                texts = _with_digit_groups(texts, self.attribute.matching.thousands, sign)
            if self.attribute.matching.symbol is not None and not self.dist.values.is_temporal:
                before, after = self.attribute.matching.symbol.replace("\\", r"\\").split("0")
                form = (
                    (r"^-(.*)$", r"(\1)") if (before, after) == ("(", ")") else (r"^(-?)(.*)$", rf"\1{before}\2{after}")
                )
                texts = pc.replace_substring_regex(texts, *form)
        nulls = self.attribute.null_values
        return texts.fill_null(nulls[0]) if nulls and "" not in nulls else texts


def decoder(attribute: Attribute, table: FloatArray | None = None) -> Decoder:
    """Return the decoder of an attribute. table: a model's marginal, to which wide bins are fitted."""
    dist = bin_distribution(attribute) if table is None else fit_wide_bins(attribute, table)
    raw: list[str | None] = list(map(str, range(attribute.size)) if attribute.coded else attribute.labels)
    if dist is not None:
        raw = [text if there else None for text, there in zip(raw, dist.present, strict=True)]
    elif attribute.values.kind == "boolean":
        raw = [text if text is not None and text.lower() in _TRUTH else None for text in raw]
    missing = missing_code(attribute)
    if missing is not None:
        raw[missing] = None
    return Decoder(attribute=attribute, dist=dist, raw=tuple(raw), decimals=_decimals(attribute, dist))


def decoders_of(
    distribution: Distribution | MergedDistribution, domain: Domain, names: Sequence[str]
) -> dict[str, Decoder]:
    """Return decoders of some attributes, with wide bins fitted to the distribution."""
    tables = tables_of_wide(distribution, [domain[name] for name in names])
    return {name: decoder(domain[name], tables.get(name)) for name in names}


def _decimals(attribute: Attribute, dist: BinDistribution | None) -> int | None:
    """Return the number of digits written after the decimal point; None for all."""
    if dist is None or dist.values.kind != "number":
        return None
    if dist.values.digits is not None or attribute.edges is None:
        return dist.values.digits
    edges = np.array(attribute.edges)
    widths = np.diff(edges[np.isfinite(edges)])
    digits = max(0, 3 - math.floor(math.log10(widths.min()))) if len(widths) else 0
    largest = float(np.abs(edges[np.isfinite(edges)]).max(initial=0))
    return digits if dist.values.shape != "lower" and digits <= 15 and largest * 10.0**digits < 2**52 else None


def _typed(values: Values, places: FloatArray) -> pa.Array:
    """Places on the axis as Arrow numbers, dates or times; NaN is null."""
    import pyarrow as pa

    null = np.isnan(places)
    if values.kind == "number":
        return pa.array(places, pa.float64(), mask=null)
    whole = np.where(null, 0, places).astype(np.int64)
    if values.kind == "integer":
        return pa.array(whole, pa.int64(), mask=null)
    if values.kind == "datetime":
        return pa.array(whole, pa.timestamp("s"), mask=null)
    kind = pa.date32() if values.kind == "date" else pa.time32("s")
    return pa.array(whole.astype(np.int32), pa.int32(), mask=null).view(kind)


def _written(values: Values, places: FloatArray, decimals: int | None) -> pa.Array:
    """Places on the axis as texts in the column's format; NaN is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    null = np.isnan(places)
    if values.kind == "number" and decimals is not None and decimals <= 15:
        scaled = np.rint(np.where(null, 0, places) * 10.0**decimals)
        if np.abs(scaled).max(initial=0) < 2**53:
            return _fixed(scaled.astype(np.int64), decimals, null)
    typed = _typed(values, places)
    if (values.kind == "integer" and values.format is None) or (values.kind == "number" and decimals is None):
        return typed.cast(pa.string())
    distinct = typed.dictionary_encode()
    form = values.format or _ISO.get(values.kind)
    if values.is_temporal and form is not None and _PLAIN_FORMAT.fullmatch(form):
        stamps = distinct.dictionary
        if values.kind == "time":
            stamps = stamps.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("s"))
        texts = pc.strftime(stamps, format=form, locale="C").cast(pa.string())
    else:
        axis = {"number": pa.float64(), "datetime": pa.int64(), "integer": pa.int64()}.get(values.kind, pa.int32())
        texts = pa.array([values.text(float(one)) for one in distinct.dictionary.cast(axis).to_pylist()], pa.string())
    return texts.take(distinct.indices)


def _with_digit_groups(texts: pa.Array, sign: str, point: str) -> pa.Array:
    """Numbers with their digits in groups of three; null stays null."""
    import pyarrow as pa

    def grouped(text: str) -> str:
        whole, dot, fraction = text.partition(point)
        return f"{int(whole):,}".replace(",", sign) + dot + fraction if _DIGITS.fullmatch(whole) else text

    distinct = texts.dictionary_encode()
    return pa.array([grouped(text) for text in distinct.dictionary.to_pylist()], pa.string()).take(distinct.indices)


def _fixed(scaled: IntArray, decimals: int, null: Array) -> pa.Array:
    """Return scaled whole numbers as texts with a fixed number of decimals."""
    import pyarrow as pa

    if decimals == 0:
        return pa.array(scaled, pa.int64(), mask=null).cast(pa.string())
    if decimals > _PLAIN_DECIMALS:
        return _padded(scaled, decimals, null)
    # 128 bits each, the low 64 first: the sign fills the high ones.
    words = np.stack([scaled, scaled >> 63], axis=1)
    valid = pa.py_buffer(np.packbits(~null, bitorder="little"))
    kind = pa.decimal128(18, decimals)
    return pa.Array.from_buffers(kind, len(scaled), [valid, pa.py_buffer(words)]).cast(pa.string())


def _padded(scaled: IntArray, decimals: int, null: Array) -> pa.Array:
    """The same for any number of decimals, about half as fast."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.utf8_lpad(pa.array(np.abs(scaled), pa.int64(), mask=null).cast(pa.string()), decimals + 1, "0")
    whole, fraction = pc.utf8_slice_codeunits(digits, 0, -decimals), pc.utf8_slice_codeunits(digits, -decimals)
    signs = pa.array(["", "-"]).take(pa.array((scaled < 0).astype(np.int64)))
    return pc.binary_join_element_wise(pc.binary_join_element_wise(signs, whole, ""), fraction, ".")
