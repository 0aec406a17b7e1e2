"""Bins of a column of numbers or dates, cut where its noisy counts of places, values and cells are.

The rules and their constants are as in `dpgm_core.domain.tables_of_shapes`.
"""

from __future__ import annotations

import itertools
import math
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import TypeAlias

from dpgm_core.domain.shapes import LEAST_POWER, SURE, YEARS, cells_of_place, interval_of, place_of

__all__ = [
    "CLEAR",
    "Counts",
    "FEW_BINS",
    "Interval",
    "cut_days",
    "cut_numbers",
    "divide",
    "find_peaks",
    "find_spikes",
    "narrow_peaks",
    "spread_counts",
]

#: An interval [low, high) of numbers in units, see `find_spikes`, or of slots of months.
Interval: TypeAlias = tuple[float, float]
#: Persons by shape, label or cell.
Counts: TypeAlias = Mapping[str, int]

#: So many times as common as the values of its power of two a value has a bin of its own, and so many times as dense as
#: those next to it an interval has few values.
_SPIKE, _DENSE = 4, 3.0
#: Bins without persons at the ends of a range go, but for those of numbers below this.
_CODE_LIKE = 8
#: Any table of numbers has so many bins, if it may.
FEW_BINS = 16
#: Standard deviations of noise: cells above these stand out; halves that differ by more are not even.
_PEAK, CLEAR = 4.0, 2.0
#: Cells that have this share of all are cut by parts.
_MAIN = 0.25
#: Numbers lie around the border of two cells if so many parts to either side of some part have at most this share of
#: all: those above it are the end of one cell, those below it the beginning of the next.
_GAP, _FEW_BETWEEN = 8, 0.05
#: Into how many parts so many months are cut; a month has a slot for each day that one can have.
_PARTS, _SLOTS = {60: 5, 12: 2, 6: 2, 3: 3}, 31
#: Where at most so many bins have persons, and these have at most so many slots each, all of them are cut at these
#: slots: months into thirds, these into days. Given as slots, bins, and where they are cut.
_SHORTER = ((31, 6, (0, 10, 20, 31)), (11, 18, range(12)))


def find_spikes(
    values: Mapping[float, int], places: Counts, most: int, scale: int, step: float, sigma: float
) -> dict[float, int]:
    """Return the values that are much commoner than others of their place, and than whole numbers next to them.

    Those next to a value that certainly occurs would have been found, were they as common.
    """
    spikes = {}
    for value, count in values.items():
        place = place_of(value / (scale or 1), 0 if scale == 1 else LEAST_POWER)
        low, high = interval_of(place, scale)
        near = max(values.get(value - 1, 0), values.get(value + 1, 0)) if scale == 1 else 0
        common = max(_SPIKE * places.get(place, 0) * step / (high - low), _SPIKE / 2 * near, SURE * sigma)
        if place != "zero" and places.get(place) and count > common:
            spikes[value] = count
    return dict(sorted(spikes.items(), key=lambda one: (-one[1], one[0]))[:most])


def spread_counts(
    places: Counts,
    cells: Counts,
    values: Mapping[float, int],
    spikes: Mapping[float, int],
    scale: int,
    step: float,
    fine: float,
) -> dict[Interval, float]:
    """Return persons by interval, without spikes: of cells, of values that were found and the rest of their place.

    Those of a place add up to its own noisy count, which has less noise than their sum.
    """
    masses: dict[Interval, float] = {}
    for place, count in places.items():
        low, high = interval_of(place, scale)
        parts = {
            interval: float(cells[cell])
            for cell in cells_of_place(place)
            if cell in cells and (interval := interval_of(cell, scale))[0] < interval[1]
        }
        alone = {value: many for value, many in spikes.items() if low <= value < high}
        count = max(0, count - sum(alone.values()))
        if len(parts) > 1:
            for value, many in alone.items():
                parts = {part: mass - many * (part[0] <= value < part[1]) for part, mass in parts.items()}
            masses |= _smooth(dict(sorted(parts.items())), count, fine)
            continue
        others = {value: many for value, many in values.items() if low <= value < high and value not in spikes}
        masses |= {(value, value + step): float(many) for value, many in others.items()}
        rest = max(0.0, count - sum(others.values()))
        free = [low, *(end for value in sorted(others) for end in (value, value + step)), high]
        free_parts = [(one, other) for one, other in zip(free[::2], free[1::2], strict=True) if other > one]
        width = sum(other - one for one, other in free_parts)
        masses |= {(one, other): rest * (other - one) / width for one, other in free_parts}
    return masses


