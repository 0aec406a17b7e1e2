"""Reading of releases, and verification of what a file states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import Array, IntArray
from dpgm_core._util.exact_numbers import amount, whole
from dpgm_core._util.files import Archive, read_archive
from dpgm_core._util.version import __version__
from dpgm_core.components.options import converter
from dpgm_core.components.registry import Registry
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DomainError, DpgmError, ModelFileError, OptionError, StructureError
from dpgm_core.privacy.accounting import MAX_ROUNDS, compose, sampling_probability
from dpgm_core.privacy.bins import moved_rows
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contrasts import check_contrasts, spread
from dpgm_core.privacy.descent import Loss, Regressions
from dpgm_core.privacy.measurement import Measurement, check_ranges, sensitivity_of
from dpgm_core.privacy.mechanism import Calibration, Noise, check_claims, check_together
from dpgm_core.privacy.ranges import RangeStrategy
from dpgm_core.privacy.selection import (
    MAX_TABLE_LENGTH,
    MIN_TABLE_LENGTH,
    SCORE_GRID,
    TableDistance,
    count_forest,
    forest_ends,
    table_length,
)
from dpgm_core.privacy.sensitivity import ClippedScore
from dpgm_core.privacy.session_account import SessionAccount
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import voter_of
from dpgm_core.releases.calibrations import calibration_of
from dpgm_core.releases.labels import Discovery, read_discovery
from dpgm_core.releases.release import CONTRASTS_SCHEMA, SCHEMA, NoisyTables, Round, member_names
from dpgm_core.releases.session import Step, score_sensitivity, session_release, spend_steps
from dpgm_core.releases.steps import (
    Choice,
    Descent,
    FoundBins,
    NoisyScores,
    SessionTerms,
    Verdict,
    mechanism_of,
    read_bins,
)
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload

__all__ = ["check_format", "load_release", "read_release", "read_structure"]


# --- Verification of a release: the facts behind its guarantee are computed again -----------------
# What a noise costs is computed again from its event; then what its scale was calibrated to, the cost of all, the
# rounds, and what is unsafe are checked. A rewritten scale, or rewritten noisy values, cannot be detected.

#: Room for the rounding of an accountant's doubles.
_ROUNDING_FACTOR = 1 + 1e-8
_EDITED = "{}; the file was edited"


def _check_sensitivities(measurement: Measurement, terms: Terms, clip: ClippedScore | None = None) -> None:
    """Refuse calibrations to anything but what one person can change: in all tables, or in one table each."""
    calibrations, structure = measurement.calibrations, measurement.structure
    if len(calibrations) > 1 and list(measurement.of_group) != list(range(len(calibrations))):
        raise ModelFileError("its noises do not fit its tables: there must be one for all of them, or one for each")
    parts = [structure] if len(calibrations) == 1 else [structure.only(group) for group in measurement.of_group]
    strategies = measurement.strategies or (None,) * len(parts)
    for one, part, strategy in zip(calibrations, parts, strategies, strict=True):
        needed = (
            terms.sensitivity(part, clip, contrasts=measurement.contrasts)
            if strategy is None
            else sensitivity_of(part, terms, strategy=strategy)
        )
        if one.sensitivity != needed:
            raise ModelFileError(
                f"it states {one.sensitivity}, but under {terms.neighbours.value} neighbours with rows_per_person = "
                f"{terms.rows_per_person} one person can change {needed}; the file was edited"
            )
        # A noise costs at least what its event and the sensitivity allow.
        with _refused(_EDITED, BudgetError):
            check_claims(one.noise, one.sensitivity)


@contextmanager
def _refused(words: str, *errors: type[DpgmError]) -> Iterator[None]:
    """Raise errors of the block as ModelFileError; words: its text, with {} for theirs."""
    try:
        yield
    except errors as error:
        raise ModelFileError(words.format(error)) from None


def _read_contrasts(document: Mapping[str, Any], structure: Structure, terms: Terms) -> bool:
    """Whether a file says that it holds contrasts; ModelFileError where it cannot hold them."""
    stated = document.get("contrasts", False)
    if not isinstance(stated, bool):
        raise ModelFileError("it does not say whether it holds contrasts")
    if not stated:
        return False
    with _refused("it holds no contrasts, as it says: {}", StructureError):
        check_contrasts(structure)
    if terms.contributions is not None:
        raise ModelFileError("contrasts go without normalised contributions")
    if terms.total_policy == "estimated" and () not in structure.cliques:
        raise ModelFileError("it estimates N, but has not measured it: the empty clique is missing")
    return True


def _read_strategies(
    document: Mapping[str, Any], structure: Structure, terms: Terms, calibrations: Sequence[Calibration]
) -> tuple[RangeStrategy | None, ...]:
    """The windows that a file says were measured in place of cells; ModelFileError for what cannot have been."""
    if "ranges" not in document:
        return ()
    plain = converter.structure(document["ranges"], list[list[list[int]] | None])
    if len(plain) != len(structure.groups) or len(calibrations) != len(plain) or not any(plain):
        raise ModelFileError("its windows do not fit its tables; it was edited")
    wide = [len(group) * len(group[0]) != 1 for group in structure.groups]
    if any(scales is not None and several for scales, several in zip(plain, wide, strict=True)):
        raise ModelFileError("it has windows of a table that is not of one attribute; it was edited")
    if document.get("contrasts", False) or document.get("round") is not None:
        raise ModelFileError("windows go without contrasts and without rounds")
    with _refused(_EDITED, BudgetError, StructureError):
        check_ranges(terms)
        return tuple(
            None if scales is None else RangeStrategy(size, scales)
            for scales, size in zip(plain, structure.sizes, strict=True)
        )


def _read_round(plain: object) -> Round:
    """The round that a file states; ModelFileError for anything else."""
    if not isinstance(plain, Mapping) or set(plain) != {"number", "of", "sampling_rate", "clip_norm", "grid"}:
        raise ModelFileError("its round must state number, of, sampling_rate, clip_norm and grid")
    clipped = plain["grid"] is not None
    for name in ("sampling_rate", *(["clip_norm"] if clipped else [])):
        if not isinstance(plain[name], str):
            raise ModelFileError(f"the {name} of its rounds must be an exact amount, as a text")
    if not clipped and plain["clip_norm"] is not None:
        raise ModelFileError("its round states a clip norm without a grid")
    of = whole("the number of rounds", plain["of"], least=1, most=MAX_ROUNDS)
    return Round(
        number=whole("the round", plain["number"], least=1, most=of),
        of=of,
        sampling_rate=sampling_probability(plain["sampling_rate"]),
        clip=ClippedScore(norm=plain["clip_norm"], grid=plain["grid"]) if clipped else None,
    )


def _is_round_cost_proven(measurement: Measurement, cost: Budget, round: Round, terms: Terms) -> bool:
    """Whether sums or Renyi divergences prove the stated cost of all rounds together, of one noise.

    Pure and zCDP costs are sums, so a lower one raises ModelFileError. An (epsilon, delta) below the Renyi bound may
    still be right, by privacy loss distributions, which take too long for a reader: then False.
    """
    (one,) = measurement.calibrations
    spent = one.noise.cost
    accountant = compose(
        one.noise.event,
        one.sensitivity,
        rounds=round.of,
        sampling_rate=round.sampling_rate,
        neighbours=terms.neighbours,
        presence=terms.presence(measurement.structure, round.clip),
    )
    stated = float(cost.epsilon) * _ROUNDING_FACTOR
    if cost.kind == "approx":
        return accountant.pure_epsilon() <= stated or accountant.renyi_epsilon(cost.delta) <= stated
    if spent.kind != cost.kind:
        covered = False
    elif cost.kind == "zcdp" or round.sampling_rate == 1:
        covered = spent * round.of <= cost
    else:
        covered = accountant.pure_epsilon() <= stated
    if not covered:
        raise ModelFileError(f"the cost is not that of the noise: {round.of} rounds cost more than {cost}")
    return True


def _stated_unsafe(noises: Sequence[Noise], values: Array, plain: object) -> str | None:
    """Why the guarantee does not hold to the letter, as the noises say; refused where the file conceals it.

    values: the noisy tables, whole numbers where all noise is exact.
    """
    stated: str | None = converter.structure(plain, cast("Any", str | None))
    if values.dtype.kind == "f" and all(noise.exact for noise in noises):
        raise ModelFileError("its noise is said to be exact, but its tables hold no whole numbers; it was edited")
    reasons = sorted({noise.unsafe for noise in noises if noise.unsafe is not None})
    if reasons and not stated:
        raise ModelFileError("its noise is unsafe, which the file conceals; it was edited")
    return "; ".join(reasons) or stated


# --- Sessions: every step's cost is computed again, and the sum compared with the whole -----------

_MAX_STEPS = 100_000


def _read_session(
    document: Mapping[str, Any], terms: Terms, numbers: Array, registry: Registry | None = None
) -> NoisyTables:
    """The release whose `to_document` and `numbers` these are. Raises ModelFileError for what its steps refute."""
    domain = Domain.from_dict(document["domain"])
    stated = document["session"]
    merges = {name: tuple(codes) for name, codes in converter.structure(stated["merges"], dict[str, list[int]]).items()}
    budget = Budget.parse(stated["budget"])
    bins = _read_bins(stated.get("bins", []), domain, terms, budget)
    planned = _planned(domain, bins, converter.structure(stated.get("planned", {}), dict[str, int]))
    workload = Workload.from_dict(planned, stated["workload"])
    workload = workload.with_domain(domain) if planned is not domain else workload
    order = converter.structure(stated.get("order_before_merging", 0), int)
    session = SessionTerms(
        workload=evolve(workload, order_before_merging=order) if order else workload,
        budget=budget,
        merges=merges,
        votes=Budget.parse(stated["votes"]) if "votes" in stated else None,
        bins=bins,
        named=converter.structure(stated.get("named", False), bool),
        account=SessionAccount.parse(stated["account"]) if "account" in stated else None,
    )
    private, cost = converter.structure(document["private"], bool), Budget.parse(document["cost"])
    plain = document["steps"]
    if not isinstance(plain, list) or not 1 <= len(plain) <= _MAX_STEPS:
        raise ModelFileError("its steps are not a list of what a session hands out")
    reader = _Reader(session, terms, numbers, private, registry)
    steps = [reader.step(one) for one in plain]
    if reader.left:
        raise ModelFileError("it holds more noisy numbers than its steps")
    _check_spent(session, cost, steps)
    return session_release(session, steps, terms, cost=cost, private=private, provenance=dict(document["provenance"]))


def _planned(domain: Domain, bins: Sequence[FoundBins], labels: Mapping[str, int]) -> Domain:
    """The domain in the sizes that the session was planned for. labels: column -> how many it might have had."""
    if not bins and not labels:
        return domain
    attributes = {one.name: one.search.attribute for one in bins}
    for name, size in labels.items():
        if name not in domain or name in attributes or not domain[name].size < size:
            raise ModelFileError(f"its session was not planned for {size} labels of {name!r}; it was edited")
        attributes[name] = Attribute.of_size(name, size)
    # Constraints are left out: only sizes are needed.
    return Domain(attributes.get(one.name, one) for one in domain)


def _read_bins(plain: Any, domain: Domain, terms: Terms, budget: Budget) -> tuple[FoundBins, ...]:
    """The bins that were found first; refused where the domain has others, or they were not paid for."""
    if not isinstance(plain, list):
        raise ModelFileError("the private bins of its session are no list")
    if domain.undetermined:
        raise ModelFileError(f"bins or labels of {domain.undetermined[0]!r} were never found; it was edited")
    read = tuple(read_bins(one, moved_rows(terms), _kind(budget)) for one in plain)
    names = [one.name for one in read]
    if len(set(names)) < len(names):
        raise ModelFileError("its session found private bins of one column twice; it was edited")
    for one in read:
        if one.name not in domain or domain[one.name] != one.attribute:
            raise ModelFileError(
                f"its domain does not have the bins that its session found of {one.name!r}; it was edited"
            )
    return read


def _kind(budget: Budget) -> Literal["pure", "zcdp"]:
    """In which kind of budget the steps of a session are paid."""
    return "pure" if budget.kind == "pure" else "zcdp"


def _check_spent(session: SessionTerms, cost: Budget, steps: Sequence[Step]) -> None:
    """Refuse steps that cost more than the session had, and a session that had more than was charged.

    Votes come first, so what they might cost and what all other steps might cost add up to the whole.
    """
    budget, votes = session.budget, session.votes
    if session.bins and votes is not None:
        raise ModelFileError("its session has votes and private bins, which no session has together; it was edited")
    cast = [one for one in steps if isinstance(one, Verdict)]
    if any(isinstance(one, Verdict) for one in steps[len(cast) :]):
        raise ModelFileError("votes of its session come after other steps, which no session allows; it was edited")
    try:
        spent = [*session.bins, *steps[len(cast) :]]
        if not Budget.sum(one.cost for one in spent) <= budget:
            raise ModelFileError(f"its steps cost more than the {budget} of its session; it was edited")
        if cast and (votes is None or not Budget.sum(one.cost for one in cast) <= votes):
            raise ModelFileError("its votes cost more than its session had for votes; it was edited")
        left = cost if votes is None else cost - votes
        if session.account is not None:
            if session.account.budget != budget:
                raise ModelFileError("its session had another budget than its account; it was edited")
            spend_steps(session, left, steps[len(cast) :])
            return
        charged = budget.to_approx(left.delta) if left.kind == "approx" and budget.kind == "zcdp" else budget
        if not charged <= left:
            had = f"{budget}" if votes is None else f"{budget} and {votes} for votes"
            raise ModelFileError(f"its session had {had}, which {cost} does not cover; it was edited")
    except BudgetError:
        raise ModelFileError("its steps, its session and its cost do not fit each other; it was edited") from None


class _Reader:
    """Steps out of their documents, each with its part of the numbers."""

    def __init__(
        self, session: SessionTerms, terms: Terms, numbers: Array, private: bool, registry: Registry | None
    ) -> None:
        self._session, self._terms, self._private, self._registry = session, terms, private, registry
        self._numbers, self._at = numbers, 0
        domain = session.workload.domain
        self._domains = (domain, domain.coarsened(session.merges) if session.merges else domain)
        self._person = TableDistance.move(terms)
        self._regressions: Regressions | None = None  # of the descent before

    @property
    def left(self) -> int:
        """Numbers that no step took."""
        return len(self._numbers) - self._at

    def step(self, plain: Any) -> Step:
        """The next step."""
        kind = plain.get("kind") if isinstance(plain, Mapping) else None
        readers: dict[object, Callable[[Any], Step]] = {
            "measure": self._measured,
            "select": self._chosen,
            "score": self._scored,
            "mean": self._scored,
            "descend": self._descended,
            "vote": self._voted,
        }
        if not isinstance(kind, str) or kind not in readers:
            raise ModelFileError("a step of its session is of no known kind")
        return readers[kind](plain)

    def _measured(self, plain: Mapping[str, Any]) -> NoisyTables:
        domain = self._domains[converter.structure(plain["coarse"], bool)]
        cliques = self._cliques(plain["cliques"])
        contrasts = converter.structure(plain.get("contrasts", False), bool)
        # N is measured by the empty clique, which is no candidate.
        structure = Structure(
            domain, [(), *cliques] if contrasts and self._terms.total_policy == "estimated" else cliques
        )
        if contrasts:
            _read_contrasts(plain, structure, self._terms)
        calibrations = tuple(map(self._calibration, plain["calibrations"]))
        measurement = Measurement(
            structure=structure,
            calibrations=calibrations,
            of_group=_read_of_group(plain, structure, calibrations, "the noise of a step does not fit its tables"),
            contrasts=contrasts,
            grid=self._terms.draws,
            strategies=_read_strategies(plain, structure, self._terms, calibrations),
        )
        _check_sensitivities(measurement, self._terms)
        total, variance = _read_total(plain, "the total of a step is not a number of at least 1")
        taken = self._taken(len(structure.groups) if contrasts else structure.cells)
        return NoisyTables(
            tables=_tables_of(measurement, taken, total),
            measurement=measurement,
            terms=self._terms,
            total=total,
            total_variance=variance,
            cost=measurement.cost,
            private=self._private,
            holdout=converter.structure(plain["check"], bool),
        )

    def _chosen(self, plain: Mapping[str, Any]) -> Choice:
        cliques = self._cliques(plain["candidates"])
        parts = self._groups(plain["groups"], len(cliques))
        chosen = converter.structure(plain["chosen"], list[list[int]])
        sound = len(chosen) == len(parts) and all(
            set(picked) <= set(group) and len(set(picked)) == len(picked) == len(chosen[0]) > 0
            for picked, group in zip(chosen, parts, strict=True)
        )
        forest = None
        if plain.get("forest") is not None:
            forest = tuple(map(tuple, converter.structure(plain["forest"], list[list[str]])))
            with _refused("a choice of its session is no forest: {}", StructureError):
                sound = sound and len(parts) == 1 and self._is_forest(cliques, forest, chosen[0])
        temperature = amount("the temperature of a choice", converter.structure(plain["temperature"], str))
        grid = converter.structure(plain["grid"], int)
        if not sound or not MIN_TABLE_LENGTH <= table_length(temperature) <= MAX_TABLE_LENGTH:
            raise ModelFileError("a choice of its session is not one that a session makes")
        if grid < 1 or SCORE_GRID % grid:
            raise ModelFileError(f"a choice of its session has scores in units of 1/{grid}, which no session has")
        return Choice(
            candidates=cliques,
            groups=parts,
            chosen=tuple(map(tuple, chosen)),
            temperature=temperature,
            grid=grid,
            person=self._person,
            kind=_kind(self._session.budget),
            forest=forest,
        )

    def _is_forest(self, pairs: Sequence[Clique], connected: Sequence[Clique], chosen: Sequence[int]) -> bool:
        """Whether no pair chosen lies inside a tree of those before and of what was connected."""
        if not {name for clique in connected for name in clique} <= set(self._domains[0].names):
            return False
        return count_forest(forest_ends(pairs, connected), chosen) == len(chosen)

    def _scored(self, plain: Mapping[str, Any]) -> NoisyScores:
        cliques = self._cliques(plain["candidates"])
        groups = self._groups(plain["groups"], len(cliques)) if plain["kind"] == "mean" else None
        count = len(cliques if groups is None else groups)
        calibration = self._calibration(plain["calibration"], core=True)
        needed = score_sensitivity(count, self._person)
        if calibration.sensitivity != needed:
            raise ModelFileError(
                f"it states {calibration.sensitivity} for scores that one person can change by {needed}"
            )
        check_claims(calibration.noise, needed)
        return NoisyScores(
            candidates=cliques, values=self._taken(count) / SCORE_GRID, calibration=calibration, groups=groups
        )

    def _descended(self, plain: Mapping[str, Any]) -> Descent:
        if plain["candidates"] is None and self._regressions is None:
            raise ModelFileError("a descent of its session names the candidates of one before, and there is none")
        domain = self._domains[converter.structure(plain["coarse"], bool)]
        loss = cast(Loss, converter.structure(plain["loss"], str))  # refused by regressions if it is none
        if self._regressions is None or plain["candidates"] is not None:
            self._regressions = Regressions(candidates=Structure(domain, self._cliques(plain["candidates"])), loss=loss)
        own = self._regressions
        if (own.loss, own.candidates.domain) != (loss, domain):
            raise ModelFileError("a descent of its session names the candidates of one before, which it differs from")
        clip = None if plain["clip"] is None else amount("a clip", converter.structure(plain["clip"], str))
        picks = converter.structure(plain["picks"], list[tuple[int, int, int]])
        descent = Descent(
            regressions=own,
            picks=tuple(picks),
            temperature=amount("the temperature of a descent", converter.structure(plain["temperature"], str)),
            radius=amount("a radius", converter.structure(plain["radius"], str)),
            clip=clip,
            residual_grid=converter.structure(plain["residual_grid"], int),
            person=self._person,
            kind=_kind(self._session.budget),
        )
        if not MIN_TABLE_LENGTH <= table_length(descent.temperature) <= MAX_TABLE_LENGTH or not descent.sound:
            raise ModelFileError("a descent of its session is not one that a session makes")
        return descent

    def _voted(self, plain: Mapping[str, Any]) -> Verdict:
        voter = voter_of(plain["voter"], Structure(self._domains[0], self._cliques(plain["candidates"])))
        budget, stated = Budget.parse(plain["budget"]), plain["edges"]
        edges = None if stated is None else () if stated == [] else self._cliques(stated)
        if budget.kind != "approx" or (edges is not None and not set(edges) <= set(voter.pairs.cliques)):
            raise ModelFileError("the votes of its session are none that a session casts")
        with _refused("its votes do not go with its terms: {}", OptionError):
            voter.check(self._terms)
        return Verdict(voter=voter, budget=budget, edges=edges)

    def _calibration(self, plain: Mapping[str, Any], *, core: bool = False) -> Calibration:
        """The calibration of a step; core: whether its noise must be core's own."""
        calibration = calibration_of(plain, self._registry)
        noise = calibration.noise
        if noise.unsafe is not None or not noise.exact or noise.cost.kind != self._session.budget.kind:
            raise ModelFileError("a step of its session has other noise than sessions draw; it was edited")
        if core and calibration.component != mechanism_of(self._session.budget):
            raise ModelFileError("scores of its session have other noise than sessions draw; it was edited")
        return calibration

    def _cliques(self, plain: Any) -> tuple[Clique, ...]:
        candidates = self._session.workload.candidates
        numbers = converter.structure(plain, list[int])
        if (
            not numbers
            or len(set(numbers)) < len(numbers)
            or not all(0 <= number < len(candidates) for number in numbers)
        ):
            raise ModelFileError("a step of its session names a table twice, or one that is not in the workload")
        return tuple(candidates[number] for number in numbers)

    def _groups(self, plain: Any, count: int) -> tuple[tuple[int, ...], ...]:
        """Groups of so many candidates, by number; None is all of them."""
        groups = [list(range(count))] if plain is None else converter.structure(plain, list[list[int]])
        if not groups or not all(
            group and len(set(group)) == len(group) and set(group) <= set(range(count)) for group in groups
        ):
            raise ModelFileError("a step of its session groups candidates that it does not have, twice, or none")
        return tuple(map(tuple, groups))

    def _taken(self, count: int) -> IntArray:
        part: IntArray = self._numbers[self._at : self._at + count]
        if len(part) != count:
            raise ModelFileError("it holds fewer noisy numbers than its steps")
        self._at += count
        return part


