"""The table of a column of any type, from what was released of its shapes, labels and cells.

Each rule reads noisy numbers of persons and public lists (`dpgm_core.domain.shapes`), so a table is post-processing.
Their constants were chosen on made-up columns (`benchmarks.made_columns`, decision 0048).
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from dpgm_core.domain.bins_of_counts import (
    CLEAR,
    FEW_BINS,
    Counts,
    cut_days,
    cut_numbers,
    divide,
    find_peaks,
    find_spikes,
    narrow_peaks,
    spread_counts,
)
from dpgm_core.domain.shapes import (
    CALENDAR,
    COMMON_LABELS,
    DAYS_AS_NUMBERS,
    DECIMALS,
    EDGE,
    FAR_CODES,
    LEAST_POWER,
    PARTS,
    RARE_KINDS,
    SHAPES,
    SMALL_POWER,
    SURE,
    SYMBOLS,
    TIMES,
    WORDS,
    YEAR_POWER,
    ZEROS,
    cells_of_place,
    date_years,
    interval_of,
    number_places,
    place_of,
    read_padded,
    read_thousands,
    read_zeros,
    shape_of,
    take_far_codes,
    without_symbol,
)
from dpgm_core.domain.values import EXACT_WHOLE

__all__ = ["cells_to_count", "has_labels", "has_values", "table_of"]

#: Where so many of all are in that power of two, and cells do not show that earlier ones occur, nobody has them.
_YEARS_ALONE = 0.9
#: Standard deviations of noise: from these a common label occurs; without its shape; and next to a word of its group.
#: Of 250 that nobody has one is taken in one of 17 columns, of three more of a group in one of 15.
_LABEL, _ALONE, _GROUPED = 3.5, 4.5, 2.0
#: Ranges of small whole numbers that begin below this power of two begin with 1, and so do those of several more; those
#: that end with this one or a later begin with 0 where 1 is not half as common as others, so that few may have 0.
_FIRST_POWER, _SEVERAL, _COUNTED = 4, 2, 3
#: Shapes need so many times as many persons if all that clearly occurs is more places away than this, and they have at
#: most this part of the persons of the commonest or are of another kind.
_BESIDE, _FEW, _NEAR = 1.5, 0.25, 4
#: Shapes of rare kinds need so many times as many persons.
_RARE = 1.2
#: A type has to hold for this share of what was found of a column, and labels have to cover it where they could be
#: numbers.
_NEARLY_ALL = 0.95
#: Values are searched where cells with several, of so many standard deviations of their noise, have this share of all.
_VALUED, _OF_PEAKS = 8.0, 0.04
#: Labels of this share of all are labels if texts such as V58 are among them, as in codes of diagnoses.
_CODED = 0.8
#: So many texts that are no words for it, at most, mark what is missing among values of another type, which at least
#: this share has; so do other texts, such as remarks, up to this share.
_MARKS, _MOST_OF_IT, _REMARKS = 3, 0.5, 0.1
#: A place needs `EDGE` standard deviations of persons to widen a range by itself, this much of it more for each other
#: place between, up to so many times. Places of numbers this many powers of two below the largest, which have few
#: values, do not count as between.
_EACH_AWAY, _FAR, _NEAR_ZERO = 0.4, 3.5, 4
#: So many times as many it needs where it has the other sign, where labels cover the values, and beyond an end that
#: thins out: the outer half of its place has at most this share of the inner half, which clearly has persons.
_UNLIKELY, _THIN = 2.0, 1 / 6
#: Bins without persons at the ends of a range go where cells do not show that more than this share of all has them.
_TRIMMED = 0.03
#: Numbers have fewer decimals if at least this part has of those of which zeros at the end would not be written.
_TRIMMED_ZEROS = 0.25
#: A bin is cut where it has more standard deviations of persons than this: about ten of the noise of its table.
_ENOUGH = 2.0
#: Times of day have so many bins where each would have twice as many persons as that, on average; else hours.
_HALF_HOURS = 48
#: Parts of cells are counted where numbers of three or more decimals, or of this power of two, are in so few of them.
_FINE_POWER, _FEW_POWERS = 16, 2
_FINE = tuple(f"number{sign}{decimals}" for sign in ".," for decimals in (3, DECIMALS))
#: Shapes of texts; the first one of what may be numbers.
_TEXTS = ("padded", "text", "word", "code")
#: At least this share of 14/05/21 and the like has an open order, two fifths where the year is last; of 21/05/14 none.
_OPEN = 0.1


def table_of(
    shapes: Mapping[str, int],
    labels: Mapping[str, int],
    keep: int,
    sigma: float,
    cells: Mapping[str, int] | None = None,
    fine: float | None = None,
    cells_sigma: float | None = None,
) -> dict[str, Any]:
    """Return the table of a column: its type with bins, or its labels.

    Common texts among numbers, dates or times, such as "NA", mark what is missing there; so do a tenth of others.

    Parameters
    ----------
    shapes, labels, cells : mapping of str to int
        What was released, with noisy numbers of persons; of shapes those above `EDGE` sigma.
    keep : int
        The most labels or bins, 8 or more.
    sigma, fine, cells_sigma : float
        The standard deviations of the noise of shapes, labels and cells; by default the same. Persons.

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
    fine, cells_sigma, cells, every_label = fine or sigma, cells_sigma or sigma, cells or {}, labels
    counts: Mapping[str, int] = _certain(shapes, sigma)
    shapes, counts = _without_few_days(shapes, counts)
    symbol = _symbol_of(counts)
    if symbol:
        shapes, counts = _read_symbols(shapes, symbol), _read_symbols(counts, symbol)
    words = {cell.removeprefix("word "): count for cell, count in cells.items() if cell.startswith("word ")}
    labels = _occurring(shapes, words or labels, cells_sigma if words else fine, counts.keys() == {"word"})
    shapes, counts, cells, of_thousands = read_thousands(shapes, counts, cells)
    shapes, counts = read_zeros(shapes, counts, 2 * EDGE * sigma)
    shapes, counts, padded = read_padded(shapes, counts)
    signs = ({"symbol": symbol} if symbol else {}) | of_thousands | padded
    every = sum(counts.values())
    commonest = [label for label, _ in sorted(labels.items(), key=lambda one: (-one[1], one[0]))][:keep]
    together = sum(map(labels.__getitem__, commonest))
    covered = together >= _NEARLY_ALL * every > 0
    coded = together >= _CODED * every and any(_shape_of_label(one) == "code" for one in labels)
    marks = [one for one in commonest if labels[one] >= _ALONE * fine and _shape_of_label(one) in ("text", "word")]
    if covered or sum(one.lower() not in WORDS[-1] for one in marks) > _MARKS:
        marks = []
    texts, known = _texts(counts), sum(map(labels.__getitem__, marks))
    remarks = 0.0 if covered else min(counts.get("text", 0) + counts.get("padded", 0), _REMARKS * every)
    marked = texts if marks and texts - known <= CLEAR * sigma else min(texts, known + remarks)  # others are noise
    missing = {"null_values": marks} if marks else {}

    def is_most(some: Counts) -> bool:
        unclear = CLEAR * sigma * math.sqrt(len(counts))
        return sum(some.values()) >= max(_NEARLY_ALL * (every - marked) - unclear, _MOST_OF_IT * every) > 0

    if coded or (padded and covered):
        return {"labels": commonest}
    for sign in ".,":
        starts = ("integer ", f"number{sign}")
        if is_most(_starting(counts, starts)):
            numbers = _starting(counts, starts), _starting(shapes, starts)
            values = {
                _without_signs(label, symbol, of_thousands): labels[label]
                for label in commonest
                if label not in missing.get("null_values", ())
            }
            alone = covered and not signs  # labels would lose how numbers are written
            table = _of_numbers(*numbers, values, cells, alone, keep, sign, sigma, cells_sigma)
            if padded:
                most = 10 ** int(padded["format"][2:-1]) - 1
                inner = [edge for edge in table["bins"][1:-1] if most / 160 < edge < most]  # few have many zeros
                table["bins"] = [0, *inner, min(most, table["bins"][-1])]
            return table | signs | missing
    for kind in ("date", "datetime"):
        starts = ("date ", f"{kind} ")
        if is_most(_starting(counts, starts)):
            both = _starting(counts, starts), _starting(shapes, starts)
            if (days := _of_days(kind, *both, cells, keep, sigma, cells_sigma)) is not None:
                return days | missing
    for clocks in ({"minute", "time"}, {"minute", "minute1"}, {"minute12", "minute12pm"}, {"time12"}):
        persons = {clock: counts.get(clock, 0) for clock in clocks}
        if is_most(persons):
            form = TIMES[max(clocks & counts.keys())]  # one that reads both
            are_enough = sum(persons.values()) > 2 * _HALF_HOURS * _ENOUGH * sigma
            bins = _HALF_HOURS if are_enough and keep >= _HALF_HOURS else min(24, keep)
            return {"type": "time", "bins": bins} | ({"format": form} if form else {}) | missing
    return {"labels": _with_codes_between(commonest, every_label)[:keep]}


