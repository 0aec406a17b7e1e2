"""Noisy parities from a release of contrasts or of tables of cells. Post-processing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core import FloatArray, IntArray, NoisyTables
from dpgm_mrf.polynomials import local, transform

__all__ = ["Parities", "parities_of"]


@frozen(kw_only=True, eq=False)
class Parities:
    """Noisy means of monomials.

    monomials: (m,), each once. values: their noisy means, (m,), between -1 and 1. variances: of their noise, (m,).
    """

    monomials: IntArray
    values: FloatArray
    variances: FloatArray


def parities_of(release: NoisyTables, attributes: Sequence[str], monomials: IntArray) -> Parities:
    """The means of those of the monomials wanted that the release tells, each over all its tables by their noise.

    A table of contrasts tells the product of its own clique. A table of cells tells all monomials inside it, each with
    noise of 2^k times a cell's variance, and with independent noise where the cells' is Gaussian. What noise takes
    beyond -1 and 1 is put there.
    """
    contrasts = release.measurement.contrasts
    precision, weighted = np.zeros((2, 1 << len(attributes)))
    for number, group in enumerate(release.structure.groups):
        own, size = local(group[0], attributes), release.structure.sizes[number]
        total = release.totals[number]
        with np.errstate(over="ignore"):
            variance = release.variances[number] / total * (size / total)
        if not 0 < variance < np.inf:
            continue  # noise so wide tells nothing
        means = transform(release.tables.group(number).reshape(-1).astype(np.float64)) / total
        inside = slice(size - 1, size) if contrasts else slice(0, size)
        precision[own[inside]] += 1 / variance
        weighted[own[inside]] += means[inside] / variance
    measured = monomials[precision[monomials] > 0]
    return Parities(
        monomials=measured,
        values=np.clip(weighted[measured] / precision[measured], -1.0, 1.0),
        variances=1 / precision[measured],
    )