# --- Release files, and releases in model files ---------------------------------------------------


def load_release(path: str | Path, *, registry: Registry | None = None) -> NoisyTables:
    """Read a release from its own file or from the model file that carries it.

    Raises ModelFileError for anything damaged, hostile or too new, for a model that carries several (see
    `Model.releases`), and PluginError if the mechanism is missing.
    """

    def read(archive: Archive) -> NoisyTables:
        if member_names(2)[0] in archive.names():
            raise ModelFileError(f"{path} carries several releases; take one of load_model(path).releases")
        return read_release(archive, registry)

    return read_archive(path, "release file", read)


def read_release(archive: Archive, registry: Registry | None = None, number: int = 1) -> NoisyTables:
    """Read the `number`-th release inside an open archive."""
    facts, values = member_names(number)
    document = archive.document(facts)
    check_format(archive, document, "dpgm-release", SCHEMA)
    if document["schema"] == 1:
        document = _from_schema_1(document)
    if "session" in document:
        numbers = archive.array(values, whole("the count of its numbers", document["numbers"], least=0), (np.int64,))
        session = _read_session(document, _read_terms(document["terms"]), numbers, registry)
        assert session.session is not None
        _check_related(session.terms, session.session.workload.domain)
        return evolve(
            session,
            modelled=_read_modelled(document.get("modelled"), session.structure),
            discovery=_read_discovery(document, session.session.workload.domain, session.terms),
        )
    structure = read_structure(document)
    terms = _read_terms(document["terms"])
    _check_related(terms, structure.domain)
    contrasts = _read_contrasts(document, structure, terms)
    if contrasts and document["schema"] < CONTRASTS_SCHEMA:
        raise ModelFileError(f"{archive.path}: contrasts are of schema {CONTRASTS_SCHEMA}, not {document['schema']}")
    numbers = archive.array(values, len(structure.groups) if contrasts else structure.cells)
    if not np.all(np.isfinite(numbers)):
        raise ModelFileError(f"{archive.path}: the tables hold NaN or infinite values")
    cost = Budget.parse(document["cost"])
    calibrations = tuple(calibration_of(one, registry) for one in document["calibrations"])
    # several noises, each of a rho, and one (epsilon, delta): so they were drawn together
    drawn = document["round"] is None and cost.kind == "approx" and len(calibrations) > 1
    measurement = Measurement(
        structure=structure,
        calibrations=calibrations,
        of_group=_read_of_group(
            document, structure, calibrations, f"{archive.path}: the noise does not fit the tables"
        ),
        together=cost if drawn and all(one.noise.cost.kind == "zcdp" for one in calibrations) else None,
        contrasts=contrasts,
        grid=terms.draws,
        strategies=_read_strategies(document, structure, terms, calibrations),
    )
    total, variance = _read_total(document, f"{archive.path}: the total is not a number of at least 1")
    if not calibrations:
        raise ModelFileError(f"{archive.path}: it has no noise")
    round = None if document["round"] is None else _read_round(document["round"])
    if terms.contributions is not None and round is not None:
        raise ModelFileError(f"{archive.path}: normalised contributions go without rounds")
    if contrasts and round is not None:
        raise ModelFileError(f"{archive.path}: contrasts go without rounds")
    _check_sensitivities(measurement, terms, None if round is None else round.clip)
    if measurement.together is not None:  # not below what `dpgm_core.privacy.joint_gaussian` proves
        with _refused(_EDITED, BudgetError):
            check_together([(one.noise, one.sensitivity) for one in calibrations], measurement.together)
    proven = True
    if round is None:
        if measurement.cost != cost:
            raise ModelFileError(f"{archive.path}: the cost is not that of the noise")
    elif len(calibrations) > 1:
        raise ModelFileError(f"{archive.path}: rounds have one noise for all tables")
    else:
        proven = _is_round_cost_proven(measurement, cost, round, terms)
    return NoisyTables(
        tables=_tables_of(measurement, numbers, total),
        measurement=measurement,
        terms=terms,
        total=total,
        total_variance=variance,
        cost=cost,
        private=converter.structure(document["private"], bool),
        unsafe=_stated_unsafe([one.noise for one in calibrations], numbers, document["unsafe"]),
        round=round,
        provenance=dict(document["provenance"]),
        cost_stated=not proven,
        holdout=converter.structure(document.get("check", False), bool),
        modelled=_read_modelled(document.get("modelled"), structure),
        discovery=_read_discovery(document, structure.domain, terms),
    )


