"""Random ledgers of mixed charges, recomputed by rules of their own.

A ledger has a random budget and account, and is asked for random charges: of every kind, most of them of its own size,
some of exactly what is left, and some of a little more. What its terms let through, and what they say is spent and
left, is compared with an independent recomputation in fractions, which knows nothing of `Budget`. Of some ledgers the
charges go through a file, which is opened again and replayed; some of these are edited.
"""

import math
import random
import sqlite3
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from attrs import define, field

from dpgm_core.errors import BudgetError, ModelFileError, Overspent
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.ledger_terms import LedgerTerms
from dpgm_core.privacy.sensitivity import Neighbours

ZERO = Fraction(0)
#: pi / 2, rounded up, and what of delta is kept for drawn noise; written down again, not imported.
HALF_PI, APART = Fraction(355, 226), Fraction(1, 10**6)


def budgets() -> tuple[tuple[Budget, Budget | None, Fraction], ...]:
    """Whole budgets of Gaussian ledgers, with a part for others or none, and the sum of mu^2 that `create` fixes."""
    found: list[tuple[Budget, Budget | None, Fraction]] = [
        (one, None, one.mu_squared) for one in map(Budget.gdp, ("0.25", "1", "3/7", "2.5", "1e-3"))
    ]
    for epsilon in ("0.1", "0.7", "1", "3", "9"):
        for delta in ("1e-3", "1e-6", "1e-9"):
            whole = Budget.approx(epsilon, delta)
            found.append((whole, None, whole.gdp_within().mu_squared))
            for part in (Fraction(1, 10), Fraction(2, 3)):
                other = whole * part
                found.append((whole, other, (whole - other).gdp_within().mu_squared))
    return tuple(found)


def curve(mu_squared: Fraction, epsilon: Fraction) -> float:
    """delta of mu at epsilon, by the error function."""
    mu, e = math.sqrt(mu_squared), float(epsilon)
    near, far = (e / mu - mu / 2) / math.sqrt(2), (e / mu + mu / 2) / math.sqrt(2)
    return (math.erfc(near) - math.exp(e) * math.erfc(far)) / 2


@define
class Account:
    """The independent account: sums by kind. gaussian: whether squares of mu add; else rho, or epsilon and delta."""

    whole: dict[str, Fraction]
    gaussian: bool
    mu_squared: Fraction
    other: tuple[Fraction, Fraction]
    spent: dict[str, Fraction] = field(factory=lambda: dict.fromkeys(("epsilon", "delta", "rho", "mu2"), ZERO))

    def takes(self, kind: str, parts: dict[str, Fraction]) -> bool:
        """Whether a charge fits, by its kind and its amount."""
        if self.gaussian:
            if kind == "zcdp":
                return False
            if kind == "approx":
                spent = self.spent
                within = spent["epsilon"] + parts["epsilon"] <= self.other[0]
                return within and spent["delta"] + parts["delta"] <= self.other[1]
            return self.spent["mu2"] + self.square(kind, parts) <= self.mu_squared
        if "rho" in self.whole:
            return kind != "approx" and self.spent["rho"] + self.rho(kind, parts) <= self.whole["rho"]
        return kind == "pure" and self.spent["epsilon"] + parts["epsilon"] <= self.whole["epsilon"]

    def pay(self, kind: str, parts: dict[str, Fraction]) -> None:
        """Add a charge."""
        if self.gaussian and kind != "approx":
            self.spent["mu2"] += self.square(kind, parts)
        elif "rho" in self.whole:
            self.spent["rho"] += self.rho(kind, parts)
        else:
            for name in ("epsilon", "delta"):
                self.spent[name] += parts.get(name, ZERO)

    @staticmethod
    def square(kind: str, parts: dict[str, Fraction]) -> Fraction:
        """mu^2 of a charge."""
        return HALF_PI * parts["epsilon"] ** 2 if kind == "pure" else parts["mu_squared"]

    @staticmethod
    def rho(kind: str, parts: dict[str, Fraction]) -> Fraction:
        """rho of a charge."""
        if kind == "zcdp":
            return parts["rho"]
        return (parts["epsilon"] ** 2 if kind == "pure" else parts["mu_squared"]) / 2


def parts_of(budget: Budget) -> dict[str, Fraction]:
    """The amounts as a file has them."""
    return {name: Fraction(text) for name, text in budget.to_dict().items()}


