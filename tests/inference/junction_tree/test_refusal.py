"""A refusal names where a model is too wide, and what would do."""

import pytest

from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.structure.structure import Structure


def test_a_clique_too_large_is_named():
    """One clique of five large attributes in a chain of small ones."""
    domain = Domain.from_sizes({f"x{i}": 2 for i in range(5)} | {f"big{i}": 100 for i in range(5)})
    structure = Structure(domain, [("x0", "x1"), ("x1", "x2"), ("x2", "big0"), tuple(f"big{i}" for i in range(5))])
    with pytest.raises(TooLarge) as found:
        JunctionTree().compile(structure)
    assert "widest cluster is the clique big0, big1, big2, big3, ... (5 attributes)" in str(found.value)


def test_the_attribute_that_joins_everything_is_named():
    """Twenty pairs, each with the hub: without the hub nothing is wide."""
    names = [f"x{i}" for i in range(40)]
    domain = Domain.from_sizes(dict.fromkeys(names, 10) | {"hub": 50})
    pairs = [(names[i], names[i + 1]) for i in range(39)]
    structure = Structure(domain, [*pairs, *((one, two, "hub") for one, two in pairs)])
    with pytest.raises(TooLarge, match=r"\(without hub the largest table has 10 cells\)"):
        JunctionTree(max_bytes=100_000).compile(structure)
    grid = Structure.grid(Domain.from_sizes({f"x{i}": 10 for i in range(196)}), 14, 14)
    with pytest.raises(TooLarge) as found:
        JunctionTree().compile(grid)
    assert "without" not in str(found.value)  # no single attribute helps
