"""What structures may be or hold that some learners refuse: large cliques, ties, no pair, one label."""

from __future__ import annotations

from dpgm_core.domain import Domain
from dpgm_core.structure import Structure
from dpgm_core.testing.directed import BINARY_CHAIN

__all__ = ["SHAPES", "shapes_of"]

_DOMAIN = BINARY_CHAIN.domain
#: What a structure may be or hold that some learners refuse, by name, each as small as can be; in two labels at most.
SHAPES = {
    "a clique of three": Structure(_DOMAIN, [_DOMAIN.names]),
    "tied cliques": Structure(_DOMAIN, [], tied=[[("a", "b"), ("b", "c")]]),
    "no pair": Structure(_DOMAIN, [(name,) for name in _DOMAIN.names]),
    "one label": Structure.chain(Domain.from_sizes({"a": 1, "b": 2, "c": 2})),
}


def shapes_of(structure: Structure) -> frozenset[str]:
    """Which of SHAPES it is or holds.

    >>> sorted(shapes_of(SHAPES["tied cliques"])), sorted(shapes_of(BINARY_CHAIN))
    (['tied cliques'], [])
    """
    sizes = structure.domain.sizes
    orders = [sum(sizes[name] > 1 for name in clique) for clique in structure.cliques]
    found = {
        "a clique of three": max(map(len, structure.cliques)) > 2,
        "tied cliques": max(structure.multiplicities) > 1,
        "no pair": max(orders) < 2,
        "one label": 1 in sizes.values(),
    }
    return frozenset(name for name, holds in found.items() if holds)
