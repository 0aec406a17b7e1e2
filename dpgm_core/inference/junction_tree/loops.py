"""Loop patterns of a contraction, and orders of axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from attrs import evolve

from dpgm_core.inference.junction_tree.contraction import Contraction, Letters, Step
from dpgm_core.inference.kernels.format import DOTS, ELEMENTWISE, MATRIX, PRODUCTS, STRIDED

__all__ = [
    "Arrangement",
    "Loop",
    "PEAK",
    "arrange_loops",
    "arrangement",
    "lay_out_axes",
    "loops_of",
    "packings",
    "price",
]


# --- Loops of one contraction ---------------------------------------------------------------------
# A loop is over one letter, or over several that lie side by side in each table. Which three run inside decides the
# speed: the innermost should go along cells side by side, in vectors, and be long.

#: Codes, and the strides of r, p and q, 0 where a table lacks the letters.
Loop: TypeAlias = tuple[int, int, int, int]

#: Multiply-adds a nanosecond, of long runs, as measured (AVX-512, one core).
PEAK = 20.0
# Codes of each loop, and multiply-adds, from which BLAS is faster; and how fast it is.
_BLAS_LEAST, _BLAS_WORTH, _BLAS_PEAK = 16, 2**17, 35.0
_NO_LOOP: Loop = (1, 0, 0, 0)
_LINE, _NEAR, _APART, _FAR = 8, 0.2, 0.35, 0.7  # doubles in a cache line; nanoseconds to reach one
_NUMBERS = tuple(range(128))  # numpy's tables have at most 64 axes
_SHORT = 6  # dot products of runs below this are dearer than loops of any strides
_KINDS = {(1, 1, 1): ELEMENTWISE, (1, 1, 0): PRODUCTS, (1, 0, 1): PRODUCTS, (0, 1, 1): DOTS}


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
    swap = kind == PRODUCTS and best[3] == 0  # the run must be q's
    if swap:
        best, rest = _swapped(best), [_swapped(loop) for loop in rest]
    if kind == DOTS:
        row = _taken(rest, [loop for loop in rest if loop[1] and not loop[3]])
        column = _taken(rest, [loop for loop in rest if loop[1] and (not loop[2] or row is _NO_LOOP)])
    elif kind == STRIDED:
        rest.sort(key=_reach)
        column, row = rest.pop() if rest else _NO_LOOP, rest.pop() if rest else _NO_LOOP
    else:
        # rows that all have the same runs of q are worth most
        row = _taken(rest, [loop for loop in rest if loop[1] and (kind == ELEMENTWISE or not loop[3])])
        column = _taken(rest, [loop for loop in rest if not loop[1]])
        if row is _NO_LOOP:
            row = _taken(rest, [loop for loop in rest if loop[1]])
    added_to = rest if kind in (ELEMENTWISE, PRODUCTS) else [*rest, row, column]
    clear = kind == DOTS or any(loop[0] > 1 and loop[1] == 0 for loop in added_to)
    return Arrangement(kind, (row, column, best), tuple(rest), swap, clear)


def _innermost(loops: Sequence[Loop]) -> tuple[int, Loop]:
    """The kind of the innermost loop, and which it is: the longest of those along runs, if there is one."""
    kind, best = STRIDED, _NO_LOOP
    for loop in loops:
        kind_of_loop = _KINDS.get(loop[1:], STRIDED)
        if kind_of_loop != STRIDED and (kind == STRIDED or loop[0] > best[0]):
            kind, best = kind_of_loop, loop
    if kind == STRIDED or (kind == DOTS and best[0] < _SHORT and len(loops) > 1):
        return STRIDED, min(loops, key=_strided)
    return kind, best


def _taken(rest: list[Loop], candidates: Sequence[Loop]) -> Loop:
    """The longest of those wanted, which the rest then lacks."""
    if not candidates:
        return _NO_LOOP
    longest = max(candidates, key=_length)
    rest.remove(longest)
    return longest


def _length(loop: Loop) -> int:
    return loop[0]


def _reach(loop: Loop) -> int:
    return -max(loop[1:])


def _nanoseconds(order: Arrangement) -> float:
    """Return the time of an arrangement, as measured on long and short runs."""
    (rows, *_), (terms, *_), (cells, *_) = order.inner
    if order.kind == MATRIX:
        block = 500 + rows * terms * cells / _BLAS_PEAK
    elif order.kind == STRIDED:
        block = rows * terms * cells * _strided(order.inner[2])
    elif order.kind == ELEMENTWISE or (order.kind == DOTS and cells < 8):
        block = rows * terms * (8 + cells / 4)
    else:
        many, few = divmod(rows, 4) if order.inner[0][3] == 0 else (0, rows)
        full, part = divmod(terms, 4)
        block = many * (full * (40 + 16 * cells / PEAK) + part * (20 + cells / 2)) + few * (
            full * (18 + cells / 2.5) + part * (8 + cells / 5)
        )
    return 20 + math.prod([loop[0] for loop in order.outer]) * (10 + block)


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
    if not more:
        order = _as_matrices(order) or order
    return order._replace(nanoseconds=_nanoseconds(order))


def _as_matrices(order: Arrangement) -> Arrangement | None:
    """Return the loops as products of matrices for BLAS, where their layout allows it and they are large."""
    if order.kind == PRODUCTS:
        row, term, column = order.inner
    elif order.kind == DOTS:
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
    return order._replace(kind=MATRIX, inner=(row, term, column), clear=False)


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
            moved = [_last(table, order) if table in holders else table for table in (r, p, q)]
            orders.append((moved[0], moved[1], moved[2]))
    return orders


def _last(table: Letters, order: Letters) -> Letters:
    return (*[x for x in table if x not in order], *order)


# --- Orders of axes -------------------------------------------------------------------------------
# Several ways to inherit an order from the operands are tried, each improved table by table, and the cheapest by the
# model of `loops` wins. The tables of cliques, and their marginals, keep the order in which a structure has them.

_MIN_CELLS = 64  # cells of tables whose order matters little
# Of the whole, and nanoseconds: what the steps around a table must cost for its order to be looked at.
_MIN_COST_SHARE, _MIN_COST_NS = 0.02, 3000.0
_TINY_NS = 150.0  # nanoseconds
_LOOK_NS = 3e5  # nanoseconds to look at one
_PLANNED_CALLS, _MIN_SAVING = 100, 0.1  # inferences that planning is for, and what another beginning may save of one
# How a sum takes its axes from the larger operand, and the new ones: (larger, new, the letter summed) -> axes.
_Inherit = Callable[[Letters, Letters, frozenset[int]], Letters]


def lay_out_axes(contraction: Contraction) -> Contraction:
    """Return the contraction with other orders of the axes of the tables it makes.

    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.order import plan_inference
    >>> from dpgm_core.structure import Structure
    >>> chain = plan_inference(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})), 2**20).contraction
    >>> [sorted(one) == sorted(two) for one, two in zip(chain.nodes, lay_out_axes(chain).nodes)].count(False)
    0
    """
    one, two = sorted([_Layout(contraction, inherit) for inherit in (_in_front, _in_place)], key=_forwards)
    one.improve()
    if one.worth_another():
        two.improve()
        one = min(one, two, key=_total)
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
        self.user = {node: step for step in contraction.steps for node in _operands(step)}
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
            operands = sorted(_operands(step), key=lambda node: (self.contraction.cells(node), node in self.sums))
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
            for node in _operands(step):
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
            made_of = [nodes[node] for node in _operands(step)]
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
            cost += self._of(left, out, right)
        return cost if cost >= most or step.right is None else cost + self._of(right, out, left)

    def _forwards(self, step: Step) -> float:
        return self._of(self.nodes[step.out], self.nodes[step.left], self._other(step))

    def _other(self, step: Step) -> Letters:
        """The letters of the right operand: of a sum, ones over what is summed."""
        if step.right is not None:
            return self.nodes[step.right]
        out = self.nodes[step.out]
        return tuple([letter for letter in self.nodes[step.left] if letter not in out])

    def _of(self, r: Letters, p: Letters, q: Letters) -> float:
        return price(r, p, q, self.sizes)


def _forwards(layout: _Layout) -> float:
    return layout.forwards


def _total(layout: _Layout) -> float:
    return layout.total


def _operands(step: Step) -> tuple[int, ...]:
    return (step.left,) if step.right is None else (step.left, step.right)


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
