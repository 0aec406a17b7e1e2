"""Plans: what a run would cost, measure and refuse, before anything is charged."""

from __future__ import annotations

import glob
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen
from numpy.random import default_rng

from dpgm_core._util.blas import one_thread
from dpgm_core._util.exact_numbers import decimal_text
from dpgm_core._util.html import Html, card, first
from dpgm_core._util.locations import is_url
from dpgm_core.components.registry import default_registry
from dpgm_core.counting.rows import pinned
from dpgm_core.counting.statistic import columns_of
from dpgm_core.counting.table_counts import Passes
from dpgm_core.curator.records import candidates_to_count
from dpgm_core.curator.redaction import redact_source_errors
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import (
    BudgetError,
    DataError,
    StructureError,
    brief,
    clipped,
    human_bytes,
    listed,
    spanned,
    thousands,
)
from dpgm_core.inference.constraints import check_constraints
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Learner, memory_limit
from dpgm_core.learning.dry_run import planned_tables
from dpgm_core.models.within_bins import wide_note
from dpgm_core.privacy.bins import resolve_public_bins
from dpgm_core.privacy.budget import Budget, Split
from dpgm_core.privacy.holdout import chosen_pairs, unmeasured_pairs
from dpgm_core.privacy.measurement import Measurement, check_range_names, check_structure, measure
from dpgm_core.privacy.mechanism import Mechanism
from dpgm_core.privacy.ranges import RangeNoise, plan_ranges
from dpgm_core.privacy.sensitivity import Sensitivity
from dpgm_core.privacy.terms import Terms, best_guess, flaws
from dpgm_core.sources.contract import AnySource, FileSource, KeyedSource, NamedColumns, Reading, ReducingSource, Source
from dpgm_core.sources.reading import locate
from dpgm_core.sources.related import RelatedSource
from dpgm_core.structure.dag import Dag
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure, StructureReport
from dpgm_core.structure.tables import Tables
from dpgm_core.structure.workload import Workload

__all__ = [
    "FIRST_REQUEST_NOTES",
    "Plan",
    "TableError",
    "budget_notes",
    "check_domain",
    "check_source",
    "check_records",
    "counted_tables",
    "describe_passes",
    "describe_release_passes",
    "describe_session_passes",
    "make_plan",
    "memory_notes",
    "planned_split",
    "range_forecasts",
    "wide_notes",
]


# --------------------------------------------------------------------------------------------------
# Cost and accuracy of a release, from public facts alone

#: Whose guess is nearly sure.
_WEAK_BUDGET = Budget.pure(20)
#: Variances of discrete noise are a little off those of their scales.
_RELATIVE_TOLERANCE = 1e-2


@frozen(kw_only=True)
class TableError:
    """The expected error of one table: its clique, cells, and root mean squared error per cell.

    noise: standard deviation of the noise, records (persons, with normalised contributions); of a contrast that of the
    sum of products, and relative of a cell of the table that all contrasts inside the clique tell. relative: root mean
    squared error of a cell's probability (Proposition 4) at the average cell 1/K, or None without a number of records.
    records_per_row: of the conditional table of a network's family, on average; None of other tables.
    """

    clique: Clique
    cells: int
    noise: float
    relative: float | None
    records_per_row: float | None = None


