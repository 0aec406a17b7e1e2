"""Checks of the contracts of learners: budgets, structures, loops, noise and convergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core._util.progress import silent
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DpgmError, OptionError, StructureError
from dpgm_core.inference.contract import Beliefs, Engine
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit, Fitter, MeasuresOtherTables
from dpgm_core.learning.dry_run import planned_tables
from dpgm_core.learning.learner_checks import check_learner
from dpgm_core.learning.selector import SelectionPlan
from dpgm_core.models.model import Model
from dpgm_core.models.networks import network_of, project
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.measurement import measure
from dpgm_core.privacy.mechanism import Mechanism
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.steps import session_budget
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload
from dpgm_testing.cases import BINARY_CHAIN, CHAIN, SHAPES, awkward_networks
from dpgm_testing.check import CheckFailed, Checklist, Unserved, require
from dpgm_testing.curators import GuardedCurator, TrappedRecords, live_curator
from dpgm_testing.evidence import torn
from dpgm_testing.learning import SpoiledInference, draw, learn, record_probabilities, replayed, truth
from dpgm_testing.oracles import all_records, enumerated, incidence
from dpgm_testing.reference import ReferenceGaussian, ReferenceLaplace
from dpgm_testing.strategies import awkward_structures
from dpgm_testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


# --- Budgets and releases -------------------------------------------------------------------------

_KINDS = ("pure", "zcdp", "approx", "gdp")
_RECORDS = 4000
# What may be left of a budget, and how far marginals may be off, as a share of what the uniform model's are.
_LEFT, _NEARER = 1e-3, 0.9


@CHECKS.add()
def every_kind_of_budget_is_served_or_refused_unpaid(subject: LearnerSubject) -> None:
    """With epsilon = 1, rho = 1/2, mu = 1 and (1, 1e-5) it raises BudgetError before it receives anything, or spends
    all but a thousandth and comes at least a tenth of the way from the uniform model to the truth."""
    theta = truth(subject.chain)
    codes, chances = draw(theta, _RECORDS, 1), enumerated(theta).probabilities
    matrix = incidence(theta.structure)
    expected, even = matrix @ chances, matrix.mean(axis=1)
    served = []
    for kind in _KINDS:
        guarded = GuardedCurator(_curator(subject, codes, kind))
        try:
            fit = _learned(subject, guarded)
        except BudgetError as error:
            require(
                not guarded.handed,
                f"{guarded.budget}: it refuses the budget when {len(guarded.handed)} are paid for: {error}",
            )
            continue
        except Exception as error:
            raise CheckFailed(f"{guarded.budget}: {type(error).__name__}: {error}") from error
        served.append(kind)
        left = [
            float(getattr(guarded.remaining, part) / getattr(guarded.budget, part))
            for part in ("epsilon", "rho", "delta", "mu_squared")
            if getattr(guarded.budget, part)
        ]
        require(max(left) <= _LEFT, f"{guarded.budget}: {max(left):.1%} of it is left")
        found = matrix @ record_probabilities(fit.model.potentials, fit.model.latent)
        off, far = (float(np.abs(one - expected).sum()) for one in (found, even))
        require(
            off <= _NEARER * far,
            f"{guarded.budget}: its marginals are off by {off:.3g}, the uniform model's by {far:.3g}",
        )
    require(served, "it refuses every kind of budget")


def _curator(subject: LearnerSubject, codes: IntArray, kind: str) -> LiveCurator:
    records = TrappedRecords(codes, rows=max(1, len(codes)))
    return live_curator(records, subject.served(subject.chain), kind)


def _learned(subject: LearnerSubject, guarded: GuardedCurator) -> Fit:
    return subject.component.learn(guarded, JunctionTree(), randomness=SeededRandomness(1), progress=silent)


class _Altering(GuardedCurator):
    """A curator whose release with one number has every table turned about."""

    def __init__(self, curator: LiveCurator, number: int) -> None:
        super().__init__(curator)
        self.number, self.is_altered = number, False

    def as_handed(self, release: NoisyTables) -> NoisyTables:
        """The release, altered where it is the one with the number."""
        if len(self.handed) != self.number:
            return release
        self.is_altered = True
        return _turned(release)


def _turned(release: NoisyTables) -> NoisyTables:
    """The same release with the cells of every table in the opposite order."""
    values = np.concatenate([table.reshape(-1)[::-1] for table in release.tables.arrays()])
    return evolve(release, tables=Tables(release.structure, values))


@CHECKS.add()
def each_release_counts(subject: LearnerSubject) -> None:
    """The first, middle and last release or round it asks for, and each of two saved releases, exchanged, give another
    model. Cannot show: that each counts for as much as it should."""
    codes = draw(truth(subject.chain), 2000, 1)
    for kind in _KINDS:
        plain = GuardedCurator(_curator(subject, codes, kind))
        try:
            before = _learned(subject, plain)
        except BudgetError:
            continue
        count = len(plain.handed)
        for number in sorted({0, count // 2, count - 1}):
            guarded = _Altering(_curator(subject, codes, kind), number)
            after = _or_none(lambda guarded=guarded: _learned(subject, guarded))  # type: ignore[misc]
            if guarded.is_altered:  # a session hands out its steps one by one, and its release at the end
                _moves(f"release {number + 1} of {count} that it asks for", before, after)
        break
    structure = subject.served(subject.chain)
    saved = [live_curator(TrappedRecords(codes), structure, "pure", seed=seed).release() for seed in (1, 2)]
    try:
        before = replayed(subject.component, saved, structure)
    except DpgmError:  # it asks for what saved releases cannot be
        return
    for number in range(2):
        turned = [_turned(one) if place == number else one for place, one in enumerate(saved)]
        after = _or_none(lambda turned=turned: replayed(subject.component, turned, structure))  # type: ignore[misc]
        _moves(f"saved release {number + 1} of 2", before, after)


def _or_none(learn: Callable[[], Fit]) -> Fit | None:
    """The fit, or None where it looked at the releases and could not learn from them."""
    try:
        return learn()
    except DpgmError:
        return None


def _moves(where: str, before: Fit, after: Fit | None) -> None:
    same = after is not None and np.array_equal(before.model.potentials.values, after.model.potentials.values)
    require(not same, f"{where}: with other numbers in it the model is the same to the last bit, so nobody looks at it")


# --- Chosen structures ----------------------------------------------------------------------------


@CHECKS.add()
def a_chosen_structure_is_learned_or_refused_unpaid(subject: LearnerSubject) -> None:
    """It learns from the release of a selector, over cliques and over directed graphs, in a loop too, or is refused
    before the charge. Cannot show: what other selectors choose."""
    chain = subject.served(subject.chain)
    domain, codes = chain.domain, draw(truth(chain), 200, 1)
    alone = Structure(domain, [(name,) for name in domain.names])
    cases = [
        (table, directed, structure)
        for table in (domain.names[:2], domain.names[:3])
        for directed in (False, True)
        for structure in _structures(domain, table, directed=directed)
    ]
    for kind in ("pure", "approx"):
        for table, directed, structure in cases:
            workload = Workload.all(domain, order=len(table))
            curator: LiveCurator = live_curator(TrappedRecords(codes), alone, kind)
            budget = session_budget(curator.remaining)
            plan = SelectionPlan(
                shares={"all": budget}, deviation=1.0, detectable=None, candidates=1, limits={}, directed=directed
            )
            try:
                check_learner(subject.component, JunctionTree(), workload, plan, curator.terms, budget)
            except (BudgetError, OptionError, StructureError):
                continue
            with curator.session(workload=workload) as session:
                session.measure(alone.cliques, session.budget * Fraction(1, 2))
                session.measure([table], session.remaining)
                release = session.pooled()
            shape = "a directed graph" if directed else "cliques"
            where = f"{kind} budget, {shape} of up to {len(table)} attributes"
            replay = ReplayCurator(release, structure)
            try:
                if isinstance(subject.component, Fitter):
                    subject.component.fitter(JunctionTree())(release, structure, None)
                subject.component.learn(replay, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
            except (BudgetError, OptionError, StructureError) as error:
                require(False, f"{where}: refused when the session was paid for: {type(error).__name__}: {error}")
            require(replay.remaining.is_zero, f"{where}: it asked for nothing of the release that the session leaves")


def _structures(domain: Domain, table: Clique, *, directed: bool) -> list[Structure]:
    """What a selector may choose: the table, beside all attributes alone or those outside of it, or as a family."""
    if directed:
        return [Dag(domain, {table[0]: table[1:]}).structure()]
    alone = [(name,) for name in domain.names]
    outside = [one for one in alone if one[0] not in table]
    return [Structure(domain, [*outside, table]), Structure(domain, [*alone, table])]


# --- Loops ----------------------------------------------------------------------------------------


@CHECKS.add()
def loops_agree_with_learning(subject: LearnerSubject) -> None:
    """A fitter gives a model over its structure, with the marginals of `learn` to 0.005, a third of their error: from
    nothing, and from a fit to fewer tables with other noise, which does not change. Cannot show: that a start saves
    time."""
    if not isinstance(subject.component, Fitter):
        return
    codes = draw(truth(subject.chain), 500, 1)
    run = learn(subject, codes)
    release = run.curator.released[-1]
    plain, chain = subject.chain, subject.served(subject.chain)
    learned = replayed(subject.component, release, chain)
    alone = Structure(plain.domain, [(name,) for name in plain.domain.names])
    before = live_curator(TrappedRecords(codes), alone, run.curator.budget.kind, seed=2).release()
    loop = subject.component.fitter(JunctionTree())
    _agree(loop(release, chain, None), learned, chain, "from nothing")
    start = loop(before, alone, None)
    kept = start.model.potentials.values.copy()
    roomy = subject.served(Structure(plain.domain, [plain.domain.names]))
    _agree(loop(release, roomy, start), learned, roomy, "from an earlier fit, with room to spare")
    require(np.array_equal(start.model.potentials.values, kept), "the earlier fit that it started from was changed")


@CHECKS.add()
def loops_follow_structures_and_noise(subject: LearnerSubject) -> None:
    """A fitter agrees with `learn`, to 0.005, on contradictory tables of unequal noise and on a cycle: from nothing,
    and from a fit to another release."""
    if not isinstance(subject.component, Fitter):
        return
    uneven = [torn(quiet) for quiet in (0, 1)]
    if subject.directed:
        asked = learn(subject, np.zeros((100, 3), np.int64), uneven[0].structure).curator.handed[-1].structure
        uneven = [torn(quiet, measured=asked) for quiet in (0, 1)]
    _both(subject, uneven, subject.served(uneven[0].structure), "two tables that contradict each other")
    try:
        cycle = subject.served(subject.in_domain(awkward_structures()["cycle"]))
    except Unserved:
        return
    codes = draw(truth(cycle, seed=4), 2000, 1)
    releases = [learn(subject, codes, cycle, seed=seed).curator.handed[-1] for seed in (1, 2)]
    _both(subject, releases, cycle, "a cycle")


def _both(subject: LearnerSubject, releases: Sequence[NoisyTables], structure: Structure, where: str) -> None:
    """Fit both releases in one loop, each from nothing and from the fit to the other one."""
    try:
        learned = [replayed(subject.component, one, structure) for one in releases]
    except BudgetError:  # it takes rounds or several, which no finished release can be
        return
    assert isinstance(subject.component, Fitter)
    loop = subject.component.fitter(JunctionTree())
    first = loop(releases[0], structure, None)
    _agree(first, learned[0], structure, f"{where}, from nothing")
    _agree(loop(releases[1], structure, first), learned[1], structure, f"{where}, from the fit to another release")


def _agree(fit: Fit, learned: Fit, structure: Structure, where: str) -> None:
    require(isinstance(fit, Fit), f"{where}: a fitter returned {type(fit).__name__}, not a Fit")
    require(fit.model.structure == structure, f"{where}: the model is not over the structure asked for")
    off = max(
        float(np.abs(fit.model.marginal(one) - learned.model.marginal(one)).max())
        for one in (("a", "b"), ("b", "c"), *learned.model.structure.cliques)
    )
    require(off <= 0.005, f"{where}: a marginal is {off:.3g} from that of `learn`")


# --- Directed graphs ------------------------------------------------------------------------------


@CHECKS.add(needs="directed")
def a_network_comes_out(subject: LearnerSubject) -> None:
    """The model is a Bayesian network over its graph: its potentials are the logarithms of conditional tables."""
    networks = awkward_networks()
    for name in ("two parents", "against the domain's order", "a parent of one label"):
        structure = networks[name]
        codes = all_records(structure)[np.random.default_rng(1).integers(0, structure.domain.cells, 300)]
        for sunk in (False, True):
            where = f"{name}, all counts negative" if sunk else name
            model = learn(subject, codes, structure, sunk=sunk).fit.model
            try:
                found, _ = network_of(model)
            except StructureError as error:
                require(False, f"{where}: {error}")
                raise
            require(
                found == Dag.of(structure), f"{where}: the network is over {found.parents}, not over what was given"
            )


@CHECKS.add(needs="directed")
def what_is_no_graph_is_refused_unpaid(subject: LearnerSubject) -> None:
    """A chain of cliques, a cycle and tied cliques are refused with StructureError by `check`, and by `learn` before it
    asks for a release."""
    structures = awkward_structures()
    for name, structure in {"chain": CHAIN, "cycle": structures["cycle"], "tied": structures["tied"]}.items():
        _refused(subject, name, structure)


def _refused(subject: LearnerSubject, name: str, structure: Structure) -> None:
    try:
        subject.component.check(structure, JunctionTree())
    except StructureError:
        pass
    else:
        require(False, f"{name}: it takes directed graphs alone, and `check` lets this pass, which is none")
    for kind in ("pure", "approx"):
        guarded = GuardedCurator(
            live_curator(TrappedRecords(np.zeros((9, len(structure.domain)), np.int64)), structure, kind)
        )
        try:
            subject.component.learn(guarded, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
        except (StructureError, BudgetError):
            require(not guarded.handed, f"{name}: it is no directed graph, and `learn` refuses that after a release")
        else:
            require(False, f"{name}: `check` refuses it, and `learn` makes a model over it")


# --- Restricted structures and contrasts ----------------------------------------------------------

# Records of a population, the one product of attributes that it has, and how far a model's may be off.
_PRODUCT, _OFF = 0.6, 0.1


@CHECKS.add(needs="restricted")
def what_it_does_not_take_is_refused_unpaid(subject: LearnerSubject) -> None:
    """Of cliques of three, tied ones, attributes alone, one label or three, what `check` refuses with StructureError
    `learn` refuses so before it asks for a release."""
    structures = {name: SHAPES[name] for name in sorted(subject.refused)}
    if subject.binary:
        structures["three labels"] = CHAIN
    for name, structure in structures.items():
        for kind in ("pure", "approx"):
            records = TrappedRecords(np.zeros((9, len(structure.domain)), np.int64))
            guarded = GuardedCurator(live_curator(records, structure, kind))
            try:
                subject.component.learn(guarded, JunctionTree(), randomness=SeededRandomness(1), progress=silent)
            except (StructureError, BudgetError):
                require(not guarded.handed, f"{name}: `check` refuses it, and `learn` after a release is paid for")
            else:
                require(False, f"{name}: `check` refuses it, and `learn` makes a model over it")


@CHECKS.add(needs="contrasts")
def contrasts_are_learned(subject: LearnerSubject) -> None:
    """From contrasts at epsilon = 10, of 4,000 records in which the product of one attribute, of two, or of three
    (where it takes such a clique) has mean 0.6 and all others 0, the model has these means, to 0.1."""
    component: Any = subject.component
    require(component.takes_contrasts is True, "takes_contrasts must be True; a learner that takes none leaves it out")
    roomy = "a clique of three" not in subject.refused
    structure = SHAPES["a clique of three"] if roomy else BINARY_CHAIN
    names = structure.domain.names
    for held in (names[:1], names[:2], *([names] if roomy else [])):
        curator = LiveCurator(
            TrappedRecords(_with_product(structure, held), rows=_RECORDS),
            structure,
            ReferenceLaplace(),
            terms=Terms(neighbours="add-remove", total=float(_RECORDS)),
            budget=Budget.pure(10),
            randomness=SeededRandomness(1),
        )
        fit = replayed(component, curator.release(split="contrasts"), structure)
        model = fit.model.using("junction-tree", unmeasured="uniform")
        for product in (names[:1], names[:2], names[1:], *([names] if roomy else [])):
            expected = _PRODUCT if product == held else 0.0
            found = _mean(model.marginal(product))
            require(
                abs(found - expected) <= _OFF,
                f"where the product of {' x '.join(held)} has mean {_PRODUCT} and no other has, the model's of "
                f"{' x '.join(product)} is {found:.3f}",
            )


def _with_product(structure: Structure, held: tuple[str, ...]) -> IntArray:
    """Codes in which the product of +1 and -1 over these attributes alone has a mean other than 0."""
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 2, (_RECORDS, len(structure.domain)))
    places = [structure.domain.names.index(name) for name in held]
    odd = generator.random(_RECORDS) >= (1 + _PRODUCT) / 2
    codes[:, places[-1]] = (codes[:, places[:-1]].sum(axis=1) + odd) % 2
    return codes


def _mean(table: FloatArray) -> float:
    """Of the product of +1 and -1 over a table's attributes."""
    signs = np.indices(table.shape).sum(axis=0) % 2
    return float(((1 - 2 * signs) * table).sum())