def _without_few_days(shapes: Counts, counts: Counts) -> tuple[dict[str, int], dict[str, int]]:
    """Return shapes, and those that certainly occur, where whole numbers such as 20210514 are days or are none.

    They are days if nearly all that occurs beside texts are. Else those that certainly occur are whole numbers, and
    others, which may be noise of forty shapes, are nobody.
    """
    kind, number = DAYS_AS_NUMBERS
    days = sum(_starting(counts, (kind,)).values())
    if days >= _NEARLY_ALL * (sum(counts.values()) - _texts(counts)) > 0:
        return dict(shapes), dict(counts)
    both = [{shape: one[shape] for shape in one if not shape.startswith(kind)} for one in (shapes, counts)]
    if days:
        both = [one | {number: one.get(number, 0) + days} for one in both]
    return both[0], both[1]


def _symbol_of(counts: Counts) -> str | None:
    """Return the symbol of at least half of what occurs beside texts, or of negative numbers, if nearly all are so."""
    together = {symbol: sum(_starting(counts, (f"{symbol} ",)).values()) for symbol in SYMBOLS}
    symbol, most = max(together.items(), key=lambda one: one[1])
    numbers = most + sum(_starting(counts, ("integer ", "number", "grouped")).values())
    every = sum(counts.values()) - _texts(counts)
    is_enough = most > 0 and (symbol == "(0)" or most >= _MOST_OF_IT * every)
    return symbol if is_enough and numbers >= _NEARLY_ALL * every else None


