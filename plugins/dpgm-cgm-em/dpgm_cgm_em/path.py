"""The path of EM: proximal steps from a start, each an E-step with merged evidence and its M-step."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpgm_cgm_em.start import start_from_margins
from dpgm_cgm_em.weighting import score_bound, weight_tables
from dpgm_core import Collective, Engine, FloatArray, InferenceError, NoisyTables, Progress, Tables
from dpgm_core.inference import CollectiveBeliefs
from dpgm_core.learning import Likelihood

__all__ = ["Path"]

# Nats; further out a double no longer tells one probability from another.
_MAX_POTENTIAL = 1e12


class Path:
    """The state of one EM run: potentials `theta`, how far it went (`tau`), and what it cost (`calls`).

    e_step: compiled here for `evidence`, the release with its tables at one pace (see `weight_tables`). start, prior,
    tolerance: the learner's options of these names.
    """

    def __init__(
        self,
        release: NoisyTables,
        engine: Engine,
        progress: Progress,
        *,
        e_step: Collective,
        start: Literal["uniform", "margins"],
        prior: float,
        tolerance: float,
    ) -> None:
        self.release, self.engine, self.progress = release, engine, progress
        self.prior, self.tolerance = prior, tolerance
        self.evidence = weight_tables(release)
        self.e_step = e_step.compile(engine, self.evidence)
        self.bound = score_bound(release)
        self.theta: FloatArray = (
            start_from_margins(release).values if start == "margins" else np.zeros(release.structure.cells)
        )
        self.multipliers: Tables | None = None
        self.tau = 0.0
        self.calls = 0
        self.unconverged = 0

    def advance(self, by: float) -> CollectiveBeliefs:
        """One proximal step, `by` nats of tau long; the beliefs of its E-step."""
        beliefs = self.e_step.infer(
            Tables(self.release.structure, self.theta), evidence_weight=by / self.bound, start=self.multipliers
        )
        self.multipliers = beliefs.multipliers
        self.calls += beliefs.calls
        self.unconverged += not beliefs.converged
        self._maximise(beliefs)
        self.tau += by
        return beliefs

    def _maximise(self, beliefs: CollectiveBeliefs) -> None:
        """The M-step: theta + u in closed form when that reproduces n, else by gradients from there."""
        self.theta = self.theta + beliefs.multipliers.values
        if not np.all(np.abs(self.theta) < _MAX_POTENTIAL):
            raise InferenceError("the E-step's multipliers are NaN or have run away; the release is out of range")
        if self.engine.exact and beliefs.residual <= self.tolerance and self.prior == 0:
            return
        problem = Likelihood(self.engine, beliefs.marginals / self.release.total, self.progress, "first fit")
        self.theta, done = problem.minimise(self.theta, self.prior, self.tolerance, 500)
        self.calls += problem.calls
        self.unconverged += not done
