"""Quasi-Newton descents over potentials: engines that they can follow, answers at many points, and their directions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core.errors import OptionError
from dpgm_core.inference.constraints import engine_name
from dpgm_core.inference.contract import Batched, Beliefs, Engine
from dpgm_core.structure.tables import Tables

__all__ = ["Secants", "infer_all", "steady"]


def steady(engine: Engine, learner: str) -> Engine:
    """Return the engine, for a learner that compares objectives or solves for zero gradients.

    Averages over draws jump by their Monte Carlo error where a parameter moves by any amount, so such a learner never
    ends, or ends in the wrong place.

    Raises
    ------
    OptionError
        For an engine with capability "estimate".

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.engine import JunctionTree
    >>> from dpgm_core.structure import Structure
    >>> steady(JunctionTree().compile(Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))), "mine").exact
    True
    """
    if "estimate" in engine.capabilities:
        raise OptionError(
            f"{learner} cannot learn with {engine_name(engine)}: it follows gradients to their end, and averages "
            "over draws have errors; learn with junction-tree or loopy-bp, and ask the model with this engine "
            "(Model.using, --inference)"
        )
    return engine


def infer_all(engine: Engine, points: Sequence[FloatArray]) -> list[Beliefs]:
    """Return marginals of one record and log Z at each of the log-potentials, in their order.

    Parameters
    ----------
    points : sequence of arrays (cells,)
        Nats. Raises what `Engine.infer` raises.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.engine import JunctionTree
    >>> from dpgm_core.structure import Structure
    >>> engine = JunctionTree().compile(Structure(Domain.from_sizes({"a": 2}), [("a",)]))
    >>> [one.marginals["a"].round(3).tolist() for one in infer_all(engine, [np.zeros(2), np.log([1.0, 3.0])])]
    [[0.5, 0.5], [0.25, 0.75]]
    """
    if len(points) > 1 and isinstance(engine, Batched):
        return engine.infer_many(np.array(points))
    return [engine.infer(Tables(engine.structure, point)) for point in points]


# --- Directions from the last steps: limited memory (Nocedal 1980), in a diagonal metric ----------


class Secants:
    """The last steps and how the gradient changed along each: a model of the Hessian's inverse."""

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