# --- Numbers of records, noise and convergence ----------------------------------------------------


@CHECKS.add()
def many_records_are_followed(subject: LearnerSubject) -> None:
    """From 100,000 records, where noise is next to nothing, every clique's marginal is the true one to 0.03, tied
    cliques included. Cannot show: how strongly few records should be smoothed."""
    # At this seed the marginals of an independent model are off by 0.1 and more.
    tied = subject.in_domain(awkward_structures()["tied"])
    cases = {name: truth(one, seed=5) for name, one in (("chain", subject.chain), ("tied", tied))}
    if subject.directed:
        cases["two parents"] = _network(awkward_networks()["two parents"])
    for name, theta in cases.items():
        codes = draw(theta, 100_000, 1)
        try:
            run = learn(subject, codes, theta.structure, source=TrappedRecords(codes, rows=len(codes)))
        except Unserved:
            continue
        model = run.fit.model
        found = incidence(theta.structure) @ record_probabilities(model.potentials, model.latent)
        off = float(np.abs(found - enumerated(theta).marginals.values).max())
        require(off <= 0.03, f"{name}: with 100,000 records a marginal is {off:.3g} from the truth")


def _network(structure: Structure) -> Tables:
    """Log-potentials of a network over the directed graph that is far from uniform."""
    return project(Model(structure, truth(structure, seed=5)), Dag.of(structure)).potentials


