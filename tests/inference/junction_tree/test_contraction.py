"""What a contraction costs is known, and refused, before anything is allocated."""

import numpy as np
import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.junction_tree.contraction import NUMPY, Pairings, contraction_of
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.graphs import BitGraph
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [14, 60])
def test_what_cannot_fit_is_refused_at_once(rows):
    """A wide grid is refused with its sizes and a way out, before anything is allocated."""
    structure = Structure.grid(Domain.from_sizes({f"x{i}": 10 for i in range(rows**2)}), rows, rows)
    with pytest.raises(TooLarge, match=r"treewidth.*max_bytes = 2\.0 GiB.*loopy-bp"):
        JunctionTree().compile(structure)


def test_the_limit_is_the_memory_taken():
    """A limit of exactly the announced bytes is enough; one byte less is not."""
    structure = Structure.chain(Domain.from_sizes({f"x{i}": 5 for i in range(8)}), order=3)
    engine = JunctionTree(executor="numpy").compile(structure)
    assert JunctionTree(executor="numpy", max_bytes=engine.needs.peak_bytes).compile(structure).needs == engine.needs
    with pytest.raises(TooLarge, match="treewidth 3"):
        JunctionTree(executor="numpy", max_bytes=engine.needs.peak_bytes - 1).compile(structure)


def test_cost_of_a_chain():
    """Sizes by hand: a - b - c of 2, 3, 2 labels; sum a, sum c, and the product of both over b."""
    engine = JunctionTree(executor="numpy").compile(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})))
    assert (engine.needs.treewidth, engine.needs.cells, engine.needs.largest) == (1, 3 + 3 + 1, 3)
    assert engine.needs.multiply_adds == 2 * 6 + 2 * 6 + 3 * 3


@pytest.mark.landing
def test_a_star_of_many_leaves():
    """A naive-Bayes model: 1,200 messages meet in one bucket, more than Python's stack is deep."""
    domain = Domain.from_sizes({"root": 3} | {f"leaf{i}": 2 for i in range(1200)})
    structure = Structure(domain, [(f"leaf{i}", "root") for i in range(1200)])
    theta = Tables(structure, 4 * np.random.default_rng(4).normal(size=structure.cells))
    beliefs = JunctionTree().compile(structure).infer(theta)
    tables = theta.values.reshape(1200, 2, 3)
    leaves = np.logaddexp(tables[:, 0], tables[:, 1])
    root = leaves.sum(axis=0)
    log_partition = np.logaddexp.reduce(root)
    assert beliefs.log_partition == pytest.approx(log_partition, rel=1e-12)
    expected = np.exp(tables - leaves[:, None] + root - log_partition)
    np.testing.assert_allclose(beliefs.marginals.values, expected.reshape(-1), rtol=1e-9, atol=1e-300)


def test_what_only_an_attribute_of_one_label_joins_has_no_message():
    """d is eliminated first and makes a and b neighbours, though no table has both: a's message goes nowhere."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 3, "d": 1}), [("a", "d"), ("d", "b")])
    graph = BitGraph.of(structure.adjacency, structure.domain.sizes)
    contraction = contraction_of(structure, graph.play([2, 0, 1]), Pairings(graph.sizes, NUMPY))
    assert [contraction.nodes[root] for root in contraction.roots] == [(), ()]
    assert [step.right for step in contraction.steps] == [None, None]
