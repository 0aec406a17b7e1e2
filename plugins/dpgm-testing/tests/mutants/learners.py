"""Deliberately wrong learners, each killed by the check meant for it."""

import contextlib
from fractions import Fraction

import attrs
import numpy as np
from attrs import frozen

import dpgm_core as dpgm
from dpgm_core._util.progress import silent
from dpgm_core.learning import Likelihood, consistent

from .family import KEPT, Family, replaces

learner = Family("learner")


@frozen(kw_only=True)
class Plain:
    """The learner the mutants are made from: clip, normalise, penalised maximum likelihood."""

    def check(self, structure, inference):
        inference.compile(structure)

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release(budget=self.budget(curator))
        engine = inference.compile(release.structure)
        potentials = self.potentials(release, engine, randomness, progress)
        model = dpgm.Model(curator.structure, potentials.embed(curator.structure))
        return dpgm.Fit(model=model, converged=self.converged(engine, potentials))

    def converged(self, engine, potentials):
        return engine.infer(potentials).converged

    def budget(self, curator):
        return None

    def potentials(self, release, engine, randomness, progress):
        problem = Likelihood(engine, self.target(release), progress)
        theta, _ = problem.minimise(self.start(release, randomness), 1e-3, 1e-6, 500)
        return dpgm.Tables(release.structure, theta)

    def target(self, release):
        clipped = np.maximum(release.tables.values.astype(float), 0.0) + 1e-6
        tables = dpgm.Tables(release.structure, clipped)
        target = tables.like(clipped * tables.repeat(np.array(release.structure.multiplicities) / tables.sums()))
        return consistent(target, self.variances(release))

    def variances(self, release):
        return release.variances

    def start(self, release, randomness):
        return np.zeros(release.structure.cells)


def stating(fit, releases):
    return attrs.evolve(fit, model=dpgm.Model(fit.model.structure, fit.model.potentials, releases=releases))


