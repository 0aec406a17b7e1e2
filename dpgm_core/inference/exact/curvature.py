"""Second derivatives of the log-partition: the covariance of a model's tables times any number of directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import InferenceError
from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.log_curvature import LogCurvature
from dpgm_core.inference.exact.probability import Calibration
from dpgm_core.inference.exact.program import Program
from dpgm_core.inference.exact.tangents import Backend, TangentExecutor
from dpgm_core.structure import Structure

__all__ = ["Curvature", "Walkers"]

# Directions walked at once: enough to pay for the calls, few enough for the cache. Doubles that the tangents of the
# largest table, and those of all of the structure's tables, may take.
_COLUMNS, _MAX_TABLE_DOUBLES, _MAX_STRUCTURE_DOUBLES = 64, 2**16, 2**19
_TURNED_COLUMNS, _TURNED_ROWS, _MAX_TURNED_DOUBLES = 64, 512, 2**21  # turned at once, and doubles that this may take
_MAX_EMPTY_RATIO = 4  # where fewer than one in so many of the directions of a walk are left, they go one by one
_MAX_DIRECTION = 1e8  # directions whose largest entry is beyond this, or below its inverse, are scaled


class Walkers:
    """Executors for one direction and for many, made once per engine on first use."""

    def __init__(self, contraction: Contraction, structure: Structure, keeping: Program, backend: Backend) -> None:
        self._contraction, self._structure, self._keeping = contraction, structure, keeping
        self._backend = backend
        largest = max((contraction.cells(node) for node in range(len(contraction.nodes))), default=1)
        self.many = max(1, min(_COLUMNS, _MAX_TABLE_DOUBLES // largest, _MAX_STRUCTURE_DOUBLES // structure.cells))
        self._made: dict[int, TangentExecutor] = {}

    def of(self, columns: int) -> TangentExecutor:
        """The walker of so many directions; two threads may make it twice."""
        if columns not in self._made:
            self._made[columns] = TangentExecutor(
                self._contraction, self._structure, self._keeping, columns, self._backend
            )
        return self._made[columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return Walkers, (self._contraction, self._structure, self._keeping, self._backend)


class Curvature:
    """Cov(T) of the tables T of one record at fixed potentials, as a linear map.

    calibration: one inference with its messages, None where probabilities cannot hold it. in_logarithms: makes the map
    that needs none.
    """

    def __init__(
        self,
        structure: Structure,
        walkers: Walkers,
        calibration: Calibration | None,
        in_logarithms: Callable[[], LogCurvature],
    ) -> None:
        self._structure, self._walkers, self._calibration = structure, walkers, calibration
        self._in_logarithms = in_logarithms
        self._logarithms: LogCurvature | None = None

    def __call__(self, directions: FloatArray) -> FloatArray:
        """Cov(T) V for V (cells,) or (cells, m), finite: the derivative of the marginals of one record along V.

        About the work of two inferences per direction, less for many at once. Raises InferenceError.
        """
        vectors = np.asarray(directions, dtype=np.float64)
        if vectors.ndim not in (1, 2) or vectors.shape[0] != self._structure.cells:
            raise InferenceError(
                f"curvature: directions must have shape ({self._structure.cells},) or ({self._structure.cells}, m), "
                f"got {vectors.shape}"
            )
        columns = vectors.reshape(len(vectors), math.prod(vectors.shape[1:]))
        product = np.empty(columns.shape)
        most = max(self._walkers.many, min(_TURNED_COLUMNS, _MAX_TURNED_DOUBLES // len(columns)))
        for low in range(0, columns.shape[1], most):
            part = slice(low, low + most)
            # One row per direction: what a walk takes lies together.
            rows = np.empty(columns[:, part].T.shape)
            _turn(columns[:, part], rows)
            self._walk(rows)
            _turn(rows, product[:, part])
        return product.reshape(vectors.shape)

    def _walk(self, rows: FloatArray) -> None:
        """Replace directions (m, cells) by their products."""
        low, many = 0, self._walkers.many
        while low < len(rows):
            at_once = many if (len(rows) - low) * _MAX_EMPTY_RATIO > many else 1
            part = slice(low, low + at_once)
            rows[part] = self._scaled(rows[part], at_once)
            low += at_once

    def _scaled(self, rows: FloatArray, at_once: int) -> FloatArray:
        """The products (m, cells) of directions (m, cells), which are overwritten."""
        with np.errstate(all="ignore"):
            largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        if not np.isfinite(largest).all():
            raise InferenceError("curvature: directions hold NaN or infinities; they must be finite")
        if float(largest.max()) <= _MAX_DIRECTION and float(largest.min()) >= 1 / _MAX_DIRECTION:
            return self._products(rows, at_once)
        size = np.where(largest > 0, largest, 1.0)[:, None]
        rows /= size
        return self._products(rows, at_once) * size

    def _products(self, rows: FloatArray, at_once: int) -> FloatArray:
        if self._calibration is not None:
            with np.errstate(all="ignore"):  # what is not finite is seen here
                products = self._walkers.of(at_once)(self._calibration, rows)
                # A sum is finite only if each of its terms is.
                if np.isfinite(products.sum()):
                    return products
        if self._logarithms is None:
            self._logarithms = self._in_logarithms()
        return self._logarithms(rows.T).T


def _turn(table: FloatArray, into: FloatArray) -> None:
    """into = table transposed, in blocks that the cache holds on both sides."""
    for low in range(0, table.shape[0], _TURNED_ROWS):
        for first in range(0, table.shape[1], _TURNED_ROWS):
            part, other = slice(low, low + _TURNED_ROWS), slice(first, first + _TURNED_ROWS)
            into[other, part] = table[part, other].T
