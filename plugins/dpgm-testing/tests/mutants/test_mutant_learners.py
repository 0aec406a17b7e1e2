"""Deliberately wrong learners, each killed by the check meant for it."""

import contextlib
from fractions import Fraction

import attrs
import numpy as np
import pytest
from attrs import frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Domain,
    Fit,
    InferenceError,
    Model,
    Structure,
    StructureError,
    Tables,
    TooLarge,
    Workload,
    option,
    release,
)
from dpgm_core._util.progress import silent
from dpgm_core.learning import Likelihood, consistent
from dpgm_testing import checks_of
from dpgm_testing.checks.learner import _usable

KEPT = []


@frozen(kw_only=True)
class Plain:
    """The learner the mutants are made from: clip, normalise, penalised maximum likelihood."""

    def check(self, structure, inference):
        inference.compile(structure)

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release(budget=self.budget(curator))
        engine = inference.compile(release.structure)
        potentials = self.potentials(release, engine, randomness, progress)
        model = Model(curator.structure, potentials.embed(curator.structure))
        return Fit(model=model, converged=self.converged(engine, potentials))

    def converged(self, engine, potentials):
        return engine.infer(potentials).converged

    def budget(self, curator):
        return None

    def potentials(self, release, engine, randomness, progress):
        problem = Likelihood(engine, self.target(release), progress)
        theta, _ = problem.minimise(self.start(release, randomness), 1e-3, 1e-6, 500)
        return Tables(release.structure, theta)

    def target(self, release):
        clipped = np.maximum(release.tables.values.astype(float), 0.0) + 1e-6
        tables = Tables(release.structure, clipped)
        target = tables.like(clipped * tables.repeat(np.array(release.structure.multiplicities) / tables.sums()))
        return consistent(target, self.variances(release))

    def variances(self, release):
        return release.variances

    def start(self, release, randomness):
        return np.zeros(release.structure.cells)


def stating(fit, releases):
    """The fit with a model that states these releases."""
    return attrs.evolve(fit, model=Model(fit.model.structure, fit.model.potentials, releases=releases))


@frozen(kw_only=True)
class Peeks(Plain):
    """Looks at the curator's source for the exact number of records."""

    def learn(self, curator, inference, *, randomness, progress):
        getattr(curator, "_source", None)
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class ReadsTheRecords(Plain):
    """Finds the records in memory and reads them."""

    def learn(self, curator, inference, *, randomness, progress):
        import gc

        for thing in gc.get_objects():
            if type(thing).__name__ == "TrappedRecords":
                next(thing.batches(curator.structure.domain, curator.structure.domain.names), None)
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class KeepsTheCurator(Plain):
    """A module-level cache holds on to the curator, and with it to the records."""

    def learn(self, curator, inference, *, randomness, progress):
        KEPT.append(curator)
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class States(Plain):
    """Takes 9/10 and then the rest, states both, and learns from the first: at fault in this alone."""

    def learn(self, curator, inference, *, randomness, progress):
        whole = curator.remaining
        taken = curator.release(budget=whole * Fraction(9, 10)), curator.release()
        engine = inference.compile(taken[0].structure)
        potentials = self.potentials(taken[0], engine, randomness, progress)
        model = Model(curator.structure, potentials, releases=self.stated(taken))
        return Fit(model=model, converged=self.converged(engine, potentials))

    def stated(self, taken):
        return taken


@frozen(kw_only=True)
class StatesTheTinyLast(States):
    """The model says that it cost a tenth of what it did."""

    def stated(self, taken):
        return taken[-1:]


@frozen(kw_only=True)
class DropsTheFirst(States):
    """States as many releases as there were, at a lower cost: the last one twice, the first one never."""

    def stated(self, taken):
        return taken[-1], taken[-1]