@learner.each
class PlainFaults(Plain):
    @replaces("learn", "records-only-through-the-curator")
    def peeks(self, curator, inference, *, randomness, progress):
        """Looks at the curator's source for the exact number of records."""
        getattr(curator, "_source", None)
        return super().learn(curator, inference, randomness=randomness, progress=progress)

    @replaces("learn", "records-only-through-the-curator", "Finds the records in memory and reads them.")
    def reads_the_records(self, curator, inference, *, randomness, progress):
        import gc

        for thing in gc.get_objects():
            if type(thing).__name__ == "TrappedRecords":
                next(thing.batches(curator.structure.domain, curator.structure.domain.names), None)
        return super().learn(curator, inference, randomness=randomness, progress=progress)

    @replaces("learn", "records-are-not-kept")
    def keeps_the_curator(self, curator, inference, *, randomness, progress):
        """A module-level cache holds on to the curator, and with it to the records."""
        KEPT.append(curator)
        return super().learn(curator, inference, randomness=randomness, progress=progress)

    @replaces("learn", "cost-is-the-curators", "The uniform model, without a look.")
    def asks_for_nothing(self, curator, inference, *, randomness, progress):
        return dpgm.Fit(model=dpgm.Model(curator.structure, dpgm.Tables.zeros(curator.structure)))

    @replaces("learn", ("cost-is-the-curators", "each-release-counts"))
    def drops_the_first_release(self, curator, inference, *, randomness, progress):
        """Takes three releases, and states the last two."""
        quarter = curator.budget * Fraction(1, 4)
        curator.release(budget=quarter)
        curator.release(budget=quarter)
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return stating(fit, curator.released[1:])

    @replaces("budget", "spends-what-it-is-given", "Leaves half of the budget unused.")
    def spends_half(self, curator):
        return curator.remaining * Fraction(1, 2)

    @replaces("potentials", "fit-is-usable", "NaN in one cell of the answer.")
    def infinite_potentials(self, release, engine, randomness, progress):
        values = super().potentials(release, engine, randomness, progress).values.copy()
        values[0] = np.inf
        return dpgm.Tables(release.structure, values)

    @replaces("start", "deterministic-under-a-seed", "Starts from numpy's global generator.")
    def global_start(self, release, randomness):
        return np.random.normal(size=release.structure.cells)  # noqa: NPY002

    @replaces("start", "deterministic-under-a-seed")
    def unseeded_start(self, release, randomness):
        """Starts from a generator of its own, and stops before that is forgotten."""
        return np.random.default_rng().normal(scale=0.1, size=release.structure.cells)

    @replaces("potentials", "survives-negative-counts", "The log of the noisy counts.")
    def takes_logs(self, release, engine, randomness, progress):
        with np.errstate(invalid="ignore", divide="ignore"):
            return dpgm.Tables(release.structure, np.log(release.tables.values.astype(float)))

    @replaces("target", "survives-empty-data", "Refuses data sets whose noisy total is small.")
    def needs_records(self, release):
        if release.total < 20:
            raise dpgm.InferenceError("too few records")
        return super().target(release)

    @replaces("target", "survives-awkward-structures", "Knows tables of two attributes only.")
    def pairs_only(self, release):
        for table in release.tables.arrays():
            rows, columns = table.shape
            assert rows * columns
        return super().target(release)

    @replaces("potentials", "improves-with-more-records", "The uniform model, whatever the data say.")
    def never_learns(self, release, engine, randomness, progress):
        return dpgm.Tables.zeros(release.structure)

    @replaces("potentials", ("improves-with-more-records", "many-records-are-followed"))
    def independent_model(self, release, engine, randomness, progress):
        """Margins only: more records are of no use."""
        theta = super().potentials(release, engine, randomness, progress)
        parts = []
        for table in theta.arrays():
            main = table.mean(axis=0, keepdims=True) + table.mean(axis=1, keepdims=True) if table.ndim == 2 else table
            parts.append(np.broadcast_to(main, table.shape).reshape(-1))
        return dpgm.Tables(release.structure, np.concatenate(parts))

    @replaces("potentials", "engines-can-be-swapped", "Asks every engine for its most probable record.")
    def exact_engines_only(self, release, engine, randomness, progress):
        theta = super().potentials(release, engine, randomness, progress)
        engine.maximize(theta)
        return theta

    @replaces("potentials", "nan-is-not-swallowed", "A NaN gradient counts as 0.")
    def swallows_nan(self, release, engine, randomness, progress):
        target, theta = self.target(release), np.zeros(release.structure.cells)
        for _ in range(50):
            marginals = engine.infer(dpgm.Tables(release.structure, theta)).marginals
            theta = theta + np.nan_to_num(target.values - marginals.values)
        return dpgm.Tables(release.structure, theta)

    @replaces("check", "what-is-too-large-is-refused-by-check")
    def charges_first(self, structure, inference):
        """Finds out what does not fit when the release is paid for."""

    @replaces("check", "what-is-too-large-is-refused-by-check", "Tries, and takes no notice.")
    def checks_in_vain(self, structure, inference):
        with contextlib.suppress(dpgm.InferenceError):
            inference.compile(structure)

    @replaces("check", "what-is-too-large-is-refused-by-check", "Takes fright at three attributes.")
    def refuses_what_fits(self, structure, inference):
        if len(structure.domain) > 2:
            raise dpgm.TooLarge("more than two attributes")

    @replaces("target", "many-records-are-followed")
    def doubles_the_total(self, release):
        """Doubles each table's total, so half of it is left to the uniform model."""
        halves = super().target(release) * 0.5
        rest = np.array(release.structure.multiplicities) / np.array(release.structure.sizes) * 0.5
        return halves.like(halves.values + halves.repeat(rest))

    @replaces("target", "many-records-are-followed")
    def forgets_the_ties(self, release):
        """Starts from tied tables as one clique's, and adds the rest evenly."""
        target = super().target(release)
        tied = np.array(release.structure.multiplicities)
        one = target.values * target.repeat(1 / tied)
        return target.like(one + target.repeat((tied - 1) / np.array(release.structure.sizes)))

    @replaces("variances", "quiet-tables-count-for-more", "Weighs tables by their variance instead of its inverse.")
    def takes_the_loud_for_the_quiet(self, release):
        return 1 / release.variances

    @replaces("target", "any-noise-gives-a-model-or-a-refusal")
    def needs_a_dual(self, release):
        """Weighs tables by a dual bound that not every noise has."""
        assert min(noise.dual.bound + noise.dual.curvature for noise in release.noise) > 0
        return super().target(release)

    @replaces("learn", "a-chosen-structure-is-learned-or-refused-unpaid")
    def asks_twice(self, curator, inference, *, randomness, progress):
        """Takes a saved release for a rehearsal, and there is one."""
        if curator.replayed:
            curator.release()
        return super().learn(curator, inference, randomness=randomness, progress=progress)

    @replaces("learn", "a-chosen-structure-is-learned-or-refused-unpaid")
    def over_its_tables(self, curator, inference, *, randomness, progress):
        """Calls a model of its tables one of the structure."""
        release = curator.release()
        potentials = self.potentials(release, inference.compile(release.structure), randomness, progress)
        return dpgm.Fit(model=dpgm.Model(curator.structure, potentials))

    @replaces("budget", "every-kind-of-budget-is-served-or-refused-unpaid")
    def halves_rho(self, curator):
        """Takes rho for epsilon squared, and spends half of it."""
        return curator.remaining * Fraction(1, 2) if curator.remaining.kind == "zcdp" else None

    @replaces("variances", "every-kind-of-budget-is-served-or-refused-unpaid")
    def knows_laplace_alone(self, release):
        """Asks noise for a scale, which others have not."""
        return np.array([2 * float(noise.scale) ** 2 for noise in release.noise])

    @replaces("learn", "every-kind-of-budget-is-served-or-refused-unpaid")
    def refuses_what_it_paid_for(self, curator, inference, *, randomness, progress):
        """Finds out after its release that it takes no delta."""
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        if curator.budget.kind == "approx":
            raise dpgm.BudgetError("no delta here")
        return fit

    @replaces("learn", "every-kind-of-budget-is-served-or-refused-unpaid")
    def learns_of_epsilon(self, curator, inference, *, randomness, progress):
        """Shrinks by epsilon, which zCDP budgets lack."""
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        share = min(1.0, float(curator.budget.epsilon)) if curator.budget.kind != "zcdp" else 0.0
        return attrs.evolve(fit, model=dpgm.Model(fit.model.structure, fit.model.potentials * share))

    @replaces("learn", "each-release-counts", "Learns from the first of several saved releases that came as one.")
    def first_saved_alone(self, curator, inference, *, randomness, progress):
        release = curator.release()
        one = curator.released[0] if curator.pooled else release
        engine = inference.compile(one.structure)
        potentials = self.potentials(one, engine, randomness, progress)
        return dpgm.Fit(model=dpgm.Model(curator.structure, potentials), converged=self.converged(engine, potentials))

    @replaces("learn", "a-chosen-structure-is-learned-or-refused-unpaid")
    def pairs_once_it_is_paid(self, curator, inference, *, randomness, progress):
        """Refuses a clique of three after its release."""
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        if max(map(len, curator.structure.cliques)) > 2:
            raise dpgm.StructureError("pairs only")
        return fit


