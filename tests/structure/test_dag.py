"""Directed graphs: everything a Dag tells against its definition, by brute force; refusals before anything is made."""

import itertools
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgm_core.domain import Listed
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import StructureError, TooLarge
from dpgm_core.structure.dag import MOST_CELLS, Dag
from dpgm_core.structure.structure import Structure

NAMES = "abcdef"


@st.composite
def dags(draw):
    """At most six attributes of one to four labels; parents in any order, the topological order another than theirs."""
    names = NAMES[: draw(st.integers(1, 6))]
    order = draw(st.permutations(names))
    parents = {
        name: draw(st.lists(st.sampled_from(order[:at]), unique=True)) if at else [] for at, name in enumerate(order)
    }
    domain = Domain.from_sizes({name: draw(st.integers(1, 4)) for name in names})
    return Dag(domain, {name: above for name, above in parents.items() if above or draw(st.booleans())}), parents


def paths(parents, start):
    """All directed paths from an attribute, each a tuple of names."""
    below = [name for name, above in parents.items() if start in above]
    return [(start,), *((start, *rest) for name in below for rest in paths(parents, name))]


@given(dags())
def test_what_a_graph_tells_is_what_its_definition_says(made):
    """Children, order, heights, out-degrees, blankets, maximal families and parameters, each from the parents alone."""
    dag, parents = made
    names = dag.domain.names
    assert dag.parents == {name: tuple(parents[name]) for name in names}
    assert list(dag.parents) == list(dag.children) == list(dag.heights) == list(dag.out_degrees) == list(names)
    assert dag.families == tuple((name, *parents[name]) for name in names)
    assert dag.children == {name: tuple(other for other in names if name in parents[other]) for name in names}
    for name in names:
        assert dag.heights[name] == max(map(len, paths(parents, name))) - 1
        assert dag.out_degrees[name] == sum(name in above for above in parents.values())
        together = [{child, *above} for child, above in parents.items() if name in {child, *above}]
        assert dag.markov_blanket(name) == set().union(*together) - {name}
    rows = {name: math.prod(dag.domain[parent].size for parent in parents[name]) for name in names}
    assert dag.parameters == sum(rows[name] * (dag.domain[name].size - 1) for name in names)
    sets = [frozenset(family) for family in dag.families]
    assert len(set(sets)) == len(sets)
    assert dag.maximal == tuple(family for family in dag.families if not any(set(family) < other for other in sets))
    assert all(any(one <= set(family) for family in dag.maximal) for one in sets)


@given(dags())
def test_the_order_is_the_first_topological_one(made):
    """Of all orders with parents before children, the first by the places in the domain; tried out to the last."""
    dag, parents = made
    fits = (
        order
        for order in itertools.permutations(dag.domain.names)
        if all(order.index(parent) < order.index(child) for child, above in parents.items() for parent in above)
    )
    assert dag.order == next(fits)


@given(dags())
def test_its_structure_gives_it_back(made):
    """Of its cliques, also from a file's plain values and whatever their order; pickled; equal by value."""
    dag, _ = made
    structure = dag.structure()
    assert structure.cliques == dag.families and not structure.duplicates
    for one in (
        structure,
        Structure.from_dict(dag.domain, structure.to_dict()),
        Structure(dag.domain, structure.cliques[::-1]),
        Structure.from_dict(dag.domain, {"parents": dag.parents}),
    ):
        assert Dag.of(one) == dag and hash(Dag.of(one)) == hash(dag)
    assert pickle.loads(pickle.dumps(dag)) == dag
    assert Dag(dag.domain, dag.parents) == dag != Dag.of(structure).structure()


def test_graphs_differ_by_parents_their_order_and_labels():
    """Axes of conditional tables follow the order of the parents, so graphs with other orders are other graphs."""
    domain = Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    dag = Dag(domain, {"c": ["a", "b"]})
    assert dag != Dag(domain, {"c": ["b", "a"]})
    assert dag != Dag(domain, {"c": ["a"]})
    assert dag != Dag(Domain.from_sizes({"a": 2, "b": 2, "c": 3}), {"c": ["a", "b"]})
    assert repr(dag) == "Dag(3 attributes, 2 arcs)"


