"""Deliberately wrong selectors, each killed by the check meant for it."""

import gc
import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import Budget, BudgetError, Dag, DpgmError, Selection, SelectionPlan, Structure, TableDistance
from dpgm_core.learning import EdgeVotes, ThresholdVotes
from dpgm_testing import checks_of

KEPT = []
ROUNDS = 3


def amount(budget):
    """Epsilon or rho."""
    return budget.epsilon if budget.kind == "pure" else budget.rho


@frozen(kw_only=True)
class Plain:
    """The selector the mutants are made from: round by round the pair that a fit so far gets most wrong."""

    def plan(self, workload, budget, terms, records=None):
        if budget.kind == "approx":
            raise BudgetError("a selector spends epsilon or rho")
        singles, pairs = self.tables(workload)
        shares = self.shares(budget, pairs)
        moved = terms.sensitivity(Structure(workload.domain, singles))
        return SelectionPlan(
            shares={name: share for name, share in shares.items() if not share.is_zero},
            deviation=self.deviation(moved, shares["singles"]),
            detectable=None,
            candidates=len(pairs),
            limits={},
        )

    def deviation(self, moved, spent):
        if spent.kind == "pure":
            return math.sqrt(2) * float(moved.l1 / spent.epsilon)
        return math.sqrt(float(moved.l2_squared / (2 * spent.rho)))

    def tables(self, workload):
        return ([one for one in workload.candidates if len(one) == size] for size in (1, 2))

    def rounds(self, pairs, session):
        return min(ROUNDS, len(pairs))

    def shares(self, budget, pairs):
        if not pairs:
            return {"singles": budget}
        third = budget * Fraction(1, 3)
        return {"singles": third, "choices": third, "pairs": budget - third - third}

    def select(self, session, *, inference, fitting, randomness, progress):
        singles, pairs = self.tables(session.workload)
        shares = self.shares(session.budget, pairs)
        self.measure(session, singles, shares["singles"])
        chosen, trace, fit = [], [], None
        rounds = self.rounds(pairs, session)
        for number in range(rounds):
            self.tell(progress, number, rounds)
            fit = self.fit(fitting, session, singles, chosen, fit)
            left = [pair for pair in pairs if pair not in chosen]
            pair = self.choose(session, left, fit, shares["choices"] * Fraction(1, rounds), randomness)
            self.measure(session, [pair], self.of_pair(shares["pairs"], rounds, session))
            chosen.append(pair)
            trace.append({"round": number, "chosen": list(pair)})
        self.tell(progress, rounds, rounds)
        self.rest(session, chosen or singles)
        measure = self.still(session, pairs, chosen)
        notes = self.notes(session)
        return Selection(structure=self.structure(session, singles, chosen), measure=measure, trace=trace, notes=notes)

    def measure(self, session, cliques, budget):
        session.measure(cliques, budget)

    def tell(self, progress, number, rounds):
        progress("choosing", number, rounds)

    def fit(self, fitting, session, singles, chosen, fit):
        return fitting(session.pooled(), Structure(session.domain, [*singles, *chosen]), fit)

    def choose(self, session, left, fit, budget, randomness):
        total = session.pooled().total
        predicted = np.concatenate([fit.model.marginal(pair).reshape(-1) * total for pair in left])
        scores = TableDistance(candidates=Structure(session.domain, left), predicted=predicted)
        return session.select(scores, budget).cliques[0]

    def of_pair(self, budget, rounds, session):
        return budget * Fraction(1, rounds)

    def rest(self, session, cliques):
        if amount(session.remaining) > amount(session.budget) / 200:
            session.measure(cliques, session.remaining)

    def still(self, session, pairs, chosen):
        return {}

    def notes(self, session):
        return []

    def structure(self, session, singles, chosen):
        return Structure(session.domain, [*chosen, *singles])


@frozen(kw_only=True)
class Leaves(Plain):
    """No mutant: leaves a part of the budget to the pipeline."""

    def rest(self, session, cliques):
        pass

    def of_pair(self, budget, rounds, session):
        return budget * Fraction(1, 2 * rounds)

    def still(self, session, pairs, chosen):
        return dict.fromkeys(chosen, 0.5) or {clique: 1.0 for clique in session.workload.candidates if len(clique) == 1}


# --- what it sees and says ----------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Peeks(Plain):
    """Looks behind the session."""

    def notes(self, session):
        getattr(session, "_held", None)
        return []


