"""The whole way in one place: records -> counts -> noise -> learning -> model. The file to read first."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve

from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM
from dpgm_core.components.registry import make
from dpgm_core.counting.statistic import columns_of
from dpgm_core.curator.discovery import check_open, found_first, rest_of
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.curator.shield import shielded
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, DpgmError, LearningFailed, OptionError, TooLarge
from dpgm_core.inference.constraining import check_constraints
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.ahead import first_asked, foreseen
from dpgm_core.learning.contract import Fit, Learner
from dpgm_core.learning.judgement import judged
from dpgm_core.learning.run import check_contrast_learner, run
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.noise.bisection import check_determined
from dpgm_core.noise.check import divided, read_split
from dpgm_core.noise.contract import Mechanism
from dpgm_core.noise.labels import asked_labels, with_placeholders
from dpgm_core.noise.measurement import check_structure, measure
from dpgm_core.noise.split import may_be_contrasts
from dpgm_core.planning import Plan, checked_records, make_plan
from dpgm_core.privacy.amounts import Amount, amount
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.progress import Progress, silent
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.steps import mechanism_of, session_budget
from dpgm_core.selection.asked import attributes_alone, selector_of, share_only, workload_of
from dpgm_core.selection.contract import Selection, SelectionPlan, Selector
from dpgm_core.selection.learners import check_learner
from dpgm_core.selection.named import NamedCliques, check_named, left_for_tables
from dpgm_core.selection.run import chosen_fit, divided_for, foretold, planned, select_structure
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import FileSource, KeyedSource, NamedColumns, Source
from dpgm_core.sources.reading import locate
from dpgm_core.structure import Structure
from dpgm_core.workload import Workload

__all__ = ["check", "fit", "learn", "plan", "plan_selection", "release", "select"]

#: What a plan says of a learner that does not foresee what it measures, by what it asks for first.
_OTHERWISE: Mapping[str | None, str] = {
    "part": "the learner spends a part of the budget on a first look, which says how the rest is divided over tables; "
    "the noise shown is that of one release of all of it",
    "rounds": "the learner takes many releases of subsampled records; the noise shown is that of one release of all",
    "session": "the learner asks more of the records than tables, step by step; the noise shown is that of one release "
    "of all, which it does not take",
}


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
    split: str | Mapping[str, Any] = "even",
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
    is drawn. save_release: file for the release, written before learning. split: how the budget is divided over tables,
    "even" or "optimal" (see `optimal_split`), or "contrasts": of binary attributes one noisy sum of products for each
    set inside a clique is measured in place of tables; "sharper": the one of "contrasts" and "even" that tells the
    cliques' products better. With {"tables": "even", "check": 0.05} a share is set aside for noisy tables of random
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
    opened, wanted = _opened(ledger), structure if isinstance(structure, Structure) else workload_of(workload)
    wished = None if isinstance(structure, Structure) else workload
    check_constraints(wanted.domain, engine, JunctionTree())
    asked: dict[str, Any] = {"terms": stated, "randomness": randomness, "split": split, "workload": wished}
    found = found_first(
        as_source(data),
        wanted.domain,
        budget,
        terms=stated,
        check=lambda: check(data, structure, budget, mechanism, made, engine, **asked),
        randomness=randomness,
        ledger=opened,
        save_release=save_release,
        labels_from=labels_from,
    )
    more: dict[str, Any] = {"randomness": randomness, "progress": progress}
    kept: dict[str, Any] = {"terms": stated, "ledger": opened, "save_to": save_release, "discovery": found.discovery}
    with found.kept():
        if isinstance(structure, Structure) and found.discovery is not None:
            structure = structure.over(found.domain)
        if not isinstance(structure, Structure) or structure.domain.undetermined:
            over = None if isinstance(wanted, Structure) else found.over(wanted)
            selector, over, share = _chooser(structure, found.budget, mechanism, split, made, engine, stated, over)
            curator = _choosing(as_source(data), over, found.budget, **kept, **more)
            noisy, selection = select_structure(selector, curator, over, made, engine, share=share, **more)
            return judged(chosen_fit(noisy, selection, selector, made, engine, **more), engine)
        made.check(structure, engine)  # what it cannot learn is refused before anything is charged
        noise: Mechanism = make("mechanism", mechanism)
        curator = LiveCurator(as_source(data), structure, noise, budget=found.budget, split=split, **kept, **more)
        if opened is not None:
            opened.check(
                found.budget
            )  # of several releases the first would be paid for where the ledger lacks the rest
        return judged(run(made, curator, engine, **more), engine)


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
    split: str | Mapping[str, Any] = "even",
    labels_from: str | Path | None = None,
) -> tuple[NoisyTables, Selection]:
    """Only the choice of a structure, and what was measured on the way; `learn` makes a model of the release, free.

    learner: whom the selector asks for models on the way. split: "even", or a share for a structure check. Other
    arguments as in `fit`. The file of `save_release` is written anew after each step, so that a run that is killed
    loses no noise that was paid for.
    """
    chooser, wanted, made, engine = (
        selector_of(selector),
        workload_of(workload),
        make("learner", learner),
        make("inference", inference),
    )
    share, opened = share_only(split, MECHANISM, budget), _opened(ledger)
    check_constraints(wanted.domain, engine, JunctionTree())
    asked: dict[str, Any] = {"terms": terms, "randomness": randomness, "split": split, "workload": wanted}
    found = found_first(
        as_source(data),
        wanted.domain,
        budget,
        terms=terms,
        check=lambda: check(data, chooser, budget, MECHANISM, made, engine, **asked),
        randomness=randomness,
        ledger=opened,
        save_release=save_release,
        labels_from=labels_from,
    )
    more: dict[str, Any] = {"randomness": randomness, "progress": progress}
    kept: dict[str, Any] = {"terms": terms, "ledger": opened, "save_to": save_release, "discovery": found.discovery}
    with found.kept():
        over = found.over(wanted)
        curator = _choosing(as_source(data), over, found.budget, **kept, **more)
        return select_structure(chooser, curator, over, made, engine, share=share, **more)


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
    split: str | Mapping[str, Any] = "even",
    labels_from: str | Path | None = None,
) -> NoisyTables:
    """Only the release: noisy tables of the structure's cliques, for `learn` now or later. Arguments as in `fit`.

    Where it is paid for but cannot be saved, LearningFailed holds it. A structure check is part of a fit: OptionError.
    """
    if read_split(split)[1]:
        raise OptionError("a release was asked to set a share aside for a structure check, which is part of a fit")
    check_structure(structure)
    check_determined(with_placeholders(structure.domain))
    check_constraints(structure.domain, None, JunctionTree())
    noise: Mechanism = make("mechanism", mechanism)
    source, opened, stated = as_source(data), _opened(ledger), Terms.stated(terms, neighbours)
    found = found_first(
        source,
        structure.domain,
        budget,
        terms=stated,
        check=lambda: _check_tables(source, structure, noise, budget, stated, randomness, split),
        randomness=randomness,
        ledger=opened,
        save_release=save_release,
        labels_from=labels_from,
    )
    with found.kept():
        curator = LiveCurator(
            source,
            structure if found.discovery is None else structure.over(found.domain),
            noise,
            terms=stated,
            budget=found.budget,
            randomness=randomness,
            ledger=opened,
            save_to=save_release,
            split=split,
            progress=progress,
            discovery=found.discovery,
        )
        try:
            curator.release()
        except DpgmError as error:
            if not curator.released:
                raise
            raise LearningFailed(
                f"the release is paid for but not saved: {error}", releases=curator.released
            ) from error
        return curator.released[-1]


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
    how little noise they have. That of a structure check is kept with the model and not learned from. structure: the
    model's cliques, each measured clique inside one of them; when None the first release's own, with what the others
    measured outside of it. conversion_delta: where the releases cost different kinds of budget, the delta at which the
    zCDP part is converted.

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


def plan(
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms | None = None,
    neighbours: Neighbours | str | None = None,
    records: float | None = None,
    split: str | Mapping[str, Any] = "even",
    learner: str | Mapping[str, Any] | Learner | None = None,
) -> Plan:
    """What a release would cost and how accurate it would be, without touching any data (see `dpgm plan`).

    records: a publicly known or guessed number of records, for relative errors. split: as in `fit`. learner: what it
    refuses to learn is refused, and tables and split are those that it says it will measure (see `Foreseen`); where it
    says nothing and does not take one release of all, a note says so. None: the structure's tables, whoever learns.

    >>> from dpgm_core import Budget, Domain, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b"), ("b",)])
    >>> [(one.clique, one.cells) for one in plan(structure, Budget.pure(1), neighbours="add-remove").tables]
    [(('a', 'b'), 6), (('b',), 3)]
    """
    check_structure(structure)
    engine: Inference = make("inference", inference)
    check_constraints(structure.domain, engine, JunctionTree())
    stated = Terms.stated(terms, neighbours)
    asked = asked_labels(structure.domain, budget, stated)
    if asked:
        rest, over = rest_of(budget, asked), structure.over(with_placeholders(structure.domain))
        told = plan(over, rest, mechanism, engine, terms=stated, records=records, split=split, learner=learner)
        cost, notes = told.cost + (budget - rest), [one.note() for one in asked]
        return evolve(told, asked=budget, cost=cost, notes=(*notes, *told.notes))
    if structure.domain.undetermined:
        return _plan_of_bins(structure, budget, mechanism, engine, stated, records, split, learner)
    noise: Mechanism = make("mechanism", mechanism)
    if learner is None:
        return make_plan(structure, budget, noise, engine, terms=stated, records=records, split=split)
    made: Learner = make("learner", learner)
    made.check(structure, engine)
    check_contrast_learner(made, may_be_contrasts(read_split(split)[0]))
    measured, split = _foreseen(made, structure, split)
    price = partial(make_plan, structure, budget, noise, terms=stated, records=records, split=split, measured=measured)
    try:
        done = price(inference=engine)
    except TooLarge:  # of the engine, which the learner's check did not ask
        done = price(inference=None)
    first = first_asked(made, engine, structure, stated, divided(budget, read_split(split)[1])[1])
    otherwise = _OTHERWISE.get(first) if measured is None else None
    return done if otherwise is None else evolve(done, notes=(*done.notes, otherwise))


def plan_selection(
    selector: str | Mapping[str, Any] | Selector,
    budget: Budget,
    workload: Workload | Domain,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms,
    records: float | None = None,
    split: str | Mapping[str, Any] = "even",
) -> SelectionPlan:
    """What a selection would spend and see, without touching any data. Arguments as in `select` and `plan`.

    Raises what `select` would raise of a selector, workload, learner or budget.
    """
    share = share_only(split, MECHANISM, budget)
    made, wanted, stated = selector_of(selector), workload_of(workload), Terms.stated(terms, None)
    check_constraints(wanted.domain, make("inference", inference), JunctionTree())
    asked = asked_labels(wanted.domain, budget, stated)
    if asked:
        rest, over = rest_of(budget, asked), wanted.over(with_placeholders(wanted.domain))
        told = plan_selection(made, rest, over, learner, inference, terms=stated, records=records, split=split)
        costs = {f"labels of {one.column!r}": one.budget for one in asked}
        return evolve(told, shares={**costs, **told.shares}, notes=[*(one.note() for one in asked), *told.notes])
    told = foretold(made, wanted, budget, stated, share, checked_records(records))
    _, left = divided_for(made, budget)
    check_learner(make("learner", learner), make("inference", inference), attributes_alone(wanted), told, stated, left)
    return told


def check(
    data: object,
    structure: Structure | str | Mapping[str, Any] | Selector,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    workload: Workload | Domain | None = None,
    terms: Terms,
    randomness: Randomness | None = None,
    split: str | Mapping[str, Any] = "even",
) -> None:
    """Raise what `fit` with these arguments would raise before it charges; a dry run that reads no record.

    Of the data it looks for the file, and asks the source for batches as a release would but takes none: names and
    types of the columns are found wanting then, in the words of the release.
    """
    made: Learner = make("learner", learner)
    engine: Inference = make("inference", inference)
    source = as_source(data)
    if not isinstance(structure, Structure):
        structure = selector_of(structure)
    wanted = structure if isinstance(structure, Structure) else workload_of(workload)
    asked = asked_labels(wanted.domain, budget, terms)
    if asked:
        check_open(source, asked, randomness)
        held = with_placeholders(wanted.domain)
        shown, goal = (structure, wanted.over(held)) if isinstance(wanted, Workload) else (wanted.over(held), None)
        rest = rest_of(budget, asked)
        more: dict[str, Any] = {"randomness": randomness, "split": split}
        check(source, shown, rest, mechanism, made, engine, workload=goal, terms=terms, **more)
        return
    if isinstance(structure, Structure) and not structure.domain.undetermined:
        check_constraints(structure.domain, engine, JunctionTree())
        made.check(structure, engine)
        noise: Mechanism = make("mechanism", mechanism)
        curator = LiveCurator(source, structure, noise, terms=terms, budget=budget, randomness=randomness, split=split)
        check_contrast_learner(made, curator.contrasts)
        measured, own = _foreseen(made, structure, split)
        measure(noise, measured or structure, terms, curator.budget, read_split(own)[0])
        first_asked(made, engine, structure, terms, curator.budget)
    else:
        selector, wanted, share = _chooser(structure, budget, mechanism, split, made, engine, terms, workload)
        check_constraints(wanted.domain, engine, JunctionTree())
        curator = _choosing(source, wanted, budget, terms=terms, randomness=randomness)
        told = planned(selector, wanted, curator, share)
        if not isinstance(selector, NamedCliques):
            _, left = divided_for(selector, budget)
            check_learner(made, engine, curator.structure, told, curator.terms, left)
        structure = curator.structure
    _present(source, structure, terms)


def _check_tables(
    source: Source,
    structure: Structure,
    mechanism: Mechanism,
    budget: Budget,
    terms: Terms,
    randomness: Randomness | None,
    split: str | Mapping[str, Any],
) -> None:
    """Raise what a release would raise, apart from labels, before it charges."""
    asked = asked_labels(structure.domain, budget, terms)
    over, rest = structure.over(with_placeholders(structure.domain)), rest_of(budget, asked)
    LiveCurator(source, over, mechanism, terms=terms, budget=rest, randomness=randomness, split=split)
    measure(mechanism, over, terms, rest, read_split(split)[0])
    _present(source, over, terms)


def _present(source: Source, structure: Structure, terms: Terms) -> None:
    """Raise what the source would say of its file, names and types."""
    path = source.path if isinstance(source, FileSource) else None
    if path is not None and not Path(path).exists() and not glob.has_magic(str(path)):
        raise DataError(f"there is no data file {path}; say in the spec where the records are")
    shielded(source, lambda: _look(source, structure, terms))


def _plan_of_bins(
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism,
    inference: Inference,
    terms: Terms,
    records: float | None,
    split: str | Mapping[str, Any],
    learner: str | Mapping[str, Any] | Learner | None,
) -> Plan:
    """Of named cliques over private bins: the tables are as large as they may become."""
    made: Learner = make("learner", LEARNER if learner is None else learner)
    check_named(structure, budget, mechanism, split, made, inference, terms)
    cost, left = left_for_tables(structure, budget, terms)
    noise: Mechanism = make("mechanism", mechanism_of(left))
    done = make_plan(structure, left, noise, inference, terms=terms, records=records, split=split)
    columns = ", ".join(map(repr, structure.domain.undetermined))
    told = f"private bins of {columns} are found first, for {cost}; tables may come out smaller than shown"
    return evolve(done, asked=budget, cost=budget, notes=(told, *done.notes))


def _chooser(
    structure: Structure | str | Mapping[str, Any] | Selector,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism,
    split: str | Mapping[str, Any],
    learner: Learner,
    inference: Inference,
    terms: Terms,
    workload: Workload | Domain | None,
) -> tuple[Selector, Workload, Fraction]:
    """Who spends the session, for which workload, and the share of its structure check: a selector, or, over private
    bins, the cliques that were named."""
    if isinstance(structure, Structure):
        share = check_named(structure, budget, mechanism, split, learner, inference, terms)
        named = NamedCliques(structure=structure, checked=bool(share))
        return named, named.workload, share
    return selector_of(structure), workload_of(workload), share_only(split, mechanism, budget)


def _foreseen(
    learner: Learner, structure: Structure, split: str | Mapping[str, Any]
) -> tuple[Structure | None, str | Mapping[str, Any]]:
    """The tables that the learner says it will measure, and how the budget is divided, in its way if it has one."""
    measured, own = foreseen(learner, structure)
    return measured, split if own is None else {"tables": own, "check": read_split(split)[1]}


def _choosing(source: Source, workload: Workload, budget: Budget, **more: Any) -> LiveCurator:
    """A curator for a session: what it is to model is not known yet, so each attribute of the workload stands alone."""
    mechanism: Mechanism = make("mechanism", mechanism_of(session_budget(budget)))
    return LiveCurator(source, attributes_alone(workload), mechanism, budget=budget, **more)


def _look(source: Source, structure: Structure, terms: Terms) -> None:
    columns: Sequence[str] = columns_of(structure)
    if terms.person is not None and isinstance(source, KeyedSource):
        columns = [*structure.domain.names, terms.person]
        source.keyed_batches(structure.domain, structure.domain.names, terms.person)
    else:
        source.batches(structure.domain, columns)
    if isinstance(source, NamedColumns):  # of one that is a generator, and so has not looked yet
        locate(f"source {type(source).__name__}", columns, source.names())


def _opened(ledger: Ledger | str | Path | None) -> Ledger | None:
    return Ledger.open(ledger) if isinstance(ledger, (str, Path)) else ledger
