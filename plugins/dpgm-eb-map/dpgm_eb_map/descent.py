"""What one fit minimises, and how: L-BFGS on top of Newton's step with a frozen H."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from dpgm_core import FloatArray, InferenceError, IntArray
from dpgm_eb_map.posterior import Moments

__all__ = ["Objective", "System"]

_MEMORY = 50  # pairs of L-BFGS; where noise rules fewer need three times the steps
_SHORTEST = 1e-6  # of a step; shorter ones tell rounding, or the engine's accuracy


class System(Protocol):
    """The linear algebra of a round: W = (N F + V)^-1 and H = N^2 F W F + Lam. `Dense` or `Diagonal`."""

    def weighted(self, residual: FloatArray) -> FloatArray:
        """W r."""
        ...

    def set_prior(self, precision: FloatArray) -> None:
        """Take a prior of this precision (p,)."""
        ...

    def newton(self, gradient: FloatArray) -> FloatArray:
        """H^-1 g, or near it: a direction of descent."""
        ...

    def determined(self) -> FloatArray:
        """1 - c Lam of each parameter (p,), c the diagonal of H^-1: how far the data fix it, 0 to 1."""
        ...

    def spread(self, part: IntArray) -> FloatArray:
        """The block (q, q) of H^-1 of the parameters at `part` (q,), or its diagonal (q,)."""
        ...


class Objective:
    """.5 r'Wr + .5 phi'Lam phi in nats, r = z - N m(phi), W frozen.

    noisy: z (p,). total: N. precision: Lam (p,), which the system has as its prior.
    """

    def __init__(
        self, moments: Moments, system: System, noisy: FloatArray, total: float, precision: FloatArray
    ) -> None:
        self._moments, self._system = moments, system
        self._noisy, self._total, self._precision = noisy, total, precision

    @np.errstate(over="ignore", invalid="ignore")  # a value that is not a number is no descent
    def minimise(self, phi: FloatArray, tolerance: float, steps: int) -> tuple[FloatArray, float]:
        """The minimiser, from `phi`, and how far it is: the length of Newton's step, posterior standard deviations.

        Ends below `tolerance`, after so many steps, or where rounding is reached. Raises InferenceError where the
        objective is not a number at `phi`.
        """
        value, weighted = self._value(phi)
        if not math.isfinite(value):
            raise InferenceError("eb-map: the objective is not a number; the release is beyond double precision")
        pairs: list[tuple[FloatArray, FloatArray]] = []
        gradient = self._gradient(phi, weighted)
        distance = math.inf
        for _ in range(steps):
            step = -_two_loops(gradient, pairs, self._system.newton)
            slope = float(gradient @ step)
            distance = math.sqrt(max(0.0, -slope))
            if distance <= tolerance:
                break
            length = 1.0
            while True:
                after, weighted = self._value(phi + length * step)
                if after <= value + 1e-4 * length * slope:
                    break
                length /= 2
                if length < _SHORTEST:
                    return phi, distance
            before = gradient
            phi, value = phi + length * step, after
            gradient = self._gradient(phi, weighted)
            if (gradient - before) @ step > 0:
                pairs = [*pairs, (length * step, gradient - before)][-_MEMORY:]
        return phi, distance

    def _value(self, phi: FloatArray) -> tuple[float, FloatArray]:
        """The objective and W r; infinite where the engine gives up."""
        try:
            _, _, mean = self._moments.mean(phi)
        except InferenceError:
            return math.inf, phi
        residual = self._noisy - self._total * mean
        weighted = self._system.weighted(residual)
        return 0.5 * float(residual @ weighted) + 0.5 * float(phi @ (self._precision * phi)), weighted

    def _gradient(self, phi: FloatArray, weighted: FloatArray) -> FloatArray:
        # - N F(phi) W r + Lam phi, F where phi is now
        return self._precision * phi - self._total * self._moments.along(phi, weighted)


def _two_loops(
    gradient: FloatArray, pairs: list[tuple[FloatArray, FloatArray]], start: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """The L-BFGS estimate of H^-1 g; start: H^-1 g of the initial H (Nocedal and Wright 2006, algorithm 7.4)."""
    direction = gradient
    weights = []
    for step, change in reversed(pairs):
        weights.append(float(step @ direction) / float(change @ step))
        direction = direction - weights[-1] * change
    found = start(direction)
    if pairs:  # so long as the last change says, where the initial H is not the objective's (their equation 7.20)
        step, change = pairs[-1]
        found = found * (float(step @ change) / float(change @ start(change)))
    for (step, change), weight in zip(pairs, reversed(weights), strict=True):
        found = found + (weight - float(change @ found) / float(change @ step)) * step
    return found
