"""Releases of sessions, and facts about releases for files and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from dpgm_core.errors import BudgetError
from dpgm_core.privacy.bins import bins_choices
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.selection import SCORE_GRID
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.session_account import SessionSpending, start_spending
from dpgm_core.privacy.terms import Terms, flaws
from dpgm_core.releases.pooling import mean_of, total_of, united
from dpgm_core.releases.release import NoisyTables, condition_of, conditions_of, discoveries
from dpgm_core.releases.steps import Choice, Descent, FoundBins, NoisyScores, SessionTerms, Verdict
from dpgm_core.releases.views import coarsened, plausible
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "Step",
    "UNKNOWN",
    "bins_of",
    "caveats_of",
    "labels_facts",
    "merges_of",
    "score_sensitivity",
    "session_facts",
    "session_release",
    "sessions_of",
    "spend_steps",
    "stamp_of",
    "step_facts",
]


# --- A session as one release ---------------------------------------------------------------------
# Its cost is that of the whole budget the session was opened with, whatever its steps came to: how much an adaptive run
# leaves unspent may depend on what it saw.

Step = NoisyTables | Choice | NoisyScores | Descent | Verdict


def score_sensitivity(count: int, person: int) -> Sensitivity:
    """How far one person moves so many distances, or means of them, in units of 1/1024 record.

    person: as `TableDistance.move` says.
    """
    move = SCORE_GRID * person
    return Sensitivity(l0=count, l1=count * move, l2_squared=count * move**2, linf=move)


def session_release(
    session: SessionTerms,
    steps: Sequence[Step],
    terms: Terms,
    *,
    cost: Budget,
    private: bool,
    provenance: Mapping[str, Any],
    modelled: Structure | None = None,
) -> NoisyTables:
    """All that was measured as one release over the session's last domain, each table the mean of its measurements.

    Tables of a holdout are in the steps only. modelled: what was chosen to be learned, if it was yet. Raises
    BudgetError where nothing was measured.
    """
    measured = [one for one in steps if isinstance(one, NoisyTables) and not one.holdout]
    if not measured:
        raise BudgetError("the session has measured no table yet, so there is nothing to pool; measure one first")
    fine = session.workload.domain
    views = [
        coarsened(one, session.merges) if session.merges and one.structure.domain == fine else one for one in measured
    ]
    total, variance = total_of(views)
    views = [plausible(evolve(one, total=total, total_variance=variance)) for one in views]
    if len(views) == 1:
        tables, measurement = views[0].tables, views[0].measurement
    else:
        tables, measurement = mean_of(united([one.structure for one in views]), views, total)
    return NoisyTables(
        tables=tables,
        measurement=measurement,
        terms=terms,
        total=total,
        total_variance=variance,
        cost=cost,
        private=private,
        provenance=dict(provenance),
        session=session,
        steps=tuple(steps),
        modelled=None if modelled == tables.structure else modelled,
    )


def spend_steps(session: SessionTerms, whole: Budget, steps: Sequence[Step]) -> SessionSpending:
    """Return what an exact Gaussian account has left after the steps of a session, without its votes.

    whole: the (epsilon, delta) that the session was opened with, without that of votes. Raises BudgetError where it
    does not cover the account, and Overspent for a step that the session would not have made.
    """
    if session.account is None:
        raise BudgetError("this session has no exact Gaussian account")
    spending = start_spending(session.account, whole)
    for count, rho in bins_choices([one.search for one in session.bins]):
        spending.pay_choices(count, rho)
    for one in steps:
        noise = one.measurement.calibrations if isinstance(one, NoisyTables) else ()
        spending.pay(
            one.cost,
            noise=[one.calibration] if isinstance(one, NoisyScores) else noise,
            choices=sum(map(len, one.chosen)) if isinstance(one, Choice) else 0,
        )
    return spending


# --- Facts about the origin of releases, as plain values; all of them are released ----------------


def labels_facts(releases: Sequence[NoisyTables]) -> dict[str, Any]:
    """The labels that were found privately before, by column; nothing without any."""
    before = discoveries(releases)
    columns = [one for discovery in before for one in discovery.columns]
    facts: list[dict[str, Any]] = [
        {
            "column": one.column,
            "labels": list(one.labels),
            "counts": list(one.counts),
            "threshold": one.noise.threshold,
            "cost": one.budget.to_dict(),
        }
        for one in columns
    ]
    described = [
        {
            "cost": discovery.described.budget.to_dict(),
            "attributes": {name: one.to_dict() for name, one in discovery.attributes.items()},
        }
        for discovery in before
        if discovery.described is not None
    ]
    return ({"labels": facts} if facts else {}) | ({"columns": described} if described else {})


def session_facts(releases: Sequence[NoisyTables]) -> dict[str, Any]:
    """What sessions did, step by step, and which codes they merged; nothing without one."""
    sessions = sessions_of(releases)
    if not sessions:
        return {}
    bins = {one.name: list(one.attribute.labels[: len(one.places) - 1]) for one in bins_of(sessions)}
    facts = {"trace": [step_facts(step) for one in sessions for step in one.steps], "merges": merges_of(sessions)}
    return facts | ({"bins": bins} if bins else {})


def sessions_of(releases: Sequence[NoisyTables]) -> list[NoisyTables]:
    """Those that are all that a session handed out."""
    return [one for one in releases if one.session is not None]


def bins_of(sessions: Sequence[NoisyTables]) -> list[FoundBins]:
    """The bins that sessions found, column by column."""
    return [bins for one in sessions if one.session is not None for bins in one.session.bins]


def merges_of(sessions: Sequence[NoisyTables]) -> dict[str, list[int]]:
    """Attribute -> the new code of each of its codes; sessions that are learned from together agree on them."""
    merged = [one.session.merges for one in sessions if one.session is not None]
    return {name: list(codes) for merges in merged for name, codes in merges.items()}


_KINDS = {Descent: "descend", Verdict: "vote", Choice: "select", NoisyScores: "score"}


def step_facts(step: Step) -> dict[str, Any]:
    """One step: its kind, what it chose or measured, of how many candidates, and what it cost."""
    cost = step.cost.to_dict()
    if isinstance(step, NoisyTables):
        kind = "check" if step.holdout else "measure"
        return {"kind": kind, "cliques": [list(clique) for clique in step.structure.cliques], "cost": cost}
    cliques: Sequence[Clique] = () if isinstance(step, NoisyScores | Verdict) else step.cliques
    stable = {}
    if isinstance(step, Verdict):
        cliques, stable = step.edges or (), {"stable": step.edges is not None}
    kind = "mean" if isinstance(step, NoisyScores) and step.groups is not None else _KINDS[type(step)]
    facts = {"kind": kind, "cliques": [list(clique) for clique in cliques], **stable}
    return {**facts, "candidates": len(step.candidates), "cost": cost}


# --- Guarantees and caveats of what is computed from releases -------------------------------------

#: Of a model that was made from no release.
UNKNOWN = "This model carries no release, so nothing is known about the privacy of what it was made from."


def caveats_of(releases: Sequence[NoisyTables]) -> tuple[str, ...]:
    """Why whatever is computed from releases is less private than their budget: in the words of their guarantee.

    Unsafe noise, a seed, a public N; empty if there is nothing of the kind. Of no release nothing is known.
    """
    if not releases:
        return (UNKNOWN.removesuffix("."),)
    faults = flaws(unsafe=(one.unsafe for one in releases), private=all(one.private for one in releases))
    return (*faults, *filter(None, [condition_of(releases)]))


def stamp_of(releases: Sequence[NoisyTables], guarantee: str) -> dict[str, Any]:
    """What files and JSON say of their privacy, as plain values.

    guarantee: of all releases together, in words. private: false with a seed, None without a release. unsafe: why the
    guarantee does not hold to the letter, or None. conditions: what else it says, of rounds and of N.
    """
    return {
        "private": all(one.private for one in releases) if releases else None,
        "unsafe": "; ".join(dict.fromkeys(one.unsafe for one in releases if one.unsafe)) or None,
        "conditions": [text.strip() for text in conditions_of(releases)],
        "guarantee": guarantee,
    }
