"""Checks of every learner: records seen through the curator only, budget spent, bad luck survived, better fits with
more records. Noise is the reference noise; the reference answers come from enumeration."""

from __future__ import annotations

import gc
import math
import random
import weakref
from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from attrs import evolve, frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.files import plain
from dpgm_core._util.randomness import SeededRandomness
from dpgm_core.components.options import with_options
from dpgm_core.errors import DpgmError, TooLarge
from dpgm_core.inference.contract import Beliefs, Engine, Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.inference.loopy.bp import LoopyBP
from dpgm_core.learning.bootstrap import Simulator
from dpgm_core.learning.contract import Fit, Refits, Refitter
from dpgm_core.models.model import Model
from dpgm_core.privacy.budget import Budget
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables
from dpgm_testing.cases import awkward_networks
from dpgm_testing.check import Checklist, Unserved, fast_collections, require
from dpgm_testing.checks import learner_contracts
from dpgm_testing.checks.unusual import LEARNER
from dpgm_testing.curators import TrappedRecords
from dpgm_testing.learning import SpoiledInference, clique_marginals, draw, learn, record_probabilities, replayed, truth
from dpgm_testing.oracles import all_records, enumerated, incidence
from dpgm_testing.strategies import awkward_structures
from dpgm_testing.subjects import LearnerSubject

__all__ = ["CHECKS"]

CHECKS = Checklist("learner")


def _usable(fit: Fit, structure: Structure, where: str) -> None:
    values = fit.model.potentials.values
    require(not np.isnan(values).any() and not np.isposinf(values).any(), f"{where}: a log-potential is NaN or +inf")
    require(fit.model.domain == structure.domain, f"{where}: the model is over another domain")
    # a learner may measure less than it was given to model, and have been given an engine that answers nothing
    model = fit.model.using("junction-tree", unmeasured="uniform")
    for clique in filter(None, structure.cliques):
        table = model.marginal(clique)
        good = bool((table >= 0).all()) and abs(float(table.sum()) - 1) < 1e-6
        require(good, f"{where}: the marginal of {clique} is no distribution")


def _kl(truth: Tables, fit: Fit) -> float:
    """KL(true || learned), nats, summed over every record."""
    p, q = enumerated(truth).probabilities, record_probabilities(fit.model.potentials, fit.model.latent)
    with np.errstate(divide="ignore"):
        return float(np.sum(p * (np.log(p) - np.log(q))))


@CHECKS.add()
def records_only_through_the_curator(subject: LearnerSubject) -> None:
    """It touches nothing of the curator but its protocol, and booby-trapped records are read by the curator alone.
    Cannot show: a learner that looks for records elsewhere in the process."""
    records = TrappedRecords(draw(truth(subject.chain), 500, 1))
    run = learn(subject, records.codes, source=records)
    require(
        not run.curator.touched, f"it reached for {', '.join(run.curator.touched)} of the curator, beyond the protocol"
    )
    require(not records.trespassers, f"the records were read by {', '.join(records.trespassers)}, not by the curator")


@CHECKS.add()
def records_are_not_kept(subject: LearnerSubject) -> None:
    """After learning neither the learner nor the fit refers to the curator or the records. Cannot show: copies."""
    with fast_collections():
        records = TrappedRecords(draw(truth(subject.chain), 500, 1))
        run = learn(subject, records.codes, source=records)
        fit, alive = run.fit, weakref.ref(records)
        del run, records
        gc.collect()
    require(alive() is None, "the records are still held when `learn` has returned and the curator is gone")
    del fit


@CHECKS.add()
def cost_is_the_curators(subject: LearnerSubject) -> None:
    """Model and fit cost what the curator charged: a learner states no releases of its own, or all that it received,
    unaltered and in their order."""
    run = learn(subject, draw(truth(subject.chain), 500, 1))
    require(run.curator.handed, "it asked the curator for nothing, so the model cannot be about the records")
    handed = run.curator.released
    for whose, stated in (("model", run.fit.model.releases), ("fit", run.fit.releases)):
        if not stated:
            continue
        claimed, charged = (Budget.sum(one.cost for one in some) for some in (stated, handed))
        require(
            claimed == charged and len(stated) == len(handed),
            f"the {whose} states {len(stated)} release(s) at {claimed}, but {len(handed)} at {charged} were handed out",
        )
        require(
            all(one is other for one, other in zip(stated, handed, strict=True)),
            f"a release that the {whose} states is not the one that the curator handed out in its place",
        )


@CHECKS.add()
def spends_what_it_is_given(subject: LearnerSubject) -> None:
    """It never asks for more than remains, and leaves less than a thousandth of the budget unspent."""
    run = learn(subject, draw(truth(subject.chain), 500, 1))
    budget, remaining = run.curator.budget, run.curator.remaining
    left = max(
        float(getattr(remaining, part) / getattr(budget, part)) for part in ("epsilon", "rho") if getattr(budget, part)
    )
    require(left <= 1e-3, f"{left:.1%} of the budget is left")