def _tables_of(measurement: Measurement, numbers: Array, total: float) -> Tables:
    """The tables whose noisy numbers a file holds."""
    structure, units = measurement.structure, measurement.number_units
    if measurement.contrasts:
        return spread(structure, numbers if measurement.grid == 1 else numbers / measurement.grid, total)
    return Tables(structure, numbers if (units == 1).all() else numbers / np.repeat(units, structure.sizes))


def _read_of_group(
    plain: Mapping[str, Any], structure: Structure, calibrations: Sequence[Calibration], refusal: str
) -> tuple[int, ...]:
    """The number of the noise of each table; ModelFileError(refusal) where they do not fit each other."""
    of_group = tuple(converter.structure(plain["calibration_of"], list[int]))
    if len(of_group) != len(structure.groups) or not all(0 <= i < len(calibrations) for i in of_group):
        raise ModelFileError(refusal)
    return of_group


def _read_total(plain: Mapping[str, Any], refusal: str) -> tuple[float, float]:
    """N and its variance; ModelFileError(refusal) for what they cannot be."""
    total, variance = (converter.structure(plain[key], float) for key in ("total", "total_variance"))
    if not (math.isfinite(total) and total >= 1 and math.isfinite(variance) and variance >= 0):
        raise ModelFileError(refusal)
    return total, variance


