"""The size of a model that grows, against what is known of its graph."""

import itertools
import math

import numpy as np
import pytest

from dpgm_core import Clique, Domain, Structure
from dpgm_core.domain import Mapped, Ordered
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning import Limits, ModelSize
from dpgm_core.learning.model_size import _forest_edges, _Tree

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2, "f": 7}
DOMAIN = Domain.from_sizes(SIZES)


def maximal_cliques(edges: set[frozenset[str]]) -> set[frozenset[str]]:
    """By trying every set of attributes."""
    complete = [
        frozenset(names)
        for size in range(1, len(SIZES) + 1)
        for names in itertools.combinations(SIZES, size)
        if all(frozenset(pair) in edges for pair in itertools.combinations(names, 2))
    ]
    return {one for one in complete if not any(one < other for other in complete)}


@pytest.mark.parametrize("seed", range(8))
def test_clusters_of_a_chordal_graph_are_its_maximal_cliques(seed: int) -> None:
    """Of a graph grown by hanging attributes on cliques; small clusters first finds the order without fill-in."""
    rng = np.random.default_rng(seed)
    names = list(rng.permutation(list(SIZES)))
    cliques = [tuple(names[:2])]
    for name in names[2:]:
        cliques.append((*cliques[rng.integers(len(cliques))][:2], str(name)))
    edges = {frozenset(pair) for clique in cliques for pair in itertools.combinations(clique, 2)}
    size = ModelSize(DOMAIN)
    for clique in cliques:
        before = size.cells()
        size.add(clique)
        assert size.cells() >= before
    known = maximal_cliques(edges)
    assert {frozenset(cluster) for cluster in size.clusters()} == known
    assert size.cells() == sum(math.prod(SIZES[name] for name in one) for one in known)


def test_a_cycle_is_filled_in() -> None:
    """Of a square the chord that makes the smaller triangles is taken first: at the smallest cluster."""
    size = ModelSize(DOMAIN, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    # a, b and its neighbours cost 24, 30, 60, 40 at first: b goes first and joins a to c.
    assert {frozenset(one) for one in size.clusters()} >= {frozenset("abc"), frozenset("acd")}
    assert size.cells() == 2 * 3 * 4 + 2 * 4 * 5 + 2 + 7


def test_limits_hold_for_the_whole_and_for_the_largest_cluster() -> None:
    """What fits exactly fits; one cell less, or a millionth of the time, does not."""
    size = ModelSize(DOMAIN, [("a", "b")])
    grown = ModelSize(DOMAIN, [("a", "b"), ("b", "c")])
    assert grown.memory() == 16 * (6 + 12 + 5 + 2 + 7)
    seconds, memory = grown.seconds(), grown.memory()
    assert size.fits(("b", "c"), Limits(seconds=seconds, memory=memory))
    assert grown.within(Limits(seconds=seconds, memory=memory))
    for less in (Limits(seconds=seconds, memory=memory - 1), Limits(seconds=seconds * (1 - 1e-6), memory=memory)):
        assert not size.fits(("b", "c"), less) and not grown.within(less)
    # What is left has room for the pair alone, and for one cell more not.
    room = size.room(Limits(seconds=size.seconds() + cluster_seconds(12, 2), memory=size.memory() + 16 * 12))
    assert room.allows(12, 2) and not room.allows(13, 2) and not room.allows(12, 3)


def cluster_seconds(cells: int, attributes: int) -> float:
    """By the documented formula: 400 inferences of 3.3e-11 s for each cell and squared attribute; rounding aside."""
    return 400 * 3.3e-11 * cells * attributes**2 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("sizes", "order", "count"),
    [([20] * 14, 2, 30), ([2] * 16, 3, 60), ([3, 9, 30] * 20, 2, 80), ([4] * 12, 3, 20), ([8] * 7, 3, 20)],
    ids=["mixed", "binary", "wide", "triples", "few"],
)
def test_predicted_seconds_follow_the_engines_own_price(sizes: list[int], order: int, count: int) -> None:
    """Predictions by clusters are within a factor of 3 of it; seconds per cell would be off by up to 8."""
    domain = Domain.from_sizes({f"x{place}": size for place, size in enumerate(sizes)})
    rng, names = np.random.default_rng(1), list(domain.names)
    cliques = [(name,) for name in names]
    size = ModelSize(domain, cliques)
    for _ in range(count):
        clique = tuple(names[place] for place in sorted(rng.choice(len(names), order, replace=False)))
        if clique not in cliques and size.fits(clique, Limits(seconds=0.3, memory=2**24)):
            cliques.append(clique)
            size.add(clique)
    priced = JunctionTree().compile(Structure(domain, cliques)).explain().seconds
    assert 1 / 3 < size.seconds() / 400 / (2.7 * priced) < 3


