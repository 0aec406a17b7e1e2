"""Queries on a calibrated junction tree: where they meet, what they sum and share, what is refused."""

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import InferenceError, StructureError, TooLarge
from dpgm_core.inference.contract import Querier
from dpgm_core.inference.junction_tree import cluster_tree as module
from dpgm_core.inference.junction_tree.cluster_tree import cluster_sum, cluster_tree
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine
from dpgm_core.structure.graphs import places
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing import enumerated, potentials
from tests.models.enumerated import summed

LONG = 1500


def ancestors(tree, cluster):
    """The cluster and all above it, by parents alone."""
    found = []
    while cluster >= 0:
        found.append(cluster)
        cluster = tree.parents[cluster]
    return found


def names_of(tree, mask):
    """The attributes of a mask of letters."""
    return {name for name, letter in tree.letter.items() if mask >> letter & 1}


def names_in(tree, part):
    """The attributes of a part, in its order."""
    names = list(tree.letter)
    return [names[letter] for letter in part.letters]


def test_is_a_rooted_junction_forest(awkward):
    """Each attribute's clusters are one subtree under its home; every clique and attribute lies in a cluster."""
    tree = cluster_tree(awkward)
    held, count = [frozenset(clique) for clique in tree.structure.cliques], len(tree.parents)
    for name in awkward.domain.names:
        holding = [cluster for cluster, members in enumerate(held) if name in members]
        tops = [cluster for cluster in holding if tree.parents[cluster] not in holding]
        assert tops == [tree.home[name]]
    assert all(any(set(clique) <= members for members in held) for clique in awkward.cliques)
    assert sorted(tree.entries) == list(range(count))
    for cluster, parent in enumerate(tree.parents):
        assert tree.separators[cluster] == (held[cluster] & held[parent] if parent >= 0 else set())
        assert names_of(tree, tree.members[cluster]) == held[cluster]
        assert names_of(tree, tree.shared[cluster]) == tree.separators[cluster]
        above = ancestors(tree, cluster)
        assert tree.roots[cluster] == above[-1] and tree.jumps[cluster] in above[min(1, len(above) - 1) :]
        below = {tree.entries[other] for other in range(count) if cluster in ancestors(tree, other)}
        assert below == set(range(tree.entries[cluster], tree.entries[cluster] + len(below)))


def test_queries_meet_as_low_as_they_can(awkward):
    """The subtree at the top holds the query and that of none of its children does, unless the top holds it itself."""
    tree = cluster_tree(awkward)
    cliques = tree.structure.cliques

    def held(cluster):
        return {name for other, clique in enumerate(cliques) if cluster in ancestors(tree, other) for name in clique}

    for order in (1, 2, 3):
        for query in itertools.combinations(awkward.domain.names, min(order, len(awkward.domain))):
            parts = tree.plan(query, 2**30)
            assert sorted(name for part in parts for name in names_in(tree, part)) == sorted(query)
            for part in parts:
                asked, inside = set(names_in(tree, part)), set(cliques[part.top])
                assert asked <= held(part.top)
                assert asked <= inside or not any(asked <= held(child) for child in tree.children[part.top])
                carried = [(child, names_of(tree, mask)) for child, mask in part.messages]
                assert set().union(*(names for _, names in carried)) == asked - inside
                assert all(names <= held(child) and child in tree.children[part.top] for child, names in carried)


def test_thousands_of_clusters_do_not_recurse():
    """A chain of 1,500 attributes is planned from end to end."""
    domain = Domain.from_sizes({f"x{place}": 2 for place in range(LONG)})
    tree = cluster_tree(Structure.chain(domain))
    (part,) = tree.plan(("x0", f"x{LONG - 1}"), 2**30)
    assert len(part.messages) <= 2 and {*names_in(tree, part)} == {"x0", f"x{LONG - 1}"}