def _read_discovery(document: Mapping[str, Any], domain: Domain, terms: Terms) -> Discovery | None:
    """Labels that were found before; refused, with ModelFileError, where the domain has others."""
    if "discovery" not in document:
        return None
    discovery = read_discovery(document["discovery"], terms)
    for one in discovery.columns:
        if one.column not in domain or domain[one.column].labels[: len(one.labels)] != one.labels:
            raise ModelFileError(f"its attribute {one.column!r} has other labels than were found; the file was edited")
    for name, attribute in discovery.attributes.items():
        if name not in domain or domain[name] != attribute:
            raise ModelFileError(f"its attribute {name!r} is not the one that was found; the file was edited")
    return discovery


def _read_modelled(plain: Any, measured: Structure) -> Structure | None:
    """What a release was made to learn; spelled out, and with room for every table. Raises ModelFileError."""
    if plain is None:
        return None
    if not isinstance(plain, Mapping) or not plain.keys() <= {"cliques", "tied"}:
        raise ModelFileError("the model that the release was made for must be given by its cliques")
    structure = Structure.from_dict(measured.domain, plain)
    for clique in measured.cliques:
        if structure.covering(clique) is None:
            raise ModelFileError(f"the model that the release was made for has no clique that contains {clique!r}")
    return structure


