"""One run, from records over counts, noise and learning to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from dpgm_core._util.blas import one_thread
from dpgm_core._util.exact_numbers import Amount, amount
from dpgm_core._util.progress import Progress, check_progress, silent
from dpgm_core._util.randomness import Randomness
from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM
from dpgm_core.components.registry import make
from dpgm_core.curator.labels import LabelledDomain, LabelSearch, budget_left, check_open
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.records import check_rows
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DpgmError, LearningFailed, OptionError, StructureError, TooLarge
from dpgm_core.inference.contract import Inference
from dpgm_core.learning import selector_run
from dpgm_core.learning.contract import Fit, Learner, Resources, check_contrast_learner, check_resources
from dpgm_core.learning.dry_run import DryRun
from dpgm_core.learning.learner_checks import check_learner, largest_estimate
from dpgm_core.learning.learner_run import run_learner, with_goodness_of_fit
from dpgm_core.learning.named_cliques import NamedCliques, check_named, left_for_tables
from dpgm_core.learning.selector import Selection, SelectionPlan, Selector, SwitchingSelector
from dpgm_core.learning.selector_run import selector_of, session_noises, workload_of
from dpgm_core.pipeline import planning
from dpgm_core.pipeline.planning import Plan, check_domain, check_source, counted_tables, describe_passes, planned_split
from dpgm_core.privacy.budget import Budget, Split, may_be_contrasts
from dpgm_core.privacy.labels import OpenPlan, plan_labels, with_placeholders
from dpgm_core.privacy.ledger import Ledger, charged_budget
from dpgm_core.privacy.measurement import check_determined, check_range_names, check_structure, measure
from dpgm_core.privacy.mechanism import DELTAS_TOGETHER, Mechanism
from dpgm_core.privacy.rounds import check_rounds_go_with
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.labels import Discovery
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.steps import session_budget, session_mechanism
from dpgm_core.sources import as_source
from dpgm_core.sources.contract import AnySource
from dpgm_core.sources.related import one_or_related
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.workload import Workload

__all__ = ["Run", "fit", "learn", "plan", "plan_selection", "release", "select"]


_T = TypeVar("_T")


def _as_target(target: object) -> Structure | Selector:
    return target if isinstance(target, Structure) else selector_of(target)


def _as_learner(learner: str | Mapping[str, Any] | Learner | None) -> Learner | None:
    component: Learner | None = None if learner is None else make("learner", learner)
    return component


def _as_inference(inference: str | Mapping[str, Any] | Inference) -> Inference:
    component: Inference = make("inference", inference)
    return component


def _as_split(split: Split | str | Mapping[str, Any]) -> Split:
    return Split.of(split)


def _as_terms(terms: object) -> Terms:
    return Terms.of(terms, None)  # type: ignore[arg-type]  # which it checks


def _as_workload(workload: object) -> Workload | None:
    return None if workload is None else workload_of(workload)


def _as_ledger(ledger: Ledger | str | Path | None) -> Ledger | None:
    return Ledger.open(ledger) if isinstance(ledger, (str, Path)) else ledger


@frozen(eq=False)
class Run:
    """The settings of one run, which `fit`, `select`, `release`, `plan`, `plan_selection` and `check` share.

    Components, records, terms, workload and ledger are accepted as the function `fit` accepts them, and converted once.

    Attributes
    ----------
    source
        The records; None for a run that is only planned.
    target
        The structure to measure and model, or the selector that chooses one.
    budget
        What the run may spend.
    mechanism
        The noise of named tables; a session draws the noise that its budget determines.
    learner
        None for a run that only releases or plans named tables.
    workload
        What a selector chooses the structure for; None with a structure.
    labels_from
        A file of labels that an earlier run found and paid for.
    may_switch
        Whether a selector may choose another learner, as the user named none; see `Switching-` and `WideningSelector`.

    The other attributes have the meaning of the parameters of `fit`.
    """

    source: Any  # an AnySource or None in the end
    target: Structure | Selector = field(converter=_as_target)
    budget: Budget
    mechanism: str | Mapping[str, Any] | Mechanism | None = None
    learner: Learner | None = field(factory=partial(make, "learner", LEARNER), converter=_as_learner)
    inference: Inference = field(factory=partial(make, "inference", INFERENCE), converter=_as_inference)
    workload: Workload | None = field(default=None, converter=_as_workload, kw_only=True)
    terms: Terms = field(converter=_as_terms, kw_only=True)
    randomness: Randomness | None = field(default=None, kw_only=True)
    ledger: Ledger | None = field(default=None, converter=_as_ledger, kw_only=True)
    save_release: str | Path | None = field(default=None, kw_only=True)
    progress: Progress = field(default=silent, converter=check_progress, kw_only=True)
    split: Split = field(default=Split(), converter=_as_split, kw_only=True)
    labels_from: str | Path | None = field(default=None, kw_only=True)
    may_switch: bool = field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "source", one_or_related(self.source, self.terms.related))
        if not isinstance(self.target, Structure):
            widened = selector_run.widened_workload(self.target, self.workload, self.budget, self.may_switch)
            object.__setattr__(self, "workload", widened)  # None was refused
        elif self.workload is not None:
            raise OptionError("a workload is what a selector chooses for, and here the cliques are named; leave it out")

    @property
    def domain(self) -> Domain:
        """The attributes of the structure or the workload."""
        return self.target.domain if isinstance(self.target, Structure) else workload_of(self.workload).domain

    @one_thread
    def fit(self) -> Fit:
        """Release noisy tables and learn a model from them; see the function `fit`."""
        self._learner()
        check_domain(self.domain, self.inference)
        return self._with_labels(self.check, lambda run, found: with_goodness_of_fit(run._learn(found), self.inference))

    @one_thread
    def select(self) -> tuple[NoisyTables, Selection]:
        """Choose a structure, and return what was measured for it; see the function `select`."""
        if self._tables is not None:
            raise StructureError("the cliques of this run are named, so there is nothing to select; fit or release it")
        self._learner()
        check_domain(self.domain, self.inference)
        return self._with_labels(self.check, lambda run, found: run._select(found)[1:])

    @one_thread
    def release(self) -> NoisyTables:
        """Release the noisy tables of the structure; see the function `release`."""
        if self.split.holdout:
            raise OptionError(
                "split sets a share of the budget aside for a holdout, which is part of a fit; leave holdout out "
                "of the split, or call fit"
            )
        check_structure(self.target)
        check_determined(with_placeholders(self.domain))
        check_domain(self.domain, None)
        mechanism = self._mechanism
        check = evolve(self, learner=None).check
        return self._with_labels(check, lambda run, found: run._release(mechanism, found))

    def check(self) -> None:
        """Raise what `fit` would raise before it charges; reads no record.

        The file of the records must exist, and the source is opened for the columns of a release but not read: so names
        and types of the columns are checked. Without a learner, raises what `release` would raise.
        """
        evolve(self, ledger=None, save_release=None, progress=silent)._dry_run()

    def plan(self, records: float | None = None) -> Plan:
        """Return what the release of a structure would cost; see the function `plan`."""
        structure = self.target
        check_structure(structure)
        assert isinstance(structure, Structure)
        check_domain(structure.domain, self.inference)
        open_columns = plan_labels(structure.domain, self.budget, self.terms)
        if open_columns:
            rest = self._with_placeholders(open_columns)
            tables = rest.plan(records)
            notes = (*(note for column in open_columns for note in column.notes()), *tables.notes)
            in_one = rest.budget.kind != self.budget.kind  # account, with columns of any type
            cost = self.budget if in_one else tables.cost + (self.budget - rest.budget)
            return evolve(tables, asked=self.budget, cost=cost, notes=notes)
        price = partial(planning.make_plan, structure, terms=self.terms, records=records)
        if structure.domain.undetermined:
            (evolve(self, learner=LEARNER) if self.learner is None else self)._session_parts()  # refuses
            exact = not selector_run.why_not_exact(self._session_mechanism())
            cost, left = left_for_tables(structure, self.budget, self.terms, exact=exact)
            tables = price(left, session_mechanism(left, self.mechanism), self.inference, split=self.split)
            columns = ", ".join(map(repr, structure.domain.undetermined))
            note = f"private bins of {columns} are found first, for {cost}; tables may come out smaller than shown"
            workload = NamedCliques(structure=structure).workload
            notes = (note, *tables.notes, *describe_passes(self.source, workload, self.terms))
            return evolve(tables, asked=self.budget, cost=self.budget, notes=notes)
        mechanism = self._mechanism
        if self.learner is None:
            tables = price(self.budget, mechanism, self.inference, split=self.split)
            passes = describe_passes(self.source, counted_tables(tables, structure), self.terms)
            return evolve(tables, notes=(*tables.notes, *passes))
        needed = self._check_learner(structure)
        check_contrast_learner(self.learner, may_be_contrasts(self.split.tables))
        measured, split = planned_split(self.learner, structure, self.split)
        price = partial(price, self.budget, mechanism, split=split, measured=measured)
        asks_engine = needed is None or needed.calls > 0
        try:
            tables = price(inference=self.inference if asks_engine else None)
        except TooLarge:  # of the engine, which the learner's check did not ask
            tables = price(inference=None)
        left = split.divide(self.budget)[1]
        requests = self._rehearse(structure, left).requests()
        if "rounds" in requests:
            check_rounds_go_with(self.terms, split)
        otherwise = planning.FIRST_REQUEST_NOTES.get(next(iter(requests), None)) if measured is None else None
        passes = describe_passes(self.source, counted_tables(tables, measured or structure), self.terms)
        tables = evolve(tables, notes=(*tables.notes, *filter(None, [otherwise]), *passes))
        if needed is None:
            return tables
        seconds = needed.seconds(tables.seconds_per_inference)
        return evolve(tables, learner_memory=needed.memory, learner_seconds=seconds)

    def plan_selection(self, records: float | None = None) -> SelectionPlan:
        """Return what a selection would spend and see; see the function `plan_selection`."""
        selector, workload, share = self._session_parts()
        check_domain(workload.domain, self.inference)
        open_columns = plan_labels(workload.domain, self.budget, self.terms)
        if open_columns:
            chosen = self._with_placeholders(open_columns).plan_selection(records)
            costs = {column.what: column.budget for column in open_columns}
            notes = [*(note for column in open_columns for note in column.notes()), *chosen.notes]
            return evolve(chosen, shares={**costs, **chosen.shares}, notes=notes)
        mechanism, expected = self._session_mechanism(), planning.check_records(records)
        planned = selector_run.plan_session(selector, workload, self.budget, self.terms, share, expected, mechanism)
        learner, chosen = self._learner(), planned.plan
        noises = session_noises(mechanism, planned.budget)
        check_learner(learner, self.inference, workload, chosen, self.terms, planned.budget, noises)
        notes = list(chosen.notes)
        needed = largest_estimate(learner, self.inference, workload, chosen)
        if needed is not None:
            chosen = evolve(chosen, learner_memory=needed.memory, learner_seconds=needed.cpu_seconds)
            notes += planning.memory_notes(needed.memory)
        notes += planning.wide_notes(workload.domain, workload.attributes)
        gaussian = noises[0].event.kind in DELTAS_TOGETHER if noises else self.budget.kind != "pure"
        notes += planning.range_forecasts(workload.domain, self.split.ranges, gaussian=gaussian)
        notes += describe_passes(self.source, workload, self.terms)
        return evolve(chosen, notes=notes)

    @property
    def _tables(self) -> Structure | None:
        """The structure whose tables one release measures; None where a session finds private bins or a structure."""
        if isinstance(self.target, Structure) and not self.target.domain.undetermined:
            return self.target
        return None

    def _learner(self) -> Learner:
        if self.learner is None:
            raise OptionError("this run has no learner, so it can only release and plan named tables; name a learner")
        return self.learner

    def _check_learner(self, structure: Structure) -> Resources | None:
        """Raise what the learner refuses of named tables, and return what it says it takes."""
        learner = self._learner()
        learner.check(structure, self.inference)
        return check_resources(learner, structure, self.inference)

    def _rehearse(self, structure: Structure, budget: Budget) -> DryRun:
        learner, inference = self._learner(), self.inference
        return DryRun(learner=learner, inference=inference, structure=structure, terms=self.terms, budget=budget)

    @property
    def charged(self) -> Run:
        """The run as its ledger is charged; see `charged_budget`."""
        if self.ledger is None:
            return self
        return evolve(self, budget=charged_budget(self.ledger, self.budget, lambda mu: evolve(self, budget=mu).check()))

    @property
    def _asked(self) -> dict[str, Any]:
        """What a curator and a search for labels are asked alike."""
        paid = {"terms": self.terms, "budget": self.budget, "ledger": self.ledger}
        return {**paid, "randomness": self.randomness, "progress": self.progress}

    def _records(self) -> AnySource:
        """The source; raises DataError where there is none."""
        return as_source(None) if self.source is None else self.source

    def _session_parts(self) -> tuple[Selector, Workload, Fraction]:
        """The selector, its workload and the share of the holdout; named cliques select themselves.

        Raises what is refused of a structure over private bins, and of a selector's split.
        """
        if not isinstance(self.target, Structure):
            selector = self.target
            if isinstance(selector, SwitchingSelector) and not self.may_switch:
                selector = selector.without_switch()
            workload = workload_of(self.workload)
            alone = Structure(workload.domain, [(name,) for name in workload.attributes])
            check_range_names(self.split.ranges, workload.domain, self.terms, alone)
            return selector, workload, selector_run.share_only(self.split)
        learner = self._learner()
        check_range_names(self.split.ranges, self.target.domain, self.terms, self.target)
        noises = session_noises(self._session_mechanism(), session_budget(self.budget))
        share = check_named(self.target, self.budget, self.split, learner, self.inference, self.terms, noises)
        named = NamedCliques(structure=self.target, checked=bool(share))
        return named, named.workload, share

    @property
    def _mechanism(self) -> Mechanism:
        """The mechanism of named tables."""
        mechanism: Mechanism = make("mechanism", MECHANISM if self.mechanism is None else self.mechanism)
        return mechanism

    def _session_mechanism(self) -> Mechanism | None:
        """The mechanism of a session's tables; None for core's own. Raises what `session_mechanism` refuses."""
        return None if self.mechanism is None else session_mechanism(session_budget(self.budget), self.mechanism)

    def _over(self, labels: LabelledDomain) -> Run:
        """The rest of the run, over the labels that were found."""
        if labels.discovery is None:
            return self.charged
        if isinstance(self.target, Structure):
            return evolve(self, target=self.target.over(labels.domain), budget=labels.budget)
        return evolve(self, workload=labels.over(workload_of(self.workload)), budget=labels.budget)

    def _with_placeholders(self, open_columns: Sequence[OpenPlan]) -> Run:
        """The rest of the run as it can be planned before labels are found."""
        domain, rest = with_placeholders(self.domain), budget_left(self.budget, open_columns)
        if isinstance(self.target, Structure):
            return evolve(self, target=self.target.over(domain), budget=rest)
        return evolve(self, workload=workload_of(self.workload).over(domain), budget=rest)

    def _with_labels(self, check: Callable[[], None], rest: Callable[[Run, Discovery | None], _T]) -> _T:
        """Find the labels of open columns, if there are any, and do the rest of the run over them.

        check: raises what the rest is refused for. rest: its run, and the labels that were found.
        """
        self.progress("checking", 0, 1)
        source = self._records()
        if not self.domain.undetermined and self.labels_from is None:
            return rest(self.charged, None)
        saved, known = self.save_release, self.labels_from
        search = LabelSearch(source=source, domain=self.domain, save_release=saved, labels_from=known, **self._asked)
        labels = search.find(check)
        with labels.attach_labels_to_errors():
            return rest(self._over(labels), labels.discovery)

    def _release(self, mechanism: Mechanism, discovery: Discovery | None) -> NoisyTables:
        structure = self._tables
        assert structure is not None  # all bins are public
        check_range_names(self.split.ranges, structure.domain, self.terms, structure)
        curator = self._curator(structure, mechanism, self.split, discovery)
        try:
            curator.release()
        except DpgmError as error:
            if not curator.released:
                raise
            said = f"the release is paid for but not saved: {error}"
            raise LearningFailed(said, releases=curator.released) from error
        return curator.released[-1]

    def _learn(self, discovery: Discovery | None) -> Fit:
        learner, structure = self._learner(), self._tables
        if structure is None:
            selector, noisy, selection = self._select(discovery)
            return selector_run.fit_selection(
                noisy, selection, selector, learner, self.inference, randomness=self.randomness, progress=self.progress
            )
        self._check_learner(structure)
        measured, split = planned_split(learner, structure, self.split)
        check_range_names(split.ranges, structure.domain, self.terms, measured or structure)
        curator = self._curator(structure, self._mechanism, self.split, discovery)
        if self.ledger is not None:
            # of several releases the first would be paid for where the ledger lacks the rest
            account = self.ledger.terms.account
            price = None if discovery is None else discovery.price_of_tables(self.budget, account)
            self.ledger.check(price or self.budget)
        return run_learner(learner, curator, self.inference, randomness=self.randomness, progress=self.progress)

    def _select(self, discovery: Discovery | None) -> tuple[Selector, NoisyTables, Selection]:
        selector, workload, share = self._session_parts()
        curator = self._session_curator(workload, discovery)
        return selector, *selector_run.select_structure(
            selector,
            curator,
            workload,
            self._learner(),
            self.inference,
            share=share,
            mechanism=self._session_mechanism(),
            randomness=self.randomness,
            progress=self.progress,
        )

    def _curator(
        self, structure: Structure, mechanism: Mechanism, split: Split, discovery: Discovery | None = None
    ) -> LiveCurator:
        """The access to the records; whatever can be refused without them was refused."""
        self.progress("checking", 1, 1)
        more = self._asked | {"save_to": self.save_release, "discovery": discovery}
        return LiveCurator(self._records(), structure, mechanism, split=split, **more)

    def _session_curator(self, workload: Workload, discovery: Discovery | None = None) -> LiveCurator:
        """The same for a session: no structure is known yet, so each attribute is a clique of its own."""
        structure = Structure(workload.domain, [(name,) for name in workload.attributes])
        mechanism = session_mechanism(session_budget(self.budget), self.mechanism)
        return self._curator(structure, mechanism, Split(ranges=self.split.ranges), discovery)

    def _dry_run(self) -> None:
        source, learner = self._records(), self.learner
        open_columns = plan_labels(self.domain, self.budget, self.terms) if self.domain.undetermined else ()
        if open_columns:
            check_open(source, open_columns, self.randomness)
            rest = self._with_placeholders(open_columns)
            if self.labels_from is not None and rest.budget.kind != self.budget.kind:  # tables beside what it cost
                rest = evolve(rest, budget=self.budget)
            try:
                rest._dry_run()
            except BudgetError as error:
                if rest.budget.kind == self.budget.kind:
                    raise
                evolve(rest, budget=self.budget)._dry_run()  # has the same error, if the mu is not its cause
                raise BudgetError(
                    "columns of any type are in one account with the tables of their run, in mu, which these cannot "
                    f"spend ({error}); describe the columns in the domain, or choose others, such as selector = 'auto'"
                ) from None
            return
        structure = self._tables
        if structure is None:
            selector, workload, share = self._session_parts()
            check_domain(workload.domain, self.inference)
            curator = self._session_curator(workload)
            mechanism = self._session_mechanism()
            planned = selector_run.plan_for_curator(selector, workload, curator, share, mechanism)
            if planned.votes is not None:
                check_rows(source, "votes")
            if not isinstance(selector, NamedCliques):
                learner, noises = self._learner(), session_noises(mechanism, planned.budget)
                terms = curator.terms
                check_learner(learner, self.inference, workload, planned.plan, terms, planned.budget, noises)
            check_source(source, curator.structure, self.terms)
            return
        check_domain(structure.domain, None if learner is None else self.inference)
        if learner is not None:
            self._check_learner(structure)
        mechanism = self._mechanism
        curator = self._curator(structure, mechanism, self.split)
        measured, split = None, self.split
        if learner is not None:
            check_contrast_learner(learner, curator.contrasts)
            measured, split = planned_split(learner, structure, split)
        check_range_names(split.ranges, structure.domain, self.terms, measured or structure)
        measure(mechanism, measured or structure, self.terms, curator.budget, split.tables, split.ranges)
        if learner is not None and "rounds" in self._rehearse(structure, curator.budget).requests():
            curator.check_rounds()
            check_rows(source, "rounds of subsamples")
        check_source(source, structure, self.terms)


def fit(  # noqa: PLR0913 - each setting of a run is a parameter
    data: object,
    structure: Structure | str | Mapping[str, Any] | Selector,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism | None = None,
    learner: str | Mapping[str, Any] | Learner | None = None,
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

    Everything that can be refused is refused before anything is charged.

    Parameters
    ----------
    data
        A path (CSV, Parquet, Arrow IPC), a table as in a spec file ({"source": "csv", "path": ..., option: ...}), a
        data frame or any object with `__arrow_c_stream__`, integer code arrays, or a Source. Of two related tables,
        which `terms` state: {"root": ..., "children": ...}, each such data, with the options of RelatedSource.
    structure
        The cliques to measure and model; or a selector that chooses them privately within the budget: its name
        ("auto"), a table with its options, or an object (see `select`).
    budget
        Spent in full.
    mechanism, learner, inference
        Names, tables with options, or objects. Without a mechanism named tables have Laplace noise, and those of a
        selector, or of private bins, discrete Laplace or discrete Gaussian noise, as goes with the budget. Without a
        learner: "eb-map", or another one that the selector gives its tables to, as "auto" does where latent classes are
        predicted to be nearer.
    workload
        With a selector only: what the model is for. A Domain is short for its `Workload.default`.
    terms
        What is protected and how (see `Terms`).
    neighbours
        Short for terms that state only the relation, "add-remove" or "replace-one", in persons. Give terms or
        neighbours; there is no default.
    randomness
        None for the operating system's. SeededRandomness is for simulations, and marks its results as not private.
    ledger
        A Ledger or its path, charged before any noise is drawn.
    save_release
        File for the release, written before learning.
    progress
        Receives the step, how far it is and of how much; is not called while records are counted.
    split
        How the budget is divided over tables: "even" or "optimal" (see `optimal_split`); "contrasts", where for each
        set of binary attributes inside a clique one noisy sum of products is measured in place of tables; or
        "sharper", the more accurate of "contrasts" and "even" for the cliques' products. {"tables": "even", "holdout":
        0.05} reserves a share for noisy tables of random pairs, which show what the structure misses (see
        `Model.structure_error`). {"ranges": ["age"]} measures a column's own table so that ranges of its values are
        answered well.
    labels_from
        A file of labels that an earlier run found; its cost is a part of the budget.

    Returns
    -------
    Fit
        The model, its releases, and how the learner ended.

    Raises
    ------
    LearningFailed
        The learner failed after the charge. The release is in `save_release` and in the error's `releases`.
    DpgmError
        Any other refusal; nothing was charged.

    Notes
    -----
    Where the domain leaves labels to be found privately, they are found first, for a share of the (epsilon, delta) in a
    charge of its own, and saved next to the release (see `dpgm_core.releases.labels.labels_file`).

    Examples
    --------
    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    >>> result = fit(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    >>> result.model.marginal("a").round(1).tolist(), result.release.private
    ([0.5, 0.5], False)
    """
    return Run(
        data,
        structure,
        budget,
        mechanism,
        LEARNER if learner is None else learner,
        inference,
        workload=workload,
        terms=Terms.of(terms, neighbours),
        randomness=randomness,
        ledger=ledger,
        save_release=save_release,
        progress=progress,
        split=split,
        labels_from=labels_from,
        may_switch=learner is None,
    ).fit()