@frozen(kw_only=True)
class StatesLessInTheFit(States):
    """The model says nothing of its releases, and the fit shows the tiny one."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, releases=curator.released[-1:])

    def stated(self, taken):
        return ()


@frozen(kw_only=True)
class OtherOrder(States):
    """States the first one as the last."""

    def stated(self, taken):
        return taken[::-1]


@frozen(kw_only=True)
class ForgesTheStamp(States):
    """Takes the stamp off what a seed made."""

    def stated(self, taken):
        return [attrs.evolve(one, private=True) for one in taken]


@frozen(kw_only=True)
class ForgesTheCost(States):
    """States the releases handed out, the first one at half its cost."""

    def stated(self, taken):
        return attrs.evolve(taken[0], cost=taken[0].cost * Fraction(1, 2)), taken[1]


@frozen(kw_only=True)
class AltersTheTables(States):
    """States tables of its own under the guarantee of those released."""

    def stated(self, taken):
        return attrs.evolve(taken[0], tables=taken[0].tables * 2.0), taken[1]


@frozen(kw_only=True)
class AsksForNothing(Plain):
    """The uniform model, without a look."""

    def learn(self, curator, inference, *, randomness, progress):
        return Fit(model=Model(curator.structure, Tables.zeros(curator.structure)))


@frozen(kw_only=True)
class DropsTheFirstRelease(Plain):
    """Takes a quarter, a quarter and a half, and states the last two."""

    def learn(self, curator, inference, *, randomness, progress):
        quarter = curator.budget * Fraction(1, 4)
        curator.release(budget=quarter)
        curator.release(budget=quarter)
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return stating(fit, curator.released[1:])


@frozen(kw_only=True)
class SpendsHalf(Plain):
    """Leaves half of the budget unused."""

    def budget(self, curator):
        return curator.remaining * Fraction(1, 2)


@frozen(kw_only=True)
class InfinitePotentials(Plain):
    """NaN in one cell of the answer."""

    def potentials(self, release, engine, randomness, progress):
        values = super().potentials(release, engine, randomness, progress).values.copy()
        values[0] = np.inf
        return Tables(release.structure, values)


@frozen(kw_only=True)
class GlobalStart(Plain):
    """Starts from numpy's global generator."""

    def start(self, release, randomness):
        return np.random.normal(size=release.structure.cells)  # noqa: NPY002


@frozen(kw_only=True)
class UnseededStart(Plain):
    """Starts from a generator of its own, and stops before that is forgotten."""

    def start(self, release, randomness):
        return np.random.default_rng().normal(scale=0.1, size=release.structure.cells)


@frozen(kw_only=True)
class Caches(Plain):
    """The first model of a structure serves for ever."""

    known: dict = attrs.field(factory=dict, metadata={"help": "models by structure"})

    def potentials(self, release, engine, randomness, progress):
        if release.structure not in self.known:
            self.known[release.structure] = super().potentials(release, engine, randomness, progress)
        return self.known[release.structure]


@frozen(kw_only=True)
class TakesLogs(Plain):
    """The log of the noisy counts."""

    def potentials(self, release, engine, randomness, progress):
        with np.errstate(invalid="ignore", divide="ignore"):
            return Tables(release.structure, np.log(release.tables.values.astype(float)))


@frozen(kw_only=True)
class NeedsRecords(Plain):
    """Refuses data sets whose noisy total is small."""

    def target(self, release):
        if release.total < 20:
            raise InferenceError("too few records")
        return super().target(release)


@frozen(kw_only=True)
class PairsOnly(Plain):
    """Knows tables of two attributes only."""

    def target(self, release):
        for table in release.tables.arrays():
            rows, columns = table.shape
            assert rows * columns
        return super().target(release)


@frozen(kw_only=True)
class NeverLearns(Plain):
    """The uniform model, whatever the data say."""

    def potentials(self, release, engine, randomness, progress):
        return Tables.zeros(release.structure)


@frozen(kw_only=True)
class IndependentModel(Plain):
    """Margins only: no better with more records once those are known."""

    def potentials(self, release, engine, randomness, progress):
        theta = super().potentials(release, engine, randomness, progress)
        parts = []
        for table in theta.arrays():
            main = table.mean(axis=0, keepdims=True) + table.mean(axis=1, keepdims=True) if table.ndim == 2 else table
            parts.append(np.broadcast_to(main, table.shape).reshape(-1))
        return Tables(release.structure, np.concatenate(parts))


