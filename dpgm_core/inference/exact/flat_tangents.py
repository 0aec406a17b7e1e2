"""Derivatives along directions for the interpreter of `dpgm_core.inference.compiled`, carried out at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.compiled import format as layout
from dpgm_core.inference.compiled.loading import kernels
from dpgm_core.inference.exact.contraction import Contraction
from dpgm_core.inference.exact.flat import FlatCode, encode_instruction
from dpgm_core.inference.exact.lowering import Call, Instruction, Space
from dpgm_core.inference.exact.program import Program
from dpgm_core.inference.exact.tangents import Bind, TangentLowering, TangentProgram
from dpgm_core.structure import Structure

__all__ = ["compiled_tangents"]


class _FlatTangents(FlatCode, TangentLowering):
    pass


def compiled_tangents(
    contraction: Contraction, structure: Structure, program: Program, columns: int
) -> tuple[TangentProgram, Bind]:
    """Lower as `numpy_tangents`, for one call of a kernel in place of many of numpy."""

    def bound(instructions: Sequence[Instruction], memory: FloatArray, starts: Mapping[Space, int]) -> list[Call]:
        code = [
            number
            for instruction in instructions
            for number in encode_instruction(instruction, lambda view: starts[view.space] + view.start)
        ]
        plan, loops = np.array(code, dtype=np.int64), np.zeros(layout.LOOPS, dtype=np.int64)
        return [(kernels("contractions").run, (memory, np.zeros(1), plan, loops, 0, len(code), False, False))]

    return _FlatTangents(contraction, structure, program, columns).program(), bound
