"""Lowering: a cluster tree as a program over flat arrays."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.inference.junction_tree.contraction import NUMPY, Contraction, Letters
from dpgm_core.structure.structure import Structure

__all__ = [
    "Arrangement",
    "Buffer",
    "Call",
    "InferenceLowering",
    "Instruction",
    "Kind",
    "LINE",
    "Loop",
    "Lowering",
    "Program",
    "Sketch",
    "Space",
    "Table",
    "View",
    "bind",
    "lower",
    "view_array",
]


# --- Memory layout --------------------------------------------------------------------------------

LINE = 8  # doubles in a cache line


def is_run(letters: Letters, run: Letters) -> bool:
    """Whether `run`, which may be empty, stands in `letters` side by side and in this order.

    >>> is_run((0, 1, 2), (1, 2)), is_run((0, 1, 2), (0, 2)), is_run((0, 1, 2), ())
    (True, False, True)
    """
    if not run:
        return True
    at = letters.index(run[0])
    return letters[at : at + len(run)] == run


def cut_into_runs(order: Letters, tables: Sequence[Letters]) -> list[Letters]:
    """Cut `order` into the longest runs whose letters every table has side by side, or not at all.

    >>> cut_into_runs((0, 1, 2), [(0, 1, 2), (2, 0, 1)])
    [(0, 1), (2,)]
    """
    runs: list[Letters] = []
    for letter in order:
        if runs and all(
            (runs[-1][-1] in table) == (letter in table)
            and (letter not in table or is_run(table, (runs[-1][-1], letter)))
            for table in tables
        ):
            runs[-1] = (*runs[-1], letter)
        else:
            runs.append((letter,))
    return runs


def first_fit(uses: Mapping[int, tuple[int, int, int]]) -> tuple[dict[int, int], int]:
    """Return where each buffer starts, so that none overlaps another that is live at the same time, and the memory.

    uses: buffer -> (first use, last use, cells). Starts are multiples of a cache line.

    >>> first_fit({0: (0, 1, 8), 1: (1, 3, 8), 2: (2, 3, 5)})
    ({0: 0, 1: 8, 2: 0}, 16)
    """
    starts: dict[int, int] = {}
    live: list[tuple[int, int, int]] = []  # a heap of (last use, start, end)
    free: list[tuple[int, int]] = []  # (start, end) below `size`, ascending, no two touching
    size = 0
    for buffer, (first, last, cells) in sorted(uses.items(), key=lambda item: (item[1][0], item[0])):
        while live and live[0][0] < first:
            _release(free, *heappop(live)[1:])
        room = -(-cells // LINE) * LINE
        at = next((i for i, (low, high) in enumerate(free) if high - low >= room or high == size), None)
        low, high = (size, size) if at is None else free.pop(at)
        if high - low > room:
            insort(free, (low + room, high))
        starts[buffer] = low
        size = max(size, low + room)
        heappush(live, (last, low, low + room))
    return starts, size


def _release(free: list[tuple[int, int]], low: int, high: int) -> None:
    at = bisect_left(free, (low, high))
    if at < len(free) and free[at][0] == high:
        high = free.pop(at)[1]
    if at and free[at - 1][1] == low:
        low = free.pop(at - 1)[0]
    insort(free, (low, high))


# --- Contractions as array calls ------------------------------------------------------------------
# A step is a broadcast product or a (batched) matrix product. There are no divisions, so exact zeros are safe. Shapes,
# axis orders and memory are chosen here, once; running a program is one numpy call per instruction.

#: The arrays that buffers lie in; "retained" outlives a call, the arena is used over and over in one.
Space = Literal["potentials", "adjoints", "arena", "ones", "retained", "tangents", "turns"]
Kind = Literal["multiply", "matmul", "copy", "add", "contract", "contract more", "mask", "finish", "finish again"]
#: A function and its arguments; of numpy's the output is last.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


#: A loop of compiled kernels: its codes, and the strides of r, p and q, 0 where a table lacks the letters.
Loop: TypeAlias = tuple[int, int, int, int]


class Arrangement(NamedTuple):
    """Loops in their order, for the kernels. kind: of the innermost loop. swap: whether p and q have changed places.

    inner: three loops. clear: whether r must be set to 0 before, as it is only added to. nanoseconds: about what it
    takes, of those that are remembered.
    """

    kind: int
    inner: tuple[Loop, Loop, Loop]
    outer: tuple[Loop, ...]
    swap: bool
    clear: bool
    nanoseconds: float = math.nan


# Thousands of these are made for one structure: named tuples take a third of the time of attrs classes.
class View(NamedTuple):
    """An array over one buffer: its cells from `start`, reshaped, then transposed."""

    space: Space
    start: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]


class Instruction(NamedTuple):
    """out = multiply(*inputs), matmul(*inputs) or copy(*inputs); "add" adds its input to out. Others: see `compiled`.

    loops: those of a contraction for compiled kernels.
    """

    call: Kind
    out: View
    inputs: tuple[View, ...]
    loops: Arrangement | None = None


def view_array(view: View, spaces: Mapping[Space, FloatArray]) -> FloatArray:
    """The array that a view is."""
    space, start, shape, axes = view
    flat = spaces[space][start : start + math.prod(shape)]
    if len(axes) < 2:
        return flat.reshape(shape) if not axes else flat
    array = flat.reshape(shape)
    return array if axes == _IN_ORDER[: len(axes)] else array.transpose(axes)


_IN_ORDER = tuple(range(64))


def bind(instruction: Instruction, spaces: Mapping[Space, FloatArray]) -> Call:
    """The instruction as a call on the arrays of these spaces."""
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


# --- An inference as array calls ------------------------------------------------------------------
# With probabilities, a step is a broadcast product or a (batched) matrix product, and so is its adjoint: with
# out = sum left * right, adjoint(left) = sum adjoint(out) * right.


@frozen(kw_only=True)
class Program:
    """The instructions of each step, forwards and backwards, and the memory they need.

    values, adjoints: per node, its flat buffer (None where it has none). arena, ones, retained: doubles to
    allocate. The values and adjoints of all steps are retained on request.
    """

    forward: tuple[tuple[Instruction, ...], ...]
    backward: tuple[tuple[Instruction, ...], ...]
    values: tuple[View, ...]
    adjoints: tuple[View | None, ...]
    arena: int
    ones: int
    retained: int


def lower(contraction: Contraction, structure: Structure, *, keep: bool = False) -> Program:
    """Lower a contraction whose input nodes read and whose marginals fill the buffer layout of `structure`'s tables.

    keep: whether every value and adjoint stays readable to the end, which takes more memory.
    """
    return InferenceLowering(contraction, structure, keep=keep).program()


class InferenceLowering(Lowering):
    """The code of an inference, step by step, and the buffers it needs."""

    def __init__(self, contraction: Contraction, structure: Structure, *, keep: bool) -> None:
        super().__init__(contraction.sizes)
        self.contraction, self.keep, self.retained = contraction, keep, 0
        self.value: list[Table] = []
        self.adjoint: list[Table | None] = [None] * len(contraction.nodes)
        self.starts = [part.start for part in structure.slices]
        for node, letters in enumerate(contraction.nodes):
            if node < len(contraction.groups):
                where: tuple[Space, int] = ("potentials", self.starts[contraction.groups[node]])
                self.value.append((self.buffer(contraction.cells(node), where), letters))
            else:
                self.value.append(self.made(node))

    def made(self, node: int) -> Table:
        """A new table of a node, to be kept if all are."""
        cells = self.contraction.cells(node)
        where: tuple[Space, int] | None = None
        if self.keep:
            where, self.retained = ("retained", self.retained), self.retained + cells
        return self.buffer(cells, where), self.contraction.nodes[node]

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
                self.adjoint[step.out] = self.made(step.out)
            above = self.adjoint[step.out]
            assert above is not None
            for node, other in ((step.left, step.right), (step.right, step.left)):
                if node is not None:
                    self.into_adjoint(node, above, None if other is None else value[other], filled)
            ends.append(len(self.code))
        return self.placed(ends)

    def into_adjoint(self, node: int, above: Table, other: Table | None, filled: set[int]) -> None:
        contraction = self.contraction
        letters = contraction.nodes[node]
        add_to = None
        if node >= len(contraction.groups):
            table = self.made(node)
        else:
            table = (self.buffer(contraction.cells(node)), letters)
            group = contraction.groups[node]
            slot = (self.buffer(contraction.cells(node), ("adjoints", self.starts[group])), letters)
            if group in filled:  # tied: the group's adjoint is the sum over its cliques
                add_to = slot
            else:
                table = slot
            filled.add(group)
        self.adjoint[node] = table
        if other is None:
            self.spread(above, table)
        else:
            self.contract(above, other, table)
        if add_to is not None:
            self.add(table, add_to)

    def placed(self, ends: list[int]) -> Program:
        contraction = self.contraction
        turn = ends[len(contraction.steps) - 1] if contraction.steps else 0
        # Roots are read between the passes; their adjoints are written there.
        roots = [(self.value[root], self.adjoint[root]) for root in contraction.roots]
        parts, view, arena = self.place(
            ends,
            {value[0].number: turn for value, _ in roots},
            {above[0].number: turn - 1 for _, above in roots if above is not None},
        )

        def flat(table: Table) -> View:
            return view((table[0], (table[0].cells,), (0,)))

        return Program(
            forward=tuple(parts[: len(contraction.steps)]),
            backward=tuple(parts[len(contraction.steps) :]),
            values=tuple(flat(table) for table in self.value),
            adjoints=tuple(None if table is None else flat(table) for table in self.adjoint),
            arena=arena,
            ones=self.ones_cells,
            retained=self.retained,
        )