@define(kw_only=True)
class Machine:
    """So many ledgers. files: one in so many goes through a file, in `folder`."""

    ledgers: int
    seed: int
    folder: Path
    files: int = 500
    counts: Counter[str] = field(factory=Counter)
    faults: list[str] = field(factory=list)
    limit: int = 20

    def work(self) -> None:
        """All of them; a few faults are enough."""
        rng, menu = random.Random(self.seed), budgets()
        for number in range(self.ledgers):
            self._one(rng, menu, number)
            if len(self.faults) >= self.limit:
                return

    def _one(self, rng: random.Random, menu: tuple[tuple[Budget, Budget | None, Fraction], ...], number: int) -> None:
        terms, account = self._terms(rng, menu)
        costs: list[Budget] = []
        asked: list[tuple[Budget, bool]] = []
        for _ in range(rng.randint(1, 6)):
            budget = self._ask(rng, terms, costs)
            fits = account.takes(budget.kind, parts_of(budget))
            let = True
            try:
                terms.refuse(budget, costs)
            except Overspent:
                let = False
                self.counts["overspent"] += 1
            except BudgetError:
                let = False
                self.counts["refused"] += 1
            if let is not fits:
                self._fault(
                    number, terms, f"{budget} after {len(costs)} charges is {'let through' if let else 'refused'}"
                )
                return
            asked.append((budget, let))
            if let:
                costs.append(budget)
                account.pay(budget.kind, parts_of(budget))
                self.counts["charges"] += 1
        self._compare(number, terms, account, costs)
        self.counts["ledgers"] += 1
        if number % self.files == 0:
            self._file(rng, number, terms, asked, costs)

    def _terms(
        self, rng: random.Random, menu: tuple[tuple[Budget, Budget | None, Fraction], ...]
    ) -> tuple[LedgerTerms, Account]:
        gaussian = rng.random() < 0.8
        other, mu_squared = None, ZERO
        if gaussian:
            whole, other, mu_squared = rng.choice(menu)
        else:
            whole = (
                Budget.zcdp(Fraction(rng.randint(1, 40), 20)) if rng.random() < 0.5 else Budget.pure(rng.randint(1, 4))
            )
        terms = LedgerTerms(
            name="x", budget=whole, neighbours=Neighbours.ADD_REMOVE, unit="one", person=None, rows_per_person=1,
            conversion_delta=None, account="gaussian" if gaussian else "concentrated",
            mu_squared=mu_squared if gaussian else None, other=other,
        )  # fmt: skip
        return terms, Account(
            whole=parts_of(whole),
            gaussian=gaussian,
            mu_squared=mu_squared,
            other=(ZERO, ZERO) if other is None else (other.epsilon, other.delta),
        )

    def _ask(self, rng: random.Random, terms: LedgerTerms, costs: list[Budget]) -> Budget:
        """A charge: some of what is left, exactly it or a little more; or of another kind."""
        share = Fraction(rng.randint(1, 700), rng.choice((500, 997, 1000)))
        edge = rng.random()
        if edge < 0.3:
            share = Fraction(1) + (Fraction(1, 10**30) if edge < 0.1 else 0)
        gaussian = terms.account == "gaussian"
        kind = rng.choice(("gdp", "gdp", "pure", "approx", "zcdp") if gaussian else ("pure", "zcdp", "gdp", "approx"))
        if gaussian and kind in ("gdp", "pure"):
            left = terms.left(costs).mu_squared
        elif kind == "approx":
            rest = terms.left(costs, "approx") if gaussian and terms.other else Budget.approx("0.01", "1e-9")
            one = Budget.approx("0.01", "1e-9") if rest.is_zero else rest
            return Budget(
                "approx",
                epsilon=max(one.epsilon * share, Fraction(1, 10**9)),
                delta=max(one.delta, Fraction(1, 10**40)),
            )
        else:
            left = terms.left(costs)
            left = left.epsilon**2 if left.kind == "pure" else 2 * left.rho
        left = left or Fraction(1, 10**12)
        if kind == "gdp":
            return Budget("gdp", mu_squared=left * share)
        if kind == "zcdp":
            return Budget("zcdp", rho=left * share / 2)
        root = Fraction(math.isqrt(int(left * share / (HALF_PI if gaussian else 1) * 10**24)), 10**12)
        return Budget("pure", epsilon=max(root, Fraction(1, 10**12)) + (Fraction(1, 10**12) if edge < 0.1 else 0))

    def _compare(self, number: int, terms: LedgerTerms, account: Account, costs: list[Budget]) -> None:
        """What is spent and left against the account; of a Gaussian one also by the curve."""
        if not terms.fits(costs):
            self._fault(number, terms, "its charges do not fit")
        if not account.gaussian:
            name = "rho" if "rho" in account.whole else "epsilon"
            if getattr(terms.total(costs), name) != account.spent[name]:
                self._fault(number, terms, f"comes to {terms.total(costs)}")
            return
        mu, others = terms.parts(costs)
        spent = account.spent
        if (mu.mu_squared, others.epsilon, others.delta) != (spent["mu2"], spent["epsilon"], spent["delta"]):
            self._fault(number, terms, f"comes to {mu} and {others}")
        if terms.left(costs).mu_squared != account.mu_squared - spent["mu2"]:
            self._fault(number, terms, f"has {terms.left(costs)} left")
        if number % 20 or "epsilon" not in account.whole:
            return
        total = terms.total(costs)
        delta = account.whole["delta"] - account.other[1]
        if not (total.epsilon <= account.whole["epsilon"] and total.delta <= account.whole["delta"]):
            self._fault(number, terms, f"comes to {total} in all")
        epsilon = total.epsilon - spent["epsilon"]
        if spent["mu2"] and not 0 <= curve(spent["mu2"], epsilon) <= float(delta * (1 - APART)) * (1 + 1e-9):
            self._fault(number, terms, f"has more delta at {float(epsilon)} than it says")
        self.counts["curves"] += 1

    def _file(
        self,
        rng: random.Random,
        number: int,
        terms: LedgerTerms,
        asked: list[tuple[Budget, bool]],
        costs: list[Budget],
    ) -> None:
        """The same charges through a file, replayed; then edited in the owner's favour, or cut short."""
        path = self.folder / f"{number}.ledger"
        ledger = Ledger.create(
            path, name="x", budget=terms.budget, neighbours="add-remove", unit="one", account=terms.account,
            other=terms.other,
        )  # fmt: skip
        if ledger.terms.mu_squared != terms.mu_squared:
            self._fault(number, terms, f"was made with mu^2 = {ledger.terms.mu_squared}")
        for budget, let in asked:
            try:
                ledger.charge(budget)
                charged = True
            except BudgetError:
                charged = False
            if charged is not let:
                self._fault(number, terms, f"{budget} is {'charged' if charged else 'refused'} in the file")
        again = Ledger.open(path)
        if [one.cost for one in again.history()] != costs or again.terms.total(costs) != terms.total(costs):
            self._fault(number, terms, "is not what was charged when it is replayed")
        again.describe()
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            if rng.random() < 0.5 and costs:
                file.execute("DELETE FROM charges WHERE id = (SELECT MAX(id) FROM charges)")
            else:
                file.execute("UPDATE terms SET document = replace(document, 'add-remove', 'replace-one')")
        try:
            Ledger.open(path)
            self._fault(number, terms, "is read though it was edited")
        except ModelFileError:
            self.counts["edits refused"] += 1
        self.counts["files"] += 1
        path.unlink()

    def _fault(self, number: int, terms: LedgerTerms, words: str) -> None:
        self.faults.append(f"ledger {number} of {terms.budget} ({terms.account}, other {terms.other}): {words}")


