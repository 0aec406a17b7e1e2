"""Numbers inside bins under the orders that the domain demands, such as admission before discharge.

The engines exclude cells without any ordered values. Where two bins overlap, some of their values are ordered and
others are not: rows that break an order draw all its columns anew until none does, which samples the distribution
inside the bins conditional on the order. Draws are limited to values that some ordered record has, so that a round
often succeeds. In a bin without an end, values are at its finite edge, or as far beyond it as an order requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.domain.constraints import Constraint, Ordered
from dpgm_core.domain.resolved_constraints import Pair, chains
from dpgm_core.models.within_bins import BinDistribution, Decoder, ordered_bin_distribution
from dpgm_core.structure import graphs
from dpgm_core.structure.graphs import Clique

__all__ = ["Orders", "orders_among"]

#: A round orders half of the pairs in one bin, so a pair remains unordered with probability 2^-256.
_MAX_ROUNDS = 256
_SECONDS_PER_DAY = 86_400.0


@frozen(kw_only=True, eq=False)
class Orders:
    """The orders among some columns that have numbers. pairs: (the lower column, the upper, whether strictly).

    decoders: of the columns with numbers. dists: of these, and of labels that an order compares as numbers.
    """

    pairs: tuple[Pair, ...]
    decoders: Mapping[str, Decoder]
    dists: Mapping[str, BinDistribution]

    def places(
        self, codes: Mapping[str, Array], fixed: Mapping[str, float], generator: np.random.Generator
    ) -> dict[str, FloatArray]:
        """Places on its axis of each column with numbers, NaN for codes without one; every order holds.

        codes: of all columns, (records,) each. fixed: column -> the place that all its records have.
        """
        places = {name: self._placed(name, codes[name], generator) for name in self.dists}
        for name, place in fixed.items():
            places[name] = np.full(len(codes[name]), place)
        stay = {name: np.full(len(codes[name]), place) for name, place in fixed.items()}
        self._ordered(codes, stay, places, generator)
        return places

    def complete(
        self,
        codes: Mapping[str, Array],
        known: Mapping[str, FloatArray],
        gaps: Mapping[str, Array],
        generator: np.random.Generator,
    ) -> dict[str, FloatArray]:
        """Return places of rows with some known values: these stay, and every order holds for the others.

        codes: of all columns. known: places of the known values. gaps: column -> rows that are drawn.
        """
        places: dict[str, FloatArray] = {}
        stay = {name: np.where(gaps[name], np.nan, known[name]) for name in self.dists}
        for name in self.dists:
            at = np.flatnonzero(gaps[name])
            places[name] = stay[name].copy()
            places[name][at] = self._placed(name, codes[name][at], generator)
        self._ordered(codes, stay, places, generator)
        return places

    def fit(self, codes: Mapping[str, Array], fixed: Mapping[str, float]) -> Array:
        """Whether some values of a record's codes keep all orders, (records,); the others no drawing can mend.

        codes: of all columns. fixed: column -> the place that all its records have. The least values above all bounds
        tell, see `dpgm_core.domain.resolved_constraints`; of those that the columns are written with.
        """
        fits = np.ones(len(next(iter(codes.values()))), dtype=bool)
        for group, pairs in self._parts():
            stay = {name: np.full(len(fits), fixed.get(name, np.nan)) for name in group}
            low, high = self._box(pairs, {name: codes[name] for name in group}, stay)
            for name in group:
                fits &= ~(low[name] > high[name])
        return fits

    def ruled_out(
        self, known_places: Mapping[str, FloatArray], gaps: Mapping[str, Array]
    ) -> list[tuple[Clique, FloatArray, IntArray]]:
        """Return which missing codes the known values leave: those with a value on the right side of them.

        known_places: places of known values, NaN for none. gaps: column -> rows that lack it. Each entry has the
        missing column, followed by those of the chain between it and the known one, all of which must have values;
        log-weights (states, codes), 0 or -inf; and the state of each row.
        """
        pieces = []
        for chain in chains(self.pairs):
            for known, target, up in ((chain[0][0], chain[-1][1], True), (chain[-1][1], chain[0][0], False)):
                rows = ~np.isnan(known_places[known]) & gaps[target]
                if rows.any() and known != target:
                    sign = 1.0 if up else -1.0
                    ends = sign * self._farthest(target, up=up)
                    steps = np.unique(ends)
                    state = np.searchsorted(steps, sign * self._along(chain, known_places[known], up=up))
                    passed = np.searchsorted(steps, ends)[None, :] < np.arange(len(steps) + 1)[:, None]
                    between = (target, *(high for _, high, _ in chain[:-1]))
                    pieces.append((between, np.where(passed, -np.inf, 0.0), np.where(rows, state, 0)))
        return pieces

    def _along(self, chain: Sequence[Pair], places: FloatArray, *, up: bool) -> FloatArray:
        """The nearest places that a chain of orders lets its other end have, up or down from these at one of them."""
        for low, high, strict in chain if up else reversed(chain):
            here, there = (low, high) if up else (high, low)
            places = places * (self._unit(here) / self._unit(there))
            places = np.nextafter(places, np.inf if up else -np.inf) if strict else places
            places = self._snapped(there, places, up=up)
        return places

    def _farthest(self, name: str, *, up: bool) -> FloatArray:
        """(codes,): the last place of each code, up or down; infinite without a number, and without an end."""
        dist, endless = self.dists[name], np.inf if up else -np.inf
        ends = dist.placed(dist.high if up else dist.low)
        if name in self.decoders:
            ends = self.decoders[name].round(np.arange(len(ends)), ends)
        return np.where(self._open(name)[int(up)] | ~dist.present, endless, ends)

    def _placed(self, name: str, codes: Array, generator: np.random.Generator) -> FloatArray:
        """Drawn by the distribution of the bins alone."""
        if name in self.decoders:
            return self.decoders[name].places(codes, generator.random(len(codes)))
        dist = self.dists[name]
        return np.where(dist.present[codes], dist.placed(dist.low)[codes], np.nan)

    def _ordered(
        self,
        codes: Mapping[str, Array],
        stay: Mapping[str, FloatArray],
        places: dict[str, FloatArray],
        generator: np.random.Generator,
    ) -> None:
        """Draw anew, in place, what breaks an order. stay: column -> the places that must, NaN for all others."""
        for group, pairs in self._parts():
            none = np.full(len(places[group[0]]), np.nan)
            own = {name: stay.get(name, none) for name in group}
            free = np.logical_or.reduce([np.isnan(column) for column in own.values()])
            rows = np.flatnonzero(self._broken(pairs, places) & free)
            if len(rows):
                here = {name: column[rows] for name, column in own.items()}
                self._mend(pairs, {name: codes[name][rows] for name in group}, here, rows, places, generator)

    def _parts(self) -> Iterator[tuple[list[str], list[Pair]]]:
        """Columns that orders join, each after those below it, and these orders."""
        names = list(dict.fromkeys(name for low, high, _ in self.pairs for name in (low, high)))
        near = graphs.neighbours_of(names, [(low, high) for low, high, _ in self.pairs])
        for part in graphs.components(near):
            pairs = [pair for pair in self.pairs if pair[0] in part]
            yield _upwards([name for name in names if name in part], self.pairs), pairs

    def _unit(self, name: str) -> float:
        """Return the factor that brings a column's places on the common axis: seconds in a day."""
        return _SECONDS_PER_DAY if self.dists[name].values.kind == "date" else 1.0

    def _broken(self, pairs: Sequence[Pair], places: Mapping[str, FloatArray]) -> Array:
        """Which records break an order; one without a number breaks none."""
        broken = np.zeros(len(next(iter(places.values()))), bool)
        for low, high, strict in pairs:
            one, other = places[low] * self._unit(low), places[high] * self._unit(high)
            broken |= one >= other if strict else one > other
        return broken

    def _mend(
        self,
        pairs: Sequence[Pair],
        codes: Mapping[str, Array],
        stay: Mapping[str, FloatArray],
        rows: IntArray,
        places: dict[str, FloatArray],
        generator: np.random.Generator,
    ) -> None:
        """Draw the columns of these rows anew, in place, until they keep the orders. codes: each after those below."""
        low, high = self._box(pairs, codes, stay)
        left = np.arange(len(rows))
        for number in range(_MAX_ROUNDS + 1):
            drawn_places: dict[str, FloatArray] = {}
            for name, column in codes.items():
                bound = low[name][left]
                # Where all rounds failed, the lower ones leave the upper ones what is above them.
                if number == _MAX_ROUNDS:
                    bound = np.fmax(bound, self._bound(pairs, name, drawn_places, bound, up=True))
                drawn = self._between(name, column[left], bound, high[name][left], generator)
                drawn_places[name] = _first_of(stay[name][left], drawn)
            self._stretch(pairs, {name: column[left] for name, column in codes.items()}, stay, left, drawn_places)
            for name, column in drawn_places.items():
                places[name][rows[left]] = column
            left = left[self._broken(pairs, drawn_places)]
            if not len(left):
                return

    def _stretch(
        self,
        pairs: Sequence[Pair],
        codes: Mapping[str, Array],
        stay: Mapping[str, FloatArray],
        left: IntArray,
        made: dict[str, FloatArray],
    ) -> None:
        """Move values of bins without an end as far as the others ask, in place: up, then down."""
        for up, names in ((True, [*codes]), (False, [*codes][::-1])):
            for name in names:
                bound = self._bound(pairs, name, made, made[name], up=up)
                beyond = bound > made[name] if up else bound < made[name]
                move = self._open(name)[int(up)][codes[name]] & beyond & np.isnan(stay[name][left])
                made[name] = np.where(move, self._written(name, bound, up=up), made[name])

    def _bound(
        self, pairs: Sequence[Pair], name: str, places: Mapping[str, FloatArray], end: FloatArray, *, up: bool
    ) -> FloatArray:
        """Up: the least place above all columns that must be below, among those that have places, and above `end`; else
        the largest place below all that must be above."""
        tighter, further = (np.fmax, np.inf) if up else (np.fmin, -np.inf)
        for low, high, strict in pairs:
            here, other = (high, low) if up else (low, high)
            if here == name and other in places:
                bound = places[other] * (self._unit(other) / self._unit(name))
                bound = np.nextafter(bound, further) if strict else bound
                end = np.where(np.isnan(end), end, tighter(end, bound))
        return end

    def _written(self, name: str, places: FloatArray, *, up: bool) -> FloatArray:
        """The next place that the column can have, and is written with."""
        dist, none = self.dists[name], np.isnan(places)
        filled = np.where(none, 0.0, places)
        if dist.lattice is None and name in self.decoders:
            return np.where(none, np.nan, self.decoders[name].next_written(filled, up=up))
        return np.where(none, np.nan, dist.placed(dist.first(filled) if up else dist.last(filled)))

    def _open(self, name: str) -> tuple[Array, Array]:
        """(codes,), which are bins without an end below, and above."""
        dist = self.dists[name]
        open_low, open_high = np.zeros(len(dist.low), bool), np.zeros(len(dist.low), bool)
        edges = self.decoders[name].attribute.edges if name in self.decoders else None
        if edges is not None:
            open_low[0], open_high[len(edges) - 2] = np.isinf(edges[0]), np.isinf(edges[-1])
        return open_low, open_high

    def _box(
        self, pairs: Sequence[Pair], codes: Mapping[str, Array], stay: Mapping[str, FloatArray]
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The least and the largest place of each column that some record in its bins has with every order kept."""
        low, high = {}, {}
        for name, here in codes.items():
            dist, (open_low, open_high) = self.dists[name], self._open(name)
            least = np.where(open_low, -np.inf, dist.placed(dist.low))
            most = np.where(open_high, np.inf, dist.placed(dist.high))
            low[name] = _first_of(stay[name], np.where(dist.present[here], least[here], np.nan))
            high[name] = _first_of(stay[name], np.where(dist.present[here], most[here], np.nan))
        for name in codes:  # from the lowest, so that a bound passes through all of them
            low[name] = self._snapped(name, self._bound(pairs, name, low, low[name], up=True), up=True)
        for name in reversed(list(codes)):
            high[name] = self._snapped(name, self._bound(pairs, name, high, high[name], up=False), up=False)
        return low, high

    def _snapped(self, name: str, places: FloatArray, *, up: bool) -> FloatArray:
        """The next place of the lattice; what is infinite or none stays."""
        dist, known = self.dists[name], np.isfinite(places)
        filled = np.where(known, places, 0.0)
        return np.where(known, dist.placed(dist.first(filled) if up else dist.last(filled)), places)

    def _between(
        self, name: str, codes: Array, low: FloatArray, high: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        """Draw from a column's bins between two places; bounds that cross are ignored."""
        dist, none, (open_low, open_high) = self.dists[name], np.isnan(low), self._open(name)
        # A bin without an end has one place: its own, or the one nearest to it in the bounds.
        single = (open_low | open_high)[codes]
        own = dist.placed(dist.low)[codes]
        near = np.where(single, np.fmin(np.fmax(own, low), np.fmax(high, low)), np.nan)
        first = dist.first(np.where(none | single, own, low))
        last = dist.last(np.where(none | single, own, high))
        crossed = first > last
        first, last = np.where(crossed, dist.low[codes], first), np.where(crossed, dist.high[codes], last)
        drawn = dist.between(codes, first, last, generator.random(len(codes)))
        if name in self.decoders:
            drawn = self.decoders[name].round(codes, drawn)
        drawn = np.where(single, self._written(name, near, up=True), np.where(low == high, low, drawn))
        return np.where(none, np.nan, drawn)


def orders_among(constraints: Sequence[Constraint], decoders: Mapping[str, Decoder]) -> Orders:
    """The orders that constraints demand of columns that are written. decoders: by column, with numbers or not."""
    orders = [one for one in constraints if isinstance(one, Ordered) and set(one.columns) <= set(decoders)]
    dists = {name: one.dist for name, one in decoders.items() if one.dist is not None}
    numeric = {name: decoders[name] for name in dists}
    points = {name: ordered_bin_distribution(decoders[name].attribute) for one in orders for name in one.columns}
    dists |= {name: dist for name, dist in points.items() if name not in dists}
    numeric_orders = [one for one in orders if all(dists[name].present.any() for name in one.columns)]
    return Orders(pairs=tuple((*one.columns, one.strict) for one in numeric_orders), decoders=numeric, dists=dists)


def _first_of(own: FloatArray, other: FloatArray) -> FloatArray:
    """Return the fixed place where there is one, otherwise the other."""
    return np.where(np.isnan(own), other, own)


def _upwards(names: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
    """Each column after all that are below it; those of a circle last."""
    order: list[str] = []
    while len(order) < len(names):
        waiting = [name for name in names if name not in order]
        free = [name for name in waiting if all(low in order for low, high, _ in pairs if high == name)]
        order += free or waiting
    return order
