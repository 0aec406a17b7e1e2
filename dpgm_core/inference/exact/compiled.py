"""The compiled executor: a whole inference in one call of kernels that numba made."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.compiled import format as layout
from dpgm_core.inference.compiled.loading import kernels
from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.flat import FlatProgram, flatten
from dpgm_core.structure import Structure

__all__ = ["CompiledExecutor"]

_FINE = layout.FINE
_empty = np.empty  # small models wait for each name that is looked up
_POOLED = 2**22  # memories above 32 MiB are not kept between calls


class CompiledExecutor:
    """Marginals and log Z from scaled probabilities; safe to call from several threads, which need not wait.

    Each call takes a memory for itself; those are used again, so that a call allocates nothing but its result.
    """

    def __init__(self, contraction: Contraction, structure: Structure, mild: float, log_free: float) -> None:
        self._given = (contraction, structure, mild, log_free)
        self._log_free = log_free
        self._program: FlatProgram = flatten(contraction, structure, mild)
        self._plan, self._logs, self._cells = self._program.plan, self._program.logs, structure.cells
        self._keeps = self._program.memory <= _POOLED
        self._pool: list[FloatArray] = []  # taken from and given back in one step each, so no lock is needed
        self._infer = kernels("contractions").infer

    def __call__(self, theta: FloatArray, total: float) -> tuple[FloatArray, float] | None:
        """(marginals of `total` records, log Z of one), None where it cannot say.

        theta: (cells,), nats. None: potentials that must be refused, or that double precision may not do.
        """
        try:
            memory = self._pool.pop()
        except IndexError:
            memory = self._new()
        marginals = _empty(self._cells)
        status, log_partition = self._infer(theta, marginals, memory, self._plan, self._logs, total)
        if self._keeps:
            self._pool.append(memory)
        return (marginals, log_partition + self._log_free) if status == _FINE else None

    def _new(self) -> FloatArray:
        memory = np.empty(self._program.memory)
        memory[slice(*self._program.ones)] = 1.0
        return memory

    @cached_property
    def bytes(self) -> int:
        """Memory of one call besides its result."""
        return 8 * self._program.memory

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledExecutor, self._given