def _read_symbols(shapes: Counts, symbol: str) -> dict[str, int]:
    """Return shapes of numbers in place of those with a symbol. They keep kinds of their own, as each has noise."""
    with_symbol = re.compile(f"^{re.escape(symbol)} (.*) (.*)")
    return {with_symbol.sub(rf"\1 {symbol} \2", shape): count for shape, count in shapes.items()}


def _without_signs(label: str, symbol: str | None, of_thousands: Mapping[str, str]) -> str:
    """Return a number without its symbol and signs of thousands."""
    if symbol:
        label = without_symbol(label.encode())[1].decode()
    return label.replace(of_thousands["thousands"], "") if of_thousands else label


def _shape_of_label(label: str) -> str:
    return shape_of(label.encode("utf-8", "surrogatepass"))


def _texts(counts: Counts) -> int:
    return sum(counts.get(shape, 0) for shape in _TEXTS)


def _occurring(shapes: Counts, labels: Counts, fine: float, alone: bool) -> dict[str, int]:
    """Return the labels that occur: far above the noise, or less far where another word of their group does.

    alone: there is nothing but common words, so of some groups all occur where one does.
    """
    certain = {
        label: count
        for label, count in labels.items()
        if count >= (_LABEL if _shape_of_label(label) in shapes else _ALONE) * fine
    }
    words = {label.lower() for label in certain}
    near = {word for group in WORDS[:-1] if words.intersection(group) for word in group}  # of marks one is likely
    whole = {word for group in WORDS[:-2] if alone and words.intersection(group) for word in group}
    styles = {(label.islower(), label.istitle(), label.isupper()) for label in certain if label.lower() in near}
    every = dict.fromkeys((form for word in whole for form in (word, word.capitalize(), word.upper())), 0)
    return certain | {
        label: count
        for label, count in (every | dict(labels)).items()
        if label.lower() in near
        and (label.islower(), label.istitle(), label.isupper()) in styles
        and (count >= _GROUPED * fine or label.lower() in whole)
    }


def _with_codes_between(labels: Sequence[str], every: Counts) -> list[str]:
    """Return labels with the small whole numbers between those that occur, from 1 on, unless these are far apart.

    every: all labels that were released, of which those up to twice the largest that occurs are added too.
    """
    codes = {int(label) for label in labels if label in _CODES}
    if len(codes) < 2 or any(_shape_of_label(label) == "padded" for label in labels):
        return list(labels)
    more = {int(label) for label in every if label in _CODES and int(label) <= 2 * max(codes)}
    if max(codes) - min(codes) < 2 * len(codes):
        more |= {*range(min(1, *codes) if min(codes) < 2**_FIRST_POWER else min(codes), max(codes) + 1)}
    return [*labels, *(str(code) for code in sorted(more - codes))]


