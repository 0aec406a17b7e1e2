"""What will be spent and seen, told before anything is: plans without data, and checks that read no record."""

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
from dpgm_core.counting.rows import pinned
from dpgm_core.counting.statistic import columns_of
from dpgm_core.curator.discovery import budget_left, check_open
from dpgm_core.curator.held import check_rows
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.shield import redact_source_errors
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError, TooLarge
from dpgm_core.foresight.passes import told_of_release, told_of_session
from dpgm_core.foresight.plans import Plan, checked_records, make_plan
from dpgm_core.inference.constraining import check_constraints
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.learning.ahead import first_asked, foreseen, in_turn
from dpgm_core.learning.contract import Learner
from dpgm_core.learning.resources import check_resources, memory_limit
from dpgm_core.learning.run import check_contrast_learner
from dpgm_core.models.wide import wide_note
from dpgm_core.noise.bisection import settled
from dpgm_core.noise.check import Split
from dpgm_core.noise.contract import Mechanism
from dpgm_core.noise.labels import asked_labels, with_placeholders
from dpgm_core.noise.measurement import check_structure, measure
from dpgm_core.noise.split import may_be_contrasts
from dpgm_core.places import is_url
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.randomness import Randomness
from dpgm_core.releases.steps import mechanism_of, session_budget
from dpgm_core.selection.asked import attributes_alone, selector_of, share_only, workload_of
from dpgm_core.selection.contract import SelectionPlan, Selector
from dpgm_core.selection.learners import check_learner, largest_estimate
from dpgm_core.selection.named import NamedCliques, check_named, left_for_tables
from dpgm_core.selection.run import divided_for, foretold, planned
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import AnySource, FileSource, KeyedSource, NamedColumns, Reading, ReducingSource
from dpgm_core.sources.reading import locate
from dpgm_core.structure import Structure, human_bytes
from dpgm_core.workload import Workload

__all__ = ["check", "check_tables", "chooser_of", "plan", "plan_selection", "session_mechanism"]

#: What a plan says of a learner that does not foresee what it measures, by what it asks for first.
_OTHERWISE: Mapping[str | None, str] = {
    "part": "the learner spends a part of the budget on a first look, which says how the rest is divided over tables; "
    "the noise shown is that of one release of all of it",
    "rounds": "the learner takes many releases of subsampled records; the noise shown is that of one release of all",
    "session": "the learner asks more of the records than tables, step by step; the noise shown is that of one release "
    "of all, which it does not take",
}