def check_format(archive: Archive, document: Mapping[str, Any], expected: str, schema: int) -> None:
    """Refuse other formats and newer schemas with what to do about it."""
    if document.get("format") != expected:
        raise ModelFileError(f"{archive.path} is not a {expected} file")
    actual = document.get("schema")
    if not isinstance(actual, int) or isinstance(actual, bool) or not 1 <= actual <= schema:
        raise ModelFileError(
            f"{archive.path} has schema {actual!r}, this dpgm {__version__} reads schemas up to {schema}; "
            f"it was written by dpgm {document.get('dpgm')!r}"
        )


def read_structure(document: Mapping[str, Any]) -> Structure:
    """Domain and structure of a document; it bounds their sizes itself, as labels and cliques are spelled out."""
    attributes = document["domain"]["attributes"]
    if any("size" in entry for entry in attributes.values()):
        raise ModelFileError("the domain must spell out its labels")
    if "graph" in document["structure"]:
        raise ModelFileError("the structure must spell out its cliques")
    return Structure.from_dict(Domain.from_dict(document["domain"]), document["structure"])


def _read_terms(plain: Any) -> Terms:
    keys = {"neighbours", "unit", "person", "rows_per_person", "contributions", "total"}
    # Of two related tables they state these too; a dpgm that does not know them refuses the file here.
    if not isinstance(plain, dict) or set(plain) - {"related"} != keys or not isinstance(plain["unit"], str):
        raise ModelFileError(f"its terms must state {', '.join(sorted(keys))}")
    return Terms.from_dict(plain)


