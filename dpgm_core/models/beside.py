"""Numbers with their labels beside them, as a notebook shows them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.markup import Html, first
from dpgm_core.printable import clipped
from dpgm_core.structure import Clique

__all__ = ["Labels", "number_table"]

#: Labels of each attribute.
Labels = Sequence[Sequence[str]]


def number_table(names: Clique, labels: Labels, columns: Mapping[str, FloatArray], standing: str | None) -> Html:
    """Numbers as a table: a column of labels for each attribute, the last one's fastest, then the numbers, `standing`.

    columns: arrays with one axis per name. Without names there are numbers alone, one after the other.

    >>> number_table(("sex",), (("F", "M"),), {"probability": np.array([0.4, 0.6])}, None).count("<tr>")
    3
    """
    shape = next(iter(columns.values())).shape
    flat = {name: np.reshape(column, -1) for name, column in columns.items()}

    def rows() -> Iterator[list[object]]:
        for place in range(math.prod(shape)):
            codes = np.unravel_index(place, shape) if names else ()
            words = [of[int(code)] for of, code in zip(labels, codes, strict=True)]
            yield [*words, *(float(column[place]) for column in flat.values()), *([standing] if standing else [])]

    header = [*map(clipped, names), *columns, *(["standing"] if standing else [])]
    return first(header, rows(), math.prod(shape))