def test_an_ancestor_is_found_in_few_steps():
    """From the end of a chain of 1,500 clusters to any other: jumps make it tens of steps."""
    tree = cluster_tree(Structure.chain(Domain.from_sizes({f"x{place}": 2 for place in range(LONG)})))
    last = tree.entries.index(LONG - 2)
    for wanted in range(0, LONG - 1, 97):
        cluster, steps = last, 0
        while tree.entries[cluster] > wanted:
            far = tree.jumps[cluster]
            cluster, steps = far if tree.entries[far] >= wanted else tree.parents[cluster], steps + 1
        assert tree.entries[cluster] == wanted and steps <= 4 * math.log2(LONG)


@pytest.mark.parametrize("count", [12, 40, 5000])
def test_what_does_not_fit_is_refused_by_size(count):
    """The error names the query, its cells and the limit."""
    domain = Domain.from_sizes({f"x{place}": 10 for place in range(count)})
    tree = cluster_tree(Structure.chain(domain))
    with pytest.raises(TooLarge, match=r"query of x0, x1, x2, x3.* (10\^\d+|[\d,]+) cells and needs .* 64.0 MiB"):
        tree.plan(domain.names, 2**26)


def test_the_way_counts_as_much_as_the_table():
    """A query of two labels is refused where the message on its way does not fit, and not where it does."""
    domain = Domain.from_sizes({"a": 2, "b": 100, "c": 100, "d": 2})
    tree = cluster_tree(Structure.chain(domain))
    assert tree.plan(("a", "d"), 2**22)
    with pytest.raises(TooLarge, match="of a, d has 4 cells"):
        tree.plan(("a", "d"), 2**16)


# --- How a cluster takes messages in: against one sum over everything


LETTERS = 5
masks = st.integers(1, 2**LETTERS - 1)


@given(
    masks, st.lists(masks, max_size=3), masks, masks, st.lists(st.integers(1, 3), min_size=LETTERS, max_size=LETTERS)
)
@settings(max_examples=80, deadline=None)
def test_stages_equal_one_sum_over_everything(members, taken, keep, separator, sizes):
    """Separators in any relation to each other and to what is kept; cells are those of the tables on the way."""
    taken, keep, separator = [one & members for one in taken], keep & members, separator & members & keep
    rng = np.random.default_rng(0)
    cluster = rng.random([sizes[letter] for letter in places(members)])
    messages = [rng.random([*(sizes[letter] for letter in places(one)), 2 + at]) for at, one in enumerate(taken)]
    found = cluster_sum(members, taken, keep, separator, sizes)

    table, made = cluster.sum(axis=found.summed), []
    made.append(table.size)
    for stage, message in zip(found.stages, messages, strict=True):
        table = table.transpose(stage.turned).reshape(stage.left)
        message = message if stage.taken is None else message.transpose(stage.taken)
        table = np.matmul(table, message.reshape(stage.right)).reshape(stage.made)
        made.append(table.size)
    assert found.work([message.shape[-1] for message in messages]) == sum(made)

    # Letters of the cluster are 0, 1, ...; what messages carry comes after.
    operands = [cluster, [*places(members)]]
    for at, (one, message) in enumerate(zip(taken, messages, strict=True)):
        operands += [message, [*places(one), LETTERS + at]]
    out = [*found.letters, *(LETTERS + at for at in range(len(taken)))]
    wanted = np.einsum(*operands, out)
    assert {*found.letters} == {*places(keep)}
    np.testing.assert_allclose(table.reshape(wanted.shape), wanted, rtol=1e-12)

    front = list(places(separator))
    order = (*front, *found.own)
    turned = table if found.order is None else table.transpose(found.order)
    again = np.einsum(*operands, [*order, *(LETTERS + at for at in range(len(taken)))])
    assert found.shared == tuple(sizes[letter] for letter in front)
    np.testing.assert_allclose(
        turned.reshape(*found.shared, math.prod(again.shape[len(front) :])),
        again.reshape(*found.shared, -1),
        rtol=1e-12,
    )


# --- Queries of a calibrated tree: against the table of all records, and what they share


def joint_of(theta):
    """The probability of every record, one axis per attribute."""
    return enumerated(theta).probabilities.reshape([attribute.size for attribute in theta.structure.domain])


