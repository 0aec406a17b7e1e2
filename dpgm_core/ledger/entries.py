"""Terms and charges of a ledger, checked when they are made and on every reading."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from attrs import frozen

from dpgm_core.errors import BudgetError
from dpgm_core.printable import brief, clipped
from dpgm_core.privacy.amounts import amount, decimal_text, whole
from dpgm_core.privacy.budget import Budget, composed
from dpgm_core.privacy.sensitivity import Neighbours

__all__ = [
    "NOT_RECORDED",
    "LedgerEntry",
    "LedgerStatus",
    "LedgerTerms",
    "check_amounts",
    "check_conditions",
    "text_line",
]

LedgerStatus: TypeAlias = Literal["charged", "released"]

#: What stands for the conditions of charges that were made before ledgers kept them; "none" would be a promise.
NOT_RECORDED = "not recorded before schema 2"

_TEXT_LIMIT = 200
_MAX_CONDITIONS = 10
_PART_LIMIT = 1 << 1328  # 400 digits, what Budget.parse reads back


@frozen(kw_only=True)
class LedgerTerms:
    """The terms that a ledger is created with and keeps for its life.

    Parameters
    ----------
    name : str
        The owner's name of the data set.
    budget : Budget
        All that may ever be spent.
    neighbours : Neighbours
        The neighbouring relation of all releases.
    unit, person, rows_per_person
        The protected unit, as in `Terms`.
    conversion_delta : Fraction or None
        For (epsilon, delta) only: the delta at which zCDP charges are converted.
    identity : str, optional
        Random hexadecimal digits that are also in the files that the ledger paid for; None only while a file of an
        older schema is read.

    Raises
    ------
    BudgetError
        For terms that do not go together.
    """

    name: str
    budget: Budget
    neighbours: Neighbours
    unit: str
    person: str | None
    rows_per_person: int
    conversion_delta: Fraction | None
    identity: str | None = None

    def __attrs_post_init__(self) -> None:
        text_line("the name of a ledger", self.name)
        text_line("the unit of a ledger", self.unit)
        if self.person is not None:
            text_line("the person key of a ledger", self.person)
        if self.identity is not None:
            text_line("the identity of a ledger", self.identity)
        whole("rows_per_person", self.rows_per_person, least=1)
        check_amounts(self.budget)
        if (self.budget.kind == "approx") is not isinstance(self.conversion_delta, Fraction):
            raise BudgetError(f"conversion_delta belongs to an (epsilon, delta) ledger; this one holds {self.budget}")
        if self.conversion_delta is not None and not 0 < self.conversion_delta <= self.budget.delta:
            raise BudgetError(
                f"conversion_delta must be above 0 and at most the delta of {self.budget}; "
                f"got {decimal_text(self.conversion_delta)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, amounts as exact texts."""
        delta = self.conversion_delta
        return {
            "name": self.name,
            "budget": self.budget.to_dict(),
            "neighbours": self.neighbours.value,
            "unit": self.unit,
            "person": self.person,
            "rows_per_person": self.rows_per_person,
            "conversion_delta": None if delta is None else str(delta),
        } | ({} if self.identity is None else {"identity": self.identity})

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> LedgerTerms:
        """Return the terms that `to_dict` wrote."""
        delta = plain["conversion_delta"]
        return cls(
            **plain
            | {
                "budget": Budget.parse(plain["budget"]),
                "neighbours": Neighbours.of(plain["neighbours"]),
                "conversion_delta": None if delta is None else amount("conversion_delta", delta),
            }
        )

    def total(self, costs: Iterable[Budget]) -> Budget:
        """Return what these charges come to, in the kind of the whole budget."""
        costs = list(costs)
        if self.budget.kind == "zcdp":
            return Budget("zcdp", rho=sum((cost.to_zcdp().rho for cost in costs), Fraction(0)))
        if self.budget.kind == "pure":
            return Budget("pure", epsilon=sum((cost.epsilon for cost in costs), Fraction(0)))
        return composed([Budget.zero("approx"), Budget.zero("pure"), *costs], self.conversion_delta)


@frozen(kw_only=True)
class LedgerEntry:
    """One charge of a ledger.

    Parameters
    ----------
    id : int
        Its number, from 1.
    when : str
        The time of the charge, UTC.
    cost : Budget
        What was charged.
    note : str
        The owner's text.
    conditions : tuple of str
        Under which alone the guarantee holds, such as "conditional on public N"; () for a guarantee without conditions.
        A charge that was made before ledgers recorded them has ("not recorded before schema 2",).
    status : {"charged", "released"}
        "released" once the release was saved.
    identity : str, optional
        Random hexadecimal digits that the files paid for by this charge carry too; None for a charge made before schema
        3.
    """

    id: int
    when: str
    cost: Budget
    note: str
    conditions: tuple[str, ...]
    status: LedgerStatus
    identity: str | None = None

    def __repr__(self) -> str:
        return brief("LedgerEntry", f"{self.id}", self.when, str(self.cost), self.status, clipped(self.note, 80))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, amounts as exact texts."""
        return {
            "id": self.id,
            "when": self.when,
            "cost": self.cost.to_dict(),
            "note": self.note,
            "conditions": list(self.conditions),
            "status": self.status,
            "identity": self.identity,
        }


def text_line(what: str, value: object, *, empty: bool = False) -> None:
    """Refuse what is not one short line of text."""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or len(value) > _TEXT_LIMIT
        or not (value.strip() or empty)
    ):
        raise BudgetError(f"{what} must be one line of text of up to {_TEXT_LIMIT} characters")


def check_amounts(budget: object) -> None:
    """Refuse what no ledger can hold, charge or read back."""
    if not isinstance(budget, Budget) or budget.is_zero:
        raise BudgetError(f"a ledger needs a positive Budget, such as Budget.pure(0.5); got {budget}")
    for part in (budget.epsilon, budget.delta, budget.rho):
        if max(part.as_integer_ratio()) >= _PART_LIMIT:
            raise BudgetError("a ledger takes amounts whose numerator and denominator have at most 400 digits")


def check_conditions(conditions: object) -> None:
    """Refuse what is not a tuple of a few short texts."""
    if not isinstance(conditions, tuple) or len(conditions) > _MAX_CONDITIONS:
        raise BudgetError(f"the conditions of a charge must be a tuple of at most {_MAX_CONDITIONS} texts")
    for condition in conditions:
        text_line("a condition of a charge", condition)