@frozen(kw_only=True)
class Plan:
    """What a release would cost and how accurate it would be, before any record is read.

    Attributes
    ----------
    structure
        Of the model.
    asked, cost
        The budget, and what is spent of it.
    tables
        What will be measured for the model.
    sensitivity, scale
        Of the tables, and of their widest noise, in their unit: 1/grid of a person with contributions.
    seconds_per_inference
        None without an engine.
    inference_cost
        The engine's description of its sizes, if it has one.
    notes
        What to reconsider.
    unsafe
        Why the guarantee would not hold to the letter (textbook noise), if so.
    unmeasured
        Attributes in no table and determined by no map, of which a model will know nothing.
    contrasts
        Whether the tables stand for sums of products, one each.
    condition
        What the guarantee would be conditional on, if on anything; see `Terms.condition_for`.
    learner_memory, learner_seconds
        Of one fit, bytes of the whole process and CPU seconds; None without a learner's estimate.
    """

    structure: StructureReport
    terms: Terms
    sensitivity: Sensitivity
    asked: Budget
    cost: Budget
    scale: float
    tables: tuple[TableError, ...]
    seconds_per_inference: float | None
    inference_cost: str | None = None
    notes: tuple[str, ...] = ()
    unsafe: str | None = None
    unmeasured: tuple[str, ...] = ()
    contrasts: bool = False
    condition: str | None = None
    learner_memory: int | None = None
    learner_seconds: float | None = None

    def __repr__(self) -> str:
        spreads = spanned([one.noise for one in self.tables])
        tables = f"{len(self.tables)} tables", f"noise of {spreads} records"
        return brief("Plan", *tables, str(self.cost), f"{len(self.notes)} notes", *(["UNSAFE"] if self.unsafe else []))

    def _repr_html_(self) -> Html:
        facts = [("asked", str(self.asked)), ("cost", str(self.cost)), ("relation", self.terms.neighbours.value)]
        facts += [("noise of a table, standard deviation", spanned([one.noise for one in self.tables]))]
        facts += (
            [("seconds per inference", spanned([self.seconds_per_inference]))] if self.seconds_per_inference else []
        )
        if self.learner_memory is not None:
            facts += [("memory of a fit", human_bytes(self.learner_memory))]
        facts += [("not measured", listed(self.unmeasured))] if self.unmeasured else []
        facts += [("cells of the model", thousands(self.structure.cells)), ("treewidth", f"{self.structure.treewidth}")]
        header = ["clique", "cells", "noise", "error of a probability"]
        rows = ((listed(one.clique, 8), one.cells, one.noise, one.relative or "") for one in self.tables)
        notes = first(["notes"], ([clipped(note, 400)] for note in self.notes), len(self.notes))
        stamps = (*flaws(unsafe=[self.unsafe], private=True), *filter(None, [self.condition]))
        return card("Plan", facts, notes, first(header, rows, len(self.tables)), flaws=stamps)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "structure": asdict(self.structure),
            "neighbours": self.terms.neighbours.value,
            "sensitivity": asdict(self.sensitivity),
            "asked": self.asked.to_dict(),
            "cost": self.cost.to_dict(),
            "scale": self.scale,
            "tables": [asdict(table) for table in self.tables],
            "seconds_per_inference": self.seconds_per_inference,
            "inference_cost": self.inference_cost,
            "notes": list(self.notes),
            "unsafe": self.unsafe,
            "unmeasured": list(self.unmeasured),
            "contrasts": self.contrasts,
            "learner_memory": self.learner_memory,
            "learner_seconds": self.learner_seconds,
            "conditions": [] if self.condition is None else [self.condition],
            "contributions": self.terms.to_dict()["contributions"],
        }


def make_plan(
    structure: Structure,
    budget: Budget,
    mechanism: Mechanism,
    inference: Inference | None,
    *,
    terms: Terms,
    records: float | None = None,
    split: Split | str | Mapping[str, Any] = "even",
    measured: Structure | None = None,
) -> Plan:
    """Calibrate, compile and price; touches no data. The calibration is the one that a curator draws from.

    inference: None: of an engine nothing is said. records: a publicly known or guessed number of records. split: how
    the budget is divided over tables, as a curator does it. measured: the tables that will be, for a model over the
    structure; its own when None. Raises BudgetError, OptionError and TooLarge.
    """
    check_records(records)
    check_structure(structure)
    terms.check(structure)
    split = Split.of(split)
    own, left = split.divide(budget)
    tables = structure if measured is None else measured
    check_range_names(split.ranges, structure.domain, terms, tables)
    measurement = measure(mechanism, tables, terms, left, split.tables, split.ranges)
    note = _contrasts_note(measurement, measure(mechanism, tables, terms, left)) if measurement.contrasts else None
    tables = measurement.structure
    holdout = None if own is None else measure(mechanism, chosen_pairs(structure, default_rng(0)), terms, own)
    released = [measurement] if holdout is None else [measurement, holdout]
    cost = Budget.sum(one.cost for one in released)
    noise, weighted = measurement.noise, terms.contributions
    # What one unit of a table is in records, after it was brought to m_g N (see `equalize_totals`).
    tied = np.asarray(tables.multiplicities, np.float64)
    units = np.ones_like(tied) if weighted is None else tied / weighted.wholes(tables)
    deviations = [unit * math.sqrt(one.variance) for one, unit in zip(noise, units.tolist(), strict=True)]
    per_cell = np.sqrt(measurement.variances) if measurement.contrasts else np.asarray(deviations)
    seconds, words = (None, None) if inference is None else _timed(inference, structure)
    dag = None if measured is None else _graph(structure)
    return Plan(
        structure=structure.describe(),
        terms=terms,
        sensitivity=terms.with_one_draw().sensitivity(tables, contrasts=measurement.contrasts),
        asked=budget,
        cost=cost,
        scale=max(math.sqrt(one.variance) if isinstance(one, RangeNoise) else one.event.scale for one in noise),
        tables=_table_errors(tables, deviations, per_cell.tolist(), dag, records),
        seconds_per_inference=seconds,
        inference_cost=words,
        notes=tuple(
            filter(
                None,
                [
                    *budget_notes(budget, records),
                    note,
                    *_range_notes(measurement),
                    _holdout_note(holdout, structure),
                    None if records is None or dag is None else _rows_note(dag, tables, deviations, records),
                    wide_note(one for one in structure.domain if one.name not in tables.untold),
                ],
            )
        ),
        unsafe=measurement.unsafe,
        unmeasured=tables.untold,
        contrasts=measurement.contrasts,
        condition=terms.condition_for({cost.kind: max(one.exchange_factor(cost.kind, terms) for one in released)}),
    )