def _certain(shapes: Counts, sigma: float) -> dict[str, int]:
    """Return the shapes that certainly occur: each by itself, or next to others of its kind with as many together.

    Places in a row have `SURE` standard deviations of the noise of their sum. Half as much more is needed far from all
    that clearly occurs, of another kind than it or of less than a quarter of the persons of the commonest shape: of 500
    columns without persons one has a row, and noise must not change the type or range of those that have some.
    """

    def needed(kind: str) -> float:
        return SURE * sigma * (_RARE if kind in RARE_KINDS else 1)

    sure = {shape for shape, count in shapes.items() if count >= needed(shape.rpartition(" ")[0])}
    most, surer = max((shapes[shape] for shape in sure), default=0), _BESIDE * SURE * sigma
    clear = [shape.rsplit(" ", 1) for shape in sure if " " in shape and shapes[shape] >= min(most, surer)]

    def is_doubtful(persons: int, kind: str, *places: str) -> bool:
        """Return whether a place or a row of places is more likely noise."""
        is_far = all(abs(_AXIS[place] - _AXIS[other]) > _NEAR for place in places for _, other in clear)
        is_alike = all(other == "zero" for _, other in clear) or any(kind == one for one, _ in clear)
        return bool(most) and is_far and (persons < most * _FEW or not is_alike)

    codes = {f"{kind} {place}" for kind, place in itertools.product(("integer", ZEROS), FAR_CODES.values())}
    codes = {shape for shape in codes if shapes.get(shape, 0) >= _LABEL * sigma}
    few = {shape for shape in sure - codes if " " in shape and shapes[shape] < surer}
    sure -= {shape for shape in few if is_doubtful(shapes[shape], *shape.rsplit(" ", 1))}
    for (kind, places), others in itertools.product(_PLACES.items(), (False, True)):
        # The best row, and the best one of places that are not certain yet, as of zeros and of numbers far from them.
        names = [f"{kind} {place}" for place in places]
        counts = [0 if others and name in sure else shapes.get(name, 0) for name in names]
        occurring = [at for at, count in enumerate(counts) if count]
        sums = [0, *itertools.accumulate(counts)]
        rows = {
            (first, last): (sums[last + 1] - sums[first]) / math.sqrt(last + 1 - first)
            for first, last in itertools.combinations_with_replacement(occurring, 2)
        }
        (first, last), row = max(rows.items(), key=lambda one: one[1], default=((0, 0), 0.0))
        doubtful = is_doubtful(sums[last + 1] - sums[first], kind, places[first], places[last])
        if first < last and row >= needed(kind) * (_BESIDE if doubtful else 1):
            sure |= {names[at] for at in occurring if first <= at <= last}
    sure |= codes if sure else set()
    return {shape: count for shape, count in shapes.items() if shape in sure}


def has_labels(shapes: Mapping[str, int], sigma: float) -> bool:
    """Return whether the labels of a column are of use: it certainly has texts, or values of no one type.

    Common words alone have cells.

    >>> has_labels({"text": 300}, 5.0), has_labels({"integer 2^0": 300}, 5.0), has_labels({"date ?/?/%Y 2020": 90}, 5.0)
    (True, False, True)
    >>> has_labels({"word": 300}, 5.0), has_labels({"word": 300, "integer 2^0": 90}, 5.0)
    (False, True)
    """
    sure = _certain(shapes, sigma)
    if not sure.keys().isdisjoint(("text", "code", "padded")) or ("word" in sure and len(sure) > 1):
        return True
    return bool(sure.keys() - {"word"}) and "labels" in table_of(shapes, {}, FEW_BINS, sigma)


