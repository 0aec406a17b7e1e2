"""The tables of a stage on the scale of all records, and those of two stages together. Post-processing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_bayes_net.tables import finite
from dpgm_core import Clique, FloatArray, NoisyTables, Structure, Tables

__all__ = ["Stage", "pool_stages"]


@frozen(kw_only=True, eq=False)
class Stage:
    """Release of one stage.

    tables: records. noise: its variance in a cell of each table, (groups,), records**2. rate: of the subsample that was
    counted; tables and noise are already those of all records, 1 / rate and 1 / rate**2 of the subsample's.
    """

    tables: Tables
    noise: FloatArray
    rate: float

    @classmethod
    def of(cls, release: NoisyTables, cliques: Sequence[Clique]) -> Stage:
        """cliques: the release's, in the order wanted."""
        measured = Structure(release.structure.domain, cliques)
        rate = 1.0 if release.round is None else float(release.round.sampling_rate)
        tables = Tables.from_arrays(measured, {clique: release.tables[clique] for clique in cliques})
        places = [release.structure.find(clique)[0] for clique in cliques]
        return cls(tables=tables / rate, noise=finite(release.variances[places]) / rate**2, rate=rate)

    def variances(self, counts: FloatArray) -> FloatArray:
        """Return variances of noise and sampling of each cell, records**2, if `counts` are those of all records.

        Each record is in the subsample with probability q, so that a count n scaled by 1 / q has variance
        n (1 - q) / q.
        """
        return self.tables.repeat(self.noise) + np.maximum(counts, 0.0) * ((1 - self.rate) / self.rate)

    def means(self, variances: FloatArray) -> FloatArray:
        """The mean of a number per cell over each table, (groups,)."""
        return np.array([float(variances[one].mean()) for one in self.tables.structure.slices])


def pool_stages(one: Stage, two: Stage) -> tuple[Tables, FloatArray]:
    """The mean of two stages by inverse variance, cell by cell, and the variance of each table, (groups,).

    What a subsample missed of a count is estimated by the other stage's count. Without sampling the weights are the
    same for all cells of a table, and the mean is the best linear one.

    >>> from dpgm_core import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> quiet, loud = (
    ...     Stage(tables=Tables(structure, np.array(counts)), noise=np.array([noise]), rate=1.0)
    ...     for counts, noise in (([4.0, 8.0], 1.0), ([8.0, 4.0], 3.0))
    ... )
    >>> mean, variances = pool_stages(quiet, loud)
    >>> mean["a"].tolist(), variances.tolist()
    ([5.0, 7.0], [0.75])
    """
    spreads = finite(np.stack([one.variances(two.tables.values), two.variances(one.tables.values)]))
    most = float(spreads.max())
    precisions = most / spreads
    together = precisions.sum(axis=0)
    mean = (one.tables.values * precisions[0] + two.tables.values * precisions[1]) / together
    return one.tables.like(mean), one.means(most / together)