def _table_errors(
    tables: Structure, deviations: Sequence[float], per_cell: Sequence[float], dag: Dag | None, records: float | None
) -> tuple[TableError, ...]:
    """Return the errors of each table. deviations: of its noise, records. per_cell: of the noise in a cell."""
    return tuple(
        TableError(
            clique=group[0],
            cells=cells,
            noise=deviation,
            relative=None if records is None else _cell_error(1 / cells, error**2, records * len(group)),
            records_per_row=None if records is None or dag is None else _per_row(dag, group[0], records),
        )
        for group, cells, deviation, error in zip(tables.groups, tables.sizes, deviations, per_cell, strict=True)
    )


@one_thread
def _timed(inference: Inference, structure: Structure) -> tuple[float, str | None]:
    """Return the seconds of one call, and the engine's description of its cost."""
    engine = inference.compile(structure)
    zeros = Tables.zeros(structure)
    engine.infer(zeros)
    started = time.perf_counter()
    engine.infer(zeros)
    return time.perf_counter() - started, engine.cost


def _graph(structure: Structure) -> Dag | None:
    try:
        return Dag.of(structure)
    except StructureError:
        return None


def _row_count(dag: Dag, child: str) -> int:
    """Return how many states the parents have together."""
    return math.prod(dag.domain.shape(dag.parents[child]))


def _per_row(dag: Dag, clique: Clique, records: float) -> float | None:
    """Return the mean number of records in a row of a family's conditional table; None for other cliques."""
    if not clique or clique[1:] != dag.parents[clique[0]]:
        return None
    return records / _row_count(dag, clique[0])


def _rows_note(dag: Dag, tables: Structure, deviations: Sequence[float], records: float) -> str | None:
    """Return the note on rows of conditional tables whose noise is wider than they have records.

    A row's number of records is a sum of cells of the measured table that holds the family; so is its noise.
    """
    lost = every = 0
    for child, *above in dag.families:
        rows = _row_count(dag, child)
        table = tables.covering((child, *above))
        every += rows
        if table is None:
            continue
        group, _ = tables.find(table)
        if records / rows < deviations[group] * math.sqrt(tables.sizes[group] / rows):
            lost += rows
    if not lost:
        return None
    return (
        f"{lost:,} of the {every:,} rows of conditional tables have fewer records on average than the noise of their "
        "number has standard deviation: there the model will be what it is without data"
    )


def _contrasts_note(contrasts: Measurement, tables: Measurement) -> str:
    """Return the note on contrasts: what is measured in place of tables, and how noisy it is compared with them."""
    own = contrasts.structure
    ratios = contrasts.ratios_to(tables)
    named = set(map(frozenset, tables.structure.cliques))
    of_named = max(ratio for clique, ratio in zip(own.cliques, ratios, strict=True) if frozenset(clique) in named)
    worse = int(np.sum(ratios > 1 + _RELATIVE_TOLERANCE))
    text = (
        f"measured are {len(own.groups):,} sums of products in place of tables, one for each set inside a clique; that "
        f"of a clique has at most {of_named:.3g} times the noise variance that tables would give it"
    )
    if not worse:
        return text
    return f"{text}, those of {worse:,} smaller sets, which many tables hold, up to {ratios.max():.3g} times as much"


def check_records(records: float | None) -> float | None:
    """Return a publicly known or guessed number of records, or None; BudgetError for anything else.

    >>> check_records(20_000)
    20000
    """
    known = records is None or (isinstance(records, (int, float)) and not isinstance(records, bool))
    if not known or (records is not None and not 1 <= records < 2**53):
        raise BudgetError(f"the number of records must be a number of at least 1 and below 2**53, got {records!r:.40}")
    return records


