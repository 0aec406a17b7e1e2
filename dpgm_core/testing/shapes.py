"""Structures as learners take them that do not take every one: of two labels, of pairs, without ties."""

from __future__ import annotations

from dpgm_core.domain import Domain
from dpgm_core.structure import Structure

__all__ = ["BINARY_CHAIN", "SHAPES", "binary_form", "shapes_of"]

#: The chain of most checks of learners, of two labels each.
BINARY_CHAIN = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))

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


def binary_form(structure: Structure) -> Structure:
    """The same cliques over attributes of two labels at most.

    >>> binary_form(Structure.chain(Domain.from_sizes({"a": 3, "b": 1}))).shapes
    ((2, 1),)
    """
    domain = Domain.from_sizes({name: min(size, 2) for name, size in structure.domain.sizes.items()})
    plain = [group[0] for group in structure.groups if len(group) == 1]
    return Structure(domain, plain, tied=[group for group in structure.groups if len(group) > 1])
