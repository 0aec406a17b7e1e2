"""Directional derivatives of marginals."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.inference.junction_tree.contraction import Contraction, Letters
from dpgm_core.inference.junction_tree.flat import FlatCode, encode_instruction
from dpgm_core.inference.junction_tree.lowering import (
    Buffer,
    Call,
    Instruction,
    Lowering,
    Program,
    Sketch,
    Space,
    Table,
    View,
    bind,
    view_array,
)
from dpgm_core.inference.junction_tree.probability import Calibration
from dpgm_core.inference.kernels import format as layout
from dpgm_core.inference.kernels.loading import kernels
from dpgm_core.structure.structure import Structure

__all__ = [
    "Backend",
    "Bind",
    "TangentExecutor",
    "TangentLowering",
    "TangentProgram",
    "compiled_tangents",
    "numpy_tangents",
]


# --- Tangents of a program ------------------------------------------------------------------------
# Where a step is out = sum left * right, its tangent is d out = sum d left * right + sum left * d right, and that of
# its adjoint d adjoint(left) = sum d adjoint(out) * right + sum adjoint(out) * d right: the work of two inferences, on
# values and adjoints that one calibration has left behind. The root's adjoint is 1 / Z, its tangent -dZ / Z^2.
#
# Why its answer can be trusted. A value is a sum of products of non-negative numbers, so its tangent is at most C
# times the value, C the sum of the direction's largest potential in each table; likewise an adjoint's, 2 C times. What
# `probability` shows of values and adjoints therefore holds of tangents: nothing that matters under- or overflows
# while C is far below exp(100), which the caller sees to. Raised cells weigh at most LOST in all, and their tangents,
# those of what they were before, at most C times that. Only where a value is exactly 0 may its adjoint be so large
# that its tangent overflows; then the product is not finite, which the caller looks for. A calibration with masks has
# no adjoints there, and their tangents are set to 0 as well: where a value is 0, so is its tangent. Source:
# Pearlmutter (1994).

_POOLED_CELLS = 2**22  # workspaces above 32 MiB are not kept between calls


@frozen(kw_only=True)
class TangentProgram:
    """The instructions of each step, forwards, at the roots and backwards, and the memory they need.

    columns: directions at once. values, adjoints: the tangents of each step's value and of its adjoint. The tangents
    of a table of n cells, (columns, n), start at columns times its place.
    """

    columns: int
    forward: tuple[tuple[Instruction, ...], ...]
    turn: tuple[Instruction, ...]
    backward: tuple[tuple[Instruction, ...], ...]
    values: tuple[View, ...]
    adjoints: tuple[View, ...]
    arena: int
    ones: int


class TangentLowering(Lowering):
    """A program that keeps its values and adjoints, differentiated along `columns` directions at once."""

    def __init__(self, contraction: Contraction, structure: Structure, program: Program, columns: int) -> None:
        # The directions are one more letter, in front; one direction needs none.
        super().__init__((*contraction.sizes, columns), len(contraction.sizes))
        self.contraction, self.columns = contraction, columns
        self.front: Letters = (len(contraction.sizes),) if columns > 1 else ()
        self.starts = [columns * part.start for part in structure.slices]
        self.value = [self.known(node, view) for node, view in enumerate(program.values)]
        # Those of inputs are not asked for.
        steps = {step.out for step in contraction.steps}
        self.above = {
            node: self.known(node, view) for node, view in enumerate(program.adjoints) if view and node in steps
        }
        self.tangent: list[Table] = []
        for node, letters in enumerate(contraction.nodes):
            where: tuple[Space, int] | None = None
            if node < len(contraction.groups):
                where = ("tangents", self.starts[contraction.groups[node]])
            self.tangent.append((self.wide(node, where), (*self.front, *letters)))
        self.adjoint: dict[int, Table] = {}

    def known(self, node: int, view: View) -> Table:
        return self.buffer(self.contraction.cells(node), (view.space, view.start)), self.contraction.nodes[node]

    def wide(self, node: int, where: tuple[Space, int] | None = None) -> Buffer:
        return self.buffer(self.columns * self.contraction.cells(node), where)

    def program(self) -> TangentProgram:
        contraction, value, tangent = self.contraction, self.value, self.tangent
        ends = []
        for step in contraction.steps:
            out = tangent[step.out]
            if step.right is None:
                self.sum_out(tangent[step.left], out)
            else:
                self.contract(tangent[step.left], value[step.right], out)
                self.contract_into(tangent[step.right], value[step.left], out)
            ends.append(len(self.code))
        for number, root in enumerate(contraction.roots):
            self.adjoint[root] = self.wide(root), self.front
            slope = self.buffer(1, ("turns", number)), ()
            self.multiply(tangent[root], slope, self.adjoint[root])
        ends.append(len(self.code))
        filled: set[int] = set()
        for step in reversed(contraction.steps):
            self.into_adjoint(step.left, step.right, step.out, filled)
            if step.right is not None:
                self.into_adjoint(step.right, step.left, step.out, filled)
            ends.append(len(self.code))
        parts, view, arena = self.place(ends, {}, {})

        def flat(table: Table) -> View:
            sketch: Sketch = (table[0], (table[0].cells,), (0,))
            return view(sketch)

        steps = len(contraction.steps)
        return TangentProgram(
            columns=self.columns,
            forward=tuple(parts[:steps]),
            turn=parts[steps],
            backward=tuple(parts[steps + 1 :]),
            values=tuple(flat(tangent[step.out]) for step in contraction.steps),
            adjoints=tuple(flat(self.adjoint[step.out]) for step in contraction.steps),
            arena=arena,
            ones=self.ones_cells,
        )

    def contract_into(self, p: Table, q: Table, r: Table) -> None:
        """Add the sum of p * q to r."""
        more = self.buffer(r[0].cells), r[1]
        self.contract(p, q, more)
        self.add(more, r)

    def into_adjoint(self, node: int, other: int | None, out: int, filled: set[int]) -> None:
        """Bring the tangents of the adjoint of a step's output, and those of its other operand, to an operand."""
        letters = (*self.front, *self.contraction.nodes[node])
        where: tuple[Space, int] | None = None
        tied = False
        if node < len(self.contraction.groups):
            group = self.contraction.groups[node]
            where, tied = ("adjoints", self.starts[group]), group in filled
            filled.add(group)
        table = self.wide(node, where), letters
        above = self.adjoint[out]
        if other is None:
            more = (self.buffer(table[0].cells), letters) if tied else table
            self.spread(above, more)
            if tied:
                self.add(more, table)
        else:
            (self.contract_into if tied else self.contract)(above, self.value[other], table)
            self.contract_into(self.tangent[other], self.above[out], table)
        self.adjoint[node] = table


