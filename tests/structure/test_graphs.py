"""Graphs: elimination orders and junction trees against their definitions, greedy elimination on bits against sets."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.structure import builders as ready_made
from dpgm_core.structure import graphs
from dpgm_core.structure.graphs import BitGraph, places

NAMES = [f"x{i}" for i in range(7)]


@st.composite
def weighted_graphs(draw):
    """Adjacency over up to seven attributes, disconnected ones included, and sizes."""
    count = draw(st.integers(1, 7))
    pairs = list(itertools.combinations(NAMES[:count], 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    sizes = {name: draw(st.integers(1, 5)) for name in NAMES[:count]}
    return graphs.neighbours_of(NAMES[:count], edges), sizes


def play(adjacency, sizes, order):
    """One elimination order, and what it costs."""
    names = list(adjacency)
    return graphs._named(graphs.BitGraph.of(adjacency, sizes).play(map(names.index, order)), names)


@given(weighted_graphs(), st.randoms())
def test_junction_trees_are_junction_trees(graph, random):
    """Of any order: every edge in a clique, no clique inside another, a forest, and running intersection."""
    adjacency, sizes = graph
    order = list(adjacency)
    random.shuffle(order)
    elimination = play(adjacency, sizes, order)
    cliques, edges = graphs.junction_tree(elimination)
    sets = [set(clique) for clique in cliques]
    assert set().union(*sets) == set(adjacency)
    for name, around in adjacency.items():
        assert all(any({name, other} <= one for one in sets) for other in around)
    assert not any(one < other for one in sets for other in sets)
    assert len(set(map(frozenset, sets))) == len(sets)
    assert len(edges) == len(cliques) - len(graphs.components(adjacency))
    for name in adjacency:
        holders = {i for i, one in enumerate(sets) if name in one}
        inside = [edge for edge in edges if set(edge) <= holders]
        assert len(inside) == len(holders) - 1  # a forest on them with one edge less is one tree
    assert elimination.treewidth == max(map(len, sets)) - 1
    assert elimination.peak >= max(math.prod(sizes[name] for name in one) for one in sets)


@given(weighted_graphs())
def test_greedy_orders_are_priced_and_sorted(graph):
    """Each order eliminates every attribute once, costs what playing it costs, and the cheapest comes first."""
    adjacency, sizes = graph
    found = graphs.elimination_orders(adjacency, sizes)
    for one in found:
        assert sorted(one.order) == sorted(adjacency)
        assert play(adjacency, sizes, one.order) == one
    assert [(one.total, one.peak) for one in found] == sorted((one.total, one.peak) for one in found)


@pytest.mark.landing
@given(weighted_graphs())
def test_the_lower_bound_is_below_every_order(graph):
    """No order of at most seven attributes, tried out to the last, has a smaller peak than the bound says."""
    graph = graphs.BitGraph.of(*graph)
    order, least = graph.thinnest_first()
    assert sorted(order) == list(range(len(graph.sizes)))
    some = itertools.islice(itertools.permutations(order), 0, None, 1 + 5 * (len(order) > 5))
    best = min(graph.play(one).peak for one in some)
    assert least <= math.log(best) + 1e-5


def test_the_heuristics_find_the_best_order_of_trees_and_cycles():
    """Treewidth 1 for trees and chains, 2 for a cycle, k - 1 for a clique, 3 for a 3 x 3 grid."""
    nine = [f"x{i}" for i in range(9)]
    cases = {1: ready_made.tree(nine), 2: [*ready_made.chain(nine), (nine[8], nine[0])], 8: ready_made.complete(nine)}
    cases[3] = ready_made.grid(nine, 3, 3)
    for width, cliques in cases.items():
        adjacency = graphs.neighbours_of(nine, cliques)
        assert graphs.elimination_orders(adjacency, dict.fromkeys(nine, 2))[0].treewidth == width


RULES = ("cells", "neighbours", "fill", "weighted fill")


@st.composite
def bit_graphs(draw):
    """Up to nine attributes of one to five labels, with any edges."""
    count = draw(st.integers(1, 9))
    around = [0] * count
    for one, two in itertools.combinations(range(count), 2):
        if draw(st.booleans()):
            around[one] |= 1 << two
            around[two] |= 1 << one
    return BitGraph(tuple(around), tuple(draw(st.integers(1, 5)) for _ in range(count)))


def by_definition(graph, rule, ranks):
    """(order, neighbours of each): what is least by (rule, cells, rank) goes, until nothing is left."""
    sizes = graph.sizes
    near = {place: set(places(mask)) for place, mask in enumerate(graph.around)}
    order, around = [], []
    while near:

        def lacking(place):
            return [pair for pair in itertools.combinations(near[place], 2) if pair[0] not in near[pair[1]]]

        def key(place):
            cells = sizes[place] * math.prod(sizes[other] for other in near[place])
            value = {
                "cells": cells,
                "neighbours": len(near[place]),
                "fill": len(lacking(place)),
                "weighted fill": sum(sizes[one] * sizes[two] for one, two in lacking(place)),
            }[rule]
            return value, cells, ranks[place]

        place = min(near, key=key)
        order.append(place)
        gone = near.pop(place)
        around.append(sum(1 << other for other in gone))
        for other in gone:
            near[other] = (near[other] | gone) - {other, place}
    return tuple(order), tuple(around)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rule", RULES)
@given(bit_graphs(), st.randoms())
def test_greedy_orders_follow_their_rule(rule, graph, random):
    """What is carried along from step to step is what counting anew would give."""
    ranks = list(range(len(graph.sizes)))
    random.shuffle(ranks)
    played = graph.greedy(rule, ranks)
    assert (played.order, played.around) == by_definition(graph, rule, ranks)
    assert graph.play(played.order) == played


@given(bit_graphs(), st.randoms())
def test_orders_are_priced_by_their_clusters(graph, random):
    """Total, peak, largest message and width of any order, from the neighbours at each step."""
    order = list(range(len(graph.sizes)))
    random.shuffle(order)
    played = graph.play(order)

    def cells(mask):
        return math.prod(graph.sizes[place] for place in places(mask))

    clusters = [cells(1 << place | near) for place, near in zip(played.order, played.around, strict=True)]
    assert (played.total, played.peak) == (sum(clusters), max(clusters))
    assert played.message == max(map(cells, played.around))
    assert played.width == max(len(places(near)) for near in played.around)
    assert graph.play(order, played.total - 1).total > played.total - 1
    assert graph.greedy("fill", order, 0).order == graph.greedy("fill", order).order[:1]