@CHECKS.add()
def fit_is_usable(subject: LearnerSubject) -> None:
    """The model has finite potentials (or -inf), its marginals are distributions, and convergence, trace, certificate
    and notes are what the contract says."""
    fit = learn(subject, draw(truth(subject.chain), 500, 1)).fit
    _usable(fit, subject.chain, "chain of three")
    require(isinstance(fit.converged, bool), "Fit.converged must be true or false")
    numbers = [value for row in fit.trace for value in row.values()] + list(fit.certificate.values())
    require(all(isinstance(value, (int, float)) for value in numbers), "trace and certificate must hold numbers")
    require(all(isinstance(note, str) for note in fit.notes), "notes must be sentences")


@CHECKS.add()
def tuning_makes_the_same_choices(subject: LearnerSubject) -> None:
    """Fit.tuning is plain values that the learner takes as options, and with them it learns the same model from the
    same release, to a tenth of its sampling error."""
    run = learn(subject, draw(truth(subject.chain), 500, 1))
    fit, releases = run.fit, run.curator.released
    if any(one.round is not None for one in releases):  # learned from more releases than are left
        return
    require(plain(fit.tuning) == dict(fit.tuning), f"tuning has no form in a file: {dict(fit.tuning)!r}")
    tuned = with_options(subject.component, fit.tuning, what="the learner, tuned as Fit.tuning says,")
    again = replayed(tuned, releases, _given(subject, fit))
    moved = float(np.abs(clique_marginals(again.model.potentials) - clique_marginals(fit.model.potentials)).max())
    require(moved < 2e-3, f"with its tuning fixed it learns another model: a marginal moves by {moved:.2g}")


@CHECKS.add()
def refits_agree_with_learning(subject: LearnerSubject) -> None:
    """A refitter, tuned as Fit.tuning says, moves from the model to a simulated release as `learn` does: over eight
    releases, refitted together where it says `Refits`, the difference is less than a quarter of the way. Cannot show:
    releases unlike the model's, and learners that take several."""
    if not isinstance(subject.component, Refitter):
        return
    run = learn(subject, draw(truth(subject.chain), 500, 1))
    if len(run.curator.released) > 1:  # which no refitter is given (see `bootstrap`)
        return
    model, released = run.fit.model, run.curator.released
    fit = evolve(run.fit, model=Model(model.structure, model.potentials, releases=released, latent=model.latent))
    tuned = with_options(subject.component, fit.tuning, what="the learner, tuned as Fit.tuning says,")
    inference = JunctionTree()
    refit = tuned.refitter(fit.model, inference)
    simulator = Simulator(run.curator.released[-1], inference.compile(fit.model.structure), fit.model.potentials)
    randomness, start = SeededRandomness(1), _answers(subject, model.latent, model.potentials)
    between = way = 0.0
    releases = [simulator.draw(randomness) for _ in range(8)]
    refits = refit.many(releases) if isinstance(refit, Refits) else [refit(release) for release in releases]
    require(len(refits) == 8, f"8 releases refitted together gave {len(refits)}")
    for release, potentials in zip(releases, refits, strict=True):
        require(potentials.structure == fit.model.structure, "a refit is not over the model's structure")
        again = replayed(tuned, [release], _given(subject, fit)).model
        learned = _answers(subject, again.latent, again.potentials)
        between += float(np.sum((_answers(subject, model.latent, potentials) - learned) ** 2))
        way += float(np.sum((learned - start) ** 2))
    require(between < way / 16, f"refits are {math.sqrt(between / way):.2g} of the way from what `learn` finds")


def _given(subject: LearnerSubject, fit: Fit) -> Structure:
    """The structure that the learner was given: its model's own, but for latent classes."""
    return subject.served(subject.chain) if fit.model.latent else fit.model.structure


def _answers(subject: LearnerSubject, latent: Sequence[str], potentials: Tables) -> FloatArray:
    """Marginals of the cliques; those of the chain where the model's have a class, which has no name of its own."""
    if not latent:
        return clique_marginals(potentials)
    return np.asarray(incidence(subject.chain) @ record_probabilities(potentials, latent))


@CHECKS.add()
def deterministic_under_a_seed(subject: LearnerSubject) -> None:
    """The same release and SeededRandomness give the same potentials; the global random state is neither read nor
    moved. Cannot show: other machines or library versions."""
    codes = draw(truth(subject.chain), 500, 1)
    found = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the global state is what is watched
        before = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
        found.append(learn(subject, codes).fit.model.potentials.values)
        after = repr((random.getstate(), np.random.get_state()))  # noqa: NPY002
        require(before == after, "learning moves a global random state")
    require(np.array_equal(found[0], found[1]), "the same release and seed give another model")


@CHECKS.add()
def fits_are_independent(subject: LearnerSubject) -> None:
    """Learning from other records in between changes nothing. Cannot show: state on disk."""
    one, two = draw(truth(subject.chain), 500, 1), draw(truth(subject.chain, seed=8), 500, 2)
    first = learn(subject, one).fit.model.potentials.values
    second = learn(subject, two).fit.model.potentials.values
    again = learn(subject, one).fit.model.potentials.values
    require(np.array_equal(first, again), "another fit in between changed the model")
    require(not np.array_equal(first, second), "other records give exactly the same model")


