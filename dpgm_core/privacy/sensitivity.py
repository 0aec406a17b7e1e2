"""Sensitivity of tables of counts: neighbours, rows per person, and contributions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from attrs import asdict, field, frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.exact_numbers import Amount, amount, decimal_text, whole
from dpgm_core.errors import BudgetError, OptionError, StructureError, did_you_mean
from dpgm_core.privacy.contrasts import most_odd
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["ClippedScore", "Contributions", "Neighbours", "Sensitivity"]


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
        >>> from dpgm_core.domain.domain import Domain
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

    def of_sum(self, count: int, cells: int) -> Sensitivity:
        """Return that of the sum of so many vectors of these cells, each of which moves as this says.

        Notes
        -----
        By the triangle inequality in each norm, and in whole units of 1/count that of their mean is this one again.

        Examples
        --------
        >>> Sensitivity(l0=1, l1=1, l2_squared=1, linf=1).of_sum(4, cells=3)
        Sensitivity(l0=3, l1=4, l2_squared=16, linf=4)
        """
        return Sensitivity(
            l0=min(cells, count * self.l0),
            l1=count * self.l1,
            l2_squared=count**2 * self.l2_squared,
            linf=count * self.linf,
        )

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
        (`most_odd`). Then L1 = 2 r M, L2^2 = 4 r^2 M and Linf = 2 r. Proof for persons of a and b <=
        r rows: pair the rows, which gives at most r exchanges and additions, whose norms add (triangle inequality). An
        exchange has norms 2 M and 2 sqrt(M), an addition m and sqrt(m), which are no larger: F at random moves half of
        the m - 1 sums that are not empty, so M > (m - 1) / 2.

        Examples
        --------
        >>> from dpgm_core.domain.domain import Domain
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


# --------------------------------------------------------------------------------------------------
# Normalised contributions and clipped scores
#
# Noise must cover the person with most rows. If each row counts as 1, everybody else adds less than was paid for. If
# the rows of a person share one whole, each person adds about the same whatever the number of rows. Shares are whole
# multiples of a public 1/D, rounded down, so that counts stay whole numbers and exact noise applies (proof:
# docs/proofs.md).

_PER = ("clique", "group")


# Counts of 10**12 persons stay below 2**61.
_MAX_GRID = 2**20


def _per(_: object, __: object, value: object) -> None:
    if value not in _PER:
        hint = did_you_mean(str(value), _PER)
        raise OptionError(f"contributions.per must be one of {', '.join(_PER)}; got {value!r}{hint}")


def _grid(_: object, __: object, value: object) -> None:
    whole("contributions.grid", value, least=1, most=_MAX_GRID)


def _empty(_: object, __: object, value: str | None) -> None:
    if value is not None and not (isinstance(value, str) and value):
        raise OptionError(f"contributions.empty must name a label, as a text; got {value!r}")


@frozen(kw_only=True)
class Contributions:
    """How much each row of a person adds to the tables, in units of 1/`grid` of a person.

    Parameters
    ----------
    per : {"clique", "group"}
        "clique": each of the K rows of a person that count for a clique adds floor(D / K) to its cell, so that a person
        adds at most 1 per clique. "group": K is the number of pairs of a row and a clique of a tied group, so that a
        person adds at most 1 per group. K = 0 adds nothing.
    grid : int
        D; at least as many as the pairs that a person can have, or the share of one would be rounded down to 0.
    empty : str, optional
        A label. Cells of a clique in which every attribute has it count neither in the table nor in K. None: all cells
        count.

    Raises
    ------
    OptionError, BudgetError
        For settings that are of another type or out of range.

    References
    ----------
    Bernstein et al. (2017), case study of mobility, in both readings.

    Examples
    --------
    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure(Domain.from_sizes(dict.fromkeys("abc", 2)), [], tied=[[("a", "b"), ("b", "c")]])
    >>> Contributions(per="clique", grid=60).sensitivity(structure, "add-remove", rows_per_person=24).l1
    120
    >>> Contributions(per="group", grid=60).sensitivity(structure, "add-remove", rows_per_person=24).l1
    60
    """

    per: Literal["clique", "group"] = field(validator=_per)
    # 1, ..., 10, 12, 14, 15, 16, 18, 20, 21 and 24 divide it: nothing is lost to flooring there, little elsewhere.
    grid: int = field(default=5040, validator=_grid)
    empty: str | None = field(default=None, validator=_empty)

    @classmethod
    def parse(cls, plain: object) -> Contributions:
        """Return the contributions that a spec states, such as {"per": "group", "grid": 5040, "empty": "absent"}.

        Raises
        ------
        OptionError
            For anything else.

        Examples
        --------
        >>> Contributions.parse({"per": "group"}).grid
        5040
        """
        if isinstance(plain, Contributions):
            return plain
        if not isinstance(plain, Mapping) or "per" not in plain:
            raise OptionError(f"contributions must be a table such as {{ per = 'clique' }}, got {plain!r}")
        for key in plain:
            if key not in ("per", "grid", "empty"):
                raise OptionError(f"contributions have no setting {key!r}{did_you_mean(key, ('per', 'grid', 'empty'))}")
        return cls(**plain)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which `parse` reads back."""
        return asdict(self)

    def check(self, structure: Structure, rows_per_person: int) -> None:
        """Refuse a grid too coarse for a person's rows, and an empty label that no attribute has."""
        whole("rows_per_person", rows_per_person, least=1)
        pairs = rows_per_person * (max(structure.multiplicities) if self.per == "group" else 1)
        if self.grid < pairs:
            raise BudgetError(
                f"contributions.grid = {self.grid} is too coarse: a person can have {pairs} contributions to one "
                f"{self.per}, each of at most 1/{pairs}; use at least {10 * pairs}, it costs nothing"
            )
        if self.empty is None:
            return
        names = sorted({name for clique in structure for name in clique})
        if not any(self.empty in structure.domain[name].labels for name in names):
            near = did_you_mean(self.empty, {label for name in names for label in structure.domain[name].labels})
            raise StructureError(f"contributions.empty: no attribute of the structure has a label {self.empty!r}{near}")

    def wholes(self, structure: Structure) -> FloatArray:
        """Return the most that a person adds to each group's table: (groups,), units of 1/D."""
        return np.array([self._whole(tied) for tied in structure.multiplicities], np.float64)

    def sensitivity(
        self, structure: Structure, neighbours: Neighbours | str, *, rows_per_person: int = 1
    ) -> Sensitivity:
        """Return the largest change that one person can make to all tables, in units of 1/D.

        Notes
        -----
        With h = m_g D (per clique) or D (per group), a group adds h to L1, h^2 to L2^2 and has Linf = h under
        add-remove; replace-one doubles the first two, as the tables of two persons are non-negative. The number of
        rows, r, bounds only how many cells change. Upper bounds, attained by one row if m_g divides D. Proof:
        docs/proofs.md.
        """
        relation = Neighbours.of(neighbours)
        rows = whole("rows_per_person", rows_per_person, least=1)
        l0 = l1 = l2_squared = linf = 0
        for number, (cells, tied) in enumerate(zip(structure.sizes, structure.multiplicities, strict=True)):
            reachable = cells - self._never_hit(structure, number)
            most, hits = self._whole(tied), rows * tied
            if cells == 1 and rows == 1 and reachable and relation is Neighbours.REPLACE_ONE:
                continue  # everybody adds the same
            if reachable == 1 or (reachable and relation is Neighbours.ADD_REMOVE):
                l0, l1, l2_squared, linf = l0 + min(hits, reachable), l1 + most, l2_squared + most**2, max(linf, most)
            elif reachable:
                l0, l1, l2_squared = l0 + min(2 * hits, reachable), l1 + 2 * most, l2_squared + 2 * most**2
                linf = max(linf, most)
        return Sensitivity(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf)

    def describe(self) -> str:
        """Return one sentence for a guarantee."""
        left_out = "" if self.empty is None else f", cells that are {self.empty!r} throughout left out"
        return (
            f"Each person's rows are weighted so that they add at most 1 per {self.per}, in units of 1/{self.grid}"
            f"{left_out}. "
        )

    def empty_codes(self, structure: Structure, clique: Clique) -> tuple[int, ...] | None:
        """Return the codes of the cell of a clique that does not count, or None if all count."""
        labels = [structure.domain[name].labels for name in clique]
        if self.empty is None or not clique or any(self.empty not in own for own in labels):
            return None
        return tuple(own.index(self.empty) for own in labels)

    def _whole(self, tied: int) -> int:
        return self.grid * (tied if self.per == "clique" else 1)

    def _never_hit(self, structure: Structure, number: int) -> int:
        # A group's table has a cell nobody can hit where the empty cells of all its cliques coincide.
        empties = {self.empty_codes(structure, clique) for clique in structure.groups[number]}
        return int(len(empties) == 1 and None not in empties)


