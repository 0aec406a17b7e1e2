"""Deliberately wrong selectors, each killed by the check meant for it."""

import gc
import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
from attrs import frozen

from dpgm_core import Budget, BudgetError, Dag, DpgmError, Selection, SelectionPlan, Structure, TableDistance
from dpgm_core.learning import EdgeVotes, ThresholdVotes

from .family import KEPT, Family, replaces

selector = Family("selector")
ROUNDS = 3


def amount(budget):
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


class Leaves(Plain):
    """No mutant: leaves a part of the budget to the pipeline."""

    def rest(self, session, cliques):
        pass

    def of_pair(self, budget, rounds, session):
        return budget * Fraction(1, 2 * rounds)

    def still(self, session, pairs, chosen):
        return dict.fromkeys(chosen, 0.5) or {clique: 1.0 for clique in session.workload.candidates if len(clique) == 1}


# --- what it sees and says ----------------------------------------------------------------------------------------


@selector.each
class RecordFaults(Plain):
    @replaces("notes", "records-only-through-the-session", "Looks behind the session.")
    def peeks(self, session):
        getattr(session, "_held", None)
        return []

    @replaces("notes", "says-only-what-follows-from-the-steps")
    def counts_in_a_note(self, session):
        """Finds the records in memory, and says how many there are."""
        gc.collect()  # records of earlier selections may wait in circles
        return [
            f"selected from {len(one.codes)} records"
            for one in gc.get_objects()
            if type(one).__name__ == "TrappedRecords"
        ][:1]

    @replaces("choose", "says-only-what-follows-from-the-steps")
    def true_counts_for_predictions(self, session, left, fit, budget, randomness):
        """Finds the codes in memory, and scores against true counts."""
        gc.collect()
        records = [one.codes for one in gc.get_objects() if type(one).__name__ == "TrappedRecords"]
        cells = sum(math.prod(session.domain.shape(pair)) for pair in left)
        predicted = np.full(cells, float(len(records[0]) if records else 0))
        scores = TableDistance(candidates=Structure(session.domain, left), predicted=predicted)
        return session.select(scores, budget).cliques[0]

    @replaces("notes", "records-are-not-kept")
    def keeps_the_session(self, session):
        """A module-level cache holds on to the session, and with it to the records."""
        KEPT.append(session)
        return []

    @replaces("choose", "same-seed-same-selection", "Breaks ties with numpy's global generator.")
    def global_generator(self, session, left, fit, budget, randomness):
        shuffled = [left[place] for place in np.random.permutation(len(left))]  # noqa: NPY002
        return super().choose(session, shuffled, fit, budget, randomness)

    @replaces("choose", "same-seed-same-selection", "Shuffles the candidates with a generator of its own.")
    def unseeded_start(self, session, left, fit, budget, randomness):
        shuffled = [left[place] for place in np.random.default_rng().permutation(len(left))]
        return super().choose(session, shuffled, fit, budget, randomness)


# --- what it measures ---------------------------------------------------------------------------------------------


@selector.each
class TableFaults(Plain):
    @replaces("tables", "measures-within-the-workload", "Does not ask the workload which pairs may be measured.")
    def every_pair(self, workload):
        names = workload.domain.names
        return [(one,) for one in names], [(one, other) for one in names for other in names if one < other]

    @replaces("structure", "measures-within-the-workload", "The structure leaves out a pair that was measured.")
    def no_room(self, session, singles, chosen):
        return Structure(session.domain, [*chosen[1:], *singles])

    @replaces("select", "measures-within-the-workload", "The trace holds what no file does.")
    def array_in_the_trace(self, session, **more):
        found = super().select(session, **more)
        return attrs.evolve(found, trace=[{"round": 1, "chosen": np.zeros(2)}])


@selector("measures-within-the-workload", "Measures candidates, but wants the rest spent on a pair that may be none.")
class LeavesAnyPair(Leaves):
    def still(self, session, pairs, chosen):
        return {session.domain.names[:2]: 1.0}


@selector("measures-within-the-workload", "Never measures the last attribute.")
class ForgetsTheLast(Plain):
    def measure(self, session, cliques, budget):
        kept = [one for one in cliques if session.domain.names[-1] not in one] or cliques
        session.measure(kept, budget)

    def tables(self, workload):
        singles, pairs = super().tables(workload)
        return singles, [one for one in pairs if workload.domain.names[-1] not in one]

    def structure(self, session, singles, chosen):
        return Structure(session.domain, [*chosen, *singles])


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