@frozen(kw_only=True)
class CountsInANote(Plain):
    """Finds the records in memory, and says how many there are."""

    def notes(self, session):
        gc.collect()  # records of earlier selections may wait in circles
        return [
            f"selected from {len(one.codes)} records"
            for one in gc.get_objects()
            if type(one).__name__ == "TrappedRecords"
        ][:1]


@frozen(kw_only=True)
class TrueCountsForPredictions(Plain):
    """Finds the codes in memory, and scores tables by how far the noisy ones are from the true ones."""

    def choose(self, session, left, fit, budget, randomness):
        gc.collect()
        records = [one.codes for one in gc.get_objects() if type(one).__name__ == "TrappedRecords"]
        cells = sum(math.prod(session.domain.shape(pair)) for pair in left)
        predicted = np.full(cells, float(len(records[0]) if records else 0))
        scores = TableDistance(candidates=Structure(session.domain, left), predicted=predicted)
        return session.select(scores, budget).cliques[0]


@frozen(kw_only=True)
class KeepsTheSession(Plain):
    """A module-level cache holds on to the session, and with it to the records."""

    def notes(self, session):
        KEPT.append(session)
        return []


@frozen(kw_only=True)
class GlobalGenerator(Plain):
    """Breaks ties with numpy's global generator."""

    def choose(self, session, left, fit, budget, randomness):
        shuffled = [left[place] for place in np.random.permutation(len(left))]  # noqa: NPY002
        return super().choose(session, shuffled, fit, budget, randomness)


@frozen(kw_only=True)
class UnseededStart(Plain):
    """Shuffles the candidates with a generator of its own."""

    def choose(self, session, left, fit, budget, randomness):
        shuffled = [left[place] for place in np.random.default_rng().permutation(len(left))]
        return super().choose(session, shuffled, fit, budget, randomness)


# --- what it measures ---------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class EveryPair(Plain):
    """Does not ask the workload which pairs may be measured."""

    def tables(self, workload):
        names = workload.domain.names
        return [(one,) for one in names], [(one, other) for one in names for other in names if one < other]


@frozen(kw_only=True)
class LeavesAnyPair(Leaves):
    """Measures candidates, but wants the rest spent on a pair that may be none."""

    def still(self, session, pairs, chosen):
        return {session.domain.names[:2]: 1.0}


@frozen(kw_only=True)
class NoRoom(Plain):
    """The structure leaves out a pair that was measured."""

    def structure(self, session, singles, chosen):
        return Structure(session.domain, [*chosen[1:], *singles])


@frozen(kw_only=True)
class ForgetsTheLast(Plain):
    """Never measures the last attribute."""

    def measure(self, session, cliques, budget):
        kept = [one for one in cliques if session.domain.names[-1] not in one] or cliques
        session.measure(kept, budget)

    def tables(self, workload):
        singles, pairs = super().tables(workload)
        return singles, [one for one in pairs if workload.domain.names[-1] not in one]

    def structure(self, session, singles, chosen):
        return Structure(session.domain, [*chosen, *singles])


@frozen(kw_only=True)
class Directed(Plain):
    """No mutant: each attribute's parent is the one before it in the domain, if that pair may be measured."""

    def plan(self, workload, budget, terms, records=None):
        return attrs.evolve(super().plan(workload, budget, terms, records), directed=True)

    def tables(self, workload):
        singles, pairs = super().tables(workload)
        return singles, [pair for pair in pairs if pair in list(itertools.pairwise(workload.domain.names))]

    def fit(self, fitting, session, singles, chosen, fit):
        return fitting(session.pooled(), self.structure(session, singles, chosen), fit)

    def structure(self, session, singles, chosen):
        return Dag(session.domain, {child: (parent,) for parent, child in chosen}).structure()


@frozen(kw_only=True)
class ParentsFirst(Directed):
    """Says directed, and puts the parent first in a clique."""

    def structure(self, session, singles, chosen):
        return Plain.structure(self, session, singles, chosen)


@frozen(kw_only=True)
class DirectsAtTheEnd(Directed):
    """Says directed, but what it shows the learner on the way is no such graph."""

    def fit(self, fitting, session, singles, chosen, fit):
        return fitting(session.pooled(), Plain.structure(self, session, singles, chosen), fit)


