"""The covariance of the statistics of one record from the joint distributions of two tables at a time.

Derivatives along each parameter walk through the whole tree once a parameter. Where tables are few and large, the joint
laws of all pairs of them say the same in a fifth of the time, on numpy in a fifteenth: what runs between clusters
serves many pairs.
"""

from __future__ import annotations

from itertools import accumulate, combinations_with_replacement
from string import ascii_letters

import numpy as np

from dpgm_core import Clique, Engine, FloatArray, Structure, Tables, TooLarge
from dpgm_core.inference import Querier
from dpgm_eb_map.contrasts import Basis

__all__ = ["covariance_by_pairs"]

_LARGEST = 2**10  # cells of a table: a joint distribution has the square of it
_MOST_AXES = 16  # of a table: two have what an array may have
_WORTH = 6  # parameters, derivatives along which take as long as a joint distribution


def covariance_by_pairs(engine: Engine, basis: Basis, potentials: Tables) -> FloatArray | None:
    """F (p, p); None where the engine does not answer queries exactly, or derivatives come sooner.

    Raises InferenceError as the engine does.
    """
    structure = basis.structure
    cliques = structure.cliques
    if not (engine.exact and isinstance(engine, Querier) and "query" in engine.capabilities and _few(basis)):
        return None
    pairs = list(combinations_with_replacement(range(len(cliques)), 2))
    try:
        joints = engine.answers(potentials, [_union(cliques[one], cliques[other]) for one, other in pairs])
    except TooLarge:
        return None
    means = {one: joint.reshape(-1) for (one, other), joint in zip(pairs, joints, strict=True) if one == other}
    result = np.zeros((basis.size, basis.size))
    for (one, other), joint in zip(pairs, joints, strict=True):
        covariance = _products(structure, one, other, joint) - np.outer(means[one], means[other])
        block = basis.by_table[one][1].T @ covariance @ basis.by_table[other][1]
        for row, here in _places(basis, one):
            for column, there in _places(basis, other):
                result[row, column] += block[here, there]
                if one != other:
                    result[column, row] += block[here, there].T
    return result


def _places(basis: Basis, table: int) -> list[tuple[slice, slice]]:
    """Return the places of a table's parameters among all parameters, and among its own."""
    parts = basis.by_table[table][0]
    ends = accumulate([part.stop - part.start for part in parts])
    return [(part, slice(end - part.stop + part.start, end)) for part, end in zip(parts, ends, strict=True)]


def _few(basis: Basis) -> bool:
    """Whether tables are few and of a size to be paired, and none are tied."""
    structure = basis.structure
    cliques = structure.cliques
    return (
        _WORTH * len(cliques) * (len(cliques) + 1) // 2 <= basis.size
        and max(structure.sizes, default=1) <= _LARGEST
        and all(1 <= len(clique) <= _MOST_AXES for clique in cliques)
        and len(structure.groups) == len(cliques)
    )


def _union(one: Clique, other: Clique) -> Clique:
    return tuple(dict.fromkeys((*one, *other)))


def _products(structure: Structure, one: int, other: int, joint: FloatArray) -> FloatArray:
    """Return the joint distribution of two tables' attributes as that of their cells (cells, cells): 0 where the shared
    attributes differ."""
    first, second = structure.cliques[one], structure.cliques[other]
    union = _union(first, second)
    shape = structure.sizes[one], structure.sizes[other]
    if len(union) == len(first) + len(second):
        return joint.reshape(shape)
    cells = np.zeros((*structure.shapes[one], *structure.shapes[other]))
    letter = dict(zip(union, ascii_letters, strict=False))
    axes = "".join([letter[name] for name in (*first, *second)])
    np.einsum(f"{axes}->{''.join(letter.values())}", cells)[...] = joint  # into the diagonals, of which this is a view
    return cells.reshape(shape)
