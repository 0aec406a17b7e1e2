"""A contraction lowered for the interpreter of `dpgm_core.inference.kernels`: one kind of instruction, any strides.

Every step, forwards and backwards, is r = sum of p * q over some letters; the layout of the numbers is in
`compiled.format`. Where no order of loops gives long runs, operands are copied to an order that does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.junction_tree.contraction import Contraction, Letters
from dpgm_core.inference.junction_tree.loops import PEAK, Arrangement, arrangement, lay_out_axes, packings, price
from dpgm_core.inference.junction_tree.lowering import (
    InferenceLowering,
    Instruction,
    Kind,
    Lowering,
    Program,
    Sketch,
    Table,
    View,
)
from dpgm_core.inference.kernels import format as layout
from dpgm_core.structure.structure import Structure

__all__ = ["FlatCode", "FlatProgram", "encode_instruction", "flat_scratch", "flatten"]

_MIN_PACKING_NS = 2000.0  # nanoseconds


@frozen(kw_only=True, eq=False)
class FlatProgram:
    """Program of the interpreter. plan: whole numbers; logs: doubles. memory: doubles that a call needs.

    ones: where the memory must hold ones, (start, stop).
    """

    plan: IntArray
    logs: FloatArray
    memory: int
    ones: tuple[int, int]


def flatten(contraction: Contraction, structure: Structure, mild: float) -> FlatProgram:
    """Lower a contraction whose inputs and marginals have the buffer layout of `structure`'s tables.

    mild: tables of potentials within +-mild nats are exponentiated as they are, others less their maximum.
    """
    contraction = lay_out_axes(contraction)
    flat = _Flat(contraction, structure)
    return _written(flat, flat.program(), structure, mild)


class FlatCode(Lowering):
    """Emits contractions, with any strides, in place of what numpy can do."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # Of each instruction; none of those that go cell by cell.
        self.loops: list[Arrangement | None] = []

    def place(
        self, ends: Sequence[int], read: Mapping[int, int], written: Mapping[int, int]
    ) -> tuple[list[tuple[Instruction, ...]], Callable[[Sketch], View], int]:
        parts, view, arena = super().place(ends, read, written)
        loops = iter(self.loops)
        return [tuple([Instruction(*one[:3], next(loops)) for one in part]) for part in parts], view, arena

    def sum_out(self, table: Table, out: Table) -> None:
        self.contract(table, self.all_ones({*table[1]} - {*out[1]}), out)

    def spread(self, table: Table, out: Table) -> None:
        self.contract(table, self.all_ones({*out[1]} - {*table[1]}), out)

    def multiply(self, p: Table, q: Table, r: Table) -> None:
        self.contract(p, q, r)

    def add(self, table: Table, out: Table) -> None:
        self.plain(table, (self.ones, ()), out, "contract more")

    def all_ones(self, letters: Iterable[int]) -> Table:
        axes = tuple(letters)
        self.ones_cells = max(self.ones_cells, self.cells(axes))
        return self.ones, axes

    def contract(self, p: Table, q: Table, r: Table) -> None:
        self.contracted(p, q, r, "contract")

    def contract_into(self, p: Table, q: Table, r: Table) -> None:
        self.contracted(p, q, r, "contract more")

    def contracted(self, p: Table, q: Table, r: Table, call: Kind) -> None:
        orders = self.packed(r[1], p[1], q[1])
        to, one, two = (
            table if order == table[1] else (self.buffer(table[0].cells), order)
            for table, order in zip((r, p, q), orders, strict=True)
        )
        for table, copy in ((p, one), (q, two)):
            if copy is not table:
                self.plain(table, (self.ones, ()), copy)
        self.plain(one, two, to, call if to is r else "contract")
        if to is not r:
            self.plain(to, (self.ones, ()), r, call)

    def packed(self, r: Letters, p: Letters, q: Letters) -> tuple[Letters, Letters, Letters]:
        """The orders of axes in which to contract: their own, unless copies to others pay."""
        best, chosen = price(r, p, q, self.sizes), (r, p, q)
        if best < _MIN_PACKING_NS or best < _MIN_PACKING_NS + 2 * self.cells({*p, *q}) / PEAK:
            return chosen
        for orders in packings(r, p, q):
            cost = price(*orders, self.sizes)
            for one, two in zip(orders, (r, p, q), strict=True):
                if one != two and cost < best:
                    cost += price(one, two, (), self.sizes)
            if cost < best:
                best, chosen = cost, orders
        return chosen

    def plain(self, p: Table, q: Table, r: Table, call: Kind = "contract") -> None:
        self.emit(call, self.whole(r), self.whole(p), self.whole(q))
        self.loops.append(arrangement(r[1], p[1], q[1], self.sizes, call == "contract more"))


class _Flat(FlatCode, InferenceLowering):
    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        super().__init__(contraction, structure, keep=False)

    def into_adjoint(self, node: int, above: Table, other: Table | None, filled: set[int]) -> None:
        contraction, letters = self.contraction, self.contraction.nodes[node]
        table = self.buffer(contraction.cells(node)), letters
        self.adjoint[node] = table
        if other is None:
            self.spread(above, table)
        else:
            self.contract(above, other, table)
        value = self.whole(self.value[node])
        self.loops.append(None)
        if node >= len(contraction.groups):
            self.emit("mask", self.whole(table), value)
            return
        group = contraction.groups[node]
        # Tied: the group's marginals are sums over its cliques.
        result = (self.buffer(contraction.cells(node), ("adjoints", self.starts[group])), letters)
        self.emit("finish again" if group in filled else "finish", self.whole(result), value, self.whole(table))
        filled.add(group)