@CHECKS.add()
def survives_negative_counts(subject: LearnerSubject) -> None:
    """Noisy tables with every cell far below zero give a usable model."""
    _usable(learn(subject, draw(truth(subject.chain), 50, 1), sunk=True).fit, subject.chain, "all counts negative")


@CHECKS.add()
def survives_empty_data(subject: LearnerSubject) -> None:
    """No record at all gives a usable model."""
    _usable(learn(subject, np.zeros((0, 3), dtype=np.int64)).fit, subject.chain, "no records")


@CHECKS.add()
def survives_awkward_structures(subject: LearnerSubject) -> None:
    """`check` and `learn` take one attribute, one label, cycles, nested, disconnected and tied cliques and the empty
    clique; directed forms where directed graphs alone are taken. Cannot show: large structures, and shapes that `check`
    refuses everywhere."""
    for name, structure in {**awkward_structures(), **(awkward_networks() if subject.directed else {})}.items():
        structure = subject.in_domain(structure)
        codes = all_records(structure)[np.random.default_rng(1).integers(0, structure.domain.cells, 300)]
        try:
            subject.component.check(subject.served(structure), JunctionTree())
            fit = learn(subject, codes, structure).fit
        except Unserved:
            continue
        except DpgmError as error:
            require(False, f"{name}: {type(error).__name__}: {error}")
            raise
        _usable(fit, structure, name)


@CHECKS.add()
def improves_with_more_records(subject: LearnerSubject) -> None:
    """With a hundred times the records at the same epsilon the mean Kullback-Leibler divergence from the truth falls to
    less than half, and below half of the uniform model's."""
    theta = truth(subject.chain)

    def mean(count: int) -> float:
        seeds = range(10, 13)
        return float(np.mean([_kl(theta, learn(subject, draw(theta, count, s), seed=s).fit) for s in seeds]))

    few, many = mean(200), mean(20_000)
    p = enumerated(theta).probabilities
    uniform = float(np.sum(p * np.log(p * len(p))))
    require(many < few / 2, f"KL is {few:.4g} with 200 records and {many:.4g} with 20,000")
    require(many < uniform / 2, f"KL is {many:.4g} with 20,000 records; the uniform model has {uniform:.4g}")


@CHECKS.add()
def engines_can_be_swapped(subject: LearnerSubject) -> None:
    """On a chain, where loopy belief propagation is exact, it serves as well as the junction tree; on a cycle it gives
    a usable model."""
    theta = truth(subject.chain)
    codes = draw(theta, 5000, 1)
    exact, loopy = (_kl(theta, learn(subject, codes, inference=one).fit) for one in (JunctionTree(), LoopyBP()))
    require(abs(exact - loopy) <= 0.01 + 0.1 * exact, f"KL is {exact:.4g} by junction tree, {loopy:.4g} by loopy-bp")
    cycle = subject.in_domain(awkward_structures()["cycle"])
    records = all_records(cycle)[np.random.default_rng(1).integers(0, cycle.domain.cells, 300)]
    _usable(learn(subject, records, cycle, inference=LoopyBP()).fit, cycle, "loopy-bp on a cycle")


@frozen(kw_only=True)
class _Cramped:
    """An inference that no structure fits."""

    max_order: ClassVar[None] = None

    def compile(self, structure: Structure) -> Engine:
        raise TooLarge(f"{structure} does not fit here; use another engine")


@CHECKS.add()
def what_is_too_large_is_refused_by_check(subject: LearnerSubject) -> None:
    """`check` refuses what the engine cannot hold before anything is charged; what it lets pass is learned."""
    chain = subject.served(subject.chain)
    try:
        subject.component.check(chain, JunctionTree())
    except DpgmError as error:
        require(False, f"check refuses a chain of three: {error}")
    cramped: Inference = _Cramped()
    try:
        subject.component.check(chain, cramped)
    except TooLarge:
        return
    try:
        fit = learn(subject, draw(truth(subject.chain), 500, 1), inference=cramped).fit
    except TooLarge:
        require(False, "the engine cannot hold the structure; check lets it pass, and learn fails on it")
        raise
    _usable(fit, subject.chain, "no engine")


def _poisoned(engine: Engine, potentials: Tables, total: float) -> Beliefs:
    """An answer of which every marginal is NaN."""
    beliefs = engine.infer(potentials, total=total)
    return attrs.evolve(beliefs, marginals=beliefs.marginals * math.nan, log_partition=math.nan)


@CHECKS.add()
def nan_is_not_swallowed(subject: LearnerSubject) -> None:
    """An engine that answers NaN makes learning fail with an error of dpgm, unless it asks no engine."""
    poisoned = SpoiledInference(answer=_poisoned)
    with np.errstate(all="ignore"):
        try:
            fit = learn(subject, draw(truth(subject.chain), 500, 1), inference=poisoned).fit
        except DpgmError:
            return
    require(not poisoned.asked, "the engine answered NaN, and a model came out")
    _usable(fit, subject.chain, "no engine")


CHECKS += learner_contracts.CHECKS
CHECKS += LEARNER
