"""Votes of a session: what they cost, what is refused, and that nothing else of them gets out."""

from fractions import Fraction

import attrs
import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm_core import Budget, BudgetError, Ledger, OptionError, Overspent, SeededRandomness, Structure, StructureError
from dpgm_core.counting.votes import Agreed
from dpgm_core.privacy.selection import TableDistance
from dpgm_core.privacy.votes import EdgeVotes, ThresholdVotes
from dpgm_core.structure.workload import Workload
from tests.curator.opened import Hooked, Noted
from tests.fixtures import Unread, live_curator

VOTED = dpgm.Domain.from_sizes({"x": 2, "y": 2, "z": 3})
VOTES_ON = Workload.all(VOTED, order=2)
BINARY = Structure(VOTED, [("x", "y")])
MANY = np.random.default_rng(2).integers(0, 2, (3000, 3))
MANY[:, 1] = np.where(np.random.default_rng(3).random(3000) < 0.85, MANY[:, 0], 1 - MANY[:, 0])
TWICE = Budget.approx(2, "2e-6")
HALF = Budget.approx(1, "1e-6")


def voting(data=MANY, **more):
    settings = {"budget": TWICE, "randomness": SeededRandomness(5)} | more
    return live_curator(data, Structure(VOTED, [("x",), ("y",), ("z",)]), **settings)


def edge_votes(**more):
    return EdgeVotes(**{"pairs": BINARY, "blocks": 60} | more)


def test_votes_and_tables_are_the_sum_that_is_charged(tmp_path):
    """One charge of all when the session opens; rho is of what the votes leave, and neither takes of the other."""
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=TWICE, neighbours="add-remove")
    with voting(ledger=book).session(workload=VOTES_ON, votes=HALF) as session:
        assert [one.cost for one in book.history()] == [TWICE]
        assert session.budget == HALF.zcdp_within() == session.remaining and session.votes == HALF
        verdict = session.vote(edge_votes(), HALF)
        assert verdict.edges == (("x", "y"),) and session.steps == (verdict,) and verdict.cost == HALF
        assert session.votes.is_zero and session.remaining == HALF.zcdp_within()
        session.measure([("x", "y")], session.remaining)
        release = session.pooled()
    assert release.cost == TWICE and len(book.history()) == 1
    assert f"the sum of {HALF} for votes" in release.guarantee() and f"with {TWICE}" in release.guarantee()
    assert dpgm.learn(release).model.cost == TWICE


@pytest.mark.parametrize(
    ("budget", "votes", "why"),
    [
        (Budget.pure(1), HALF, "votes cost an"),
        (Budget.zcdp(1), HALF, "votes cost an"),
        (TWICE, Budget.pure(1), "votes cost an"),
        (TWICE, Budget.zcdp(1), "votes cost an"),
        (TWICE, TWICE, "leave nothing"),
        (TWICE, Budget.approx(1, "2e-6"), "leave nothing"),
        (TWICE, Budget.approx(2, "1e-6"), "leave nothing"),
        (TWICE, 1, "must be a Budget"),
    ],
)
def test_votes_that_no_session_opens_with(tmp_path, budget, votes, why):
    book = Ledger.create(tmp_path / "x.ledger", name="x", budget=budget, neighbours="add-remove")
    watched = voting(Unread(), budget=budget, ledger=book)
    with pytest.raises(BudgetError, match=why):
        watched.session(workload=VOTES_ON, votes=votes)
    assert not book.history()


class Sly(EdgeVotes):
    """A voter of somebody else's."""


