"""The L2-penalised likelihood of a log-linear model given target marginals, and its maximiser."""

from __future__ import annotations

import math

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import InferenceError
from dpgm_core.inference.contract import Engine
from dpgm_core.progress import Progress
from dpgm_core.tables import Tables

__all__ = ["Likelihood"]


class Likelihood:
    """A(theta) - theta . target + l2 |theta|^2, per record, with its exact gradient mu(theta) - target + 2 l2 theta.

    engine: compiled for the target's structure. target: marginals, each group's table summing to its number of
    cliques. task: what progress is told, without a known end. After `minimise` the attributes `marginals` and `slope`
    (largest derivative) are those of its answer; `calls` counts inference calls and `trace` keeps one mapping of
    numbers per step.
    """

    def __init__(self, engine: Engine, target: Tables, progress: Progress, task: str = "learning") -> None:
        self.engine, self.target, self.progress, self.task = engine, target, progress, task
        self.trace: list[dict[str, float]] = []
        self.calls = 0
        self.slope = math.inf
        self.marginals: FloatArray = np.zeros(target.structure.cells)

    def value(self, theta: FloatArray, l2: float) -> tuple[float, FloatArray]:
        """The objective, nats, and its gradient, (cells,)."""
        beliefs = self.engine.infer(Tables(self.target.structure, theta))
        self.calls += 1
        self.marginals = beliefs.marginals.values
        objective = beliefs.log_partition - float(theta @ self.target.values) + l2 * float(theta @ theta)
        gradient = self.marginals - self.target.values + 2 * l2 * theta
        if not math.isfinite(objective):
            raise InferenceError("the likelihood is not a number; the potentials have run away, raise l2")
        return objective, gradient

    def minimise(self, theta: FloatArray, l2: float, tolerance: float, steps: int) -> tuple[FloatArray, bool]:
        """L-BFGS from `theta` until no derivative exceeds `tolerance`; says whether that was reached."""
        from scipy.optimize import minimize  # imports more than a learner that descends by itself does in all

        def seen(point: FloatArray) -> None:
            self.progress(self.task, len(self.trace), None)
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
