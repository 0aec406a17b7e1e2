"""The objectives of one fit and their minimisation: L-BFGS on top of Newton's step with a frozen H.

Fits that share W and H descend side by side: a product with a matrix of many megabytes takes as long as the reading of
it, for forty vectors as for one.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dpgm_core import FloatArray, InferenceError, IntArray
from dpgm_eb_map.posterior import Moments

__all__ = ["Objective", "System", "correct_together", "minimise_together"]

# What a descent asks for: statistics of the model at phi (p,), W r of a residual, or H^-1 g of a gradient. It gets the
# vector, or None where the engine gives up; it ends with the minimiser and how far that is.
_Request: TypeAlias = tuple[Literal["mean", "weighted", "newton"], FloatArray]
_Vector: TypeAlias = Generator[_Request, FloatArray | None, FloatArray]
_Value: TypeAlias = Generator[_Request, FloatArray | None, tuple[float, FloatArray, FloatArray]]
# A step, how the gradient changed in it, H^-1 of that change, and the product of the first two.
_Pair: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, float]
_Descent: TypeAlias = Generator[_Request, FloatArray | None, tuple[FloatArray, float]]

_MEMORY = 50  # pairs of L-BFGS; where noise rules fewer need three times the steps
_RESTARTED_STEPS = 100  # at most, after a restart; Adult at epsilon = 10 converged in fewer
# Of fits to the records, steps without a nearer point, after which the nearest is the end: cells that noise moved below
# 0 draw such fits away without end. Of 75 columns at epsilon = 10 the 75th of 1,500 steps was the nearest.
_PATIENCE = 200
_SHORTEST = 1e-6  # of a step; shorter ones tell rounding, or the engine's accuracy
# Of conjugate gradients, the share of r'Wr that is left, and steps. On sixteen binary columns, health, Adult and LBS at
# epsilon = 10 thirty steps leave .03 to .06, while ten leave .1 to .2 and the correction then often fails to converge;
# at epsilon = 1 three to seven suffice.
_UNEXPLAINED, _CONJUGATE_STEPS = 0.03, 30
_LARGEST_SLOPE = 0.9  # after a step on a convex objective, of the slope before it; more may be no descent


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

    _max_restarts = 0  # of L-BFGS in one descent
    _returns_nearest = False  # of all points of a descent; else the last

    def __init__(
        self, moments: Moments, system: System, noisy: FloatArray, total: float, precision: FloatArray
    ) -> None:
        self.moments, self.system = moments, system
        self._noisy, self._total, self._precision = noisy, total, precision

    def under(self, precision: FloatArray) -> Objective:
        """The same under a prior of another precision (p,)."""
        return Objective(self.moments, self.system, self._noisy, self._total, precision)

    def minimise(self, phi: FloatArray, tolerance: float, steps: int) -> tuple[FloatArray, float]:
        """The minimiser, from `phi`, and how far it is: the length of Newton's step, posterior standard deviations.

        Ends below `tolerance`, after so many steps, or where rounding is reached. Raises InferenceError where the
        objective is not a number at `phi`.
        """
        return minimise_together([self], phi, tolerance, steps)[0]

    def descent(self, phi: FloatArray, tolerance: float, steps: int) -> _Descent:
        """`minimise` under way."""
        value, weighted, mean = yield from self._value(phi)
        if not math.isfinite(value):
            raise InferenceError("eb-map: the objective is not a number; the release is beyond double precision")
        pairs: list[_Pair] = []
        restarts = waited = 0
        nearest = phi, math.inf
        gradient = yield from self._gradient(phi, weighted, mean)
        solved = _require_vector((yield "newton", gradient))
        distance = math.inf
        while steps > 0:
            steps -= 1
            step = -_two_loops(gradient, solved, pairs)
            slope = float(gradient @ step)
            distance = math.sqrt(max(0.0, -slope))
            nearest, waited = ((phi, distance), 0) if distance < nearest[1] else (nearest, waited + 1)
            if distance <= tolerance or (self._returns_nearest and waited == _PATIENCE):
                break
            length = 1.0
            while length >= _SHORTEST:
                after, weighted, mean = yield from self._value(phi + length * step)
                if self._is_lower(value, after, length, slope, float(weighted @ step)):
                    break
                length /= 2
            else:  # changes of gradients mislead where curvature is approximate; or it is the end
                if not pairs or restarts == self._max_restarts:
                    break
                pairs, restarts, steps = [], restarts + 1, min(steps, _RESTARTED_STEPS)
                continue
            before, solved_before = gradient, solved
            phi, value = phi + length * step, after
            gradient = yield from self._gradient(phi, weighted, mean)
            solved = _require_vector((yield "newton", gradient))
            change = gradient - before
            if change @ step > 0:
                step = length * step
                pairs = [*pairs, (step, change, solved - solved_before, float(change @ step))][-_MEMORY:]
        return nearest if self._returns_nearest else (phi, distance)

    def correction(
        self,
        phi: FloatArray,
        centre: FloatArray,
        drift: FloatArray,
        tolerance: float,
        steps: int,
        *,
        of_records: bool = False,
    ) -> _Descent:
        """One step of expectation and maximisation from the minimiser `phi`, with all of F at `centre` in W.

        Expectation: the statistics of the records, given the noisy ones, are z - V W r. Maximisation: `_Likelihood`.
        drift: (p,), V has drift drift' besides. of_records: it ends as a fit to the records.
        Returns what `descent` does, and an infinite distance where the engine gives up.
        """
        try:
            mean = _require_vector((yield "mean", phi))
            weighted = yield from self._solve(self._noisy - self._total * mean, centre, drift)
            expected = self._noisy - self._noise(weighted, drift)
            kind = _RecordsLikelihood if of_records else _Likelihood
            maximisation = kind(self.moments, self.system, expected, self._total, self._precision)
            return (yield from maximisation.descent(phi, tolerance, steps))
        except InferenceError:
            return phi, math.inf

    def _solve(self, residual: FloatArray, centre: FloatArray, drift: FloatArray) -> _Vector:
        """(N F + V)^-1 r by conjugate gradients, preconditioned by the system's W (Golub and Van Loan 2013, 11.5)."""
        solution = _require_vector((yield "weighted", residual))
        goal = _UNEXPLAINED**2 * float(residual @ solution)
        mean = _require_vector((yield "mean", centre))
        left = residual - (yield from self._covariance(solution, centre, mean, drift))
        direction, size = np.zeros_like(left), 1.0
        for _ in range(_CONJUGATE_STEPS):
            weighted = _require_vector((yield "weighted", left))
            size, before = float(left @ weighted), size
            if size <= goal:
                break
            direction = weighted + size / before * direction
            image = yield from self._covariance(direction, centre, mean, drift)
            curvature = float(direction @ image)
            if not curvature > 0.0:  # an approximate engine's covariance need not be one
                break
            length = size / curvature
            solution, left = solution + length * direction, left - length * image
        return solution

    def _covariance(self, vector: FloatArray, centre: FloatArray, mean: FloatArray, drift: FloatArray) -> _Vector:
        """(N F + V) v, F at `centre`."""
        information = yield from self._information(vector, centre, mean)
        return information + self._noise(vector, drift)

    def _noise(self, vector: FloatArray, drift: FloatArray) -> FloatArray:
        """V v."""
        return self.moments.basis.variances * vector + drift * float(drift @ vector)

    def _information(self, vector: FloatArray, centre: FloatArray, mean: FloatArray) -> _Vector:
        """N F v at `centre`, whose statistics are `mean`, by differences: the engine's own derivatives cost more."""
        move = self.moments.move(vector)
        if move == 0.0:
            return np.zeros_like(vector)
        ahead = _require_vector((yield "mean", centre + move * vector))
        if self.moments.exact:
            return self._total * (ahead - mean) / move
        behind = _require_vector((yield "mean", centre - move * vector))
        return self._total * (ahead - behind) / (2 * move)

    def _is_lower(self, value: float, after: float, length: float, slope: float, weighted_slope: float) -> bool:
        """Whether a step of this length has lowered the objective by enough (Armijo's rule)."""
        return after <= value + 1e-4 * length * slope

    def _value(self, phi: FloatArray) -> _Value:
        """The objective, W r and the model's statistics; infinite where the engine gives up."""
        mean = yield "mean", phi
        if mean is None:
            return math.inf, phi, phi
        residual = self._noisy - self._total * mean
        weighted = _require_vector((yield "weighted", residual))
        return 0.5 * float(residual @ weighted) + 0.5 * float(phi @ (self._precision * phi)), weighted, mean

    def _gradient(self, phi: FloatArray, weighted: FloatArray, mean: FloatArray) -> _Vector:
        # - N F(phi) W r + Lam phi, F where phi is now
        return self._precision * phi - (yield from self._information(weighted, phi, mean))