@frozen(kw_only=True)
class NegativeWeights(Leaves):
    """Weights that are no weights."""

    def still(self, session, pairs, chosen):
        return {clique: -weight for clique, weight in super().still(session, pairs, chosen).items()}


@frozen(kw_only=True)
class ArrayInTheTrace(Plain):
    """The trace holds what no file does."""

    def select(self, session, **more):
        found = super().select(session, **more)
        return attrs.evolve(found, trace=[{"round": 1, "chosen": np.zeros(2)}])


# --- what it spends -----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class IgnoresWhatRemains(Plain):
    """Asks for the whole budget each time; the session refuses, and it makes do."""

    def measure(self, session, cliques, budget):
        try:
            session.measure(cliques, session.budget if len(cliques) == 1 else budget)
        except BudgetError:
            session.measure(cliques, budget)


@frozen(kw_only=True)
class Hoards(Plain):
    """Leaves a third of the budget unspent, and says nothing of it."""

    def rest(self, session, cliques):
        pass

    def of_pair(self, budget, rounds, session):
        return budget * Fraction(1, 100)


@frozen(kw_only=True)
class NeverStops(Plain):
    """Takes a hundredth of what remains, and again, and catches whatever would end that."""

    def rest(self, session, cliques):
        while not session.remaining.is_zero:
            try:
                session.measure(cliques, session.remaining * Fraction(1, 100))
            except Exception:
                continue


@frozen(kw_only=True)
class WaitsForMore(Plain):
    """Waits until more of the budget remains."""

    def rest(self, session, cliques):
        while not session.remaining.is_zero:
            pass


# --- its plan -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ScoresForPure(Plain):
    """Plans for any budget, and takes Gaussian scores of all of them."""

    def choose(self, session, left, fit, budget, randomness):
        total = session.pooled().total
        predicted = np.concatenate([fit.model.marginal(pair).reshape(-1) * total for pair in left])
        scores = TableDistance(candidates=Structure(session.domain, left), predicted=predicted)
        return left[int(np.argmax(session.score(scores, budget).values))]


@frozen(kw_only=True)
class ShortSum(Plain):
    """The shares of its plan leave out the choices."""

    def plan(self, workload, budget, terms, records=None):
        found = super().plan(workload, budget, terms, records)
        return attrs.evolve(found, shares={name: one for name, one in found.shares.items() if name != "choices"})


@frozen(kw_only=True)
class RoundedShares(Plain):
    """The shares sum to the budget up to a float's rounding."""

    def plan(self, workload, budget, terms, records=None):
        found = super().plan(workload, budget, terms, records)
        rounded = {
            name: Budget(one.kind, epsilon=Fraction(float(one.epsilon)), rho=Fraction(float(one.rho)))
            for name, one in found.shares.items()
        }
        return attrs.evolve(found, shares=rounded)


@frozen(kw_only=True)
class OneTableOnly(Plain):
    """Plans the noise of one table, whatever the number of tables."""

    def deviation(self, moved, spent):
        return super().deviation(moved, spent) / math.sqrt(float(moved.l1))


@frozen(kw_only=True)
class ForgetsTheOtherKind(Plain):
    """Plans the noise of an epsilon as if it were 1, and that of a rho rightly."""

    def deviation(self, moved, spent):
        return 1.0 if spent.kind == "pure" else super().deviation(moved, spent)


@frozen(kw_only=True)
class ForgetsReplacing(Plain):
    """Plans the noise for people who come or go, also where one is replaced."""

    def deviation(self, moved, spent):
        return super().deviation(moved, spent) / (math.sqrt(2) if float(moved.l1) > 5 else 1)


# --- what it finds ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class TakesTheLast(Plain):
    """Pays for a choice, and takes the last pair there is."""

    def choose(self, session, left, fit, budget, randomness):
        super().choose(session, left, fit, budget, randomness)
        return left[-1]


@frozen(kw_only=True)
class TakesAll(Plain):
    """Takes every pair there is; the scores are against main effects, so that its own loop needs no large engine."""

    def rounds(self, pairs, session):
        return len(pairs)

    def fit(self, fitting, session, singles, chosen, fit):
        alone = session.steps[0]
        return fitting(alone, Structure(session.domain, singles), fit)


@frozen(kw_only=True)
class GivesUpOnMany(Plain):
    """Believes that many records need no pairs."""

    def rounds(self, pairs, session):
        return 0 if session.pooled().total > 10_000 else super().rounds(pairs, session)