@frozen(kw_only=True)
class _Memory:
    """Places among the doubles of a call: spaces by name, scratch by its place in the head."""

    spaces: dict[str, int]
    scratch: dict[int, int] = field(factory=dict)
    size: int

    def place(self, view: View) -> int:
        return self.spaces[view.space] + view.start


def flat_scratch(contraction: Contraction, structure: Structure) -> int:
    """Doubles that a call needs besides its tables.

    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.order import plan_inference
    >>> pair = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")])
    >>> flat_scratch(plan_inference(pair, 2**20).contraction, pair)
    138
    """
    return sum(_scratch(contraction, structure).values())


def _scratch(contraction: Contraction, structure: Structure) -> dict[int, int]:
    groups, nodes = len(structure.groups), len(contraction.nodes)
    return {
        layout.LOWS: groups,
        layout.HIGHS: groups,
        layout.NODE_LOWS: nodes,
        layout.NODE_HIGHS: nodes,
        layout.SCALES: len(contraction.steps),
        layout.COUNTERS: layout.LOOPS,
    }


def _memory(program: Program, contraction: Contraction, structure: Structure) -> _Memory:
    arena = structure.cells
    ones = arena + program.arena
    at, scratch = ones + program.ones, {}
    for name, size in _scratch(contraction, structure).items():
        scratch[name] = at
        at += size
    # Marginals are written to an array of their own.
    return _Memory(spaces={"potentials": 0, "adjoints": 0, "arena": arena, "ones": ones}, scratch=scratch, size=at)


def _written(flat: _Flat, program: Program, structure: Structure, mild: float) -> FlatProgram:
    contraction = flat.contraction
    memory, steps = _memory(program, contraction, structure), len(contraction.steps)
    tables = [
        number
        for part, cliques in zip(structure.slices, structure.multiplicities, strict=True)
        for number in (part.start, part.stop, cliques)
    ]
    free = [group for node, group in enumerate(contraction.groups) if not contraction.nodes[node]]
    frees = [
        number
        for group in dict.fromkeys(free)
        for number in (structure.slices[group].start, structure.multiplicities[group])
    ]
    roots = [number for root in contraction.roots for number in _places(memory, program, root)]
    sizes = [len(tables), len(contraction.groups), layout.STEP * steps, len(roots), len(frees)]
    starts = [layout.HEAD + sum(sizes[:number]) for number in range(len(sizes) + 1)]
    code: list[int] = []
    spans = []
    for part in (*program.forward, *program.backward):
        first = starts[-1] + len(code)
        for instruction in part:
            code += encode_instruction(instruction, memory.place)
        spans.append((first, starts[-1] + len(code)))
    end = starts[-1] + len(code)
    of_steps = [
        number
        for turn, step in enumerate(contraction.steps)
        for number in (
            *spans[turn],
            *spans[2 * steps - 1 - turn],
            step.left,
            -1 if step.right is None else step.right,
            _places(memory, program, step.out)[0],
            contraction.cells(step.out),
            _places(memory, program, step.out)[1],
        )
    ]
    head = dict(
        zip((layout.TABLES, layout.AT_INPUTS, layout.AT_STEPS, layout.AT_ROOTS, layout.AT_FREE), starts, strict=False)
    )
    head |= memory.scratch | {
        layout.CELLS: structure.cells,
        layout.GROUPS: len(structure.groups),
        layout.INPUTS: len(contraction.groups),
        layout.STEPS: steps,
        layout.ROOTS: len(contraction.roots),
        layout.FREE: len(frees) // 2,
        layout.FORWARD: spans[0][0] if spans else end,
        layout.BACKWARD: spans[steps][0] if spans else end,
        layout.END: end,
    }
    numbers = [head.get(name, 0) for name in range(layout.HEAD)]
    summed = [
        math.prod(
            contraction.sizes[letter] for letter in {*contraction.nodes[step.left]} - {*contraction.nodes[step.out]}
        )
        for step in contraction.steps
    ]
    logs = [math.log(codes) for codes in summed]
    return FlatProgram(
        plan=np.array([*numbers, *tables, *contraction.groups, *of_steps, *roots, *frees, *code], dtype=np.int64),
        logs=np.array([*logs, math.fsum(logs), mild]),
        memory=memory.size,
        ones=(memory.spaces["ones"], memory.spaces["ones"] + program.ones),
    )


def _places(memory: _Memory, program: Program, node: int) -> tuple[int, int]:
    """Return where the value and the adjoint of a step's output lie."""
    adjoint = program.adjoints[node]
    assert adjoint is not None  # every step's output has one
    return memory.place(program.values[node]), memory.place(adjoint)


def encode_instruction(instruction: Instruction, place: Callable[[View], int]) -> list[int]:
    """One instruction as numbers, for tables that lie where `place` says."""
    r, *others = map(place, (instruction.out, *instruction.inputs))
    cells, loops = math.prod(instruction.out.shape), instruction.loops
    if loops is None:
        mask = instruction.call == "mask"
        fresh = instruction.call != "finish again"
        kind = layout.MASK if mask else layout.FINISH
        return [layout.HEADER, kind, int(fresh), cells, r, others[0], others[-1], 0]
    more = instruction.call == "contract more"
    assert len(loops.outer) <= layout.LOOPS
    if loops.swap:
        others.reverse()
    numbers = [number for loop in (*loops.inner, *loops.outer) for number in loop]
    length, clear = layout.HEADER + len(numbers), cells if loops.clear and not more else 0
    return [length, loops.kind, int(not (loops.clear or more)), clear, r, *others, len(loops.outer), *numbers]