@frozen(kw_only=True)
class ExactEnginesOnly(Plain):
    """Asks every engine for its most probable record."""

    def potentials(self, release, engine, randomness, progress):
        theta = super().potentials(release, engine, randomness, progress)
        engine.maximize(theta)
        return theta


@frozen(kw_only=True)
class SwallowsNan(Plain):
    """A NaN gradient counts as 0."""

    def potentials(self, release, engine, randomness, progress):
        target, theta = self.target(release), np.zeros(release.structure.cells)
        for _ in range(50):
            marginals = engine.infer(Tables(release.structure, theta)).marginals
            theta = theta + np.nan_to_num(target.values - marginals.values)
        return Tables(release.structure, theta)


@frozen(kw_only=True)
class ChargesFirst(Plain):
    """Finds out that the structure does not fit when the release is paid for."""

    def check(self, structure, inference):
        pass


@frozen(kw_only=True)
class ChecksInVain(Plain):
    """Tries, and takes no notice."""

    def check(self, structure, inference):
        with contextlib.suppress(InferenceError):
            inference.compile(structure)


@frozen(kw_only=True)
class RefusesWhatFits(Plain):
    """Takes fright at three attributes."""

    def check(self, structure, inference):
        if len(structure.domain) > 2:
            raise TooLarge("more than two attributes")


@frozen(kw_only=True)
class Tunes(Plain):
    """No mutant: picks a penalty by the noise, says which, and can refit."""

    penalty: float = option(0.0, help="of the potentials; 0 picks one", unit="1 / nats")

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"penalty": self.picked(curator.released[-1])})

    def picked(self, release):
        return self.penalty or 1.0 / release.total

    def potentials(self, release, engine, randomness, progress):
        problem = Likelihood(engine, self.target(release), progress)
        theta, _ = problem.minimise(np.zeros(release.structure.cells), self.picked(release), 1e-6, 500)
        return Tables(release.structure, theta)

    def refitter(self, model, inference):
        engine = inference.compile(model.structure)
        return lambda release: self.potentials(release, engine, None, silent)


@frozen(kw_only=True)
class TunesAnArray(Tunes):
    """Its tuning is no plain value, and would be lost in a file."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"penalty": np.float64(fit.tuning["penalty"]) * np.ones(1)})


@frozen(kw_only=True)
class TunesNoOption(Tunes):
    """Names a choice that it has no option for."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"strength": 1.0})


@frozen(kw_only=True)
class TunesByTheRoot(Tunes):
    """Says the square root of what it used."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"penalty": fit.tuning["penalty"] ** 0.5})


@frozen(kw_only=True)
class RefitsNothing(Tunes):
    """A refit is where it started, so that error bars would be 0."""

    def refitter(self, model, inference):
        return lambda release: model.potentials


@frozen(kw_only=True)
class RefitsHalfway(Tunes):
    """Stops a refit on the way, warm start and all."""

    def refitter(self, model, inference):
        whole = super().refitter(model, inference)
        return lambda release: (whole(release) + model.potentials) * 0.5


@frozen(kw_only=True)
class AlwaysConverged(Plain):
    """Says that it converged, whatever happened."""

    def converged(self, engine, potentials):
        return True


@frozen(kw_only=True)
class OneStepIsEnough(AlwaysConverged):
    """One gradient step, and says that it converged."""

    def potentials(self, release, engine, randomness, progress):
        marginals = engine.infer(Tables.zeros(release.structure)).marginals
        return (self.target(release) - marginals) * 0.5


@frozen(kw_only=True)
class DoublesTheTotal(Plain):
    """Each table holds twice as many records as it does: half of what a record does is left to the uniform model."""

    def target(self, release):
        halves = super().target(release) * 0.5
        rest = np.array(release.structure.multiplicities) / np.array(release.structure.sizes) * 0.5
        return halves.like(halves.values + halves.repeat(rest))


@frozen(kw_only=True)
class ForgetsTheTies(Plain):
    """Starts from tied tables as if each were one clique's, and adds what lacks evenly."""

    def target(self, release):
        target = super().target(release)
        tied = np.array(release.structure.multiplicities)
        one = target.values * target.repeat(1 / tied)
        return target.like(one + target.repeat((tied - 1) / np.array(release.structure.sizes)))


