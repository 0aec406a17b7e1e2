"""Lowering: sums of products of tables become single array calls on fixed buffers.

A step is a broadcast product or a (batched) matrix product. There are no divisions, so exact zeros are safe. Shapes,
axis orders and memory are settled here, once; running a program is one numpy call per instruction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.exact.contraction import Letters
from dpgm_core.inference.exact.costs import NUMPY
from dpgm_core.inference.exact.layout import cut_into_runs, first_fit, is_run
from dpgm_core.inference.exact.loops import Arrangement

__all__ = ["Buffer", "Call", "Instruction", "Lowering", "Sketch", "Space", "Table", "View", "bind", "view_array"]

#: The arrays that buffers lie in; "retained" outlives a call, the arena is used over and over in one.
Space = Literal["potentials", "adjoints", "arena", "ones", "retained", "tangents", "turns"]
Kind = Literal["multiply", "matmul", "copy", "add", "contract", "contract more", "mask", "finish", "finish again"]
#: A function and its arguments; of numpy's the output is last.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


# Thousands of these are made for one structure: named tuples take a third of the time of attrs classes.
class View(NamedTuple):
    """An array over one buffer: its cells from `start`, reshaped, then transposed."""

    space: Space
    start: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]


class Instruction(NamedTuple):
    """out = multiply(*inputs), matmul(*inputs) or copy(*inputs); "add" adds its input to out. Others: see `flat`.

    loops: those of a contraction for compiled kernels.
    """

    call: Kind
    out: View
    inputs: tuple[View, ...]
    loops: Arrangement | None = None


def view_array(view: View, spaces: Mapping[Space, FloatArray]) -> FloatArray:
    """The array that a view is.

    >>> view_array(View("arena", 1, (2, 2), (1, 0)), {"arena": np.arange(6.0)}).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    space, start, shape, axes = view
    flat = spaces[space][start : start + math.prod(shape)]
    if len(axes) < 2:
        return flat.reshape(shape) if not axes else flat
    array = flat.reshape(shape)
    return array if axes == _IN_ORDER[: len(axes)] else array.transpose(axes)


_IN_ORDER = tuple(range(64))


def bind(instruction: Instruction, spaces: Mapping[Space, FloatArray]) -> Call:
    """The instruction as a call on the arrays of these spaces.

    >>> spaces = {"arena": np.ones(4)}
    >>> function, arguments = bind(
    ...     Instruction("add", View("arena", 0, (2,), (0,)), (View("arena", 2, (2,), (0,)),)), spaces
    ... )
    >>> function(*arguments).tolist(), spaces["arena"].tolist()
    ([2.0, 2.0], [2.0, 2.0, 1.0, 1.0])
    """
    out, inputs = view_array(instruction.out, spaces), tuple(view_array(view, spaces) for view in instruction.inputs)
    if instruction.call == "copy":
        return np.copyto, (out, *inputs)
    if instruction.call == "add":
        return np.add, (out, *inputs, out)
    return (np.multiply if instruction.call == "multiply" else np.matmul), (*inputs, out)


class Buffer(NamedTuple):
    """Room for so many doubles."""

    number: int
    cells: int


#: A table during lowering: its buffer and the letters of its axes in memory order.
Table = tuple[Buffer, Letters]
#: A view during lowering: start is not known yet.
Sketch = tuple[Buffer, tuple[int, ...], tuple[int, ...]]


