"""Terms of a release, and what its guarantee means for a reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from dpgm_core._util.exact_numbers import whole
from dpgm_core.components.options import flag
from dpgm_core.domain.related import Related
from dpgm_core.errors import BudgetError, OptionError
from dpgm_core.privacy.budget import Budget, BudgetKind
from dpgm_core.privacy.sensitivity import ClippedScore, Contributions, Neighbours, Sensitivity
from dpgm_core.structure.structure import Structure

__all__ = [
    "Origin",
    "PUBLIC_N",
    "Terms",
    "TotalPolicy",
    "UNSAFE",
    "best_guess",
    "change_factor",
    "charge_conditions",
    "default_unit",
    "flaws",
    "grow_budget",
    "grow_text",
    "odds_factor",
    "public_domain",
]


# What a guarantee may be conditional on, in the words of releases, models and the ledger.
PUBLIC_N = "conditional on public N"
UNSAFE = "unsafe"
SEEDED = "the noise came from a seed, for simulation only"

#: Where a structure comes from: named in public, chosen by the releases themselves, or some of it each way.
Origin: TypeAlias = Literal["named", "chosen", "both"]
_ASSUMED: Mapping[Origin, str] = {
    "named": "Assumed public: {domain}, the structure and every setting of the run.",
    "chosen": "The structure was chosen privately, within the stated budget. Assumed public: {domain}, the workload "
    "and every setting of the run.",
    "both": "Part of the structure was chosen privately, within the stated budget. Assumed public: {domain}, the "
    "cliques that were named, the workload and every setting of the run.",
}
#: Attributes that a guarantee spells out, of each kind.
_MAX_NAMES = 20

TotalPolicy: TypeAlias = Literal["estimated", "public", "declared"]


def default_unit(person: str | None, related: Related | None = None) -> str:
    """Return what is protected by default: a root with its children, a person if there is a person key, else a record.

    >>> default_unit(None)
    'one record'
    """
    if related is not None:
        return "one root with all its children"
    return "one record" if person is None else "one person"


def public_domain(
    *,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    bins: Sequence[str] = (),
    constraints: Sequence[str] = (),
) -> str:
    """Return what a guarantee assumes public of a domain.

    columns, labels, bins: the attributes of which all, labels or bins were found privately. constraints: their names.
    """
    domain = f"the domain with its constraints {_named(constraints)}" if constraints else "the domain"
    parts = {"types, ranges and labels": columns, "labels": labels, "bins": bins}
    private_parts = [f"the {what} of {_named(names)}" for what, names in parts.items() if names]
    if not private_parts:
        return domain
    return f"{domain} but for {' and '.join(private_parts)}, which were found privately within the stated budget"


def _named(names: Sequence[str]) -> str:
    listed = [repr(name) for name in dict.fromkeys(names)]
    if len(listed) > _MAX_NAMES:
        listed = [*listed[:_MAX_NAMES], f"{len(listed) - _MAX_NAMES} others"]
    *most, last = listed
    return f"{', '.join(most)} and {last}" if most else last


def flaws(*, unsafe: Iterable[str | None], private: bool) -> tuple[str, ...]:
    """Return why a guarantee does not hold to the letter, or at all, in words; () if it holds.

    unsafe: what noises state in `unsafe`. private: whether no seed was used.

    >>> flaws(unsafe=[None, "textbook noise"], private=False)
    ('UNSAFE: textbook noise', 'NOT PRIVATE (private = false): the noise came from a seed, for simulation only')
    """
    reasons = "; ".join(dict.fromkeys(filter(None, unsafe)))
    seeded = f"NOT PRIVATE (private = false): {SEEDED}"
    return (*([f"{UNSAFE.upper()}: {reasons}"] if reasons else []), *([] if private else [seeded]))


def _relation(name: Neighbours | str) -> Neighbours:
    return Neighbours.of(name)


def _text(what: str) -> Any:
    def check(_: object, __: object, value: object) -> None:
        if value is not None and not (isinstance(value, str) and value):
            raise BudgetError(f"{what} must be a text, got {value!r}")

    return check


def _total(_: object, __: object, total: object) -> None:
    known = isinstance(total, str) and total in ("estimated", "public")
    number = isinstance(total, (int, float)) and not isinstance(total, bool) and 1 <= total < 2**53
    if not known and not number:
        raise BudgetError(
            f"total must be 'estimated', 'public' or a declared number of records of at least 1, got {total!r}"
        )


@frozen(kw_only=True)
class Terms:
    """What a release promises apart from its budget; one value, fixed for a curator, a ledger and a release.

    Parameters
    ----------
    neighbours : Neighbours or {"add-remove", "replace-one"}
        The neighbouring relation, in persons.
    unit : str, optional
        The protected unit in words. None: that of the ledger, or else "one record" or "one person".
    person : str, optional
        The column of the person key, if persons have several rows.
    rows_per_person : int
        The most rows that count for one person.
    contributions : Contributions, optional
        How much each row counts. None: 1.
    total : {"estimated", "public"} or float
        The number of records N: estimated from the noisy tables, published exactly, or a number that the owner declares
        as public.
    related : Related, optional
        The statement about two tables, if records are roots with their children: each root is one record, and the unit
        is a key with all that has it in both tables.
    validated : bool
        Whether the owner has compared the records with the domain before, which the guarantee then says. Not part of
        comparisons or of files of terms; a release keeps it in its provenance.

    Raises
    ------
    BudgetError, OptionError
        For terms that do not go together: rows without a person key, a public total with weights or of two tables.

    Notes
    -----
    docs/privacy.md explains each of them.

    Examples
    --------
    >>> terms = Terms(neighbours="replace-one", person="id", rows_per_person=2)
    >>> print(terms.sentence())
    replace-one neighbours; the protected unit is one person, counted with at most 2 rows. Assumed public: ...
    """

    neighbours: Neighbours = field(converter=_relation)
    unit: str | None = field(default=None, validator=_text("the protected unit"))
    person: str | None = field(default=None, validator=_text("the person key"))
    rows_per_person: int = 1
    contributions: Contributions | None = None
    total: float | str = field(default="estimated", validator=_total)
    related: Related | None = None
    validated: bool = field(default=False, eq=False, validator=flag)

    def __attrs_post_init__(self) -> None:
        whole("rows_per_person", self.rows_per_person, least=1)
        if self.person is None and self.rows_per_person > 1 and self.related is None:
            raise BudgetError(
                f"rows_per_person = {self.rows_per_person} needs a person key: name the column that identifies a person"
            )
        if self.contributions is not None:
            if not isinstance(self.contributions, Contributions):
                raise OptionError(f"contributions must be Contributions, got {type(self.contributions).__name__}")
            if self.total != "estimated":
                raise BudgetError(
                    "weighted tables do not sum to the number of records, so no public total fits them; leave "
                    "total = 'estimated', or leave contributions out"
                )
        if self.related is not None:
            self._check_related()

    def _check_related(self) -> None:
        """Refuse what two related tables do not go with."""
        if not isinstance(self.related, Related):
            raise OptionError(f"related must be Related, got {type(self.related).__name__}")
        if self.person is not None:
            raise BudgetError(
                "two related tables have a key of their own, and each root is one record; leave person out"
            )
        if self.rows_per_person > 1:
            raise BudgetError(
                "each root of two related tables is one record, and max_children says how many children count; leave "
                "rows_per_person out"
            )
        if self.contributions is not None:
            raise BudgetError(
                "each root of two related tables is one record, which counts as 1; leave contributions out"
            )
        if self.total == "public":
            raise BudgetError(
                "total = 'public' of two related tables publishes the number of their keys; leave it 'estimated', or "
                "declare a number that is public knowledge"
            )

    @classmethod
    def of(cls, terms: Terms | None, neighbours: Neighbours | str | None) -> Terms:
        """Return the terms, or those of a relation alone; exactly one of the two must be given.

        Examples
        --------
        >>> Terms.of(None, "add-remove").total
        'estimated'
        """
        if terms is None:
            if neighbours is None:
                raise BudgetError(
                    "the neighbouring relation must be stated: neighbours='add-remove' or 'replace-one', or "
                    "terms=Terms(neighbours=..., ...); there is no default"
                )
            return cls(neighbours=neighbours)
        if not isinstance(terms, Terms):
            raise BudgetError(f"terms must be Terms, got {type(terms).__name__}; the relation alone is neighbours=...")
        if neighbours is not None:
            raise BudgetError("the relation is stated twice, in terms and as neighbours; leave out neighbours")
        return terms

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Terms:
        """Return the terms that `to_dict` wrote."""
        weighted, related = plain.get("contributions"), plain.get("related")
        return cls(
            **{
                **plain,
                "contributions": None if weighted is None else Contributions.parse(weighted),
                "related": None if related is None else Related.from_dict(related),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which `from_dict` reads back."""
        return {
            "neighbours": self.neighbours.value,
            "unit": self.unit,
            "person": self.person,
            "rows_per_person": self.rows_per_person,
            "contributions": None if self.contributions is None else self.contributions.to_dict(),
            "total": self.total,
            **({} if self.related is None else {"related": self.related.to_dict()}),
        }

    @property
    def protected(self) -> str:
        """The protected unit, in words."""
        return self.unit or default_unit(self.person, self.related)

    @property
    def key(self) -> str | None:
        """The person key, or how the keys of two related tables count, as a ledger has it; None where rows have none.

        Examples
        --------
        >>> Terms(neighbours="add-remove", person="id").key
        'id'
        """
        return self.person if self.related is None else self.related.describe()

    @property
    def total_policy(self) -> TotalPolicy:
        """How the number of records becomes known."""
        if self.declared_total is not None:
            return "declared"
        return "public" if self.total == "public" else "estimated"

    @property
    def declared_total(self) -> float | None:
        """The number of records, where the owner declared it as public knowledge; else None."""
        return None if isinstance(self.total, str) else float(self.total)

    @property
    def covers_total(self) -> bool:
        """Whether the guarantee covers publishing the exact N: replace-one, and each row a person.

        With a person key a changed person can lose the key, and rows without it count together as one person.
        """
        alone = self.rows_per_person == 1 and self.key is None
        return self.neighbours is Neighbours.REPLACE_ONE and alone

    @property
    def condition(self) -> str | None:
        """What a guarantee is conditional on, and what it therefore does not hide; None if on nothing.

        States the bounds that hold whatever is released, for each kind of budget; see `condition_for`.

        Examples
        --------
        >>> Terms(neighbours="add-remove", total="public").condition
        'CONDITIONAL ON PUBLIC N (it does not hide whether ...at most 2 epsilon, 4 rho, 4 mu^2 or (2 epsilon, ...'
        """
        return self.condition_for({kind: change_factor(kind, 1, 1) for kind in (*_UNITS, _STEPWISE)})

    def condition_for(self, factors: Mapping[BudgetKind, Fraction]) -> str | None:
        """Return what a guarantee is conditional on; None if on nothing.

        Parameters
        ----------
        factors : mapping from kind of budget to Fraction
            By what factor exchanging the data of one person costs more than adding one; see `exchange_factor`.

        Returns
        -------
        str or None
            The condition, with what is promised between data sets of equal N.

        Examples
        --------
        >>> Terms(neighbours="add-remove", total="public").condition_for({"zcdp": Fraction(8, 3)})
        'CONDITIONAL ON PUBLIC N (it does not hide whether ...the loss is at most 8/3 rho)'
        """
        if self.total_policy != "public" or self.covers_total:
            return None
        hidden = "how many rows a person has"
        if self.neighbours is Neighbours.ADD_REMOVE:
            hidden = (
                "whether a person is in the data; between data sets of equal N that differ in one person the loss is "
                f"at most {_either([grow_text(kind, factor) for kind, factor in factors.items()])}"
            )
        return f"{PUBLIC_N.upper()} (it does not hide {hidden})"

    def with_default_unit(self, unit: str | None = None) -> Terms:
        """Return the same terms with the unit in words: their own, else `unit`, else a record or a person."""
        return evolve(self, unit=self.unit or unit or self.protected)

    def check(self, structure: Structure) -> None:
        """Refuse, before any record is read, a structure that these terms do not fit."""
        if self.contributions is not None:
            self.contributions.check(structure, self.rows_per_person)
        if self.related is not None:
            self.related.check(structure.domain)

    @property
    def draws(self) -> int:
        """The number of records over which the tables of two related tables are means; 1 for one table."""
        return 1 if self.related is None else self.related.draws

    def with_one_draw(self) -> Terms:
        """Return the same terms with one record for each root, as rounds of subsamples count."""
        return self if self.related is None else evolve(self, related=evolve(self.related, draws=1))

    def sensitivity(
        self, structure: Structure, clip: ClippedScore | None = None, *, contrasts: bool = False
    ) -> Sensitivity:
        """Return how far one person moves all tables of a structure.

        Parameters
        ----------
        structure : Structure
            The tables.
        clip : ClippedScore, optional
            Of sums of clipped scores in place of counts.
        contrasts : bool
            Of sums of products in place of tables, one for each clique.

        Returns
        -------
        Sensitivity
            In records, in units of 1/grid with contributions or clip, or of 1/draws for two related tables.

        Raises
        ------
        BudgetError
            For contrasts with clip or contributions.

        Notes
        -----
        `Sensitivity.of`, `Sensitivity.of_contrasts`, `Contributions` and `ClippedScore` have the proofs.

        Examples
        --------
        >>> from dpgm_core.domain.domain import Domain
        >>> chain = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
        >>> Terms(neighbours="add-remove", person="id", rows_per_person=3).sensitivity(chain).l1
        6
        """
        if contrasts:
            if clip is not None or self.contributions is not None:
                raise BudgetError(
                    "contrasts count each row as 1; leave out clipped scores and normalised contributions, or measure "
                    "tables"
                )
            moved = Sensitivity.of_contrasts(structure, self.neighbours, rows_per_person=self.rows_per_person)
            return moved.of_sum(self.draws, len(structure.groups))
        if clip is not None:
            return clip.sensitivity(structure.cells, self.neighbours)
        if self.contributions is not None:
            return self.contributions.sensitivity(structure, self.neighbours, rows_per_person=self.rows_per_person)
        moved = Sensitivity.of(structure, self.neighbours, rows_per_person=self.rows_per_person)
        return moved.of_sum(self.draws, structure.cells)  # each draw of two related tables moves as one record

    def presence(self, structure: Structure, clip: ClippedScore | None = None) -> Sensitivity:
        """Return how far one person's rows move all tables from where they are without that person, under any relation.

        Subsampling needs it; see `dpgm_core.privacy.accounting`. Units as of `sensitivity`.

        Examples
        --------
        >>> from dpgm_core.domain.domain import Domain
        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 1}), [("a",), ("b",)])
        >>> terms = Terms(neighbours="replace-one")
        >>> terms.sensitivity(structure).l1, terms.presence(structure).l1  # a table of one cell: no exchange moves it
        (2, 2)
        """
        return evolve(self, neighbours=Neighbours.ADD_REMOVE).sensitivity(structure, clip)

    def exchange_factor(
        self,
        kind: BudgetKind,
        structures: Iterable[Structure],
        clip: ClippedScore | None = None,
        *,
        contrasts: bool = False,
    ) -> Fraction:
        """Return by what factor exchanging the data of one person costs more than adding one, under noise.

        Parameters
        ----------
        kind : {"pure", "zcdp", "gdp"}
            The kind of the cost.
        structures : iterable of Structure
            The tables that share a noise, for each noise.
        clip, contrasts
            As in `sensitivity`.

        Returns
        -------
        Fraction
            At least 1.

        Notes
        -----
        The largest ratio of the norms of `sensitivity`; docs/proofs.md has the claim.

        Examples
        --------
        >>> from dpgm_core.domain.domain import Domain
        >>> clique = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a",), ("b",), ("a", "b")])
        >>> terms = Terms(neighbours="add-remove")
        >>> print(terms.exchange_factor("zcdp", [clique]), terms.exchange_factor("zcdp", [clique], contrasts=True))
        2 8/3
        """
        norm, factor = "l2_squared" if _UNITS[kind][1] else "l1", Fraction(1)
        for one in structures:
            added, exchanged = (
                getattr(evolve(self, neighbours=relation).sensitivity(one, clip, contrasts=contrasts), norm)
                for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE)
            )
            factor = max(factor, Fraction(exchanged, max(added, 1)))
        return factor

    def sentence(self, structure: Origin = "named", domain: str = "the domain") -> str:
        """Return the middle of every guarantee: relation, unit, and what is assumed public.

        Parameters
        ----------
        structure : {"named", "chosen", "both"}
            Where the structure comes from.
        domain : str
            What of the domain is public; see `public_domain`.

        Examples
        --------
        >>> Terms(neighbours="add-remove").sentence("chosen").split(". ")[1]
        'The structure was chosen privately, within the stated budget'
        """
        rows = f", counted with at most {self.rows_per_person} rows" if self.rows_per_person > 1 else ""
        rows += "" if self.related is None else self._related_rows(self.related)
        weighted = "" if self.contributions is None else " " + self.contributions.describe().strip()
        return (
            f"{self.neighbours.value} neighbours; the protected unit is {self.protected}{rows}. "
            f"{_ASSUMED[structure].format(domain=domain)}{weighted}"
        )

    def _related_rows(self, related: Related) -> str:
        """How two tables count, and what that means for one child."""
        child = "the same"
        if self.neighbours is Neighbours.ADD_REMOVE:  # it is taken out, and put in with another child
            kinds: tuple[BudgetKind, ...] = (*_UNITS, _STEPWISE)
            child = f"at most {_either([grow_text(kind, change_factor(kind, 1, 1)) for kind in kinds])}"
        counted = f"counted as one record with {related.describe()}"
        return f", {counted}. For a change of one child inside it the loss is {child}"


