"""Search for private labels of open columns, in a charge of its own before the first table is measured.

The order is that of every release: refuse what can be refused, read and count, commit the charge, draw noise, save. A
run that ends between the two charges has spent the first, and keeps the labels.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
from attrs import evolve, frozen

from dpgm_core._util.files import check_writable
from dpgm_core._util.progress import Progress, silent, unfailing
from dpgm_core._util.randomness import Randomness, randomness_or_system
from dpgm_core.counting.labels import persons_by_label
from dpgm_core.curator.funds import Funds
from dpgm_core.curator.redaction import redact_source_errors, strip_traceback
from dpgm_core.domain.bins import PrivateLabels
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DataError, DpgmError, LearningFailed, ModelFileError, OptionError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.columns import ColumnsPlan
from dpgm_core.privacy.labels import LabelsPlan, OpenPlan, open_columns, plan_labels, with_placeholders
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.terms import Terms, charge_conditions
from dpgm_core.releases.labels import Discovery, FoundLabels, draw_columns, labels_file, load_discovery
from dpgm_core.releases.saving import Room, save_elsewhere
from dpgm_core.sources.arrow import ArrowSource
from dpgm_core.sources.contract import AnySource, RawValues
from dpgm_core.structure.workload import Workload

__all__ = ["LabelSearch", "LabelledDomain", "budget_left", "check_open"]

_MAX_NOTE_LENGTH = 200
_LABEL_BYTES = 100  # of most labels, at most
_CELLS_BYTES = 2**15  # of what a column of any type shows besides, mostly


@frozen(kw_only=True)
class LabelledDomain:
    """The domain with its labels, the budget that is left, and what was found and where it is saved."""

    domain: Domain
    budget: Budget
    discovery: Discovery | None = None
    saved: Path | None = None

    def over(self, workload: Workload) -> Workload:
        """Return the workload over the domain with its labels, with the candidates that it was planned to have.

        The default for columns of any type, which are planned as if each had as many labels as it may, is that of what
        was found.
        """
        if self.discovery is None:
            return workload
        if self.discovery.described is not None and workload.is_default:
            return Workload.default(self.domain, max_cells=workload.max_cells, never=workload.never)
        return workload.with_domain(self.domain)

    @contextmanager
    def attach_labels_to_errors(self) -> Iterator[None]:
        """Make an error raised inside say that the labels are paid for, and carry them."""
        if self.discovery is None:
            yield
            return
        try:
            yield
        except LearningFailed as error:
            error.discovery = self.discovery
            raise
        except BaseException as error:
            cause = error.__cause__
            if not isinstance(error, Exception) and isinstance(cause, LearningFailed):  # an interrupt after tables
                cause.discovery = self.discovery
                raise
            failed = _failed_after_labels(self.discovery, self.saved, error)
            if isinstance(error, Exception):
                raise failed from error
            raise error from failed


def budget_left(budget: Budget, columns: Sequence[OpenPlan]) -> Budget:
    """Return what a budget leaves for tables: a mu, where columns of any type are in one account with them."""
    any_type = _any_type(columns)
    if any_type is not None:
        return any_type.tables
    return budget - Budget.sum(one.budget for one in columns) if columns else budget


def check_open(source: AnySource, columns: Sequence[OpenPlan], randomness: Randomness | None = None) -> None:
    """Refuse a source whose labels cannot be found: it offers no raw values, or can be read only once.

    Raises DataError; reads no record.
    """
    if not columns:
        return
    names = _column_names(columns)
    if not isinstance(source, RawValues):
        raise DataError(
            f"the labels of {names} are to be found in raw values, and source {type(source).__name__} offers none; "
            "list the labels, or give a file or a data frame"
        )
    if isinstance(source, ArrowSource) and isinstance(source.data, pa.RecordBatchReader):
        raise DataError(
            f"finding the labels of {names} reads the records before they are counted, and a RecordBatchReader can be "
            "read only once; give a table, a frame or a file"
        )
    randomness_or_system(randomness)


@frozen(kw_only=True, eq=False)
class LabelSearch:
    """The search for the labels of a domain's open columns, before the tables of a run.

    Attributes
    ----------
    budget
        Of the whole run.
    save_release
        The file of the run's release; the labels are saved next to it (`labels_file`).
    labels_from
        A file of labels that were found and paid for before, which are used instead.
    """

    source: AnySource
    domain: Domain
    budget: Budget
    terms: Terms
    randomness: Randomness | None = None
    ledger: Ledger | None = None
    save_release: str | Path | None = None
    labels_from: str | Path | None = None
    progress: Progress = silent

    def find(self, check: Callable[[], None]) -> LabelledDomain:
        """Find the labels, if the domain has open columns.

        check: raises what the rest of the run would refuse before its own charge; it is called before this one. Raises
        what the run can be refused for, with nothing charged, and LearningFailed where labels are paid for and cannot
        be saved.
        """
        domain, budget = self.domain, self.budget
        columns = plan_labels(domain, budget, self.terms)
        if not columns:
            if self.labels_from is not None:
                raise OptionError(
                    f"labels found before were given ({self.labels_from}), but no column of the domain is open"
                )
            return LabelledDomain(domain=domain, budget=budget)
        check_open(self.source, columns, self.randomness)
        search = evolve(
            self, terms=self.terms.with_default_unit(None if self.ledger is None else self.ledger.terms.unit)
        )
        if self.labels_from is not None:
            labels = search._loaded(self.labels_from)
            check()
            return labels
        search._check_ledger(columns)
        saved = None if self.save_release is None else labels_file(self.save_release)
        for path in (self.save_release, saved):
            if path is not None:
                check_writable(path)
        check()
        room = None if saved is None else Room(saved, _size(domain))
        try:
            self.progress("counting: labels of open columns", 0, None)
            discovery = search._discover(columns)
            unfailing(self.progress)("counting: labels of open columns", 1, 1)  # they are paid for
            with LabelledDomain(domain=domain, budget=budget, discovery=discovery).attach_labels_to_errors():
                labelled = discovery.domain(domain)
                if saved is not None:
                    saved = self._save(discovery, labelled, saved, room)
                    if self.ledger is not None:
                        self.ledger.mark_released(discovery.provenance["entry"])
                _check_not_nothing(discovery, domain)
        finally:
            if room is not None:
                room.close()
        return LabelledDomain(domain=labelled, budget=budget_left(budget, columns), discovery=discovery, saved=saved)

    def _save(self, discovery: Discovery, domain: Domain, path: Path, room: Room | None) -> Path:
        """Save labels that are paid for; return where they are."""
        try:
            discovery.save(path, domain, part=None if room is None else room.part)
        except ModelFileError as error:
            ledger_path = None if self.ledger is None else self.ledger.path
            return save_elsewhere(path, error, ledger_path, lambda other: discovery.save(other, domain))
        return path

    def _discover(self, columns: Sequence[OpenPlan]) -> Discovery:
        """Count, charge and draw, in this order."""
        source, terms, random = self.source, self.terms, randomness_or_system(self.randomness)
        assert isinstance(source, RawValues)
        raw: RawValues = source
        funds = Funds(Budget.sum(one.budget for one in columns), self.ledger)
        conditions = charge_conditions(evolve(terms, total="estimated"), unsafe=None, private=bool(random.private))
        listed = [one for one in columns if isinstance(one, LabelsPlan)]
        any_type = _any_type(columns)
        shaped = [] if any_type is None else [self.domain[name] for name in any_type.columns]
        attributes = [*(self.domain[one.column] for one in listed), *shaped]
        with funds.charge(funds.budget, conditions, note=_note(columns)) as receipt:
            counted = redact_source_errors(
                source,
                lambda: persons_by_label(raw, attributes, terms.person, terms.rows_per_person, shaped=shaped),
            )
        labels = strip_traceback(partial(_draw_labels, listed, counted[: len(listed)], random))
        described = None
        if any_type is not None:
            labels_of, shapes_of, cells_of, parts_of = (
                counted[start : start + len(shaped)] for start in range(len(listed), len(counted), len(shaped))
            )
            cells_of = [{**cells, **parts} for cells, parts in zip(cells_of, parts_of, strict=True)]
            described = strip_traceback(partial(draw_columns, any_type, shaped, labels_of, shapes_of, cells_of, random))
            del labels_of, shapes_of, cells_of, parts_of
        del counted  # what fails from here on has no true count among its variables
        funds.check_process()
        # Two that found the same, such as nothing, are two charges; releases that share one know it by its mark.
        provenance = {**receipt.provenance, "mark": secrets.token_hex(8)}
        return Discovery(
            columns=labels, described=described, terms=terms, private=bool(random.private), provenance=provenance
        )

    def _loaded(self, path: str | Path) -> LabelledDomain:
        """Return labels that were found before; their cost is a part of the run's budget, and is not charged again."""
        discovery, ledger = load_discovery(path), self.ledger
        entry = None if ledger is None else ledger.entry_of(discovery.provenance)
        if ledger is not None and (entry is None or entry.cost != discovery.cost):
            alike = "; another ledger of the same name paid for them" if _is_namesake(discovery, ledger) else ""
            raise BudgetError(
                f"the labels in {path} were not charged to ledger {ledger.name!r}, which would not know all that was "
                f"spent{alike}; use the ledger that they were charged to, or find them again"
            )
        if discovery.private is not bool(randomness_or_system(self.randomness).private):
            raise OptionError(f"the labels in {path} and this run do not both come without a seed; find them again")
        if evolve(discovery.terms, total="estimated") != evolve(self.terms, total="estimated"):
            raise BudgetError(
                f"the labels in {path} were found under other terms (neighbours, unit, person or rows per person), so "
                "their cost does not add up with this run's; use the terms that they were found under"
            )
        labelled = discovery.domain(self.domain)
        _check_not_nothing(discovery, self.domain)
        if not discovery.cost <= self.budget or self.budget - discovery.cost == Budget.zero("approx"):
            raise BudgetError(
                f"the labels in {path} cost {discovery.cost}, of which {self.budget} leaves nothing; give more"
            )
        return LabelledDomain(
            domain=labelled, budget=self.budget - discovery.cost, discovery=discovery, saved=Path(path)
        )

    def _check_ledger(self, columns: Sequence[OpenPlan]) -> None:
        """Refuse a ledger that cannot add up both charges, or has no room for them."""
        ledger = self.ledger
        if ledger is None:
            return
        if ledger.budget.kind != "approx" or (ledger.terms.account == "gaussian" and ledger.terms.other is None):
            without = " in mu" if ledger.terms.account == "gaussian" else ""
            raise BudgetError(
                f"the labels of {_column_names(columns)} cost an (epsilon, delta), which ledger {ledger.name!r} cannot "
                f"add up, as it holds {ledger.budget}{without}; list the labels, or use a ledger of (epsilon, delta)"
            )
        ledger.check_terms(self.terms)
        any_type = _any_type(columns)
        if any_type is not None and ledger.terms.account == "gaussian":
            ledger.check(Budget.sum(one.budget for one in columns))
            ledger.check(any_type.tables)
        else:
            ledger.check(self.budget)


