"""Graphs: chordal graphs, elimination orders, and bit-mask graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from typing import Literal

from attrs import frozen

__all__ = [
    "BitGraph",
    "Clique",
    "Elimination",
    "Played",
    "Rule",
    "components",
    "elimination_orders",
    "greedy_orders",
    "junction_tree",
    "neighbours_of",
    "places",
]

# Everything here is plain Python on names and integers: no tables, no numpy. Costs are exact integers, so a model
# that is far too wide is priced, not attempted.

Clique = tuple[str, ...]
Adjacency = dict[str, set[str]]


def neighbours_of(names: Iterable[str], cliques: Iterable[Sequence[str]]) -> Adjacency:
    """The graph in which the members of each clique are joined pairwise."""
    adjacency: Adjacency = {name: set() for name in names}
    for clique in cliques:
        for name in clique:
            adjacency[name].update(clique)
    for name, around in adjacency.items():
        around.discard(name)
    return adjacency


def components(adjacency: Mapping[str, set[str]]) -> list[set[str]]:
    """The connected components, in order of their first attribute."""
    left = dict.fromkeys(adjacency)
    parts = []
    while left:
        stack = [next(iter(left))]
        reached: set[str] = set()
        while stack:
            name = stack.pop()
            if name not in reached:
                reached.add(name)
                left.pop(name, None)
                stack.extend(adjacency[name] - reached)
        parts.append(reached)
    return parts


@frozen
class Elimination:
    """An elimination order and its cost.

    Attributes
    ----------
    order : tuple of str
        The attributes, first eliminated first.
    clusters : tuple of tuple of str
        Of each step, the eliminated attribute and then its neighbours at that step.
    total : int
        Cells of all clusters.
    peak : int
        Cells of the largest cluster.
    treewidth : int
        Attributes in the largest cluster, less one.
    """

    order: tuple[str, ...]
    clusters: tuple[Clique, ...]
    total: int
    peak: int
    treewidth: int


def _named(played: Played, names: Sequence[str]) -> Elimination:
    clusters = (
        (names[place], *(names[other] for other in places(near)))
        for place, near in zip(played.order, played.around, strict=True)
    )
    order = tuple(names[place] for place in played.order)
    return Elimination(order, tuple(clusters), played.total, played.peak, played.width)


def elimination_orders(adjacency: Mapping[str, set[str]], sizes: Mapping[str, int]) -> list[Elimination]:
    """Greedy orders by smallest cluster, fewest neighbours and fewest fill-ins; cheapest (total, peak) first.

    Ties break by fewest cells, then by position, so the answer does not depend on hashing. Wide graphs are dear to
    search: where no order keeps every table below 2**64 cells, one is priced and no more are sought; where the
    cheap orders are past that, fill-ins are not counted.
    """
    graph = BitGraph.of(adjacency, sizes)
    names = list(adjacency)
    eliminations = [_named(played, names) for _, played in greedy_orders(graph)]
    return sorted(eliminations, key=lambda elimination: (elimination.total, elimination.peak))


def greedy_orders(graph: BitGraph, most: float = math.inf) -> list[tuple[str, Played]]:
    """The orders of `elimination_orders`, and the rules that they follow.

    most: log of the cells that the largest cluster may have for any of them to be of use.

    >>> [(rule, played.width) for rule, played in greedy_orders(BitGraph((0b010, 0b101, 0b010), (2, 2, 2)))]
    [('cells', 1), ('fill', 1)]
    """
    ranks = range(len(graph.sizes))
    thinnest, least = graph.thinnest_first()
    if least > min(most, _MAX_LOG_CELLS):
        return [("thinnest first", graph.play(thinnest))]
    orders: list[tuple[str, Played]] = [(rule, graph.greedy(rule, ranks)) for rule in graph.rules if "fill" not in rule]
    if min(played.peak for _, played in orders) <= math.exp(_MAX_LOG_CELLS):
        orders += [(rule, graph.greedy(rule, ranks)) for rule in graph.rules if "fill" in rule]
    return orders


_MAX_LOG_CELLS = 64 * math.log(2)


def junction_tree(elimination: Elimination) -> tuple[list[Clique], list[tuple[int, int]]]:
    """The maximal cliques of an elimination and the edges of a junction forest over them.

    The cluster of a step hangs on the cluster of the first attribute eliminated among its neighbours; clusters
    inside a neighbour are merged into it (running intersection holds by construction).
    """
    step_of = {name: i for i, name in enumerate(elimination.order)}
    parents: list[int | None] = []
    for cluster in elimination.clusters:
        later = [step_of[name] for name in cluster[1:]]
        parents.append(min(later) if later else None)
    # A parent cluster that holds no more than the child's separator is contained in the child: merge it downwards.
    keeper = list(range(len(parents)))
    for i, parent in enumerate(parents):
        if (
            parent is not None
            and keeper[parent] == parent
            and len(elimination.clusters[parent]) == len(elimination.clusters[i]) - 1
        ):
            keeper[parent] = keeper[i]
    maximal = [i for i in range(len(parents)) if keeper[i] == i]
    number = {step: i for i, step in enumerate(maximal)}
    cliques = [tuple(sorted(elimination.clusters[step], key=step_of.__getitem__)) for step in maximal]
    edges = set()
    for i, parent in enumerate(parents):
        if parent is not None:
            one, two = number[keeper[i]], number[keeper[parent]]
            if one != two:
                edges.add((min(one, two), max(one, two)))
    return cliques, sorted(edges)


# --------------------------------------------------------------------------------------------------
# Elimination orders on graphs whose attributes are bits of an integer
#
# An attribute is a place, 0 to n - 1, and a set of attributes an integer with those bits. Cells of clusters and counts
# of fill-in edges are carried along as exact integers, so every rule breaks its ties alike on every machine.

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
        """Eliminate in a given order; it ends early, its total above `most`, where the clusters have more cells."""
        state = _State(self)
        for place in order:
            state.take(place)
            if state.total > most:
                break
        return state.played()

    def greedy(self, rule: Rule, ranks: Sequence[int], most: float = math.inf) -> Played:
        """Eliminate what is least by (rule, cells, rank); it ends early as `play` does."""
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
