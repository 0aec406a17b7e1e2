"""Numbers in their bins that keep an order which the domain demands, such as admission before discharge.

The engines keep records out of cells that no ordered values fall into. Where two bins overlap some values in them are
ordered and others not: rows that break an order draw all columns of it anew, until none does. That is the law inside
the bins, given the order. Drawing is kept to values that some ordered record has, so that a round succeeds often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core import graphs
from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.constraints import Constraint, Ordered
from dpgm_core.models.decoded import Decoder
from dpgm_core.models.within import Within

__all__ = ["Orders", "orders_among"]

#: Of a pair in one bin a round settles half, so what is left after all is left with probability 2^-256.
_ROUNDS = 256
_DAY = 86_400.0


@frozen(kw_only=True, eq=False)
class Orders:
    """The orders among some columns that have numbers. pairs: (the lower column, the upper, whether strictly)."""

    pairs: tuple[tuple[str, str, bool], ...]
    decoders: Mapping[str, Decoder]

    def places(
        self, codes: Mapping[str, Array], fixed: Mapping[str, float], generator: np.random.Generator
    ) -> dict[str, FloatArray]:
        """Places on its axis of each column with numbers, NaN for codes without one; every order holds.

        codes: of all columns of the decoders, (records,) each. fixed: column -> the place that all its records have.
        """
        found: dict[str, FloatArray] = {}
        for name, one in self.decoders.items():
            found[name] = one.places(codes[name], generator.random(len(codes[name])))
            if name in fixed:
                found[name] = np.full(len(codes[name]), fixed[name])
        stay = {name: np.full(len(codes[name]), place) for name, place in fixed.items()}
        self._ordered(codes, stay, found, generator)
        return found

    def completed(
        self,
        codes: Mapping[str, Array],
        given: Mapping[str, FloatArray],
        gaps: Mapping[str, Array],
        generator: np.random.Generator,
    ) -> dict[str, FloatArray]:
        """Places of rows of which some values are given: these stay, and every order holds for the others.

        codes: of all columns. given: the places of values that are given. gaps: column -> which rows are drawn.
        """
        found: dict[str, FloatArray] = {}
        stay = {name: np.where(gaps[name], np.nan, given[name]) for name in self.decoders}
        for name, one in self.decoders.items():
            at = np.flatnonzero(gaps[name])
            found[name] = stay[name].copy()
            found[name][at] = one.places(codes[name][at], generator.random(len(at)))
        self._ordered(codes, stay, found, generator)
        return found

    def _ordered(
        self,
        codes: Mapping[str, Array],
        stay: Mapping[str, FloatArray],
        found: dict[str, FloatArray],
        generator: np.random.Generator,
    ) -> None:
        """Draw anew, in place, what breaks an order. stay: column -> the places that must, NaN for all others."""
        for group in self._groups():
            pairs = [pair for pair in self.pairs if pair[0] in group]
            none = np.full(len(next(iter(found.values()))), np.nan)
            own = {name: stay.get(name, none) for name in group}
            free = np.logical_or.reduce([np.isnan(column) for column in own.values()])
            rows = np.flatnonzero(self._broken(pairs, found) & free)
            if len(rows):
                here = {name: column[rows] for name, column in own.items()}
                self._mend(pairs, group, rows, codes, here, found, generator)

    def _groups(self) -> list[list[str]]:
        """The columns that orders join."""
        names = list(dict.fromkeys(name for low, high, _ in self.pairs for name in (low, high)))
        near = graphs.neighbours_of(names, [(low, high) for low, high, _ in self.pairs])
        return [[name for name in names if name in part] for part in graphs.components(near)]

    def _unit(self, name: str) -> float:
        """What brings a column's places on one axis with the others': seconds in a day."""
        return _DAY if self._law(name).values.kind == "date" else 1.0

    def _law(self, name: str) -> Within:
        law = self.decoders[name].law
        assert law is not None
        return law

    def _broken(self, pairs: Sequence[tuple[str, str, bool]], places: Mapping[str, FloatArray]) -> Array:
        """Which records break an order; one without a number breaks none."""
        broken = np.zeros(len(next(iter(places.values()))), bool)
        for low, high, strict in pairs:
            one, other = places[low] * self._unit(low), places[high] * self._unit(high)
            broken |= one >= other if strict else one > other
        return broken

    def _mend(
        self,
        pairs: Sequence[tuple[str, str, bool]],
        group: Sequence[str],
        rows: IntArray,
        codes: Mapping[str, Array],
        stay: Mapping[str, FloatArray],
        found: dict[str, FloatArray],
        generator: np.random.Generator,
    ) -> None:
        """Draw these records' columns anew, in place, until they keep the orders."""
        low, high = self._box(pairs, group, rows, codes, stay)
        left = np.arange(len(rows))
        for _ in range(_ROUNDS):
            for name in group:
                drawn = self._between(name, codes[name][rows[left]], low[name][left], high[name][left], generator)
                found[name][rows[left]] = _kept_own(stay[name][left], drawn)
            at = rows[left]
            left = left[self._broken(pairs, {name: found[name][at] for name in group})]
            if not len(left):
                return
        # Where so many rounds fail, the lower ones go first and leave the upper ones what is above them.
        at = rows[left]
        for name in self._upwards(pairs, group):
            bound = low[name][left]
            for one, other, strict in pairs:
                if other == name:
                    under = found[one][at] * (self._unit(one) / self._unit(name))
                    bound = np.fmax(bound, np.nextafter(under, np.inf) if strict else under)
            drawn = self._between(name, codes[name][at], bound, high[name][left], generator)
            found[name][at] = _kept_own(stay[name][left], drawn)

    def _box(
        self,
        pairs: Sequence[tuple[str, str, bool]],
        group: Sequence[str],
        rows: IntArray,
        codes: Mapping[str, Array],
        stay: Mapping[str, FloatArray],
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The least and the largest place of each column that some record in its bins has with every order kept."""
        low, high = {}, {}
        for name in group:
            law = self._law(name)
            here = codes[name][rows]
            present = law.present[here]
            low[name] = np.where(present, law.placed(law.low)[here], np.nan)
            high[name] = np.where(present, law.placed(law.high)[here], np.nan)
            low[name], high[name] = _kept_own(stay[name], low[name]), _kept_own(stay[name], high[name])
        for _ in group:  # a bound passes at most through all of them
            for one, other, strict in pairs:
                unit = self._unit(one) / self._unit(other)
                above = np.where(np.isnan(high[other]), np.inf, high[other]) / unit
                below = np.where(np.isnan(low[one]), -np.inf, low[one]) * unit
                above = self._law(one).last(np.nextafter(above, -np.inf) if strict else above)
                below = self._law(other).first(np.nextafter(below, np.inf) if strict else below)
                high[one] = _kept(np.fmin, high[one], self._law(one).placed(above))
                low[other] = _kept(np.fmax, low[other], self._law(other).placed(below))
        return low, high

    def _between(
        self, name: str, codes: Array, low: FloatArray, high: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        """The law of a column's bins kept between two places; where the bounds cross, as if there were none."""
        one, law = self.decoders[name], self._law(name)
        none = np.isnan(low)
        first, last = law.first(np.where(none, 0.0, low)), law.last(np.where(none, 0.0, high))
        crossed = first > last
        first, last = np.where(crossed, law.low[codes], first), np.where(crossed, law.high[codes], last)
        drawn = law.between(first, last, generator.random(len(codes)))
        drawn = np.where(low == high, low, one.rounded(codes, drawn))
        return np.where(none, np.nan, drawn)

    def _upwards(self, pairs: Sequence[tuple[str, str, bool]], group: Sequence[str]) -> list[str]:
        """Each column after all that are below it."""
        order: list[str] = []
        while len(order) < len(group):
            free = [
                name
                for name in group
                if name not in order and all(low in order for low, high, _ in pairs if high == name)
            ]
            order += free or [name for name in group if name not in order]
        return order


def orders_among(constraints: Sequence[Constraint], decoders: Mapping[str, Decoder]) -> Orders:
    """The orders that constraints demand of columns with numbers. decoders: by column, those without numbers too."""
    numeric = {name: one for name, one in decoders.items() if one.law is not None}
    found = [one for one in constraints if isinstance(one, Ordered) and set(one.columns) <= set(numeric)]
    return Orders(pairs=tuple((*one.columns, one.strict) for one in found), decoders=numeric)


def _kept_own(own: FloatArray, drawn: FloatArray) -> FloatArray:
    """What must stay where there is such a thing, else what was drawn."""
    return np.where(np.isnan(own), drawn, own)


def _kept(tighter: np.ufunc, bound: FloatArray, other: FloatArray) -> FloatArray:
    """The tighter of two bounds; NaN, of a record without a number, binds nothing and stays what it is."""
    return np.where(np.isnan(bound), np.nan, tighter(bound, other))