def plan(
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms | None = None,
    neighbours: Neighbours | str | None = None,
    records: float | None = None,
    split: Split | str | Mapping[str, Any] = "even",
    learner: str | Mapping[str, Any] | Learner | None = None,
    data: object = None,
) -> Plan:
    """What a release would cost and how accurate it would be, without touching any data (see `dpgm plan`).

    structure, budget, mechanism, inference, terms, neighbours, split: as in `fit`. records: a publicly known or guessed
    number of records, for relative errors. learner: what it
    refuses to learn is refused, and tables and split are those that it says it will measure (see `Foreseen`); where it
    says nothing and does not take one release of all, a note says so. None: the structure's tables, whoever learns.
    data: the records, of which nothing is read: where they are summed elsewhere a note says in how many passes.

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
        rest, over = budget_left(budget, asked), structure.over(with_placeholders(structure.domain))
        more: dict[str, Any] = {"records": records, "split": split, "learner": learner, "data": data}
        told = plan(over, rest, mechanism, engine, terms=stated, **more)
        cost, notes = told.cost + (budget - rest), [one.note() for one in asked]
        return evolve(told, asked=budget, cost=cost, notes=(*notes, *told.notes))
    if structure.domain.undetermined:
        done = _plan_of_bins(structure, budget, mechanism, engine, stated, records, split, learner)
        return evolve(done, notes=(*done.notes, *_told(data, NamedCliques(structure=structure).workload, stated)))
    noise: Mechanism = make("mechanism", mechanism)
    if learner is None:
        done = make_plan(structure, budget, noise, engine, terms=stated, records=records, split=split)
        return evolve(done, notes=(*done.notes, *_told(data, _tables_of(done, structure), stated)))
    made: Learner = make("learner", learner)
    made.check(structure, engine)
    needed = check_resources(made, structure, engine)
    check_contrast_learner(made, may_be_contrasts(Split.of(split).tables))
    measured, split = _foreseen(made, structure, split)
    price = partial(make_plan, structure, budget, noise, terms=stated, records=records, split=split, measured=measured)
    try:
        done = price(inference=engine)
    except TooLarge:  # of the engine, which the learner's check did not ask
        done = price(inference=None)
    first = first_asked(made, engine, structure, stated, split.divide(budget)[1])
    otherwise = _OTHERWISE.get(first) if measured is None else None
    passes = _told(data, _tables_of(done, measured or structure), stated)
    done = evolve(done, notes=(*done.notes, *filter(None, [otherwise]), *passes))
    if needed is None:
        return done
    seconds = needed.seconds(done.seconds_per_inference)
    return evolve(done, learner_memory=needed.memory, learner_seconds=seconds)


def plan_selection(
    selector: str | Mapping[str, Any] | Selector,
    budget: Budget,
    workload: Workload | Domain,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms,
    records: float | None = None,
    split: Split | str | Mapping[str, Any] = "even",
    data: object = None,
) -> SelectionPlan:
    """What a selection would spend and see, without touching any data. Arguments as in `select` and `plan`.

    Raises what `select` would raise of a selector, workload, learner or budget.
    """
    share = share_only(split, MECHANISM, budget)
    made, wanted, stated = selector_of(selector), workload_of(workload), Terms.stated(terms, None)
    check_constraints(wanted.domain, make("inference", inference), JunctionTree())
    asked = asked_labels(wanted.domain, budget, stated)
    if asked:
        rest, over = budget_left(budget, asked), wanted.over(with_placeholders(wanted.domain))
        more: dict[str, Any] = {"records": records, "split": split, "data": data}
        told = plan_selection(made, rest, over, learner, inference, terms=stated, **more)
        costs = {f"labels of {one.column!r}": one.budget for one in asked}
        return evolve(told, shares={**costs, **told.shares}, notes=[*(one.note() for one in asked), *told.notes])
    told = foretold(made, wanted, budget, stated, share, checked_records(records))
    _, left = divided_for(made, budget)
    learning, engine = make("learner", learner), make("inference", inference)
    check_learner(learning, engine, wanted, told, stated, left)
    needed = largest_estimate(learning, engine, wanted, told)
    if needed is not None:
        told = evolve(told, learner_memory=needed.memory, learner_seconds=needed.cpu_seconds)
        told = evolve(told, notes=[*told.notes, *_too_much(needed.memory)])
    wide = wide_note(wanted.domain[name] for name in wanted.attributes)
    return evolve(told, notes=[*told.notes, *filter(None, [wide]), *_told(data, wanted, stated)])


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
    split: Split | str | Mapping[str, Any] = "even",
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
        rest = budget_left(budget, asked)
        more: dict[str, Any] = {"randomness": randomness, "split": split}
        check(source, shown, rest, mechanism, made, engine, workload=goal, terms=terms, **more)
        return
    if isinstance(structure, Structure) and not structure.domain.undetermined:
        check_constraints(structure.domain, engine, JunctionTree())
        made.check(structure, engine)
        check_resources(made, structure, engine)
        noise: Mechanism = make("mechanism", mechanism)
        curator = LiveCurator(source, structure, noise, terms=terms, budget=budget, randomness=randomness, split=split)
        check_contrast_learner(made, curator.contrasts)
        measured, own = _foreseen(made, structure, split)
        measure(noise, measured or structure, terms, curator.budget, own.tables)
        if "rounds" in in_turn(made, engine, structure, terms, curator.budget):
            check_rows(source, "rounds of subsamples")
    else:
        selector, wanted, share = chooser_of(structure, budget, mechanism, split, made, engine, terms, workload)
        check_constraints(wanted.domain, engine, JunctionTree())
        alone, noise = attributes_alone(wanted), session_mechanism(budget)
        curator = LiveCurator(source, alone, noise, terms=terms, budget=budget, randomness=randomness)
        told = planned(selector, wanted, curator, share)
        if divided_for(selector, budget)[0] is not None:
            check_rows(source, "votes")
        if not isinstance(selector, NamedCliques):
            _, left = divided_for(selector, budget)
            check_learner(made, engine, wanted, told, curator.terms, left)
        structure = curator.structure
    _present(source, structure, terms)


def check_tables(
    source: AnySource,
    structure: Structure,
    mechanism: Mechanism,
    budget: Budget,
    terms: Terms,
    randomness: Randomness | None,
    split: Split | str | Mapping[str, Any],
) -> None:
    """Raise what a release would raise, apart from labels, before it charges."""
    asked = asked_labels(structure.domain, budget, terms)
    over, rest = structure.over(with_placeholders(structure.domain)), budget_left(budget, asked)
    LiveCurator(source, over, mechanism, terms=terms, budget=rest, randomness=randomness, split=split)
    measure(mechanism, over, terms, rest, Split.of(split).tables)
    _present(source, over, terms)


def chooser_of(
    structure: Structure | str | Mapping[str, Any] | Selector,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism,
    split: Split | str | Mapping[str, Any],
    learner: Learner,
    inference: Inference,
    terms: Terms,
    workload: Workload | Domain | None,
) -> tuple[Selector, Workload, Fraction]:
    """Who spends the session, for which workload, and the share of its holdout: a selector, or, over private
    bins, the cliques that were named."""
    if isinstance(structure, Structure):
        share = check_named(structure, budget, mechanism, split, learner, inference, terms)
        named = NamedCliques(structure=structure, checked=bool(share))
        return named, named.workload, share
    return selector_of(structure), workload_of(workload), share_only(split, mechanism, budget)


def session_mechanism(budget: Budget) -> Mechanism:
    """The noise of a session's tables, by the kind of its budget."""
    made: Mechanism = make("mechanism", mechanism_of(session_budget(budget)))
    return made


