"""Which bin a number falls in."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgm_core.domain.values import Cut

ENDS = st.one_of(
    st.floats(allow_nan=False), st.integers(-5, 5).map(float), st.sampled_from([-(2.0**63), 2.0**53, 2.0**63])
)
EDGES = (
    st.lists(ENDS, min_size=2, max_size=6, unique=True).map(sorted).filter(lambda ends: ends[0] < ends[-1]).map(tuple)
)


def bin_of(edges: tuple[float, ...], number: Fraction, cap: bool) -> int:
    """By the definition, in exact arithmetic."""
    ends = [edge if math.isinf(edge) else Fraction(edge) for edge in edges]
    if number < ends[0]:
        return 0 if cap else -1
    if number >= ends[-1]:
        return len(ends) - 2 if cap or number == ends[-1] else -1
    return max(at for at, edge in enumerate(ends) if edge <= number)


@settings(max_examples=50)
@given(EDGES, st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=8), st.booleans())
@example((0.0, 2.0**53, 2.0**63), [2**53 - 1, 2**53 + 1, 2**63 - 1], False)
@example((0.2, 0.8), [0, 1], False)
@example((-1.0, 0.2, 0.8), [0, 1], True)
def test_whole_numbers_have_the_bin_of_exact_arithmetic(edges, numbers, cap):
    """One by one and as arrays of either sign, in units of the edges and in parts of them."""
    cut = Cut(edges, cap)
    assert [cut.place(number) for number in numbers] == [bin_of(edges, Fraction(number), cap) for number in numbers]
    for units in (Fraction(1), Fraction(1000), Fraction(1, 7)):
        wanted = [bin_of(edges, number / units, cap) for number in numbers]
        assert cut.whole(np.array(numbers, np.int64), units).tolist() == wanted
        positive = [number for number in numbers if number >= 0]
        wanted = [bin_of(edges, number / units, cap) for number in positive]
        assert cut.whole(np.array(positive, np.uint64), units).tolist() == wanted
    ticks = Cut(edges, cap, 1000)
    assert [ticks.place(number) for number in numbers] == [
        bin_of(edges, Fraction(number, 1000), cap) for number in numbers
    ]


@settings(max_examples=50)
@given(EDGES, st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8), st.booleans())
def test_floats_have_the_bin_of_exact_arithmetic(edges, numbers, cap):
    """Doubles and edges are compared as they are."""
    cut = Cut(edges, cap)
    wanted = [bin_of(edges, Fraction(number), cap) for number in numbers]
    assert cut.real(np.array(numbers, float)).tolist() == [cut.place(number) for number in numbers] == wanted


@pytest.mark.parametrize("cap", [False, True])
def test_what_is_infinite_is_beyond_finite_edges(cap):
    """A cap takes it, and so do infinite edges."""
    numbers = np.array([-math.inf, math.inf])
    assert Cut((0.0, 1.0, 2.0), cap).real(numbers).tolist() == ([0, 1] if cap else [-1, -1])
    assert Cut((-math.inf, 0.0, math.inf), cap).real(numbers).tolist() == [0, 1]


@pytest.mark.parametrize("cap", [False, True])
def test_a_search_and_a_quotient_find_the_same_bin_among_many(cap):
    """A thousand edges nearly alike: on, just below and just above each, between them, far beyond, infinite, none."""
    rng = np.random.default_rng(0)
    edges = np.round(np.linspace(-3.7, 1e5, 1001) + rng.uniform(-9, 9, 1001), 2)
    cut = Cut(tuple(edges.tolist()), cap)
    assert cut._width is not None
    numbers = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), rng.uniform(-1e4, 2e5, 1000)]
    numbers = np.concatenate([*numbers, [1e308, -1e308, np.inf, -np.inf]])
    assert cut.real(numbers).tolist() == [cut.place(number) for number in numbers.tolist()]
    assert len(cut.real(np.array([np.nan]))) == 1
    for others in (edges**3, np.append(edges, np.inf), edges[:9]):
        assert Cut(tuple(np.unique(others).tolist()), cap)._width is None
