"""Directed graphs as plain tables: families and circles against their definitions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.errors import StructureError
from dpgm_core.structure import structure as directed

NAMES = [f"x{i}" for i in range(7)]


@st.composite
def parents_of_names(draw):
    """Parents of at most six names, anything goes: cycles, loops, no parents at all."""
    names = NAMES[: draw(st.integers(1, 6))]
    return {name: draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) for name in names}


@given(parents_of_names())
def test_directed_cycles_are_found_if_there_are_any(parents):
    """Some order of all names puts parents first, or what is found is a cycle that exists, from parent to child."""
    cycle = directed.directed_cycle(parents)
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
            directed.families(list(parents), parents)
    else:
        assert directed.families(list(parents), parents) == tuple((name, *above) for name, above in parents.items())


def test_long_cycles_and_long_names_are_spelled_out_at_their_ends():
    """A cycle of 30 names whole, of 31 with the middle counted; names of 40 characters at most, and no line breaks."""
    thirty = [f"x{at}" for at in range(30)]
    assert directed.cycle_text(thirty).split(" -> ") == [*thirty, "x0"]
    shown = directed.cycle_text([*thirty, "x30"]).split(" -> ")
    assert shown == [*thirty[:5], "... 22 more ...", *thirty[27:], "x30", "x0"]
    assert directed.cycle_text(["a\nb" * 20]).count("a") == 28 and "\n" not in directed.cycle_text(["a\nb"])
