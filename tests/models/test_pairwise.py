"""All pairs from the clusters of a tree: each once, of several models at once."""

import itertools

import numpy as np
import pytest

from dpgm_core import Domain, Structure, Tables
from dpgm_core.inference.junction_tree.cluster_tree import cluster_tree
from dpgm_core.models.dependence import pair_tables
from dpgm_core.models.model import Model

#: Three arms: wherever the root is, some cluster has two others below it.
ARMS = Structure(
    Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 3, "e": 2, "f": 4}),
    [("a", "b", "c"), ("a", "d"), ("b", "e"), ("c", "f")],
)


@pytest.mark.parametrize("asked", ["abcdef", "df", "eca"])
def test_each_pair_is_met_once_with_the_tables_of_all_models(asked):
    """The walks of two attributes never both make their pair; attributes that are not asked for make none."""
    rng = np.random.default_rng(0)
    models = [Model(ARMS, Tables(ARMS, rng.normal(size=ARMS.cells))) for _ in range(3)]
    tree = cluster_tree(ARMS)
    tables = [np.stack([one.marginal(clique) for one in models]) for clique in tree.structure.cliques]
    met = {}
    for one, two, table in pair_tables(tree, tables, list(asked)):
        assert frozenset((one, two)) not in met
        met[frozenset((one, two))] = True
        assert table == pytest.approx(np.stack([model.marginal((one, two)) for model in models]), abs=1e-12)
    assert met.keys() == set(map(frozenset, itertools.combinations(asked, 2)))


def test_where_a_separator_is_impossible_nothing_is_divided():
    """A label of probability 0 passes on 0."""
    structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2}))
    tables = [np.array([[[0.5, 0.0], [0.5, 0.0]]]), np.array([[[0.25, 0.75], [0.0, 0.0]]])]
    tree = cluster_tree(structure)
    ((one, two, table),) = pair_tables(tree, tables, ["a", "c"])
    by_a = table if (one, two) == ("a", "c") else table.transpose(0, 2, 1)
    assert by_a.tolist() == [[[0.125, 0.375], [0.125, 0.375]]]
