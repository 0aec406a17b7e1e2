"""Polynomials of +1 and -1 codes, and distributions over all states of up to 16 attributes, as arrays of 2^p numbers.

A state is a whole number below 2^p: bit i is set where the code of attribute i is 1, that is z_i = -1. A monomial is
one too, its bits the attributes that it multiplies, so that its value at a state is (-1)^(number of common bits).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpgm_core import Array, Clique, FloatArray, IntArray, Structure, Tables

__all__ = ["clique_of", "degrees", "local", "maximal", "monomials_of", "potentials", "strongest", "transform"]


def transform(values: Array) -> Array:
    """The Walsh transform of (2^p,) numbers: at s the sum over t of values[t] (-1)^(number of common bits of s and t).

    From a polynomial's coefficients to its values, and from a distribution to all its parities; twice is 2^p times what
    went in. p 2^p additions; whole numbers stay whole and exact.

    >>> transform(np.array([1, 2, 0, 0])).tolist()
    [3, -1, 3, -1]
    """
    result = np.array(values)
    width = 1
    while width < len(result):
        pairs = result.reshape(-1, 2, width)
        one, other = pairs[:, 0].copy(), pairs[:, 1].copy()
        np.add(one, other, out=pairs[:, 0])
        np.subtract(one, other, out=pairs[:, 1])
        width *= 2
    return result


def degrees(count: int) -> IntArray:
    """Return how many attributes each monomial below `count`, a power of two, multiplies.

    >>> degrees(4).tolist()
    [0, 1, 1, 2]
    """
    counts = np.zeros(1, np.int64)
    while len(counts) < count:
        counts = np.concatenate([counts, counts + 1])
    return counts


def local(clique: Clique, attributes: Sequence[str]) -> IntArray:
    """The monomials inside a clique, (2^k,), at the places where its table in order has the cells with these codes 1.

    >>> local(("b", "a"), ("a", "b")).tolist()
    [0, 1, 2, 3]
    """
    monomials = np.zeros(1, np.int64)
    for name in clique:
        monomials = (monomials[:, None] | np.array([0, 1 << attributes.index(name)])).reshape(-1)
    return monomials


def monomials_of(structure: Structure, attributes: Sequence[str], order: int) -> IntArray:
    """The monomials of 1 to `order` attributes that lie inside a clique, ascending.

    >>> from dpgm_core import Domain
    >>> monomials_of(Structure.complete(Domain.from_sizes(dict.fromkeys("abc", 2)), 3), "abc", 2).tolist()
    [1, 2, 3, 4, 5, 6]
    """
    there = np.zeros(1 << len(attributes), np.bool_)
    for clique in structure.cliques:
        there[local(clique, attributes)] = True
    there[0] = False
    monomials: IntArray = np.nonzero(there & (degrees(len(there)) <= order))[0]
    return monomials


def clique_of(monomial: int, attributes: Sequence[str]) -> Clique:
    """The attributes that it multiplies.

    >>> clique_of(5, "abc")
    ('a', 'c')
    """
    return tuple(name for place, name in enumerate(attributes) if monomial >> place & 1)


def maximal(monomials: IntArray, size: int) -> list[int]:
    """Return the monomials that lie in no other one, the largest first. size: 2^p, above all of them.

    >>> maximal(np.array([1, 2, 3, 4]), 8)
    [3, 4]
    """
    within = np.zeros(size, np.bool_)  # in one of them, itself included
    within[monomials] = True
    strictly = np.zeros(size, np.bool_)
    width = 1
    while width < size:
        pairs, own = within.reshape(-1, 2, width), strictly.reshape(-1, 2, width)
        own[:, 0] |= own[:, 1] | pairs[:, 1]
        pairs[:, 0] |= pairs[:, 1]
        width *= 2
    largest = monomials[~strictly[monomials]].tolist()
    return sorted(set(largest), key=lambda one: (-one.bit_count(), one))


def potentials(structure: Structure, attributes: Sequence[str], coefficients: NDArray[np.float64]) -> Tables:
    """A polynomial as log-potentials: each clique's table is the sum of its monomials, each of them in one clique only.

    coefficients: (2^p,); that of the constant is left out. A monomial in no clique of the structure is lost.
    """
    left = np.array(coefficients, np.float64)
    left[0] = 0.0
    parts: list[FloatArray] = []
    for clique in structure.cliques:
        own = local(clique, attributes)
        parts.append(transform(left[own]))
        left[own] = 0.0
    return Tables(structure, np.concatenate(parts))


def strongest(
    structure: Structure, attributes: Sequence[str], coefficients: NDArray[np.float64], above: float
) -> Structure:
    """The structure whose cliques are the largest monomials with an absolute coefficient above `above`.

    Those inside a clique of `structure` alone; its attributes that are in none of them stand alone.
    """
    inside = monomials_of(structure, attributes, len(attributes))
    largest = maximal(inside[np.abs(coefficients[inside]) > above], len(coefficients))
    covered = 0
    for one in largest:
        covered |= one
    alone: list[Clique] = [(name,) for place, name in enumerate(attributes) if not covered >> place & 1]
    return Structure(structure.domain, [*(clique_of(one, attributes) for one in largest), *alone])
