"""Maximum likelihood on noisy tables taken at their word (Bernstein et al. 2017, section 3.1)."""

from __future__ import annotations

import math
from typing import Literal, TypeGuard

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import (
    Curator,
    Fit,
    FloatArray,
    Inference,
    Likelihood,
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
# A weaker penalty that leaves more than this share of the distance to the noisy tables is not worth it.
_HARDLY = 0.93


def _penalty(instance: object, attribute: object, value: object) -> None:
    if value != "discrepancy" and not (_is_number(value) and value >= 0):
        raise ValueError(f"l2 must be 'discrepancy' or a finite number of at least 0, got {value!r}")


def _tolerance(instance: object, attribute: object, value: object) -> None:
    if not (_is_number(value) and value > 0):
        raise ValueError(f"tolerance must be a finite number above 0, got {value!r}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


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
        "close to the noisy tables as the noise would be, or hardly comes nearer any more",
        unit="1 / nats, per record",
        validator=_penalty,
    )
    tolerance: float = option(1e-6, help="stop when no derivative is larger", unit="probability", validator=_tolerance)
    max_iterations: int = option(
        2000,
        help="at most this many steps of L-BFGS",
        validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)],
    )

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Take one release and fit it. Raises InferenceError when the engine fails."""
        release = curator.release()
        problem = Likelihood(inference.compile(release.structure), targets(release, project=self.project), progress)
        theta = np.zeros(release.structure.cells)
        if self.l2 == "discrepancy":
            l2, theta = self._weaken(problem, release, theta)
        else:
            l2 = float(self.l2)
        theta, converged = problem.minimise(theta, l2, self.tolerance, self.max_iterations)
        potentials = Tables(release.structure, theta)
        if curator.structure != release.structure:
            potentials = potentials.embed(curator.structure)
        notes = _notes(problem.target, l2)
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

    def _weaken(self, problem: Likelihood, release: NoisyTables, theta: FloatArray) -> tuple[float, FloatArray]:
        # E |y - n|_1: what the distance to the noisy tables would be if the model had the true marginals.
        sizes = release.structure.sizes
        allowed = sum(cells * expected_absolute(noise) for cells, noise in zip(sizes, release.noise, strict=True))
        noisy = release.tables.values.astype(np.float64)
        before, nearest = theta, np.inf
        for number, l2 in enumerate(_PATH):
            theta, _ = problem.minimise(before, l2, max(self.tolerance, 1e-5), self.max_iterations)
            distance = float(np.abs(noisy - release.total * problem.marginals).sum())
            if distance <= allowed:
                return l2, theta
            if distance > _HARDLY * nearest:
                # Chance can leave the tables further apart than any model can follow; then only noise is left to fit.
                return _PATH[number - 1], before
            before, nearest = theta, distance
        return _PATH[-1], before


def _notes(target: Tables, l2: float) -> list[str]:
    """Say when the maximum-likelihood estimate does not exist, and what stands in for it."""
    empty = int(np.sum(target.values <= 0))
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
