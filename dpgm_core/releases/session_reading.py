"""Reading of sessions: every step's cost is computed again, and the sum compared with the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from dpgm_core.arrays import Array, IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.components.options import converter
from dpgm_core.components.registry import Registry
from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError, ModelFileError, OptionError
from dpgm_core.noise.calibration import Calibration
from dpgm_core.noise.choice import MAX_TABLE_LENGTH, MIN_TABLE_LENGTH, entries
from dpgm_core.noise.claims import check_claims
from dpgm_core.noise.contrasts import spread
from dpgm_core.noise.measurement import Measurement
from dpgm_core.privacy.amounts import amount
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ranks import check_single_rows
from dpgm_core.privacy.regressions import Loss, Regressions
from dpgm_core.privacy.scores import SCORE_GRID, TableDistance
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import voter_of
from dpgm_core.releases.bins import FoundBins, read_bins
from dpgm_core.releases.calibrations import calibration_of
from dpgm_core.releases.claims import check_sensitivities, read_contrasts
from dpgm_core.releases.descents import Descent
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.session import Step, score_sensitivity, session_release
from dpgm_core.releases.steps import Choice, NoisyScores, SessionTerms, mechanism_of
from dpgm_core.releases.verdict import Verdict
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables
from dpgm_core.workload import Workload

__all__ = ["read_session"]

_MOST_STEPS = 100_000


def read_session(
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
    session = SessionTerms(
        workload=workload.with_domain(domain) if planned is not domain else workload,
        budget=budget,
        merges=merges,
        votes=Budget.parse(stated["votes"]) if "votes" in stated else None,
        bins=bins,
        named=converter.structure(stated.get("named", False), bool),
    )
    private, cost = converter.structure(document["private"], bool), Budget.parse(document["cost"])
    plain = document["steps"]
    if not isinstance(plain, list) or not 1 <= len(plain) <= _MOST_STEPS:
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
    kind: Literal["pure", "zcdp"] = "pure" if budget.kind == "pure" else "zcdp"
    read = tuple(read_bins(one, terms.neighbours, kind) for one in plain)
    names = [one.name for one in read]
    if len(set(names)) < len(names):
        raise ModelFileError("its session found private bins of one column twice; it was edited")
    for one in read:
        if one.name not in domain or domain[one.name] != one.attribute:
            raise ModelFileError(
                f"its domain does not have the bins that its session found of {one.name!r}; it was edited"
            )
    if read:
        try:
            check_single_rows(terms, names)
        except BudgetError as error:
            raise ModelFileError(f"{error}; it was edited") from None
    return read


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
        if kind == "measure":
            return self._measured(plain)
        if kind == "select":
            return self._chosen(plain)
        if kind == "score":
            return self._scored(plain)
        if kind == "descend":
            return self._descended(plain)
        if kind == "vote":
            return self._voted(plain)
        raise ModelFileError("a step of its session is of no known kind")

    def _measured(self, plain: Mapping[str, Any]) -> NoisyTables:
        domain = self._domains[converter.structure(plain["coarse"], bool)]
        cliques = self._cliques(plain["cliques"])
        contrasts = converter.structure(plain.get("contrasts", False), bool)
        # N is measured by the empty clique, which is no candidate.
        structure = Structure(
            domain, [(), *cliques] if contrasts and self._terms.total_policy == "estimated" else cliques
        )
        if contrasts:
            read_contrasts(plain, structure, self._terms)
        calibrations = tuple(map(self._calibration, plain["calibrations"]))
        of_group = tuple(converter.structure(plain["calibration_of"], list[int]))
        if len(of_group) != len(structure.groups) or not all(0 <= i < len(calibrations) for i in of_group):
            raise ModelFileError("the noise of a step does not fit its tables")
        measurement = Measurement(
            structure=structure, calibrations=calibrations, of_group=of_group, contrasts=contrasts
        )
        check_sensitivities(measurement, self._terms)
        total = converter.structure(plain["total"], float)
        variance = converter.structure(plain["total_variance"], float)
        if not (math.isfinite(total) and total >= 1 and math.isfinite(variance) and variance >= 0):
            raise ModelFileError("the total of a step is not a number of at least 1")
        taken = self._taken(len(structure.groups) if contrasts else structure.cells)
        return NoisyTables(
            tables=spread(structure, taken, total) if contrasts else Tables(structure, taken),
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
        groups = plain["groups"]
        parts = [list(range(len(cliques)))] if groups is None else converter.structure(groups, list[list[int]])
        chosen = converter.structure(plain["chosen"], list[list[int]])
        sound = len(chosen) == len(parts) and all(
            set(picked) <= set(group) <= set(range(len(cliques)))
            and len(set(picked)) == len(picked) == len(chosen[0]) > 0
            for picked, group in zip(chosen, parts, strict=True)
        )
        temperature = amount("the temperature of a choice", converter.structure(plain["temperature"], str))
        grid = converter.structure(plain["grid"], int)
        kind: Literal["pure", "zcdp"] = "pure" if self._session.budget.kind == "pure" else "zcdp"
        if not sound or not MIN_TABLE_LENGTH <= entries(temperature) <= MAX_TABLE_LENGTH:
            raise ModelFileError("a choice of its session is not one that a session makes")
        if grid < 1 or SCORE_GRID % grid:
            raise ModelFileError(f"a choice of its session has scores in units of 1/{grid}, which no session has")
        return Choice(
            candidates=cliques,
            groups=tuple(map(tuple, parts)),
            chosen=tuple(map(tuple, chosen)),
            temperature=temperature,
            grid=grid,
            person=self._person,
            kind=kind,
        )

    def _scored(self, plain: Mapping[str, Any]) -> NoisyScores:
        cliques = self._cliques(plain["candidates"])
        calibration = self._calibration(plain["calibration"])
        needed = score_sensitivity(len(cliques), self._person)
        if calibration.sensitivity != needed:
            raise ModelFileError(
                f"it states {calibration.sensitivity} for scores that one person can change by {needed}"
            )
        check_claims(calibration.noise, needed)
        return NoisyScores(candidates=cliques, values=self._taken(len(cliques)) / SCORE_GRID, calibration=calibration)

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
            kind="pure" if self._session.budget.kind == "pure" else "zcdp",
        )
        if not MIN_TABLE_LENGTH <= entries(descent.temperature) <= MAX_TABLE_LENGTH or not descent.sound:
            raise ModelFileError("a descent of its session is not one that a session makes")
        return descent

    def _voted(self, plain: Mapping[str, Any]) -> Verdict:
        voter = voter_of(plain["voter"], Structure(self._domains[0], self._cliques(plain["candidates"])))
        budget, stated = Budget.parse(plain["budget"]), plain["edges"]
        edges = None if stated is None else () if stated == [] else self._cliques(stated)
        if budget.kind != "approx" or (edges is not None and not set(edges) <= set(voter.pairs.cliques)):
            raise ModelFileError("the votes of its session are none that a session casts")
        try:
            voter.check(self._terms)
        except OptionError as error:
            raise ModelFileError(f"its votes do not go with its terms: {error}") from None
        return Verdict(voter=voter, budget=budget, edges=edges)

    def _calibration(self, plain: Mapping[str, Any]) -> Calibration:
        calibration = calibration_of(plain, self._registry)
        if calibration.component != mechanism_of(self._session.budget) or calibration.noise.unsafe is not None:
            raise ModelFileError("a step of its session has other noise than sessions draw; it was edited")
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

    def _taken(self, count: int) -> IntArray:
        part = self._numbers[self._at : self._at + count]
        if len(part) != count:
            raise ModelFileError("it holds fewer noisy numbers than its steps")
        self._at += count
        taken: IntArray = part
        return taken