def select(  # noqa: PLR0913 - as of `fit`
    data: object,
    selector: str | Mapping[str, Any] | Selector,
    budget: Budget,
    workload: Workload | Domain,
    learner: str | Mapping[str, Any] | Learner | None = None,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms,
    randomness: Randomness | None = None,
    ledger: Ledger | str | Path | None = None,
    save_release: str | Path | None = None,
    progress: Progress = silent,
    split: Split | str | Mapping[str, Any] = "even",
    labels_from: str | Path | None = None,
    mechanism: str | Mapping[str, Any] | Mechanism | None = None,
) -> tuple[NoisyTables, Selection]:
    """Choose a structure privately; `learn` makes a model of the returned release at no cost.

    The parameters are those of `fit`, except:

    Parameters
    ----------
    selector
        Its name, a table with its options, or an object.
    learner
        Makes the models that the selector asks for on the way.
    save_release
        Written again after each step, so that a run that is killed loses no noise that was paid for.
    split
        "even", or {"holdout": share} for a holdout.
    """
    return Run(
        data,
        selector_of(selector),
        budget,
        mechanism,
        LEARNER if learner is None else learner,
        inference,
        workload=workload_of(workload),
        terms=terms,
        randomness=randomness,
        ledger=ledger,
        save_release=save_release,
        progress=progress,
        split=split,
        labels_from=labels_from,
        may_switch=learner is None,
    ).select()


