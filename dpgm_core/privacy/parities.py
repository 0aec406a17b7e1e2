"""Contrasts, sensitivity: how many contrasts one exchanged record moves, a bound on parities of sets.

Exchanging a record flips a set F of its binary attributes, and so the product of each clique S with |S and F| odd. For
all subsets of a clique of k that is none or 2^(k-1), as parity over subsets is balanced. With sets of two as edges, and
those of one as edges to a vertex of their own, the odd ones are the cut between F and the rest: at most floor(q^2 / 4)
of the edges among q vertices. Disjoint families add up to a bound for all of them, whichever was packed.
"""

from __future__ import annotations

import itertools
from math import comb

from dpgm_core.structure import Structure

__all__ = ["most_odd"]


def most_odd(structure: Structure) -> int:
    """Return a bound on how many cliques have an odd number of attributes in one set F, over all F.

    Exact where the cliques are all sets of some sizes, or all subsets of one clique; else a greedy packing, in the
    order of the domain, of whole cliques with their subsets, then of complete graphs; what is left counts 1 each. The
    empty clique never has an odd number.

    >>> from dpgm_core.domain import Domain
    >>> domain = Domain.from_sizes(dict.fromkeys("abcd", 2))
    >>> most_odd(Structure.complete(domain)), most_odd(Structure.chain(domain))
    (4, 3)
    """
    place = {name: number for number, name in enumerate(structure.domain.names)}
    sets = {frozenset(map(place.__getitem__, clique)) for clique in structure.cliques} - {frozenset()}
    return (_of_all(sets) or _packed(sets)) if sets else 0


def _of_all(sets: set[frozenset[int]]) -> int:
    """The exact number, if the sets are all of some sizes among their members; else 0."""
    sizes = {len(one) for one in sets}
    count = len(frozenset().union(*sets))
    if sum(comb(count, size) for size in sizes) != len(sets):
        return 0
    return max(
        sum(comb(flipped, odd) * comb(count - flipped, size - odd) for size in sizes for odd in range(1, size + 1, 2))
        for flipped in range(1, count + 1)
    )


def _packed(sets: set[frozenset[int]]) -> int:
    left, bound = set(sets), 0
    for one in sorted(sets, key=lambda one: (-len(one), sorted(one))):
        if len(one) < 3:
            break
        inside = [frozenset(part) for size in range(1, len(one) + 1) for part in itertools.combinations(one, size)]
        if all(part in left for part in inside):
            left.difference_update(inside)
            bound += 2 ** (len(one) - 1)
    graph = [tuple(sorted(one)) if len(one) == 2 else (-1, *one) for one in left if len(one) < 3]
    return bound + _cut(graph) + sum(len(one) > 2 for one in left)


def _cut(edges: list[tuple[int, ...]]) -> int:
    """A bound on the largest cut of a graph: complete parts of it, grown one after the other."""
    neighbours: dict[int, int] = {}  # of each vertex, its neighbours as bits, -1 being the first
    for one, two in edges:
        neighbours[one] = neighbours.get(one, 0) | 1 << two + 1
        neighbours[two] = neighbours.get(two, 0) | 1 << one + 1
    bound = 0
    for vertex in sorted(neighbours):
        while neighbours[vertex]:
            part, common = [vertex], neighbours[vertex]
            while common:
                part.append((common & -common).bit_length() - 2)
                common &= neighbours[part[-1]]
            for one, two in itertools.combinations(part, 2):
                neighbours[one] &= ~(1 << two + 1)
                neighbours[two] &= ~(1 << one + 1)
            bound += len(part) ** 2 // 4
    return bound
