"""The durable record of what has been spent on one data set: an SQLite file that is charged before noise is drawn.

Terms (relation, unit, person key, rows per person, whole budget) are fixed when the owner creates it. A charge is
committed to disk before `charge` returns, one writer at a time, so neither several processes nor a kill at any point
can spend more than the budget: a crash wastes what was charged and leaks nothing. Amounts are exact fractions.

Composition. Pure epsilons add, deltas add, rhos add (Dwork and Roth 2014, Theorem 3.16; Bun and Steinke 2016, Lemma
1.7); a stated conversion_delta turns the rhos of an (epsilon, delta) ledger into epsilon (`privacy.conversion`).
Amounts may be chosen after seeing earlier releases as long as one kind is charged (privacy filters: Rogers, Roth,
Ullman, Vadhan 2016; Feldman and Zrnic 2021); how an (epsilon, delta) ledger is split between zCDP and other charges
must not depend on earlier releases.

A ledger under the *Gaussian account* adds squares of mu, which is stronger where everything charged is Gaussian.

Claim. Fix B and (E, D), the part for other charges. Let each charge pay, given all that came out before, for what is
mu_i-GDP, with sum mu_i^2 <= B on every path, or else for what is (e_j, d_j)-DP, with sums of at most E and D on every
path; which charge comes next, and its amount, may depend on all that came out. Then the whole is (epsilon + E, delta +
D)-DP for every (epsilon, delta) of a normal number of shift sqrt(B).

Proof, for at most n charges, by induction. Let H_a(P, Q) = sum max(P - a Q, 0) and h_B that of the normal number; the
claim is H_a <= h_B(a e^-E) + D. Let the first charge have P and Q over outcomes y. If it is mu-GDP, H_a <= sum P(y)
[h_(B - mu^2)(a e^-E Q(y) / P(y)) + D] <= h_B(a e^-E) + D, as (P, Q) and a normal number of shift sqrt(B - mu^2) are
together dominated by one of shift sqrt(B) (`dpgm_core.privacy.session_account`). If it is (e, d)-DP, write c = a e^-E
and q = e^e Q(y) / P(y): H_a <= sum P(y) h_B(c q) + D - d. Where q >= 1, h_B(c q) <= h_B(c), as h_B falls; elsewhere
h_B(c q) <= q h_B(c) + 1 - q <= h_B(c) + 1 - q, as it is convex and h_B(0) = 1, and the sum of P(y) (1 - q) over these y
is at most d. A charge that pays for a session stands for the session's steps, each of which has a mu_i of its own, so
that sessions may run at the same time. Source for charges of mu alone: Smith and Thakurta (2022), Fully adaptive
composition for Gaussian differential privacy.

A pure epsilon counts as mu^2 = (pi / 2) epsilon^2; zCDP implies no mu, and is refused. `dpgm_core.privacy.gdp` has what
drawn noise differs by, which limits the number of charges.

Only numbers, times of charges, the owner's texts and the conditions of charges are stored; nothing computed from data.

The file alone is the ledger: after a crash it holds every charge that was acknowledged, or is refused as damaged until
the journal next to it is there, which the next call uses. A file that is whole is never rolled back. Limits: keep it on
a local disk (networks may not lock); a file of several names (hard links) is refused; of one that is mounted under two
names the journal is found under one only, so mount the folder; and whoever restores an old copy can spend again.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpgm_core._util.exact_numbers import Amount, amount, decimal_text, whole
from dpgm_core._util.html import Html, card, first
from dpgm_core.domain.related import Related, is_description
from dpgm_core.errors import BudgetError, DpgmError, ModelFileError, brief, clipped
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger_file import (
    CHARGED,
    TALLIED,
    add,
    bring_up_to_date,
    check_rights,
    new_identity,
    read,
    recover,
    write_new,
)
from dpgm_core.privacy.ledger_terms import (
    NOT_RECORDED,
    LedgerAccount,
    LedgerEntry,
    LedgerTerms,
    check_amounts,
    check_conditions,
    gaussian_part,
    part_text,
    text_line,
)
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import PUBLIC_N, Terms, change_factor, default_unit, grow_budget

__all__ = ["Ledger", "LedgerEntry", "LedgerTerms", "charged_budget", "largest_release"]

_RULES = {
    "pure": "Pure epsilons add.",
    "zcdp": "Rhos add; a pure charge of epsilon counts as epsilon^2 / 2.",
    "approx": "Epsilons add and deltas add.",
}
_GAUSSIAN_RULE = "Gaussian account: squares of mu add; a pure charge of epsilon counts as mu^2 = (pi / 2) epsilon^2."

# Exact sums of many odd fractions grow without bound; beyond 400 digits they are shown on this grid, against us.
_GRID = 10**100


class Ledger:
    """A ledger file; make one with `Ledger.create` or `Ledger.open`.

    Every call opens the file, reads it afresh and closes it, so an object may be shared by threads and survive a fork.
    Damaged, foreign and too new files, and those of several names (hard links), raise ModelFileError at any call.

    Parameters
    ----------
    path : Path
        The file.
    terms : LedgerTerms
        Its terms.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "survey.ledger"
    >>> ledger = Ledger.create(path, name="survey", budget=Budget.pure(1), neighbours="add-remove")
    >>> entry = ledger.charge(Budget.pure("0.3"), note="first release")
    >>> print(ledger.remaining())
    epsilon = 0.7
    """

    def __init__(self, path: Path, terms: LedgerTerms) -> None:
        self.path = path
        self.terms = terms
        self._charged: dict[int, str] = {}  # identities of the charges made through this object, by number

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        name: str,
        budget: Budget,
        neighbours: Neighbours | str,
        unit: str | None = None,
        person: str | None = None,
        rows_per_person: int = 1,
        related: Related | None = None,
        conversion_delta: Amount | None = None,
        account: LedgerAccount | None = None,
        other: Budget | None = None,
    ) -> Ledger:
        """Make a new ledger file, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file.
        name, budget, neighbours, unit, person, rows_per_person
            The terms; see `LedgerTerms`. unit: by default a person if there is a person key, else a record.
        related : Related, optional
            The statement about two related tables, in the place of a person key.
        conversion_delta : int, float, str, Decimal or Fraction, optional
            Half the budget's delta by default.
        account : {"concentrated", "gaussian"}, optional
            How charges add up, for the ledger's life. "concentrated": rhos, and epsilons with deltas. "gaussian":
            squares of mu, for an (epsilon, delta) or mu. Default: "gaussian" for mu, else "concentrated".
        other : Budget, optional
            Under the Gaussian account: a part of the (epsilon, delta) for charges that have no mu, such as labels.

        Raises
        ------
        BudgetError
            For terms that make no sense and for an existing file.
        ModelFileError
            When the file cannot be written.
        """
        path = _follow_links(path, new=True)
        check_amounts(budget)
        stated = None if conversion_delta is None else amount("conversion_delta", conversion_delta)
        if account is None:
            account = "gaussian" if budget.kind == "gdp" else "concentrated"
        mu_squared: Fraction | None = None
        if account == "gaussian":
            if budget.kind in ("gdp", "approx"):
                curve = gaussian_part(budget, other)
                mu_squared = (curve.gdp_within() if curve.kind == "approx" else curve).mu_squared
        elif stated is None and budget.kind == "approx":
            stated = budget.delta / 2
        if related is not None and (person is not None or rows_per_person != 1):
            raise BudgetError("a ledger has one unit: give person or related, not both")
        terms = LedgerTerms(
            name=name,
            budget=budget,
            neighbours=Neighbours.of(neighbours),
            unit=unit or default_unit(person, related),
            person=person if related is None else related.describe(),
            rows_per_person=rows_per_person,
            conversion_delta=stated,
            identity=new_identity(),
            account=account,
            mu_squared=mu_squared,
            other=other,
        )
        if terms.person is None and rows_per_person > 1:  # no run could state such terms
            raise BudgetError(
                f"rows_per_person = {rows_per_person} needs a person key: name the column that identifies a person"
            )
        write_new(path, terms)
        return cls(path, terms)

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Open an existing ledger, and bring one of an older dpgm to today's form; never creates one.

        A ledger of an older dpgm that may not be written is read as it is, from schema 2 on.

        Raises
        ------
        ModelFileError
            For a file that is missing, damaged or no ledger.
        BudgetError
            Where another process keeps it locked.
        """
        path = _follow_links(path)
        if not os.path.isfile(path):  # noqa: PTH113 - also of a name that is too long
            raise ModelFileError(f"there is no ledger {path}; create it with `dpgm ledger create` or Ledger.create")
        bring_up_to_date(path)
        with recover(path) as connection:
            terms, _ = read(path, connection, TALLIED)
        return cls(path, terms)

    @property
    def name(self) -> str:
        """The owner's name of the data set."""
        return self.terms.name

    @property
    def budget(self) -> Budget:
        """All that may ever be spent."""
        return self.terms.budget

    @property
    def identity(self) -> str | None:
        """Random hexadecimal digits that tell this ledger from others of the same name.

        None for a ledger of an older dpgm that may not be written, which therefore has none.
        """
        return self.terms.identity

    def provenance(self, entry: int | None) -> dict[str, Any]:
        """Return what a file states of a charge that was made through this object."""
        facts = {"ledger": self.name, "entry": entry, "ledger_identity": self.identity}
        return facts if entry not in self._charged else facts | {"entry_identity": self._charged[entry]}

    def entry_of(self, provenance: Mapping[str, Any]) -> LedgerEntry | None:
        """Return the charge that paid for a file with this provenance, or None.

        A file that was written before ledgers had identities is known by the ledger's name and the number of the charge
        alone. It belongs to a charge that was made before, too.
        """
        if provenance.get("ledger") != self.name or provenance.get("ledger_identity") not in (None, self.identity):
            return None
        key = provenance.get("entry"), provenance.get("entry_identity")
        return next((one for one in self.history() if (one.id, one.identity) == key), None)

    def check_terms(self, terms: Terms) -> None:
        """Refuse, with BudgetError, a release under any other relation, unit, person key or rows per person."""
        pairs = {
            "neighbours": (self.terms.neighbours.value, terms.neighbours.value),
            "unit": (self.terms.unit, terms.protected),
            "person": (self.terms.person, terms.key),
            "rows_per_person": (self.terms.rows_per_person, terms.rows_per_person),
        }
        for what, (fixed, stated) in pairs.items():
            if fixed != stated:
                raise BudgetError(
                    f"a release with {what} = {stated!r} was asked of ledger {self.name!r}, which was created with "
                    f"{what} = {fixed!r}; guarantees of different kinds do not add up: "
                    "use the ledger's terms, or a ledger of its own"
                )

    def check(self, budget: Budget) -> None:
        """Refuse what `charge` would refuse now, and charge nothing."""
        check_rights(self.path)
        with recover(self.path) as connection:
            self._refuse(budget, self._charges(connection))

    def charge(self, budget: Budget, *, note: str = "", conditions: tuple[str, ...] = ()) -> int:
        """Charge a budget, on disk when this returns. Draw noise after it, never before.

        Parameters
        ----------
        budget : Budget
            What the release costs.
        note : str
            The owner's text, up to 200 characters, kept in the file.
        conditions : tuple of str
            Under which alone the guarantee holds, at most ten (see `LedgerEntry`).

        Returns
        -------
        int
            The number of the entry.

        Raises
        ------
        Overspent
            Where too little is left; nothing is charged.
        BudgetError
            For a kind that the ledger cannot add up, or when another process locks the file too long; nothing is
            charged.
        """
        text_line("the note of a charge", note, empty=True)
        check_conditions(conditions)
        check_rights(self.path)
        with recover(self.path) as connection:
            # The lock comes first: what is read cannot change before it is written.
            connection.execute("BEGIN IMMEDIATE")
            self._refuse(budget, self._charges(connection))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            identity = new_identity()
            if budget.kind == "gdp" and self.terms.account == "concentrated":
                budget = budget.to_zcdp()  # which is what it adds, and a dpgm from before mu reads
            number = add(connection, now, budget, note, conditions, identity)
            self._charged[number] = identity
            connection.execute("COMMIT")
            return number

    def mark_released(self, entry: int) -> None:
        """Record that the release paid by this entry was saved. Raises BudgetError for a number that does not exist."""
        whole("the number of a ledger entry", entry, least=1, most=2**63 - 1)
        with recover(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._charges(connection)
            if not connection.execute("UPDATE charges SET status = 'released' WHERE id = ?", (entry,)).rowcount:
                raise BudgetError(f"ledger {self.name!r} has no entry {entry}")
            connection.execute("COMMIT")

    def spent(self) -> Budget:
        """Return what all charges come to, saved or not, in the kind of the whole budget.

        Under the Gaussian account the sum of mu, without charges to the part for others; `to_dict` has those too.
        """
        costs = [entry.cost for entry in self.history()]
        terms = self.terms
        return _readable(terms.total(costs) if terms.account == "concentrated" else terms.parts(costs)[0], math.ceil)

    def remaining(self) -> Budget:
        """Return what one more charge of the ledger's own kind may cost; under the Gaussian account of mu.

        Notes
        -----
        An (epsilon, delta) ledger with zCDP charges may have room for more rho than this pair suggests, because the
        conversion is concave in rho and its delta is counted once; `check` computes it exactly.
        """
        return _readable(self.terms.left(entry.cost for entry in self.history()), math.floor)

    def history(self) -> tuple[LedgerEntry, ...]:
        """Return every charge, oldest first."""
        with recover(self.path) as connection:
            return self._charges(connection, TALLIED)

    def to_dict(self) -> dict[str, Any]:
        """Return the terms and totals as plain values; conditions: under which charges were made, and how many.

        Under the Gaussian account of an (epsilon, delta): also what all charges come to at the ledger's delta, rounded
        up, the (epsilon, delta) that one more release may ask for, rounded down, and the part for other charges.
        """
        terms, entries = self.terms, self.history()
        costs = [entry.cost for entry in entries]
        facts: dict[str, Any] = {"spent": self.spent().to_dict(), "remaining": self.remaining().to_dict()}
        if terms.account == "gaussian" and terms.budget.kind == "approx":
            more = largest_release(terms, costs)
            facts["spent_in_all"] = _readable(terms.total(costs), math.ceil).to_dict()
            facts["one_release"] = None if more is None else more.to_dict()
            if terms.other is not None:
                facts["other_spent"] = _readable(terms.parts(costs)[1], math.ceil).to_dict()
        return terms.to_dict() | facts | {"conditions": _conditions(entries)}

    def describe(self) -> str:
        """Return the terms and the total, in words."""
        terms, entries = self.terms, self.history()
        costs = [entry.cost for entry in entries]
        rows = "1 row each" if terms.rows_per_person == 1 else f"{terms.rows_per_person} rows each"
        if terms.person is not None:
            rows = terms.person if is_description(terms.person) else f"{rows}, person key {terms.person!r}"
        lines = [
            f"ledger {terms.name!r}: {terms.unit}, {rows}, neighbours {terms.neighbours.value}",
            f"budget:    {terms.budget}",
            f"spent:     {part_text(terms.total(costs), up=True)} in {len(entries)} charge(s)",
            *_left_lines(terms, costs),
        ]
        if terms.conversion_delta is not None:
            lines.append(
                f"zCDP charges: their rhos add and are converted at delta' = {decimal_text(terms.conversion_delta)}."
            )
        lines += _remarks(terms, entries)
        lost = sum(entry.status == "charged" for entry in entries)
        if lost:
            lines.append(f"{lost} charge(s) not marked as saved: paid for, whether or not anything was released.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return brief("Ledger", clipped(self.name, 60), str(self.budget), clipped(self.path, 200))

    def _repr_html_(self) -> Html:
        """Return a card read afresh; for a file that cannot be read, one that says so."""
        try:
            entries = self.history()
        except DpgmError as error:
            return card(f"Ledger {clipped(self.name)}", [("file", clipped(self.path, 200)), ("not read", str(error))])
        costs = [entry.cost for entry in entries]
        facts = [("budget", str(self.budget)), ("spent", part_text(self.terms.total(costs), up=True))]
        facts += [("left", part_text(self.terms.left(costs), up=False)), ("account", self.terms.account)]
        facts += [("charges", f"{len(entries):,}"), ("protected", self.terms.unit)]
        facts += [("relation", self.terms.neighbours.value), ("remarks", " ".join(_remarks(self.terms, entries)))]
        rows = ((one.id, one.when, str(one.cost), one.status, one.note) for one in reversed(entries))
        header = ["charge", "when (UTC)", "cost", "status", "note"]
        return card(f"Ledger {clipped(self.name)}", facts, first(header, rows, len(entries)))

    def _charges(self, connection: sqlite3.Connection, versions: tuple[int, ...] = CHARGED) -> tuple[LedgerEntry, ...]:
        terms, entries = read(self.path, connection, versions)
        if terms != self.terms:
            raise ModelFileError(f"ledger {self.path} was replaced by another one since it was opened; open it again")
        return entries

    def _refuse(self, budget: Budget, entries: tuple[LedgerEntry, ...]) -> None:
        self.terms.refuse(budget, [entry.cost for entry in entries])


def charged_budget(ledger: Ledger, budget: Budget, check: Callable[[Budget], None]) -> Budget:
    """Return what a run of this budget spends: an (epsilon, delta) as the mu within it, where a ledger adds mu.

    check: raises BudgetError for a mu that the run cannot spend; it is charged as an (epsilon, delta) then.
    """
    if ledger.terms.account != "gaussian" or budget.kind != "approx":
        return budget
    try:
        within = budget.gdp_within()
        check(within)
    except BudgetError:
        return budget
    return within


def _follow_links(path: str | Path, *, new: bool = False) -> Path:
    """Return the file that a path leads to through links. Raises ModelFileError where one leads in a circle, and of a
    new file where one leads nowhere."""
    named, what = Path(path), "a name that no file can have"
    try:
        above = (named, *named.absolute().parents)
        dead = next((one for one in above if new and one.is_symlink() and not one.exists()), None)
        if dead is None:
            return named.resolve()
        what = f"{dead} is a link that leads nowhere"
    except RuntimeError:
        what = "links in it lead in a circle"
    except (OSError, ValueError):  # too long, a NUL
        pass
    raise ModelFileError(f"cannot use {str(path)!r:.200} as a ledger: {what}; name another file")


def largest_release(terms: LedgerTerms, costs: Sequence[Budget]) -> Budget | None:
    """Return the (epsilon, delta) that one more release may ask of a Gaussian account, at its own delta, rounded down.

    None where nothing is left.
    """
    left, delta = terms.left(costs), gaussian_part(terms.budget, terms.other).delta
    if left.is_zero:
        return None
    low, high = Fraction(0), _short(left.to_approx(delta).epsilon)
    for _ in range(40):
        middle = _short((low + high) / 2)
        if not low < middle < high:
            break
        fits = Budget("approx", epsilon=middle, delta=delta).gdp_within() <= left
        low, high = (middle, high) if fits else (low, middle)
    return Budget("approx", epsilon=low, delta=delta) if low else None


def _short(epsilon: Fraction) -> Fraction:
    """Return a multiple of 1e-9 below."""
    return Fraction(math.floor(epsilon * 10**9), 10**9)


def _left_lines(terms: LedgerTerms, costs: Sequence[Budget]) -> list[str]:
    """Return what is left, and how charges add up."""
    left = part_text(terms.left(costs), up=False)
    if terms.account == "concentrated":
        return [f"remaining: {left}", _RULES[terms.budget.kind]]
    spent, others = terms.parts(costs)
    lines = [f"remaining: {left}", _GAUSSIAN_RULE]
    if terms.budget.kind == "approx":
        more = largest_release(terms, costs)
        whole = Budget("gdp", mu_squared=terms.mu_squared or Fraction(0))
        lines[0] += "" if more is None else f", or one release of {part_text(more, up=False)}"
        lines.append(f"The charges of mu come to {part_text(spent, up=True)} of {part_text(whole, up=False)}.")
    if terms.other is not None:
        rest = part_text(terms.left(costs, "approx"), up=False)
        lines.append(
            f"Charges that have no mu, such as labels, come to {part_text(others, up=True)} of {terms.other}; {rest} "
            "is left of that part."
        )
    return lines


def _conditions(entries: tuple[LedgerEntry, ...]) -> dict[str, int]:
    """Return how many charges were made under each condition."""
    return dict(Counter(condition for entry in entries for condition in dict.fromkeys(entry.conditions)))


def _remarks(terms: LedgerTerms, entries: tuple[LedgerEntry, ...]) -> list[str]:
    """Return what the total does not say: charges that promise less, and those of which it is not known."""
    counted = _conditions(entries)
    unknown = counted.pop(NOT_RECORDED, 0)
    conditional = sum(bool(entry.conditions) for entry in entries) - unknown
    lines = []
    if conditional:
        listed = ", ".join(f"{condition} ({number})" for condition, number in counted.items())
        lines.append(
            f"{conditional} of {len(entries)} charge(s) are conditional: {listed}; "
            "the total is no unconditional guarantee."
        )
    if PUBLIC_N in counted and terms.neighbours is Neighbours.ADD_REMOVE:
        # A ledger does not know what was released, so this is the bound for every kind of query.
        costs = [entry.cost for entry in entries]
        total = terms.total(costs)
        if terms.account == "gaussian" and terms.parts(costs)[1].is_zero:
            total = terms.parts(costs)[0]
        worth = grow_budget(total, change_factor(total.kind, 1, 1))
        lines.append(
            f"{PUBLIC_N}: no charge hides whether a person is in the data; between data sets of equal N that differ in "
            + ("one person nothing is bounded." if worth is None else f"one person all charges cost at most {worth}.")
        )
    if unknown:
        lines.append(
            f"{unknown} of {len(entries)} charge(s): conditions {NOT_RECORDED}; "
            "the total is unconditional only if these releases are."
        )
    return lines


def _readable(budget: Budget, rounded: Callable[[Fraction], int]) -> Budget:
    """Return the budget, with its parts on a grid where they are too long to be written and read back."""
    try:
        check_amounts(budget)
    except BudgetError:
        return Budget(
            budget.kind,
            epsilon=Fraction(rounded(budget.epsilon * _GRID), _GRID),
            delta=Fraction(rounded(budget.delta * _GRID), _GRID),
            rho=Fraction(rounded(budget.rho * _GRID), _GRID),
            mu_squared=Fraction(rounded(budget.mu_squared * _GRID), _GRID),
        )
    return budget