@selector("measures-within-the-workload", "Says directed, and puts the parent first in a clique.")
class ParentsFirst(Directed):
    def structure(self, session, singles, chosen):
        return Plain.structure(self, session, singles, chosen)


@selector("measures-within-the-workload", "Says directed, but what it shows the learner on the way is no such graph.")
class DirectsAtTheEnd(Directed):
    def fit(self, fitting, session, singles, chosen, fit):
        return fitting(session.pooled(), Plain.structure(self, session, singles, chosen), fit)


@selector("measures-within-the-workload", "Weights that are no weights.")
class NegativeWeights(Leaves):
    def still(self, session, pairs, chosen):
        return {clique: -weight for clique, weight in super().still(session, pairs, chosen).items()}


# --- what it spends -----------------------------------------------------------------------------------------------


@selector.each
class SpendingFaults(Plain):
    @replaces("measure", "spends-what-it-has")
    def ignores_what_remains(self, session, cliques, budget):
        """Asks for the whole budget each time; the session refuses, and it makes do."""
        try:
            session.measure(cliques, session.budget if len(cliques) == 1 else budget)
        except BudgetError:
            session.measure(cliques, budget)

    @replaces("rest", "stops", "Takes a hundredth of what remains, and again, and catches whatever would end that.")
    def never_stops(self, session, cliques):
        while not session.remaining.is_zero:
            try:
                session.measure(cliques, session.remaining * Fraction(1, 100))
            except Exception:
                continue

    @replaces("rest", "stops", "Waits until more of the budget remains.")
    def waits_for_more(self, session, cliques):
        while not session.remaining.is_zero:
            pass


@selector("spends-what-it-has", "Leaves a third of the budget unspent, and says nothing of it.")
class Hoards(Plain):
    def rest(self, session, cliques):
        pass

    def of_pair(self, budget, rounds, session):
        return budget * Fraction(1, 100)


# --- its plan -----------------------------------------------------------------------------------------------------


@selector.each
class PlanFaults(Plain):
    @replaces("choose", "plan-refuses-what-select-would")
    def scores_for_pure(self, session, left, fit, budget, randomness):
        """Plans for any budget, and takes Gaussian scores of all of them."""
        total = session.pooled().total
        predicted = np.concatenate([fit.model.marginal(pair).reshape(-1) * total for pair in left])
        scores = TableDistance(candidates=Structure(session.domain, left), predicted=predicted)
        return left[int(np.argmax(session.score(scores, budget).values))]

    @replaces("plan", "plan-adds-up", "The shares of its plan leave out the choices.")
    def short_sum(self, workload, budget, terms, records=None):
        found = super().plan(workload, budget, terms, records)
        return attrs.evolve(found, shares={name: one for name, one in found.shares.items() if name != "choices"})

    @replaces("plan", "plan-adds-up", "The shares sum to the budget up to a float's rounding.")
    def rounded_shares(self, workload, budget, terms, records=None):
        found = super().plan(workload, budget, terms, records)
        rounded = {
            name: Budget(one.kind, epsilon=Fraction(float(one.epsilon)), rho=Fraction(float(one.rho)))
            for name, one in found.shares.items()
        }
        return attrs.evolve(found, shares=rounded)

    @replaces("deviation", "plan-tells-the-noise", "Plans the noise of one table, whatever the number of tables.")
    def one_table_only(self, moved, spent):
        return super().deviation(moved, spent) / math.sqrt(float(moved.l1))

    @replaces("deviation", "plan-tells-the-noise")
    def forgets_the_other_kind(self, moved, spent):
        """Plans the noise of an epsilon as if it were 1, and that of a rho rightly."""
        return 1.0 if spent.kind == "pure" else super().deviation(moved, spent)

    @replaces("deviation", "plan-tells-the-noise")
    def forgets_replacing(self, moved, spent):
        """Plans the noise for people who come or go, also where one is replaced."""
        return super().deviation(moved, spent) / (math.sqrt(2) if float(moved.l1) > 5 else 1)


# --- what it finds ------------------------------------------------------------------------------------------------


