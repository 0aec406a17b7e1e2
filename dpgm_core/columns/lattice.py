"""Possible values of a column on its axis: whole numbers, hundredths, days, minutes, or any number.

They are numbered k = ..., -1, 0, 1, ... in their order, so to draw one of those in a bin is to draw a whole number.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.columns.values import Values

__all__ = ["Lattice", "lattice_of"]

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

    >>> lattice_of(Values(kind="time", format="%H:%M")).place(np.array([0, 1, 12])).tolist()
    [0.0, 60.0, 720.0]
    """
    if values.kind == "number":
        return None if values.decimals is None else _fractions(values.decimals)
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
