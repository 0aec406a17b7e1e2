"""The Adult table with its whole numbers in bins, by hand, equal or found privately, and how far a model is off."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.cases.coded import Coded, shares
from dpgm_core import Array, Attribute, Clique, Domain, FloatArray

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

#: The same knowledge spent on 16 bins of each, about as many people in each as one can tell without the records: ages
#: of those who work, weights and capital by growing amounts, hours with the round ones alone.
HAND_16: Mapping[str, tuple[int, ...]] = {
    "age": (0, 3, 5, 7, 9, 12, 14, 17, 19, 22, 25, 28, 31, 35, 39, 45, 84),
    "fnlwgt": (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 25, 30, 40, 99),
    "capital-gain": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 99),
    "capital-loss": (0, 1, 10, 20, 25, 30, 33, 35, 37, 39, 41, 43, 45, 50, 60, 80, 99),
    "hours-per-week": (0, 9, 14, 19, 24, 29, 34, 39, 40, 44, 45, 49, 50, 54, 59, 69, 98),
}

#: By hand first: what the others are divided by.
WAYS: Mapping[str, Mapping[str, Any] | int] = {
    "by hand": HAND,
    "16 by hand": HAND_16,
    "32 of equal width": 32,
    "16 private": {"private": 16},
    "32 private": {"private": 32},
}

#: Cells in which records and models are compared: each number, the bins of `HAND`, the tenths of the records, and the
#: model's own bins, which are other cells for each way.
JUDGES = ("numbers", "bins by hand", "tenths", "own bins")


def binned(codes: Domain, way: str) -> Domain:
    """The columns of `HAND` as whole numbers, in bins of a way of `WAYS`; the others as they are."""
    bins, tables = WAYS[way], dict[str, Any]()
    for one in codes:
        if one.name not in HAND:
            tables[one.name] = {"labels": list(one.labels), "unknown": one.labels[0]}
        elif isinstance(bins, Mapping) and one.name in bins:
            tables[one.name] = {"type": "integer", "bins": list(bins[one.name])}
        else:
            tables[one.name] = {"type": "integer", "min": 0, "max": one.size - 1, "bins": bins}
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


def tenths(codes: Array, size: int) -> FloatArray:
    """Which of up to ten cells, by how many records lie below its middle, each of `size` codes is in."""
    shares = np.bincount(codes, minlength=size) / len(codes)
    middles = np.cumsum(shares) - shares / 2
    _, cells = np.unique(np.floor(10 * middles).clip(0, 9), return_inverse=True)
    found: FloatArray = (np.arange(cells.max() + 1)[:, None] == cells).astype(float)
    return found


def off_numbers(
    table: Coded, domain: Domain, marginals: Callable[[list[Clique]], Mapping[Clique, FloatArray]]
) -> dict[str, float]:
    """Mean total variation distance to the records over all pairs of columns, in the cells of each of `JUDGES`.

    domain, marginals: of a model, over bins; its numbers are even inside a bin.
    """
    pairs: list[Clique] = list(itertools.combinations(table.domain.names, 2))
    margins = marginals(pairs)
    own = {one.name: spread(domain[one.name], one.size) for one in table.domain}
    hand = binned(table.domain, "by hand")
    cells = {
        one.name: (
            spread(hand[one.name], one.size) > 0,
            tenths(table.codes[:, place], one.size) if one.name in HAND else np.eye(one.size),
            own[one.name] > 0,
        )
        for place, one in enumerate(table.domain)
    }
    distances = []
    for left, right in pairs:
        off = own[left].T @ margins[left, right] @ own[right] - shares(table, (left, right))
        coarser = [rows @ off @ columns.T for rows, columns in zip(cells[left], cells[right], strict=True)]
        distances.append([np.abs(one).sum() / 2 for one in (off, *coarser)])
    return dict(zip(JUDGES, np.mean(distances, axis=0).tolist(), strict=True))


def exact(table: Coded, domain: Domain) -> Callable[[list[Clique]], dict[Clique, FloatArray]]:
    """The records' own shares over bins: what is off then is what the bins hide."""
    bins = {one.name: (spread(domain[one.name], one.size) > 0).astype(float) for one in table.domain}
    return lambda cliques: {
        (left, right): bins[left] @ shares(table, (left, right)) @ bins[right].T for left, right in cliques
    }