def agrees(theta, queries, **options):
    """Whether the engine's answers are the sums over all records."""
    names, joint = theta.structure.domain.names, joint_of(theta)
    found = JunctionTree(**options).compile(theta.structure).answers(theta, queries)
    return len(found) == len(queries) and all(
        table.shape == (truth := summed(joint, query, names)).shape
        and np.allclose(table, truth, rtol=1e-7, atol=1e-10)
        and not table[truth == 0].any()
        for query, table in zip(queries, found, strict=True)
    )


def subsets(names, most=3):
    """All queries of up to `most` attributes, in one order or the other."""
    found = [query for order in range(1, most + 1) for query in itertools.combinations(names, order)]
    return [query[::-1] if number % 2 else query for number, query in enumerate(found)]


@given(potentials(scales=(0.0, 1.0, 10.0, 200.0, 700.0, 1e5)), st.data())
@settings(max_examples=75, deadline=None)
def test_answers_equal_brute_force(theta, data):
    """Any structure, any potentials, -inf included; queries of any attributes in any order, repeated ones too."""
    names = theta.structure.domain.names
    query = st.permutations(names).flatmap(
        lambda some: st.integers(1, len(some)).map(lambda order: tuple(some[:order]))
    )
    queries = data.draw(st.lists(query, min_size=1, max_size=6))
    assert agrees(theta, [*queries, queries[0]])


CHAIN = Structure.chain(Domain.from_sizes({"a": 3, "b": 2, "c": 3, "d": 2, "e": 2}))
THETA = Tables(CHAIN, np.random.default_rng(3).normal(size=CHAIN.cells) * 2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda joint, mass: joint,
        lambda joint, mass: joint * mass.reshape(*mass.shape, *(1,) * (joint.ndim - mass.ndim)),
        lambda joint, mass: joint / np.flip(mass).reshape(*mass.shape, *(1,) * (joint.ndim - mass.ndim)),
        lambda joint, mass: joint / joint.sum(),
    ],
    ids=["no division", "multiplied", "by another value's probability", "by the total"],
)
def test_a_wrong_division_by_the_separator_is_seen(wrong):
    """The comparison with all records passes, and fails for each wrong division."""
    queries = [("a", "e"), ("b", "d"), ("a", "c", "e")]
    assert agrees(THETA, queries)
    with mock.patch.object(module, "_conditional", wrong):
        assert not agrees(THETA, queries)


def test_impossible_separators_are_not_divided_by():
    """Values of a separator with probability 0 give exact zeros, no warning and no NaN."""
    values = THETA.values.copy()
    values[CHAIN.slices[1]] = np.where(np.arange(6) < 3, -np.inf, values[CHAIN.slices[1]])  # b = 0 is impossible
    theta = THETA.like(values)
    with np.errstate(all="raise"):
        (table,) = JunctionTree().compile(CHAIN).answers(theta, [("b", "e")])
    assert (table[0] == 0).all() and math.isclose(table.sum(), 1)
    assert agrees(theta, subsets("abcde"))


def test_messages_are_shared_and_may_be_forgotten():
    """All pairs of a chain of 12 send each attribute over a separator once; without room answers stay the same."""
    structure = Structure.chain(Domain.from_sizes({f"x{place}": 2 for place in range(12)}))
    theta = Tables(structure, np.random.default_rng(1).normal(size=structure.cells))
    pairs = list(itertools.combinations(structure.domain.names, 2))
    engine = JunctionTree().compile(structure)
    with mock.patch.object(module, "_conditional", wraps=module._conditional) as divided:
        shared = engine.answers(theta, pairs)
        once = divided.call_count
        assert once <= 11 * 11 / 2
        with mock.patch.object(module.TreeQueries, "_keep"):
            again = engine.answers(theta, pairs)
        assert divided.call_count - once > 2 * once
    assert all(np.array_equal(one, two) for one, two in zip(shared, again, strict=True))