def _plan_of_bins(
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism,
    inference: Inference,
    terms: Terms,
    records: float | None,
    split: Split | str | Mapping[str, Any],
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


def _too_much(memory: int) -> list[str]:
    """A note where the largest model that a selector may choose takes more memory than the machine has."""
    limit = memory_limit()
    if limit is None or memory <= limit:
        return []
    return [
        f"the largest model that the selector may choose would take the learner about {human_bytes(memory)} of memory, "
        f"and this machine has {human_bytes(limit)}; a lower max_model_cells rules that out"
    ]


def _told(data: object, counted: Structure | Workload, terms: Terms) -> tuple[str, ...]:
    """What is said of passes over records that are summed elsewhere, as a release or a session needs them."""
    if data is None:
        return ()
    source = as_source(data)
    return (
        told_of_release(source, counted, terms) if isinstance(counted, Structure) else told_of_session(source, counted)
    )


def _tables_of(planned: Plan, structure: Structure) -> Structure:
    """What will be counted. structure: its tables, unless contrasts take their place."""
    return Structure(structure.domain, [one.clique for one in planned.tables]) if planned.contrasts else structure


def _foreseen(
    learner: Learner, structure: Structure, split: Split | str | Mapping[str, Any]
) -> tuple[Structure | None, Split]:
    """The tables that the learner says it will measure, and how the budget is divided, in its way if it has one."""
    measured, own = foreseen(learner, structure)
    split = Split.of(split)
    return measured, split if own is None else evolve(split, tables=own)


def _present(source: AnySource, structure: Structure, terms: Terms) -> None:
    """Raise what the source would say of its file, names and types."""
    path = source.path if isinstance(source, FileSource) else None
    local = isinstance(path, (str, Path)) and not is_url(str(path))  # a URL is its source's to look for
    if local and not Path(str(path)).exists() and not glob.has_magic(str(path)):
        raise DataError(f"there is no data file {path}; say in the spec where the records are")
    redact_source_errors(source, lambda: _look(source, structure, terms))


def _look(source: AnySource, structure: Structure, terms: Terms) -> None:
    columns: Sequence[str] = columns_of(structure)
    if isinstance(source, ReducingSource):
        domain = settled(structure.domain, columns)
        domain = domain.with_attributes({one.name: one.grid() for one in domain if one.private is not None})
        reading = Reading(
            domain=domain, columns=tuple(columns), person=terms.person, rows_per_person=terms.rows_per_person
        )
        with pinned(source, reading):
            return
    if terms.person is not None and isinstance(source, KeyedSource):
        columns = [*structure.domain.names, terms.person]
        source.keyed_batches(structure.domain, structure.domain.names, terms.person)
    else:
        source.batches(structure.domain, columns)
    if isinstance(source, NamedColumns):  # of one that is a generator, and so has not looked yet
        locate(f"source {type(source).__name__}", columns, source.names())
