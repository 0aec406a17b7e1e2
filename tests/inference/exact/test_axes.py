"""Other orders of axes leave the contraction what it is."""

from dpgm_core.inference.exact.axes import laid_out
from dpgm_core.inference.exact.junction_tree import JunctionTree


def test_only_orders_of_what_is_made_change(awkward):
    contraction = JunctionTree(executor="numpy").compile(awkward).contraction
    other = laid_out(contraction)
    inputs = len(contraction.groups)
    assert other.nodes[:inputs] == contraction.nodes[:inputs]
    assert [sorted(one) for one in other.nodes] == [sorted(one) for one in contraction.nodes]
    assert (other.steps, other.roots, other.buckets) == (contraction.steps, contraction.roots, contraction.buckets)