def cells_to_count(shapes: Mapping[str, int], sigma: float) -> tuple[str, ...]:
    """Return the cells of a column that are of use: of all places that may occur of the numbers and dates that do.

    Small whole numbers among texts are labels, and so are common words among others.

    >>> len(cells_to_count({"integer 2^9": 300}, 5.0)), cells_to_count({"text": 300, "integer 2^2": 300}, 5.0)
    (512, ())
    """
    certain = _certain(shapes, sigma).keys()
    sure = certain - {*_TEXTS, *TIMES}
    has = has_labels(shapes, sigma)
    if has and sure <= _SMALL_SHAPES:
        return ()
    kinds = {shape.rpartition(" ")[0] for shape in sure}
    places = {shape.rpartition(" ")[2]: None for shape in shapes if shape.rpartition(" ")[0] in kinds}
    words = ["word"] if "word" in certain and not has else []
    cells = tuple(cell for place in (*places, *words) for cell in cells_of_place(place))
    return (*cells, *PARTS) if _is_narrow({shape: shapes[shape] for shape in sure}) else cells


def has_values(shapes: Mapping[str, int], cells: Mapping[str, int], sigma: float, fine: float) -> bool:
    """Return whether values of a column are of use: of numbers of which few cells stand out that can have several.

    >>> cells = {f"2^12 {cell}": 9000 * (cell == 10) for cell in range(64)}
    >>> has_values({"integer 2^12": 9000}, cells, 5.0, 9.0), has_values({"integer 2^12": 9000}, {}, 5.0, 9.0)
    (True, False)
    """
    counts: Mapping[str, int] = _certain(shapes, sigma)
    symbol = _symbol_of(counts)
    counts = _read_symbols(counts, symbol) if symbol else counts
    _, counts, cells, _ = read_thousands(counts, counts, cells)
    sure = _starting(counts, ("integer ", "number"))
    if not sure:
        return False
    scale = _scale_of(sure)[1]
    known = {interval_of(cell, scale): float(count) for cell, count in cells.items() if "^" in cell}
    known = {(low, high): count for (low, high), count in known.items() if low < high}
    peaks = find_peaks(known, (), _VALUED * fine, len(known), scale)
    several = sum(mass for (low, high), mass in peaks.items() if not scale or high - low > 1)
    return several > _OF_PEAKS * sum(sure.values())


def _scale_of(sure: Counts) -> tuple[int, int]:
    """Return the most decimals, and the units in 1, which are values that numbers of so many have; 0 for any."""
    decimals = max(int(shape[7]) if shape.startswith("number") else 0 for shape in sure)
    return decimals, 10**decimals if decimals < DECIMALS else 0


def _is_narrow(sure: Counts) -> bool:
    """Return whether numbers with many values are nearly all of one power of two or two, so that cells may be wide."""
    powers = {shape.rpartition(" ")[2]: count for shape, count in sure.items() if "^" in shape}
    is_fine = any(shape.startswith(_FINE) for shape in sure) or all(
        int(place.rpartition("^")[2]) >= _FINE_POWER for place in powers
    )
    few = len(powers) <= _FEW_POWERS and sum(powers.values()) > _MOST_OF_IT * sum(sure.values())
    return few and is_fine


#: The places of each kind, in their order.
_PLACES: dict[str, list[str]] = {}
for _kind, _, _at in (shape.rpartition(" ") for shape in SHAPES):
    if _kind:
        _PLACES.setdefault(_kind, []).append(_at)
_AXIS = {place: at for at, place in enumerate(number_places(LEAST_POWER))}
_AXIS |= {str(year): 2 * len(_AXIS) + at for at, year in enumerate(date_years())}
_CODES = frozenset(COMMON_LABELS[: 2**SMALL_POWER])
_SMALL_SHAPES = frozenset(
    f"integer {place}" for place in number_places(0) if place == "zero" or int(place.rpartition("^")[2]) < SMALL_POWER
)


def _starting(counts: Counts, starts: tuple[str, ...]) -> dict[str, int]:
    return {shape: count for shape, count in counts.items() if shape.startswith(starts)}


