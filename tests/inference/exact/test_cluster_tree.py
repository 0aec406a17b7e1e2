"""The rooted junction tree: where attributes are at home, where queries meet, what is refused."""

import itertools

import pytest

from dpgm_core.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.exact import cluster_tree as cluster_tree_module
from dpgm_core.inference.exact.cluster_tree import cluster_tree
from dpgm_core.structure import Structure

LONG = 1500


def ancestors(tree, cluster):
    """The cluster and all above it, by parents alone."""
    found = []
    while cluster >= 0:
        found.append(cluster)
        cluster = tree.parents[cluster]
    return found


def test_is_a_rooted_junction_forest(awkward):
    """Each attribute's clusters are one subtree under its home; every clique and attribute lies in a cluster."""
    tree = cluster_tree(awkward)
    for name in awkward.domain.names:
        holding = [cluster for cluster, members in enumerate(tree.members) if name in members]
        tops = [cluster for cluster in holding if tree.parents[cluster] not in holding]
        assert tops == [tree.home[name]]
    assert all(any(set(clique) <= members for members in tree.members) for clique in awkward.cliques)
    for cluster, parent in enumerate(tree.parents):
        assert tree.separators[cluster] == (tree.members[cluster] & tree.members[parent] if parent >= 0 else set())
        assert tree.roots[cluster] == ancestors(tree, cluster)[-1]
        for other in range(len(tree.parents)):
            below = tree.entries[cluster] <= tree.entries[other] < tree.exits[cluster]
            assert below == (cluster in ancestors(tree, other))


def test_queries_meet_as_low_as_they_can(awkward):
    """The subtree at the top holds the query and that of none of its children does, unless the top holds it itself."""
    tree = cluster_tree(awkward)

    def held(cluster):
        return {
            name for other, members in enumerate(tree.members) if cluster in ancestors(tree, other) for name in members
        }

    for order in (1, 2, 3):
        for query in itertools.combinations(awkward.domain.names, min(order, len(awkward.domain))):
            for part in tree.plan(query, 2**30):
                asked = set(part.names)
                assert asked <= held(part.top)
                assert asked <= tree.members[part.top] or not any(asked <= held(c) for c in tree.children[part.top])
                carried = set().union(*(names for _, names in part.messages))
                assert carried == asked - tree.members[part.top]
                assert all(names <= held(child) and child in tree.children[part.top] for child, names in part.messages)


def test_thousands_of_clusters_do_not_recurse():
    """A chain of 1,500 attributes is planned from end to end."""
    domain = Domain.from_sizes({f"x{place}": 2 for place in range(LONG)})
    tree = cluster_tree(Structure.chain(domain))
    (part,) = tree.plan(("x0", f"x{LONG - 1}"), 2**30)
    assert len(part.messages) <= 2 and {*part.names} == {"x0", f"x{LONG - 1}"}


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