class _Likelihood(Objective):
    """N log Z - phi't + .5 phi'Lam phi, t the statistics of N records, in place of z: convex.

    Its gradient costs one inference and stands where `Objective` has W r; its value is not needed.
    """

    _max_restarts = 2

    def _is_lower(self, value: float, after: float, length: float, slope: float, weighted_slope: float) -> bool:
        # The mean of the slopes at both ends of a step is its fall per length (trapezoidal rule).
        return math.isfinite(after) and abs(weighted_slope) <= -_LARGEST_SLOPE * slope

    def _value(self, phi: FloatArray) -> _Value:
        """Zero, the gradient and the model's statistics; infinite where the engine gives up."""
        mean = yield "mean", phi
        if mean is None:
            return math.inf, phi, phi
        gradient = self._precision * phi - (self._noisy - self._total * mean)
        return (0.0 if np.isfinite(gradient).all() else math.inf), gradient, mean

    def _gradient(self, phi: FloatArray, weighted: FloatArray, mean: FloatArray) -> _Vector:
        yield from ()
        return weighted


class _RecordsLikelihood(_Likelihood):
    """The same for a fit to the records, whose minimiser may be out of reach."""

    _returns_nearest = True


def minimise_together(
    objectives: Sequence[Objective], phi: FloatArray, tolerance: float, steps: int
) -> list[tuple[FloatArray, float]]:
    """Return what `minimise` returns for each, from `phi`: they share one engine and one system."""
    return _serve(objectives[0], [one.descent(phi, tolerance, steps) for one in objectives])