def _around(
    sure: Counts,
    edge: Counts,
    axis: Sequence[str],
    least: float,
    thins_out: Callable[[str, int], bool] = lambda place, step: False,
) -> dict[str, int]:
    """Return the places of an axis from the first to the last that occur, with their counts, 0 where none was found.

    sure: what certainly occurs, one at least. edge: what does if something near does. least: persons that the next
    place needs. thins_out: of a place, whether its side of higher places, 1, or lower ones, -1, has few persons.
    """
    kinds = {shape.rsplit(" ", 1)[0] for shape in sure}
    counts, several = Counter[str](), Counter[str]()
    for shape, count in edge.items():
        kind, place = shape.rsplit(" ", 1)
        if kind in kinds:
            counts[place] += count
            several[place] += 1
    certain = [axis.index(shape.rsplit(" ", 1)[1]) for shape in sure]
    first, last = min(certain), max(certain)
    ends = {place: int(place.rpartition("^")[2]) for place in (axis[first], axis[last]) if "^" in place}
    top = max(ends.values(), default=LEAST_POWER) - _NEAR_ZERO
    near = {"zero", *(place for place in axis if "^" in place and int(place.rpartition("^")[2]) < top)}

    def reach(end: int, step: int) -> int:
        """The last place of a side that occurs; what is further away needs a larger count."""
        at, needed = end, _UNLIKELY if thins_out(axis[end], step) else 1.0
        while 0 <= at + step < len(axis):
            at += step
            if axis[at].startswith("-") is not axis[end].startswith("-"):
                needed = max(needed, _UNLIKELY)
            if counts[axis[at]] >= needed * least * math.sqrt(max(1, several[axis[at]])):  # noise of each kind adds up
                end, needed = at, _UNLIKELY if thins_out(axis[at], step) else 1.0
            elif axis[at] not in near:
                needed = min(_FAR, needed + _EACH_AWAY)
        return end

    return {place: counts[place] for place in axis[reach(first, -1) : reach(last, 1) + 1]}


def _thins_out(sure: Counts, cells: Counts, fine: float, scale: int, place: str, step: int) -> bool:
    """Return whether a side of a place, 1 for that of higher ones, has few persons beside the rest; years have few."""
    years = f"integer 2^{YEAR_POWER}"
    if scale == 1 and place == f"2^{YEAR_POWER}" and sure.get(years, 0) >= _YEARS_ALONE * sum(sure.values()):
        return True
    parts = sorted(
        (interval, cells[cell])
        for cell in cells_of_place(place)
        if cell in cells and (interval := interval_of(cell, scale))[0] < interval[1]
    )
    order = [count for _, count in parts][::step]
    half = len(order) // 2
    inner, outer = sum(order[:half]), sum(order[half:])
    return half > 1 and outer <= _THIN * inner and inner >= CLEAR * math.sqrt(half) * fine


def _without_early_years(cells: Counts, fine: float) -> dict[str, int]:
    """Return cells without those before the first year that occurs, which is 1900 at most.

    A row of cells before 1900, or before others that occur, does where its sum is clearly above the noise.
    """
    early = [cell for cell in cells_of_place(f"2^{YEAR_POWER}") if interval_of(cell, 1)[1] <= CALENDAR]
    row = 1
    while row and early:
        sums = enumerate(itertools.accumulate(cells.get(cell, 0) for cell in reversed(early)), 1)
        most, row = max((one / math.sqrt(length), length) for length, one in sums)
        row *= most >= CLEAR * fine
        early = early[: len(early) - row]
    return {cell: count for cell, count in cells.items() if cell not in early}


