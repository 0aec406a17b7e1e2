"""Bins, cost: what the private bins of a domain will cost, from public facts alone.

Each column has a share of the session's budget, spent evenly over the levels of its bisection. dpsynth gives each level
four times the rho of the one before; on adult's five numbers and three generated ones even levels and factors up to 2
were alike, and 4 was up to a third worse where rho is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from attrs import frozen

from dpgm_core.attribute import Attribute
from dpgm_core.columns.declared import PrivateBins
from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError, DomainError
from dpgm_core.noise.choice import cost_of, temperature
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ranks import RankDistance, check_single_rows, level_price
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms

__all__ = ["BinsPlan", "bins_cost", "check_determined", "plan_bins", "resolve_public_bins"]

#: Of a session's budget: for a column that states no share, and for all of those together at most.
DEFAULT_SHARE, MAX_DEFAULT_SHARE = Fraction(1, 50), Fraction(1, 10)


@frozen(kw_only=True)
class BinsPlan:
    """The bins that a session will find for one column.

    attribute: with `private`. temperatures: of each level of the bisection. neighbours, kind: of the session.
    """

    attribute: Attribute
    temperatures: tuple[Fraction, ...]
    neighbours: Neighbours
    kind: Literal["pure", "zcdp"]

    @property
    def cells(self) -> int:
        """The number of cells of the grid."""
        return _cells(self.attribute)

    @property
    def cost(self) -> Budget:
        """The cost of all levels, whatever is found."""
        price = level_price(self.neighbours, self.kind)
        each = [cost_of(h, price, RankDistance.move, self.kind) for h in self.temperatures]
        return Budget.sum([Budget.zero(self.kind), *each])


def check_determined(domain: Domain) -> None:
    """Refuse, with BudgetError, a domain whose bins or labels are still to be found, where no session finds them.

    >>> check_determined(Domain.from_sizes({"a": 2}))
    """
    if domain.undetermined:
        raise BudgetError(
            f"bins or labels of {', '.join(map(repr, domain.undetermined[:5]))} are still to be found privately, which "
            "one release of tables cannot do; fit with named cliques or with a selector does, or give them public ones"
        )


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

    measured: the attributes that it may measure. budget: of the session, pure or zCDP. Raises BudgetError for persons
    of several rows, and for a budget that is too small or has nothing left for tables; DomainError for labels that are
    still to be found.
    """
    domain = resolve_public_bins(domain, measured)
    attributes = [one for one in domain if isinstance(one.private, PrivateBins)]
    if not attributes:
        return ()
    check_single_rows(terms, [one.name for one in attributes])
    shares = _shares(attributes)
    return tuple(_plan(one, budget, share, terms.neighbours) for one, share in zip(attributes, shares, strict=True))


def bins_cost(plans: Sequence[BinsPlan], budget: Budget) -> Budget:
    """Return what they cost together; zero where there are none. budget: of the session."""
    return Budget.sum([Budget.zero(budget.kind), *(one.cost for one in plans)])


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


def _plan(attribute: Attribute, budget: Budget, share: Fraction, neighbours: Neighbours) -> BinsPlan:
    private = attribute.private
    assert isinstance(private, PrivateBins)
    kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
    # A bisection of so few cells ends sooner.
    levels = min(private.count.bit_length() - 1, _cells(attribute) - 1)
    each = budget * (share / (max(1, levels) * level_price(neighbours, kind)))
    try:
        h = temperature(each, 1, RankDistance.move)
    except BudgetError as error:
        raise BudgetError(
            f"private bins of {attribute.name!r} have {float(share):.4g} of {budget} for {levels} levels of choices: "
            f"{error}; or give the column a larger share, or public bins"
        ) from None
    return BinsPlan(attribute=attribute, temperatures=(h,) * levels, neighbours=neighbours, kind=kind)


def _cells(attribute: Attribute) -> int:
    return attribute.private.cells if isinstance(attribute.private, PrivateBins) else 0