@frozen(kw_only=True)
class TakesTablesAlike(Plain):
    """Takes the noise for the same in every table."""

    def variances(self, release):
        return None


@frozen(kw_only=True)
class TakesTheLoudForTheQuiet(Plain):
    """Weighs tables by their variance instead of its inverse."""

    def variances(self, release):
        return 1 / release.variances


@frozen(kw_only=True)
class NeedsADual(Plain):
    """Weighs tables by the dual bound of their noise, which not every noise has."""

    def target(self, release):
        assert min(noise.dual.bound + noise.dual.curvature for noise in release.noise) > 0
        return super().target(release)


@frozen(kw_only=True)
class Foresees(Plain):
    """No mutant: says beforehand that it divides the budget over the structure's tables, and does."""

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release(split="optimal", cliques=self.measured(curator.structure).cliques)
        engine = inference.compile(release.structure)
        potentials = self.potentials(release, engine, randomness, progress).embed(curator.structure)
        return Fit(model=Model(curator.structure, potentials))

    def measured(self, structure):
        return structure

    def planned_tables(self, structure):
        return structure, "optimal"


@frozen(kw_only=True)
class ForeseesEvenNoise(Foresees):
    """The plan shows the noise of another split."""

    def planned_tables(self, structure):
        return structure, None


@frozen(kw_only=True)
class MeasuresFewer(Foresees):
    """The plan shows tables that it never asks for."""

    def measured(self, structure):
        return Structure(structure.domain, [one for one in structure.cliques if one not in structure.nested])


@frozen(kw_only=True)
class ForeseesOneOfTwo(Foresees):
    """The plan shows one release, and the budget goes into two."""

    def learn(self, curator, inference, *, randomness, progress):
        curator.release(budget=curator.remaining * Fraction(1, 2), split="optimal")
        return super().learn(curator, inference, randomness=randomness, progress=progress)


@frozen(kw_only=True)
class ForeseesADomain(Foresees):
    """Not even a structure."""

    def planned_tables(self, structure):
        return structure.domain, "optimal"


@frozen(kw_only=True)
class Loops(Plain):
    """No mutant: may be called in a loop, and does the same each time."""

    def fitter(self, inference):
        def fit(release, structure, before):
            potentials = self.potentials(release, inference.compile(release.structure), None, silent)
            return Fit(model=Model(structure, self.begun(potentials, before).embed(structure)))

        return fit

    def begun(self, potentials, before):
        return potentials


@frozen(kw_only=True)
class StaysWhereItBegan(Loops):
    """Takes the fit before for the answer."""

    def fitter(self, inference):
        fit = super().fitter(inference)

        def again(release, structure, before):
            if before is None:
                return fit(release, structure, before)
            return attrs.evolve(before, model=Model(structure, before.model.potentials.embed(structure)))

        return again


@frozen(kw_only=True)
class AddsItsStart(Loops):
    """Adds the fit before to what it finds, so that main effects count twice."""

    def begun(self, potentials, before):
        return potentials if before is None else potentials + before.model.potentials.embed(potentials.structure)


@frozen(kw_only=True)
class WritesOnItsStart(Loops):
    """Uses the arrays of the fit before for its own numbers."""

    def begun(self, potentials, before):
        if before is not None:
            values = before.model.potentials.values
            values.flags.writeable = True
            values += 1.0
        return potentials


@frozen(kw_only=True)
class OverTheRelease(Loops):
    """Gives a model over what was measured, whatever was asked for."""

    def fitter(self, inference):
        fit = super().fitter(inference)
        return lambda release, structure, before: fit(release, release.structure, before)


class AsksTwice(Plain):
    """Of saved releases it takes one for a rehearsal first, and a session leaves one."""

    def learn(self, curator, inference, *, randomness, progress):
        if curator.replayed:
            curator.release()
        return super().learn(curator, inference, randomness=randomness, progress=progress)


