"""Maximum likelihood on noisy tables taken at their word (Bernstein et al. 2017, section 3.1)."""

from __future__ import annotations

import math
from typing import Literal

import attrs
import numpy as np
from attrs import frozen
from scipy.optimize import minimize

from dpgm_core import (
    Curator,
    Engine,
    Fit,
    FloatArray,
    Inference,
    InferenceError,
    Model,
    NoisyTables,
    Progress,
    Randomness,
    Tables,
    expected_absolute,
    option,
)
from dpgm_naive_mle.projection import targets

__all__ = ["NaiveMLE"]

# Penalties tried, strongest first, until the fit is as close to the noisy tables as the noise allows.
_PATH = [10.0 ** (-exponent / 2) for exponent in range(2, 15)]


def _penalty(instance: object, attribute: object, value: float | str) -> None:
    if isinstance(value, float) and not (math.isfinite(value) and value >= 0):
        raise ValueError(f"l2 must be at least 0 and finite, got {value}")


@frozen(kw_only=True)
class NaiveMLE:
    """Minimises A(theta) - theta . mu_bar + l2 * |theta|^2 over log-potentials, mu_bar the noisy marginals.

    The penalty is per record (the likelihood is divided by N), as in the paper's Figure 1c. Gradients are exact:
    mu(theta) - mu_bar + 2 l2 theta. Source: Bernstein et al. (2017), section 3.1.

    >>> NaiveMLE(l2=0.001).l2
    0.001
    """

    project: bool = option(True, help="move each noisy table to the nearest one without negative cells first")
    l2: float | Literal["discrepancy"] = option(
        "discrepancy",
        help="strength of the L2 penalty on the log-potentials; 'discrepancy' weakens it until the model is as "
        "close to the noisy tables as the noise would be",
        unit="1 / nats, per record",
        validator=_penalty,
    )
    tolerance: float = option(
        1e-6, help="stop when no derivative is larger", unit="probability", validator=attrs.validators.gt(0)
    )
    max_iterations: int = option(2000, help="at most this many steps of L-BFGS", validator=attrs.validators.ge(1))

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it. Raises InferenceError when the engine fails."""
        release = curator.release()
        problem = _Problem(inference.compile(release.structure), targets(release, project=self.project), progress)
        theta = np.zeros(release.structure.cells)
        if self.l2 == "discrepancy":
            l2, theta = self._weaken(problem, release, theta)
        else:
            l2 = float(self.l2)
        theta, converged = problem.minimise(theta, l2, self.tolerance, self.max_iterations)
        potentials = Tables(release.structure, theta)
        if curator.structure != release.structure:
            potentials = potentials.embed(curator.structure)
        notes = problem.notes(l2)
        if not converged:
            notes.append(
                f"not converged: the largest derivative is {problem.slope:.2g} after {problem.calls} inference calls, "
                f"above {self.tolerance:g}; raise max_iterations or l2"
            )
        return Fit(
            model=Model(potentials.structure, potentials, release=release),
            release=release,
            trace=problem.trace,
            converged=converged,
            certificate={"gradient": problem.slope, "l2": l2, "inference_calls": problem.calls},
            notes=notes,
        )

    def _weaken(self, problem: _Problem, release: NoisyTables, theta: FloatArray) -> tuple[float, FloatArray]:
        # E |y - n|_1: what the distance to the noisy tables would be if the model had the true marginals.
        sizes = release.structure.sizes
        allowed = sum(cells * expected_absolute(noise) for cells, noise in zip(sizes, release.noise, strict=True))
        noisy = release.tables.values.astype(np.float64)
        l2 = _PATH[0]
        for l2 in _PATH:
            theta, _ = problem.minimise(theta, l2, max(self.tolerance, 1e-5), self.max_iterations)
            if np.abs(noisy - release.total * problem.marginals).sum() <= allowed:
                break
        return l2, theta


class _Problem:
    """The penalised likelihood with its engine; keeps the trace and the marginals of the last accepted point."""

    def __init__(self, engine: Engine, target: Tables, progress: Progress) -> None:
        self.engine, self.target, self.progress = engine, target, progress
        self.trace: list[dict[str, float]] = []
        self.calls = 0
        self.slope = math.inf
        self.marginals = np.zeros(target.structure.cells)

    def value(self, theta: FloatArray, l2: float) -> tuple[float, FloatArray]:
        """A(theta) - theta . mu_bar + l2 |theta|^2, nats, and its gradient."""
        beliefs = self.engine.infer(Tables(self.target.structure, theta))
        self.calls += 1
        self.marginals = beliefs.marginals.values
        objective = beliefs.log_partition - float(theta @ self.target.values) + l2 * float(theta @ theta)
        gradient = self.marginals - self.target.values + 2 * l2 * theta
        if not math.isfinite(objective):
            raise InferenceError("the likelihood is not a number; the potentials have run away, raise l2")
        return objective, gradient

    def minimise(self, theta: FloatArray, l2: float, tolerance: float, steps: int) -> tuple[FloatArray, bool]:
        """L-BFGS from `theta`; the marginals, trace and slope are those of the point returned."""

        def seen(point: FloatArray) -> None:
            self.progress("learning", len(self.trace), None)
            self.trace.append({"inference_calls": self.calls, "l2": l2})

        result = minimize(
            self.value,
            theta,
            args=(l2,),
            jac=True,
            method="L-BFGS-B",
            callback=seen,
            options={"maxiter": steps, "maxfun": 2 * steps, "gtol": tolerance, "ftol": 0.0, "maxcor": 20},
        )
        objective, gradient = self.value(result.x, l2)
        self.slope = float(np.abs(gradient).max())
        self.trace.append({"inference_calls": self.calls, "l2": l2, "objective": objective, "gradient": self.slope})
        return result.x, self.slope <= tolerance

    def notes(self, l2: float) -> list[str]:
        """Say when the maximum-likelihood estimate does not exist, and what stands in for it."""
        empty = int(np.sum(self.target.values <= 0))
        if not empty:
            return []
        done = (
            f"the penalty l2 = {l2:.3g} keeps them finite"
            if l2 > 0
            else "there is no penalty, so the fit stopped where it was close enough; set l2 > 0"
        )
        return [
            f"{empty} of {self.target.values.size} target cells are 0 or below, so the unpenalised maximum-likelihood "
            f"estimate does not exist (its potentials would be infinite); {done}"
        ]