# Squares of scores and their sums are exact in doubles below it.
_MAX_UNITS = 2**26


def _norm(value: Amount) -> Fraction:
    return amount("the clip norm", value)


@frozen(kw_only=True)
class ClippedScore:
    """The contribution of a person to a round: the score sum over rows of (T(x) - mu), clipped.

    Parameters
    ----------
    norm : Fraction
        The largest L2 norm of a person's score, in records; positive.
    grid : int
        D; scores are in units of 1/D.

    Notes
    -----
    The score g is scaled by min(1, norm / |g|) and each coordinate is truncated *towards zero* to the grid 1/D, so its
    L2 norm can only shrink: in units of 1/D a person moves the sum by an integer vector of norm at most norm * D.

    References
    ----------
    Abadi et al. (2016), Algorithm 1.

    Examples
    --------
    >>> ClippedScore(norm=2, grid=100).sensitivity(9, "add-remove")
    Sensitivity(l0=9, l1=600, l2_squared=40000, linf=200)
    """

    norm: Fraction = field(converter=_norm)
    grid: int = 1024

    def __attrs_post_init__(self) -> None:
        whole("the grid of clipped scores", self.grid, least=1, most=_MAX_UNITS)
        if not 1 <= self.norm * self.grid <= _MAX_UNITS:
            raise BudgetError(
                f"a clip norm of {decimal_text(self.norm)} on a grid of 1/{self.grid} is "
                f"{decimal_text(self.norm * self.grid)} units, which must lie between 1 and 2**26; choose another grid"
            )

    def sensitivity(self, cells: int, neighbours: Neighbours | str) -> Sensitivity:
        """Return what one person can change in the sum, in units of 1/D; replace-one doubles the norms.

        Parameters
        ----------
        cells : int
            The number of cells of all tables together; L1 <= sqrt(cells) L2.
        neighbours : Neighbours or str
            The neighbouring relation.
        """
        factor = 1 if Neighbours.of(neighbours) is Neighbours.ADD_REMOVE else 2
        squared = math.floor((self.norm * self.grid) ** 2)
        return Sensitivity(
            l0=cells,
            l1=factor * math.isqrt(cells * squared),
            l2_squared=factor**2 * squared,
            linf=factor * math.isqrt(squared),
        )