#: Makes calls of instructions, for spaces that start at these places of one memory.
Bind: TypeAlias = Callable[[Sequence[Instruction], FloatArray, Mapping[Space, int]], list[Call]]
#: Lowers, and says what makes calls of the instructions.
Backend: TypeAlias = Callable[[Contraction, Structure, Program, int], tuple[TangentProgram, Bind]]


def numpy_tangents(
    contraction: Contraction, structure: Structure, program: Program, columns: int
) -> tuple[TangentProgram, Bind]:
    """The backend of numpy: one call an instruction."""
    return TangentLowering(contraction, structure, program, columns).program(), _bound


class TangentExecutor:
    """Products of calibrations with directions, so many at once; safe to call from several threads."""

    def __init__(
        self, contraction: Contraction, structure: Structure, keeping: Program, columns: int, backend: Backend
    ) -> None:
        self._structure, self._keeping = structure, keeping
        self.columns = columns
        self._program, self._bind = backend(contraction, structure, keeping, columns)
        free = [group for node, group in enumerate(contraction.groups) if not contraction.nodes[node]]
        self._constant = [structure.slices[group] for group in free]  # tables without letters
        self._pool: list[_Workspace] = []
        self._lock = threading.Lock()

    def __call__(self, calibration: Calibration, directions: FloatArray) -> FloatArray:
        """The derivatives (m, cells) of the marginals of one record along directions (m, cells), m at most `columns`.

        The caller silences floating-point warnings, and looks whether all is finite.
        """
        with self._lock:
            work = self._pool.pop() if self._pool else None
        if work is None:
            work = _Workspace(self._structure, self._keeping, self._program, self._bind)
        product = work.product(calibration, directions)
        for part in self._constant:
            product[:, part] = 0.0
        if len(work.tangents) + len(work.retained) + self._program.arena <= _POOLED_CELLS:
            with self._lock:
                self._pool.append(work)
        return product


