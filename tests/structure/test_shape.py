"""Structures: cliques, tied groups, look-ups, sizes, files and the words of refusals."""

import json
import pickle

from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError
from dpgm_core.structure.structure import Structure

NAMES = ("a", "b", "c", "d")
DOMAIN = Domain.from_sizes({"a": 2, "b": 2, "c": 3, "d": 2})
BINARY = Domain.from_sizes(dict.fromkeys(NAMES, 2))

names = st.sampled_from([*NAMES, "z"])
cliques = st.lists(st.lists(names, max_size=3), max_size=4)
odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2) | cliques
plain_structures = st.fixed_dictionaries(
    {},
    optional={
        "cliques": cliques | odd,
        "tied": st.lists(cliques, max_size=2) | odd,
        "graph": st.sampled_from(["chain", "tree", "complete", "grid", "erdos-renyi", "chian"]) | odd,
        "order": st.integers(-1, 5) | odd,
        "branching": odd,
        "rows": st.integers(0, 4) | odd,
        "columns": st.integers(0, 4) | odd,
        "p": st.floats(0.5, 1) | odd,
        "seed": st.integers(0, 3) | odd,
        "connected": odd,
        "parents": st.dictionaries(names, st.lists(names, max_size=2), max_size=3) | odd,
    },
)


@given(plain_structures | odd)
@example({"graph": "complete", "order": 10**30})
@example({"graph": "chain", "order": 10**30})
@example({"tied": [[["a", "b"]], [["b", "a"]]]})
@example({"parents": {"b": ["a"], "c": ["b", "a"]}, "cliques": [["a", "d"]]})
@example({"parents": {3: ["a"]}})
@example({"cliques": [["b", "a"]], "tied": [[["a", "b"]], [["a", "d"], ["b", "d"]]]})
def test_any_plain_value_is_a_structure_or_a_refusal(plain):
    """from_dict raises nothing foreign; what it accepts goes through JSON unchanged, the order of groups included."""
    try:
        structure = Structure.from_dict(BINARY, plain)
    except DpgmError as error:
        assert "\n" not in str(error)
        return
    again = Structure.from_dict(BINARY, json.loads(json.dumps(structure.to_dict())))
    assert again == structure
    assert again.groups == structure.groups
    assert hash(again) == hash(structure)


def test_a_group_of_one_is_a_plain_clique():
    """Tied to nothing is not tied: merged with the same plain clique, reported as a duplicate."""
    structure = Structure(DOMAIN, [("a", "b")], tied=[[("b", "a")], [("c",)]])
    assert structure.groups == ((("a", "b"),), (("c",),))
    assert structure.duplicates == (("b", "a"),)
    assert structure.multiplicities == (1, 1)


def test_equality_is_by_value():
    """Equal domains and groups make equal, interchangeable structures; pickling keeps that."""
    one, other = (Structure(DOMAIN, [("a", "b")]) for _ in range(2))
    assert one == other
    assert {one: 1}[other] == 1
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != Structure(DOMAIN, [("b", "a")])
    assert one != Structure(BINARY, [("a", "b")])


def test_singletons_measure_what_is_in_no_clique():
    """Alone; what a clique or a tied group holds, or what has one label, stays as it is."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 3, "d": 2, "e": 1, "f": 2, "g": 2})
    structure = Structure(domain, [("a", "b")], tied=[[("f",), ("g",)]])
    assert structure.with_singletons().groups == ((("a", "b"),), (("c",),), (("d",),), (("f",), ("g",)))
    plain = {"cliques": [["a", "b"]], "tied": [[["f"], ["g"]]], "singletons": True}
    assert Structure.from_dict(domain, plain) == structure.with_singletons()
    assert Structure.from_dict(domain, plain | {"singletons": False}) == structure
    assert structure.with_singletons().with_singletons() == structure.with_singletons()
