"""Terms and entries of a ledger, and how its charges add up."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from attrs import frozen

from dpgm_core._util.exact_numbers import amount, decimal_text, sqrt_floor, whole
from dpgm_core.errors import BudgetError, Overspent, brief, clipped, did_you_mean
from dpgm_core.privacy.budget import Budget, compose_budgets
from dpgm_core.privacy.gdp import APART, MOVED_CELLS, drawn_cells, gdp_delta
from dpgm_core.privacy.sensitivity import Neighbours

__all__ = [
    "ACCOUNTS",
    "LedgerAccount",
    "LedgerEntry",
    "LedgerStatus",
    "LedgerTerms",
    "NOT_RECORDED",
    "check_amounts",
    "check_conditions",
    "gaussian_part",
    "part_text",
    "text_line",
]

LedgerStatus: TypeAlias = Literal["charged", "released"]
LedgerAccount: TypeAlias = Literal["concentrated", "gaussian"]
ACCOUNTS: tuple[LedgerAccount, ...] = ("concentrated", "gaussian")

#: Conditions of charges that were made before ledgers recorded them; "none" would be a promise.
NOT_RECORDED = "not recorded before schema 2"

_TEXT_LIMIT = 200
_MAX_CONDITIONS = 10
_PART_LIMIT = 1 << 1328  # 400 digits, what Budget.parse reads back
#: Charges that a ledger under the Gaussian account has room for at least.
_MIN_CHARGES = 2**10

# which kinds of charges a concentrated ledger of a kind can add up
_TAKES = {"pure": ("pure",), "zcdp": ("pure", "zcdp", "gdp"), "approx": ("pure", "zcdp", "gdp", "approx")}


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
    unit : str
        What is protected, in words.
    person : str or None
        The person key, as in `Terms`; of two related tables what `Terms.key` says of their keys.
    rows_per_person : int
        As in `Terms`.
    conversion_delta : Fraction or None
        For (epsilon, delta) under the concentrated account only: the delta at which zCDP charges are converted.
    identity : str, optional
        Random hexadecimal digits that are also in the files that the ledger paid for; None only while a file of an
        older schema is read.
    account : {"concentrated", "gaussian"}
        How charges add up: rhos, or squares of mu; see `Ledger`.
    mu_squared : Fraction or None
        Of the Gaussian account only: what all charges of mu may sum to, as squares.
    other : Budget or None
        Of the Gaussian account only: the part of an (epsilon, delta) for charges that have no mu.

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
    account: LedgerAccount = "concentrated"
    mu_squared: Fraction | None = None
    other: Budget | None = None

    def __attrs_post_init__(self) -> None:
        text_line("the name of a ledger", self.name)
        text_line("the unit of a ledger", self.unit)
        if self.person is not None:
            text_line("the person key of a ledger", self.person)
        if self.identity is not None:
            text_line("the identity of a ledger", self.identity)
        whole("rows_per_person", self.rows_per_person, least=1)
        check_amounts(self.budget)
        if self.account not in ACCOUNTS:
            raise BudgetError(
                f"the account of a ledger is one of {', '.join(ACCOUNTS)}; got {self.account!r}"
                f"{did_you_mean(str(self.account), ACCOUNTS)}"
            )
        if self.account == "gaussian":
            self._check_gaussian()
            return
        if self.budget.kind == "gdp":
            raise BudgetError(f"a ledger of {self.budget} adds squares of mu; create it with account = 'gaussian'")
        if self.mu_squared is not None or self.other is not None:
            raise BudgetError("a part for other charges belongs to a ledger with account = 'gaussian'")
        if (self.budget.kind == "approx") is not isinstance(self.conversion_delta, Fraction):
            raise BudgetError(f"conversion_delta belongs to an (epsilon, delta) ledger; this one holds {self.budget}")
        if self.conversion_delta is not None and not 0 < self.conversion_delta <= self.budget.delta:
            raise BudgetError(
                f"conversion_delta must be above 0 and at most the delta of {self.budget}; "
                f"got {decimal_text(self.conversion_delta)}"
            )

    def _check_gaussian(self) -> None:
        """Refuse a Gaussian account that its budget does not cover."""
        if self.budget.kind not in ("approx", "gdp"):
            raise BudgetError(
                f"a ledger with account = 'gaussian' holds mu or an (epsilon, delta), not {self.budget}; zCDP does not "
                "imply GDP"
            )
        if self.conversion_delta is not None:
            raise BudgetError(
                "a ledger with account = 'gaussian' adds no rho, so it has no conversion_delta; leave it out"
            )
        if not isinstance(self.mu_squared, Fraction) or self.mu_squared <= 0:
            raise BudgetError("a ledger with account = 'gaussian' needs what its charges of mu may sum to")
        if self.budget.kind == "gdp":
            if self.mu_squared != self.budget.mu_squared or self.other is not None:
                raise BudgetError(f"a ledger of {self.budget} has no part for other charges, and no other sum of mu")
            return
        curve = gaussian_part(self.budget, self.other)
        delta = curve.delta * (1 - APART)
        if drawn_cells(curve.epsilon, curve.delta) < MOVED_CELLS * _MIN_CHARGES:
            raise BudgetError(
                f"{curve} has no exact Gaussian account, as delta is too small or epsilon too large for noise that is "
                "drawn on whole numbers; create the ledger with account = 'concentrated'"
            )
        if Fraction(gdp_delta(self.mu_squared, curve.epsilon)) > delta:
            raise BudgetError(f"{curve} does not cover charges of {Budget('gdp', mu_squared=self.mu_squared)}")

    @property
    def max_charges(self) -> int | None:
        """How many charges the Gaussian account of an (epsilon, delta) has room for; None for any number."""
        if self.account != "gaussian" or self.budget.kind != "approx":
            return None
        return _max_charges(self.budget, self.other)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, amounts as exact texts."""
        delta = self.conversion_delta
        plain = {
            "name": self.name,
            "budget": self.budget.to_dict(),
            "neighbours": self.neighbours.value,
            "unit": self.unit,
            "person": self.person,
            "rows_per_person": self.rows_per_person,
            "conversion_delta": None if delta is None else str(delta),
        }
        if self.identity is not None:
            plain["identity"] = self.identity
        if self.account == "gaussian":
            other = None if self.other is None else self.other.to_dict()
            plain |= {"account": self.account, "mu_squared": str(self.mu_squared), "other": other}
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> LedgerTerms:
        """Return the terms that `to_dict` wrote."""
        delta, exact = plain["conversion_delta"], dict(plain)
        if plain.get("mu_squared") is not None:
            exact["mu_squared"] = amount("mu_squared", plain["mu_squared"])
        if plain.get("other") is not None:
            exact["other"] = Budget.parse(plain["other"])
        return cls(
            **exact
            | {
                "budget": Budget.parse(plain["budget"]),
                "neighbours": Neighbours.of(plain["neighbours"]),
                "conversion_delta": None if delta is None else amount("conversion_delta", delta),
            }
        )

    def parts(self, costs: Iterable[Budget]) -> tuple[Budget, Budget]:
        """Return what the charges of a Gaussian account come to: those of mu, and the others."""
        mu_squared = epsilon = delta = Fraction(0)
        for cost in costs:
            if cost.kind == "approx":
                epsilon, delta = epsilon + cost.epsilon, delta + cost.delta
            else:
                mu_squared += cost.to_gdp().mu_squared
        return Budget("gdp", mu_squared=mu_squared), Budget("approx", epsilon=epsilon, delta=delta)

    def total(self, costs: Iterable[Budget]) -> Budget:
        """Return what these charges come to, in the kind of the whole budget; of a Gaussian account rounded up."""
        costs = list(costs)
        if self.account == "gaussian":
            mu, others = self.parts(costs)
            if self.budget.kind == "gdp":
                return mu
            curve = Budget.zero("approx")
            if not mu.is_zero:
                curve = mu.to_approx(gaussian_part(self.budget, self.other).delta)
            return curve + others
        if self.budget.kind == "zcdp":
            return Budget("zcdp", rho=sum((cost.to_zcdp().rho for cost in costs), Fraction(0)))
        if self.budget.kind == "pure":
            return Budget("pure", epsilon=sum((cost.epsilon for cost in costs), Fraction(0)))
        return compose_budgets([Budget.zero("approx"), Budget.zero("pure"), *costs], self.conversion_delta)

    def fits(self, costs: Sequence[Budget]) -> bool:
        """Whether all these charges are within the budget; exact."""
        if self.account == "concentrated":
            return self.total(costs) <= self.budget
        mu, others = self.parts(costs)
        assert self.mu_squared is not None
        most = self.max_charges
        within = mu.mu_squared <= self.mu_squared and (most is None or len(costs) <= most)
        return within and others <= (self.other or Budget.zero("approx"))

    def left(self, costs: Iterable[Budget], kind: str = "gdp") -> Budget:
        """Return what one more charge may cost, in the kind of the budget; of a Gaussian account in mu.

        kind: "approx" for the part for other charges of a Gaussian account.
        """
        if self.account == "concentrated":
            return self.budget - self.total(costs)
        mu, others = self.parts(costs)
        if kind == "approx":
            return (self.other or Budget.zero("approx")) - others
        assert self.mu_squared is not None
        return Budget("gdp", mu_squared=self.mu_squared) - mu

    def refuse(self, budget: Budget, costs: Sequence[Budget]) -> None:
        """Refuse what cannot be charged after these charges: BudgetError for its kind, Overspent for too much."""
        check_amounts(budget)
        named = f"ledger {self.name!r}"
        gaussian = self.account == "gaussian"
        if gaussian and budget.kind == "zcdp":
            raise BudgetError(
                f"{budget} cannot be charged to {named}, which adds squares of mu: zCDP does not imply GDP; ask for "
                "mu, or (epsilon, delta)"
            )
        if gaussian and budget.kind == "approx" and self.other is None:
            raise BudgetError(
                f"{budget} cannot be charged to {named}, which adds squares of mu and has no part for charges that "
                "have none, such as labels, votes and rounds of subsamples; ask for mu, as Budget.gdp_within gives it, "
                "or create a ledger with other = an (epsilon, delta)"
            )
        if not gaussian and budget.kind not in _TAKES[self.budget.kind]:
            raise BudgetError(
                f"{budget} cannot be charged to {named}, which holds {self.budget}: that kind does not "
                f"add up to it; spend a budget of kind {' or '.join(_TAKES[self.budget.kind])}, or use another ledger"
            )
        if self.fits([*costs, budget]):
            return
        if gaussian and len(costs) == self.max_charges:
            raise Overspent(
                f"{named} has room for {len(costs)} charges under its exact Gaussian account, and holds as many; "
                "nothing was charged: learn and sample from what was released before, which is free"
            )
        kind = "approx" if budget.kind == "approx" else "gdp"
        left = self.left(costs, kind)
        of = self.budget
        if gaussian:
            of = Budget("gdp", mu_squared=self.mu_squared or Fraction(0)) if kind == "gdp" else self.other or of
        spent = of - left
        raise Overspent(
            f"{budget} was asked of {named}, but {part_text(spent, up=True)} of {of} is spent and only "
            f"{part_text(left, up=False)} is left; nothing was charged: "
            f"{'' if left.is_zero else 'ask for no more than is left, or '}learn and sample from what was released "
            "before, which is free"
        )


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


