"""Euclidean projection on the simplex, and the targets that naive MLE fits."""

from __future__ import annotations

import numpy as np

from dpgm_core import FloatArray, NoisyTables, Tables
from dpgm_core.learning import consistent

__all__ = ["project_to_simplex", "targets"]


def project_to_simplex(values: FloatArray, total: float = 1.0) -> FloatArray:
    """The nearest non-negative array that sums to `total` (> 0), in Euclidean distance.

    values: any shape. Source: Duchi, Shalev-Shwartz, Singer and Chandra (2008), Figure 1.

    >>> project_to_simplex(np.array([0.5, 0.9, -0.2]))
    array([0.3, 0.7, 0. ])
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    # max_i v_i moves the problem to where sums of large, nearly equal numbers lose nothing
    shifted = flat - flat.max()
    descending = np.sort(shifted)[::-1]
    # rho = max { j : v_(j) > (sum_{i <= j} v_(i) - total) / j }
    thresholds = (np.cumsum(descending) - total) / np.arange(1, len(flat) + 1)
    rho = np.nonzero(descending > thresholds)[0][-1]
    projected: FloatArray = np.maximum(shifted - thresholds[rho], 0.0)
    return projected.reshape(np.shape(values))


def targets(release: NoisyTables, *, project: bool) -> Tables:
    """Return the target marginals: y / N, each group's table summing to its number of cliques m_g.

    project: move each table to the nearest one without negative cells first; otherwise only its sum is set right, by
    spreading the excess evenly. Then overlapping tables are made to agree, by the noise of each; what is left of their
    disagreement no fit could follow (see `consistent`). Cells that constraints of the domain rule out stay 0.
    """
    structure = release.structure
    values = release.tables.values.astype(np.float64) / release.total
    possible = np.ones(structure.cells, dtype=bool) if structure.impossible is None else ~structure.impossible
    for place, tied in zip(structure.slices, structure.multiplicities, strict=True):
        left = possible[place]
        share = values[place][left]
        values[place][left] = project_to_simplex(share, tied) if project else share + (tied - share.sum()) / share.size
    return consistent(Tables(structure, values), release.variances)
