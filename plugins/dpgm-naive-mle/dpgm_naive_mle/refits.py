"""Refits for error bars: to many releases like the model's, side by side from its potentials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core import Engine, Model, NoisyTables, Tables, silent
from dpgm_core.learning import Likelihood, together
from dpgm_naive_mle.projection import targets

__all__ = ["BatchRefitter"]

# Each ends where this share of what it gained is left, by the model of the Hessian, which leaves five times as much of
# the divergence from the model: of a standard error about a hundredth, a tenth of what 40 replicates know it to.
_GAIN_TOLERANCE = 1e-4


@frozen(kw_only=True, eq=False)
class BatchRefitter:
    """Fits to releases like `release`, that of `model`, under one penalty; see `Refits`.

    engine: of the release's structure. The rest are the learner's options, a number as l2 among them.
    """

    model: Model
    release: NoisyTables
    engine: Engine
    l2: float
    project: bool
    tolerance: float
    steps: int

    def __call__(self, release: NoisyTables) -> Tables:
        """Log-potentials over the model's structure."""
        return self.many([release])[0]

    def many(self, releases: Sequence[NoisyTables]) -> list[Tables]:
        """Return log-potentials for each release, in their order."""
        # Without a penalty the potentials are not unique, and depend on where they start; of a fit from nothing, what
        # it gained is no measure.
        warm = self.l2 > 0 and self.model.structure == self.release.structure
        start = self.model.potentials.values if warm else np.zeros(self.release.structure.cells)
        share = _GAIN_TOLERANCE if warm else 0.0
        problems = [Likelihood(self.engine, targets(one, project=self.project), silent) for one in releases]
        descents = [one.descent(start, self.l2, self.tolerance, self.steps, share) for one in problems]
        structure = self.release.structure
        return [Tables(structure, theta).embed(self.model.structure) for theta, _ in together(self.engine, descents)]