@learner("each-release-counts", "Takes 9/10 and then the rest, states both, and learns from the first alone.")
class States(Plain):
    def learn(self, curator, inference, *, randomness, progress):
        whole = curator.remaining
        taken = curator.release(budget=whole * Fraction(9, 10)), curator.release()
        engine = inference.compile(taken[0].structure)
        potentials = self.potentials(taken[0], engine, randomness, progress)
        model = dpgm.Model(curator.structure, potentials, releases=self.stated(taken))
        return dpgm.Fit(model=model, converged=self.converged(engine, potentials))

    def stated(self, taken):
        return taken


@learner.each
class StatesFaults(States):
    @replaces("stated", "cost-is-the-curators", "The model says that it cost a tenth of what it did.")
    def states_the_tiny_last(self, taken):
        return taken[-1:]

    @replaces("stated", "cost-is-the-curators")
    def drops_the_first(self, taken):
        """States as many releases as there were: the last one twice, the first never."""
        return taken[-1], taken[-1]

    @replaces("stated", "cost-is-the-curators", "States the first one as the last.")
    def other_order(self, taken):
        return taken[::-1]

    @replaces("stated", "cost-is-the-curators", "Takes the stamp off what a seed made.")
    def forges_the_stamp(self, taken):
        return [attrs.evolve(one, private=True) for one in taken]

    @replaces("stated", "cost-is-the-curators", "States the releases handed out, the first one at half its cost.")
    def forges_the_cost(self, taken):
        return attrs.evolve(taken[0], cost=taken[0].cost * Fraction(1, 2)), taken[1]

    @replaces("stated", "cost-is-the-curators", "States tables of its own under the guarantee of those released.")
    def alters_the_tables(self, taken):
        return attrs.evolve(taken[0], tables=taken[0].tables * 2.0), taken[1]


