"""Votes of a session: checks before anything is spent, and the result."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from dpgm_core.counting.subsample import Persons
from dpgm_core.counting.votes import agreed
from dpgm_core.curator.asked import Candidates, check_exact_type
from dpgm_core.curator.shield import redact_source_errors, strip_traceback
from dpgm_core.errors import BudgetError, Overspent
from dpgm_core.noise.stability import draw_publication, likely_distance
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes, Voter
from dpgm_core.randomness import Randomness
from dpgm_core.releases.steps import SessionTerms
from dpgm_core.releases.verdict import Verdict
from dpgm_core.sources.contract import AnySource
from dpgm_core.structure import Clique

__all__ = ["cast", "resolve_votes"]


def resolve_votes(
    voter: Voter,
    budget: Budget,
    left: Budget | None,
    *,
    session: SessionTerms,
    steps: Sequence[object],
    candidates: Candidates,
    terms: Terms,
) -> Voter:
    """The voter over the session's own domain; refuses what is no vote of it.

    left: what votes may still cost. steps: what came out so far.
    """
    check_exact_type(voter, "a voter", "votes", EdgeVotes, ThresholdVotes)
    check_budget(budget)
    if left is None:
        raise BudgetError(
            "this session has nothing for votes; open it with votes = a part of its (epsilon, delta), as core does for "
            "a VotingSelector"
        )
    if session.merges or not all(isinstance(one, Verdict) for one in steps):
        raise BudgetError("votes come before every other step of a session; that is what their cost is proven for")
    if budget.kind != "approx" or not budget <= left:
        raise Overspent(f"votes for {budget} were asked, but the session has {left} left for votes")
    voter = evolve(voter, pairs=candidates.own(voter.pairs, session.workload.domain))
    voter.check(terms)
    likely_distance(budget)  # refuses what nothing could be published for
    return voter


def cast(
    voter: Voter, budget: Budget, *, source: AnySource, persons: Persons, randomness: Randomness, terms: Terms
) -> Verdict:
    """The graph that votes agree on, or nothing; to be called once it is paid for.

    See `dpgm_core.counting.votes` and `dpgm_core.noise.stability`.
    """

    def edges() -> tuple[Clique, ...] | None:
        words = randomness.words(persons.persons if isinstance(voter, EdgeVotes) else 0)
        agreement = redact_source_errors(source, lambda: agreed(voter, persons, words, terms))
        if not draw_publication(agreement.distance, budget, randomness):
            return None
        return tuple(pair for pair, edge in zip(voter.pairs.cliques, agreement.edges, strict=True) if edge)

    return Verdict(voter=voter, budget=budget, edges=strip_traceback(edges))