def _by(name: str, wrong: object) -> None:
    setattr(LedgerTerms, name, wrong)


def _rho_as_mu() -> None:
    """A ledger that counts rho as mu^2 / 2 in place of refusing it."""
    own, refuse = Budget.to_gdp, LedgerTerms.refuse
    Budget.to_gdp = lambda one: Budget("gdp", mu_squared=2 * one.rho) if one.kind == "zcdp" else own(one)  # type: ignore
    _by("refuse", lambda terms, one, costs: refuse(terms, _as_mu(terms, one), [_as_mu(terms, cost) for cost in costs]))


def _as_mu(terms: LedgerTerms, one: Budget) -> Budget:
    return Budget("gdp", mu_squared=2 * one.rho) if terms.account == "gaussian" and one.kind == "zcdp" else one


def _epsilon_as_mu() -> None:
    """A ledger that counts a pure epsilon as mu."""
    own = Budget.to_gdp
    Budget.to_gdp = lambda one: Budget("gdp", mu_squared=one.epsilon**2) if one.kind == "pure" else own(one)  # type: ignore


def _approx_as_mu() -> None:
    """A ledger that adds (epsilon, delta) charges into B."""

    def parts(terms: LedgerTerms, costs: list[Budget]) -> tuple[Budget, Budget]:
        mu = Budget.zero("gdp")
        for one in costs:
            mu += one.gdp_within() if one.kind == "approx" else one.to_gdp()
        return mu, Budget.zero("approx")

    _by("parts", parts)


def _doubles() -> None:
    """A ledger that compares sums as doubles."""

    def fits(terms: LedgerTerms, costs: list[Budget]) -> bool:
        if terms.account != "gaussian":
            return bool(terms.total(costs) <= terms.budget)
        mu, others = terms.parts(costs)
        return float(mu.mu_squared) <= float(terms.mu_squared or 0) and others <= (terms.other or Budget.zero("approx"))

    _by("fits", fits)


#: Ledgers that are wrong on purpose; the machine must say so.
WRONG = {"rho": _rho_as_mu, "epsilon": _epsilon_as_mu, "approx": _approx_as_mu, "doubles": _doubles}