@frozen(kw_only=True)
class TakesLogs(Plain):
    """Cannot do with a noisy count below zero."""

    def notes(self, session):
        if (session.pooled().tables.values < -1).any():
            raise BudgetError("a logarithm of a negative count")
        return []


@frozen(kw_only=True)
class Silent(Plain):
    """Never says how far it is."""

    def tell(self, progress, number, rounds):
        pass


@frozen(kw_only=True)
class CountsDown(Plain):
    """Says how much is left as how far it is."""

    def tell(self, progress, number, rounds):
        progress("choosing", rounds - number, rounds)


@frozen(kw_only=True)
class WaitsForConvergence(Plain):
    """Fits until a fit has converged."""

    def fit(self, fitting, session, singles, chosen, fit):
        while True:
            fit = super().fit(fitting, session, singles, chosen, fit)
            if fit.converged:
                return fit


@frozen(kw_only=True)
class FitsWithoutRoom(Plain):
    """Fits a structure that does not hold what was measured."""

    def fit(self, fitting, session, singles, chosen, fit):
        return super().fit(fitting, session, singles, chosen[:-1], fit)


@frozen(kw_only=True)
class MakesItUp(Plain):
    """A choice that fails is replaced by the first pair."""

    def choose(self, session, left, fit, budget, randomness):
        try:
            return super().choose(session, left, fit, budget, randomness)
        except DpgmError:
            return left[0]


class Votes(Plain):
    """Core opens a session with a quarter for votes; what they agree on is measured."""

    def votes(self, budget):
        return budget * Fraction(1, 4)

    def foretell(self, workload, votes, terms, records=None):
        self.voter(workload).check(terms)
        return ["5 blocks vote"]

    def voter(self, workload):
        _, pairs = self.tables(workload)
        return EdgeVotes(pairs=Structure(workload.domain, pairs), blocks=5)

    def plan(self, workload, budget, terms, records=None):
        self.voter(workload)
        return SelectionPlan(shares={"all": budget}, deviation=1.0, detectable=None, candidates=3, limits={})

    def select(self, session, *, inference, fitting, randomness, progress):
        edges = session.vote(self.voter(session.workload), session.votes).edges or ()
        alone = [clique for clique in session.workload.candidates if len(clique) == 1]
        progress("voting", 1, 1)
        cliques = [*alone, *edges]
        return Selection(structure=Structure(session.domain, cliques), measure=dict.fromkeys(cliques, 1.0))


class VotesOnCredit(Votes):
    """Votes for twice what the session has for votes."""

    def select(self, session, **more):
        session.vote(self.voter(session.workload), session.votes * 2)
        return super().select(session, **more)


class VotesLate(Votes):
    """Looks at tables first."""

    def select(self, session, **more):
        session.measure(["a"], session.budget * Fraction(1, 8))
        return super().select(session, **more)


class NeverVotes(Votes):
    """Measures attributes alone, and leaves what was for votes."""

    def select(self, session, *, inference, fitting, randomness, progress):
        progress("measuring", 1, 1)
        alone = [clique for clique in session.workload.candidates if len(clique) == 1]
        return Selection(structure=Structure(session.domain, alone), measure=dict.fromkeys(alone, 1.0))


class VotesForNothing(Votes):
    """Foretells nothing of a voter that needs to know N."""

    def foretell(self, workload, votes, terms, records=None):
        return []

    def voter(self, workload):
        _, pairs = self.tables(workload)
        sizes = workload.domain.sizes
        binary = [pair for pair in pairs if all(sizes[name] == 2 for name in pair)]
        return ThresholdVotes(pairs=Structure(workload.domain, binary), tau=0.3)


@frozen(kw_only=True)
class PlansOtherwise(Plain):
    """Its plan shows thirds, and it spends a tenth of the budget on tables of one attribute and half on choices."""

    def shares(self, budget, pairs):
        if not pairs:
            return {"singles": budget}
        parts = {"singles": budget * Fraction(1, 10), "choices": budget * Fraction(1, 2)}
        return parts | {"pairs": budget * Fraction(2, 5)}

    def plan(self, workload, budget, terms, records=None):
        return attrs.evolve(super().plan(workload, budget, terms), shares=Plain.shares(self, budget, True))


@frozen(kw_only=True)
class ChoosesDear(Plain):
    """One choice in three costs twice its part, at the expense of the tables."""

    def choose(self, session, left, fit, budget, randomness):
        return super().choose(session, left, fit, budget * Fraction(5, 4), randomness)

    def of_pair(self, budget, rounds, session):
        return budget * Fraction(3, 4 * rounds)