def charge_conditions(terms: Terms, *, unsafe: str | None, private: bool) -> tuple[str, ...]:
    """Return the conditions that a ledger entry states of the release that it pays for; () if there are none.

    unsafe: why the noise does not keep the budget to the letter, if so. private: False when a seed is involved.
    """
    conditions = {PUBLIC_N: terms.condition is not None, f"{UNSAFE} noise": unsafe is not None, SEEDED: not private}
    return tuple(condition for condition, holds in conditions.items() if holds)


# --------------------------------------------------------------------------------------------------
# Interpretation of a budget: what an attacker can learn, in numbers for readers without the theory
#
# Claim. Let P and Q be the distributions of what is published under two neighbours, and let an attacker who knows both
# guess which of them it was, each as likely as the other beforehand. The guess is right with probability at most (1 +
# TV) / 2, TV the total variation distance of P and Q (Neyman and Pearson). And TV is at most
#
# * (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) under (epsilon, delta) (Kairouz, Oh, Viswanath 2015), so that the guess
#   is right with at most (e^epsilon + delta) / (e^epsilon + 1); delta = 0 is the pure case;
# * sqrt(rho / 2) and sqrt(1 - e^-rho) under rho-zCDP: KL(P || Q) <= rho, as the Renyi divergences of order above 1 are
#   at most that times the order and KL is their limit; then Pinsker's inequality, and Bretagnolle and Huber's;
# * 2 Phi(mu / 2) - 1 under mu-GDP, as of two normal numbers mu apart (Dong, Roth, Su 2022, Definition 2.6).
#
# A larger change than between neighbours. Let the rows of one person be added a times and taken away b times; they may
# be other rows each time. An exchange under add-remove is (1, 1), a group of k units (k, 0), and docs/proofs.md has the
# changes of rows without a key. Each step is one between neighbours, so a + b of them cost epsilons times k = a + b and
# deltas times sum of e^(i epsilon), i < k (Dwork and Roth 2014, Theorem 2.2 and its proof), and rho times k^2 (Bun and
# Steinke 2016, Proposition 1.9), and mu times k (Dong, Roth, Su 2022, Theorem 2.14). Of noisy tables alone the rho and
# the mu^2 are a^2 + b^2 times as large: vectors u and v of entries
# that are not negative have |u - v|^2 <= |u|^2 + |v|^2, and the rho of noise grows with the squared L2 norm of a shift:
# it is that over 2 scale^2 for Gaussian noise, and at most that for Laplace noise, which is charged as L1^2 / (2
# scale^2), no less; so does its mu^2. Under replace-one a step is (1, 1) itself, and the factors are divided by its
# own.