def _of_numbers(
    sure: Counts,
    edge: Counts,
    labels: Counts,
    cells: Counts,
    covered: bool,
    keep: int,
    sign: str,
    sigma: float,
    fine: float,
) -> dict[str, Any]:
    """Return the table of a column of numbers. labels: the commonest, with noisy counts."""
    whole = not any(shape.startswith("number") for shape in sure)
    decimals, scale = _scale_of(sure)
    numbers = {label: value for label in labels if (value := _number(label, sign, scale)) is not None}
    values = {value: labels[label] for label, value in numbers.items() if scale or value}  # zero has a place of its own
    if whole and covered and len(numbers) == len(labels):
        codes = sorted(map(int, values))
        if codes[-1] - codes[0] >= 2 * len(codes):  # far apart, as in 1, 2, 99
            return {"labels": [str(code) for code in codes], "numbers": True}
    # Values of fewer decimals have no smaller size.
    axis = number_places(math.frexp(10.0**-decimals)[1] - 1 if decimals < DECIMALS else LEAST_POWER)
    edge = {shape: count for shape, count in edge.items() if shape.rsplit(" ", 1)[1] in axis}
    sure = {shape: count for shape, count in sure.items() if shape.rsplit(" ", 1)[1] in axis} or {"integer zero": 0}
    if whole:  # what occurs as a label does
        listed = {shape: 1 for value in values if (shape := f"integer {place_of(value, 0)}") not in sure}
        sure, edge = listed | dict(sure), listed | edge
    every_sure, every_edge = sure, edge
    sure, edge, codes = take_far_codes(sure, edge, cells, keep // 8, EDGE * fine, CLEAR * math.hypot(sigma, fine))
    keep -= 2 * len(codes)
    table: dict[str, Any] = {"type": "integer" if whole else "number"}
    needed = EDGE * sigma * (_UNLIKELY if covered else 1)
    places = _around(sure, edge, axis, needed, functools.partial(_thins_out, sure, cells, fine, scale))
    places = _from_one(places, axis) if whole else places
    if scale == 1 and places.get(f"2^{YEAR_POWER}", 0) >= _YEARS_ALONE * sum(places.values()):
        cells = _without_early_years(cells, fine)
    step = 1.0 if scale else 10.0**-decimals
    spikes = find_spikes(values, places, keep // 3, scale, step, sigma)
    masses = spread_counts(places, cells, values, spikes, scale, step, fine)
    narrow = PARTS[0] in cells
    if narrow:
        masses = divide(masses, [cells[part] for part in PARTS], scale, fine)
    digits = 0 if scale else decimals
    alone = {(value, round(value + step, digits)): float(count) for value, count in spikes.items()}
    alone |= find_peaks(masses, places, _ENOUGH * sigma, keep // 3 - len(alone), scale)
    masses |= dict.fromkeys(masses.keys() & alone, 0.0)
    alone = narrow_peaks(alone, sure, scale) if scale > 1 else alone
    room, every = keep // 3, sum(places.values())
    for low, high in [one for one in alone if one[0] not in spikes]:  # peaks of several values have bins by their share
        parts = int(min(high - low if scale else narrow * room, room / 2, keep * alone[low, high] / max(1, every)))
        if parts > 1:
            digits = 0 if scale else 2 - math.floor(math.log10((high - low) / parts))
            inner = (low + (high - low) * at / parts for at in range(1, parts))
            ends = [low, *(float(math.floor(end)) if scale else round(end, digits) for end in inner), high]
            mass, room = alone.pop((low, high)) / parts, room - parts
            alone |= dict.fromkeys(itertools.pairwise(ends), mass)
    raw = [(interval_of(cell, scale), count) for cell, count in cells.items() if "^" in cell]

    def is_empty(low: float, high: float) -> bool:
        """Return whether cells show that few are between two numbers."""
        some = [count for (start, end), count in raw if low <= start < end <= high]
        return sum(some) + CLEAR * fine * math.sqrt(len(some)) <= _TRIMMED * every

    edges = cut_numbers(places, masses, list(alone), keep, scale, _ENOUGH * sigma, is_empty)
    if not scale:
        written = [len(label.partition(sign)[2]) for label, value in numbers.items() if value in spikes]
        decimals, edges = _with_decimals(edges, sure, {*spikes}, max(written, default=0))
        if any(shape.startswith(("integer -", "number.1 zeros -")) for shape in sure):  # of those below 0, -200 is last
            edges = [round(edge + 10.0**-DECIMALS, decimals) if edge < 0 else edge for edge in edges]
        edges = sorted({*edges})
    unit = 1 if whole else 10.0**-decimals
    for code in reversed(codes):  # has a bin of its own, and so has what is between it and others
        if code < 0:
            edges = [code, round(code + unit, decimals), *edges]
        else:
            last = (math.floor(round(edges[-1] * scale, 6)) + 1) / scale if scale else edges[-1]
            edges = [*edges[:-1], int(last) if whole else last, code, code + unit / 2]
    table |= {"bins": edges, "cap": True}
    if places.get("zero") and len(places) > 1 and not (whole and places.get("2^0")):
        table["shape"] = "uniform"  # many zeros, which are all alike, do not say that other numbers are near zero
    if not whole and max(map(abs, edges)) * 10.0**decimals < EXACT_WHOLE:
        few = Counter[int]()
        for shape, count in every_edge.items():
            if shape in every_sure or count >= SURE * sigma:
                few[int(shape[7]) if shape.startswith("number") else 0] += count
        part = _TRIMMED_ZEROS * few.total() / 10.0**decimals
        fewer = [one for one in range(min(decimals, DECIMALS)) if few[one] >= part * 10.0**one]
        fewer = sorted({*fewer, *written} - {decimals}) if not scale else fewer
        table["decimals"] = [*fewer, decimals] if fewer else decimals
    elif whole and 2 * sum(_starting(sure, ("integer zeros",)).values()) > sum(sure.values()):
        table["format"] = "%d.0"
    return table | ({"decimal": ","} if sign == "," and not whole else {})


def _with_decimals(edges: list[float], sure: Counts, values: Set[float], written: int) -> tuple[int, list[float]]:
    """Return with how many decimals numbers of any are written, two more than bins need, and edges of which those
    around zero leave only zero between them, if that occurs as such, and those around other values only these.

    values: with bins of their own. written: the most decimals of these.
    """
    tiny = math.ldexp(1.0, LEAST_POWER)
    wide = (two for two in itertools.pairwise(edges) if two[0] not in values and max(-two[0], two[1]) > tiny)
    width = min((high - low for low, high in wide if high - low > 10.0**-DECIMALS / 2), default=tiny)
    decimals = min(15, max(DECIMALS, written, 2 - math.floor(math.log10(width))))
    ends = dict[float, float]()
    if any(shape.endswith(" zero") and (shape[0] == "i" or int(shape[7]) < DECIMALS) for shape in sure):
        least = min(tiny, 10.0**-decimals)
        ends = {tiny: least, -tiny: 0.0 if tiny in edges else -least}
    ends |= {high: round(low + 10.0**-decimals, decimals) for low, high in itertools.pairwise(edges) if low in values}
    return decimals, [ends.get(edge, edge) for edge in edges]


def _from_one(places: dict[str, int], axis: Sequence[str]) -> dict[str, int]:
    """Return places of whole numbers, from 0 or 1 on where they are small or of several powers of two, and up to 3."""
    first, last = next(iter(places)), list(places)[-1]
    if last in ("zero", "2^0"):  # rarely the only values
        places = places | dict.fromkeys(axis[axis.index(last) + 1 : axis.index("2^1") + 1], 0)
    powers = [int(place.partition("2^")[2] or -1) for place in (first, last)]
    small = powers[0] < _FIRST_POWER and powers[1] < SMALL_POWER
    if "-" in first or first == "zero" or not (small or powers[1] - powers[0] >= _SEVERAL):
        return places
    even = sum(places.values()) / 2 ** (powers[1] + 1)
    start = "zero" if powers[1] >= _COUNTED and places.get("2^0", 0) < even / 2 else "2^0"
    return dict.fromkeys(axis[axis.index(start) : axis.index(first)], 0) | places


def _number(label: str, sign: str, scale: int) -> float | None:
    """Return the number that a label is, in units; None for another text, or a number that is not whole where all are.

    scale: units in 1, which are the values that numbers of so many decimals have; 0 for any numbers.
    """
    kind = _shape_of_label(label).partition(" ")[0]
    if kind in ("integer", ZEROS, "padded"):
        return float(label) * (scale or 1)
    if scale == 1 or not kind.startswith(f"number{sign}") or "e" in label.lower():
        return None
    value = float(label.replace(",", "."))
    return float(round(value * scale)) if scale else value


def _of_days(
    kind: str, sure: Counts, edge: Counts, cells: Counts, keep: int, sigma: float, fine: float
) -> dict[str, Any] | None:
    """Return the table of dates; None where the order of day and month is open, or texts have several formats."""
    forms = Counter[str]()
    for shape, count in sure.items():
        forms[_form_of(shape)] += count
    if all(form[:3] in ("", "%Y-") for form in forms):  # all are read without a format, but not written so
        midnights = len(forms) == 2 and 0 < forms[""] <= (1 - _NEARLY_ALL) * forms.total()
        form = max(forms) if midnights or len(forms) == 1 or forms.keys() == {"", "%Y-%m-%d"} else ""
    else:
        clear = [form for form in forms if "?" not in form]
        if len(clear) != 1 or any(other != re.sub("%[dm]", "?", clear[0]) for other in forms.keys() - clear):
            return None
        (form,) = clear
        if form[-2:] == "%y" and forms[re.sub("%[dm]", "?", form)] < _OPEN * forms.total():
            return None
    same = {shape: count for shape, count in edge.items() if _form_of(shape) in (*forms, "")}
    years = _around(sure, same, [str(year) for year in date_years()], EDGE * sigma)
    table: dict[str, Any] = {"type": kind, "cap": True} | ({"format": form} if form else {})
    return table | {"bins": cut_days(years, cells, keep, _ENOUGH * sigma, fine)}


def _form_of(shape: str) -> str:
    """Return the format of a shape of dates; empty for ISO 8601."""
    return " ".join(shape.split(" ")[1:-1])