def _smooth(parts: Mapping[Interval, float], total: float, fine: float) -> dict[Interval, float]:
    """Return masses of this sum: peaks as they are, and the rest halved again and again, evenly but where noise is not.

    parts: noisy masses of equal noise, in order.
    """
    peaks = {part for part, mass in parts.items() if mass > _PEAK * fine}
    rest = {part: mass for part, mass in parts.items() if part not in peaks}
    masses = {part: parts[part] for part in peaks}
    waiting = [(list(rest), max(0.0, total - sum(masses.values())))]
    while waiting:
        some, mass = waiting.pop()
        if len(some) == 1:
            masses[some[0]] = mass
        elif some:
            half = len(some) // 2
            lower, upper = (sum(rest[part] for part in one) for one in (some[:half], some[half:]))
            widths = [end - start for start, end in some]
            even = mass * sum(widths[:half]) / sum(widths)
            excess = (lower - upper - (2 * even - mass)) / 2
            clear = abs(excess) > CLEAR * math.sqrt(len(some)) / 2 * fine
            first = min(mass, max(0.0, even + excess * clear))
            waiting += [(some[:half], first), (some[half:], mass - first)]
    return {part: masses[part] for part in parts}


def divide(masses: Mapping[Interval, float], parts: Sequence[int], scale: int, fine: float) -> dict[Interval, float]:
    """Return masses with those of large intervals, but zero, spread by parts, which are of the sizes of numbers."""
    divided, every = dict[Interval, float](), sum(masses.values())
    of_both = _part_between(masses, parts, fine)
    for (low, high), mass in masses.items():
        if (low, high) not in of_both and (not mass > _MAIN * every or low < 0 < high):
            divided[low, high] = mass
            continue
        ends = [low + (high - low) * at / len(parts) for at in range(len(parts) + 1)]
        ends = [float(math.ceil(end)) for end in ends] if scale else ends
        own = of_both.get((low, high), parts)
        order = own if low >= 0 else own[::-1]
        some = {two: float(one) for two, one in zip(itertools.pairwise(ends), order, strict=True) if two[0] < two[1]}
        divided |= _smooth(some, mass, fine)
    return divided


def _part_between(masses: Mapping[Interval, float], parts: Sequence[int], fine: float) -> dict[Interval, list[int]]:
    """Return which parts the largest interval and the larger one beside it have, where numbers lie around their border.

    Then the one of larger sizes has the first parts, the other the last, and hardly any are between. Else none.
    """
    largest = max(masses, key=lambda one: (masses[one], one))
    adjacent = [one for one in masses if one[0] == largest[1] or one[1] == largest[0]]
    if not adjacent or largest[0] < 0 < largest[1]:
        return {}
    inner, outer = sorted((largest, max(adjacent, key=lambda one: masses[one])), key=lambda one: abs(one[0] + one[1]))
    share = masses[outer] / max(1.0, masses[inner] + masses[outer])
    at = min(range(_GAP, len(parts) - _GAP + 1), key=lambda at: sum(parts[at - _GAP : at + _GAP]))
    every, unclear = sum(parts), CLEAR * fine * math.sqrt(len(parts))
    is_gap = sum(parts[at - _GAP : at + _GAP]) <= _FEW_BETWEEN * every + unclear / 2
    if share == 0 or not is_gap or abs(sum(parts[:at]) - share * every) > _FEW_BETWEEN * every + unclear:
        return {}
    return {inner: [0] * at + list(parts[at:]), outer: [*parts[:at], *[0] * (len(parts) - at)]}


