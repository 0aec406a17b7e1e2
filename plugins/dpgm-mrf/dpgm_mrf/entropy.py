"""Maximum entropy over all states of up to 16 binary attributes, given noisy means of monomials; exact, no inference.

Of all distributions the one that maximises H(P) - sum_I (E_P[z_I] - y_I)^2 / (2 v_I) is exp(sum_I x_I z_I) / Z with the
x that minimises its dual log Z(x) - x . y + sum_I v_I x_I^2 / 2: the noise of each mean is the weight of its prior.
The gradient mu(x) - y + v x takes two transforms, and so does the Hessian, the covariance of monomials plus v: it holds
mu_{I xor J} - mu_I mu_J, so that one array of means tells it all.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from dpgm_core import FloatArray, InferenceError, IntArray
from dpgm_mrf.polynomials import transform

__all__ = ["Solution", "maximum_entropy"]

#: What is added to the Hessian's diagonal at first, and beyond which no step helps any more; means have variances to 1.
_DAMPING, _MAX_DAMPING = 1e-4, 1e8
#: Monomials up to which the Hessian is written out and solved; of more, steps are found by products with it.
_MAX_SOLVED = 1024


@frozen(kw_only=True, eq=False)
class Solution:
    """coefficients: x, of all monomials, (2^p,). means: of all monomials under it, (2^p,). slope: the largest
    derivative, and trace: that at each step, probability. converged: it is below the tolerance."""

    coefficients: FloatArray
    means: FloatArray
    slope: float
    trace: tuple[float, ...]
    converged: bool


class _Point:
    """The objective at one x, with what its derivatives need."""

    def __init__(self, size: int, monomials: IntArray, means: FloatArray, variances: FloatArray, x: FloatArray) -> None:
        self._monomials, self._variances, self.x = monomials, variances, x
        self.coefficients = np.zeros(size)
        self.coefficients[monomials] = x
        logs = transform(self.coefficients)
        most = logs.max()
        weights = np.exp(logs - most)
        summed = weights.sum()
        self.probabilities = weights / summed
        self.means = transform(self.probabilities)
        self.value = float(most + np.log(summed) - x @ means + variances @ x**2 / 2)
        self.gradient = self.means[monomials] - means + variances * x

    def curved(self, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction."""
        spread = np.zeros(len(self.coefficients))
        spread[self._monomials] = direction
        at_states = transform(spread)
        moved = self.probabilities * (at_states - self.probabilities @ at_states)
        product: FloatArray = transform(moved)[self._monomials] + self._variances * direction
        return product

    def newton(self, damping: float) -> FloatArray:
        """Minus the inverse of the damped Hessian times the gradient."""
        if len(self.x) > _MAX_SOLVED:
            return self._conjugate(damping)
        own = self._monomials
        hessian = self.means[own[:, None] ^ own] - np.outer(self.means[own], self.means[own])
        hessian[np.diag_indices(len(own))] += self._variances + damping
        try:
            step: FloatArray = np.linalg.solve(hessian, -self.gradient)
        except np.linalg.LinAlgError:  # rounding; more damping follows a step that leads nowhere
            return np.zeros_like(self.x)
        return step

    def _conjugate(self, damping: float) -> FloatArray:
        """Return the step by preconditioned conjugate gradients, as near as pays."""
        scale = 1 - self.means[self._monomials] ** 2 + self._variances + damping
        step, left = np.zeros_like(self.x), -self.gradient
        ahead = direction = left / scale
        decrease = first = float(left @ ahead)
        nearness = min(0.01, float(np.abs(self.gradient).max()))
        for _ in range(2 * len(self.x) + 10):
            if decrease <= nearness**2 * first:
                break
            curved = self.curved(direction) + damping * direction
            bend = float(direction @ curved)
            if not bend > 0:
                break
            length = decrease / bend
            step, left = step + length * direction, left - length * curved
            ahead = left / scale
            decrease, before = float(left @ ahead), decrease
            direction = ahead + decrease / before * direction
        return step


def maximum_entropy(
    size: int,
    monomials: IntArray,
    means: FloatArray,
    variances: FloatArray,
    *,
    start: FloatArray | None = None,
    tolerance: float = 1e-9,
    most_steps: int = 200,
) -> Solution:
    """The distribution of most entropy whose means are `means` up to noise of `variances`, by damped Newton steps.

    size: 2^p. monomials: (m,), each once, none of them 0. means, variances: (m,); where the variance is 0 the mean is
    met exactly, if it can be. start: coefficients to begin with, (2^p,); none: the uniform distribution. Raises
    InferenceError where numbers overflow.

    >>> found = maximum_entropy(4, np.array([1, 3]), np.array([0.5, 0.2]), np.zeros(2))
    >>> found.means[[1, 3]].round(9).tolist(), found.means[2].round(9).tolist()
    ([0.5, 0.2], 0.1)
    """
    x = np.zeros(len(monomials)) if start is None else np.array(start[monomials], np.float64)
    at = _Point(size, monomials, means, variances, x)
    slopes = [_slope(at)]
    damping = _DAMPING
    while slopes[-1] > tolerance and len(slopes) <= most_steps and damping < _MAX_DAMPING:
        step = at.newton(damping)
        again = _Point(size, monomials, means, variances, at.x + step)
        # Near the end the objective falls by less than its own rounding.
        rounding = 1e-14 * (1 + abs(at.value))
        falls = float(at.gradient @ step)
        if falls < 0 and again.value <= at.value + 1e-4 * falls + rounding:
            at = again
            slopes.append(_slope(at))
            damping /= 20
        else:
            damping *= 10
    if not np.isfinite(at.value):
        raise InferenceError("maximum entropy met numbers that are too large; the means contradict each other")
    return Solution(
        coefficients=at.coefficients,
        means=at.means,
        slope=slopes[-1],
        trace=tuple(slopes),
        converged=slopes[-1] <= tolerance,
    )


def _slope(at: _Point) -> float:
    return float(np.abs(at.gradient).max(initial=0.0))
