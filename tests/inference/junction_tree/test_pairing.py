"""How the tables of a bucket are paired: at the least predicted cost of all trees while they are few."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.inference.junction_tree.contraction import NUMPY, Pairings
from dpgm_core.structure.graphs import places

SIZES = (3, 2, 5, 4, 7)


def cells(scope):
    return math.prod(SIZES[place] for place in places(scope))


def trees(numbers):
    """All binary trees over some numbers."""
    if len(numbers) == 1:
        yield numbers[0]
        return
    for count in range(1, len(numbers)):
        for some in itertools.combinations(numbers, count):
            if numbers[0] in some:
                rest = tuple(number for number in numbers if number not in some)
                yield from itertools.product(trees(some), trees(rest))


def price(tree, scopes, top=True):
    """(scope, nanoseconds, cells made below the top) of a tree; attribute 0 is summed at the top."""
    if isinstance(tree, int):
        return scopes[tree], 0.0, 0
    (p, one, few), (q, two, more) = (price(part, scopes, top=False) for part in tree)
    out = (p | q) & ~1 if top else p | q
    step = NUMPY.product(cells(p), cells(q), cells(out), cells(p | q), cells(p & q & out))
    return out, one + two + step, few + more + (0 if top else cells(out))


@given(st.lists(st.integers(0, 15).map(lambda more: 2 * more + 1), min_size=2, max_size=4))
def test_few_tables_are_paired_at_the_least_cost(scopes):
    """Against every tree over up to four tables that hold the attribute."""
    found = Pairings(SIZES, NUMPY).of(0, tuple(scopes))
    _, nanoseconds, made = price(found.tree, scopes)
    assert (found.made, round(found.nanoseconds, 6)) == (made, round(nanoseconds, 6))
    best = min(price(tree, scopes)[1] for tree in trees(tuple(range(len(scopes)))))
    assert nanoseconds <= best * (1 + 1e-12)


@given(st.lists(st.integers(0, 15).map(lambda more: 2 * more + 1), min_size=6, max_size=12))
def test_many_tables_are_each_multiplied_once(scopes):
    """Greedily, and priced as what it is."""
    found = Pairings(SIZES, NUMPY).of(0, tuple(scopes))

    def leaves(tree):
        return [tree] if isinstance(tree, int) else leaves(tree[0]) + leaves(tree[1])

    assert sorted(leaves(found.tree)) == list(range(len(scopes)))
    assert found.made == price(found.tree, scopes)[2]
    if len(set(scopes)) > 1:  # else the last product still has the attribute when it is priced
        assert math.isclose(found.nanoseconds, price(found.tree, scopes)[1])
