"""The objective of one fit and its minimisation: L-BFGS on top of Newton's step with a frozen H.

Fits that share W and H descend side by side: a product with a matrix of many megabytes takes as long as the reading of
it, for forty vectors as for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dpgm_core import FloatArray, InferenceError, IntArray
from dpgm_eb_map.posterior import Moments

__all__ = ["Objective", "System", "minimise_together"]

# What a descent asks for: statistics of the model at phi (p,), W r of a residual, or H^-1 g of a gradient. It gets the
# vector, or None where the engine gives up; it ends with the minimiser and how far that is.
_Request: TypeAlias = tuple[Literal["mean", "weighted", "newton"], FloatArray]
_Vector: TypeAlias = Generator[_Request, FloatArray | None, FloatArray]
# A step, how the gradient changed in it, and H^-1 of that change.
_Pair: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
_Descent: TypeAlias = Generator[_Request, FloatArray | None, tuple[FloatArray, float]]

_MEMORY = 50  # pairs of L-BFGS; where noise rules fewer need three times the steps
_SHORTEST = 1e-6  # of a step; shorter ones tell rounding, or the engine's accuracy


class System(Protocol):
    """The linear algebra of a round: W = (N F + V)^-1 and H = N^2 F W F + Lam. `Dense` or `Diagonal`."""

    def weighted(self, residual: FloatArray) -> FloatArray:
        """W r, of (p,) or of the columns (p, n)."""
        ...

    def set_prior(self, precision: FloatArray) -> None:
        """Take a prior of this precision (p,)."""
        ...

    def newton(self, gradient: FloatArray) -> FloatArray:
        """H^-1 g, or near it, of (p,) or of the columns (p, n): directions of descent."""
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
        self.moments, self.system = moments, system
        self._noisy, self._total, self._precision = noisy, total, precision

    def minimise(self, phi: FloatArray, tolerance: float, steps: int) -> tuple[FloatArray, float]:
        """The minimiser, from `phi`, and how far it is: the length of Newton's step, posterior standard deviations.

        Ends below `tolerance`, after so many steps, or where rounding is reached. Raises InferenceError where the
        objective is not a number at `phi`.
        """
        return minimise_together([self], phi, tolerance, steps)[0]

    def descent(self, phi: FloatArray, tolerance: float, steps: int) -> _Descent:
        """`minimise` under way."""
        value, weighted = yield from self._value(phi)
        if not math.isfinite(value):
            raise InferenceError("eb-map: the objective is not a number; the release is beyond double precision")
        pairs: list[_Pair] = []
        gradient = yield from self._gradient(phi, weighted)
        solved = _require_vector((yield "newton", gradient))
        distance = math.inf
        for _ in range(steps):
            step = -_two_loops(gradient, solved, pairs)
            slope = float(gradient @ step)
            distance = math.sqrt(max(0.0, -slope))
            if distance <= tolerance:
                break
            length = 1.0
            while True:
                after, weighted = yield from self._value(phi + length * step)
                if after <= value + 1e-4 * length * slope:
                    break
                length /= 2
                if length < _SHORTEST:
                    return phi, distance
            before, solved_before = gradient, solved
            phi, value = phi + length * step, after
            gradient = yield from self._gradient(phi, weighted)
            solved = _require_vector((yield "newton", gradient))
            if (gradient - before) @ step > 0:
                pairs = [*pairs, (length * step, gradient - before, solved - solved_before)][-_MEMORY:]
        return phi, distance

    def _value(self, phi: FloatArray) -> Generator[_Request, FloatArray | None, tuple[float, FloatArray]]:
        """The objective and W r; infinite where the engine gives up."""
        mean = yield "mean", phi
        if mean is None:
            return math.inf, phi
        residual = self._noisy - self._total * mean
        weighted = _require_vector((yield "weighted", residual))
        return 0.5 * float(residual @ weighted) + 0.5 * float(phi @ (self._precision * phi)), weighted

    def _gradient(self, phi: FloatArray, weighted: FloatArray) -> _Vector:
        # - N F(phi) W r + Lam phi, F where phi is now
        move = self.moments.move(weighted)
        if move == 0.0:
            return self._precision * phi
        up = _require_vector((yield "mean", phi + move * weighted))
        down = _require_vector((yield "mean", phi - move * weighted))
        return self._precision * phi - self._total * (up - down) / (2 * move)


@np.errstate(over="ignore", invalid="ignore")  # a value that is not a number is no descent
def minimise_together(
    objectives: Sequence[Objective], phi: FloatArray, tolerance: float, steps: int
) -> list[tuple[FloatArray, float]]:
    """Return what `minimise` returns for each, from `phi`: they share one engine and one system."""
    moments, system = objectives[0].moments, objectives[0].system
    descents = [one.descent(phi, tolerance, steps) for one in objectives]
    results: list[tuple[FloatArray, float]] = [(phi, math.inf)] * len(descents)
    requests = {number: next(descent) for number, descent in enumerate(descents)}
    while requests:
        answers: dict[int, FloatArray | None] = {}
        for kind in {kind for kind, _ in requests.values()}:
            numbers = [number for number in requests if requests[number][0] == kind]
            vectors = [requests[number][1] for number in numbers]
            served = (
                moments.means(vectors)
                if kind == "mean"
                else _columns(system.weighted if kind == "weighted" else system.newton, vectors)
            )
            answers.update(zip(numbers, served, strict=True))
        for number, answer in answers.items():
            try:
                requests[number] = descents[number].send(answer)
            except StopIteration as ended:
                results[number] = ended.value
                del requests[number]
    return results


def _columns(product: Callable[[FloatArray], FloatArray], vectors: list[FloatArray]) -> list[FloatArray]:
    """The product of each vector, made of all in one."""
    if len(vectors) == 1:
        return [product(vectors[0])]
    return list(np.ascontiguousarray(product(np.array(vectors).T).T))


def _require_vector(answer: FloatArray | None) -> FloatArray:
    if answer is None:
        raise InferenceError("eb-map: the engine gave no marginals beside parameters where it did")
    return answer


def _two_loops(gradient: FloatArray, solved: FloatArray, pairs: list[_Pair]) -> FloatArray:
    """The L-BFGS estimate of H^-1 g, from the system's (Nocedal and Wright 2006, algorithm 7.4).

    solved: the system's. It is linear, so what it makes of g less changes of g is at hand.
    """
    direction, estimate = gradient, solved
    weights = []
    for step, change, solved_change in reversed(pairs):
        weights.append(float(step @ direction) / float(change @ step))
        direction = direction - weights[-1] * change
        estimate = estimate - weights[-1] * solved_change
    if pairs:  # so long as the last change says, where the initial H is not the objective's (their equation 7.20)
        step, change, solved_change = pairs[-1]
        estimate = estimate * (float(step @ change) / float(change @ solved_change))
    for (step, change, _), weight in zip(pairs, reversed(weights), strict=True):
        estimate = estimate + (weight - float(change @ estimate) / float(change @ step)) * step
    return estimate
