"""Private bins: bins of about as many persons each, found by bisection.

A public grid of cells is cut in two, each part in two again, and so on, level by level. A node is a range of cells,
its candidates are the grid's edges inside it.

Sensitivity. Of the node's n persons r_e are below edge e, 0 below the node's first cell and n below its end. The score
is a whole number, -(|2 r_e - n| + d_e): how far the edge is from the median, in ranks, twice; and d_e = max(0,
2 r_(e-1) - n, n - 2 r_(e+1)), how far the next edge towards the median still is, 0 where that is beyond it. Edges
between the same persons have the same ranks: d tells the two that are next to a heavy cell from all others in the empty
stretch next to it, so that the cell ends as a bin of its own; elsewhere it changes next to nothing. One person more or
less moves a score by at most 2. Persons whose value is missing or unknown are in no cell and take no part.

Distribution. The exponential mechanism (`dpgm_core.privacy.selection`) chooses one edge in each node, at temperature h,
with independent random bits. A node of one cell has no candidate, and no edge is chosen in it.

Cost. One choice costs e = 4 h + 2^-30, or e^2/8, where one row moves scores by at most 2 up or down. Let a person have
at most r rows, and s = r under add-remove and 2 r under replace-one. A whole level, with the rows in as many nodes as
there are, costs s e, or s^2 e^2/8. Each column has a share of the session's budget, spent evenly over the levels of its
bisection.

Proof. Before `RankDistance`. Source of the bisection: Kaplan, Schnapp, Stemmer (2022), Differentially private
approximate quantiles, where the nodes of a level are in parallel as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal, TypeAlias

from attrs import frozen

from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.bins import PrivateBins
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DomainError, StructureError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.selection import cost_of, temperature
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms

__all__ = [
    "BinsPlan",
    "Node",
    "RankDistance",
    "bins_choices",
    "bins_cost",
    "check_votes_first",
    "nodes_of",
    "moved_rows",
    "plan_bins",
    "resolve_public_bins",
]

# Proof of the cost of a level, with r_e, n, d_e, h and e as in the documentation of the module.
#
# Which nodes a level has depends on the choices of the levels above it alone, never on the records: given those, the
# nodes are disjoint, and each row is in one of them at most. A level is the product of independent choices.
#
# One row more, in the cell c of one node: n grows by 1, r_e by 1 for the edges above c and by 0 for those below, so
# 2 r_e - n moves by +1 or -1, |2 r_e - n| by 1 at most, and so does d_e, a largest of such terms and 0 (at the node's
# ends 2 r_e - n is -n or n). Scores move by 2 at most, up for some edges and down for others: U = 2 and R = 4 in the
# words of the exponential mechanism, whose factor 1/2 stays. That n, which is secret, moves too is in this.
#
# Neighbours differ by s rows that come or go, m_c of them in node c, and m_c add up to at most s. One after the other
# they move the scores of a node by 2 m_c, and its range is 4 m_c: the choice costs e_c = 4 h m_c + 2^-30, at most
# m_c e, or e_c^2/8; nothing where m_c is 0. The level costs sum e_c <= s e, or sum e_c^2/8 <= (sum e_c)^2/8 <=
# s^2 e^2/8, and has a bounded range of s e, as ranges of independent choices add. In an empty node, and between edges
# that tie, choices are uniform; nothing in the proof asks for distinct scores or for persons.
#
# Levels add up, each given the ones before: the sum for pure budgets, and the sum of rho.

#: Cells of a grid, from the first to before the last.
Node: TypeAlias = tuple[int, int]


@frozen(kw_only=True)
class RankDistance:
    """The scores of the edges inside a node: -(|2 r - n| + d), how far each is from the node's median, in ranks.

    first, last: the node's cells are first, ..., last - 1 of the grid; its candidates the edges between them, edge e
    before cell e. One row more moves a score by at most 2. Raises StructureError for a node without a candidate.
    """

    first: int
    last: int

    #: Units by which one row more moves a score at most, up or down.
    move = 2

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.first < self.last - 1:
            raise StructureError(
                f"a node has at least two cells, so that an edge is inside; got {self.first} to {self.last}"
            )

    @property
    def candidates(self) -> range:
        """The grid's edges to choose from."""
        return range(self.first + 1, self.last)


def level_price(rows: int, kind: Literal["pure", "zcdp"]) -> int:
    """Return how many times a level costs what one choice does; rows: s, that come or go between neighbours.

    >>> [level_price(2, kind) for kind in ("pure", "zcdp")]
    [2, 4]
    """
    return rows if kind == "pure" else rows**2


def moved_rows(terms: Terms) -> int:
    """Return s, how many rows come or go between neighbours at most."""
    return terms.rows_per_person * (1 if terms.neighbours is Neighbours.ADD_REMOVE else 2)


def nodes_of(cells: int, choices: Sequence[Sequence[int]]) -> list[Node]:
    """Return the nodes after these choices, in order: level by level, one edge for each node that has an edge inside.

    cells: of the grid. Raises StructureError for choices that no bisection makes.
    """
    nodes: list[Node] = [(0, cells)]
    for level, chosen in enumerate(choices, start=1):
        wide = [node for node in nodes if node[1] - node[0] > 1]
        if len(wide) != len(chosen):
            raise StructureError(
                f"level {level} of a bisection of {cells} cells has {len(wide)} nodes to cut, but {len(chosen)} edges"
            )
        for (first, last), edge in zip(wide, chosen, strict=True):
            if edge not in RankDistance(first=first, last=last).candidates:
                raise StructureError(f"level {level} of a bisection cuts cells {first} to {last} outside of them")
        ends = sorted({end for node in nodes for end in node} | set(chosen))
        nodes = list(pairwise(ends))
    return nodes


