"""Orders of the axes of what a contraction makes, so that the loops of compiled kernels have long runs.

Several ways to inherit an order from the operands are tried, each improved table by table, and the cheapest by the
model of `loops` wins. The tables of cliques, and their marginals, keep the order in which a structure has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve

from dpgm_core.inference.exact.contraction import Contraction, Letters, Step
from dpgm_core.inference.exact.loops import price

__all__ = ["laid_out"]

_SMALL = 64  # cells of tables whose order matters little
_WORTH = 0.005  # of the whole: what the steps around a table must cost for its order to be looked at
# How a sum takes its axes from the larger operand, and the new ones: (larger, new, the letter summed) -> axes.
_Inherit = Callable[[Letters, Letters, frozenset[int]], Letters]


def laid_out(contraction: Contraction) -> Contraction:
    """The same contraction with other orders of the axes of what is made.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.exact.planning import planned
    >>> from dpgm_core.structure import Structure
    >>> chain = planned(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})), 2**20).contraction
    >>> [sorted(one) == sorted(two) for one, two in zip(chain.nodes, laid_out(chain).nodes)].count(False)
    0
    """
    return min((_Layout(contraction, inherit) for inherit in (_in_front, _in_place)), key=lambda one: one.total).made()


def _in_front(large: Letters, new: Letters, summed: frozenset[int]) -> Letters:
    return (*new, *[letter for letter in large if letter not in summed])


def _in_place(large: Letters, new: Letters, summed: frozenset[int]) -> Letters:
    """What is new takes the place of what was summed, so that all else stays where it was."""
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
        self._improve()
        self.total = sum(map(self._price, contraction.steps))

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

    def _improve(self) -> None:
        """Try for each table the orders of those around it."""
        nodes, worth = self.nodes, _WORTH * sum(map(self._price, self.contraction.steps))
        for step in self.contraction.steps:
            after = self.user.get(step.out)
            if after is None or self.contraction.cells(step.out) < _SMALL:
                continue
            if self._price(step) + self._price(after) < worth:
                continue
            own = nodes[step.out]
            guides = [*[nodes[node] for node in _operands(step)], nodes[after.out], self._sibling(after, step.out)]
            best, chosen = self._price(step) + self._price(after), own
            for order in _orders(own, guides):
                nodes[step.out] = order
                cost = self._price(step) + self._price(after)
                if cost < best:
                    best, chosen = cost, order
            nodes[step.out] = chosen

    def _price(self, step: Step) -> float:
        """Of a step forwards, and of the adjoint of either operand."""
        if step.right is None:
            return 0.0
        out, left, right = self.nodes[step.out], self.nodes[step.left], self.nodes[step.right]
        return self._of(out, left, right) + self._of(left, out, right) + self._of(right, out, left)

    def _of(self, r: Letters, p: Letters, q: Letters) -> float:
        return price(r, p, q, self.sizes)


def _operands(step: Step) -> tuple[int, ...]:
    return (step.left,) if step.right is None else (step.left, step.right)


def _orders(own: Letters, guides: Iterable[Letters]) -> list[Letters]:
    found: dict[Letters, None] = {}
    for guide in guides:
        shared = [letter for letter in guide if letter in own]
        more = [letter for letter in own if letter not in guide]
        found[(*more, *shared)] = None
        found[(*shared, *more)] = None
    found.pop(own, None)
    return list(found)
