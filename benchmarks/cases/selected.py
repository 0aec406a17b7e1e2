"""Tables as a selection takes them: a simulated census, and overlapping cliques of one to three of its attributes."""

from __future__ import annotations

import itertools
import math
from functools import reduce

import numpy as np
from attrs import frozen

from benchmarks.cases.coded import Coded, shares
from dpgm_core import Clique, Domain, Structure

RECORDS = 48_842
SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 60, 99, 42, 2)  # those of the Adult table, more or less
_CLASSES = 30  # of people; attributes are independent given the class
_TREE_CELLS = 300_000


@frozen(kw_only=True)
class Selected:
    """table: the records. structure: the cliques that are measured."""

    table: Coded
    structure: Structure


def selected(cliques: int, parameters: int, clique_cells: int, seed: int, attributes: int = len(SIZES)) -> Selected:
    """All attributes alone, then the pairs and triples that are furthest from independence for their size, without the
    noise that a selection adds: until there are so many cliques or parameters. attributes: only so many of them."""
    rng = np.random.default_rng(seed)
    sizes = SIZES[:attributes]
    domain = Domain.from_sizes({f"x{place}": size for place, size in enumerate(sizes)})
    classes = rng.choice(_CLASSES, size=RECORDS, p=rng.dirichlet(np.ones(_CLASSES)))
    codes = np.empty((RECORDS, len(sizes)), dtype=np.intp)
    for place, size in enumerate(sizes):
        base = rng.dirichlet(np.full(size, 0.5))
        for number in range(_CLASSES):
            mine = np.flatnonzero(classes == number)
            codes[mine, place] = rng.choice(size, size=len(mine), p=rng.dirichlet(np.maximum(4 * base, 1e-3)))
    chosen: list[Clique] = [(name,) for name in domain.names]
    table = Coded(domain=domain, codes=codes)
    for clique in _ranked(table, clique_cells):
        if len(chosen) == cliques or structure_parameters(Structure(domain, chosen)) >= parameters:
            break
        if any(set(clique) <= set(other) for other in chosen):
            continue
        tree = Structure(domain, [*chosen, clique]).elimination.clusters
        if sum(math.prod(domain.shape(cluster)) for cluster in tree) <= _TREE_CELLS:
            chosen.append(clique)
    return Selected(table=table, structure=Structure(domain, chosen))


def structure_parameters(structure: Structure) -> int:
    """The identifiable parameters of a structure: main effects and interactions."""
    effects = {
        part
        for one in structure.cliques
        for order in range(1, len(one) + 1)
        for part in itertools.combinations(one, order)
    }
    return sum(math.prod(size - 1 for size in structure.domain.shape(effect)) for effect in effects)


def _ranked(table: Coded, clique_cells: int) -> list[Clique]:
    domain, found = table.domain, []
    alone = {name: shares(table, (name,)) for name in domain.names}
    for clique in itertools.chain(*(itertools.combinations(domain.names, order) for order in (2, 3))):
        cells = math.prod(domain.shape(clique))
        if cells <= clique_cells:
            independent = reduce(np.multiply.outer, [alone[name] for name in clique])
            distance = np.abs(shares(table, clique) - independent).sum() * len(table.codes)
            found.append((30 * cells - distance, clique))
    return [clique for _, clique in sorted(found)]
