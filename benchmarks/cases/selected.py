"""Tables as a selection takes them: a simulated census, and overlapping cliques of one to three of its attributes."""

from __future__ import annotations

import itertools
import math

import numpy as np
from attrs import frozen

from dpgm_core import Clique, Domain, FloatArray, IntArray, Model, Structure

RECORDS = 48_842
SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 60, 99, 42, 2)  # those of the Adult table, more or less
_CLASSES = 30  # of people; attributes are independent given the class
_TREE_CELLS = 300_000


@frozen(kw_only=True)
class Selected:
    """codes: (records, attributes). structure: the cliques that are measured."""

    codes: IntArray
    structure: Structure

    def errors(self, model: Model) -> tuple[float, float]:
        """Mean total variation distance to the records over all pairs, and over all triples of at most 1e4 cells."""
        found = []
        for order in (2, 3):
            cliques = [
                clique for clique in itertools.combinations(model.structure.domain.names, order)
                if math.prod(model.structure.domain.shape(clique)) <= 10_000 or order == 2
            ]  # fmt: skip
            margins = model.marginals_of(cliques)
            found.append(
                np.mean(
                    [np.abs(margins[one] - margin(self.codes, model.structure.domain, one)).sum() for one in cliques]
                )
                / 2
            )
        return float(found[0]), float(found[1])


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
    for clique in _ranked(codes, domain, clique_cells):
        if len(chosen) == cliques or structure_parameters(Structure(domain, chosen)) >= parameters:
            break
        if any(set(clique) <= set(other) for other in chosen):
            continue
        tree = Structure(domain, [*chosen, clique]).elimination.clusters
        if sum(math.prod(domain.shape(cluster)) for cluster in tree) <= _TREE_CELLS:
            chosen.append(clique)
    return Selected(codes=codes, structure=Structure(domain, chosen))


def structure_parameters(structure: Structure) -> int:
    """The identifiable parameters of a structure: main effects and interactions."""
    effects = {
        part
        for one in structure.cliques
        for order in range(1, len(one) + 1)
        for part in itertools.combinations(one, order)
    }
    return sum(math.prod(size - 1 for size in structure.domain.shape(effect)) for effect in effects)


def margin(codes: IntArray, domain: Domain, clique: Clique) -> FloatArray:
    """The share of the records in each cell."""
    shape = domain.shape(clique)
    columns = tuple(codes[:, domain.names.index(name)] for name in clique)
    return np.bincount(np.ravel_multi_index(columns, shape), minlength=math.prod(shape)).reshape(shape) / len(codes)


def _ranked(codes: IntArray, domain: Domain, clique_cells: int) -> list[Clique]:
    alone = {name: margin(codes, domain, (name,)) for name in domain.names}
    found = []
    for clique in itertools.chain(*(itertools.combinations(domain.names, order) for order in (2, 3))):
        cells = math.prod(domain.shape(clique))
        if cells <= clique_cells:
            independent = np.array(1.0)
            for name in clique:
                independent = np.multiply.outer(independent, alone[name])
            distance = np.abs(margin(codes, domain, clique) - independent).sum() * len(codes)
            found.append((30 * cells - distance, clique))
    return [clique for _, clique in sorted(found)]
