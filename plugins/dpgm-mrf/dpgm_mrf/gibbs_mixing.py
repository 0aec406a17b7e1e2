"""Whether couplings are weak enough for chains to forget where they were."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpgm_core import FloatArray, Tables

__all__ = ["slowest"]

# Cells of one clique whose couplings are looked at; of larger ones the span of the table stands for them.
_CELLS = 4096


def slowest(potentials: Tables) -> tuple[float, str]:
    """The largest sum of |tanh A| over the cliques of an attribute, less one of them, and its name; 0 if proven fast.

    A: of a pair of two labels the coupling of theta = A z_i z_j; in general a quarter of the most by which the others
    of a clique move the log-odds of two codes, infinite where some are ruled out. Where couplings are equal it is
    |tanh A| (degree - 1): below 1 a tree forgets its leaves (the Ising model on a Bethe lattice), a hint elsewhere.
    Proven fast: pairs of two labels whose A as a symmetric matrix has eigenvalues less than 1 apart (Eldan, Koehler and
    Zeitouni 2021).

    >>> from dpgm_core import Domain, Structure
    >>> structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abcd", 2)))
    >>> coupled = Tables(structure, 0.5 * np.tile([1.0, -1.0, -1.0, 1.0], 6))
    >>> worst, name = slowest(coupled)
    >>> round(worst, 3), name, round(slowest(coupled * 0.25)[0], 3)
    (0.924, 'd', 0.249)
    """
    structure = potentials.structure
    around: dict[str, list[float]] = {}
    matrix: FloatArray | None = np.zeros((len(structure.domain), len(structure.domain)))
    place = {name: number for number, name in enumerate(structure.domain.names)}
    for members, table in zip(structure.groups, potentials.arrays(), strict=True):
        axes = [axis for axis, size in enumerate(table.shape) if size > 1]
        if len(axes) < 2:
            continue
        for axis in axes:
            coupling = math.tanh(_moved(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)) / 4)
            for clique in members:
                around.setdefault(clique[axis], []).append(coupling)
        if [table.shape[axis] for axis in axes] != [2, 2] or not np.isfinite(table).all():
            matrix = None
        if matrix is not None:
            pair = table.reshape(2, 2)
            for clique in members:
                one, two = (place[clique[axis]] for axis in axes)
                matrix[[one, two], [two, one]] += (pair[0, 0] + pair[1, 1] - pair[0, 1] - pair[1, 0]) / 4
    worst, name = max(((sum(found) - min(found), name) for name, found in around.items()), default=(0.0, ""))
    if worst >= 1 and matrix is not None and np.ptp(np.linalg.eigvalsh(matrix)) < 1:
        return 0.0, ""
    return worst, name


def _moved(rows: FloatArray) -> float:
    """The most by which a column moves the difference of two rows, nats."""
    if not np.isfinite(rows).all():
        return math.inf
    if rows.size > _CELLS:
        return 2 * float(rows.max() - rows.min())
    return max(float(np.ptp(one - other)) for one, other in itertools.combinations(rows, 2))