def _size(domain: Domain) -> int:
    """Return the bytes of the file of labels: as many as the placeholders have, each as long as most labels are."""
    return (
        2 * _LABEL_BYTES * sum(one.size for one in open_columns(domain))
        + _CELLS_BYTES * sum(isinstance(one.private, PrivateLabels) and one.private.any_type for one in domain)
        + len(json.dumps(with_placeholders(domain).to_dict()))
        + 2**13
    )


def _draw_labels(
    columns: Sequence[LabelsPlan], counted: Sequence[Mapping[str, int]], randomness: Randomness
) -> tuple[FoundLabels, ...]:
    """Return what is published of each column's counts, with fresh noise."""
    labels = []
    for one, counts in zip(columns, counted, strict=True):
        noise = one.noise.draw(len(counts), randomness).tolist()
        noisy = {label: count + z for (label, count), z in zip(counts.items(), noise, strict=True)}
        labels.append(FoundLabels.of(one, noisy))
    return tuple(labels)


def _check_not_nothing(discovery: Discovery, domain: Domain) -> None:
    """Stop, with the rest of the budget unspent, where all columns are of any type and nothing was found of them."""
    described = discovery.described
    if described is None or len(described.columns) < len(domain.attributes):
        return
    if any(one.labels or one.attribute.edges for one in described.columns):
        return
    failed = LearningFailed(
        f"nothing was found of the {len(described.columns)} columns of any type: a label needs about "
        f"{described.noise.threshold:,} persons, a range {described.noise.edge:,}, and twice the epsilon half as many; "
        f"{described.budget} is spent and the rest of the budget is not; describe columns in the domain, leave some "
        "out, or give a larger epsilon"
    )
    failed.discovery = discovery
    raise failed