class Lowering:
    """Code and buffers in the making; subclasses emit the steps, then `place` gives every buffer its memory.

    sizes: labels by letter. stacked: a letter that single operands may have, better left in front. fixed: the buffers
    that have a place of their own.
    """

    def __init__(self, sizes: Sequence[int], stacked: int | None = None) -> None:
        self.sizes, self.stacked = sizes, stacked
        self.buffers: list[Buffer] = []
        self.fixed: dict[int, tuple[Space, int]] = {}
        self.code: list[tuple[Kind, Sketch, tuple[Sketch, ...]]] = []
        self.ones = self.buffer(1, ("ones", 0))
        self.ones_cells = 1

    def buffer(self, cells: int, where: tuple[Space, int] | None = None) -> Buffer:
        buffer = Buffer(len(self.buffers), cells)
        self.buffers.append(buffer)
        if where is not None:
            self.fixed[buffer.number] = where
        return buffer

    def emit(self, call: Kind, out: Sketch, *inputs: Sketch) -> None:
        self.code.append((call, out, inputs))

    def whole(self, table: Table) -> Sketch:
        shape = tuple([self.sizes[letter] for letter in table[1]])
        return table[0], shape, _IN_ORDER[: len(shape)]

    def cells(self, letters: Iterable[int]) -> int:
        return math.prod(self.sizes[letter] for letter in letters)

    def sum_out(self, table: Table, out: Table) -> None:
        (letter,) = set(table[1]) - set(out[1])
        rest = tuple([other for other in table[1] if other != letter])
        if rest != out[1]:  # a layout for other kernels may turn axes where something is summed
            turned = self.buffer(out[0].cells), rest
            self.sum_out(table, turned)
            self.transpose(turned, out)
            return
        at = table[1].index(letter)
        before, size, after = self.cells(table[1][:at]), self.sizes[letter], self.cells(table[1][at + 1 :])
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

    def add(self, table: Table, out: Table) -> None:
        """Add a table to another with the same axes."""
        self.emit("add", self.whole(out), self.whole(table))

    def spread(self, table: Table, out: Table) -> None:
        """Copy a table to each code of the letter that it lacks."""
        shared = tuple([letter for letter in out[1] if letter in table[1]])
        if shared != table[1]:
            turned = self.buffer(table[0].cells), shared
            self.transpose(table, turned)
            table = turned
        shape = tuple(self.sizes[letter] if letter in table[1] else 1 for letter in out[1])
        self.emit("copy", self.whole(out), (table[0], shape, tuple(range(len(shape)))))

    def contract(self, p: Table, q: Table, r: Table) -> None:
        """r = sum of p * q over the letters that r lacks, all of which are in both p and q."""
        # What to do depends on how the letters stand to one another: most steps of a chain, tree or grid are alike.
        letters = sorted({*p[1], *q[1]})
        rank = {letter: place for place, letter in enumerate(letters)}
        code, made, ones = _contraction(
            *(tuple([rank[letter] for letter in table[1]]) for table in (p, q, r)),
            tuple([self.sizes[letter] for letter in letters]),
            None if self.stacked is None else rank.get(self.stacked),
        )
        self.ones_cells = max(self.ones_cells, ones)
        buffers = [self.ones, p[0], q[0], r[0], *map(self.buffer, made)]
        for call, out, inputs in code:
            self.code.append((call, _over(buffers, out), tuple([_over(buffers, one) for one in inputs])))

    def contract_anew(self, p: Table, q: Table, r: Table) -> None:
        """Do what `contract` does, without its memory of similar contractions."""
        summed = [letter for letter in p[1] if letter not in r[1]]
        assert {*p[1], *q[1]} == {*summed, *r[1]} and set(summed) <= set(q[1])
        if not summed:
            self.multiply(p, q, r)
            return
        union, blocks = self.cells({*p[1], *q[1]}), self.cells({*p[1]} & {*q[1]} & {*r[1]})
        # Many tiny matrix products cost more than the whole product table, if that is no larger than an operand.
        by_table = 2 * NUMPY.cell * union
        by_matmul = NUMPY.block * blocks + NUMPY.multiply_add * union
        if by_table < by_matmul and union <= max(p[0].cells, q[0].cells):
            table = (self.buffer(union), (*summed, *r[1]))
            self.multiply(p, q, table)
            size = self.cells(summed)
            self.ones_cells = max(self.ones_cells, size)
            rest = union // size
            self.emit("matmul", (r[0], (rest,), (0,)), (self.ones, (size,), (0,)), (table[0], (size, rest), (0, 1)))
        else:
            self.matmul(p, q, r)

    def multiply(self, p: Table, q: Table, r: Table) -> None:
        runs = cut_into_runs(r[1], [p[1], q[1], r[1]])
        self.emit("multiply", *(self.by_runs(table, runs) for table in (r, p, q)))

    def matmul(self, p: Table, q: Table, r: Table) -> None:
        inside = {*p[1]} & {*q[1]} & {*r[1]}
        batch = tuple(letter for letter in r[1] if letter in inside)

        def orders(one: Letters, two: Letters) -> list[Letters]:
            shared = ({*one} & {*two}) - inside
            distinct = {tuple(letter for letter in table if letter in shared) for table in (one, two)}
            return sorted(distinct)

        # A letter that one operand lacks may also be a stack of products, with the other operand in each of them.
        choices = [(batch, *choice) for choice in product(orders(p[1], r[1]), orders(p[1], q[1]), orders(q[1], r[1]))]
        apart = self.stacked if self.stacked in r[1] and self.stacked not in batch else None
        if apart is not None:

            def without(run: Letters) -> Letters:
                return tuple(letter for letter in run if letter != apart)

            choices += [
                ((apart, *stack), without(rows), without(inner), without(columns))
                for stack, rows, inner, columns in choices
            ]

        def price(stack: Letters, rows: Letters, inner: Letters, columns: Letters) -> float:
            copied = sum(
                0 if is_run(table[1], one) and is_run(table[1], two) else table[0].cells
                for table, one, two in ((p, rows, inner), (q, inner, columns), (r, rows, columns))
            )
            return 4 * NUMPY.cell * copied + NUMPY.block * self.cells(stack)

        batch, rows, inner, columns = min(choices, key=lambda choice: price(*choice))
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

    def as_matrix(self, table: Table, batch: Letters, rows: Letters, columns: Letters) -> Table:
        # numpy's matmul copies what BLAS cannot read; we copy only what has no such view, into known memory.
        if is_run(table[1], rows) and is_run(table[1], columns):
            return table
        copy = (self.buffer(table[0].cells), (*(letter for letter in batch if letter in table[1]), *rows, *columns))
        self.transpose(table, copy)
        return copy

    def transpose(self, source: Table, target: Table) -> None:
        runs = cut_into_runs(target[1], [source[1], target[1]])
        self.emit("copy", self.by_runs(target, runs), self.by_runs(source, runs))

    def by_runs(self, table: Table, runs: Sequence[Letters]) -> Sketch:
        """The table with one axis per run, in the order of `runs`; size 1 where it has none of the letters."""
        letters = table[1]
        # Runs absent from the table have length 1 and may stand anywhere; in memory they come last.
        place = [letters.index(run[0]) if run and run[0] in letters else len(letters) for run in runs]
        memory = sorted(range(len(runs)), key=lambda i: place[i])
        shape = tuple(self.cells(runs[i]) if place[i] < len(letters) else 1 for i in memory)
        axes = tuple(memory.index(i) for i in range(len(runs)))
        return table[0], shape, axes

    def place(
        self, ends: Sequence[int], read: Mapping[int, int], written: Mapping[int, int]
    ) -> tuple[list[tuple[Instruction, ...]], Callable[[Sketch], View], int]:
        """The code cut at `ends`, what makes a view of a sketch, and the arena: every buffer without a place of its own
        gets one there that no other live buffer has at the same time.

        read, written: the number of a buffer -> when it is read last, or written first, if not by the code.
        """
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for time, (_, out, inputs) in enumerate(self.code):
            for sketch in (out, *inputs):
                first.setdefault(sketch[0].number, time)
                last[sketch[0].number] = time
        last |= read
        first |= written
        used = {
            buffer.number: (first[buffer.number], last[buffer.number], buffer.cells)
            for buffer in self.buffers
            if buffer.number in first and buffer.number not in self.fixed
        }
        placed, arena = first_fit(used)
        where: dict[int, tuple[Space, int]] = self.fixed | {
            number: ("arena", start) for number, start in placed.items()
        }

        def view(sketch: Sketch) -> View:
            space, start = where[sketch[0].number]
            return View(space, start, sketch[1], sketch[2])

        code = [Instruction(call, view(out), tuple([view(one) for one in inputs])) for call, out, inputs in self.code]
        parts = [tuple(code[low:high]) for low, high in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
        return parts, view, arena


@lru_cache(maxsize=2048)
def _contraction(
    p: Letters, q: Letters, r: Letters, sizes: tuple[int, ...], stacked: int | None
) -> tuple[list[tuple[Kind, Sketch, tuple[Sketch, ...]]], list[int], int]:
    """Code of r = sum of p * q on buffers 0 (ones), 1 (p), 2 (q), 3 (r) and others, the cells of those, and of ones."""
    scratch = Lowering(sizes, stacked)
    tables = [(scratch.buffer(scratch.cells(letters)), letters) for letters in (p, q, r)]
    scratch.contract_anew(*tables)
    return scratch.code, [buffer.cells for buffer in scratch.buffers[4:]], scratch.ones_cells


def _over(buffers: Sequence[Buffer], sketch: Sketch) -> Sketch:
    return buffers[sketch[0].number], sketch[1], sketch[2]