def correct_together(
    objectives: Sequence[Objective],
    ends: Sequence[tuple[FloatArray, float]],
    centre: FloatArray,
    drift: FloatArray,
    tolerance: float,
    steps: int,
    *,
    of_records: bool = False,
) -> list[tuple[FloatArray, float]]:
    """Return each objective's `correction` from its end, or the end where the correction does not converge;
    of_records: the nearest that it came to, or the end where it gives up."""
    corrections = [
        one.correction(phi, centre, drift, tolerance, steps, of_records=of_records)
        for one, (phi, _) in zip(objectives, ends, strict=True)
    ]
    corrected = _serve(objectives[0], corrections)
    accepted = sys.float_info.max if of_records else tolerance
    return [new if new[1] <= accepted else end for new, end in zip(corrected, ends, strict=True)]


@np.errstate(over="ignore", invalid="ignore")  # a value that is not a number is no descent
def _serve(shared: Objective, descents: Sequence[_Descent]) -> list[tuple[FloatArray, float]]:
    """Run descents side by side, with the engine and the system of `shared`: what most of them ask for comes first, so
    that those that searched for longer fall into step again."""
    moments, system = shared.moments, shared.system
    results: list[tuple[FloatArray, float]] = [(np.empty(0), math.inf)] * len(descents)
    requests = {number: next(descent) for number, descent in enumerate(descents)}
    while requests:
        [(kind, _)] = Counter(kind for kind, _ in requests.values()).most_common(1)
        numbers = [number for number in requests if requests[number][0] == kind]
        vectors = [requests[number][1] for number in numbers]
        served = (
            moments.means(vectors)
            if kind == "mean"
            else _columns(system.weighted if kind == "weighted" else system.newton, vectors)
        )
        for number, answer in zip(numbers, served, strict=True):
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
    direction, estimate = gradient.copy(), solved.copy()
    scaled = np.empty_like(estimate)  # in place: beyond the cache a vector takes as long to allocate as to add
    weights = []
    for step, change, solved_change, product in reversed(pairs):
        weights.append(float(step @ direction) / product)
        direction -= np.multiply(weights[-1], change, out=scaled)
        estimate -= np.multiply(weights[-1], solved_change, out=scaled)
    if pairs:  # so long as the last change says, where the initial H is not the objective's (their equation 7.20)
        _, change, solved_change, product = pairs[-1]
        estimate *= product / float(change @ solved_change)
    for (step, change, _, product), weight in zip(pairs, reversed(weights), strict=True):
        estimate += np.multiply(weight - float(change @ estimate) / product, step, out=scaled)
    return estimate
