"""Contrasts: sums of products of binary attributes, measured in place of cells.

Code 0 of a binary attribute is z = +1, code 1 is z = -1. The contrast of a clique S is c_S = sum over records of the
product of z over S; that of the empty clique is the number of records. All contrasts inside a clique C are its table by
another name: n_C(x) = sum over S in C of c_S z_S(x) / 2^|C| (Walsh and Hadamard).

Sensitivity. A row adds +1 or -1 to each contrast. One row in place of another moves by 2 those of an odd number of
flipped attributes, and no other; `most_odd` bounds how many these are.

Cost and distribution. Those of the noise that a mechanism calibrates to `Sensitivity.of_contrasts`.

Proof. In the notes of `Sensitivity.of_contrasts`, with the bound before `most_odd`, and in docs/proofs.md.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from math import comb

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.errors import StructureError
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "MAX_SUM",
    "check_contrasts",
    "has_all_contrasts",
    "monomials",
    "most_odd",
    "noise_ratios",
    "products",
    "spread",
]

#: Attributes of a clique. A clique of k has 2^k products, and tables filled up from them give them back exactly.
MAX_ORDER = 10
#: Noisy sums are clamped to this many records, so that floats hold all cells made of them, and give them back.
MAX_SUM = 2**40


def check_contrasts(structure: Structure) -> None:
    """Refuse, with StructureError, cliques without contrasts: of other than two labels, tied, or too large."""
    tied = [group for group in structure.groups if len(group) > 1]
    if tied:
        raise StructureError(
            f"contrasts are of one clique each, but {_named(tied[0][0])} is tied to {_named(tied[0][1])}; leave "
            "split = 'even', or untie them"
        )
    sizes = structure.domain.sizes
    other = sorted({name for clique in structure.cliques for name in clique if sizes[name] != 2})
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        raise StructureError(
            f"contrasts are of attributes of two labels, but {other[0]!r} has {sizes[other[0]]}{more}; leave "
            "split = 'even', or leave such attributes out"
        )
    long = max(structure.cliques, key=len)
    if len(long) > MAX_ORDER:
        raise StructureError(
            f"contrasts are of cliques of up to {MAX_ORDER} attributes, but {_named(long[:3])} ... has {len(long)}; "
            "leave split = 'even', or name smaller cliques"
        )


# Exchanging a record flips a set F of its binary attributes, and so the product of each clique S with |S and F| odd.
# For all subsets of a clique of k that is none or 2^(k-1), as parity over subsets is balanced. With sets of two as
# edges, and those of one as edges to a vertex of their own, the odd ones are the cut between F and the rest: at most
# floor(q^2 / 4) of the edges among q vertices. Disjoint families add up to a bound for all of them, whichever was
# packed.


def most_odd(structure: Structure) -> int:
    """Return a bound on how many cliques have an odd number of attributes in one set F, over all F.

    Exact where the cliques are all sets of some sizes, or all subsets of one clique; else a greedy packing, in the
    order of the domain, of whole cliques with their subsets, then of complete graphs; what is left counts 1 each. The
    empty clique never has an odd number.
    """
    place = {name: number for number, name in enumerate(structure.domain.names)}
    sets = {frozenset(map(place.__getitem__, clique)) for clique in structure.cliques} - {frozenset()}
    return (_of_all(sets) or _bound_by_packing(sets)) if sets else 0


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


def _bound_by_packing(sets: set[frozenset[int]]) -> int:
    left, bound = set(sets), 0
    for one in sorted(sets, key=lambda one: (-len(one), sorted(one))):
        if len(one) < 3:
            break
        inside = [frozenset(part) for size in range(1, len(one) + 1) for part in itertools.combinations(one, size)]
        if all(part in left for part in inside):
            left.difference_update(inside)
            bound += 2 ** (len(one) - 1)
    graph = [tuple(sorted(one)) if len(one) == 2 else (-1, *one) for one in left if len(one) < 3]
    return bound + _bound_of_cut(graph) + sum(len(one) > 2 for one in left)


def _bound_of_cut(edges: list[tuple[int, ...]]) -> int:
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


def monomials(structure: Structure, *, empty: bool) -> Structure:
    """Return every set of attributes inside a clique, smallest first, as a structure.

    Parameters
    ----------
    structure : Structure
        The cliques.
    empty : bool
        Whether the empty set is one of them, where N is to be measured too.

    Raises
    ------
    StructureError
        For attributes of other than two labels and for tied cliques, by name.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> monomials(Structure(Domain.from_sizes(dict.fromkeys("ab", 2)), [("b", "a")]), empty=True).cliques
    ((), ('a',), ('b',), ('a', 'b'))
    """
    check_contrasts(structure)
    place = {name: number for number, name in enumerate(structure.domain.names)}
    sets = {
        tuple(sorted(places))
        for clique in structure.cliques
        for size in range(1, len(clique) + 1)
        for places in itertools.combinations([place[name] for name in clique], size)
    }
    names = structure.domain.names
    cliques: list[Clique] = [()] if empty else []
    cliques += [tuple(names[number] for number in one) for one in sorted(sets, key=lambda one: (len(one), one))]
    return Structure(structure.domain, cliques)


def has_all_contrasts(structure: Structure, clique: Clique) -> bool:
    """Whether the contrasts of a structure determine the clique's whole table, N known: all sets inside it are there.

    >>> from dpgm_core.domain.domain import Domain
    >>> domain = Domain.from_sizes({"a": 2, "b": 2})
    >>> has_all_contrasts(Structure(domain, [("a", "b"), ("a",)]), ("a", "b"))
    False
    >>> has_all_contrasts(Structure(domain, [("a",)]), ("a",))
    True
    """
    sets = _sets(structure)
    return all(
        frozenset(inside) in sets
        for size in range(1, len(clique) + 1)
        for inside in itertools.combinations(clique, size)
    )


def noise_ratios(sums: Structure, variances: FloatArray, tables: Structure, cells: FloatArray) -> FloatArray:
    """Return the noise variance of each contrast over the one that tables would give it, (sums.groups,).

    variances: of each contrast, (sums.groups,). cells: of each table's cells, (tables.groups,). A table T gives the
    contrast of a set inside it with 2^|T| times its cells' variance, and several tables their mean by inverse variance;
    0 where none does.
    """
    precisions: dict[frozenset[str], float] = {}
    for clique, variance in zip(tables.cliques, cells.tolist(), strict=True):
        for size in range(len(clique) + 1):
            for inside in map(frozenset, itertools.combinations(clique, size)):
                precisions[inside] = precisions.get(inside, 0.0) + 1 / (2 ** len(clique) * variance)
    return np.asarray(variances * [precisions.get(frozenset(clique), 0.0) for clique in sums.cliques])


def products(tables: Tables) -> Array:
    """Return the contrast of each group's own clique, (groups,); whole numbers of whole counts.

    Parameters
    ----------
    tables : Tables
        Of binary attributes, no cliques tied.

    Raises
    ------
    StructureError
        Where a clique has no contrast.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b"), ("a",)])
    >>> products(Tables(structure, np.array([5, 1, 2, 4, 6, 6]))).tolist()
    [6, 0]
    """
    sums = np.zeros(len(tables.structure.groups), dtype=tables.values.dtype)
    for part in _parts(tables.structure):
        table = tables.values[part.cells].reshape(-1, *(2,) * part.order)
        for _ in range(part.order):  # axis by axis, so that no sum on the way is larger than a contrast
            table = table[:, 0] - table[:, 1]
        sums[part.groups] = table
    return sums


def spread(structure: Structure, contrasts: Array, total: float) -> Tables:
    """Return the tables of `structure` from the contrasts of its cliques; those it does not have count as 0.

    Parameters
    ----------
    structure : Structure
        Of binary attributes, no cliques tied.
    contrasts : ndarray of shape (groups,)
        The contrast of each clique.
    total : float
        N, where the empty clique is not among them.

    Notes
    -----
    `products` gives the contrasts back: exactly, if they are whole numbers up to 2^40.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b"), ("a",)])
    >>> spread(structure, np.array([6, 0]), 12.0).values.tolist()
    [4.5, 1.5, 1.5, 4.5, 6.0, 6.0]
    """
    known: FloatArray = np.append(np.asarray(contrasts, dtype=np.float64), [0.0, total])
    values = np.empty(structure.cells)
    for part in _parts(structure):
        table = known[part.inside].reshape(-1, *(2,) * part.order)
        for axis in range(1, part.order + 1):
            plus, minus = np.take(table, 0, axis), np.take(table, 1, axis)
            table = np.stack([plus + minus, plus - minus], axis)
        values[part.cells] = table.reshape(part.cells.shape) / 2**part.order
    return Tables(structure, values)


@lru_cache(maxsize=16)
def _sets(structure: Structure) -> frozenset[frozenset[str]]:
    return frozenset(map(frozenset, structure.cliques))


@frozen(kw_only=True, eq=False)
class _Part:
    """The groups of one order k, all at once.

    groups: their numbers, (n,). cells: where their cells stand, (n, 2^k). inside: of each set of their attributes, in
    the order of the cells (code 1: in the set), the group of its contrast, (n, 2^k); -2 where there is none, and -1 for
    the total in place of the empty clique's.
    """

    order: int
    groups: IntArray
    cells: IntArray
    inside: IntArray


@lru_cache(maxsize=16)
def _parts(structure: Structure) -> tuple[_Part, ...]:
    check_contrasts(structure)
    cliques = [group[0] for group in structure.groups]
    number_of = {frozenset(clique): number for number, clique in enumerate(cliques)}
    by_order: dict[int, list[int]] = {}
    for number, clique in enumerate(cliques):
        by_order.setdefault(len(clique), []).append(number)
    starts = np.array([part.start for part in structure.slices])
    parts = []
    for order, numbers in by_order.items():
        masks = list(itertools.product((False, True), repeat=order))
        inside = [
            number_of.get(frozenset(itertools.compress(cliques[number], mask)), -2 if any(mask) else -1)
            for number in numbers
            for mask in masks
        ]
        groups = np.array(numbers)
        parts.append(
            _Part(
                order=order,
                groups=groups,
                cells=starts[groups][:, None] + np.arange(2**order),
                inside=np.array(inside).reshape(-1, 2**order),
            )
        )
    return tuple(parts)


def _named(clique: Clique) -> str:
    return " x ".join(clique) or "()"
