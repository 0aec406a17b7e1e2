"""Constraints by order: the value of one column is never above that of another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core.attribute import Attribute, parse_number
from dpgm_core.constraints.forms import Mask, undetermined_mask
from dpgm_core.errors import DomainError

__all__ = ["WHOLE", "Ordered", "axis_intervals"]

#: From, to, and whether the end belongs to it; None of what has no place.
_Interval: TypeAlias = tuple[float, float, bool] | None

#: Kinds whose places on the axis are whole.
WHOLE = ("integer", "date")
#: Kinds that stand on one axis; plain texts and booleans on none of their own.
_AXES = {"integer": "numbers", "number": "numbers", "text": "numbers", "boolean": "numbers"}


@frozen(kw_only=True)
class Ordered:
    """The value of the first column is never above that of the second; missing values are above nothing.

    strict: nor equal to it. Bins, and labels that are numbers or dates, are compared by the values that fall on them:
    two are impossible together only if no two such values fit. Other labels by their places, which then must be the
    same labels in the same order in both columns. Orders of several columns also rule out what no values of all of
    them fit, see `dpgm_core.constraints.Rule`.

    >>> start, end = Attribute.of_bins("start", [0, 10, 20], unknown="?"), Attribute.of_size("end", 12)
    >>> Ordered(name="time", columns=("start", "end")).impossible((start, end)).sum(axis=1).tolist()
    [0, 10, 0]
    """

    name: str
    columns: tuple[str, str]
    strict: bool = False

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse columns that cannot be compared."""
        if any(one.private is not None and one.edges is None for one in attributes):
            raise DomainError(
                f"constraint {self.name!r} orders columns whose labels are found privately; these have none"
            )
        _places(self.name, attributes)

    def impossible(self, attributes: Sequence[Attribute]) -> Mask:
        """The pairs in which no value of the first is below any of the second."""
        waiting = undetermined_mask(self.name, attributes)
        if waiting is not None:
            return waiting
        first, second = _places(self.name, attributes)
        low = np.array([-math.inf if one is None else one[0] for one in first])[:, None]
        high = np.array([math.inf if one is None else one[1] for one in second])[None, :]
        closed = np.array([one is None or one[2] for one in second])[None, :]
        # The least value of the first is in its bin; some value of the second is above it if the bin's end is.
        fits = high > low if self.strict else (high > low) | (closed & (high == low))
        fits |= np.array([one is None for one in first])[:, None] | np.array([one is None for one in second])[None, :]
        return np.asarray(~fits, dtype=bool)

    def over(self, attributes: Sequence[Attribute]) -> Ordered:
        """Itself: no label is named."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""
        return {"columns": list(self.columns), "order": "<" if self.strict else "<="}


def _places(name: str, attributes: Sequence[Attribute]) -> tuple[list[_Interval], list[_Interval]]:
    kinds = [_AXES.get(one.values.kind, one.values.kind) for one in attributes]
    if kinds[0] != kinds[1]:
        raise DomainError(
            f"constraint {name!r} compares {kinds[0]}, {attributes[0].name}, with {kinds[1]}, "
            f"{attributes[1].name}; give both columns one type"
        )
    first, second = (axis_intervals(one) for one in attributes)
    if first is None and second is None:
        return _in_order(name, attributes)
    if first is None or second is None:
        number, other = attributes if second is None else attributes[::-1]
        raise DomainError(
            f"constraint {name!r} compares {number.name}, which are numbers, with {other.name}, whose labels are none; "
            "give both columns one type"
        )
    return first, second


def axis_intervals(attribute: Attribute) -> list[_Interval] | None:
    """Which values fall on each code; None where no label is a value on an axis."""
    whole = attribute.values.kind in WHOLE
    if attribute.edges is not None:
        bins = len(attribute.edges) - 1
        ends = list(itertools.pairwise(attribute.edges))
        intervals = [_bin(low, high, closed=number == bins - 1, whole=whole) for number, (low, high) in enumerate(ends)]
        return [*intervals, *[None] * (attribute.size - bins)]
    places = [_number(attribute, label) for label in attribute.labels]
    if all(place is None for place in places):
        return None
    return [None if place is None else (place, place, True) for place in places]


def _bin(low: float, high: float, *, closed: bool, whole: bool) -> _Interval:
    if whole and math.isfinite(low) and math.isfinite(high):
        first, last = math.ceil(low), math.floor(high) if closed or high != math.floor(high) else math.floor(high) - 1
        if first <= last:  # else no value falls on it, and nothing needs to be said
            return float(first), float(last), True
    return low, high, closed


def _number(attribute: Attribute, label: str) -> float | None:
    place = attribute.values.number(label) if attribute.values.is_numeric else parse_number(label.encode())
    return place if place is not None and math.isfinite(place) else None


def _in_order(name: str, attributes: Sequence[Attribute]) -> tuple[list[_Interval], list[_Interval]]:
    """Labels by their places; those of missing and unknown values have none."""
    real = [
        [label for code, label in enumerate(one.labels) if code not in (one.null, one.unknown)] for one in attributes
    ]
    if real[0] != real[1]:
        raise DomainError(
            f"constraint {name!r} compares {attributes[0].name} with {attributes[1].name} by the places of their "
            "labels, which differ; give both columns the same labels in the same order"
        )
    rank = {label: float(place) for place, label in enumerate(real[0])}
    first, second = ([_point(rank.get(label)) for label in one.labels] for one in attributes)
    return first, second


def _point(place: float | None) -> _Interval:
    return None if place is None else (place, place, True)
