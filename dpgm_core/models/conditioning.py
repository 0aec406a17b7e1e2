"""Log-potentials collected from pieces, and expectations in which weight 0 cancels -inf."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.domain import Domain
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["collect_potentials", "expectation", "pieces_of"]


def expectation(weights: Array, values: Array) -> float:
    """Return the sum of weights * values, where weight 0 cancels an infinite value."""
    products = np.multiply(weights, values, out=np.zeros(len(values)), where=weights != 0)
    return math.fsum(products) if np.all(np.isfinite(products)) else float(products.sum())


def collect_potentials(domain: Domain, pieces: Iterable[tuple[Clique, Array]]) -> tuple[Structure, Tables]:
    """Return a structure and potentials from (clique, table) pieces; tables on the same attributes add up."""
    sums: dict[frozenset[str], tuple[Clique, FloatArray]] = {}
    for clique, table in pieces:
        key = frozenset(clique)
        if key in sums:
            first, total = sums[key]
            sums[key] = first, total + np.transpose(table, [clique.index(name) for name in first])
        else:
            sums[key] = clique, np.array(table, dtype=np.float64)
    structure = Structure(domain, [clique for clique, _ in sums.values()])
    return structure, Tables.from_arrays(structure, dict(sums.values()))


def pieces_of(potentials: Tables) -> list[tuple[Clique, FloatArray]]:
    """Return the log-potentials clique by clique, with ties resolved.

    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",)])
    >>> [names for names, _ in pieces_of(Tables.zeros(structure))]
    [('a',), ('b',)]
    """
    return [
        (clique, potentials.group(number))
        for number, group in enumerate(potentials.structure.groups)
        for clique in group
    ]
