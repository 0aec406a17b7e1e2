"""Releases: noisy tables with their terms, and rounds of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import Array, FloatArray
from dpgm_core._util.exact_numbers import decimal_text
from dpgm_core._util.files import plain, write_archive
from dpgm_core._util.html import Html, card, first
from dpgm_core._util.version import __version__
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, ModelFileError, StructureError, brief, clipped, printable, spanned
from dpgm_core.privacy.budget import Budget, BudgetKind, compose_budgets
from dpgm_core.privacy.contrasts import products
from dpgm_core.privacy.ledger_terms import part_text
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.mechanism import Calibration, Noise
from dpgm_core.privacy.ranges import strategies_to
from dpgm_core.privacy.sensitivity import ClippedScore, Contributions, Neighbours
from dpgm_core.privacy.terms import Origin, Terms, TotalPolicy, change_factor, flaws, public_domain
from dpgm_core.releases.calibrations import calibration_to
from dpgm_core.releases.labels import Discovery
from dpgm_core.releases.steps import Choice, Descent, NoisyScores, SessionTerms, Verdict, shortened
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure, group_text
from dpgm_core.structure.tables import Tables

__all__ = [
    "CONTRASTS_SCHEMA",
    "NoisyTables",
    "Round",
    "SCHEMA",
    "check_alike",
    "check_domain",
    "condition_of",
    "conditions_of",
    "costs_apart",
    "discoveries",
    "guarantee_of",
    "member_names",
    "total_cost",
]


# --- Rounds ---------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Round:
    """Which of many subsampled releases, charged together, a release is.

    number: 1, ..., of. of: how many were paid for. sampling_rate: the probability with which a person takes part.
    clip: the tables hold sums of clipped scores in units of 1/grid, no counts.

    >>> Round(number=2, of=8, sampling_rate=Fraction(1, 10)).to_dict()
    {'number': 2, 'of': 8, 'sampling_rate': '1/10', 'clip_norm': None, 'grid': None}
    """

    number: int
    of: int
    sampling_rate: Fraction
    clip: ClippedScore | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, amounts as exact texts."""
        return {
            "number": self.number,
            "of": self.of,
            "sampling_rate": str(self.sampling_rate),
            "clip_norm": None if self.clip is None else str(self.clip.norm),
            "grid": None if self.clip is None else self.clip.grid,
        }

    def sentence(self) -> str:
        """What a guarantee says of it."""
        text = (
            f"This is round {self.number} of {self.of}; each draws a secret Poisson subsample at rate "
            f"{decimal_text(self.sampling_rate)}, and the guarantee holds for all of them together. "
        )
        if self.clip is not None:
            text += f"The tables hold sums of clipped scores in units of 1/{self.clip.grid}, no counts. "
        return text


# --- The release: safe to publish -----------------------------------------------------------------
# When a file is read, its guarantee is computed again from its noise, and a stronger one is refused
# (`dpgm_core.releases.release_file`). A file is still its author's word: a rewritten scale of the noise, noisy
# value, unit, total policy or mark of a seed cannot be detected.

#: Versions of the file format. Version 1 (terms in five keys, rounds in the provenance) remains readable. Sessions are
#: written as 3, contrasts as 4, releases with private labels as 5, whose cost an older version would leave out,
#: sessions with an exact Gaussian account as 6, tables measured by windows as 7, and all others as 2, so that older
#: versions read them.
SCHEMA, _ACCOUNT_SCHEMA, _LABELS_SCHEMA, CONTRASTS_SCHEMA, _SESSION_SCHEMA, _PLAIN_SCHEMA = 7, 6, 5, 4, 3, 2

