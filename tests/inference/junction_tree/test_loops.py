"""Loops cover every cell once, and packings are orders of the same axes."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.inference.junction_tree.compiled import arrange_loops, loops_of, packings, price

SIZES = (2, 3, 4, 5, 6)
TABLES = st.lists(st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 1, 2)]), min_size=5, max_size=5)


def _tables(draw):
    r, p, q = ([letter for letter, tables in enumerate(draw) if table in tables] for table in range(3))
    return tuple(r), tuple(reversed(p)), tuple(q)


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_loops_are_all_of_the_sum(draw):
    tables = _tables(draw)
    loops = loops_of(*tables, SIZES)
    found = arrange_loops(loops)
    assert sorted(found.inner + found.outer) != [] and math.prod(loop[0] for loop in loops) == math.prod(SIZES)
    ordered = [loop if not found.swap else (*loop[:2], loop[3], loop[2]) for loop in found.inner + found.outer]
    assert sorted(loop for loop in ordered if loop[0] > 1) == sorted(loop for loop in loops if loop[0] > 1)
    for orders in packings(*tables):
        assert [sorted(order) for order in orders] == [sorted(table) for table in tables]


def test_long_runs_are_cheaper():
    """Of the same work: a product along runs of 64, and one whose runs are of 8."""
    long, short = ((2, 0, 1), (3, 0, 1), (3, 2)), ((0, 1, 2), (3, 0, 1), (3, 2))
    assert price(*long, (8, 8, 8, 8)) < price(*short, (8, 8, 8, 8))
