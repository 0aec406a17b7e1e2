"""Graph work on attribute names: elimination orders, triangulation, junction trees.

Everything here is plain Python on names and integers: no tables, no numpy. Costs are exact integers, so a model
that is far too wide is priced, not attempted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from dpgm_core.structure.bitgraph import BitGraph, Played, places

__all__ = [
    "Clique",
    "Elimination",
    "components",
    "eliminate",
    "elimination_orders",
    "greedy_orders",
    "junction_tree",
    "neighbours_of",
]

Clique = tuple[str, ...]
Adjacency = dict[str, set[str]]


def neighbours_of(names: Iterable[str], cliques: Iterable[Sequence[str]]) -> Adjacency:
    """The graph in which the members of each clique are joined pairwise.

    >>> neighbours_of(["a", "b"], [("a", "b")])
    {'a': {'b'}, 'b': {'a'}}
    """
    adjacency: Adjacency = {name: set() for name in names}
    for clique in cliques:
        for name in clique:
            adjacency[name].update(clique)
    for name, around in adjacency.items():
        around.discard(name)
    return adjacency


def components(adjacency: Mapping[str, set[str]]) -> list[set[str]]:
    """The connected components, in order of their first attribute.

    >>> len(components(neighbours_of(["a", "b", "c"], [("a", "b")])))
    2
    """
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


def eliminate(adjacency: Mapping[str, set[str]], sizes: Mapping[str, int], order: Iterable[str]) -> Elimination:
    """Price one elimination order by playing it.

    >>> eliminate(neighbours_of("abc", ["ab", "bc"]), dict.fromkeys("abc", 2), "abc").treewidth
    1
    """
    names = list(adjacency)
    place = {name: i for i, name in enumerate(names)}
    played = BitGraph.of(adjacency, sizes).play(map(place.__getitem__, order))
    return _named(played, names)


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

    >>> elimination_orders(neighbours_of("abc", ["ab", "bc"]), dict.fromkeys("abc", 2))[0].total
    10
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

    >>> junction_tree(eliminate(neighbours_of("abc", ["ab", "bc"]), dict.fromkeys("abc", 2), "abc"))
    ([('a', 'b'), ('b', 'c')], [(0, 1)])
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