_VALIDATED = (
    "The owner had compared records with this domain before: a domain edited after looking at records is outside of "
    "this guarantee. "
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NoisyTables:
    """A release: noisy counts y = n + noise over a structure, and the facts a reader needs.

    Attributes
    ----------
    tables
        Noisy counts, records (int64 for exact noise; of two related tables whole multiples of 1/draws); with
        `contributions` in units of 1/grid of a person, and then `total` is in persons.
    measurement
        The structure with the noise of each group, in the unit of the tables.
    terms
        Who is protected and how; several properties are read from them.
    total, total_variance
        Number of records N as published or estimated, at least 1, and its variance, records**2 (0 when N is public).
    cost
        Budget spent, without that of `discovery`; see `total_cost`.
    private
        False when a seed was involved.
    unsafe
        Why the guarantee does not hold to the letter (textbook noise), if so.
    round
        Which of many rounds it is; None for a release of its own.
    cost_stated
        Whether the cost is only stated by a file (rounds, tighter than Renyi divergences prove).
    holdout
        Whether it is of a holdout, whose tables are compared with and never learned from.
    original, pooled
        Of a view, the release behind it (see `equalize_totals`) or the several releases behind it (see `pool`).
    session, steps
        What an adaptive session was opened for, and everything it returned.
    discovery
        Private labels that it counts by, which were found before at a cost of their own.
    modelled
        The structure of the model that it was made for, where that has other cliques than were measured.
    saved_as, save_error
        Where the curator that made it saved it, and why not in its own place; neither is part of the file.
    """

    tables: Tables
    measurement: Measurement
    terms: Terms
    total: float
    total_variance: float
    cost: Budget
    private: bool
    unsafe: str | None = None
    round: Round | None = None
    provenance: Mapping[str, Any] = attrs.field(factory=dict)
    cost_stated: bool = False
    holdout: bool = False
    original: NoisyTables | None = None
    pooled: tuple[NoisyTables, ...] = ()
    session: SessionTerms | None = None
    steps: tuple[NoisyTables | Choice | NoisyScores | Descent | Verdict, ...] = ()
    modelled: Structure | None = None
    saved_as: Path | None = None
    save_error: str | None = None
    discovery: Discovery | None = None

    def __repr__(self) -> str:
        kind = [] if self.session is None else [f"a session of {len(self.steps)} steps"]
        kind += ["a holdout"] if self.holdout else []
        sizes = f"{len(self.structure.groups)} tables", f"{self.structure.cells} cells"
        return brief("NoisyTables", *kind, *sizes, str(self.cost), f"private={self.private}")

    def _repr_html_(self) -> Html:
        spreads = np.sqrt(self.variances)
        unit = "of a cell, records" if self.contributions is None else f"of a cell, 1/{self.contributions.grid} person"
        facts = [("cost", str(self.cost)), ("relation", self.neighbours.value), ("protected", clipped(self.unit, 200))]
        facts += [("tables", f"{len(spreads):,} with {self.structure.cells:,} cells"), ("N", self._number_of_records())]
        facts += [(f"noise, standard deviation {unit}", spanned(spreads.tolist()))]
        facts += [("session", f"{len(self.steps)} steps")] if self.session is not None else []
        facts += [("of a holdout", "yes")] if self.holdout else []
        groups = zip(self.structure.groups, self.structure.sizes, spreads.tolist(), strict=True)
        rows = ((group_text(group), cells, spread) for group, cells, spread in groups)
        tables = first(["clique", "cells", "noise"], rows, len(spreads))
        stamps = (*flaws(unsafe=[self.unsafe], private=self.private), *filter(None, [condition_of([self])]))
        return card("NoisyTables", facts, tables, flaws=stamps)

    def _number_of_records(self) -> str:
        spread = f" +- {math.sqrt(self.total_variance):,.0f}" if self.total_variance else ""
        return f"{self.total:,.0f}{spread} ({self.total_policy})"

    @property
    def structure(self) -> Structure:
        """The structure that was measured."""
        return self.tables.structure

    @property
    def calibrations(self) -> tuple[Calibration, ...]:
        """The noises with what they were calibrated from: one for all tables, or one for each, in records."""
        return self.measurement.in_records

    @property
    def noise(self) -> tuple[Noise, ...]:
        """The noise of each group, in the structure's order."""
        return self.measurement.noise

    @property
    def variances(self) -> FloatArray:
        """The noise variance of each group, (groups,), records**2 per cell."""
        return self.measurement.variances

    @property
    def contrasts(self) -> bool:
        """Whether it measured the sum of products of each clique's binary attributes, and no cells.

        Its tables are computed from all of them (`dpgm_core.privacy.contrasts.spread`).
        """
        return self.measurement.contrasts

    @property
    def measured(self) -> Array:
        """What the noise was added to, plus the noise: the cells of the tables, or one contrast of each group."""
        return products(self.tables) if self.contrasts else self.tables.values

    @property
    def neighbours(self) -> Neighbours:
        """The declared relation."""
        return self.terms.neighbours

    @property
    def unit(self) -> str:
        """What is protected, in words."""
        return self.terms.protected

    @property
    def rows_per_person(self) -> int:
        """How many rows of a person count at most."""
        return self.terms.rows_per_person

    @property
    def contributions(self) -> Contributions | None:
        """How much each of a person's rows counts; None: each counts 1."""
        return self.terms.contributions

    @property
    def total_policy(self) -> TotalPolicy:
        """How N became known: estimated | public | declared."""
        return self.terms.total_policy

    @property
    def published(self) -> tuple[NoisyTables, ...]:
        """What was released and paid for: itself, unless it is a view of other releases."""
        return self.pooled or (self.original or self,)

    @property
    def totals(self) -> FloatArray:
        """What each group's table sums to: m_g * N, (groups,), in the unit of the tables.

        With `contributions` tables need not sum to the same, so it is each table's own noisy sum; at least 1, and at
        least the standard deviation of its noise.
        """
        if self.contributions is None:
            return self.total * np.asarray(self.structure.multiplicities, dtype=np.float64)
        spread = np.sqrt(np.asarray(self.structure.sizes) * self.variances)
        return np.maximum(np.maximum(self.tables.sums(), spread), 1.0)

    def guarantee(self) -> str:
        """One paragraph: relation, unit, budget, what is assumed public, what is not covered."""
        return guarantee_of(self.published, total_cost(self.published, self.cost))

    @property
    def tables_alone(self) -> bool:
        """Whether it is noisy tables of counts and nothing else; see `exchange_factor`."""
        if self.published != (self,):
            return all(one.tables_alone for one in self.published)
        return self._noise_alone and not self.contrasts and (self.round is None or self.round.clip is None)

    @property
    def _noise_alone(self) -> bool:
        """Whether all of it is noise on one sum over all persons.

        Not so of rounds that sample, and of a session, whose steps can be choices: which steps it takes may depend on
        what came out, so its guarantee is that of all the steps there could be.
        """
        return self.session is None and (self.round is None or self.round.sampling_rate == 1)

    @property
    def ranges(self) -> tuple[str, ...]:
        """The attributes whose own tables were measured by windows of codes, in it or in a step of its session."""
        own = [
            group[0][0]
            for group, strategy in zip(self.structure.groups, self.measurement.strategies, strict=False)
            if strategy is not None
        ]
        steps = [name for one in self.steps if isinstance(one, NoisyTables) for name in one.ranges]
        return tuple(dict.fromkeys([*own, *steps]))

    def exchange_factor(self, kind: BudgetKind) -> Fraction:
        """By what factor exchanging one person's data costs more than adding one, of a cost of this kind.

        That of the sensitivities of what was measured, or the one of whatever could be released.
        """
        if self.published != (self,):
            return max(one.exchange_factor(kind) for one in self.published)
        if kind != self.cost.kind or not self._noise_alone:
            return change_factor(kind, 1, 1)
        return self.measurement.exchange_factor(kind, self.terms, None if self.round is None else self.round.clip)

    def conditions(self) -> list[str]:
        """What else a guarantee must say of this release: rounds, a session, contrasts, a stated cost, how N became
        known."""
        return conditions_of([self])

    def _conditions(self) -> list[str]:
        """Those that do not depend on other releases."""
        conditions = [] if self.provenance.get("validated") is not True else [_VALIDATED]
        if self.round is not None:
            conditions.append(self.round.sentence())
        if self.contrasts:
            conditions.append(
                f"Measured were {len(self.structure.groups)} sums of products of attributes coded +1 and -1, and no "
                "cells. "
            )
        if self.ranges:
            conditions.append(
                f"Of {', '.join(map(repr, self.ranges))} weighted sums over windows of values were measured, and no "
                "cells. "
            )
        if self.session is not None:
            steps = f"{len(self.steps)} adaptive step{'' if len(self.steps) == 1 else 's'}"
            conditions.append(f"It holds for a session of {steps} together, the tables, choices and scores of each. ")
            account = self.session.account
            if account is not None:
                choices = f" with {account.count} planned choices" if account.count else ""
                conditions.append(f"It is that of the exact Gaussian curve of its noise{choices}. ")
            if self.session.votes is not None:
                measured = self.session.budget if account is None else self.cost - self.session.votes
                conditions.append(
                    f"It is the sum of {self.session.votes} for votes of records on the structure, whatever they came "
                    f"to, and {measured} for what was measured after them. "
                )
        if self.cost_stated:
            conditions.append(
                "The cost of the rounds together is as the author of the file states it; it was not recomputed. "
            )
        if self.total_policy == "declared":
            conditions.append("The number of records was declared by the owner as public knowledge. ")
        return conditions

    def save(self, path: str | Path) -> None:
        """Write the release to a new file, atomically.

        Raises ModelFileError where another file stands, and for a view: save what is `published`.
        """
        if self.published != (self,):
            raise ModelFileError(
                f"{path} cannot hold a view of {len(self.published)} release(s), which is made again at no cost; save "
                "those of its `published`"
            )
        self.write(path)

    def write(self, path: str | Path, replaces: str | None = None, *, part: Path | None = None) -> None:
        """Like `save`; replaces: the kind of file that may give way, as of a session that goes on; part: a file whose
        space serves (`dpgm_core._util.files.atomic_file`)."""
        write_archive(path, {"release.json": self.to_document()}, {"tables.npz": self.numbers}, replaces, part=part)

    @property
    def numbers(self) -> Array:
        """The noisy numbers of a file: those of the tables, or of all steps of a session one after the other."""
        if self.session:
            return np.concatenate([one.numbers for one in self.steps])
        units = self.measurement.number_units
        if not self.contrasts and (units == 1).all():
            return self.measured
        measured = self.measured * (units if self.contrasts else self.tables.repeat(units))
        exact = all(one.noise.exact for one in self.measurement.calibrations)
        return np.rint(measured).astype(np.int64) if exact else measured

    def step_document(self, place: Mapping[Clique, int]) -> dict[str, Any]:
        """JSON values of it as a step of a session, whose file has the rest; place: the number of each candidate."""
        return {
            "kind": "measure",
            "cliques": [place[clique] for clique in self.structure.cliques if clique],
            "check": self.holdout,  # the key of the file format
            **self._noise_document(),
        } | ({"contrasts": True} if self.contrasts else {})

    def _noise_document(self) -> dict[str, Any]:
        """JSON values of N and of the noise of each table."""
        return {
            "total": self.total,
            "total_variance": self.total_variance,
            "calibrations": [calibration_to(one) for one in self.measurement.calibrations],
            "calibration_of": list(self.measurement.of_group),
        } | ({"ranges": strategies_to(self.measurement.strategies)} if self.measurement.strategies else {})

    def to_document(self) -> dict[str, Any]:
        """Everything but the numbers as JSON values."""
        facts: dict[str, Any] = {
            "format": "dpgm-release",
            "schema": self._schema,
            "dpgm": __version__,
            "private": self.private,
            "unsafe": self.unsafe,
            "guarantee": self.guarantee(),
            "terms": self.terms.to_dict(),
            "cost": self.cost.to_dict(),
            "provenance": plain(self.provenance),
        }
        facts |= {} if self.discovery is None else {"discovery": self.discovery.to_dict()}
        modelled = {"modelled": self.modelled.to_dict()} if self.modelled else {}
        if self.session is not None:
            place = {clique: number for number, clique in enumerate(self.session.workload.candidates)}
            return facts | {
                "session": self.session.to_dict(),
                "numbers": len(self.numbers),
                "steps": shortened([one.step_document(place) | self._coarse(one) for one in self.steps]),
                "domain": self.session.workload.domain.to_dict(),
                **modelled,
            }
        facts |= {
            **self._noise_document(),
            "round": None if self.round is None else self.round.to_dict(),
            "structure": self.structure.to_dict(),
            "domain": self.structure.domain.to_dict(),
        }
        facts |= {"check": True} if self.holdout else {}
        facts |= {"contrasts": True} if self.contrasts else {}
        return facts | modelled

    @property
    def _schema(self) -> int:
        if self.ranges:
            return SCHEMA
        if self.session is not None and self.session.account is not None:
            return _ACCOUNT_SCHEMA
        if self.discovery is not None:
            return _LABELS_SCHEMA
        return CONTRASTS_SCHEMA if self.contrasts else _SESSION_SCHEMA if self.session else _PLAIN_SCHEMA

    def _coarse(self, step: NoisyTables | Choice | NoisyScores | Descent | Verdict) -> dict[str, bool]:
        """Whether a step counted by merged codes; choices, scores and votes are the same either way."""
        if isinstance(step, Choice | NoisyScores | Verdict) or self.session is None:
            return {}
        counted = step.regressions.candidates if isinstance(step, Descent) else step.structure
        return {"coarse": counted.domain != self.session.workload.domain}


def guarantee_of(releases: Sequence[NoisyTables], cost: Budget) -> str:
    """The guarantee of several releases about the same people together, in one paragraph.

    releases: at least one, and alike (see `check_alike`). cost: of all of them, with the labels found before.
    """
    found_before = discoveries(releases)
    bins = [one.name for release in releases if release.session is not None for one in release.session.bins]
    related = releases[0].terms.related
    stated = [one.structure.domain.constraints for one in releases] if related is None else [related.stated]
    rules = [rule.name for constraints in stated for rule in constraints]
    columns = [name for one in found_before for name in one.attributes]
    labels = [name for one in found_before for name in one.names if name not in columns]
    domain = public_domain(columns=columns, labels=labels, bins=bins, constraints=rules)
    text = f"Differential privacy with {cost} under {releases[0].terms.sentence(_origin(releases), domain)} "
    if cost.kind == "gdp":
        text += f"It implies {part_text(cost.to_approx('1e-6'), up=True)}. "
    for one in found_before:
        what = "the labels" if one.described is None else "what was found"
        text += f"Finding {what} of {', '.join(map(repr, one.names))} is {one.cost} of it. "
    if len(releases) > 1:
        text += f"It holds for all {len(releases)} releases together. "
    text += "".join(conditions_of(releases))
    flawed = flaws(unsafe=(one.unsafe for one in releases), private=all(one.private for one in releases))
    text = "".join(f"{flaw}. Were it not: " for flaw in flawed) + text
    return printable(text) + (
        "Not covered: side channels such as timing, other releases about the same people that no common ledger "
        "records, and plugins, which run with the owner's rights."
    )


def conditions_of(releases: Sequence[NoisyTables]) -> list[str]:
    """What else the guarantee of releases together must say, each sentence once."""
    conditions = [sentence for one in releases for sentence in one._conditions()]
    condition = condition_of(releases)
    if condition is not None:
        conditions.append(f"The exact number of records is published too: the guarantee is {condition}. ")
    return list(dict.fromkeys(conditions))


def condition_of(releases: Sequence[NoisyTables]) -> str | None:
    """What the guarantee of releases together is conditional on, as `Terms.condition_for` words it; None if on nothing.

    releases: alike (see `check_alike`). What one of them publishes no other hides.
    """
    published = [one.terms for one in releases if one.terms.condition is not None]
    if not published:
        return None
    kinds = {one.cost.kind for one in releases} | {one.cost.kind for one in discoveries(releases)}
    kind: BudgetKind = kinds.pop() if len(kinds) == 1 else "approx"  # as `total_cost` composes them
    return published[0].condition_for({kind: max(one.exchange_factor(kind) for one in releases)})


def discoveries(releases: Sequence[NoisyTables]) -> tuple[Discovery, ...]:
    """The labels found before any of these releases, each discovery once, however many share it."""
    distinct: list[Discovery] = []
    for one in releases:
        if one.discovery is not None and one.discovery not in distinct:
            distinct.append(one.discovery)
    return tuple(distinct)


def total_cost(
    releases: Sequence[NoisyTables], cost: Budget | None = None, conversion_delta: Fraction | None = None
) -> Budget:
    """What releases about the same people cost together, with the labels found before them.

    cost: of the releases without those labels, where it is known. Raises BudgetError as `compose_budgets` does.
    """
    searches = discoveries(releases)
    own = [one.cost for one in releases]
    if len(searches) == 1 and all(one.discovery is not None for one in releases):
        together = searches[0].with_tables(own)
        if together is not None:
            return together
    costs = costs_apart(releases, own) if cost is None else [cost]
    return compose_budgets([*(one.cost for one in searches), *costs], conversion_delta)


def costs_apart(releases: Sequence[NoisyTables], costs: Sequence[Budget]) -> list[Budget]:
    """The costs of releases, with the price of an account with a search in the place of those that are in it.

    The first of these has it. All are as they were where all are in one account.
    """
    apart = list(costs)
    for search in discoveries(releases):
        numbers = [n for n, one in enumerate(releases) if one.discovery == search and costs[n].kind == "gdp"]
        price = search.price_of_tables(Budget.sum(costs[n] for n in numbers)) if numbers else None
        if price is not None and len(numbers) < len(releases):
            for n in numbers:
                apart[n] = price if n == numbers[0] else Budget.zero("approx")
    return apart


def _origin(releases: Sequence[NoisyTables]) -> Origin:
    """Where the structure comes from; that of a holdout is drawn at random, whatever the rest."""
    chosen = [one.session is not None and not one.session.named for one in releases if not one.holdout]
    if not any(chosen):
        return "named"
    return "chosen" if all(chosen) else "both"


def member_names(number: int) -> tuple[str, str]:
    """The members of an archive that hold its `number`-th release: the facts and the tables.

    >>> member_names(1), member_names(2)
    (('release.json', 'tables.npz'), ('release-2.json', 'tables-2.npz'))
    """
    suffix = "" if number == 1 else f"-{number}"
    return f"release{suffix}.json", f"tables{suffix}.npz"


def check_alike(releases: Sequence[NoisyTables]) -> None:
    """Refuse, with BudgetError, releases whose guarantees do not add up to one: other relation, people or weights."""
    for other in releases[1:]:
        first = releases[0]
        if other.neighbours is not first.neighbours:
            raise BudgetError(
                f"releases under {first.neighbours.value} and {other.neighbours.value} neighbours do not add up to one "
                "guarantee; learn from those of one relation"
            )
        if other.contributions != first.contributions:
            raise BudgetError("releases that weight rows differently do not go together; learn from one of them")
        if first.terms.key == other.terms.key and first.terms.related != other.terms.related:
            raise BudgetError(
                "releases of two related tables that state other columns, labels or constraints do not go together; "
                "learn from those of one statement"
            )
        if evolve(other.terms, total="estimated") != evolve(first.terms, total="estimated"):
            raise BudgetError(
                "releases that protect different units do not add up to one guarantee: "
                + ", and ".join(
                    f"{one.unit}, {one.rows_per_person} row(s) by {one.terms.key!r}" for one in (first, other)
                )
            )


def check_domain(domain: Domain, releases: Iterable[NoisyTables]) -> None:
    """Refuse, with StructureError, releases that measured attributes which the domain does not have just so."""
    for one in releases:
        measured = {name for clique in one.structure.cliques for name in clique}
        other = sorted(name for name in measured if name not in domain or one.structure.domain[name] != domain[name])
        if other:
            raise StructureError(
                f"a release measured {', '.join(map(repr, other[:4]))} with other labels, bins or unknown values than "
                "the model has, or the model has none such; give releases over the model's domain"
            )
