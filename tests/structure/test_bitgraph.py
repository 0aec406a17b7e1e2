"""Greedy elimination on bits against the same rules played on sets, step by step, with everything counted anew."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.structure.graphs import BitGraph, places

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