@learner("cost-is-the-curators", "The model says nothing of its releases, and the fit shows the tiny one.")
class StatesLessInTheFit(States):
    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, releases=curator.released[-1:])

    def stated(self, taken):
        return ()


@learner("fits-are-independent", "The first model of a structure serves for ever.")
@frozen(kw_only=True)
class Caches(Plain):
    known: dict = attrs.field(factory=dict, metadata={"help": "models by structure"})

    def potentials(self, release, engine, randomness, progress):
        if release.structure not in self.known:
            self.known[release.structure] = super().potentials(release, engine, randomness, progress)
        return self.known[release.structure]


@frozen(kw_only=True)
class Tunes(Plain):
    """No mutant: picks a penalty by the noise, says which, and can refit."""

    penalty: float = dpgm.option(0.0, help="of the potentials; 0 picks one", unit="1 / nats")

    def learn(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"penalty": self.picked(curator.released[-1])})

    def picked(self, release):
        return self.penalty or 1.0 / release.total

    def potentials(self, release, engine, randomness, progress):
        problem = Likelihood(engine, self.target(release), progress)
        theta, _ = problem.minimise(np.zeros(release.structure.cells), self.picked(release), 1e-6, 500)
        return dpgm.Tables(release.structure, theta)

    def refitter(self, model, inference):
        engine = inference.compile(model.structure)
        return lambda release: self.potentials(release, engine, None, silent)


@learner.each
class TunesFaults(Tunes):
    @replaces("learn", "tuning-makes-the-same-choices", "Its tuning is no plain value, and would be lost in a file.")
    def tunes_an_array(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"penalty": np.float64(fit.tuning["penalty"]) * np.ones(1)})

    @replaces("learn", "tuning-makes-the-same-choices", "Names a choice that it has no option for.")
    def tunes_no_option(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"strength": 1.0})

    @replaces("learn", "tuning-makes-the-same-choices", "Says the square root of what it used.")
    def tunes_by_the_root(self, curator, inference, *, randomness, progress):
        fit = super().learn(curator, inference, randomness=randomness, progress=progress)
        return attrs.evolve(fit, tuning={"penalty": fit.tuning["penalty"] ** 0.5})

    @replaces("refitter", "refits-agree-with-learning", "A refit is where it started, so that error bars would be 0.")
    def refits_nothing(self, model, inference):
        return lambda release: model.potentials

    @replaces("refitter", "refits-agree-with-learning", "Stops a refit on the way, warm start and all.")
    def refits_halfway(self, model, inference):
        whole = super().refitter(model, inference)
        return lambda release: (whole(release) + model.potentials) * 0.5


@learner("what-never-settled-is-not-converged", "Says that it converged, whatever happened.")
class AlwaysConverged(Plain):
    def converged(self, engine, potentials):
        return True


@learner("what-never-settled-is-not-converged", "One gradient step, and says that it converged.")
class OneStepIsEnough(AlwaysConverged):
    def potentials(self, release, engine, randomness, progress):
        marginals = engine.infer(dpgm.Tables.zeros(release.structure)).marginals
        return (self.target(release) - marginals) * 0.5


@learner("quiet-tables-count-for-more", "Takes the noise for the same in every table.")
class TakesTablesAlike(Plain):
    def variances(self, release):
        return None


