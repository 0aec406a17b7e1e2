"""A contraction lowered for the interpreter of `dpgm_core.inference.compiled`: one kind of instruction, any strides.

Every step, forwards and backwards, is r = sum of p * q over some letters. Which letters run in the innermost loops is
settled here, so that runs of cells lie side by side; the layout of the numbers is in `compiled.format`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.compiled import format as layout
from dpgm_core.inference.exact.contraction import Contraction, Letters, Step
from dpgm_core.inference.exact.lowering import Table
from dpgm_core.inference.exact.program import InferenceLowering
from dpgm_core.structure import Structure

__all__ = ["FlatProgram", "flatten"]

# A loop: codes, and the strides of r, p and q, 0 where a table lacks its letters.
_Loop = tuple[int, int, int, int]
_NO_LOOP: _Loop = (1, 0, 0, 0)
_SHORT = 6  # a run below this is no better than loops of any strides
_PEAK = 20.0  # multiply-adds a nanosecond
_WORTH_PACKING = 2000.0  # nanoseconds
_SMALL = 64  # cells
_SCRATCH = 256  # `compiled.exponentials.BLOCK`; importing that would import numba


@frozen(kw_only=True, eq=False)
class FlatProgram:
    """What the interpreter is given. plan: whole numbers; logs: doubles. memory: doubles that a call needs.

    ones: where the memory must hold so many ones, (start, stop).
    """

    plan: IntArray
    logs: FloatArray
    memory: int
    ones: tuple[int, int]


def flatten(contraction: Contraction, structure: Structure, mild: float) -> FlatProgram:
    """Lower a contraction whose inputs and marginals have the buffer layout of `structure`'s tables.

    mild: tables of potentials within +-mild nats are exponentiated as they are, others less their maximum.
    """
    return _Flat(laid_out(contraction), structure).flat(mild)


def laid_out(contraction: Contraction) -> Contraction:
    """The same contraction, the axes of what it makes in an order that gives the inner loops long runs."""
    nodes = list(contraction.nodes)
    made = {step.out: step for step in contraction.steps}

    def rank(node: int) -> tuple[int, bool, bool]:
        # What is made of a sum is large as a rule, and its order is dear to change; products take any.
        step = made.get(node)
        return contraction.cells(node), step is None or not _is_product(contraction, step), step is not None

    for step in contraction.steps:
        out = {*nodes[step.out]}
        operands = [step.left] if step.right is None else [step.left, step.right]
        operands.sort(key=rank, reverse=True)
        large, others = nodes[operands[0]], [letter for node in operands[1:] for letter in nodes[node]]
        order = [letter for letter in others if letter in out and letter not in large]
        order += [letter for letter in large if letter in out]
        if _is_product(contraction, step):
            # The letter to be summed next goes in front, so that all others are one run.
            first = min(out)
            order = [first, *(letter for letter in order if letter != first)]
        nodes[step.out] = tuple(order)
    for step in reversed(contraction.steps):
        for node in () if step.right is None else (step.left, step.right):
            if node in made and _is_product(contraction, made[node]):
                guide = nodes[step.out] if _is_product(contraction, step) else nodes[step.left + step.right - node]
                if {*nodes[node]} <= {*guide}:
                    nodes[node] = tuple(letter for letter in guide if letter in nodes[node])
    _improve(contraction, nodes)
    return evolve(contraction, nodes=tuple(nodes))


def _is_product(contraction: Contraction, step: Step) -> bool:
    return step.right is not None and {*contraction.nodes[step.out]} == {
        *contraction.nodes[step.left],
        *contraction.nodes[step.right],
    }


def _improve(contraction: Contraction, nodes: list[Letters]) -> None:
    """Try other orders of each node's axes against what its step and the one that uses it then cost."""
    user = {node: step for step in contraction.steps for node in (step.left, step.right) if node is not None}
    sizes = contraction.sizes

    def price(step: Step | None) -> float:
        if step is None or step.right is None:
            return 0.0
        left, right, out = nodes[step.left], nodes[step.right], nodes[step.out]
        return _price(out, left, right, sizes) + _price(left, out, right, sizes) + _price(right, out, left, sizes)

    for step in contraction.steps:
        after = user.get(step.out)
        if step.right is None or after is None or contraction.cells(step.out) < _SMALL:
            continue
        own = nodes[step.out]
        guides = [nodes[step.left], nodes[step.right], nodes[after.out]]
        if after.right is not None:
            guides.append(nodes[after.right if after.left == step.out else after.left])
        best, chosen = price(step) + price(after), own
        tried = {own}
        for guide in guides:
            shared = tuple(letter for letter in guide if letter in own)
            more = tuple(letter for letter in own if letter not in guide)
            for order in ((*more, *shared), (*shared, *more)):
                if order not in tried:
                    tried.add(order)
                    nodes[step.out] = order
                    cost = price(step) + price(after)
                    if cost < best:
                        best, chosen = cost, order
        nodes[step.out] = chosen


