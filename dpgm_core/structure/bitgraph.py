"""Elimination orders on graphs whose attributes are bits of an integer: thousands of eliminations a millisecond.

An attribute is a place, 0 to n - 1, and a set of attributes an integer with those bits. Cells of clusters and counts of
fill-in edges are carried along as exact integers, so every rule breaks its ties alike on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from typing import Literal

from attrs import frozen

__all__ = ["BitGraph", "Played", "Rule", "places"]

#: What a greedy order takes next: the smallest cluster, the fewest neighbours, or the fewest edges to fill in, plain or
#: each weighing the product of its ends' sizes.
Rule = Literal["cells", "neighbours", "fill", "weighted fill"]

_MAX_ATTRIBUTES_FOR_FILL = 500  # attributes


def places(mask: int) -> list[int]:
    """The places of a set, ascending.

    >>> places(0b1011)
    [0, 1, 3]
    """
    positions = []
    while mask:
        lowest = mask & -mask
        positions.append(lowest.bit_length() - 1)
        mask ^= lowest
    return positions


@frozen
class Played:
    """An elimination order and what it costs.

    order: places. around: the neighbours of each when it was eliminated. total: summed cells of all clusters, that is
    of each with its neighbours. peak: cells of the largest one. message: cells of the largest set of neighbours. width:
    the most neighbours, that is the treewidth.
    """

    order: tuple[int, ...]
    around: tuple[int, ...]
    total: int
    peak: int
    message: int
    width: int


@frozen(eq=False, slots=False)
class BitGraph:
    """A graph. around: the neighbours of each place. sizes: labels of each attribute."""

    around: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, adjacency: Mapping[str, Iterable[str]], sizes: Mapping[str, int]) -> BitGraph:
        """The graph with one place per name, in the mapping's order.

        >>> BitGraph.of({"a": {"b"}, "b": {"a"}}, {"a": 2, "b": 3}).cells
        (6, 6)
        """
        bit = {name: 1 << place for place, name in enumerate(adjacency)}
        around = tuple(sum(map(bit.__getitem__, near)) for near in adjacency.values())
        return cls(around, tuple(sizes[name] for name in adjacency))

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """Of each attribute's cluster, if it were the first to go."""
        sizes = self.sizes
        return tuple(
            size * math.prod([sizes[other] for other in places(near)])
            for size, near in zip(sizes, self.around, strict=True)
        )

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Those that may differ here.

        >>> BitGraph((0, 0), (2, 2)).rules, BitGraph((0, 0), (2, 3)).rules
        (('cells', 'fill'), ('cells', 'neighbours', 'fill', 'weighted fill'))
        """
        if len(set(self.sizes)) == 1:  # the fewest neighbours are the smallest cluster, and all edges weigh the same
            return "cells", "fill"
        # Sums over what is lacking take time that grows with the square of the largest cluster.
        if len(self.sizes) > _MAX_ATTRIBUTES_FOR_FILL:
            return "cells", "neighbours", "fill"
        return "cells", "neighbours", "fill", "weighted fill"

    def thinnest_first(self) -> tuple[list[int], float]:
        """Places by smallest neighbourhood among those left, and a lower bound on log(peak) of every order.

        In the subgraph left at any step each neighbourhood holds at least B cells; the first of its attributes that any
        elimination takes makes a cluster of at least B (the degeneracy bound on treewidth, weighted).
        """
        log_size = [math.log(size) for size in self.sizes]
        value = [
            log + sum([log_size[other] for other in places(near)])
            for log, near in zip(log_size, self.around, strict=True)
        ]
        heap = [(one, place) for place, one in enumerate(value)]
        heapify(heap)
        order, left, least = [], (1 << len(value)) - 1, 0.0
        while heap:
            cells, place = heappop(heap)
            if not left >> place & 1 or cells != value[place]:
                continue
            order.append(place)
            left &= ~(1 << place)
            least = max(least, cells)
            for other in places(self.around[place] & left):
                value[other] = round(value[other] - log_size[place], 9)
                heappush(heap, (value[other], other))
        return order, least

    def fill(self, weights: Sequence[int]) -> tuple[int, ...]:
        """For each attribute the edges that its neighbours lack among themselves, each the product of its weights."""
        counts = []
        for near in self.around:
            missing = 0
            for other in places(near):
                lacking = near & ~self.around[other] & ~(1 << other)
                if lacking:
                    missing += weights[other] * _weight(lacking, weights)
            counts.append(missing // 2)
        return tuple(counts)

    @cached_property
    def plain_fill(self) -> tuple[int, ...]:
        """Edges lacking."""
        return self.fill([1] * len(self.sizes))

    @cached_property
    def weighted_fill(self) -> tuple[int, ...]:
        """Edges lacking, each the product of its ends' sizes."""
        return self.fill(self.sizes)

    def play(self, order: Iterable[int], most: float = math.inf) -> Played:
        """Eliminate in a given order; it ends early, its total above `most`, where the clusters have more cells.

        >>> played = BitGraph((0b010, 0b101, 0b010), (2, 2, 2)).play([1, 0, 2])
        >>> played.around, played.total, played.width
        ((5, 4, 0), 14, 2)
        """
        state = _State(self)
        for place in order:
            state.take(place)
            if state.total > most:
                break
        return state.played()

    def greedy(self, rule: Rule, ranks: Sequence[int], most: float = math.inf) -> Played:
        """Eliminate what is least by (rule, cells, rank); it ends early as `play` does.

        >>> BitGraph((0b010, 0b101, 0b010), (2, 2, 2)).greedy("fill", [2, 1, 0]).order
        (2, 1, 0)
        """
        state = _State(self) if rule in ("cells", "neighbours") else _Filling(self, weighted=rule == "weighted fill")
        cells, value = state.cells, state.value(rule)
        current = [(value(place), cells[place], rank, place) for place, rank in enumerate(ranks)]
        heap = current.copy()
        heapify(heap)
        while heap:
            entry = heappop(heap)
            place = entry[3]
            if current[place] is not entry:  # something changed since
                continue
            touched = state.take(place)
            if state.total > most:
                break
            for other in places(touched):
                entry = current[other] = (value(other), cells[other], ranks[other], other)
                heappush(heap, entry)
        return state.played()