class OverItsTables(Plain):
    """A model over whatever was measured, called one over the curator's structure."""

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        potentials = self.potentials(release, inference.compile(release.structure), randomness, progress)
        return Fit(model=Model(curator.structure, potentials))


@frozen(kw_only=True)
class HalvesRho(Plain):
    """Takes rho for epsilon squared, and spends half of it."""

    def budget(self, curator):
        return curator.remaining * Fraction(1, 2) if curator.remaining.kind == "zcdp" else None


@frozen(kw_only=True)
class KnowsLaplaceAlone(Plain):
    """Asks noise for a scale, which that of other mechanisms has not."""

    def variances(self, release):
        return np.array([2 * float(noise.scale) ** 2 for noise in release.noise])


@frozen(kw_only=True)
class RefusesWhatItPaidFor(Plain):
    """Finds out after its release that it takes no delta."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        if curator.budget.kind == "approx":
            raise BudgetError("no delta here")
        return fit


@frozen(kw_only=True)
class LearnsOfEpsilon(Plain):
    """Shrinks to the uniform model by what epsilon says, and zCDP budgets have none."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        share = min(1.0, float(curator.budget.epsilon)) if curator.budget.kind != "zcdp" else 0.0
        return attrs.evolve(fit, model=Model(fit.model.structure, fit.model.potentials * share))


@frozen(kw_only=True)
class FirstSavedAlone(Plain):
    """Learns from the first of several saved releases, though it was handed all of them as one."""

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release()
        one = curator.released[0] if curator.pooled else release
        engine = inference.compile(one.structure)
        potentials = self.potentials(one, engine, randomness, progress)
        return Fit(model=Model(curator.structure, potentials), converged=self.converged(engine, potentials))


@frozen(kw_only=True)
class LoopsAlike(Loops):
    """Takes the noise of all tables for the same in a loop."""

    def fitter(self, inference):
        def fit(release, structure, before):
            alike = TakesTablesAlike().potentials(release, inference.compile(release.structure), None, silent)
            return Fit(model=Model(structure, alike.embed(structure)))

        return fit


@frozen(kw_only=True)
class PairsOnceItIsPaid(Plain):
    """Finds out after its release that it takes no clique of three."""

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        if max(map(len, curator.structure.cliques)) > 2:
            raise StructureError("pairs only")
        return fit


@frozen(kw_only=True)
class PairsInLoops(Loops):
    """Takes no clique of three in a loop."""

    def fitter(self, inference):
        own = super().fitter(inference)

        def fit(release, structure, before):
            if max(map(len, structure.cliques)) > 2:
                raise StructureError("pairs only")
            return own(release, structure, before)

        return fit


