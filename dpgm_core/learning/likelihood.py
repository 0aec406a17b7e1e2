"""Penalised likelihood of noisy tables, and its maximisation."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import TypeAlias

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.progress import Progress
from dpgm_core.errors import InferenceError
from dpgm_core.inference.batching import infer_all
from dpgm_core.inference.collective.dual import Secants
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.structure.tables import Tables

__all__ = ["Minimisation", "Likelihood", "together"]


#: A minimisation under way: it asks for beliefs at log-potentials (cells,), and ends with its answer and whether that
#: is within the tolerance.
Minimisation: TypeAlias = Generator[FloatArray, Beliefs, tuple[FloatArray, bool]]

# Pairs kept; more save few calls and cost each of them more than a small model's inference.
_MAX_SECANTS = 8
# The longest that the first step moves a potential, nats: the metric holds nearby. Each later one may be longer by:
_REACH_NATS, _REACH_GROWTH = 2.0, 4.0
# Of an accepted step: the least decrease as a share of what the slope promises, and the steepest rise at its end as a
# share of the slope at its start.
_MIN_DECREASE, _MAX_RISE = 1e-4, 0.9
# Shortenings of one step, and steps in all that lowered nothing; more tell rounding, or an approximate engine's errors.
_MAX_SHORTENINGS, _MAX_STANDING_STEPS = 10, 10


class Likelihood:
    """Objective A(theta) - theta . target + l2 |theta|^2, per record, with gradient mu(theta) - target + 2 l2 theta.

    Parameters
    ----------
    engine : Engine
        Compiled for the target's structure.
    target : Tables
        Marginals; each group's table sums to its number of cliques.
    task : str
        Name of the task for `progress`.

    Attributes
    ----------
    marginals, slope
        Of the last answer of `minimise`: marginals (cells,) and the largest derivative.
    calls, trace
        Inference calls, and one mapping of numbers per step.
    gained : float
        Largest decrease of the objective in one minimisation, nats.
    """

    def __init__(self, engine: Engine, target: Tables, progress: Progress, task: str = "learning") -> None:
        self.engine, self.target, self.progress, self.task = engine, target, progress, task
        self.trace: list[dict[str, float]] = []
        self.calls = 0
        self.slope = math.inf
        self.gained = 0.0
        self.marginals: FloatArray = np.zeros(target.structure.cells)
        self._mass = np.repeat(np.asarray(target.structure.multiplicities, dtype=np.float64), target.structure.sizes)

    def value(self, theta: FloatArray, l2: float) -> tuple[float, FloatArray]:
        """Return the objective, nats, and its gradient, (cells,)."""
        return self._evaluate(theta, l2, self.engine.infer(Tables(self.target.structure, theta)))

    def minimise(
        self, theta: FloatArray, l2: float, tolerance: float, steps: int, share: float = 0.0
    ) -> tuple[FloatArray, bool]:
        """Minimise by L-BFGS from `theta`; return the minimiser and whether a tolerance was reached.

        It ends when no derivative exceeds `tolerance`, or when the remaining decrease, by the model of the Hessian, is
        below `share` of `gained`.
        """
        return together(self.engine, [self.descent(theta, l2, tolerance, steps, share)])[0]

    def descent(self, theta: FloatArray, l2: float, tolerance: float, steps: int, share: float = 0.0) -> Minimisation:
        """Return `minimise` as a generator, for `together`.

        The metric is the diagonal of the Hessian Cov(T) + 2 l2.
        """
        secants, reach, standing, done = Secants(_MAX_SECANTS), _REACH_NATS, 0, False
        value, gradient = self._evaluate(theta, l2, (yield theta))
        marginals, first = self.marginals, value
        for _ in range(steps):
            if float(np.abs(gradient).max()) <= tolerance:
                break
            direction = secants.descent(gradient, self._metric(marginals, gradient, l2))
            if gradient @ direction >= 0:  # rounding, or an approximate engine: begin anew
                secants = Secants(_MAX_SECANTS)
                direction = secants.descent(gradient, self._metric(marginals, gradient, l2))
            done = -float(gradient @ direction) / 2 <= share * self.gained
            if done:
                break
            step_taken = yield from self._search(theta, l2, value, gradient, direction, reach)
            if step_taken is None:
                break
            step, after, gradient_after, reach = step_taken
            standing += after >= value
            if standing > _MAX_STANDING_STEPS:
                break
            secants.add(step, gradient_after - gradient)
            theta, value, gradient, marginals = theta + step, after, gradient_after, self.marginals
            self.gained = max(self.gained, first - value)
            self.progress(self.task, len(self.trace), None)
            self.trace.append({"inference_calls": self.calls, "l2": l2})
        self.marginals, self.slope = marginals, float(np.abs(gradient).max())
        self.trace.append({"inference_calls": self.calls, "l2": l2, "objective": value, "gradient": self.slope})
        return theta, done or self.slope <= tolerance

    def _search(
        self, theta: FloatArray, l2: float, value: float, gradient: FloatArray, direction: FloatArray, reach: float
    ) -> Generator[FloatArray, Beliefs, tuple[FloatArray, float, FloatArray, float] | None]:
        """Search along the direction; return a step, value and gradient after it, and the next step's reach, or None.

        The objective is convex: a step that ends on a falling slope has not gone too far, and one that ends on too
        steep a rise, or lowers the objective too little, is shortened to where the slope, interpolated, is 0.
        """
        fall, largest = float(gradient @ direction), float(np.abs(direction).max())
        length, rounding = min(1.0, reach / largest), 1e-14 * (1.0 + abs(value))
        for _ in range(_MAX_SHORTENINGS):
            step = length * direction
            point = theta + step
            after, gradient_after = self._evaluate(point, l2, (yield point))
            rise = float(gradient_after @ direction)
            lower = after <= value + _MIN_DECREASE * length * fall + rounding
            if rise <= 0 or (rise <= -_MAX_RISE * fall and lower):
                return step, after, gradient_after, _REACH_GROWTH * reach
            length *= min(max(fall / (fall - rise), 0.05), 0.7)
            reach = max(_REACH_NATS, length * largest)
        return None

    def _evaluate(self, theta: FloatArray, l2: float, beliefs: Beliefs) -> tuple[float, FloatArray]:
        self.calls += 1
        self.marginals = beliefs.marginals.values
        objective = beliefs.log_partition - float(theta @ self.target.values) + l2 * float(theta @ theta)
        gradient = self.marginals - self.target.values + (2 * l2) * theta
        if not math.isfinite(objective):
            raise InferenceError("the likelihood is not a number; the potentials have run away, raise l2")
        return objective, gradient

    def _metric(self, marginals: FloatArray, gradient: FloatArray, l2: float) -> FloatArray:
        """mu (1 - mu / m) + 2 l2, m the cliques of a tied group; raised where a step would go beyond its reach."""
        metric = marginals * (1 - marginals / self._mass) + 2 * l2
        floored: FloatArray = np.maximum(metric, np.abs(gradient) / _REACH_NATS + 1e-300)
        return floored


def together(engine: Engine, descents: Sequence[Minimisation]) -> list[tuple[FloatArray, bool]]:
    """Run the descents to their ends on one engine; return what each returns, in their order.

    engine: compiled for the structure of each.
    """
    results: dict[int, tuple[FloatArray, bool]] = {}
    points = {number: next(descent) for number, descent in enumerate(descents)}
    while points:
        answers = infer_all(engine, list(points.values()))
        for number, beliefs in zip(list(points), answers, strict=True):
            try:
                points[number] = descents[number].send(beliefs)
            except StopIteration as ended:
                results[number] = ended.value
                del points[number]
    return [results[number] for number in range(len(descents))]