def range_forecasts(domain: Domain, ranges: Sequence[str], *, gaussian: bool) -> list[str]:
    """Return, for a session with core's noise, by how much windows change the noise of each of these attributes."""
    notes = []
    for name in ranges:
        strategy = plan_ranges(domain[name].size, gaussian=gaussian)
        ratios = (1.0, 1.0) if strategy is None else strategy.over_cells(gaussian=gaussian)
        notes.append(
            f"ranges of {name!r} are measured at the cost of its table: the noise of a range is {ratios[0]:.2f} times "
            f"that of cells, on average, and of one value {ratios[1]:.2f} times"
        )
    return notes


def _range_notes(measurement: Measurement) -> list[str]:
    """Return for each table measured by windows how noisy ranges, and single values, will be."""
    return [
        f"ranges of {group[0][0]!r} are measured: the standard deviation is {noise.range_deviation:.4g} records for a "
        f"range, on average, and {math.sqrt(noise.variance):.4g} for one value"
        for group, noise in zip(measurement.structure.groups, measurement.noise, strict=True)
        if isinstance(noise, RangeNoise)
    ]


def _holdout_note(holdout: Measurement | None, structure: Structure) -> str | None:
    """Return the note on a holdout: what it measures, and how noisy; its pairs are drawn when the run begins."""
    if holdout is None:
        return None
    return (
        f"{holdout.budget} of the budget is set aside for a holdout: {len(holdout.structure.cliques)} of the "
        f"{len(unmeasured_pairs(structure)):,} pairs that no clique holds, drawn at random, with noise of standard "
        f"deviation {math.sqrt(float(holdout.variances[0])):.4g} per cell"
    )


#: Records of a table of which nobody said how many it has.
_FEW_RECORDS = 1000.0


def budget_notes(budget: Budget, records: float | None) -> list[str]:
    """Return notes on a budget that protects nobody.

    A delta above 1 / N would allow publishing one of N records whole; others bound an attacker's guess less than
    epsilon = 20 does. records: N as declared or guessed in public, 1,000 where nobody said; never the number of rows,
    which is data.
    """
    notes, records = [], _FEW_RECORDS if records is None else records
    if budget.kind == "approx" and budget.delta * Fraction(records) > 1:
        notes.append(
            f"delta = {decimal_text(budget.delta)} is above 1/{records:,.0f}: it would allow publishing one of so many "
            f"records as it is; choose a delta well below"
        )
    guess = best_guess(budget)
    if guess > best_guess(_WEAK_BUDGET):
        notes.append(
            f"{budget} gives no meaningful protection: an attacker who knows all other records may tell in "
            f"{100 * guess:.7g} % of cases whether somebody is in the data or what that record holds, a coin in 50 %"
        )
    return notes


def _cell_error(probability: float, variance: float, records: float) -> float:
    """Root mean squared error of a noisy cell as an estimate of a probability mu from N records.

    MSE = mu (1 - mu) / N + variance / N^2: Proposition 4 of Bernstein et al. (2017), where variance = 2 |C|^2 / eps^2.

    >>> round(_cell_error(0.03, 2 * 9**2 / 0.5**2, 1000) ** 2, 7)
    0.0006771
    """
    return math.sqrt(probability * (1 - probability) / records + variance / records**2)


# --------------------------------------------------------------------------------------------------
# Passes over records that are summed elsewhere


def describe_release_passes(source: AnySource, structure: Structure, terms: Terms) -> tuple[str, ...]:
    """Return in how many passes a release counts a structure's tables; nothing for a source that is read here."""
    if not isinstance(source, ReducingSource):
        return ()
    passes = Passes.under(structure, terms.contributions)
    return (f"{_sums(source)} {_tables(len(structure.groups), structure.cells)} in {_passes(passes)}",)


def describe_session_passes(source: AnySource, workload: Workload) -> tuple[str, ...]:
    """Return what a session over a workload counts before it is charged, and what when a step needs it.

    Private bins are as many as they may become.
    """
    if not isinstance(source, ReducingSource):
        return ()
    domain, candidates = workload.domain, workload.candidates
    ahead = candidates_to_count(domain, candidates)
    together = Structure(domain, ahead)
    first = f"{_sums(source)} {_tables(len(ahead), together.cells)} in {_passes(Passes.under(together))}"
    after_bins = f", once the bins of {', '.join(domain.undetermined)} are found" if domain.undetermined else ""
    if len(ahead) == len(candidates):
        return (f"{first}{after_bins or ', before anything is charged'}",)
    left = _tables(len(candidates) - len(ahead), Structure(domain, candidates).cells - together.cells)
    return (f"{first}{after_bins}; {left} more do not fit beside them and are counted when a step asks for them",)


def _sums(source: AnySource) -> str:
    name = default_registry().name_of("source", source)
    return f"source {type(source).__name__ if name is None else repr(name)} sums where its rows are:"


