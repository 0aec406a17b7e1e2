"""Groups of cliques: sizes, look-ups, and what is no clique."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError
from dpgm_core.structure.structure import Structure

NAMES = ("a", "b", "c", "d")
DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 3, "d": 2})


@given(st.lists(st.lists(st.sampled_from(NAMES), max_size=4, unique=True), min_size=1, max_size=8))
def test_nested_cliques_are_those_inside_another(raw):
    """By definition: a strict subset of some clique of the structure."""
    structure = Structure(DOMAIN, raw)
    inside = [one for one in structure if any(set(one) < set(other) for other in structure)]
    assert list(structure.nested) == inside


def test_look_ups():
    """find takes any order of names and says how to turn the table; covering finds the smallest container."""
    structure = Structure(DOMAIN, [("a", "c"), ("a", "b", "c"), ("d",)])
    assert structure.find(("a", "c")) == (0, None)
    assert structure.find(["c", "a"]) == (0, (1, 0))
    assert structure.find("d") == (2, None)
    assert structure.covering(("c",)) == ("a", "c")
    assert structure.covering(("b", "c")) == ("a", "b", "c")
    assert structure.covering(("a", "d")) is None
    for missing in (("a", "b"), ("a", "a"), (), "z"):
        with pytest.raises(StructureError, match="no clique"):
            structure.find(missing)


@pytest.mark.parametrize(
    ("cliques", "tied", "words"),
    [
        ([], [], "at least one clique"),
        ([("a", "z")], [], "'z', which is not in the domain"),
        ([("a", "a")], [], "names an attribute twice"),
        (["ab"], [], "tuple of attribute names"),
        ([("a", ["b"])], [], "not in the domain"),
        ([], [[("a",), ("c",)]], "agree axis by axis"),
        ([], [[("a", "c"), ("c", "b")]], "agree axis by axis"),
        ([], [[]], "empty"),
        ([], [[("a", "b"), ("b", "a")]], "twice"),
    ],
)
def test_wrong_cliques_and_groups_are_refused(cliques, tied, words):
    """One line that names the clique or group."""
    with pytest.raises(StructureError, match=words):
        Structure(DOMAIN, cliques, tied=tied)


def test_sizes_and_buffer_layout():
    """Groups follow each other in the buffer; a tied group has one table and its number of cliques."""
    structure = Structure(DOMAIN, [("a", "c"), ()], tied=[[("a", "b"), ("b", "d")]])
    assert structure.shapes == ((2, 3), (), (2, 2))
    assert structure.sizes == (6, 1, 4)
    assert [(part.start, part.stop) for part in structure.slices] == [(0, 6), (6, 7), (7, 11)]
    assert structure.multiplicities == (1, 1, 2)
    assert structure.untied().cliques == (("a", "c"), (), ("a", "b"), ("b", "d"))