#: Beyond this e^epsilon is beyond all experience, and of a double.
_MAX_EPSILON = Fraction(700)


def odds_factor(budget: Budget) -> float | None:
    """Return e^epsilon: by what factor the odds of any conclusion about one unit can change at most; inf beyond e^700.

    None for budgets that bound no such factor for every outcome: rho, mu, and epsilon with a delta.
    """
    if budget.kind != "pure":
        return None
    return math.nextafter(math.exp(budget.epsilon), math.inf) if budget.epsilon <= _MAX_EPSILON else math.inf


def best_guess(budget: Budget) -> float:
    """Return how often at most an attacker who knows all but one unit guesses right which of two neighbours it was.

    Of two that are equally likely beforehand, so that 0.5 is a coin's. The module has the proof.
    """
    if budget.kind == "zcdp":
        rho = float(min(budget.rho, _MAX_EPSILON))
        probability = (1 + min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))) / 2
    elif budget.kind == "gdp":
        probability = math.erfc(-math.sqrt(float(min(budget.mu_squared, Fraction(10**6))) / 8)) / 2
    else:
        wrong = math.exp(-min(budget.epsilon, _MAX_EPSILON))  # 1 / e^epsilon
        probability = (1 + float(budget.delta) * wrong) / (1 + wrong)
    return min(1.0, math.nextafter(probability, math.inf))