def release(
    data: object,
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism | None = None,
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
    """Release noisy tables of the structure's cliques, for `learn` now or later. The parameters are those of `fit`.

    Raises
    ------
    LearningFailed
        The release is paid for and could not be saved; the error has it.
    OptionError
        The split has a holdout, which is part of a fit.
    """
    check_structure(structure)
    return Run(
        data,
        structure,
        budget,
        mechanism,
        None,
        terms=Terms.of(terms, neighbours),
        randomness=randomness,
        ledger=ledger,
        save_release=save_release,
        progress=progress,
        split=split,
        labels_from=labels_from,
    ).release()


def plan(
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism | None = None,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms | None = None,
    neighbours: Neighbours | str | None = None,
    records: float | None = None,
    split: str | Mapping[str, Any] = "even",
    learner: str | Mapping[str, Any] | Learner | None = None,
    data: object = None,
) -> Plan:
    """Return what a release would cost and how accurate it would be, without reading any record (see `dpgm plan`).

    Parameters
    ----------
    structure, budget, mechanism, inference, terms, neighbours
        As in `fit`.
    records
        A publicly known or guessed number of records, for relative errors.
    split
        As in `fit`.
    learner
        Refusals of the learner are raised. Tables and split are those that it states (see `MeasuresOtherTables`); where
        it states none and does not learn from one release, a note says so. None plans the structure's tables.
    data
        The records, of which none is read: where they are summed elsewhere, a note says in how many passes.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 3}), [("a", "b"), ("b",)])
    >>> [(table.clique, table.cells) for table in plan(structure, Budget.pure(1), neighbours="add-remove").tables]
    [(('a', 'b'), 6), (('b',), 3)]
    """
    check_structure(structure)
    stated = Terms.of(terms, neighbours)
    return Run(data, structure, budget, mechanism, learner, inference, terms=stated, split=split).plan(records)


def plan_selection(
    selector: str | Mapping[str, Any] | Selector,
    budget: Budget,
    workload: Workload | Domain,
    learner: str | Mapping[str, Any] | Learner | None = None,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    terms: Terms,
    records: float | None = None,
    split: str | Mapping[str, Any] = "even",
    data: object = None,
    mechanism: str | Mapping[str, Any] | Mechanism | None = None,
) -> SelectionPlan:
    """Return what a selection would spend and see, without reading any record.

    The parameters are those of `select` and `plan`. Raises what `select` would raise for a selector, workload, learner
    or budget.
    """
    target = selector_of(selector)
    settings: dict[str, Any] = {"workload": workload, "terms": terms, "split": split, "may_switch": learner is None}
    named = LEARNER if learner is None else learner
    return Run(data, target, budget, mechanism, named, inference, **settings).plan_selection(records)


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
    """Learn a model from a release, or from several in the order of their publication; costs no budget.

    A learner that asks for each of several releases gets each as it is. One that asks for a single release gets them
    pooled: every table once, the mean over its releases weighted by how little noise they have. The release of a
    holdout is kept with the model and not learned from.

    Parameters
    ----------
    release
        Several must be about the same people, under the same terms.
    learner, inference
        As in `fit`.
    structure
        The model's cliques, each measured clique inside one of them. None for those of the first release, with what the
        others measured outside of it.
    randomness, progress
        As in `fit`.
    conversion_delta
        Where the releases cost different kinds of budget, the delta at which the zCDP part is converted.

    Examples
    --------
    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    >>> parts = [release(codes, structure, Budget.pure(1), neighbours="add-remove") for _ in range(2)]
    >>> result = learn(parts)
    >>> print(len(result.releases), result.model.cost)
    2 epsilon = 2
    """
    releases = [release] if isinstance(release, NoisyTables) else release
    if not isinstance(releases, Sequence) or not all(isinstance(each, NoisyTables) for each in releases):
        raise OptionError(
            f"learn takes a release (NoisyTables) or several, got {type(release).__name__}; see load_release(path)"
        )
    delta = None if conversion_delta is None else amount("conversion_delta", conversion_delta)
    curator = ReplayCurator(releases, structure, conversion_delta=delta)
    chosen: Learner = make("learner", learner)
    engine = _as_inference(inference)
    check_domain(curator.structure.domain, engine)
    return with_goodness_of_fit(run_learner(chosen, curator, engine, randomness=randomness, progress=progress), engine)
