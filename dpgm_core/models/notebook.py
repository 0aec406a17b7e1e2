"""Notebook displays of models, marginals and tables of numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import clipped, listed
from dpgm_core.structure.graphs import Clique

__all__ = ["Labels", "Marginal", "model_card", "number_table"]


#: Labels of each attribute.
Labels = Sequence[Sequence[str]]


def number_table(names: Clique, labels: Labels, columns: Mapping[str, FloatArray], standing: str | None) -> Html:
    """Numbers as a table: a column of labels for each attribute, the last one's fastest, then the numbers, `standing`.

    columns: arrays with one axis per name. Without names there are numbers alone, one after the other.
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


class Marginal(np.ndarray[Any, np.dtype[np.float64]]):
    """An array of probabilities, one axis per name, that a notebook shows as a table with its labels.

    Everywhere else it is the array that it was made of: it prints as one, and whatever is computed, copied, sliced or
    pickled of it is a plain array or prints as one, without labels that would be wrong. Nothing has to be learned to
    look at an answer, and nothing that computes with one has to change, as it would with a class of its own.

    >>> shown = Marginal.of(np.array([0.25, 0.75]), ("sex",), (("F", "M"),), "measured")
    >>> shown, type(2 * shown).__name__, "<td>F</td>" in shown._repr_html_()
    (array([0.25, 0.75]), 'ndarray', True)
    """

    _named: tuple[Clique, Labels, str, Sequence[str]] | None = None

    @classmethod
    def of(cls, table: FloatArray, names: Clique, labels: Labels, standing: str, flaws: Sequence[str] = ()) -> Marginal:
        """The same numbers; no copy. labels: of each name. standing: what they rest on. flaws: see `caveats_of`."""
        made = cast("Marginal", np.asarray(table).view(cls))
        made._named = names, labels, standing, flaws
        return made

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar or not plain.ndim else plain

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()

    def _repr_html_(self) -> Html | None:
        if self._named is None:
            return None
        names, labels, standing, flaws = self._named
        table = number_table(names, labels, {"probability": self}, standing)
        return card(f"p({listed(names, 8)})", [], table, flaws=flaws)


def model_card(
    facts: Sequence[tuple[str, str]], domain: Domain, unmeasured: Collection[str], flaws: Sequence[str]
) -> Html:
    """Show a model's facts and attributes; nothing is inferred, as that may take long."""
    rows = ((one.name, one.size, listed(one.labels), "no" if one.name in unmeasured else "yes") for one in domain)
    return card("Model", facts, first(["attribute", "labels", "", "measured"], rows, len(domain)), flaws=flaws)