BY_CHECK = {
    "a-chosen-structure-is-learned-or-refused-unpaid": [PairsOnceItIsPaid, PairsInLoops, AsksTwice, OverItsTables],
    "every-kind-of-budget-is-served-or-refused-unpaid": [
        HalvesRho,
        KnowsLaplaceAlone,
        RefusesWhatItPaidFor,
        LearnsOfEpsilon,
    ],
    "each-release-counts": [States, DropsTheFirstRelease, FirstSavedAlone],
    "loops-follow-structures-and-noise": [LoopsAlike],
    "records-only-through-the-curator": [Peeks, ReadsTheRecords],
    "records-are-not-kept": [KeepsTheCurator],
    "cost-is-the-curators": [
        StatesTheTinyLast,
        DropsTheFirst,
        StatesLessInTheFit,
        OtherOrder,
        ForgesTheStamp,
        ForgesTheCost,
        AltersTheTables,
        AsksForNothing,
        DropsTheFirstRelease,
    ],
    "spends-what-it-is-given": [SpendsHalf],
    "fit-is-usable": [InfinitePotentials],
    "tuning-makes-the-same-choices": [TunesAnArray, TunesNoOption, TunesByTheRoot],
    "refits-agree-with-learning": [RefitsNothing, RefitsHalfway],
    "deterministic-under-a-seed": [GlobalStart, UnseededStart],
    "fits-are-independent": [Caches],
    "survives-negative-counts": [TakesLogs],
    "survives-empty-data": [NeedsRecords],
    "survives-awkward-structures": [PairsOnly],
    "improves-with-more-records": [NeverLearns, IndependentModel],
    "engines-can-be-swapped": [ExactEnginesOnly],
    "nan-is-not-swallowed": [SwallowsNan],
    "what-never-settled-is-not-converged": [AlwaysConverged, OneStepIsEnough],
    "many-records-are-followed": [DoublesTheTotal, ForgetsTheTies, IndependentModel],
    "quiet-tables-count-for-more": [TakesTablesAlike, TakesTheLoudForTheQuiet],
    "what-is-too-large-is-refused-by-check": [ChargesFirst, ChecksInVain, RefusesWhatFits],
    "what-it-foresees-it-measures": [ForeseesEvenNoise, MeasuresFewer, ForeseesOneOfTwo, ForeseesADomain],
    "loops-agree-with-learning": [StaysWhereItBegan, AddsItsStart, WritesOnItsStart, OverTheRelease],
    "any-noise-gives-a-model-or-a-refusal": [NeedsADual],
}
MUTANTS = [(mutant, check) for check, mutants in BY_CHECK.items() for mutant in mutants]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[f"{check}-{n}" for n, (_, check) in enumerate(MUTANTS)])
def test_the_check_meant_for_it_kills_the_mutant(verdict, mutant, check):
    """The named check fails; the mutant's docstring says what is wrong with it."""
    found = verdict(mutant, "learner", check)
    KEPT.clear()
    assert found is not None


@pytest.mark.parametrize("check", sorted(BY_CHECK))
@pytest.mark.parametrize("original", [Plain, Tunes, States])
def test_the_originals_pass(verdict, original, check):
    """The learners that the mutants are made from pass; one drops a release."""
    if (original, check) != (States, "each-release-counts"):
        assert verdict(original, "learner", check, profile="quick") is None


@frozen(kw_only=True)
class Sessions(Plain):
    """No mutant: measures its tables in a session of its own."""

    def learn(self, curator, inference, *, randomness, progress):
        with curator.session(workload=Workload.of(curator.structure.domain, curator.structure.cliques)) as session:
            session.measure(curator.structure.cliques, session.remaining)
            release = session.pooled()
        engine = inference.compile(release.structure)
        potentials = self.potentials(release, engine, randomness, progress)
        return Fit(model=Model(curator.structure, potentials), converged=self.converged(engine, potentials))


@pytest.mark.parametrize(
    "check", ["records-only-through-the-curator", "records-are-not-kept", "cost-is-the-curators", "fit-is-usable"]
)
def test_a_learner_may_open_a_session(verdict, check):
    """The kit's door passes sessions on, and sees what they hand out."""
    assert verdict(Sessions, "learner", check) is None


def test_the_loop_that_mutants_are_made_from_passes(verdict):
    """It has a fitter, which the others have not."""
    for check in ("loops-agree-with-learning", "loops-follow-structures-and-noise"):
        assert verdict(Loops, "learner", check) is None


def test_the_learner_that_foresees_rightly_passes(verdict):
    """It says what it measures, which the others do not."""
    assert verdict(Foresees, "learner", "what-it-foresees-it-measures") is None


def test_every_check_kills_a_mutant():
    """No check is there for show."""
    assert set(BY_CHECK) == {
        check.name for check in checks_of("learner") if check.kind != "declaration" and check.needs is None
    }


def test_a_learner_may_measure_less_than_its_structure():
    """What it left out has no marginal for users, and is no fault of the learner's."""
    structure = Structure(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), [("a", "b"), ("b", "c")])
    measured = Structure(structure.domain, [("a", "b")])
    noisy = release(np.zeros((9, 3), int), measured, Budget.pure(1), neighbours="add-remove")
    fit = Fit(model=Model(structure, Tables.zeros(structure), releases=[noisy]))
    assert fit.model.left_out == ("c",)
    _usable(fit, structure, "here")