def _check_related(terms: Terms, domain: Domain) -> None:
    """Refuse a domain that is not of the two tables that the terms state."""
    if terms.related is not None:
        with _refused(_EDITED, DomainError):
            terms.related.check(domain)


def _from_schema_1(document: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a file of schema 1, in the places where schema 2 has them."""
    provenance = dict(document["provenance"])
    policy, total, round = document["total_policy"], document["total"], provenance.pop("rounds", None)
    if policy not in ("estimated", "public", "declared"):
        raise ModelFileError(f"there is no total policy {policy!r}")
    if round is not None:
        least = {"round", "rounds", "sampling_rate"}
        if not isinstance(round, Mapping) or set(round) not in (least, least | {"clip_norm", "grid"}):
            raise ModelFileError(
                "its rounds must state round, rounds, sampling_rate, and clip_norm with grid if clipped"
            )
        round = {
            "number": round["round"],
            "of": round["rounds"],
            "sampling_rate": round["sampling_rate"],
            "clip_norm": round.get("clip_norm"),
            "grid": round.get("grid"),
        }
    if policy == "declared":  # rounds state the total of a subsample
        rate = Fraction(1) if round is None else _read_round(round).sampling_rate
        policy = float(converter.structure(total, float)) / float(rate)
    return {
        **document,
        "terms": {
            "neighbours": document["neighbours"],
            "unit": document["unit"],
            "person": provenance.pop("person_key", None),
            "rows_per_person": document["rows_per_person"],
            # files of the first versions do not have the key
            "contributions": document.get("contributions"),
            "total": policy,
        },
        "round": round,
        "provenance": provenance,
    }
