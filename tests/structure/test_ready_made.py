"""Ready-made sets of cliques against their formulas."""

import math

import pytest

from dpgm_core.errors import StructureError
from dpgm_core.structure import builders as ready_made
from dpgm_core.structure import graphs

NAMES = [f"x{i}" for i in range(7)]


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
    one = ready_made.erdos_renyi(NAMES, 0.4, 3)
    assert one == ready_made.erdos_renyi(NAMES, 0.4, 3) != ready_made.erdos_renyi(NAMES, 0.4, 4)
    assert len(graphs.components(graphs.neighbours_of(NAMES, one))) == 1
    assert ready_made.erdos_renyi(NAMES, 0, 1, connected=False) == ()
    with pytest.raises(StructureError, match="no connected graph"):
        ready_made.erdos_renyi(NAMES[:2], 0, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ready_made.chain(NAMES, 0),
        lambda: ready_made.chain(NAMES, True),
        lambda: ready_made.tree(NAMES, 0),
        lambda: ready_made.complete(NAMES, 8),
        lambda: ready_made.complete([f"x{i}" for i in range(100)], 10),
        lambda: ready_made.grid(NAMES, 2, 3),
        lambda: ready_made.erdos_renyi(NAMES, float("nan"), 1),
        lambda: ready_made.erdos_renyi(NAMES, 1.5, 1),
        lambda: ready_made.erdos_renyi(NAMES, 0.5, -1),
        lambda: ready_made.erdos_renyi(NAMES, 0.5, 1, connected="no"),
    ],
)
def test_senseless_arguments_are_refused(call):
    """StructureError, never a foreign exception or a graph of a million million cliques."""
    with pytest.raises(StructureError):
        call()
