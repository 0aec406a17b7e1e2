"""Other orders of axes leave the contraction what it is."""

from dpgm_core.domain.domain import Domain
from dpgm_core.inference.junction_tree.compiled import lay_out_axes, price
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure


def test_only_orders_of_what_is_made_change(awkward):
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    other = lay_out_axes(contraction)
    inputs = len(contraction.groups)
    assert other.nodes[:inputs] == contraction.nodes[:inputs]
    assert [sorted(one) for one in other.nodes] == [sorted(one) for one in contraction.nodes]
    assert (other.steps, other.roots, other.buckets) == (contraction.steps, contraction.roots, contraction.buckets)


def _forwards(contraction):
    nodes, total = contraction.nodes, 0.0
    for step in contraction.steps:
        summed = tuple(letter for letter in nodes[step.left] if letter not in nodes[step.out])
        other = summed if step.right is None else nodes[step.right]
        total += price(nodes[step.out], nodes[step.left], other, contraction.sizes)
    return total


def test_other_orders_are_cheaper():
    """Of a grid, whose messages have many axes."""
    domain = Domain.from_sizes({f"a{number}": 3 for number in range(64)})
    contraction = JunctionTree(executor="numpy").compile(Structure.grid(domain, 8, 8)).contraction
    assert _forwards(lay_out_axes(contraction)) < 0.6 * _forwards(contraction)