OTHER = dpgm.Domain.from_sizes({"x": 2, "y": 2})
REFUSED = {
    "more than there is": (edge_votes(), TWICE, Overspent, "left for votes"),
    "a bit more": (edge_votes(), Budget.approx("1.001", "1e-6"), Overspent, "left for votes"),
    "more delta": (edge_votes(), Budget.approx("0.5", "1.001e-6"), Overspent, "left for votes"),
    "of rho": (edge_votes(), Budget.zcdp("0.01"), Overspent, "left for votes"),
    "no budget": (edge_votes(), 1, BudgetError, "must be a Budget"),
    "too little": (edge_votes(), Budget.approx("1e-7", "1e-9"), BudgetError, "too little for votes"),
    "a child": (Sly(pairs=BINARY, blocks=3), HALF, OptionError, "core alone knows"),
    "a text": ("votes", HALF, OptionError, "core alone knows"),
    "another domain": (EdgeVotes(pairs=Structure.complete(OTHER), blocks=3), HALF, StructureError, "another domain"),
    "another order": (edge_votes(pairs=Structure(VOTED, [("y", "x")])), HALF, StructureError, "in the order"),
    "N that is not known": (ThresholdVotes(pairs=BINARY, tau=0.3), HALF, OptionError, "declare the number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_votes_cost_nothing(case):
    voter, budget, error, why = REFUSED[case]
    log = []
    with voting(randomness=Noted(log)).session(workload=VOTES_ON, votes=HALF) as session:
        with pytest.raises(error, match=why):
            session.vote(voter, budget)
        assert not log and session.votes == HALF and not session.steps


def test_votes_come_before_everything_else():
    quarter = Budget.approx("0.5", "5e-7")
    pairs = Structure.complete(VOTED)
    flat = TableDistance(candidates=pairs, predicted=np.full(pairs.cells, 500.0))
    firsts = (
        lambda session: session.measure(["x"], session.budget * Fraction(1, 2)),
        lambda session: session.select(flat, session.budget * Fraction(1, 2)),
        lambda session: session.coarsen({"z": [0, 1, 1]}),
    )
    for first in firsts:
        with voting().session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(edge_votes(blocks=3), quarter)
            session.vote(edge_votes(blocks=3), quarter)
            with pytest.raises(Overspent):
                session.vote(edge_votes(blocks=3), quarter)
        with voting().session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(edge_votes(blocks=3), quarter)
            first(session)
            with pytest.raises(BudgetError, match="before every other step"):
                session.vote(edge_votes(blocks=3), quarter)
            assert session.votes == quarter


def test_a_session_without_votes_casts_none():
    for budget in (TWICE, Budget.pure(1), Budget.zcdp(1)):
        with voting(budget=budget).session(workload=VOTES_ON) as session:
            assert session.votes is None
            with pytest.raises(BudgetError, match="nothing for votes"):
                session.vote(edge_votes(), HALF)


def test_nothing_stable_costs_as_much_and_shows_nothing():
    """3 blocks are never sure; what comes out is None, and nothing of how many voted stands in it or in the session."""
    with voting().session(workload=VOTES_ON, votes=HALF) as session:
        verdict = session.vote(edge_votes(blocks=3), HALF)
        assert verdict.edges is None and verdict.cost == HALF and session.votes.is_zero
        assert set(attrs.asdict(verdict, recurse=False)) == {"voter", "budget", "edges"}
        assert repr(verdict) == f"Verdict(not stable enough to tell, {HALF})"
        assert not [name for name, value in vars(session).items() if isinstance(value, Agreed)]


@pytest.mark.parametrize("lengths", [1, 3])
def test_a_word_for_each_person_and_two_for_the_coin(lengths):
    """Whatever the codes are, and however many rows a person has: all rows of one are in one block."""
    for codes in (MANY, 1 - np.minimum(MANY, 1), np.zeros_like(MANY)):
        asked = []

        class Counting(SeededRandomness):
            def words(self, count):
                asked.append(count)  # noqa: B023 - read before the next one
                return super().words(count)

        keys = np.arange(3000) // lengths
        data = pa.table({"x": codes[:, 0], "y": codes[:, 1], "z": codes[:, 2], "id": keys})
        terms = {"person": "id", "rows_per_person": lengths}
        with voting(data, randomness=Counting(1), **terms).session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(edge_votes(blocks=3), HALF)
        assert asked == [3000 // lengths, 2]
        asked.clear()
        counting = voting(data, randomness=Counting(1), total=3000, **terms)
        with counting.session(workload=VOTES_ON, votes=HALF) as session:
            session.vote(ThresholdVotes(pairs=BINARY, tau=0.3), HALF)
        assert asked == [0, 2]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("total", [3000, "public"])
def test_single_records_vote_against_a_known_total(neighbours, total):
    """x and y correlate by .7, so tau = .3 is 600 persons away for a sum that one moves by 1, and 300 by 2."""
    with voting(neighbours=neighbours, total=total).session(workload=VOTES_ON, votes=HALF) as session:
        assert session.vote(ThresholdVotes(pairs=BINARY, tau=0.3), HALF).edges == (("x", "y"),)


def test_a_source_of_words_that_fails_costs_the_votes():
    """Spent before the first bit is drawn; no other vote can be had for it."""

    with voting(randomness=Hooked(OSError("no more words"))).session(workload=VOTES_ON, votes=HALF) as session:
        with pytest.raises(OSError, match="no more words"):
            session.vote(edge_votes(blocks=3), HALF)
        assert session.votes.is_zero and not session.steps
