"""The learner that the checks of selectors offer to loops: quick, simple, and aware of how it is called."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.consistency import consistent
from dpgm_core.learning.contract import Fit
from dpgm_core.learning.likelihood import Likelihood
from dpgm_core.models.model import Model
from dpgm_core.progress import silent
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables
from dpgm_core.testing.check import CheckFailed
from dpgm_core.testing.sessions import Endless

__all__ = ["Learning", "fitted", "independent"]

#: Fits of one run; a loop that waits for better ones goes beyond.
_MOST_FITS = 300


class Learning:
    """A quick learner for loops, which notes how it was called: penalised likelihood on an exact engine.

    settles: whether its fits say that they converged. finds: whether it finds more than main effects, which takes
    longer. wrong: what was wrong with a call. shown: the structures that it was to fit.
    """

    def __init__(self, *, settles: bool = True, finds: bool = True) -> None:
        self._settles, self._finds = settles, finds
        self._last: Fit | None = None
        self.calls = 0
        self.wrong: list[str] = []
        self.shown: list[Structure] = []

    def __call__(self, release: NoisyTables, structure: Structure, previous: Fit | None) -> Fit:
        """The fit; the start is always the same, so that equal releases give equal fits."""
        self.calls += 1
        if self.calls > _MOST_FITS:
            raise Endless(f"it had not stopped after {self.calls:,} fits")
        if previous is not None and previous is not self._last:
            self.wrong.append("the previous fit it hands to the learner is not the one the learner returned last")
        self.shown.append(structure)
        homeless = [clique for clique in release.structure.cliques if structure.covering(clique) is None]
        if homeless:
            self.wrong.append(f"it fits a structure with no clique that holds {homeless[0]!r}, which the release has")
            raise CheckFailed(self.wrong[-1])
        fit = fitted(release, structure) if self._finds else independent(release, structure)
        self._last = evolve(fit, converged=fit.converged and self._settles)
        return self._last


def fitted(release: NoisyTables, structure: Structure, before: Fit | None = None) -> Fit:
    """A model over `structure` from the release's tables, wherever the fit before has got to."""
    tables = [np.maximum(table, 0.0) + 0.5 for table in release.tables.arrays()]
    target = Tables(release.structure, np.concatenate([table.reshape(-1) / table.sum() for table in tables]))
    engine = JunctionTree().compile(release.structure)
    problem = Likelihood(engine, consistent(target, release.variances), silent)
    theta, converged = problem.minimise(np.zeros(release.structure.cells), 1e-3, 1e-3, 50)
    potentials = Tables(release.structure, theta).embed(structure)
    return Fit(model=Model(structure, potentials), converged=converged)


def independent(release: NoisyTables, structure: Structure) -> Fit:
    """The model of main effects alone."""
    shares: dict[Clique, FloatArray] = {}
    for clique, table in release.tables.items():
        for axis, name in enumerate(clique):
            sums = np.maximum(table.sum(axis=tuple(other for other in range(len(clique)) if other != axis)), 0.0) + 0.5
            shares.setdefault((name,), np.log(sums / sums.sum()))
    alone = Tables.from_arrays(Structure(structure.domain, list(shares)), shares)
    return Fit(model=Model(structure, alone.embed(structure)))
