"""Limited-memory quasi-Newton directions (Nocedal 1980) in a diagonal metric."""

from __future__ import annotations

from collections import deque

from dpgm_core.arrays import Array, FloatArray

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

    def descent(self, gradient: FloatArray, metric: FloatArray, free: Array | None = None) -> FloatArray:
        """Minus the modelled inverse Hessian times the gradient; metric: positive, the Hessian's diagonal up to scale.

        Two loops over the pairs; in between the metric, scaled to the last of them. free: whether each coordinate may
        move, all when None; of the Hessian the part of those alone is inverted.
        """
        pairs, direction = list(self._pairs), -gradient
        if free is not None and not free.all():
            pairs = [(step * free, change * free, float(step @ (change * free))) for step, change, _ in pairs]
            pairs = [pair for pair in pairs if pair[2] > 0.0]
            direction = direction * free
        shares = []
        for step, change, product in reversed(pairs):
            shares.append(float(step @ direction) / product)
            direction = direction - shares[-1] * change
        direction = direction / metric
        if pairs:
            _, change, product = pairs[-1]
            direction = direction * (product / float(change @ (change / metric)))
        for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
            direction = direction + (share - float(change @ direction) / product) * step
        return direction