def find_peaks(
    known: Mapping[Interval, float], places: Iterable[str], least: float, most: int, scale: int
) -> dict[Interval, float]:
    """Return the intervals within places that are much denser than a neighbour, with persons."""
    order, every = sorted(known), {interval_of(place, scale) for place in places}
    density = [0.0, *(known[one] / (one[1] - one[0]) for one in order), 0.0]
    peaks = {
        one: known[one]
        for at, one in enumerate(order, 1)
        if known[one] > least and one not in every and density[at] > _DENSE * min(density[at - 1], density[at + 1])
    }
    return dict(sorted(peaks.items(), key=lambda one: (-one[1], one[0]))[: max(0, most)])


def narrow_peaks(alone: Mapping[Interval, float], sure: Counts, scale: int) -> dict[Interval, float]:
    """Return peaks of which those with one number of as few decimals as their place has are of that number alone."""
    units, peaks = dict[str, int](), {}
    for shape in sure:
        place, decimals = shape.rpartition(" ")[2], int(shape[7]) if shape.startswith("number") else 0
        units[place] = min(units.get(place, scale), scale // 10**decimals)
    for (low, high), mass in alone.items():
        unit = units.get(place_of(low / scale, LEAST_POWER), scale)
        value = float(unit * math.ceil(low / unit))
        is_one = value < high <= value + unit
        peaks[(value, value + 1) if is_one else (low, high)] = mass
    return peaks


def cut_numbers(
    counts: Counts,
    known: Mapping[Interval, float],
    alone: Sequence[Interval],
    keep: int,
    scale: int,
    least: float,
    is_empty: Callable[[float, float], bool],
) -> list[float]:
    """Return the edges of bins: places of an axis, of which the one with most persons is cut in halves again and again.

    known: persons by interval, but for those alone, which have a bin of their own. least: a bin is cut where it has
    more persons, or while there are few bins.
    """
    masses: dict[Interval, float] = {}
    places, gap = list(counts), None
    keep -= len({end for one in alone for end in one})
    for place, count in counts.items():
        low, high = interval_of(place, scale)
        if place == "zero" and not scale:  # nothing lies on a side where nothing was found
            low, high = low * (place != places[0]), high * (len(places) == 1 or place != places[-1])
        if gap is not None and not count:
            masses.pop(gap)
            low = gap[0]
        masses[low, high] = _within(known, low, high)
        gap = None if count else (low, high)
    every = set(masses)
    while len(masses) > keep:  # more powers of two than bins: the two rarest neighbours become one
        order = sorted(masses)
        one, other = min(itertools.pairwise(order), key=lambda two: masses[two[0]] + masses[two[1]])
        masses[one[0], other[1]] = masses.pop(one) + masses.pop(other)
    while len(masses) < keep:
        enough = least if len(masses) >= FEW_BINS else 0.0
        wide = [
            (low, high)
            for (low, high), mass in masses.items()
            if (mass > enough or (not enough and scale == 1 and high - low == 2))
            and ((high - low) % 2 == 0 if scale == 1 else high - low >= 2 if scale else low * high > 0)
        ]
        if not wide:
            break
        low, high = max(wide, key=lambda one: (masses[one], one))
        middle = (low + high) // 2 if scale else (low + high) / 2
        del masses[low, high]
        masses[low, middle], masses[middle, high] = (
            _within(known, low, middle),
            _within(known, middle, high),
        )
    order = sorted(masses)
    used = [
        one
        for one in order
        if masses[one]
        or one in every
        or abs(one[0]) < _CODE_LIKE * (scale or 1)
        or any(one[0] < b and a < one[1] for a, b in alone)
    ]
    at, until = order.index(used[0]), order.index(used[-1]) + 1
    while at and not is_empty(order[0][0], order[at][0]):
        at -= 1
    while until < len(order) and not is_empty(order[until][0], order[-1][1]):
        until += 1
    order = order[at:until]
    edges, last = [low for low, _ in order], order[-1][1]
    edges = sorted({*edges, *(end for one in alone for end in one if min(edges) < end < last)})
    if scale:  # the last bin is closed
        last = last - 1 if last - 1 > edges[-1] else last - 0.5
    return [int(edge) if scale == 1 and edge.is_integer() else edge / (scale or 1) for edge in [*edges, last]]


def cut_days(years: Counts, cells: Counts, keep: int, least: float, fine: float) -> list[str]:
    """Return first days of bins, and the last day: the bin with most persons is cut into years, halves and so on.

    Where few months have persons, all of these are cut into thirds and days too, as far as `keep` has room.
    """
    months: dict[Interval, float] = {}
    for year, count in years.items():
        first = _SLOTS * 12 * int(year)
        parts: dict[Interval, float] = {
            (first + _SLOTS * at, first + _SLOTS * (at + 1)): float(cells.get(cell, 0))
            for at, cell in enumerate(cells_of_place(year))
        }
        months |= _smooth(parts, count, fine)
    every = _SLOTS * 12
    masses = {(every * int(year), every * (int(year) + YEARS)): float(count) for year, count in years.items()}
    while len(masses) > max(1, keep):
        pair = min(itertools.pairwise(sorted(masses)), key=lambda two: masses[two[0]] + masses[two[1]])
        masses[pair[0][0], pair[1][1]] = masses.pop(pair[0]) + masses.pop(pair[1])
    while wide := [
        one
        for one, mass in masses.items()
        if mass > least and len(masses) - 1 + _PARTS.get((one[1] - one[0]) // _SLOTS, keep + 1) <= keep
    ]:
        low, high = max(wide, key=lambda one: (masses[one], one))
        del masses[low, high]
        width = (high - low) // _PARTS[(high - low) // _SLOTS]
        masses |= {(at, at + width): _within(months, at, at + width) for at in range(low, high, width)}
    for longest, most, cut in _SHORTER:
        some = [one for one, mass in masses.items() if mass > least]
        finer = {one: [*itertools.pairwise(one[0] + at for at in cut if one[0] + at <= one[1])] for one in some}
        is_short = len(some) <= most and all(one[1] - one[0] <= longest for one in some)
        others = sum(mass > 0 for mass in masses.values()) - len(some)
        if is_short and others + sum(map(len, finer.values())) <= keep - 2:
            masses = {one: mass for one, mass in masses.items() if one not in finer}
            masses |= {part: _within(months, *part) for parts in finer.values() for part in parts}
    order = sorted(masses)
    starts = [one[0] for at, one in enumerate(order) if not at or masses[one] or masses[order[at - 1]]]
    days = [*dict.fromkeys(_day_at(slot) for slot in starts)]
    return [*days, str(date.fromisoformat(_day_at(order[-1][1])) - timedelta(days=1))]


def _day_at(slot: int) -> str:
    """Return the day of a slot; of those that a month does not have, the first of the next."""
    month, day = divmod(slot, _SLOTS)
    if day >= monthrange(month // 12, month % 12 + 1)[1]:
        month, day = month + 1, 0
    return f"{month // 12:04d}-{month % 12 + 1:02d}-{day + 1:02d}"


def _within(masses: Mapping[Interval, float], low: float, high: float) -> float:
    """Return the persons between two numbers, even within an interval."""
    return sum(
        mass * (min(high, end) - max(low, start)) / (end - start)
        for (start, end), mass in masses.items()
        if mass and start < high and end > low
    )