# dpsynth gives each level four times the rho of the one before; on adult's five numbers and three generated ones even
# levels and factors up to 2 were alike, and 4 was up to a third worse where rho is small. So levels are even.

#: Of a session's budget: for a column that states no share, and for all of those together at most.
DEFAULT_SHARE, MAX_DEFAULT_SHARE = Fraction(1, 50), Fraction(1, 10)


@frozen(kw_only=True)
class BinsPlan:
    """The bins that a session will find for one column.

    attribute: with `private`. temperatures: of each level of the bisection. rows: s, that come or go between
    neighbours. kind: of the session.
    """

    attribute: Attribute
    temperatures: tuple[Fraction, ...]
    rows: int
    kind: Literal["pure", "zcdp"]

    @property
    def cells(self) -> int:
        """The number of cells of the grid."""
        return _cells(self.attribute)

    @property
    def cost(self) -> Budget:
        """The cost of all levels, whatever is found."""
        return Budget.sum([Budget.zero(self.kind), *self.level_costs])

    @property
    def level_costs(self) -> list[Budget]:
        """The cost of each level; rho is (s e)^2 / 8 of its bounded range s e."""
        price = level_price(self.rows, self.kind)
        return [cost_of(h, price, RankDistance.move, self.kind) for h in self.temperatures]


def resolve_public_bins(domain: Domain, measured: Iterable[str]) -> Domain:
    """Return the domain with bins for the columns that need no look at the records.

    These are the columns with a bin for each cell of the grid, and those that are not measured, which keep the equal
    bins that they were declared with. Raises DomainError for columns whose labels are still to be found, which comes
    before a session.
    """
    names, resolved = set(measured), {}
    for attribute in domain:
        if attribute.private is None:
            continue
        if not isinstance(attribute.private, PrivateBins):
            raise DomainError(
                f"the labels of {attribute.name!r} are found before a session opens; use fit, or give it those that "
                "were found with Domain.with_attributes"
            )
        if attribute.name not in names:
            resolved[attribute.name] = attribute.binned(attribute.edges or ())
        elif _cells(attribute) <= attribute.private.count:
            resolved[attribute.name] = attribute.binned(attribute.grid().edges or ())
    return domain.with_attributes(resolved) if resolved else domain


def plan_bins(domain: Domain, measured: Iterable[str], budget: Budget, terms: Terms) -> tuple[BinsPlan, ...]:
    """Return the bins that a session over a domain has to find first, in the domain's order; reads no data.

    measured: the attributes that it may measure. budget: of the session, pure or zCDP. Raises BudgetError for a budget
    that is too small or has nothing left for tables, DomainError for labels that are still to be found.
    """
    domain = resolve_public_bins(domain, measured)
    attributes = [one for one in domain if isinstance(one.private, PrivateBins)]
    if not attributes:
        return ()
    shares, rows = _shares(attributes), moved_rows(terms)
    return tuple(_plan(one, budget, share, rows) for one, share in zip(attributes, shares, strict=True))


def bins_cost(plans: Sequence[BinsPlan], budget: Budget) -> Budget:
    """Return what they cost together; zero where there are none. budget: of the session."""
    return Budget.sum([Budget.zero(budget.kind), *(one.cost for one in plans)])


def check_votes_first(plans: Sequence[BinsPlan], votes: Budget | None) -> None:
    """Refuse, with BudgetError, private bins in a session with votes."""
    if plans and votes is not None:
        raise BudgetError(
            f"votes come first in a session, and so do the private bins of {plans[0].attribute.name!r}; give the "
            "column public bins, or take a selector without votes"
        )


def bins_choices(plans: Sequence[BinsPlan]) -> tuple[tuple[int, Fraction], ...]:
    """Return each level as a planned choice of a session, by its rho."""
    return tuple((1, level.rho) for one in plans for level in one.level_costs)


def _shares(attributes: Sequence[Attribute]) -> list[Fraction]:
    stated = [one.private.share if isinstance(one.private, PrivateBins) else None for one in attributes]
    default = min(DEFAULT_SHARE, MAX_DEFAULT_SHARE / max(1, stated.count(None)))
    shares = [default if share is None else share for share in stated]
    for one, share in zip(attributes, shares, strict=True):
        if not isinstance(share, Fraction) or not 0 < share < 1:
            raise BudgetError(
                f"private bins of {one.name!r} have a share of the budget of {share}; give one above 0 and below 1"
            )
    if not sum(shares) < 1:
        raise BudgetError(
            f"private bins of {', '.join(repr(one.name) for one in attributes)} take {float(sum(shares)):.4g} of the "
            "budget together, which leaves none for tables; give them smaller shares"
        )
    return shares


def _plan(attribute: Attribute, budget: Budget, share: Fraction, rows: int) -> BinsPlan:
    private = attribute.private
    assert isinstance(private, PrivateBins)
    kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
    # A bisection of so few cells ends sooner.
    levels = min(private.count.bit_length() - 1, _cells(attribute) - 1)
    each = budget * (share / (max(1, levels) * level_price(rows, kind)))
    try:
        h = temperature(each, 1, RankDistance.move)
    except BudgetError as error:
        raise BudgetError(
            f"private bins of {attribute.name!r} have {float(share):.4g} of {budget} for {levels} levels of choices: "
            f"{error}; or give the column a larger share, or public bins"
        ) from None
    return BinsPlan(attribute=attribute, temperatures=(h,) * levels, rows=rows, kind=kind)


def _cells(attribute: Attribute) -> int:
    return attribute.private.cells if isinstance(attribute.private, PrivateBins) else 0
