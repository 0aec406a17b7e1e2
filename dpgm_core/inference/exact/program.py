"""A contraction lowered to straight-line array calls on fixed buffers: forwards to log Z, backwards to every adjoint.

With probabilities, a step is a broadcast product or a (batched) matrix product, and so is its adjoint: with
out = sum left * right, adjoint(left) = sum adjoint(out) * right. There are no divisions, so exact zeros are safe.
All shapes, axis orders and memory are settled here, once; running the program is one numpy call per instruction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Literal

from attrs import frozen

from dpgm_core.inference.exact.contraction import BLOCK, CELL, MULTIPLY_ADD, Contraction, Letters
from dpgm_core.inference.exact.layout import cut_into_runs, first_fit, is_run
from dpgm_core.structure import Structure

__all__ = ["Instruction", "Program", "Space", "View", "lower"]

Space = Literal["potentials", "adjoints", "arena", "ones"]


@frozen
class View:
    """An array over one buffer: its cells from `start`, reshaped, then transposed."""

    space: Space
    start: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]


@frozen
class Instruction:
    """out = multiply(*inputs), matmul(*inputs) or copy(*inputs); "add" adds its input to out."""

    call: Literal["multiply", "matmul", "copy", "add"]
    out: View
    inputs: tuple[View, ...]


@frozen(kw_only=True)
class Program:
    """The instructions of each step, forwards and backwards, and the memory they need.

    values, adjoints: per node, its flat buffer (None where it has none). arena, ones: doubles to allocate.
    """

    forward: tuple[tuple[Instruction, ...], ...]
    backward: tuple[tuple[Instruction, ...], ...]
    values: tuple[View, ...]
    adjoints: tuple[View | None, ...]
    arena: int
    ones: int


@frozen
class _Buffer:
    number: int
    cells: int


# A table during lowering: its buffer and the letters of its axes in memory order.
_Table = tuple[_Buffer, Letters]
# A view during lowering: start is not known yet.
_Sketch = tuple[_Buffer, tuple[int, ...], tuple[int, ...]]


def lower(contraction: Contraction, structure: Structure) -> Program:
    """Lower a contraction whose input nodes read and whose marginals fill the buffer layout of `structure`'s tables."""
    return _Lowering(contraction, structure).program()