class _State:
    """A graph in the middle of an elimination."""

    def __init__(self, graph: BitGraph) -> None:
        self.around, self.cells, self.sizes = list(graph.around), list(graph.cells), graph.sizes
        self.order: list[int] = []
        self.near: list[int] = []
        self.total = self.peak = self.message = self.width = 0

    def value(self, rule: Rule) -> Callable[[int], int]:
        """What a rule looks at first."""
        around = self.around
        return self.cells.__getitem__ if rule == "cells" else lambda place: around[place].bit_count()

    def take(self, place: int) -> int:
        """Eliminate an attribute; returns those whose value may have changed."""
        near, around, cells = self.around[place], self.around, self.cells
        self.note(place, near)
        size = self.sizes[place]
        without = ~(1 << place)
        for other in places(near):
            missing = near & ~around[other] & ~(1 << other)
            cells[other] //= size
            if missing:
                cells[other] *= math.prod([self.sizes[one] for one in places(missing)])
                around[other] |= missing
            around[other] &= without
        return near

    def note(self, place: int, near: int) -> None:
        """Price the elimination of an attribute."""
        cells = self.cells[place]
        self.order.append(place)
        self.near.append(near)
        self.total += cells
        self.peak, self.message = max(self.peak, cells), max(self.message, cells // self.sizes[place])
        self.width = max(self.width, near.bit_count())

    def played(self) -> Played:
        """What it came to."""
        return Played(tuple(self.order), tuple(self.near), self.total, self.peak, self.message, self.width)


class _Filling(_State):
    """One that keeps count of the edges each attribute's neighbours lack."""

    def __init__(self, graph: BitGraph, *, weighted: bool) -> None:
        super().__init__(graph)
        self.weights = graph.sizes if weighted else (1,) * len(graph.sizes)
        self.weigh = partial(_weight, weights=self.weights) if weighted else int.bit_count
        self.fill = list(graph.weighted_fill if weighted else graph.plain_fill)

    def value(self, rule: Rule) -> Callable[[int], int]:
        """The count."""
        return self.fill.__getitem__

    def take(self, place: int) -> int:
        """Eliminate an attribute; returns those whose count or cluster may have changed."""
        near, around, cells, fill = self.around[place], self.around, self.cells, self.fill
        sizes, weights, weigh = self.sizes, self.weights, self.weigh
        self.note(place, near)
        touched, without, size, members = near, ~(1 << place), sizes[place], places(near)
        for one in members:
            # Each edge filled in is lacking no longer to what both its ends touch, and its ends get new neighbours.
            for two in places(near & ~around[one] & ~((2 << one) - 1)):
                ours, theirs = around[one], around[two]
                common, edge = ours & theirs & without, weights[one] * weights[two]
                for other in places(common):
                    fill[other] -= edge
                touched |= common
                fill[one] += weights[two] * weigh(ours & ~theirs)
                fill[two] += weights[one] * weigh(theirs & ~ours)
                around[one], around[two] = ours | 1 << two, theirs | 1 << one
                cells[one] *= sizes[two]
                cells[two] *= sizes[one]
        weight = weights[place]
        for one in members:
            rest = around[one] & without
            around[one] = rest
            cells[one] //= size
            outside = rest & ~near
            if outside:
                fill[one] -= weight * weigh(outside)
        return touched


def _weight(mask: int, weights: Sequence[int]) -> int:
    return sum([weights[place] for place in places(mask)])