def _tables(number: int, cells: int) -> str:
    return f"{number:,} {'table' if number == 1 else 'tables'} ({human_bytes(8 * cells)})"


def _passes(passes: Passes) -> str:
    number = len(passes.statistics)
    return "one pass" if number == 1 else f"{number} passes, of at most {human_bytes(8 * passes.cells)} each"


# --------------------------------------------------------------------------------------------------
# Notes of a plan, and checks of a source

#: The note on a learner that does not declare what it measures, by its first request to a curator.
FIRST_REQUEST_NOTES: Mapping[str | None, str] = {
    "part": "the learner spends a part of the budget on a first look, which says how the rest is divided over tables; "
    "the noise shown is that of one release of all of it",
    "rounds": "the learner takes many releases of subsampled records; the noise shown is that of one release of all",
    "session": "the learner asks more of the records than tables, step by step; the noise shown is that of one release "
    "of all, which it does not take",
}


def planned_split(learner: Learner, structure: Structure, split: Split) -> tuple[Structure | None, Split]:
    """Return the tables that the learner declares, if any, and the split of the budget, its own if it has one."""
    measured, own = planned_tables(learner, structure)
    return measured, split if own is None else evolve(split, tables=own)


def counted_tables(plan: Plan, structure: Structure) -> Structure:
    """Return the tables that the source will count. structure: those of the plan, unless contrasts take their place."""
    return Structure(structure.domain, [table.clique for table in plan.tables]) if plan.contrasts else structure


def memory_notes(memory: int) -> list[str]:
    """Return a note where the largest model that a selector may choose takes more memory than the machine has."""
    limit = memory_limit()
    if limit is None or memory <= limit:
        return []
    return [
        f"the largest model that the selector may choose would take the learner about {human_bytes(memory)} of memory, "
        f"and this machine has {human_bytes(limit)}; a lower max_fit_seconds or max_fit_bytes rules that out"
    ]


def wide_notes(domain: Domain, attributes: Iterable[str]) -> list[str]:
    """Return the note on attributes with wide bins, if there are any."""
    return [*filter(None, [wide_note(domain[name] for name in attributes)])]


def describe_passes(source: AnySource | None, counted: Structure | Workload, terms: Terms) -> tuple[str, ...]:
    """Return the notes on passes over records that are summed elsewhere, for a release or a session."""
    if source is None:
        return ()
    if isinstance(counted, Structure):
        return describe_release_passes(source, counted, terms)
    return describe_session_passes(source, counted)


def check_domain(domain: Domain, inference: Inference | None) -> None:
    """Refuse constraints that no record meets, or that the engine ignores; see `check_constraints`."""
    if domain.scopes:
        check_constraints(domain, inference, JunctionTree())


def check_source(source: AnySource, structure: Structure, terms: Terms) -> None:
    """Raise what the source would refuse: its file, names and types of columns."""
    parts = [part for part, *_ in source.tables] if isinstance(source, RelatedSource) else [source]
    for part in parts:
        path = part.path if isinstance(part, FileSource) else None
        local = isinstance(path, (str, Path)) and not is_url(str(path))  # a URL is checked by its source
        if local and not Path(str(path)).exists() and not glob.has_magic(str(path)):
            raise DataError(f"there is no data file {path}; say in the spec where the records are")
    redact_source_errors(source, lambda: _read_nothing(source, structure, terms))


def _read_nothing(source: AnySource, structure: Structure, terms: Terms) -> None:
    columns: Sequence[str] = columns_of(structure)
    if isinstance(source, ReducingSource):
        domain = resolve_public_bins(structure.domain, columns)
        domain = domain.with_attributes({one.name: one.grid() for one in domain if one.private is not None})
        reading = Reading(
            domain=domain, columns=tuple(columns), person=terms.person, rows_per_person=terms.rows_per_person
        )
        with pinned(source, reading):
            return
    if isinstance(source, RelatedSource):
        for part, domain, key in source.tables:
            _read_no_key(part, domain, key)
        return
    if terms.person is not None and isinstance(source, KeyedSource):
        _read_no_key(source, structure.domain, terms.person)
        return
    source.batches(structure.domain, columns)
    _locate(source, columns)


def _read_no_key(source: KeyedSource, domain: Domain, key: str) -> None:
    source.keyed_batches(domain, domain.names, key)
    _locate(source, [*domain.names, key])


def _locate(source: Source, columns: Sequence[str]) -> None:
    if isinstance(source, NamedColumns):  # of one that is a generator, and so has not looked yet
        locate(f"source {type(source).__name__}", columns, source.names())