@CHECKS.add()
def quiet_tables_count_for_more(subject: LearnerSubject) -> None:
    """Where two tables contradict each other the model lies nearer to the one with a tenth of the other's noise,
    whichever it is. Cannot show: learners that choose the noise or take rounds."""
    for quiet in (0, 1):
        release = torn(quiet)
        if subject.directed:
            release = torn(quiet, measured=_asked(subject, release.structure))
        try:
            fit = replayed(subject.component, release, subject.served(release.structure))
        except BudgetError:  # it takes rounds or several, which no finished release can be
            return
        share = float(fit.model.marginal(("b",))[0])
        nearer = share > 0.51 if quiet == 0 else share < 0.49
        require(
            nearer,
            f"P(b = 0) is {0.8 - 0.6 * quiet:.1f} in the table with little noise, {0.2 + 0.6 * quiet:.1f} in the one "
            f"with ten times as much, and {share:.4f} in the model",
        )


@CHECKS.add()
def what_it_foresees_it_measures(subject: LearnerSubject) -> None:
    """A learner with `MeasuresOtherTables` releases the tables it states, once, each with the noise of the split it
    states."""
    if not isinstance(subject.component, MeasuresOtherTables):
        return
    for name in ("nested", "cycle"):
        structure = subject.served(awkward_structures()[name])
        stated, split = planned_tables(subject.component, structure)
        if stated is None:  # its options make it ask for other than one release
            return
        guarded = learn(subject, np.zeros((50, len(structure.domain)), dtype=np.int64), structure).curator
        require(len(guarded.handed) == 1, f"{name}: it foresees one release, and asked for {len(guarded.handed)}")
        mechanism: Mechanism = ReferenceLaplace() if guarded.budget.kind == "pure" else ReferenceGaussian()
        planned = measure(mechanism, stated, guarded.terms, guarded.budget, split or "even")
        stated_noise, noise = (
            {frozenset(clique): float(value) for clique, value in zip(one.structure.cliques, variances, strict=True)}
            for one, variances in ((planned, planned.variances), (guarded.handed[0], guarded.handed[0].variances))
        )
        require(
            stated_noise.keys() == noise.keys(),
            f"{name}: it foresees {len(stated_noise)} tables and measures {len(noise)}, others",
        )
        near = all(abs(stated_noise[clique] - noise[clique]) <= 1e-6 * noise[clique] for clique in stated_noise)
        require(near, f"{name}: the noise of its tables is not that of the split {split!r} which it foresees")


def _asked(subject: LearnerSubject, structure: Structure) -> Structure:
    """The tables that it measures for a model over the structure."""
    return (
        learn(subject, np.zeros((100, len(structure.domain)), dtype=np.int64), structure).curator.handed[-1].structure
    )


@CHECKS.add()
def what_never_settled_is_not_converged(subject: LearnerSubject) -> None:
    """With an engine whose answers never converge, and differ each time, it fails with an error of dpgm or says
    converged = false, unless it asks no engine."""
    generator = np.random.default_rng(1)

    def unsettled(engine: Engine, potentials: Tables, total: float) -> Beliefs:
        """That of other potentials near by, which says that it did not converge."""
        shift = generator.normal(scale=0.3, size=potentials.structure.cells)
        beliefs = engine.infer(potentials.like(potentials.values + shift), total=total)
        return attrs.evolve(beliefs, converged=False, iterations=1000)

    restless = SpoiledInference(answer=unsettled, exact=False)
    try:
        fit = learn(subject, draw(truth(subject.chain), 500, 1), inference=restless).fit
    except DpgmError:
        return
    settled = not fit.converged or not restless.asked
    require(settled, "no answer of its engine had converged, and it says that it did")