class Foresees(Plain):
    """No mutant: says beforehand that it divides the budget over the structure's tables, and does."""

    def learn(self, curator, inference, *, randomness, progress):
        release = curator.release(split="optimal", cliques=self.measured(curator.structure).cliques)
        engine = inference.compile(release.structure)
        potentials = self.potentials(release, engine, randomness, progress).embed(curator.structure)
        return dpgm.Fit(model=dpgm.Model(curator.structure, potentials))

    def measured(self, structure):
        return structure

    def planned_tables(self, structure):
        return structure, "optimal"


@learner.each
class ForeseesFaults(Foresees):
    @replaces("planned_tables", "what-it-foresees-it-measures", "The plan shows the noise of another split.")
    def foresees_even_noise(self, structure):
        return structure, None

    @replaces("measured", "what-it-foresees-it-measures", "The plan shows tables that it never asks for.")
    def measures_fewer(self, structure):
        return dpgm.Structure(structure.domain, [one for one in structure.cliques if one not in structure.nested])

    @replaces("learn", "what-it-foresees-it-measures", "The plan shows one release, and the budget goes into two.")
    def foresees_one_of_two(self, curator, inference, *, randomness, progress):
        curator.release(budget=curator.remaining * Fraction(1, 2), split="optimal")
        return super().learn(curator, inference, randomness=randomness, progress=progress)

    @replaces("planned_tables", "what-it-foresees-it-measures", "Not even a structure.")
    def foresees_a_domain(self, structure):
        return structure.domain, "optimal"


class Loops(Plain):
    """No mutant: may be called in a loop, and does the same each time."""

    def fitter(self, inference):
        def fit(release, structure, before):
            potentials = self.potentials(release, inference.compile(release.structure), None, silent)
            return dpgm.Fit(model=dpgm.Model(structure, self.begun(potentials, before).embed(structure)))

        return fit

    def begun(self, potentials, before):
        return potentials


@learner.each
class LoopsFaults(Loops):
    @replaces("fitter", "loops-agree-with-learning", "Takes the fit before for the answer.")
    def stays_where_it_began(self, inference):
        fit = super().fitter(inference)

        def again(release, structure, before):
            if before is None:
                return fit(release, structure, before)
            return attrs.evolve(before, model=dpgm.Model(structure, before.model.potentials.embed(structure)))

        return again

    @replaces("begun", "loops-agree-with-learning")
    def adds_its_start(self, potentials, before):
        """Adds the fit before to what it finds, so that main effects count twice."""
        return potentials if before is None else potentials + before.model.potentials.embed(potentials.structure)

    @replaces("begun", "loops-agree-with-learning", "Uses the arrays of the fit before for its own numbers.")
    def writes_on_its_start(self, potentials, before):
        if before is not None:
            values = before.model.potentials.values
            values.flags.writeable = True
            values += 1.0
        return potentials

    @replaces("fitter", "loops-agree-with-learning", "Gives a model over what was measured, whatever was asked for.")
    def over_the_release(self, inference):
        fit = super().fitter(inference)
        return lambda release, structure, before: fit(release, release.structure, before)

    @replaces("fitter", "loops-follow-structures-and-noise", "Takes the noise of all tables for the same in a loop.")
    def loops_alike(self, inference):
        def fit(release, structure, before):
            alike = TakesTablesAlike().potentials(release, inference.compile(release.structure), None, silent)
            return dpgm.Fit(model=dpgm.Model(structure, alike.embed(structure)))

        return fit

    @replaces("fitter", "a-chosen-structure-is-learned-or-refused-unpaid", "Takes no clique of three in a loop.")
    def pairs_in_loops(self, inference):
        own = super().fitter(inference)

        def fit(release, structure, before):
            if max(map(len, structure.cliques)) > 2:
                raise dpgm.StructureError("pairs only")
            return own(release, structure, before)

        return fit


class Sessions(Plain):
    """No mutant: measures its tables in a session of its own."""

    def learn(self, curator, inference, *, randomness, progress):
        with curator.session(workload=dpgm.Workload.of(curator.structure.domain, curator.structure.cliques)) as session:
            session.measure(curator.structure.cliques, session.remaining)
            release = session.pooled()
        engine = inference.compile(release.structure)
        potentials = self.potentials(release, engine, randomness, progress)
        return dpgm.Fit(model=dpgm.Model(curator.structure, potentials), converged=self.converged(engine, potentials))
