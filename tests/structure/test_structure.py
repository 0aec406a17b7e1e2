"""Structures: cliques, ties, layout, plain values, and cliques that are ready made."""

import itertools
import json
import math
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DpgmError, StructureError
from dpgm_core.structure import builders as directed
from dpgm_core.structure import builders as ready_made
from dpgm_core.structure import graphs
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


def test_duplicates_merge_and_nested_cliques_stay():
    """Equal cliques are one table, contained ones are kept; a tie of one clique is merged as a plain clique."""
    structure = Structure(DOMAIN, [("a", "b")], tied=[[("b", "a")], [("c",)]])
    assert structure.groups == ((("a", "b"),), (("c",),))
    assert structure.duplicates == (("b", "a"),)
    assert structure.multiplicities == (1, 1)
    structure = Structure(DOMAIN, [("a", "b"), ("b", "a"), ("a",), ("c", "d")])
    assert structure.cliques == (("a", "b"), ("a",), ("c", "d"))
    report = structure.describe()
    assert (report.duplicates, report.nested, report.components) == ((("b", "a"),), (("a",),), 2)
    assert "merged duplicates: (b, a)" in str(report)


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


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"clique": [["a"]]}, "did you mean 'cliques'"),
        ({"graph": "chian"}, "did you mean 'chain'"),
        ({"graph": "chain", "ordr": 2}, "did you mean 'order'"),
        ({"graph": "grid", "rows": 2}, "needs columns"),
        ({"graph": "grid", "rows": 3, "columns": 2}, "needs 6 attributes, got 4"),
        ({"graph": "erdos-renyi", "p": 0.5}, "needs seed"),
        ({"graph": "complete", "order": 5}, "got 4"),
        ({"cliques": "ab"}, "list of lists"),
        ({"cliques": [["a", 1]]}, "list of attribute names"),
        ({"parent": {"b": ["a"]}}, "did you mean 'parents'"),
        ({"parents": {"b": ["a"], "order": 2}}, "parents are given to 'order', which is no attribute; known: a, b"),
        ({"parents": {"b": ["a"]}, "order": 2}, "no setting 'order'"),
        ({"parents": {"a": ["c"], "c": ["b"], "b": ["a"]}}, "their own ancestors: a -> b -> c -> a;"),
        ({"parents": [["b", "a"]]}, "parents must be a table"),
    ],
)
def test_wrong_tables_are_refused(plain, words):
    """Wrong keys of a spec's [structure], with what would do."""
    with pytest.raises(StructureError, match=words):
        Structure.from_dict(DOMAIN, plain)


def test_parents_add_the_families_of_all_attributes():
    """Child first, roots too, in the domain's order; then what else is said, equal cliques merged."""
    plain = {"parents": {"c": ["b", "a"], "d": []}}
    assert Structure.from_dict(DOMAIN, plain).cliques == (("a",), ("b",), ("c", "b", "a"), ("d",))
    more = Structure.from_dict(DOMAIN, {**plain, "cliques": [["a", "d"], ["b"]]})
    assert more.cliques == (("a",), ("b",), ("c", "b", "a"), ("d",), ("a", "d"))
    both = Structure.from_dict(DOMAIN, {"graph": "chain", **plain})
    assert both.cliques == (("a",), ("b",), ("c", "b", "a"), ("d",), ("a", "b"), ("b", "c"), ("c", "d"))
    assert Structure.from_dict(DOMAIN, {"parents": {}}).cliques == tuple((name,) for name in NAMES)


def test_singletons_alone_are_the_model_of_independent_attributes():
    """The only key of a structure."""
    domain = Domain.from_sizes({"a": 2, "b": 3})
    assert Structure.from_dict(domain, {"singletons": True}).cliques == (("a",), ("b",))
    with pytest.raises(StructureError, match="at least one clique"):
        Structure.from_dict(domain, {"singletons": False})
    for wrong in (1, "true", None):
        with pytest.raises(StructureError, match="singletons must be true or false"):
            Structure.from_dict(domain, {"cliques": [["a"]], "singletons": wrong})


@st.composite
def parents_of_names(draw):
    """Parents of at most six names, anything goes: cycles, loops, no parents at all."""
    names = "abcdef"[: draw(st.integers(1, 6))]
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


@pytest.mark.landing
def test_a_hopeless_structure_is_priced_not_attempted():
    """400 attributes, all pairs: exact integer sizes, at once."""
    domain = Domain.from_sizes({f"x{i}": 10 for i in range(400)})
    report = Structure.complete(domain).describe()
    assert report.treewidth == 399
    assert report.peak_cells == 10**400


NODES = [f"x{i}" for i in range(7)]


def test_ready_made_cliques():
    """Counts of edges, by their formulas; the paper's third-order chain of ten has 24."""
    ten = [f"x{i}" for i in range(10)]
    assert len(ready_made.chain(ten, 3)) == 9 + 8 + 7
    assert len(ready_made.tree(ten, 3)) == 9
    assert len(ready_made.complete(ten, 3)) == math.comb(10, 3)
    assert len(ready_made.grid(ten, 2, 5)) == 5 + 2 * 4
    one = ready_made.complete(["a"]), ready_made.chain(["a"]), ready_made.tree(["a"]), ready_made.grid(["a"], 1, 1)
    assert one == ((),) * 4


def test_random_graphs_repeat_and_connect():
    """The same seed gives the same graph; connected unless told otherwise; impossible ones are refused."""
    one = ready_made.erdos_renyi(NODES, 0.4, 3)
    assert one == ready_made.erdos_renyi(NODES, 0.4, 3) != ready_made.erdos_renyi(NODES, 0.4, 4)
    assert len(graphs.components(graphs.neighbours_of(NODES, one))) == 1
    assert ready_made.erdos_renyi(NODES, 0, 1, connected=False) == ()
    with pytest.raises(StructureError, match="no connected graph"):
        ready_made.erdos_renyi(NODES[:2], 0, 1)


@pytest.mark.parametrize("call", [
    lambda: ready_made.chain(NODES, 0), lambda: ready_made.chain(NODES, True), lambda: ready_made.tree(NODES, 0),
    lambda: ready_made.complete(NODES, 8), lambda: ready_made.complete([f"x{i}" for i in range(100)], 10),
    lambda: ready_made.grid(NODES, 2, 3), lambda: ready_made.erdos_renyi(NODES, float("nan"), 1),
    lambda: ready_made.erdos_renyi(NODES, 1.5, 1), lambda: ready_made.erdos_renyi(NODES, 0.5, -1),
    lambda: ready_made.erdos_renyi(NODES, 0.5, 1, connected="no"),
])  # fmt: skip
def test_senseless_arguments_are_refused(call):
    """StructureError, never a foreign exception or a graph of a million million cliques."""
    with pytest.raises(StructureError):
        call()