def test_sums_are_planned_for_clusters_not_for_queries():
    """All pairs of a chain of 12 need three ways to sum a cluster each, and asked again none."""
    structure = Structure.chain(Domain.from_sizes({f"x{place}": 2 for place in range(12)}))
    theta, engine = Tables.zeros(structure), JunctionTree().compile(structure)
    pairs = list(itertools.combinations(structure.domain.names, 2))
    with mock.patch.object(module, "cluster_sum", wraps=module.cluster_sum) as summed:
        engine.answers(theta, pairs)
        assert 11 <= summed.call_count <= 4 * 11
        summed.reset_mock()
        engine.answers(theta, [pair[::-1] for pair in pairs])
        assert not summed.called


def test_answers_are_the_callers_own():
    """Writing to one changes neither another nor what is kept for those that follow."""
    engine = JunctionTree().compile(CHAIN)
    tree = engine._tree
    found = module.TreeQueries(tree, engine._clusters.infer(THETA.embed(tree.structure)).marginals, keep_bytes=2**20)
    queries = [*CHAIN.cliques, ("a",), ("a", "e"), ("b", "d")]
    first = [found.answer(query, tree.plan(query, 2**20)) for query in queries]
    before = [table.copy() for table in first]
    for table in first:
        table[...] = 7.0
    for query, table in zip(queries, before, strict=True):
        assert np.array_equal(found.answer(query, tree.plan(query, 2**20)), table)


def test_kept_messages_stay_within_their_room():
    """The oldest messages and matrices go when there is no more room, and no table is lost by that."""
    engine = JunctionTree().compile(CHAIN)
    tree = engine._tree
    found = module.TreeQueries(tree, engine._clusters.infer(THETA.embed(tree.structure)).marginals, keep_bytes=100)
    joint = joint_of(THETA)
    for query in subsets("abcde"):
        np.testing.assert_allclose(
            found.answer(query, tree.plan(query, 2**20)), summed(joint, query, CHAIN.domain.names), atol=1e-12
        )
        assert sum(table.nbytes for table in found._kept.values()) == 100 - found._room <= 100


def test_what_does_not_fit_is_refused_before_any_inference():
    """One query too large among others: TooLarge with its size, and nothing was computed."""
    domain = Domain.from_sizes({f"x{place}": 10 for place in range(30)})
    structure = Structure.chain(domain)
    engine = JunctionTree(max_bytes=2**22).compile(structure)
    with (
        mock.patch.object(JunctionTreeEngine, "infer", side_effect=AssertionError("inferred")),
        pytest.raises(TooLarge, match=r"query of x0, x1, x2, x3, ... \(30 attributes\) has 10\^30 cells"),
    ):
        engine.answers(Tables.zeros(structure), [("x0", "x9"), domain.names])


def test_large_clusters_are_for_many_queries():
    """A cycle's cluster of 1,728 cells, which no inference makes, is refused for one query and made for many."""
    domain = Domain.from_sizes({"a": 12, "b": 12, "c": 12, "d": 2})
    structure = Structure(domain, [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    engine = JunctionTree(max_bytes=2**18).compile(structure)
    theta = Tables(structure, np.random.default_rng(0).normal(size=structure.cells))
    with (
        mock.patch.object(JunctionTreeEngine, "infer", side_effect=AssertionError("inferred")),
        pytest.raises(TooLarge, match=r"need 13\.7 KiB for 1 queries at once, against 4\.0 KiB"),
    ):
        engine.answers(theta, [("a", "d")])
    assert agrees(theta, [("a", "d"), *subsets("abcd", most=2)], max_bytes=2**18)


def test_what_fits_no_model_is_refused():
    """As inference refuses it: NaN, an impossible model, potentials over another structure."""
    engine = JunctionTree().compile(CHAIN)
    assert "query" in engine.capabilities and isinstance(engine, Querier)
    with pytest.raises(InferenceError, match="NaN"):
        engine.answers(THETA.like(np.full(CHAIN.cells, np.nan)), [("a", "e")])
    with pytest.raises(InferenceError, match="probability 0"):
        engine.answers(THETA.like(np.full(CHAIN.cells, -np.inf)), [("a", "e")])
    with pytest.raises(StructureError):
        engine.answers(Tables.zeros(Structure(CHAIN.domain, [("a",)])), [("a", "e")])
