"""Graphs: ready-made clique sets, elimination orders and junction trees against their definitions."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core import graphs
from dpgm_core.errors import StructureError

NAMES = [f"x{i}" for i in range(7)]


@st.composite
def weighted_graphs(draw):
    """Adjacency over up to seven attributes, disconnected ones included, and sizes."""
    count = draw(st.integers(1, 7))
    pairs = list(itertools.combinations(NAMES[:count], 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    sizes = {name: draw(st.integers(1, 5)) for name in NAMES[:count]}
    return graphs.neighbours_of(NAMES[:count], edges), sizes


@given(weighted_graphs(), st.randoms())
def test_junction_trees_are_junction_trees(graph, random):
    """Of any order: every edge in a clique, no clique inside another, a forest, and running intersection."""
    adjacency, sizes = graph
    order = list(adjacency)
    random.shuffle(order)
    elimination = graphs.eliminate(adjacency, sizes, order)
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
        assert graphs.eliminate(adjacency, sizes, one.order) == one
    assert [(one.total, one.peak) for one in found] == sorted((one.total, one.peak) for one in found)


@given(weighted_graphs())
def test_the_lower_bound_is_below_every_order(graph):
    """No order of at most seven attributes, tried out to the last, has a smaller peak than the bound says."""
    adjacency, sizes = graph
    order, least = graphs._thinnest_first(adjacency, {name: math.log(size) for name, size in sizes.items()})
    assert sorted(order) == sorted(adjacency)
    some = itertools.islice(itertools.permutations(adjacency), 0, None, 1 + 5 * (len(adjacency) > 5))
    best = min(graphs.eliminate(adjacency, sizes, one).peak for one in some)
    assert least <= math.log(best) + 1e-5


def test_the_heuristics_find_the_best_order_of_trees_and_cycles():
    """Treewidth 1 for trees and chains, 2 for a cycle, k - 1 for a clique, 3 for a 3 x 3 grid."""
    nine = [f"x{i}" for i in range(9)]
    cases = {1: graphs.tree(nine), 2: [*graphs.chain(nine), (nine[8], nine[0])], 8: graphs.complete(nine)}
    cases[3] = graphs.grid(nine, 3, 3)
    for width, cliques in cases.items():
        adjacency = graphs.neighbours_of(nine, cliques)
        assert graphs.elimination_orders(adjacency, dict.fromkeys(nine, 2))[0].treewidth == width


def test_ready_made_cliques():
    """Counts of edges, by their formulas; the paper's third-order chain of ten has 24."""
    ten = [f"x{i}" for i in range(10)]
    assert len(graphs.chain(ten, 3)) == 9 + 8 + 7
    assert len(graphs.tree(ten, 3)) == 9
    assert len(graphs.complete(ten, 3)) == math.comb(10, 3)
    assert len(graphs.grid(ten, 2, 5)) == 5 + 2 * 4
    assert graphs.complete(["a"]) == graphs.chain(["a"]) == graphs.tree(["a"]) == graphs.grid(["a"], 1, 1) == ()


def test_random_graphs_repeat_and_connect():
    """The same seed gives the same graph; connected unless told otherwise; impossible ones are refused."""
    one = graphs.erdos_renyi(NAMES, 0.4, 3)
    assert one == graphs.erdos_renyi(NAMES, 0.4, 3) != graphs.erdos_renyi(NAMES, 0.4, 4)
    assert len(graphs.components(graphs.neighbours_of(NAMES, one))) == 1
    assert graphs.erdos_renyi(NAMES, 0, 1, connected=False) == ()
    with pytest.raises(StructureError, match="no connected graph"):
        graphs.erdos_renyi(NAMES[:2], 0, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: graphs.chain(NAMES, 0),
        lambda: graphs.chain(NAMES, True),
        lambda: graphs.tree(NAMES, 0),
        lambda: graphs.complete(NAMES, 8),
        lambda: graphs.complete([f"x{i}" for i in range(100)], 10),
        lambda: graphs.grid(NAMES, 2, 3),
        lambda: graphs.erdos_renyi(NAMES, float("nan"), 1),
        lambda: graphs.erdos_renyi(NAMES, 1.5, 1),
        lambda: graphs.erdos_renyi(NAMES, 0.5, -1),
        lambda: graphs.erdos_renyi(NAMES, 0.5, 1, connected="no"),
    ],
)
def test_senseless_arguments_are_refused(call):
    """StructureError, never a foreign exception or a graph of a million million cliques."""
    with pytest.raises(StructureError):
        call()


@st.composite
def directed(draw):
    """Parents of at most six names, anything goes: cycles, loops, no parents at all."""
    names = NAMES[: draw(st.integers(1, 6))]
    return {name: draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) for name in names}


@given(directed())
def test_directed_cycles_are_found_if_there_are_any(parents):
    """Some order of all names puts parents first, or what is found is a cycle that exists, from parent to child."""
    cycle = graphs.directed_cycle(parents)
    orders = itertools.permutations(parents)
    acyclic = any(
        all(order.index(above) < order.index(name) for name in order for above in parents[name]) for order in orders
    )
    assert acyclic == (not cycle)
    assert len(set(cycle)) == len(cycle)
    assert all(one in parents[other] for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    if cycle:
        assert cycle[0] == min(cycle)
        with pytest.raises(StructureError, match=" -> ".join([*cycle, cycle[0]])):
            graphs.families(list(parents), parents)
    else:
        assert graphs.families(list(parents), parents) == tuple((name, *above) for name, above in parents.items())


def test_long_cycles_and_long_names_are_spelled_out_at_their_ends():
    """A cycle of 30 names whole, of 31 with the middle counted; names of 40 characters at most, and no line breaks."""
    thirty = [f"x{at}" for at in range(30)]
    assert graphs.spelled(thirty).split(" -> ") == [*thirty, "x0"]
    shown = graphs.spelled([*thirty, "x30"]).split(" -> ")
    assert shown == [*thirty[:5], "... 22 more ...", *thirty[27:], "x30", "x0"]
    assert graphs.spelled(["a\nb" * 20]).count("a") == 28 and "\n" not in graphs.spelled(["a\nb"])