def _bound(instructions: Sequence[Instruction], memory: FloatArray, starts: Mapping[Space, int]) -> list[Call]:
    """numpy's calls, one an instruction."""
    spaces = {space: memory[start:] for space, start in starts.items()}
    return [bind(instruction, spaces) for instruction in instructions]


class _Workspace:
    """The buffers of one call, and the program's calls bound to views of them."""

    def __init__(self, structure: Structure, keeping: Program, program: TangentProgram, bind: Bind) -> None:
        self.columns = program.columns
        # Whose values and adjoints are here; it may be gone.
        self.loaded: Callable[[], Calibration | None] = lambda: None
        wide = program.columns * structure.cells
        sizes: dict[Space, int] = {
            "potentials": structure.cells,
            "retained": keeping.retained,
            "tangents": wide,
            "adjoints": wide,
            "turns": len(program.turn),
            "arena": program.arena,
            "ones": program.ones,
        }
        memory, starts = np.zeros(sum(sizes.values())), dict(zip(sizes, accumulate((0, *sizes.values())), strict=False))
        spaces = {space: memory[start : start + sizes[space]] for space, start in starts.items()}
        spaces["ones"][:] = 1.0
        self.potentials, self.retained, self.turns = spaces["potentials"], spaces["retained"], spaces["turns"]
        # Adjoints of tables without letters are never written by the program.
        self.tangents, self.adjoints = spaces["tangents"], spaces["adjoints"]
        self.forward, self.turn, self.backward = (
            [bind(step, memory, starts) for step in program.forward],
            bind(program.turn, memory, starts),
            [bind(step, memory, starts) for step in program.backward],
        )
        whole = [*program.forward, program.turn, *program.backward]
        self.calls = bind(tuple([instruction for step in whole for instruction in step]), memory, starts)
        self.values = [view_array(view, spaces) for view in program.values]
        self.above = [view_array(view, spaces) for view in program.adjoints]
        # The values that the calibration has left behind.
        self.known = [view_array(view, spaces) for view in keeping.values[len(keeping.values) - len(program.values) :]]
        # (columns, cells) of each table
        places = [slice(program.columns * part.start, program.columns * part.stop) for part in structure.slices]
        self.blocks = [
            (part, self.tangents[place].reshape(program.columns, -1), self.adjoints[place].reshape(program.columns, -1))
            for part, place in zip(structure.slices, places, strict=True)
        ]

    def product(self, calibration: Calibration, directions: FloatArray) -> FloatArray:
        if self.loaded() is not calibration:
            np.copyto(self.potentials, calibration.potentials)
            np.copyto(self.retained, calibration.retained)
            np.divide(-1.0, calibration.roots * calibration.roots, self.turns)
            self.loaded = weakref.ref(calibration)
        count = len(directions)
        if self.columns == 1:
            np.multiply(self.potentials, directions[0], self.tangents)
        else:
            for part, tangents, _ in self.blocks:
                np.multiply(directions[:, part], self.potentials[part], tangents[:count])
                tangents[count:] = 0.0
        if calibration.scales:
            self.rescaled(calibration)
        else:
            for function, arguments in self.calls:
                function(*arguments)
        product = directions * calibration.marginals
        if self.columns == 1:
            self.adjoints *= self.potentials
            product[0] += self.adjoints
        else:
            for part, _, adjoints in self.blocks:
                adjoints *= self.potentials[part]
                product[:, part] += adjoints[:count]
        return product

    def rescaled(self, calibration: Calibration) -> None:
        """Run the program where steps were divided by something, or masked."""
        scales = calibration.scales
        for step, tangent, scale in zip(self.forward, self.values, scales, strict=True):
            for function, arguments in step:
                function(*arguments)
            if scale != 1.0:
                tangent /= scale
        for function, arguments in self.turn:
            function(*arguments)
        for number, step in zip(reversed(range(len(scales))), self.backward, strict=True):
            above = self.above[number]
            if calibration.masked:
                above.reshape(self.columns, -1)[:, self.known[number] == 0.0] = 0.0
            if scales[number] != 1.0:
                above /= scales[number]
            for function, arguments in step:
                function(*arguments)
        if calibration.masked:
            for part, _, adjoints in self.blocks:
                adjoints[:, self.potentials[part] == 0.0] = 0.0


# --- Tangents by one kernel -----------------------------------------------------------------------


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