@frozen(kw_only=True)
class Foretells(Plain):
    """No mutant: says what a choice can tell, of one that is given a ninth of the budget."""

    factor: float = attrs.field(default=1.0, metadata={"help": "on what it states"})

    def plan(self, workload, budget, terms, records=None):
        found = super().plan(workload, budget, terms)
        if found.candidates < 2:
            return found
        each = budget * Fraction(1, 3 * min(ROUNDS, found.candidates))
        person = 2 if terms.neighbours.value == "replace-one" else 1
        epsilon = float(each.epsilon) if each.kind == "pure" else math.sqrt(8 * float(each.rho))
        ahead = 2 * person * math.log(9 * (found.candidates - 1)) / epsilon
        return attrs.evolve(found, detectable=self.factor * ahead)


@frozen(kw_only=True)
class PromisesTooMuch(Foretells):
    """What it calls detectable is a fifth of what a choice can tell from noise."""

    factor: float = attrs.field(default=0.2, metadata={"help": "on what it states"})


@frozen(kw_only=True)
class PromisesTooLittle(Foretells):
    """What it calls detectable is the deviation of ten tables."""

    factor: float = attrs.field(default=5.0, metadata={"help": "on what it states"})


BY_CHECK = {
    "spends-as-planned": [PlansOtherwise, ChoosesDear],
    "what-it-calls-detectable-is": [PromisesTooMuch, PromisesTooLittle],
    "spends-what-it-has": [VotesOnCredit, VotesLate, NeverVotes, IgnoresWhatRemains, Hoards],
    "plan-refuses-what-select-would": [VotesForNothing, ScoresForPure],
    "records-only-through-the-session": [Peeks],
    "says-only-what-follows-from-the-steps": [CountsInANote, TrueCountsForPredictions],
    "records-are-not-kept": [KeepsTheSession],
    "same-seed-same-selection": [GlobalGenerator, UnseededStart],
    "measures-within-the-workload": [
        EveryPair,
        LeavesAnyPair,
        NoRoom,
        ForgetsTheLast,
        ParentsFirst,
        DirectsAtTheEnd,
        NegativeWeights,
        ArrayInTheTrace,
        FitsWithoutRoom,
    ],
    "stops": [NeverStops, WaitsForMore],
    "plan-adds-up": [ShortSum, RoundedShares],
    "plan-tells-the-noise": [OneTableOnly, ForgetsTheOtherKind, ForgetsReplacing],
    "strong-dependence-is-found": [TakesTheLast],
    "what-it-chooses-fits": [TakesAll],
    "more-records-never-hurt": [GivesUpOnMany],
    "nothing-to-find-is-no-failure": [TakesLogs],
    "progress-is-told": [Silent, CountsDown],
    "fits-that-never-settle-end-it-too": [WaitsForConvergence],
    "a-step-that-fails-ends-it": [MakesItUp],
}
MUTANTS = [(mutant, check) for check, mutants in BY_CHECK.items() for mutant in mutants]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[f"{check}-{n}" for n, (_, check) in enumerate(MUTANTS)])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    found = verdict(mutant, "selector", check)
    KEPT.clear()
    assert found is not None


def test_a_directed_original_passes(verdict):
    """The one that the mutants of direction are made from."""
    assert verdict(Directed, "selector", "measures-within-the-workload") is None


@pytest.mark.parametrize("check", ["spends-what-it-has", "plan-refuses-what-select-would"])
def test_a_selector_that_votes_passes(verdict, check):
    """What its mutants are killed by."""
    assert verdict(Votes, "selector", check) is None


@pytest.mark.parametrize("check", sorted(BY_CHECK))
@pytest.mark.parametrize("original", [Plain, Leaves])
def test_the_originals_pass(verdict, original, check):
    """The selectors that the mutants are made from pass."""
    assert verdict(original, "selector", check, profile="quick") is None


def test_a_selector_that_says_what_is_detectable_passes(verdict):
    """What its mutants are killed by."""
    assert verdict(Foretells, "selector", "what-it-calls-detectable-is") is None


def test_every_check_kills_a_mutant():
    """No check is there for show."""
    assert set(BY_CHECK) == {check.name for check in checks_of("selector") if check.kind != "declaration"}
