"""The Adult table with its whole numbers in bins, chosen by hand or found privately, and how far a model is off it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.cases.coded import Coded, shares
from dpgm_core import Attribute, Domain, FloatArray, Model

__all__ = ["HAND", "binned", "off_numbers", "spread"]

#: Edges as an expert of censuses would write them down, from what the columns mean: five years of age (code 0 is 16),
#: usual working weeks (code 0 is one hour; 40 hours are a bin of their own), capital by growing amounts with a bin for
#: none, equal ones for the survey's weight.
HAND: Mapping[str, tuple[int, ...]] = {
    "age": (0, 4, 9, 14, 19, 24, 29, 34, 39, 44, 49, 54, 59, 64, 84),
    "fnlwgt": (*range(0, 100, 5), 99),
    "capital-gain": (0, 1, 3, 5, 8, 10, 15, 20, 50, 99),
    "capital-loss": (0, 1, 30, 35, 40, 45, 50, 60, 99),
    "hours-per-week": (0, 9, 19, 24, 29, 34, 39, 40, 44, 49, 54, 59, 69, 98),
}


def binned(codes: Domain, bins: int | None) -> Domain:
    """The columns of `HAND` as whole numbers, in its bins (None) or in so many private ones; the others as they are."""
    tables: dict[str, Any] = {}
    for one in codes:
        if one.name in HAND:
            found = {"min": 0, "max": one.size - 1, "bins": {"private": bins}}
            tables[one.name] = {"type": "integer"} | ({"bins": list(HAND[one.name])} if bins is None else found)
        else:
            tables[one.name] = {"labels": list(one.labels), "unknown": one.labels[0]}
    return Domain.from_dict({"attributes": tables})


def spread(attribute: Attribute, size: int) -> FloatArray:
    """What share of each label falls on each whole number from 0 to size - 1: even inside a bin."""
    found = np.zeros((attribute.size, size))
    if attribute.edges is None:
        np.fill_diagonal(found, 1)
        return found
    *starts, end = attribute.edges
    numbers = np.arange(size)
    places = np.searchsorted(starts, numbers, side="right") - 1
    inside = (places >= 0) & (numbers <= end)
    found[places[inside], numbers[inside]] = 1
    shared: FloatArray = found / np.maximum(found.sum(axis=1, keepdims=True), 1)
    return shared


def off_numbers(table: Coded, model: Model) -> tuple[float, float]:
    """Mean total variation distance to the records over all pairs of columns: as numbers, and in the bins of `HAND`."""
    pairs = list(itertools.combinations(table.domain.names, 2))
    margins = model.marginals_of(pairs)
    own = {one.name: spread(model.domain[one.name], one.size) for one in table.domain}
    hand = {one.name: spread(one, table.domain[one.name].size) > 0 for one in binned(table.domain, None)}
    distances = []
    for pair in pairs:
        (left, right), (rows, columns) = ([those[name] for name in pair] for those in (own, hand))
        difference = left.T @ margins[pair] @ right - shares(table, pair)
        distances.append([np.abs(one).sum() / 2 for one in (difference, rows @ difference @ columns.T)])
    numbers, bins = np.mean(distances, axis=0)
    return float(numbers), float(bins)
