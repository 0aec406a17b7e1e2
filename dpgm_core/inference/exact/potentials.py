"""Checks of potentials, and their preparation for an executor of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.errors import InferenceError, StructureError
from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.probability import REACH
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["Potentials", "Ready", "refuse_infinite"]

_IMPOSSIBLE = (
    "inference: every record has probability 0: what is given, or the zeros (-inf) of the model, rule all of them out"
)
_FLOAT = np.dtype(np.float64)
_MILD = 30.0  # potentials within +-30 nats are exponentiated as they are; others less the maximum of their table


class Ready(NamedTuple):
    """Tables' probabilities: what writes them, bounds of their logarithms, and what they were divided by.

    fill: raises those below exp(-REACH), but zeros, to that: see `probability`. lows: before that.
    above: nats taken from each cell, None for nothing; shift: what that, and attributes in no clique, add to log Z.
    """

    fill: Callable[[FloatArray], None]
    lows: list[float]
    highs: list[float]
    zeros: bool
    shift: float
    above: FloatArray | None


class Potentials:
    """Checks and preparation of potentials for one structure and contraction; no state between calls.

    mild: tables within so many nats are exponentiated as they are. log_free: what attributes in no clique add to log Z.
    """

    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        self._structure = structure
        self._starts = np.array([part.start for part in structure.slices])
        self._sizes = np.asarray(structure.sizes)
        self._multiplicities = np.asarray(structure.multiplicities, dtype=np.float64)
        # A table without letters stands aside of the program as the constant 1, so it must be shifted to 0.
        self.mild = _MILD if all(contraction.nodes[: len(contraction.groups)]) else 0.0
        in_no_clique = [letter for letter, bucket in enumerate(contraction.buckets) if not bucket]
        self.log_free = math.fsum(math.log(contraction.sizes[letter]) for letter in in_no_clique)

    def fitting(self, potentials: Tables) -> FloatArray:
        """The potentials as float64; raises StructureError for another structure's."""
        if potentials.structure is not self._structure and potentials.structure != self._structure:
            raise StructureError(f"potentials over {potentials.structure} do not fit an engine for {self._structure}")
        values = potentials.values
        return values if values.dtype is _FLOAT else values.astype(np.float64)

    def checked(self, potentials: Tables) -> tuple[FloatArray, FloatArray]:
        """The potentials as float64 and the maximum of each table.

        Raises StructureError for another structure's, and InferenceError for NaN or +inf and where a whole table is
        -inf.
        """
        theta = self.fitting(potentials)
        top = np.maximum.reduceat(theta, self._starts)
        if not np.isfinite(top).all():
            if (top == -np.inf).any() and not (np.isnan(top).any() or (top == np.inf).any()):
                raise InferenceError(_IMPOSSIBLE)
            bad = next(name for name, part in potentials.items() if np.isnan(part).any() or (part == np.inf).any())
            raise InferenceError(f"inference: the potentials of {bad!r} hold NaN or +inf; they must be below infinity")
        return theta, top

    def ready(self, theta: FloatArray, top: FloatArray) -> Ready:
        """Return the executor's input for potentials of these maxima."""
        low = np.minimum.reduceat(theta, self._starts)
        zeros = not np.isfinite(low).all()
        if zeros:
            low = np.minimum.reduceat(np.where(theta == -np.inf, np.inf, theta), self._starts)
        shift, above = self.log_free, None
        if max(float(top.max()), -float(low.min())) > self.mild:
            shift += float(top @ self._multiplicities)
            above = np.repeat(top, self._sizes)
            low, top = low - top, np.zeros_like(top)

        raised = above is not None and float(low.min()) < -REACH

        def fill(out: FloatArray) -> None:
            logarithms = theta if above is None else np.subtract(theta, above, out)
            if raised:
                np.maximum(logarithms, -REACH, out=out, where=logarithms > -np.inf)
            np.exp(logarithms, out)

        return Ready(fill, low.tolist(), top.tolist(), zeros, shift, above)


def refuse_infinite(value: float) -> None:
    """Raise InferenceError for a log-partition of no record, or of potentials beyond doubles."""
    if value == -math.inf:
        raise InferenceError(_IMPOSSIBLE)
    if not math.isfinite(value):
        raise InferenceError("inference: the potentials are too large for double precision; rescale them")
