"""The rooted junction tree: where attributes are at home, where queries meet, what is refused."""

import itertools
import math

import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.junction_tree import cluster_tree as cluster_tree_module
from dpgm_core.inference.junction_tree.cluster_tree import cluster_tree
from dpgm_core.structure.structure import Structure

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


@pytest.mark.parametrize("count", [12, 40])
def test_what_does_not_fit_is_refused_by_size(count):
    """The error names the query, its cells and the limit."""
    domain = Domain.from_sizes({f"x{place}": 10 for place in range(count)})
    tree = cluster_tree(Structure.chain(domain))
    with pytest.raises(TooLarge, match=r"query of x0, x1, x2, x3.* (10\^\d+|[\d,]+) cells and needs .* 64.0 MiB"):
        tree.plan(domain.names, 2**26)


def test_sizes_beyond_floats_and_texts_can_be_said():
    """Where no float holds the number of cells, and Python refuses to write it out."""
    assert cluster_tree_module._readable(10**5000) == "10^5000"


def test_the_way_counts_as_much_as_the_table():
    """A query of two labels is refused where the message on its way does not fit, and not where it does."""
    domain = Domain.from_sizes({"a": 2, "b": 100, "c": 100, "d": 2})
    tree = cluster_tree(Structure.chain(domain))
    assert tree.plan(("a", "d"), 2**22)
    with pytest.raises(TooLarge, match="of a, d has 4 cells"):
        tree.plan(("a", "d"), 2**16)
