"""Tables of codes for selections: the Adult table as it is, and wide made-up ones; and how far a model is off."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen
from pyarrow import csv

from dpgm_core import Array, Clique, Domain, FloatArray, IntArray

#: Cells of the marginals on three attributes that count, as in the AIM paper's experiments.
MOST_CELLS = 10_000
#: Pairs, and larger sets of one size, that a model is judged by.
MOST_PAIRS, MOST_SETS = 3000, 500


@frozen(kw_only=True, eq=False)
class Coded:
    """domain: of the records. codes: (records, attributes). planted: attributes that a generator made dependent."""

    domain: Domain
    codes: Array
    planted: tuple[Clique, ...] = ()


def adult_domain(folder: Path) -> Domain:
    """What `adult-domain.json` says: a size for each column."""
    sizes: dict[str, int] = json.loads((folder / "adult-domain.json").read_text(encoding="utf-8"))
    return Domain.from_sizes(sizes)


def adult(folder: Path) -> Coded:
    """All records of `adult.csv`, which are codes. Raises OSError, ValueError or KeyError."""
    domain = adult_domain(folder)
    table = csv.read_csv(folder / "adult.csv")
    codes = np.column_stack([table[name].to_numpy() for name in domain.names]).astype(np.int16)
    if not ((codes >= 0) & (codes < list(domain.sizes.values()))).all():
        raise ValueError("adult.csv has codes that adult-domain.json has not")
    return Coded(domain=domain, codes=codes)


def wide(attributes: int, records: int, seed: int) -> Coded:
    """A made-up table: attributes of 2 to 16 codes, each drawn given one or two of the eight before it."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 17, size=attributes)
    codes = np.empty((records, attributes), dtype=np.uint8)
    for place, size in enumerate(sizes):
        near = np.arange(max(place - 8, 0), place)
        rows, kinds = np.zeros(records, dtype=np.int64), 1
        for parent in rng.choice(near, size=min(place, 1 + int(rng.random() < 0.3)), replace=False):
            rows, kinds = rows * sizes[parent] + codes[:, parent], kinds * int(sizes[parent])
        law = np.cumsum(rng.dirichlet(np.full(size, 0.4), size=kinds), axis=1)
        draws = rng.random(records)
        codes[:, place] = sum((draws > law[rows, code]).astype(np.uint8) for code in range(size - 1))
    names = [f"x{place}" for place in range(attributes)]
    return Coded(domain=Domain.from_sizes(dict(zip(names, map(int, sizes), strict=True))), codes=codes)


def off(
    table: Coded,
    marginals: Callable[[list[Clique]], Mapping[Clique, FloatArray]],
    orders: Sequence[int] = (1, 2, 3, 4),
) -> dict[str, float]:
    """How far a model, or other records, are from the records.

    marginals: cliques -> shares, such as `Model.marginals_of`; no sampling is in them. orders: numbers of attributes.
    error1, error2: mean total variation distance over attributes and over pairs. error3, and error4 where all
    attributes are binary: the mean of |p - q|_1, which is twice that, over the marginals on three or four attributes of
    at most 1e4 cells, as in the AIM paper. At most 3,000 pairs and 500 larger sets, drawn once for all methods.
    """
    found = {}
    for order in orders:
        if order > 3 and max(table.domain.sizes.values()) > 2:
            continue
        cliques = judged(table.domain, order)
        theirs, scale = marginals(cliques), 0.5 if order < 3 else 1.0
        found[f"error{order}"] = scale * float(np.mean([np.abs(shares(table, c) - theirs[c]).sum() for c in cliques]))
    return found


def judged(domain: Domain, order: int) -> list[Clique]:
    """The sets of so many attributes that count; the same ones for the same domain."""
    sets = list(itertools.combinations(domain.names, order))
    if order > 2:
        sets = [clique for clique in sets if math.prod(domain.shape(clique)) <= MOST_CELLS]
    most = MOST_PAIRS if order == 2 else MOST_SETS
    if order == 1 or len(sets) <= most:
        return sets
    return [sets[place] for place in np.sort(np.random.default_rng(order).choice(len(sets), most, replace=False))]


def of_records(table: Coded) -> Callable[[list[Clique]], dict[Clique, FloatArray]]:
    """The shares of records in the cells."""
    return lambda cliques: {clique: shares(table, clique) for clique in cliques}


def shares(table: Coded, clique: Clique) -> FloatArray:
    """The share of the records in each cell of a clique."""
    return counts(table, clique) / len(table.codes)


def counts(table: Coded, clique: Clique) -> IntArray:
    """The number of records in each cell of a clique."""
    shape = table.domain.shape(clique)
    places = np.zeros(len(table.codes), dtype=np.int64)
    for name, size in zip(clique, shape, strict=True):
        places = places * size + table.codes[:, table.domain.names.index(name)]
    return np.bincount(places, minlength=math.prod(shape)).reshape(shape)
