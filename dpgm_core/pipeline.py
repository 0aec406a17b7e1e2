"""The whole way in one place: records -> counts -> noise -> learning -> model. The file to read first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from dpgm_core.blas import one_thread
from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM
from dpgm_core.components.registry import make
from dpgm_core.curator.discovery import Found, find_labels
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.domain import Domain
from dpgm_core.errors import DpgmError, LearningFailed, OptionError
from dpgm_core.foresight.verbs import check, check_tables, chooser_of, session_mechanism
from dpgm_core.inference.constraining import check_constraints
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.contract import Fit, Learner
from dpgm_core.learning.judgement import judged
from dpgm_core.learning.resources import check_resources
from dpgm_core.learning.run import run
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.noise.bisection import check_determined
from dpgm_core.noise.check import Split
from dpgm_core.noise.contract import Mechanism
from dpgm_core.noise.labels import with_placeholders
from dpgm_core.noise.measurement import check_structure
from dpgm_core.privacy.amounts import Amount, amount
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import Progress, checked_progress, silent
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.selection.asked import attributes_alone, selector_of, share_only, workload_of
from dpgm_core.selection.contract import Selection, Selector
from dpgm_core.selection.run import chosen_fit, select_structure
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import AnySource
from dpgm_core.structure import Structure
from dpgm_core.workload import Workload

__all__ = ["fit", "learn", "release", "select"]


@one_thread
def fit(  # noqa: PLR0913 - the verb that has it all
    data: object,
    structure: Structure | str | Mapping[str, Any] | Selector,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    workload: Workload | Domain | None = None,
    terms: Terms | None = None,
    neighbours: Neighbours | str | None = None,
    randomness: Randomness | None = None,
    ledger: Ledger | str | Path | None = None,
    save_release: str | Path | None = None,
    progress: Progress = silent,
    split: Split | str | Mapping[str, Any] = "even",
    labels_from: str | Path | None = None,
) -> Fit:
    """Learn a private model from records: release noisy tables once, then learn from them.

    data: a path (CSV, Parquet, Arrow IPC), a table as in a spec file, {"source": "csv", "path": ..., option: ...}, a
    data frame or any object with `__arrow_c_stream__`, integer code arrays, or a Source. structure: cliques to measure
    and model; or a selector that chooses them privately within the budget: its name ("auto"), a table with its options,
    or an object; see `select`. budget: spent in full. mechanism, learner, inference: names, tables with options, or
    objects. workload: for a selector, what the model is wanted for; a Domain is short for `Workload.default` of it.
    terms: what is protected and how (see `Terms`); neighbours: short for terms that state only the relation,
    "add-remove" or "replace-one", in persons. One of the two; no default. randomness: None takes the operating
    system's; SeededRandomness is for simulations and is stamped. ledger: a Ledger or its path, charged before any noise
    is drawn. save_release: file for the release, written before learning. progress: told the step, how far it is and of
    how much; says nothing while records are counted. split: how the budget is divided over tables,
    "even" or "optimal" (see `optimal_split`), or "contrasts": of binary attributes one noisy sum of products for each
    set inside a clique is measured in place of tables; "sharper": the one of "contrasts" and "even" that tells the
    cliques' products better. With {"tables": "even", "holdout": 0.05} a share is set aside for noisy tables of random
    pairs, which tell what the structure misses (see `Model.structure_error`).

    Where the domain leaves labels to be found privately, they are found first, for a share of the (epsilon, delta) in a
    charge of its own, and saved beside the release (`dpgm_core.releases.discovery.labels_file`). labels_from: such a
    file of a run that ended after that; its labels are taken as they are, and their cost is a part of the budget.

    Everything that can be refused is refused before anything is charged. A learner that fails afterwards raises
    LearningFailed: the paid release is in `save_release` and in the error's `releases`.

    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    >>> done = fit(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    >>> done.model.marginal("a").round(1).tolist(), done.release.private
    ([0.5, 0.5], False)
    """
    made: Learner = make("learner", learner)
    engine: Inference = make("inference", inference)
    stated = Terms.stated(terms, neighbours)
    if isinstance(structure, Structure) and workload is not None:
        raise OptionError("a workload was given with named cliques; it says what a selector may choose; leave it out")
    if not isinstance(structure, Structure):
        structure = selector_of(structure)
    wanted = structure if isinstance(structure, Structure) else workload_of(workload)
    means = _Means(as_source(data), stated, randomness, _opened(ledger), save_release, checked_progress(progress))
    wished = None if isinstance(structure, Structure) else workload
    check_constraints(wanted.domain, engine, JunctionTree())
    asked: dict[str, Any] = {"terms": stated, "randomness": randomness, "split": split, "workload": wished}
    found = means.found(
        wanted.domain,
        budget,
        labels_from,
        refuse=lambda: check(data, structure, budget, mechanism, made, engine, **asked),
    )
    more: dict[str, Any] = {"randomness": randomness, "progress": progress}
    with found.attach_labels_to_errors():
        if isinstance(structure, Structure) and found.discovery is not None:
            structure = structure.over(found.domain)
        if not isinstance(structure, Structure) or structure.domain.undetermined:
            over = None if isinstance(wanted, Structure) else found.over(wanted)
            selector, over, share = chooser_of(structure, found.budget, mechanism, split, made, engine, stated, over)
            curator = means.session(over, found)
            noisy, selection = select_structure(selector, curator, over, made, engine, share=share, **more)
            return judged(chosen_fit(noisy, selection, selector, made, engine, **more), engine)
        made.check(structure, engine)  # what it cannot learn is refused before anything is charged
        check_resources(made, structure, engine)
        curator = means.curator(structure, make("mechanism", mechanism), found, split)
        if means.ledger is not None:
            # of several releases the first would be paid for where the ledger lacks the rest
            means.ledger.check(found.budget)
        return judged(run(made, curator, engine, **more), engine)


@one_thread
def select(  # noqa: PLR0913 - and without the learning
    data: object,
    selector: str | Mapping[str, Any] | Selector,
    budget: Budget,
    workload: Workload | Domain,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms,
    randomness: Randomness | None = None,
    ledger: Ledger | str | Path | None = None,
    save_release: str | Path | None = None,
    progress: Progress = silent,
    split: Split | str | Mapping[str, Any] = "even",
    labels_from: str | Path | None = None,
) -> tuple[NoisyTables, Selection]:
    """Only the choice of a structure, and what was measured on the way; `learn` makes a model of the release, free.

    learner: whom the selector asks for models on the way. split: "even", or a share for a holdout. Other
    arguments as in `fit`. The file of `save_release` is written anew after each step, so that a run that is killed
    loses no noise that was paid for.
    """
    chooser, wanted = selector_of(selector), workload_of(workload)
    made: Learner = make("learner", learner)
    engine: Inference = make("inference", inference)
    share = share_only(split, MECHANISM, budget)
    means = _Means(as_source(data), terms, randomness, _opened(ledger), save_release, checked_progress(progress))
    check_constraints(wanted.domain, engine, JunctionTree())
    asked: dict[str, Any] = {"terms": terms, "randomness": randomness, "split": split, "workload": wanted}
    found = means.found(
        wanted.domain,
        budget,
        labels_from,
        refuse=lambda: check(data, chooser, budget, MECHANISM, made, engine, **asked),
    )
    more: dict[str, Any] = {"randomness": randomness, "progress": progress}
    with found.attach_labels_to_errors():
        over = found.over(wanted)
        return select_structure(chooser, means.session(over, found), over, made, engine, share=share, **more)


@one_thread
def release(
    data: object,
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    *,
    terms: Terms | None = None,
    neighbours: Neighbours | str | None = None,
    randomness: Randomness | None = None,
    ledger: Ledger | str | Path | None = None,
    save_release: str | Path | None = None,
    progress: Progress = silent,
    split: Split | str | Mapping[str, Any] = "even",
    labels_from: str | Path | None = None,
) -> NoisyTables:
    """Only the release: noisy tables of the structure's cliques, for `learn` now or later. Arguments as in `fit`.

    Where it is paid for but cannot be saved, LearningFailed holds it. A holdout is part of a fit: OptionError.
    """
    if Split.of(split).holdout:
        raise OptionError("a release was asked to set a share aside for a holdout, which is part of a fit")
    check_structure(structure)
    check_determined(with_placeholders(structure.domain))
    check_constraints(structure.domain, None, JunctionTree())
    noise: Mechanism = make("mechanism", mechanism)
    stated = Terms.stated(terms, neighbours)
    means = _Means(as_source(data), stated, randomness, _opened(ledger), save_release, checked_progress(progress))
    found = means.found(
        structure.domain,
        budget,
        labels_from,
        refuse=lambda: check_tables(means.source, structure, noise, budget, stated, randomness, split),
    )
    with found.attach_labels_to_errors():
        over = structure if found.discovery is None else structure.over(found.domain)
        curator = means.curator(over, noise, found, split)
        try:
            curator.release()
        except DpgmError as error:
            if not curator.released:
                raise
            raise LearningFailed(
                f"the release is paid for but not saved: {error}", releases=curator.released
            ) from error
        return curator.released[-1]


@one_thread
def learn(
    release: NoisyTables | Sequence[NoisyTables],
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    structure: Structure | None = None,
    randomness: Randomness | None = None,
    progress: Progress = silent,
    conversion_delta: Amount | None = None,
) -> Fit:
    """Learn a model from a release, or from several in the order they were made; free in privacy, as often as wanted.

    release: several about the same people, under the same terms. A learner that asks for each gets each, as it was
    made; one that asks for a single release gets them as one: every table once, the mean over its releases weighted by
    how little noise they have. That of a holdout is kept with the model and not learned from. structure: the
    model's cliques, each measured clique inside one of them; when None the first release's own, with what the others
    measured outside of it. conversion_delta: where the releases cost different kinds of budget, the delta at which the
    zCDP part is converted. learner, inference, randomness, progress: as in `fit`.

    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    >>> parts = [release(codes, structure, Budget.pure(1), neighbours="add-remove") for _ in range(2)]
    >>> done = learn(parts)
    >>> print(len(done.releases), done.model.cost)
    2 epsilon = 2
    """
    releases = [release] if isinstance(release, NoisyTables) else release
    if not isinstance(releases, Sequence) or not all(isinstance(one, NoisyTables) for one in releases):
        raise OptionError(
            f"learn takes a release (NoisyTables) or several, got {type(release).__name__}; see load_release(path)"
        )
    delta = None if conversion_delta is None else amount("conversion_delta", conversion_delta)
    curator = ReplayCurator(releases, structure, conversion_delta=delta)
    made: Learner = make("learner", learner)
    engine: Inference = make("inference", inference)
    check_constraints(curator.structure.domain, engine, JunctionTree())
    return judged(run(made, curator, engine, randomness=randomness, progress=progress), engine)


@frozen
class _Means:
    """What every verb that spends is given: the records, what is protected, and where charge and release are kept."""

    source: AnySource
    terms: Terms
    randomness: Randomness | None
    ledger: Ledger | None
    save_release: str | Path | None
    progress: Progress

    def found(
        self, domain: Domain, budget: Budget, labels_from: str | Path | None, refuse: Callable[[], None]
    ) -> Found:
        """The domain with the labels of its open columns; refuse: what refuses the rest of the run, called first."""
        self.progress("checking", 0, 1)
        return find_labels(
            self.source,
            domain,
            budget,
            terms=self.terms,
            check=refuse,
            randomness=self.randomness,
            ledger=self.ledger,
            save_release=self.save_release,
            labels_from=labels_from,
            progress=self.progress,
        )

    def curator(
        self, structure: Structure, mechanism: Mechanism, found: Found, split: Split | str | Mapping[str, Any] = "even"
    ) -> LiveCurator:
        """The door to the records, for what finding labels has left of the budget; all that can be refused was."""
        self.progress("checking", 1, 1)
        return LiveCurator(
            self.source,
            structure,
            mechanism,
            terms=self.terms,
            budget=found.budget,
            randomness=self.randomness,
            ledger=self.ledger,
            save_to=self.save_release,
            split=split,
            progress=self.progress,
            discovery=found.discovery,
        )

    def session(self, workload: Workload, found: Found) -> LiveCurator:
        """The same for a session: what it is to model is not known yet, so each attribute stands alone."""
        return self.curator(attributes_alone(workload), session_mechanism(found.budget), found)


def _opened(ledger: Ledger | str | Path | None) -> Ledger | None:
    return Ledger.open(ledger) if isinstance(ledger, (str, Path)) else ledger
