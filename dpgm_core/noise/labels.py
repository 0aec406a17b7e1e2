"""Labels, cost: what finding the labels of open columns will cost, and how many persons a label needs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from attrs import evolve, frozen

from dpgm_core.attribute import Attribute
from dpgm_core.columns.declared import PrivateLabels
from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError, DomainError, OptionError
from dpgm_core.noise.threshold import ThresholdNoise, threshold_noise
from dpgm_core.privacy.amounts import decimal_text
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms

__all__ = ["LabelsPlan", "open_columns", "plan_labels", "with_placeholders"]


@frozen(kw_only=True)
class LabelsPlan:
    """The labels that a run will find for one open column.

    Parameters
    ----------
    column : str
        The attribute.
    keep : int
        The most labels that are kept.
    budget : Budget
        The (epsilon, delta) of the column.
    noise : ThresholdNoise
        The noise that the budget buys.

    Examples
    --------
    >>> from dpgm_core.privacy.terms import Terms
    >>> noise = threshold_noise(Budget.approx("0.1", "1e-7"), 1, "add-remove")
    >>> LabelsPlan(column="job", keep=9, budget=Budget.approx("0.1", "1e-7"), noise=noise).note()
    "at most 9 labels of 'job' are found first, for (epsilon, delta) = (0.1, 1e-07): a label that 156 persons ..."
    """

    column: str
    keep: int
    budget: Budget
    noise: ThresholdNoise

    def note(self) -> str:
        """Return what a plan says of the column."""
        likely, noise = self.noise.likely(), self.noise
        return (
            f"at most {self.keep:,} labels of {self.column!r} are found first, for {self.budget}: a label that "
            f"{noise.threshold:,} persons have is found about every second time, one that {likely:,} have nine times "
            f"in ten, and one that a single person has with probability {float(noise.published):.2g}; all others count "
            "as one label, and sizes are shown as if so many were found"
        )


def open_columns(domain: Domain) -> tuple[Attribute, ...]:
    """Return the attributes whose labels are still to be found.

    >>> open_columns(Domain.from_sizes({"a": 2}))
    ()
    """
    return tuple(one for one in domain.attributes if isinstance(one.private, PrivateLabels))


def with_placeholders(domain: Domain) -> Domain:
    """Return the domain with placeholders for the labels of open columns: for sizes, and for checks.

    Constraints on open columns are left out: they rule out nothing before labels are found.
    """
    columns = {one.name: evolve(one, private=None) for one in open_columns(domain)}
    if not columns:
        return domain
    constraints = [one for one in domain.constraints if columns.keys().isdisjoint(one.columns)]
    return Domain((columns.get(one.name, one) for one in domain.attributes), constraints)


def plan_labels(domain: Domain, budget: Budget, terms: Terms) -> tuple[LabelsPlan, ...]:
    """Return the labels that a run with this budget finds, each column for its own share; () where no column is open.

    Raises BudgetError, OptionError and DomainError for what cannot work, whatever the records are.

    >>> plan_labels(Domain.from_sizes({"a": 2}), Budget.pure(1), Terms(neighbours="add-remove"))
    ()
    """
    columns = open_columns(domain)
    if not columns:
        return ()
    names = ", ".join(repr(one.name) for one in columns[:4]) + (", ..." if len(columns) > 4 else "")
    if budget.kind != "approx":
        raise BudgetError(
            f"the labels of {names} are to be found privately, which costs an (epsilon, delta), and the budget is "
            f"{budget}; give it a delta (budget = {{ epsilon = 1, delta = 1e-6 }}), or list the labels"
        )
    if terms.contributions is not None:
        raise OptionError(
            f"the labels of {names} are to be found privately, which counts each person once for a label and does not "
            "go with normalised contributions; list the labels, or leave contributions out"
        )
    for one in columns:
        _check(one)
    _check_shares(names, (_declared(one).share for one in columns))
    return tuple(_plan(one, budget, terms) for one in columns)


def _declared(attribute: Attribute) -> PrivateLabels:
    assert isinstance(attribute.private, PrivateLabels)
    return attribute.private


def _check(attribute: Attribute) -> None:
    share: object = _declared(attribute).share
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise DomainError(
            f"attribute {attribute.name!r}: share, of the budget, must be a Fraction between 0 and 1, got {share!r:.60}"
        )


def _check_shares(names: str, shares: Iterable[Fraction]) -> None:
    together = sum(shares, Fraction(0))
    if together >= 1:
        raise BudgetError(
            f"finding the labels of {names} takes {decimal_text(together)} of the budget together, which leaves "
            "nothing to measure tables with; give them smaller shares"
        )


def _plan(attribute: Attribute, budget: Budget, terms: Terms) -> LabelsPlan:
    declared, own = _declared(attribute), budget * _declared(attribute).share
    try:
        noise = threshold_noise(own, terms.rows_per_person, terms.neighbours)
    except BudgetError as error:
        raise BudgetError(f"the labels of {attribute.name!r} cannot be found: {error}") from None
    records, threshold = terms.declared_total, noise.threshold
    if records is not None and declared.keep * threshold > records:
        most = int(records // threshold)
        advice = f"say keep = {most}, or " if most else ""
        raise BudgetError(
            f"{declared.keep:,} labels of {attribute.name!r} are to be found for {own}, which takes about "
            f"{threshold:,} persons each, but only {records:,.0f} records are declared; {advice}give a larger "
            "share, epsilon or delta"
        )
    return LabelsPlan(column=attribute.name, keep=declared.keep, budget=own, noise=noise)