def gaussian_part(whole: Budget, other: Budget | None) -> Budget:
    """Return what an (epsilon, delta) has for charges of mu, beside a part for others; BudgetError where nothing is."""
    if other is None:
        return whole
    if not isinstance(other, Budget) or whole.kind != "approx" or other.kind != "approx":
        raise BudgetError(f"the part for other charges is an (epsilon, delta) of an (epsilon, delta); got {other!r}")
    check_amounts(other)
    if not (other.epsilon < whole.epsilon and other.delta < whole.delta):
        raise BudgetError(f"a part of {other} for other charges leaves nothing of {whole} for mu; make it smaller")
    return whole - other


@lru_cache(maxsize=64)
def _max_charges(whole: Budget, other: Budget | None) -> int:
    curve = gaussian_part(whole, other)
    return drawn_cells(curve.epsilon, curve.delta) // MOVED_CELLS


def part_text(budget: Budget, *, up: bool) -> str:
    """Return a budget as text, its amounts in six digits, rounded up or down.

    >>> part_text(Budget.approx("1.00000001", "1e-6"), up=True), part_text(Budget.pure("2/3"), up=False)
    ('(epsilon, delta) = (1.00001, 1e-06)', 'epsilon = 0.666666')
    """
    context = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR)

    def short(part: Fraction) -> Fraction:
        return Fraction(context.divide(part.numerator, part.denominator))

    if budget.kind == "gdp":
        mu = sqrt_floor(budget.mu_squared)
        if up and mu**2 < budget.mu_squared:
            mu *= 1 + Fraction(1, 2**60)
        return str(Budget("gdp", mu_squared=short(mu) ** 2))
    return str(Budget(budget.kind, epsilon=short(budget.epsilon), delta=short(budget.delta), rho=short(budget.rho)))


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
    if budget.kind == "approx" and not (budget.epsilon and budget.delta):
        raise BudgetError(f"a ledger takes an (epsilon, delta) of which both are positive, and got {budget}")
    for part in (budget.epsilon, budget.delta, budget.rho, budget.mu_squared):
        if max(part.as_integer_ratio()) >= _PART_LIMIT:
            raise BudgetError("a ledger takes amounts whose numerator and denominator have at most 400 digits")


def check_conditions(conditions: object) -> None:
    """Refuse what is not a tuple of a few short texts."""
    if not isinstance(conditions, tuple) or len(conditions) > _MAX_CONDITIONS:
        raise BudgetError(f"the conditions of a charge must be a tuple of at most {_MAX_CONDITIONS} texts")
    for condition in conditions:
        text_line("a condition of a charge", condition)