def test_constraints_count_and_what_a_map_tells_only_once_it_is_used():
    """The clique of an order is there from the start, that of a map once its column stands with another."""
    plain = Domain.from_sizes({"a": 4, "b": 2, "c": 3, "d": 3})
    to = tuple((str(code), str(code % 2)) for code in range(4))
    rules = [Mapped(name="x", columns=("a", "b"), to=to), Ordered(name="y", columns=("c", "d"))]
    size = ModelSize(Domain(plain.attributes, rules), [("a",), ("b",)])
    assert size.cells() == 4 + 2 + 9
    assert not size.fits(("b", "c"), Limits(seconds=1, memory=16 * (8 + 6 + 9) - 1))
    assert size.fits(("b", "c"), Limits(seconds=1, memory=16 * (8 + 6 + 9)))
    size.add(("b", "c"))
    assert size.cells() == 8 + 6 + 9


# Over many attributes a candidate is looked up in the junction tree: closed forms on chains and forests.
NAMES = [f"x{place}" for place in range(30)]  # more than have an elimination for each candidate
CHAIN: list[Clique] = list(itertools.pairwise(NAMES))


def least_limit(size: ModelSize, clique: Clique) -> tuple[int, int]:
    """The least limits within which a clique may fit: of cells, and of cells times squared attributes."""
    memory = next(most for most in itertools.count(1) if size.may_fit(clique, Limits(seconds=1, memory=16 * most)))
    unit = cluster_seconds(1, 1)
    return memory, next(
        most for most in itertools.count(1) if size.may_fit(clique, Limits(seconds=most * unit, memory=10**9))
    )


@pytest.mark.parametrize(
    ("sizes", "cliques", "pair", "cells", "cost"),
    [
        # 29 clusters of 4 cells; four of them take one attribute more, whichever end it is carried from.
        ({}, CHAIN, ("x0", "x5"), 29 * 4 + 16, 25 * 16 + 4 * 8 * 9),
        # The cheaper end is: x5 to (x0, x1), of 14 cells, and three of 4; and not x0, which would make each of four
        # clusters 28 - 4 larger.
        ({"x0": 7}, CHAIN, ("x0", "x5"), 28 * 4 + 14 + 14 + 12, 25 * 16 + (28 + 3 * 8) * 9),
        # Of two trees not the pair's own cluster, but one that holds an end, with the other end besides.
        ({}, [pair for pair in CHAIN if pair != ("x14", "x15")], ("x3", "x20"), 28 * 4 + 4, 27 * 16 + 8 * 9),
    ],
    ids=["along the chain", "the cheaper end", "two trees"],
)
def test_a_pair_is_carried_along(sizes, cliques, pair, cells, cost) -> None:
    size = ModelSize(Domain.from_sizes(dict.fromkeys(NAMES, 2) | sizes), cliques)
    assert least_limit(size, pair) == (cells, cost)


def test_what_was_found_before_a_clique_was_added_is_forgotten() -> None:
    size = ModelSize(Domain.from_sizes(dict.fromkeys(NAMES, 2)), CHAIN)
    before, _ = least_limit(size, ("x0", "x5"))
    size.add(("x0", "x10"))  # a cycle, which is filled in
    assert before < size.cells() <= least_limit(size, ("x0", "x5"))[0]


@pytest.mark.parametrize("seed", range(8))
def test_paths_of_the_junction_forest_are_those_of_a_plain_search(seed):
    """The forest is the one that Prim's algorithm finds by looking at all clusters, lowest numbers first; the cluster
    that hosts an attribute is the one with most of a clique, then with fewest cells, then with the lowest number."""
    rng = np.random.default_rng(seed)
    masks = sorted({int(mask) for mask in rng.integers(1, 2**9, size=14)} | {1 << 80})
    tree = _Tree(masks, cells=rng.integers(1, 5, size=len(masks)).tolist())
    edges, waiting = set(), dict.fromkeys(range(len(masks)), (0, -1))
    while waiting:
        number = max(waiting, key=lambda one: (waiting[one][0], -one))
        shared, host = waiting.pop(number)
        if shared:
            edges |= {(number, host), (host, number)}
        for other, (most, _) in waiting.items():
            if (common := (masks[number] & masks[other]).bit_count()) > most:
                waiting[other] = common, number
    assert {(one, two) for one, near in enumerate(_forest_edges(masks)) for two in near} == edges
    for clique in map(int, rng.integers(1, 2**9, size=20)):
        for place in range(9):
            holders = [number for number, mask in enumerate(masks) if mask >> place & 1]
            if clique >> place & 1 and holders:
                key = [(-(masks[one] & clique).bit_count(), tree.cells[one], one) for one in holders]
                assert tree.host(place, clique) == min(key)[-1]


def test_no_clusters_are_an_empty_forest():
    """A domain without attributes has no clusters."""
    assert _forest_edges([]) == []