class _Lowering:
    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        self.contraction = contraction
        self.buffers: list[_Buffer] = []
        self.fixed: dict[int, tuple[Space, int]] = {}
        self.code: list[tuple[str, _Sketch, tuple[_Sketch, ...]]] = []
        self.ones = self.buffer(1, ("ones", 0))
        self.ones_cells = 1
        self.value: list[_Table] = []
        self.adjoint: list[_Table | None] = [None] * len(contraction.nodes)
        self.starts = [part.start for part in structure.slices]
        for node, letters in enumerate(contraction.nodes):
            where: tuple[Space, int] | None = None
            if node < len(contraction.groups):
                where = ("potentials", self.starts[contraction.groups[node]])
            self.value.append((self.buffer(contraction.cells(node), where), letters))

    def buffer(self, cells: int, where: tuple[Space, int] | None = None) -> _Buffer:
        buffer = _Buffer(len(self.buffers), cells)
        self.buffers.append(buffer)
        if where is not None:
            self.fixed[buffer.number] = where
        return buffer

    def program(self) -> Program:
        contraction, value = self.contraction, self.value
        ends = []
        for step in contraction.steps:
            if step.right is None:
                self.sum_out(value[step.left], value[step.out])
            else:
                self.contract(value[step.left], value[step.right], value[step.out])
            ends.append(len(self.code))
        filled: set[int] = set()
        for step in reversed(contraction.steps):
            if self.adjoint[step.out] is None:
                self.adjoint[step.out] = (self.buffer(contraction.cells(step.out)), contraction.nodes[step.out])
            above = self.adjoint[step.out]
            assert above is not None
            pairs = (
                [(step.left, step.right)] if step.right is None else [(step.left, step.right), (step.right, step.left)]
            )
            for node, other in pairs:
                self.into_adjoint(node, above, None if other is None else value[other], filled)
            ends.append(len(self.code))
        return self.place(ends)

    def into_adjoint(self, node: int, above: _Table, other: _Table | None, filled: set[int]) -> None:
        contraction = self.contraction
        letters = contraction.nodes[node]
        add_to = None
        table = (self.buffer(contraction.cells(node)), letters)
        if node < len(contraction.groups):
            group = contraction.groups[node]
            slot = (self.buffer(contraction.cells(node), ("adjoints", self.starts[group])), letters)
            if group in filled:  # tied: the group's adjoint is the sum over its cliques
                add_to = slot
            else:
                table = slot
            filled.add(group)
        self.adjoint[node] = table
        if other is None:
            # `above` has the same letters in the same order, without the one summed.
            shape = tuple(contraction.sizes[letter] if letter in above[1] else 1 for letter in letters)
            self.emit("copy", self.whole(table), (above[0], shape, tuple(range(len(shape)))))
        else:
            self.contract(above, other, table)
        if add_to is not None:
            self.emit("add", self.whole(add_to), self.whole(table))

    def emit(self, call: str, out: _Sketch, *inputs: _Sketch) -> None:
        self.code.append((call, out, inputs))

    def whole(self, table: _Table) -> _Sketch:
        shape = tuple(self.contraction.sizes[letter] for letter in table[1])
        return table[0], shape, tuple(range(len(shape)))

    def cells(self, letters: Iterable[int]) -> int:
        return math.prod(self.contraction.sizes[letter] for letter in letters)

    def sum_out(self, table: _Table, out: _Table) -> None:
        (letter,) = set(table[1]) - set(out[1])
        at = table[1].index(letter)
        before, size, after = self.cells(table[1][:at]), self.contraction.sizes[letter], self.cells(table[1][at + 1 :])
        self.ones_cells = max(self.ones_cells, size)
        if after == 1:
            self.emit(
                "matmul", (out[0], (before,), (0,)), (table[0], (before, size), (0, 1)), (self.ones, (size,), (0,))
            )
        elif before == 1:
            self.emit("matmul", (out[0], (after,), (0,)), (self.ones, (size,), (0,)), (table[0], (size, after), (0, 1)))
        else:
            self.emit(
                "matmul",
                (out[0], (before, after), (0, 1)),
                (self.ones, (size,), (0,)),
                (table[0], (before, size, after), (0, 1, 2)),
            )

    def contract(self, p: _Table, q: _Table, r: _Table) -> None:
        """r = sum of p * q over the letters that r lacks, all of which are in both p and q."""
        summed = [letter for letter in p[1] if letter not in r[1]]
        assert {*p[1], *q[1]} == {*summed, *r[1]} and set(summed) <= set(q[1])
        if not summed:
            self.multiply(p, q, r)
            return
        union, blocks = self.cells({*p[1], *q[1]}), self.cells({*p[1]} & {*q[1]} & {*r[1]})
        # Many tiny matrix products cost more than the whole product table, if that is no larger than an operand.
        by_table = 2 * CELL * union
        by_matmul = BLOCK * blocks + MULTIPLY_ADD * union
        if by_table < by_matmul and union <= max(p[0].cells, q[0].cells):
            table = (self.buffer(union), (*summed, *r[1]))
            self.multiply(p, q, table)
            size = self.cells(summed)
            self.ones_cells = max(self.ones_cells, size)
            rest = union // size
            self.emit("matmul", (r[0], (rest,), (0,)), (self.ones, (size,), (0,)), (table[0], (size, rest), (0, 1)))
        else:
            self.matmul(p, q, r)

    def multiply(self, p: _Table, q: _Table, r: _Table) -> None:
        runs = cut_into_runs(r[1], [p[1], q[1], r[1]])
        self.emit("multiply", *(self.by_runs(table, runs) for table in (r, p, q)))

    def matmul(self, p: _Table, q: _Table, r: _Table) -> None:
        inside = {*p[1]} & {*q[1]} & {*r[1]}
        batch = tuple(letter for letter in r[1] if letter in inside)

        def orders(one: Letters, two: Letters) -> list[Letters]:
            shared = ({*one} & {*two}) - inside
            found = {tuple(letter for letter in table if letter in shared) for table in (one, two)}
            return sorted(found)

        def price(rows: Letters, inner: Letters, columns: Letters) -> int:
            return sum(
                0 if is_run(table[1], one) and is_run(table[1], two) else table[0].cells
                for table, one, two in ((p, rows, inner), (q, inner, columns), (r, rows, columns))
            )

        rows, inner, columns = min(
            product(orders(p[1], r[1]), orders(p[1], q[1]), orders(q[1], r[1])), key=lambda choice: price(*choice)
        )
        p, q = self.as_matrix(p, batch, rows, inner), self.as_matrix(q, batch, inner, columns)
        out = r
        if not (is_run(r[1], rows) and is_run(r[1], columns)):
            out = (self.buffer(r[0].cells), batch + rows + columns)
        stack = cut_into_runs(batch, [p[1], q[1], out[1]])
        self.emit(
            "matmul",
            self.by_runs(out, [*stack, rows, columns]),
            self.by_runs(p, [*stack, rows, inner]),
            self.by_runs(q, [*stack, inner, columns]),
        )
        if out is not r:
            self.transpose(out, r)

    def as_matrix(self, table: _Table, batch: Letters, rows: Letters, columns: Letters) -> _Table:
        # numpy's matmul copies what BLAS cannot read; we copy only what has no such view, into known memory.
        if is_run(table[1], rows) and is_run(table[1], columns):
            return table
        copy = (self.buffer(table[0].cells), batch + rows + columns)
        self.transpose(table, copy)
        return copy

    def transpose(self, source: _Table, target: _Table) -> None:
        runs = cut_into_runs(target[1], [source[1], target[1]])
        self.emit("copy", self.by_runs(target, runs), self.by_runs(source, runs))

    def by_runs(self, table: _Table, runs: Sequence[Letters]) -> _Sketch:
        """The table with one axis per run, in the order of `runs`; size 1 where it has none of the letters."""
        letters = table[1]
        # Runs absent from the table have length 1 and may stand anywhere; in memory they come last.
        place = [letters.index(run[0]) if run and run[0] in letters else len(letters) for run in runs]
        memory = sorted(range(len(runs)), key=lambda i: place[i])
        shape = tuple(self.cells(runs[i]) if place[i] < len(letters) else 1 for i in memory)
        axes = tuple(memory.index(i) for i in range(len(runs)))
        return table[0], shape, axes

    def place(self, ends: Sequence[int]) -> Program:
        """Give every free buffer a place in the arena that no other live buffer has at the same time."""
        contraction = self.contraction
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for time, (_, out, inputs) in enumerate(self.code):
            for sketch in (out, *inputs):
                first.setdefault(sketch[0].number, time)
                last[sketch[0].number] = time
        turn = ends[len(contraction.steps) - 1] if contraction.steps else 0
        for root in contraction.roots:  # read between the passes; their adjoints are written there
            above = self.adjoint[root]
            assert above is not None
            last[self.value[root][0].number] = turn
            first[above[0].number] = turn - 1
        used = {
            buffer.number: (first[buffer.number], last[buffer.number], buffer.cells)
            for buffer in self.buffers
            if buffer.number in first and buffer.number not in self.fixed
        }
        placed, arena = first_fit(used)
        starts = {number: start for number, (_, start) in self.fixed.items()} | placed

        def view(sketch: _Sketch) -> View:
            number = sketch[0].number
            return View(
                self.fixed[number][0] if number in self.fixed else "arena", starts[number], sketch[1], sketch[2]
            )

        def flat(table: _Table) -> View:
            return view((table[0], (table[0].cells,), (0,)))

        code = [Instruction(call, view(out), tuple(map(view, inputs))) for call, out, inputs in self.code]  # type: ignore[arg-type]
        parts = [tuple(code[low:high]) for low, high in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
        return Program(
            forward=tuple(parts[: len(contraction.steps)]),
            backward=tuple(parts[len(contraction.steps) :]),
            values=tuple(flat(table) for table in self.value),
            adjoints=tuple(None if table is None else flat(table) for table in self.adjoint),
            arena=arena,
            ones=self.ones_cells,
        )