@selector.each
class ChoiceFaults(Plain):
    @replaces("choose", "strong-dependence-is-found", "Pays for a choice, and takes the last pair there is.")
    def takes_the_last(self, session, left, fit, budget, randomness):
        super().choose(session, left, fit, budget, randomness)
        return left[-1]

    @replaces("plan", "what-it-chooses-fits", "States attributes alone in its plan, and takes pairs.")
    def states_others(self, workload, budget, terms, records=None):
        stated = Structure(workload.domain, next(self.tables(workload)))
        return attrs.evolve(super().plan(workload, budget, terms, records), structure=stated)

    @replaces("rounds", "more-records-never-hurt", "Believes that many records need no pairs.")
    def gives_up_on_many(self, pairs, session):
        return 0 if session.pooled().total > 10_000 else super().rounds(pairs, session)

    @replaces("notes", "nothing-to-find-is-no-failure", "Cannot do with a noisy count below zero.")
    def takes_logs(self, session):
        if (session.pooled().tables.values < -1).any():
            raise BudgetError("a logarithm of a negative count")
        return []

    @replaces("tell", "progress-is-told", "Never says how far it is.")
    def silent(self, progress, number, rounds):
        pass

    @replaces("tell", "progress-is-told", "Says how much is left as how far it is.")
    def counts_down(self, progress, number, rounds):
        progress("choosing", rounds - number, rounds)

    @replaces("fit", "fits-that-never-settle-end-it-too", "Fits until a fit has converged.")
    def waits_for_convergence(self, fitting, session, singles, chosen, fit):
        while True:
            fit = super().fit(fitting, session, singles, chosen, fit)
            if fit.converged:
                return fit

    @replaces("fit", "measures-within-the-workload", "Fits a structure that does not hold what was measured.")
    def fits_without_room(self, fitting, session, singles, chosen, fit):
        return super().fit(fitting, session, singles, chosen[:-1], fit)

    @replaces("choose", "a-step-that-fails-ends-it", "A choice that fails is replaced by the first pair.")
    def makes_it_up(self, session, left, fit, budget, randomness):
        try:
            return super().choose(session, left, fit, budget, randomness)
        except DpgmError:
            return left[0]


@selector("what-it-chooses-fits", "Takes every pair there is, scored against main effects.")
class TakesAll(Plain):
    def rounds(self, pairs, session):
        return len(pairs)

    def fit(self, fitting, session, singles, chosen, fit):
        alone = session.steps[0]
        return fitting(alone, Structure(session.domain, singles), fit)


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


@selector.each
class VotesFaults(Votes):
    @replaces("select", "spends-what-it-has", "Votes for twice what the session has for votes.")
    def votes_on_credit(self, session, **more):
        session.vote(self.voter(session.workload), session.votes * 2)
        return super().select(session, **more)

    @replaces("select", "spends-what-it-has", "Looks at tables first.")
    def votes_late(self, session, **more):
        session.measure(["a"], session.budget * Fraction(1, 8))
        return super().select(session, **more)

    @replaces("select", "spends-what-it-has", "Measures attributes alone, and leaves what was for votes.")
    def never_votes(self, session, *, inference, fitting, randomness, progress):
        progress("measuring", 1, 1)
        alone = [clique for clique in session.workload.candidates if len(clique) == 1]
        return Selection(structure=Structure(session.domain, alone), measure=dict.fromkeys(alone, 1.0))


@selector("plan-refuses-what-select-would", "Foretells nothing of a voter that needs to know N.")
class VotesForNothing(Votes):
    def foretell(self, workload, votes, terms, records=None):
        return []

    def voter(self, workload):
        _, pairs = self.tables(workload)
        sizes = workload.domain.sizes
        binary = [pair for pair in pairs if all(sizes[name] == 2 for name in pair)]
        return ThresholdVotes(pairs=Structure(workload.domain, binary), tau=0.3)


@selector("spends-as-planned", "Plans thirds, and spends a tenth on attributes and half on choices.")
class PlansOtherwise(Plain):
    def shares(self, budget, pairs):
        if not pairs:
            return {"singles": budget}
        parts = {"singles": budget * Fraction(1, 10), "choices": budget * Fraction(1, 2)}
        return parts | {"pairs": budget * Fraction(2, 5)}

    def plan(self, workload, budget, terms, records=None):
        return attrs.evolve(super().plan(workload, budget, terms), shares=Plain.shares(self, budget, True))


@selector("spends-as-planned", "One choice in three costs twice its part, at the expense of the tables.")
class ChoosesDear(Plain):
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


@selector("what-it-calls-detectable-is", "What it calls detectable is a fifth of what a choice can tell from noise.")
@frozen(kw_only=True)
class PromisesTooMuch(Foretells):
    factor: float = attrs.field(default=0.2, metadata={"help": "on what it states"})


@selector("what-it-calls-detectable-is", "What it calls detectable is the deviation of ten tables.")
@frozen(kw_only=True)
class PromisesTooLittle(Foretells):
    factor: float = attrs.field(default=5.0, metadata={"help": "on what it states"})
