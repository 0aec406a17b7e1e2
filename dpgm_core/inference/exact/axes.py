"""Orders of the axes of what a contraction makes, so that the loops of compiled kernels have long runs.

Several ways to inherit an order from the operands are tried, each improved table by table, and the cheapest by the
model of `loops` wins. The tables of cliques, and their marginals, keep the order in which a structure has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from attrs import evolve

from dpgm_core.inference.exact.contraction import Contraction, Letters, Step
from dpgm_core.inference.exact.loops import price

__all__ = ["lay_out_axes"]

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

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.exact.planning import plan_inference
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
