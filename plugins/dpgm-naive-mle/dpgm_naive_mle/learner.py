"""Maximum likelihood on noisy tables taken at their word (Bernstein et al. 2017, section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from attrs import frozen

from dpgm_core import (
    Curator,
    Engine,
    Fit,
    FloatArray,
    Inference,
    Model,
    NoisyTables,
    OptionError,
    Progress,
    Randomness,
    Structure,
    Tables,
    at_least_zero,
    option,
    positive,
    silent,
    whole,
)
from dpgm_core.inference import engine_name, steady
from dpgm_core.learning import Likelihood, Resources, together
from dpgm_naive_mle.penalty import by_bootstrap, by_discrepancy
from dpgm_naive_mle.projection import targets

__all__ = ["BatchRefitter", "NaiveMLE"]


@frozen(kw_only=True)
class NaiveMLE:
    """Minimises A(theta) - theta . mu_bar + l2 * |theta|^2 over log-potentials, mu_bar the noisy marginals.

    The penalty is per record (the likelihood is divided by N), as in the paper's Figure 1c. Gradients are exact:
    mu(theta) - mu_bar + 2 l2 theta. Source: Bernstein et al. (2017), section 3.1.

    >>> NaiveMLE(l2=0.001).l2
    0.001
    """

    project: bool = option(True, help="move each noisy table to the nearest one without negative cells first")
    l2: float | Literal["auto", "discrepancy"] = option(
        "auto",
        help="strength of the L2 penalty on the log-potentials; 'auto' finds it by simulated releases, 'discrepancy' "
        "takes the first whose fit is as close to the noisy tables as the noise would be, or hardly comes nearer "
        "any more",
        unit="1 / nats, per record",
        validator=at_least_zero,
    )
    tolerance: float = option(1e-6, help="stop when no derivative is larger", unit="probability", validator=positive)
    max_iterations: int = option(2000, help="at most this many steps of L-BFGS", validator=whole)

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse an engine that draws, OptionError, and what the engine cannot hold, TooLarge."""
        steady(inference.compile(structure), "naive-mle")

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Estimate by the number of cells, as measured on columns of 10,000 and 100,000; see `ResourceEstimator`."""
        return Resources.by_cells(structure, each=3000, cpu_seconds=1e-4, calls=500)

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it. Raises InferenceError when the engine fails."""
        release = curator.release()
        engine = inference.compile(release.structure)
        problem = Likelihood(engine, targets(release, project=self.project), progress)
        l2, theta, notes = self._choose(problem, release, engine, randomness, progress)
        theta, converged = problem.minimise(theta, l2, self.tolerance, self.max_iterations)
        potentials = Tables(release.structure, theta).embed(curator.structure)
        notes += _zeros(problem.target, l2)
        if not converged:
            notes.append(
                f"not converged: the largest derivative is {problem.slope:.2g} after {problem.calls} inference calls, "
                f"above {self.tolerance:g}; raise max_iterations or l2"
            )
        return Fit(
            model=Model(potentials.structure, potentials),
            trace=problem.trace,
            converged=converged,
            certificate={"gradient": problem.slope, "l2": l2, "inference_calls": problem.calls},
            notes=notes,
            tuning={"l2": l2},
        )

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Fits to releases like the model's under the same penalty, each from the model's own potentials; see
        `BatchRefitter`.

        Raises OptionError unless l2 is a number, and for a model without its release.
        """
        l2, release = self.l2, model.release
        if isinstance(l2, str):
            raise OptionError(f"naive-mle cannot refit with l2 = {l2!r}; pass the fit's tuning, l2 = Fit.tuning['l2']")
        if release is None:
            raise OptionError("naive-mle refits need the release that the model was learned from; this model has none")
        return BatchRefitter(
            model=model,
            release=release,
            engine=inference.compile(release.structure),
            l2=l2,
            project=self.project,
            tolerance=self.tolerance,
            steps=self.max_iterations,
        )

    def _choose(
        self, problem: Likelihood, release: NoisyTables, engine: Engine, randomness: Randomness, progress: Progress
    ) -> tuple[float, FloatArray, list[str]]:
        """The penalty, where to start the fit, and what the user should know of the choice."""
        if not isinstance(self.l2, str):
            return float(self.l2), np.zeros(release.structure.cells), []
        near = by_discrepancy(problem, release, self.tolerance, self.max_iterations)
        if self.l2 == "discrepancy":
            return *near, []
        if "sample" not in engine.capabilities:
            note = (
                f"l2 = 'auto' simulates releases and {engine_name(engine)} cannot sample; l2 was chosen as by "
                "'discrepancy', use junction-tree for better"
            )
            return *near, [note]
        l2 = by_bootstrap(
            problem,
            release,
            near,
            project=self.project,
            tolerance=self.tolerance,
            randomness=randomness,
            progress=progress,
        )
        return l2, near[1], []


def _zeros(target: Tables, l2: float) -> list[str]:
    """Say when the maximum-likelihood estimate does not exist, and what stands in for it."""
    impossible = target.structure.impossible  # which the engine rules out, whatever their potentials
    empty = int(np.sum(target.values <= 0 if impossible is None else (target.values <= 0) & ~impossible))
    if not empty:
        return []
    done = (
        f"the penalty l2 = {l2:.3g} keeps them finite"
        if l2 > 0
        else "there is no penalty, so the fit stopped where it was close enough; set l2 > 0"
    )
    return [
        f"{empty} of {target.values.size} target cells are 0 or below, so the unpenalised maximum-likelihood "
        f"estimate does not exist (its potentials would be infinite); {done}"
    ]


# --------------------------------------------------------------------------------------------------
# Refits for error bars: to many releases like the model's, side by side from its potentials.


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
