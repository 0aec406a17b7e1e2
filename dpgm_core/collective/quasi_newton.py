"""Limited-memory quasi-Newton directions (Nocedal 1980) in a diagonal metric."""

from __future__ import annotations

from collections import deque

from dpgm_core.arrays import FloatArray

__all__ = ["Secants"]


class Secants:
    """The last steps and how the gradient changed along each: a model of the Hessian's inverse.

    >>> import numpy as np
    >>> secants = Secants(memory=5)
    >>> secants.add(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    >>> secants.descent(np.array([4.0, 2.0]), metric=np.array([1.0, 2.0])).tolist()
    [-1.0, -0.25]
    """

    def __init__(self, memory: int) -> None:
        self._pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """One step and the gradient's change along it; left out unless the function is convex there."""
        product = float(step @ change)
        if product > 0.0:
            self._pairs.append((step, change, product))

    def descent(self, gradient: FloatArray, metric: FloatArray) -> FloatArray:
        """Minus the modelled inverse Hessian times the gradient; metric: positive, the Hessian's diagonal up to scale.

        Two loops over the pairs; in between the metric, scaled to the last of them.
        """
        direction = -gradient
        shares = []
        for step, change, product in reversed(self._pairs):
            shares.append(float(step @ direction) / product)
            direction = direction - shares[-1] * change
        direction = direction / metric
        if self._pairs:
            _, change, product = self._pairs[-1]
            direction = direction * (product / float(change @ (change / metric)))
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            direction = direction + (share - float(change @ direction) / product) * step
        return direction
