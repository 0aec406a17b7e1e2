"""Inferences for many potentials on one structure: together where the engine can, else one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from dpgm_core.arrays import Array, FloatArray
from dpgm_core.errors import StructureError
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["Batched", "infer_all", "rows_of"]


@runtime_checkable
class Batched(Protocol):
    """Engine that answers for many potentials in less than one call after another."""

    def infer_many(self, potentials: Array, *, total: float = 1.0) -> list[Beliefs]:
        """Return what `infer` returns for each row of log-potentials (n, cells), nats; raise what `infer` raises."""
        ...


def rows_of(potentials: Array, structure: Structure) -> FloatArray:
    """Return the potentials of `infer_many` as (n, cells); raise StructureError for another shape and for non-numbers.

    >>> from dpgm_core.domain import Domain
    >>> rows_of(np.zeros((3, 2), dtype=int), Structure(Domain.from_sizes({"a": 2}), [("a",)])).dtype
    dtype('float64')
    """
    rows = np.ascontiguousarray(potentials)
    if rows.dtype.kind not in "iuf" or rows.ndim != 2 or rows.shape[1] != structure.cells:
        raise StructureError(
            f"infer_many: potentials must be numbers of shape (n, {structure.cells}), got {rows.dtype} of {rows.shape}"
        )
    return rows.astype(np.float64, copy=False)


def infer_all(engine: Engine, points: Sequence[FloatArray]) -> list[Beliefs]:
    """Return marginals of one record and log Z at each of the log-potentials, in their order.

    Parameters
    ----------
    points : sequence of arrays (cells,)
        Nats. Raises what `Engine.infer` raises.

    Examples
    --------
    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.exact.junction_tree import JunctionTree
    >>> from dpgm_core.structure import Structure
    >>> engine = JunctionTree().compile(Structure(Domain.from_sizes({"a": 2}), [("a",)]))
    >>> [one.marginals["a"].round(3).tolist() for one in infer_all(engine, [np.zeros(2), np.log([1.0, 3.0])])]
    [[0.5, 0.5], [0.25, 0.75]]
    """
    if len(points) > 1 and isinstance(engine, Batched):
        return engine.infer_many(np.array(points))
    return [engine.infer(Tables(engine.structure, point)) for point in points]
