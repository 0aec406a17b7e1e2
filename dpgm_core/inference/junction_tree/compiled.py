"""Contractions lowered for the interpreter of `dpgm_core.inference.kernels`: one kind of instruction, any strides.

Every step, forwards and backwards, is r = sum of p * q over some letters; `kernels.format` says how it is written. The
order of the loops, and of the axes of the tables that are made, decides the speed: both are chosen here. Where no order
of loops gives long runs, operands are copied to an order that does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.inference.junction_tree.contraction import Contraction, Letters, Step
from dpgm_core.inference.junction_tree.curvature import Bind, TangentLowering, TangentProgram
from dpgm_core.inference.junction_tree.lowering import (
    Arrangement,
    Call,
    InferenceLowering,
    Instruction,
    Kind,
    Loop,
    Lowering,
    Program,
    Sketch,
    Space,
    Table,
    View,
)
from dpgm_core.inference.kernels import format as layout
from dpgm_core.inference.kernels.loading import kernels, resolve_executor
from dpgm_core.structure.structure import Structure

__all__ = ["CompiledExecutor", "compiled_tangents", "flat_scratch", "flatten", "lay_out_axes"]


# --- Loops of one contraction ---------------------------------------------------------------------
# A loop is over one letter, or over several that lie side by side in each table. Which three run inside decides the
# speed: the innermost should go along cells side by side, in vectors, and be long.

#: Multiply-adds a nanosecond, of long runs, as measured (AVX-512, one core).
PEAK = 20.0
# Codes of each loop, and multiply-adds, from which BLAS may be faster; and how fast it is.
_BLAS_LEAST, _BLAS_WORTH, _BLAS_PEAK = 16, 2**17, 22.0
_NO_LOOP: Loop = (1, 0, 0, 0)
_LINE, _NEAR, _APART, _FAR = 8, 0.1, 0.15, 0.35  # doubles in a cache line; nanoseconds to reach one
_NUMBERS = tuple(range(128))  # numpy's tables have at most 64 axes
_SHORT = 6  # dot products of runs below this are dearer than loops of any strides
_KINDS = {(1, 1, 1): layout.ELEMENTWISE, (1, 1, 0): layout.PRODUCTS, (1, 0, 1): layout.PRODUCTS, (0, 1, 1): layout.DOTS}


def loops_of(r: Letters, p: Letters, q: Letters, sizes: Sequence[int]) -> list[Loop]:
    """The loops over all letters, those merged that lie side by side in each table.

    >>> loops_of((0, 1, 2), (3, 1, 2), (0, 3), [2, 3, 4, 5])
    [(2, 12, 0, 5), (12, 1, 1, 0), (5, 0, 12, 1)]
    """
    of_r, of_p, of_q = _strides(r, sizes), _strides(p, sizes), _strides(q, sizes)
    loops: list[Loop] = []
    length, in_r, in_p, in_q = 0, 0, 0, 0  # of the last loop, none at first
    for letter in dict.fromkeys(r + p):
        size, to, one, two = sizes[letter], of_r.get(letter, 0), of_p.get(letter, 0), of_q.get(letter, 0)
        if length and in_r == size * to and in_p == size * one and in_q == size * two:
            length *= size
            loops[-1] = length, to, one, two
        else:
            length = size
            loops.append((length, to, one, two))
        in_r, in_p, in_q = to, one, two
    return loops or [_NO_LOOP]


def _strides(table: Letters, sizes: Sequence[int]) -> dict[int, int]:
    stride, strides = 1, {}
    for letter in reversed(table):
        strides[letter] = stride
        stride *= sizes[letter]
    return strides


def arrange_loops(loops: Sequence[Loop]) -> Arrangement:
    """The loops in the order in which they should run.

    >>> found = arrange_loops(loops_of((0, 1, 2), (3, 1, 2), (0, 3), [2, 3, 4, 5]))
    >>> found.inner, found.outer, found.swap
    (((2, 12, 5, 0), (5, 0, 1, 12), (12, 1, 0, 1)), (), True)
    """
    kind, best = _innermost(loops)
    rest = [loop for loop in loops if loop is not best]
    swap = kind == layout.PRODUCTS and best[3] == 0  # the run must be q's
    if swap:
        best, rest = _swapped(best), [_swapped(loop) for loop in rest]
    if kind == layout.DOTS:
        row = _taken(rest, [loop for loop in rest if loop[1] and not loop[3]])
        column = _taken(rest, [loop for loop in rest if loop[1] and (not loop[2] or row is _NO_LOOP)])
    elif kind == layout.STRIDED:
        rest.sort(key=lambda loop: -max(loop[1:]))
        column, row = rest.pop() if rest else _NO_LOOP, rest.pop() if rest else _NO_LOOP
    else:
        # rows that all have the same runs of q are worth most
        row = _taken(rest, [loop for loop in rest if loop[1] and (kind == layout.ELEMENTWISE or not loop[3])])
        column = _taken(rest, [loop for loop in rest if not loop[1]])
        if row is _NO_LOOP:
            row = _taken(rest, [loop for loop in rest if loop[1]])
    added_to = [*rest, row, column] if kind == layout.STRIDED else rest  # tiles add up what they sum themselves
    clear = any(loop[0] > 1 and loop[1] == 0 for loop in added_to)
    return Arrangement(kind, (row, column, best), tuple(rest), swap, clear)


def _innermost(loops: Sequence[Loop]) -> tuple[int, Loop]:
    """The kind of the innermost loop, and which it is: the longest of those along runs, if there is one."""
    kind, best = layout.STRIDED, _NO_LOOP
    for loop in loops:
        kind_of_loop = _KINDS.get(loop[1:], layout.STRIDED)
        if kind_of_loop != layout.STRIDED and (kind == layout.STRIDED or loop[0] > best[0]):
            kind, best = kind_of_loop, loop
    if kind == layout.STRIDED or (kind == layout.DOTS and best[0] < _SHORT and len(loops) > 1):
        return layout.STRIDED, min(loops, key=_strided)
    return kind, best


def _taken(rest: list[Loop], candidates: Sequence[Loop]) -> Loop:
    """The longest of those wanted, which the rest then lacks."""
    if not candidates:
        return _NO_LOOP
    longest = max(candidates, key=itemgetter(0))
    rest.remove(longest)
    return longest


def _nanoseconds(order: Arrangement) -> float:
    """Return the time of an arrangement, of its tiles and their vectors, as measured on long and short runs."""
    row, term, (cells, *_) = order.inner
    rows, terms, vectors = row[0], term[0], -(-cells // layout.LANES)
    if order.kind == layout.MATRIX:
        block = 500 + rows * terms * cells / _BLAS_PEAK
    elif order.kind == layout.STRIDED:
        block = rows * terms * cells * _strided(order.inner[2])
    elif order.kind == layout.DOTS:
        shared = row[3] == 0 and term[2] == 0
        tiles = (-(-rows // 4) if shared else rows) * -(-terms // 4)
        block = 5 * tiles + rows * terms * (1 + vectors * (0.26 if shared and min(rows, terms) > 1 else 0.45))
    else:
        shared = order.kind == layout.PRODUCTS and row[3] == 0
        tiles = (-(-rows // 4) if shared else rows) * -(-vectors // 4)
        product = 0.8 if order.kind == layout.ELEMENTWISE else 0.25 if shared else 0.35
        block = tiles * (5 + 0.15 * terms) + rows * vectors * (0.3 + product * terms)
    return 15 + math.prod([loop[0] for loop in order.outer]) * (8 + block)


def _strided(loop: Loop) -> float:
    """Nanoseconds a cell of a run of any strides: far cells each take a cache line, short runs their beginning."""
    return 5 / loop[0] + sum([_NEAR if stride <= 1 else _FAR if stride > _LINE else _APART for stride in loop[1:]])


def _swapped(loop: Loop) -> Loop:
    return loop[0], loop[1], loop[3], loop[2]


def arrangement(r: Letters, p: Letters, q: Letters, sizes: Sequence[int], more: bool = False) -> Arrangement:
    """`arrange_loops` loops of a contraction; remembered, as most steps of a chain, tree or grid are alike.

    more: r is added to, which BLAS cannot.

    >>> arrangement((5, 4), (5, 3), (3, 4), [0, 0, 0, 2, 3, 4]) is arrangement((2, 1), (2, 0), (0, 1), [2, 3, 4])
    True
    """
    letters = dict.fromkeys(r + p)
    place = dict(zip(letters, _NUMBERS, strict=False)).__getitem__
    return _known(len(r), tuple(map(place, p)), tuple(map(place, q)), tuple([sizes[x] for x in letters]), more)


@lru_cache(maxsize=2**13)
def _known(r: int, p: Letters, q: Letters, sizes: tuple[int, ...], more: bool) -> Arrangement:
    # Letters are numbered as they come, so those of r are the first.
    order = arrange_loops(loops_of(_NUMBERS[:r], p, q, sizes))
    order = order._replace(nanoseconds=_nanoseconds(order))
    matrices = None if more else _as_matrices(order)
    if matrices is not None:
        matrices = matrices._replace(nanoseconds=_nanoseconds(matrices))
        work = math.prod([loop[0] for loop in matrices.inner])
        if work >= _least_for_blas() or matrices.nanoseconds < order.nanoseconds:
            return matrices
    return order


@lru_cache(maxsize=1)
def _least_for_blas() -> int:
    """Return the multiply-adds from which BLAS is faster: its operands stay in the cache. All, if tiles are narrow."""
    return 2**27 if resolve_executor("auto") == "numpy" or kernels("tiles").MAX_VECTORS > 1 else 0


def _as_matrices(order: Arrangement) -> Arrangement | None:
    """Return the loops as products of matrices for BLAS, where their layout allows it and they are large."""
    if order.kind == layout.PRODUCTS:
        row, term, column = order.inner
    elif order.kind == layout.DOTS:
        row, column, term = order.inner
    else:
        return None
    rows, terms, columns = row[0], term[0], column[0]
    if min(rows, terms, columns) < _BLAS_LEAST or rows * terms * columns < _BLAS_WORTH:
        return None
    by_rows = row[1] == columns and column[1] == 1
    p_lies = (row[2], term[2]) in ((terms, 1), (1, rows)) and column[2] == 0
    q_lies = (term[3], column[3]) in ((columns, 1), (1, terms)) and row[3] == 0
    if not (by_rows and p_lies and q_lies) or any(loop[1] == 0 for loop in order.outer):
        return None
    return order._replace(kind=layout.MATRIX, inner=(row, term, column), clear=False)


def price(r: Letters, p: Letters, q: Letters, sizes: Sequence[int]) -> float:
    """Nanoseconds of one contraction, about."""
    return arrangement(r, p, q, sizes).nanoseconds


def packings(r: Letters, p: Letters, q: Letters) -> list[tuple[Letters, Letters, Letters]]:
    """Other orders of the axes of r, p and q, each of which makes a run of the letters of one kind.

    >>> packings((0, 1), (1, 2), (2, 0))[0]
    ((0, 1), (2, 1), (2, 0))
    """
    inside = {*p} & {*q} & {*r}
    orders = []
    for letters in ({*p} & {*r} - inside, {*q} & {*r} - inside, {*p} & {*q} - inside, inside):
        holders = [table for table in (r, p, q) if letters and letters <= {*table}]
        for order in dict.fromkeys(tuple([x for x in table if x in letters]) for table in holders):
            moved = [
                (*[x for x in table if x not in order], *order) if table in holders else table for table in (r, p, q)
            ]
            orders.append((moved[0], moved[1], moved[2]))
    return orders


# --- Orders of axes -------------------------------------------------------------------------------
# Several ways to inherit an order from the operands are tried, each improved table by table, and the cheapest by the
# model above wins. The tables of cliques, and their marginals, keep the order in which a structure has them.

_MIN_CELLS = 64  # cells of tables whose order matters little
# Of the whole, and nanoseconds: what the steps around a table must cost for its order to be looked at.
_MIN_COST_SHARE, _MIN_COST_NS = 0.02, 3000.0
_TINY_NS = 150.0  # nanoseconds
_LOOK_NS = 3e5  # nanoseconds to look at one
_PLANNED_CALLS, _MIN_SAVING = 100, 0.1  # inferences that planning is for, and what another beginning may save of one
# How a sum takes its axes from the larger operand, and the new ones: (larger, new, the letter summed) -> axes.
_Inherit = Callable[[Letters, Letters, frozenset[int]], Letters]


def lay_out_axes(contraction: Contraction) -> Contraction:
    """Return the contraction with other orders of the axes of the tables it makes."""
    one, two = sorted([_Layout(contraction, inherit) for inherit in (_in_front, _in_place)], key=attrgetter("forwards"))
    one.improve()
    if one.worth_another():
        two.improve()
        one = min(one, two, key=attrgetter("total"))
    return one.made()


def _in_front(large: Letters, new: Letters, summed: frozenset[int]) -> Letters:
    return (*new, *[letter for letter in large if letter not in summed])


def _in_place(large: Letters, new: Letters, summed: frozenset[int]) -> Letters:
    """Put new axes where axes were summed, so that all others stay where they were."""
    at = next((large.index(letter) for letter in large if letter in summed), 0)
    return (*large[:at], *new, *[letter for letter in large[at:] if letter not in summed])


class _Layout:
    def __init__(self, contraction: Contraction, inherit: _Inherit) -> None:
        self.contraction, self.sizes = contraction, contraction.sizes
        self.nodes = list(contraction.nodes)
        self.products = {step.out for step in contraction.steps if self._is_product(step)}
        self.sums = {step.out for step in contraction.steps} - self.products
        self.user = {node: step for step in contraction.steps for node in step.operands}
        self._assign(inherit)
        self.prices: dict[int, float] = {}
        self.forwards = sum([self._forwards(step) for step in contraction.steps])

    @property
    def total(self) -> float:
        """Nanoseconds of one inference, about."""
        return sum(self.prices.values())

    def made(self) -> Contraction:
        return evolve(self.contraction, nodes=tuple(self.nodes))

    def _is_product(self, step: Step) -> bool:
        nodes = self.contraction.nodes
        return step.right is not None and len(nodes[step.out]) == len({*nodes[step.left], *nodes[step.right]})

    def _assign(self, inherit: _Inherit) -> None:
        nodes = self.nodes
        for step in self.contraction.steps:
            # A sum's order is dear to change, and it is large as a rule; products take any order.
            operands = sorted(step.operands, key=lambda node: (self.contraction.cells(node), node in self.sums))
            large = nodes[operands[-1]]
            new = tuple([x for node in operands[:-1] for x in nodes[node] if x not in large and x in nodes[step.out]])
            if step.out in self.products:
                nodes[step.out] = (*new, *large)
                if inherit is _in_front:  # the letter to be summed next first, so that all others are one run
                    first = min(nodes[step.out])
                    nodes[step.out] = (first, *[letter for letter in nodes[step.out] if letter != first])
            else:
                nodes[step.out] = inherit(large, new, frozenset(large) - frozenset(nodes[step.out]))
        for step in reversed(self.contraction.steps):
            for node in step.operands:
                guide = nodes[step.out] if step.out in self.products else self._sibling(step, node)
                if node in self.products and {*nodes[node]} <= {*guide}:
                    nodes[node] = tuple([letter for letter in guide if letter in nodes[node]])

    def _sibling(self, step: Step, node: int) -> Letters:
        return () if step.right is None else self.nodes[step.right if node == step.left else step.left]

    def worth_another(self) -> bool:
        """Whether to improve another beginning too is likely to save more than it takes."""
        return 0 < len(self._dear()) * _LOOK_NS < _PLANNED_CALLS * _MIN_SAVING * self.total

    def improve(self) -> None:
        """Try for each table that matters the orders of those around it."""
        nodes, prices = self.nodes, self.prices
        prices |= {step.out: self._price(step) for step in self.contraction.steps}
        for step, after in self._dear():
            chosen = nodes[step.out]
            made_of = [nodes[node] for node in step.operands]
            for order in _orders(chosen, made_of, nodes[after.out], self._sibling(after, step.out)):
                nodes[step.out] = order
                most = prices[step.out] + prices[after.out]
                dear, other = (step, after) if prices[step.out] > prices[after.out] else (after, step)
                first = self._price(dear, most)
                second = self._price(other, most - first) if first < most else 0.0
                if first + second < most:
                    chosen, prices[dear.out], prices[other.out] = order, first, second
            nodes[step.out] = chosen

    def _dear(self) -> list[tuple[Step, Step]]:
        """The steps that make the tables that matter, and those that use these."""
        prices, worth = self.prices, max(_MIN_COST_NS, _MIN_COST_SHARE * self.total)
        pairs = [(step, self.user[step.out]) for step in self.contraction.steps if step.out in self.user]
        return [
            (step, after)
            for step, after in pairs
            if prices[step.out] + prices[after.out] >= worth and self.contraction.cells(step.out) >= _MIN_CELLS
        ]

    def _price(self, step: Step, most: float = math.inf) -> float:
        """Return the cost of a step forwards and of the adjoints of its operands; stop above `most`."""
        cost = self._forwards(step)
        if cost < _TINY_NS:  # whatever the orders
            return 3 * cost
        out, left = self.nodes[step.out], self.nodes[step.left]
        right = self._other(step)
        if cost < most:
            cost += price(left, out, right, self.sizes)
        return cost if cost >= most or step.right is None else cost + price(right, out, left, self.sizes)

    def _forwards(self, step: Step) -> float:
        return price(self.nodes[step.out], self.nodes[step.left], self._other(step), self.sizes)

    def _other(self, step: Step) -> Letters:
        """The letters of the right operand: of a sum, ones over what is summed."""
        if step.right is not None:
            return self.nodes[step.right]
        out = self.nodes[step.out]
        return tuple([letter for letter in self.nodes[step.left] if letter not in out])


def _orders(own: Letters, made_of: Sequence[Letters], made: Letters, sibling: Letters) -> list[Letters]:
    """Orders of a table's axes as in those around it: what it is made of, what is made of it and with what.

    What two tables share may be one run at the end or at the beginning; the two cases left out hardly ever won.
    """
    orders: dict[Letters, None] = {}
    for guide in (*made_of, made, sibling):
        shared = tuple([letter for letter in guide if letter in own])
        more = tuple([letter for letter in own if letter not in guide])
        if guide is not sibling:
            orders[more + shared] = None
        if guide is not made:
            orders[shared + more] = None
    orders.pop(own, None)
    return list(orders)


# --- Flat programs -----------------------------------------------------------------------------------

_MIN_PACKING_NS = 2000.0  # nanoseconds


@frozen(kw_only=True, eq=False)
class FlatProgram:
    """Program of the interpreter. plan: by `kernels.format`. memory: doubles that a call needs.

    ones: where the memory must hold ones, (start, stop).
    """

    plan: IntArray
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


def flat_scratch(contraction: Contraction, structure: Structure) -> int:
    """Return the doubles that a call needs besides its tables."""
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


def _written(flat: _Flat, program: Program, structure: Structure, mild: float) -> FlatProgram:
    contraction, steps = flat.contraction, len(flat.contraction.steps)
    # Memory: potentials, arena, ones, scratch. Marginals are written to an array of their own.
    arena = structure.cells
    ones = arena + program.arena
    spaces: dict[Space, int] = {"potentials": 0, "adjoints": 0, "arena": arena, "ones": ones}
    sizes = _scratch(contraction, structure)
    scratch = dict(zip(sizes, accumulate(sizes.values(), initial=ones + program.ones), strict=False))

    def place(view: View | None) -> int:
        assert view is not None  # every step's output has an adjoint
        return spaces[view.space] + view.start

    values, adjoints = program.values, program.adjoints
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
    roots = [number for root in contraction.roots for number in (place(values[root]), place(adjoints[root]))]
    lengths = [len(tables), len(contraction.groups), layout.STEP * steps, len(roots), len(frees)]
    *starts, first = accumulate(lengths, initial=layout.HEAD)
    code: list[int] = []
    spans = []
    for part in (*program.forward, *program.backward):
        start = first + len(code)
        for instruction in part:
            code += encode_instruction(instruction, place)
        spans.append((start, first + len(code)))
    end = first + len(code)
    of_steps = [
        number
        for turn, step in enumerate(contraction.steps)
        for number in (
            *spans[turn],
            *spans[2 * steps - 1 - turn],
            step.left,
            -1 if step.right is None else step.right,
            place(values[step.out]),
            contraction.cells(step.out),
            place(adjoints[step.out]),
        )
    ]
    head = scratch | {
        layout.CELLS: structure.cells,
        layout.GROUPS: len(structure.groups),
        layout.INPUTS: len(contraction.groups),
        layout.STEPS: steps,
        layout.ROOTS: len(contraction.roots),
        layout.FREE: len(frees) // 2,
        layout.FORWARD: spans[0][0] if spans else end,
        layout.BACKWARD: spans[steps][0] if spans else end,
        layout.END: end,
        layout.AT_LOGS: end,
    }
    sections = (layout.TABLES, layout.AT_INPUTS, layout.AT_STEPS, layout.AT_ROOTS, layout.AT_FREE)
    head |= dict(zip(sections, starts, strict=True))
    numbers = [head.get(name, 0) for name in range(layout.HEAD)]
    summed = [{*contraction.nodes[step.left]} - {*contraction.nodes[step.out]} for step in contraction.steps]
    logs = [math.log(math.prod(contraction.sizes[letter] for letter in letters)) for letters in summed]
    whole = np.array([*numbers, *tables, *contraction.groups, *of_steps, *roots, *frees, *code], dtype=np.int64)
    return FlatProgram(
        plan=np.concatenate([whole, np.array([*logs, math.fsum(logs), mild]).view(np.int64)]),
        memory=ones + program.ones + sum(sizes.values()),
        ones=(ones, ones + program.ones),
    )


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


# --- The compiled executor ------------------------------------------------------------------------

_INFINITE = math.inf
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
        self._plan, self._cells = self._program.plan, structure.cells
        self._keeps = self._program.memory <= _POOLED
        self._pool: list[FloatArray] = []  # taken from and given back in one step each, so no lock is needed
        self._infer = kernels("contractions").infer

    def __call__(self, theta: FloatArray, total: float) -> tuple[FloatArray, float] | None:
        """(marginals of `total` records, log Z of one), None where it cannot say.

        theta: (cells,), nats. None: potentials that must be refused, or that double precision may not do.
        """
        pool = self._pool
        try:
            memory = pool.pop()
        except IndexError:
            memory = np.empty(self._program.memory)
            memory[slice(*self._program.ones)] = 1.0
        marginals = _empty(self._cells)
        log_partition = self._infer(theta, marginals, memory, self._plan, total)
        if self._keeps:
            pool.append(memory)
        # Neither NaN, of no answer, nor infinities, of Z = 0 and of potentials whose sum is beyond doubles.
        return (marginals, log_partition + self._log_free) if -_INFINITE < log_partition < _INFINITE else None

    @cached_property
    def bytes(self) -> int:
        """Memory of one call besides its result."""
        return 8 * self._program.memory

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledExecutor, self._given
