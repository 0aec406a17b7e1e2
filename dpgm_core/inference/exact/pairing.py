"""Pairing of a bucket's tables: a binary tree of products of least predicted time.

A table's scope is a set of attributes as bits, see `structure.bitgraph`: what a bucket costs depends on scopes alone,
and many elimination orders share buckets.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

from attrs import frozen

from dpgm_core.inference.exact.costs import CostModel
from dpgm_core.structure.bitgraph import places

__all__ = ["Pairing", "Pairings", "Tree"]

EXHAUSTIVE = 5  # a bucket of at most this many tables is paired optimally under the model

#: A binary tree over the tables of a bucket, by number.
Tree = int | tuple["Tree", "Tree"]
# A tree in the making: nanoseconds, how, the scope of what it makes and the cells of all that it makes.
_Part = tuple[float, Tree, int, int]


@frozen
class Pairing:
    """tree: over the numbers of the tables. nanoseconds: predicted, adjoints included. made: cells of the tables made
    on the way, without the last."""

    tree: Tree
    nanoseconds: float
    made: int


class Cells(dict[int, int]):
    """Scope -> cells of a table over it; remembered."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = sizes

    def __missing__(self, scope: int) -> int:
        cells = self[scope] = math.prod([self.sizes[place] for place in places(scope)])
        return cells


class Pairings:
    """The pairings of buckets over attributes of these sizes, each found once.

    >>> from dpgm_core.inference.exact.costs import NUMPY
    >>> Pairings((2, 2, 9), NUMPY).of(0, (0b011, 0b101, 0b001)).tree
    ((2, 0), 1)
    """

    def __init__(self, sizes: Sequence[int], model: CostModel) -> None:
        self.cells, self.model = Cells(sizes), model
        self._known: dict[tuple[int, tuple[int, ...]], Pairing] = {}

    def of(self, place: int, scopes: tuple[int, ...]) -> Pairing:
        """Return the pairing of a bucket: tables with these scopes are multiplied, attribute `place` is summed out."""
        pairing = self._known.get((place, scopes))
        if pairing is None:
            pairing = self._known[place, scopes] = self._find_pairing(1 << place, scopes)
        return pairing

    def _find_pairing(self, bit: int, scopes: Sequence[int]) -> Pairing:
        if len(scopes) == 1:
            return Pairing(0, self.model.sum_out(self.cells[scopes[0]]), 0)
        parts: list[_Part] = [(0.0, number, scope, 0) for number, scope in enumerate(scopes)]
        if len(parts) > EXHAUSTIVE:
            parts = self._few(parts)
        nanoseconds, tree, scope, made = self._cheapest(bit, parts)
        return Pairing(tree, nanoseconds, made - self.cells[scope])

    def _joined(self, one: _Part, two: _Part, out: int) -> _Part:
        cells, p, q = self.cells, one[2], two[2]
        cost = self.model.product(cells[p], cells[q], cells[out], cells[p | q], cells[p & q & out])
        return one[0] + two[0] + cost, (one[1], two[1]), out, one[3] + two[3] + cells[out]

    def _few(self, parts: Sequence[_Part]) -> list[_Part]:
        """Greedily down to at most EXHAUSTIVE: tables over the same attributes first, one pass each whatever comes
        after, then always the smallest with what makes the smallest table of it."""
        cells = self.cells
        same: dict[int, list[_Part]] = {}
        for part in parts:
            same.setdefault(part[2], []).append(part)
        left = sorted(map(self._balanced, same.values()), key=lambda part: cells[part[2]])
        while len(left) > EXHAUSTIVE:
            first = left.pop(0)
            mate = left.pop(min(range(len(left)), key=lambda i: cells[first[2] | left[i][2]]))
            insort(left, self._joined(first, mate, first[2] | mate[2]), key=lambda part: cells[part[2]])
        return left

    def _balanced(self, parts: Sequence[_Part]) -> _Part:
        # Halves, not a chain: hundreds of messages may meet at the hub of a star.
        half = len(parts) // 2
        if not half:
            return parts[0]
        return self._joined(self._balanced(parts[:half]), self._balanced(parts[half:]), parts[0][2])

    def _cheapest(self, bit: int, parts: Sequence[_Part]) -> _Part:
        # Dynamic programming over subsets, as bit masks; the product of all parts has the attribute summed out.
        full = (1 << len(parts)) - 1
        best: dict[int, _Part] = {1 << number: part for number, part in enumerate(parts)}
        for mask in range(1, full + 1):
            if mask in best:
                continue
            # Every split has the same product.
            half = (mask - 1) & mask
            out = best[half][2] | best[mask ^ half][2]
            if mask == full:
                out &= ~bit
            cheapest: _Part | None = None
            while half > mask ^ half:  # each split once
                joined = self._joined(best[half], best[mask ^ half], out)
                if cheapest is None or joined[0] < cheapest[0]:
                    cheapest = joined
                half = (half - 1) & mask
            assert cheapest is not None
            best[mask] = cheapest
        return best[full]