def _any_type(columns: Sequence[OpenPlan]) -> ColumnsPlan | None:
    return next((one for one in columns if isinstance(one, ColumnsPlan)), None)


def _is_namesake(discovery: Discovery, ledger: Ledger) -> bool:
    paid = discovery.provenance
    return paid.get("ledger") == ledger.name and paid.get("ledger_identity") != ledger.identity


def _names(columns: Sequence[OpenPlan]) -> list[str]:
    return [name for one in columns for name in (one.columns if isinstance(one, ColumnsPlan) else (one.column,))]


def _column_names(columns: Sequence[OpenPlan]) -> str:
    names = _names(columns)
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "")


def _note(columns: Sequence[OpenPlan]) -> str:
    """Return the note of the ledger's entry."""
    what = "types, ranges and labels" if any(isinstance(one, ColumnsPlan) for one in columns) else "labels"
    note = f"{what} of {_column_names(columns)}, found privately before the tables"
    if len(note) > _MAX_NOTE_LENGTH or not note.isprintable():
        note = f"{what} of {len(_names(columns))} columns, found privately before the tables"
    return note


def _failed_after_labels(discovery: Discovery, saved: Path | None, error: BaseException) -> LearningFailed:
    kind = "" if isinstance(error, DpgmError) else type(error).__name__
    why = ": ".join(filter(None, [kind, str(error)]))
    names = ", ".join(map(repr, discovery.names))
    where = (
        "kept in the error's discovery, which can be saved"
        if saved is None
        else f"kept in {saved}: go on, at no further cost for them, with labels_from = {str(saved.absolute())!r}"
    )
    failed = LearningFailed(f"{why}; the labels of {names} are found and paid for ({discovery.cost}), {where}")
    failed.discovery = discovery
    return failed
