"""Contrasts: sums of products of binary attributes, measured in place of cells.

Code 0 of a binary attribute is z = +1, code 1 is z = -1. The contrast of a clique S is c_S = sum over records of the
product of z over S; that of the empty clique is the number of records. All contrasts inside a clique C are its table by
another name: n_C(x) = sum over S in C of c_S z_S(x) / 2^|C| (Walsh and Hadamard).
"""

from __future__ import annotations

from dpgm_core.arrays import Array
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["monomials", "products", "spread"]


def monomials(structure: Structure, *, empty: bool) -> Structure:
    """Every set of attributes inside a clique, smallest first; with the empty one, where N is to be measured too.

    Raises StructureError for attributes of other than two labels and for tied cliques, by name.
    """
    raise NotImplementedError


def products(tables: Tables) -> Array:
    """c_S of each group's own clique, (groups,); whole numbers of whole counts."""
    raise NotImplementedError


def spread(structure: Structure, contrasts: Array, total: float) -> Tables:
    """Tables of `structure` filled up from the contrasts of its cliques, (groups,), those it has not taken as 0.

    total: N, where the empty clique is not among them.
    """
    raise NotImplementedError
