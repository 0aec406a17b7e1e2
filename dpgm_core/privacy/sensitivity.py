"""Neighbouring relations, and how far one person moves the tables."""

from __future__ import annotations

import math
from enum import Enum

from attrs import frozen

from dpgm_core.errors import BudgetError, did_you_mean
from dpgm_core.privacy.amounts import whole
from dpgm_core.privacy.parities import most_odd
from dpgm_core.structure import Structure

__all__ = ["Neighbours", "Sensitivity"]


class Neighbours(Enum):
    """The neighbouring relation: which two data sets must be hard to tell apart, in terms of whole persons.

    Examples
    --------
    >>> Neighbours.of("add-remove").value
    'add-remove'
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @classmethod
    def of(cls, name: Neighbours | str) -> Neighbours:
        """Return the relation of this name; BudgetError for anything else. There is no default on purpose."""
        if isinstance(name, Neighbours):
            return name
        for relation in cls:
            if name == relation.value:
                return relation
        known = [relation.value for relation in cls]
        raise BudgetError(
            f"neighbours must be stated as one of {', '.join(known)}; got {name!r}{did_you_mean(name, known)}"
        )


@frozen(kw_only=True)
class Sensitivity:
    """The largest change that one person can make to the tables, in records.

    A mechanism must be private for every shift by whole numbers within all four bounds.

    Parameters
    ----------
    l0 : int
        Number of cells that change.
    l1, l2_squared, linf : int
        Norms of the change; L2 is stored as its exact square.

    Examples
    --------
    >>> Sensitivity(l0=2, l1=2, l2_squared=2, linf=1).l2
    1.4142135623730951
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int

    def __attrs_post_init__(self) -> None:
        for name in ("l0", "l1", "l2_squared", "linf"):
            whole(f"sensitivity {name}", getattr(self, name), least=0)

    @property
    def l2(self) -> float:
        """The Euclidean norm, rounded to the nearest double; use `l2_squared` in exact work."""
        return math.sqrt(self.l2_squared)

    @classmethod
    def of(cls, structure: Structure, neighbours: Neighbours | str, *, rows_per_person: int = 1) -> Sensitivity:
        """Return the sensitivity of all tables of a structure together.

        Parameters
        ----------
        structure : Structure
            The tables.
        neighbours : Neighbours or str
            The neighbouring relation.
        rows_per_person : int
            The most rows that count for one person, r.

        Notes
        -----
        Proposition 3 of Bernstein et al. (2017), generalised. With m_g cliques tied in group g, under add-remove L1 = r
        sum m_g, L2^2 = r^2 sum m_g^2 and Linf = r max m_g; replace-one doubles L1 and L2^2. Under replace-one with r =
        1 a table with one cell never changes and costs nothing. These three are attained, by r equal rows whose
        attributes all have code 0 (for one-cell tables under replace-one with r > 1 they are upper bounds). L0 is an
        upper bound: the r m_g (or 2 r m_g) cells of each group, at most all that it has.

        Examples
        --------
        >>> from dpgm_core.domain import Domain
        >>> from dpgm_core.structure import Structure
        >>> chain = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
        >>> Sensitivity.of(chain, "replace-one")
        Sensitivity(l0=4, l1=4, l2_squared=4, linf=1)
        """
        relation = Neighbours.of(neighbours)
        rows = whole("rows_per_person", rows_per_person, least=1)
        l0 = l1 = l2_squared = linf = 0
        for cells, tied in zip(structure.sizes, structure.multiplicities, strict=True):
            hits = rows * tied  # how often one person is counted in this table
            if relation is Neighbours.ADD_REMOVE or (cells == 1 and rows > 1):
                # One cell, several rows: replacing a person changes how many rows there are, by less than r.
                l0, l1, l2_squared, linf = l0 + min(hits, cells), l1 + hits, l2_squared + hits**2, max(linf, hits)
            elif cells > 1:
                l0, l1, l2_squared = l0 + min(2 * hits, cells), l1 + 2 * hits, l2_squared + 2 * hits**2
                linf = max(linf, hits)
        return cls(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf)

    @classmethod
    def of_contrasts(
        cls, structure: Structure, neighbours: Neighbours | str, *, rows_per_person: int = 1
    ) -> Sensitivity:
        """Return the sensitivity of contrasts: sums of products of binary attributes, one for each clique.

        Parameters
        ----------
        structure : Structure
            The cliques; the contrast of the empty one is the number of records.
        neighbours : Neighbours or str
            The neighbouring relation.
        rows_per_person : int
            The most rows that count for one person, r.

        Notes
        -----
        Add-remove: a row adds +1 or -1 to each of m sums, so L1 = m r, L2^2 = m r^2, Linf = r; attained by r equal rows
        of code 0. Replace-one: one row for another flips some set F of attributes, and moves by 2 the sums whose clique
        has an odd number of attributes in F, and no other; let M bound how many these are
        (`dpgm_core.privacy.parities`). Then L1 = 2 r M, L2^2 = 4 r^2 M and Linf = 2 r. Proof for persons of a and b <=
        r rows: pair the rows, which gives at most r exchanges and additions, whose norms add (triangle inequality). An
        exchange has norms 2 M and 2 sqrt(M), an addition m and sqrt(m), which are no larger: F at random moves half of
        the m - 1 sums that are not empty, so M > (m - 1) / 2.

        Examples
        --------
        >>> from dpgm_core.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",), ("a", "b")])
        >>> Sensitivity.of_contrasts(structure, "replace-one")  # two of the three are moved
        Sensitivity(l0=2, l1=4, l2_squared=8, linf=2)
        """
        relation = Neighbours.of(neighbours)
        rows = whole("rows_per_person", rows_per_person, least=1)
        count = len(structure.groups)
        moved = most_odd(structure) if relation is Neighbours.REPLACE_ONE else 0
        if moved:
            return cls(
                l0=moved if rows == 1 else count, l1=2 * rows * moved, l2_squared=4 * rows**2 * moved, linf=2 * rows
            )
        if relation is Neighbours.REPLACE_ONE and rows == 1:  # the number of records alone, which nobody changes
            return cls(l0=0, l1=0, l2_squared=0, linf=0)
        return cls(l0=count, l1=rows * count, l2_squared=rows**2 * count, linf=rows)