DOMAIN = Domain.from_sizes({"tub": 2, "lung": 2, "bronc": 2, "either": 2, "dysp": 2})


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ({"lung": ["either"], "either": ["tub"], "tub": ["lung"]}, "either -> lung -> tub -> either; take one of"),
        ({"either": ["either", "tub"]}, "either -> either"),
        ({"dysp": ["bronc"], "bronc": ["dysp"], "tub": ["dysp"]}, "bronc -> dysp -> bronc;"),
        ({"dysp": ["bronk"]}, "'bronk' is named as a parent of 'dysp', but is no attribute; did you mean 'bronc'"),
        ({"dyspnoea": ["bronc"]}, "parents are given to 'dyspnoea', which is no attribute; did you mean 'dysp'"),
        ({7: ["bronc"]}, "parents are given to 7, which is no attribute"),
        ({"dysp": ["lung", "bronc", "lung"]}, "'lung' is named twice as a parent of 'dysp'; name it once"),
        ({"dysp": "lung"}, "the parents of 'dysp' must be a list of attribute names, got 'lung'"),
        ({"dysp": 3}, "must be a list of attribute names, got 3"),
        ({"dysp": [["lung"]]}, r"\['lung'\] is named as a parent of 'dysp'"),
        ([("dysp", "lung")], "parents must be a table such as"),
        (None, "parents must be a table"),
    ],
)
def test_wrong_parents_are_refused_in_one_line(parents, words):
    """Cycles spelled out from parent to child; names that are not there with the nearest that is."""
    for make in (lambda: Dag(DOMAIN, parents), lambda: Structure.from_dict(DOMAIN, {"parents": parents})):
        with pytest.raises(StructureError, match=words) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_a_graph_needs_a_domain_and_a_question_a_known_name():
    """The arguments in the wrong order, a blanket of nobody, a name that is a list, and one of ten thousand letters."""
    with pytest.raises(StructureError, match="needs a Domain first, got dict"):
        Dag({"a": ["b"]}, DOMAIN)
    with pytest.raises(StructureError, match="'lungs' is no attribute of the graph; did you mean 'lung'"):
        Dag(DOMAIN, {}).markov_blanket("lungs")
    dag = Dag(Domain.from_sizes({"a": 2, "b": 2}), {})
    with pytest.raises(StructureError, match="no attribute of the graph"):
        dag.markov_blanket(["a"])
    with pytest.raises(StructureError, match="which is no attribute") as caught:
        Dag(dag.domain, {"x" * 10_000: ["a"]})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("cliques", "tied", "words"),
    [
        ([("tub",), ("lung",), ("bronc",), ("either", "tub", "lung"), ("dysp",), ("dysp", "tub")], [], "'dysp' stands"),
        ([("tub",), ("lung",), ("bronc",), ("either", "tub")], [], "'dysp' stands first in no clique"),
        # one table for two cliques with the same attributes: only the first one's child has it
        ([("tub", "lung"), ("lung", "tub"), ("bronc",), ("either",), ("dysp",)], [], "'lung' stands first in no"),
        ([()], [], "it has the empty clique"),
        ([("bronc",), ("either",), ("dysp",)], [[("tub",), ("lung",)]], "some of its cliques are tied"),
        (
            [("tub", "lung"), ("lung", "bronc"), ("bronc", "tub"), ("either",), ("dysp",)],
            [],
            "bronc -> lung -> tub -> bronc",
        ),
    ],
)
def test_structures_that_are_no_graph_are_refused(cliques, tied, words):
    """By the attribute at fault; a graph of two attributes both ways is one table and no graph either."""
    with pytest.raises(StructureError, match=words):
        Dag.of(Structure(DOMAIN, cliques, tied=tied))


def test_a_family_too_large_is_refused_with_its_size_and_nothing_is_made():
    """At the limit it is taken, one label more is not; neither makes anything of a table's size."""
    for last, fits in ((10, True), (11, False)):
        domain = Domain.from_sizes({**{f"x{at}": 10 for at in range(6)}, "y": last})
        tracemalloc.start()
        try:
            if fits:
                assert math.prod(domain.shape(Dag(domain, {"y": domain.names[:-1]}).maximal[0])) == MOST_CELLS
            else:
                with pytest.raises(TooLarge, match="the family of 'y' with its 6 parents has 11,000,000 cells"):
                    Dag(domain, {"y": domain.names[:-1]})
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()


def test_long_graphs_are_no_trouble():
    """A path of 2,000 attributes, the cycle that closes it, and a family of more cells than Python writes."""
    names = [f"x{at}" for at in range(2000)]
    domain = Domain.from_sizes(dict.fromkeys(names, 2))
    dag = Dag(domain, {one: [other] for one, other in itertools.pairwise(names)})
    assert dag.order == tuple(reversed(names)) and dag.heights["x1999"] == 1999
    with pytest.raises(StructureError, match=r"x0 -> x1999 -> .* -> \.\.\. 1,991 more \.\.\. -> .*x1 -> x0") as caught:
        Dag(domain, {**dag.parents, "x1999": ["x0"]})
    assert len(str(caught.value)) < 300
    names = [f"x{at}" for at in range(15_000)]
    with pytest.raises(TooLarge, match=r"14,999 parents has 10\^4515 cells"):
        Dag(Domain.from_sizes(dict.fromkeys(names, 2)), {names[-1]: names[:-1]})


@pytest.mark.parametrize(
    "given", [None, 5, "a", [("a",)], Domain.from_sizes({"a": 2}), Dag(Domain.from_sizes({"a": 2}), {})]
)
def test_a_graph_is_read_from_a_structure(given):
    """Whatever else is given is refused in words."""
    with pytest.raises(StructureError, match="is read from a Structure, got"):
        Dag.of(given)


def test_a_graph_holds_constraints_in_families():
    """One that lies in a family of its own child; a state of parents that leaves the child nothing is found, too."""
    plain = Domain.from_sizes(dict.fromkeys("abc", 2))
    pair = [Listed(name="one", columns=("a", "c"), combinations=(("0", "0"),))]
    other = [*pair, Listed(name="two", columns=("b", "c"), combinations=(("0", "1"),))]
    Dag(Domain(plain.attributes, pair), {"c": ["a"]}).check_constraints()
    with pytest.raises(StructureError, match="constraint 'one' lies in no family"):
        Dag(Domain(plain.attributes, pair), {"b": ["a", "c"]}).check_constraints()  # a and c are both parents
    with pytest.raises(StructureError, match="leave 'c' no label for some of its parents' labels"):
        Dag(Domain(plain.attributes, other), {"c": ["a", "b"]}).check_constraints()  # a = b = 0 leaves c nothing
    chain = Domain(plain.attributes, [*other, Listed(name="both", columns=("a", "b"), combinations=(("0", "0"),))])
    dag = Dag(chain, {"c": ["a", "b"], "b": ["a"]})
    dag.check_constraints()
    assert dag.possible("c")[:, 0, 1].tolist() == [False, True]
    half = {"a": np.array([0.5, 0.5]), "b": np.array([[0.0, 0.5], [1.0, 0.5]]), "c": np.full((2, 2, 2), 0.5)}
    with pytest.raises(StructureError, match="table of 'c' gives a probability to what a constraint rules out"):
        dag.check_constraints(half)