class _Flat(InferenceLowering):
    def __init__(self, contraction: Contraction, structure: Structure) -> None:
        super().__init__(contraction, structure, keep=False)
        self.structure = structure
        self.axes: list[tuple[Letters, ...]] = []

    def sum_out(self, table: Table, out: Table) -> None:
        letters = tuple(letter for letter in table[1] if letter not in out[1])
        self.ones_cells = max(self.ones_cells, self.cells(letters))
        self.contract(table, (self.ones, letters), out)

    def spread(self, table: Table, out: Table) -> None:
        letters = tuple(letter for letter in out[1] if letter not in table[1])
        self.ones_cells = max(self.ones_cells, self.cells(letters))
        self.contract(table, (self.ones, letters), out)

    def contract(self, p: Table, q: Table, r: Table) -> None:
        work = self.cells({*p[1], *q[1]})
        direct = self.price(r[1], p[1], q[1])
        if direct < _WORTH_PACKING + 2 * work / _PEAK:
            self.plain(p, q, r)
            return
        cheapest, chosen = direct, None
        for orders in _packed(r[1], p[1], q[1]):
            price = self.price(*orders) + sum(
                self.price(order, table[1], ())
                for table, order in zip((r, p, q), orders, strict=True)
                if order != table[1]
            )
            if price < cheapest:
                cheapest, chosen = price, orders
        if chosen is None:
            self.plain(p, q, r)
            return
        packed = [
            table if order == table[1] else (self.buffer(table[0].cells), order)
            for table, order in zip((r, p, q), chosen, strict=True)
        ]
        for table, copy in zip((p, q), packed[1:], strict=True):
            if copy is not table:
                self.plain(table, (self.ones, ()), copy)
        self.plain(packed[1], packed[2], packed[0])
        if packed[0] is not r:
            self.plain(packed[0], (self.ones, ()), r)

    def plain(self, p: Table, q: Table, r: Table) -> None:
        self.code.append(("contract", self.whole(r), (self.whole(p), self.whole(q))))
        self.axes.append((r[1], p[1], q[1]))

    def price(self, r: Letters, p: Letters, q: Letters) -> float:
        return _price(r, p, q, self.sizes)

    def into_adjoint(self, node: int, above: Table, other: Table | None, filled: set[int]) -> None:
        contraction, letters = self.contraction, self.contraction.nodes[node]
        table = self.buffer(contraction.cells(node)), letters
        self.adjoint[node] = table
        if other is None:
            self.spread(above, table)
        else:
            self.contract(above, other, table)
        if node >= len(contraction.groups):
            self.emit("mask", self.whole(table), self.whole(self.value[node]))
            self.axes.append(())
            return
        group = contraction.groups[node]
        # Tied: the group's marginals are sums over its cliques.
        result = (self.buffer(contraction.cells(node), ("adjoints", self.starts[group])), letters)
        self.emit(
            "finish again" if group in filled else "finish",
            self.whole(result),
            self.whole(self.value[node]),
            self.whole(table),
        )
        self.axes.append(())
        filled.add(group)

    def flat(self, mild: float) -> FlatProgram:
        program = self.program()
        structure, contraction = self.structure, self.contraction
        steps, cells = len(contraction.steps), structure.cells
        arena, ones = cells, cells + program.arena
        places = {"potentials": 0, "adjoints": 0, "arena": arena, "ones": ones}
        head = np.zeros(layout.HEAD, dtype=np.int64)
        nodes, groups = len(contraction.nodes), len(structure.groups)
        at = ones + program.ones
        for name, size in (
            (layout.LOWS, groups),
            (layout.HIGHS, groups),
            (layout.NODE_LOWS, nodes),
            (layout.NODE_HIGHS, nodes),
            (layout.SCALES, steps),
            (layout.SCRATCH, _SCRATCH),
            (layout.COUNTERS, layout.LOOPS),
        ):
            head[name] = at
            at += size
        tables = [
            number
            for part, cliques in zip(structure.slices, structure.multiplicities, strict=True)
            for number in (part.start, part.stop, cliques)
        ]
        free = [
            number
            for group, letters in dict(zip(contraction.groups, contraction.nodes, strict=False)).items()
            if not letters
            for number in (structure.slices[group].start, structure.multiplicities[group])
        ]
        values = [None if view is None else places[view.space] + view.start for view in program.values]
        adjoints = [None if view is None else places[view.space] + view.start for view in program.adjoints]
        roots = [number for root in contraction.roots for number in (values[root], adjoints[root])]
        sections = [tables, list(contraction.groups), [0] * (layout.STEP * steps), roots, free]
        starts, begin = [], layout.HEAD
        for section in sections:
            starts.append(begin)
            begin += len(section)
        instructions, spans = [], []
        axes = iter(self.axes)
        for step in (*program.forward, *program.backward):
            first = begin
            for instruction in step:
                encoded = self.encoded(
                    instruction.call,
                    next(axes),
                    [places[view.space] + view.start for view in (instruction.out, *instruction.inputs)],
                    math.prod(instruction.out.shape),
                )
                instructions.append(encoded)
                begin += len(encoded)
            spans.append((first, begin))
        for number, step in enumerate(contraction.steps):
            at_step = layout.STEP * number
            backward = spans[2 * steps - 1 - number]
            sections[2][at_step : at_step + layout.STEP] = [
                *spans[number],
                *backward,
                step.left,
                -1 if step.right is None else step.right,
                values[step.out],
                contraction.cells(step.out),
                adjoints[step.out],
            ]
        for name, number in (
            (layout.CELLS, cells),
            (layout.GROUPS, groups),
            (layout.INPUTS, len(contraction.groups)),
            (layout.STEPS, steps),
            (layout.ROOTS, len(contraction.roots)),
            (layout.FREE, len(free) // 2),
            (layout.TABLES, starts[0]),
            (layout.AT_INPUTS, starts[1]),
            (layout.AT_STEPS, starts[2]),
            (layout.AT_ROOTS, starts[3]),
            (layout.AT_FREE, starts[4]),
            (layout.FORWARD, spans[0][0] if spans else begin),
            (layout.BACKWARD, spans[steps][0] if spans else begin),
            (layout.END, begin),
        ):
            head[name] = number
        whole = [number for part in (*sections, *instructions) for number in part]
        log_sizes = [
            sum(
                math.log(self.sizes[letter])
                for letter in {*contraction.nodes[step.left]} - {*contraction.nodes[step.out]}
            )
            for step in contraction.steps
        ]
        return FlatProgram(
            plan=np.concatenate([head, np.array(whole, dtype=np.int64)]),
            logs=np.array([*log_sizes, math.fsum(log_sizes), mild]),
            memory=at,
            ones=(ones, ones + program.ones),
        )

    def encoded(self, call: str, axes: tuple[Letters, ...], places: Sequence[int], cells: int) -> list[int]:
        """One instruction as numbers."""
        if call == "mask":
            return [layout.HEADER, layout.MASK, 1, cells, places[0], places[1], places[1], 0, 0]
        if call != "contract":
            return [layout.HEADER, layout.FINISH, int(call == "finish"), cells, *places, 0, 0]
        loops = self.loops(*axes)
        kind, inner, outer, swap = _arranged(loops)
        clear = (
            kind == layout.DOTS
            or any(loop[0] > 1 and loop[1] == 0 for loop in outer)
            or (kind == layout.STRIDED and any(loop[0] > 1 and loop[1] == 0 for loop in inner[:2]))
        )
        one, two = (places[2], places[1]) if swap else (places[1], places[2])
        if swap:
            inner, outer = [_swapped(loop) for loop in inner], [_swapped(loop) for loop in outer]
        numbers = [number for loop in (*inner, *outer) for number in loop]
        assert len(outer) <= layout.LOOPS
        return [
            layout.HEADER + len(numbers),
            kind,
            int(not clear),
            cells if clear else 0,
            places[0],
            one,
            two,
            0,
            len(outer),
            *numbers,
        ]

    def loops(self, r: Letters, p: Letters, q: Letters) -> list[_Loop]:
        return _loops(r, p, q, self.sizes)


def _loops(r: Letters, p: Letters, q: Letters, sizes: Sequence[int]) -> list[_Loop]:
    """The loops over all letters, those merged that lie side by side in each table."""
    strides: list[dict[int, int]] = []
    for table in (r, p, q):
        stride, found = 1, {}
        for letter in reversed(table):
            found[letter] = stride
            stride *= sizes[letter]
        strides.append(found)
    of_r, of_p, of_q = strides
    loops: list[_Loop] = []
    for letter in (*r, *(letter for letter in p if letter not in of_r)):
        size = sizes[letter]
        loop = (size, of_r.get(letter, 0), of_p.get(letter, 0), of_q.get(letter, 0))
        if loops:
            before = loops[-1]
            if before[1] == size * loop[1] and before[2] == size * loop[2] and before[3] == size * loop[3]:
                loops[-1] = (before[0] * size, *loop[1:])
                continue
        loops.append(loop)
    return loops or [_NO_LOOP]


def _price(r: Letters, p: Letters, q: Letters, sizes: Sequence[int]) -> float:
    """Nanoseconds of one contraction, about."""
    kind, inner, outer, swap = _arranged(_loops(r, p, q, sizes))
    return _block_price(kind, [_swapped(loop) for loop in inner] if swap else inner, outer)


def _block_price(kind: int, inner: Sequence[_Loop], outer: Sequence[_Loop]) -> float:
    (rows, *_), (terms, *_), (cells, *_) = inner
    if kind == layout.STRIDED:
        block = rows * terms * (5 + 0.9 * cells)
    elif kind == layout.ELEMENTWISE:
        block = rows * terms * (8 + cells / 4)
    elif kind == layout.DOTS and cells < 8:
        block = rows * terms * (8 + cells / 5)
    else:
        many, few = divmod(rows, 4)
        full, part = divmod(terms, 4)
        if inner[0][3] != 0:
            many, few = 0, rows
        block = many * (full * (40 + 16 * cells / _PEAK) + part * (20 + cells / 2)) + few * (
            full * (18 + cells / 2.5) + part * (8 + cells / 5)
        )
    return 20 + math.prod(loop[0] for loop in outer) * (10 + block)


def _packed(r: Letters, p: Letters, q: Letters) -> list[tuple[Letters, Letters, Letters]]:
    """Orders of r, p and q that give the innermost loop a run, one list for each choice of its letters."""
    inside = {*p} & {*q} & {*r}
    classes = [inside, {*p} & {*r} - inside, {*q} & {*r} - inside, {*p} & {*q} - inside]
    found = []
    for letters in classes:
        for order in dict.fromkeys(
            tuple(x for x in table if x in letters) for table in (r, p, q) if letters and letters <= {*table}
        ):

            def last(table: Letters) -> Letters:
                return (*(x for x in table if x not in letters), *order) if letters <= {*table} else table

            found.append((last(r), last(p), last(q)))
    return found


def _swapped(loop: _Loop) -> _Loop:
    return loop[0], loop[1], loop[3], loop[2]


def _arranged(loops: list[_Loop]) -> tuple[int, list[_Loop], list[_Loop], bool]:
    """(kind, the three innermost loops, the outer ones, whether p and q change places)."""
    best = max(loops, key=lambda loop: (_run_of(loop) is not None, loop[0]))
    kind = _run_of(best)
    rest = [loop for loop in loops if loop is not best]
    if kind is None or (best[0] < _SHORT and len(rest) and kind == layout.DOTS):
        kind = layout.STRIDED
    swap = False
    if kind == layout.PRODUCTS and best[3] == 0:  # the run must be q's
        swap = True
    summed = [loop for loop in rest if loop[1] == 0]
    kept = [loop for loop in rest if loop[1] != 0]

    def taken(some: list[_Loop], wanted=lambda loop: True) -> _Loop:
        fitting = [loop for loop in some if wanted(loop)]
        if not fitting:
            return _NO_LOOP
        found = max(fitting, key=lambda loop: loop[0])
        rest.remove(found)
        some.remove(found)
        return found

    absent = 2 if swap else 3  # the table of runs, in a loop of rows that all have the same runs
    if kind == layout.DOTS:
        row = taken(kept, lambda loop: loop[3] == 0)
        column = taken(kept, lambda loop: loop[2] == 0) if row is not _NO_LOOP else taken(kept)
        inner = [row, column, best]
    elif kind == layout.PRODUCTS:
        inner = [taken(kept, lambda loop: loop[absent] == 0), taken(summed), best]
        if inner[0] is _NO_LOOP:
            inner[0] = taken(kept)
    elif kind == layout.ELEMENTWISE:
        inner = [taken(kept), taken(summed), best]
    else:
        order = sorted(rest, key=lambda loop: loop[0])
        inner = [_NO_LOOP, _NO_LOOP, best]
        for place in (1, 0):
            if order:
                inner[place] = order.pop()
                rest.remove(inner[place])
    return kind, inner, rest, swap


def _run_of(loop: _Loop) -> int | None:
    """The kind of inner loop that this one can be."""
    return {
        (1, 1, 1): layout.ELEMENTWISE,
        (1, 1, 0): layout.PRODUCTS,
        (1, 0, 1): layout.PRODUCTS,
        (0, 1, 1): layout.DOTS,
    }.get(loop[1:])
