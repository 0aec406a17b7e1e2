"""Graph work on attribute names: elimination orders, triangulation, junction trees.

Everything here is plain Python on names and integers: no tables, no numpy. Costs are exact integers, so a model
that is far too wide is priced, not attempted.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import frozen

__all__ = ["Clique", "Elimination", "components", "eliminate", "elimination_orders", "junction_tree", "neighbours_of"]

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
    found = []
    while left:
        stack = [next(iter(left))]
        reached: set[str] = set()
        while stack:
            name = stack.pop()
            if name not in reached:
                reached.add(name)
                left.pop(name, None)
                stack.extend(adjacency[name] - reached)
        found.append(reached)
    return found


@frozen
class Elimination:
    """What one elimination order costs: order, the cluster of each step, and sizes in cells.

    clusters[i]: the attribute order[i] first, then its neighbours when it is eliminated. total: summed cells of
    all clusters. peak: cells of the largest one. treewidth: attributes in the largest cluster, less one.
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
    graph = {name: set(around) for name, around in adjacency.items()}
    steps, clusters, total, peak, width = [], [], 0, 0, 0
    for name in order:
        around = graph.pop(name)
        for other in around:
            graph[other] |= around
            graph[other] -= {other, name}
        cells = sizes[name] * math.prod(sizes[other] for other in around)
        total, peak, width = total + cells, max(peak, cells), max(width, len(around))
        steps.append(name)
        clusters.append((name, *around))
    return Elimination(tuple(steps), tuple(clusters), total, peak, width)


def elimination_orders(adjacency: Mapping[str, set[str]], sizes: Mapping[str, int]) -> list[Elimination]:
    """Greedy orders by smallest cluster, fewest neighbours and fewest fill-ins; cheapest (total, peak) first.

    Ties break by fewest cells, then by position, so the answer does not depend on hashing. Wide graphs are dear to
    search: where no order keeps every table below 2**64 cells, one is priced and no more are sought; where the
    cheap orders are past that, fill-ins are not counted.

    >>> elimination_orders(neighbours_of("abc", ["ab", "bc"]), dict.fromkeys("abc", 2))[0].total
    10
    """
    log_size = {name: math.log(sizes[name]) for name in adjacency}
    thinnest, least = _thinnest_first(adjacency, log_size)
    if least > math.log(_HOPELESS):
        return [eliminate(adjacency, sizes, thinnest)]

    def cells(graph: Adjacency, name: str) -> float:
        # Rounded, because sets are summed in any order.
        return round(log_size[name] + sum(map(log_size.__getitem__, graph[name])), 9)

    def degree(graph: Adjacency, name: str) -> float:
        return len(graph[name])

    def fill(graph: Adjacency, name: str) -> float:
        around = graph[name]
        missing = sum(len(around) - 1 - len(around & graph[other]) for other in around)
        return missing / 2

    def weighted_fill(graph: Adjacency, name: str) -> float:
        around = sorted(graph[name])
        return sum(sizes[one] * sizes[two] for one, two in itertools.combinations(around, 2) if two not in graph[one])

    def position(graph: Adjacency, name: str) -> float:
        return 0

    found = [eliminate(adjacency, sizes, _greedy(adjacency, cells, position))]
    if len(set(sizes.values())) > 1:  # else the fewest neighbours are the smallest cluster
        found.append(eliminate(adjacency, sizes, _greedy(adjacency, degree, cells)))
    if min(elimination.peak for elimination in found) <= _HOPELESS:
        rules: list[Callable[[Adjacency, str], float]] = [fill]
        if len(adjacency) <= 500:
            rules.append(weighted_fill)
        found += [eliminate(adjacency, sizes, _greedy(adjacency, rule, cells, fill_ins=True)) for rule in rules]
    return sorted(found, key=lambda elimination: (elimination.total, elimination.peak))


_HOPELESS = 2**64


def _thinnest_first(adjacency: Mapping[str, set[str]], log_size: Mapping[str, float]) -> tuple[list[str], float]:
    """Attributes by smallest neighbourhood among those left, and a lower bound on log(peak) of every order.

    In the subgraph left at any step each neighbourhood holds at least B cells; the first of its attributes that any
    elimination takes makes a cluster of at least B (the degeneracy bound on treewidth, weighted).
    """
    cells = {name: log_size[name] + sum(map(log_size.__getitem__, around)) for name, around in adjacency.items()}
    place = {name: i for i, name in enumerate(adjacency)}
    heap = [(round(value, 6), place[name], name) for name, value in cells.items()]
    heapq.heapify(heap)
    order: dict[str, None] = {}
    least = 0.0
    while heap:
        value, _, name = heapq.heappop(heap)
        if name in order or value != round(cells[name], 6):
            continue
        order[name] = None
        least = max(least, value)
        for other in adjacency[name]:
            if other not in order:
                cells[other] -= log_size[name]
                heapq.heappush(heap, (round(cells[other], 6), place[other], other))
    return list(order), least


def _greedy(
    adjacency: Mapping[str, set[str]],
    rule: Callable[[Adjacency, str], float],
    tie: Callable[[Adjacency, str], float],
    *,
    fill_ins: bool = False,
) -> list[str]:
    """Eliminate the attribute with the smallest (rule, tie, position); fill_ins: `rule` looks at neighbours' edges."""
    graph = {name: set(around) for name, around in adjacency.items()}
    place = {name: i for i, name in enumerate(graph)}
    # A lazy heap: stale entries are skipped by comparing the version stored with the current one.
    version = dict.fromkeys(graph, 0)
    heap = [(rule(graph, name), tie(graph, name), place[name], 0, name) for name in graph]
    heapq.heapify(heap)
    order = []
    while heap:
        _, _, _, seen, name = heapq.heappop(heap)
        if name not in graph or seen != version[name]:
            continue
        order.append(name)
        around = graph.pop(name)
        touched = set(around)
        for other in around:
            if fill_ins and not around - graph[other] <= {other}:  # new edges change their common neighbours' fill
                touched |= graph[other]
            graph[other] |= around
            graph[other] -= {other, name}
        touched.discard(name)
        for other in sorted(touched, key=place.__getitem__):
            if other in graph:
                version[other] += 1
                heapq.heappush(heap, (rule(graph, other), tie(graph, other), place[other], version[other], other))
    return order


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
    kept = [i for i in range(len(parents)) if keeper[i] == i]
    number = {step: i for i, step in enumerate(kept)}
    cliques = [tuple(sorted(elimination.clusters[step], key=step_of.__getitem__)) for step in kept]
    edges = set()
    for i, parent in enumerate(parents):
        if parent is not None:
            one, two = number[keeper[i]], number[keeper[parent]]
            if one != two:
                edges.add((min(one, two), max(one, two)))
    return cliques, sorted(edges)