#: Of the kinds of budget that are one number: its unit, and whether it grows with the square of a shift.
_UNITS: Mapping[BudgetKind, tuple[str, bool]] = {
    "pure": ("epsilon", False),
    "zcdp": ("rho", True),
    "gdp": ("mu^2", True),
}
#: The kind that grows step by step between neighbours.
_STEPWISE: BudgetKind = "approx"


def change_factor(
    kind: BudgetKind,
    added: int,
    removed: int = 0,
    *,
    tables_alone: bool = False,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Fraction:
    """Return by what factor a loss grows between data sets that differ by more than neighbours do.

    Parameters
    ----------
    kind : {"pure", "zcdp", "approx", "gdp"}
        The kind of the loss; of "approx" the number of steps between neighbours.
    added, removed : int
        How many times the rows of one person are added and taken away: (1, 1) is an exchange, (k, 0) a group of k.
    tables_alone : bool
        Whether everything released is noisy tables of counts, and no contrast, score, choice or gradient.
    neighbours : Neighbours
        The relation that the budget is stated for.

    Returns
    -------
    Fraction
        For `grow_budget` and `grow_text`.

    Notes
    -----
    See the claim of the module.
    """

    def grown(added: int, removed: int) -> int:
        if kind == _STEPWISE or not _UNITS[kind][1]:
            return added + removed
        return added**2 + removed**2 if tables_alone else (added + removed) ** 2

    return Fraction(grown(added, removed), grown(1, 1) if neighbours is Neighbours.REPLACE_ONE else 1)


def grow_budget(budget: Budget, factor: Fraction) -> Budget | None:
    """Return a budget grown by what `change_factor` or `Terms.exchange_factor` gives; None for no bound."""
    if budget.kind != _STEPWISE:
        return budget * factor
    steps = math.ceil(factor)
    if (steps - 1) * budget.epsilon > _MAX_EPSILON:
        return None
    # e^0 is exact; the others are rounded up.
    times = 1 + sum(math.nextafter(math.exp(number * budget.epsilon), math.inf) for number in range(1, steps))
    delta = budget.delta * Fraction(times)
    return Budget("approx", epsilon=budget.epsilon * steps, delta=delta) if delta < 1 else None


def grow_text(kind: BudgetKind, factor: Fraction | str) -> str:
    """Return in words what `grow_budget` computes, in terms of the epsilon, rho, mu or (epsilon, delta) of a guarantee.

    Parameters
    ----------
    kind : {"pure", "zcdp", "approx", "gdp"}
        The kind of the budget.
    factor : Fraction or str
        The factor; a letter, such as "r", stands for a group of so many units.
    """
    if kind != _STEPWISE:
        unit, square = _UNITS[kind]
        if isinstance(factor, str) and kind == "gdp":
            return f"{factor} mu"
        return f"{factor}^2 {unit}" if square and isinstance(factor, str) else f"{factor} {unit}"
    if isinstance(factor, str):
        return f"({factor} epsilon, delta (e^({factor} epsilon) - 1) / (e^epsilon - 1))"
    steps = math.ceil(factor)
    powers = ["1", "e^epsilon", *(f"e^({number} epsilon)" for number in range(2, steps))][:steps]
    return f"({steps} epsilon, ({' + '.join(powers)}) delta)"


def _either(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
