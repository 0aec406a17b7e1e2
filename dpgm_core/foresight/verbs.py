"""Notes of a plan, and checks of a source that read no record."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve

from dpgm_core.counting.rows import pinned
from dpgm_core.counting.statistic import columns_of
from dpgm_core.curator.shield import redact_source_errors
from dpgm_core.errors import DataError
from dpgm_core.foresight.passes import describe_release_passes, describe_session_passes
from dpgm_core.foresight.plans import Plan
from dpgm_core.learning.ahead import planned_tables
from dpgm_core.learning.contract import Learner
from dpgm_core.learning.resources import memory_limit
from dpgm_core.noise.bisection import resolve_public_bins
from dpgm_core.noise.check import Split
from dpgm_core.places import is_url
from dpgm_core.privacy.terms import Terms
from dpgm_core.sources.contract import AnySource, FileSource, KeyedSource, NamedColumns, Reading, ReducingSource
from dpgm_core.sources.reading import locate
from dpgm_core.structure import Structure, human_bytes
from dpgm_core.workload import Workload

__all__ = ["FIRST_REQUEST_NOTES", "check_source", "counted_tables", "describe_passes", "memory_notes", "planned_split"]

#: The note on a learner that does not declare what it measures, by its first request to a curator.
FIRST_REQUEST_NOTES: Mapping[str | None, str] = {
    "part": "the learner spends a part of the budget on a first look, which says how the rest is divided over tables; "
    "the noise shown is that of one release of all of it",
    "rounds": "the learner takes many releases of subsampled records; the noise shown is that of one release of all",
    "session": "the learner asks more of the records than tables, step by step; the noise shown is that of one release "
    "of all, which it does not take",
}


def planned_split(learner: Learner, structure: Structure, split: Split) -> tuple[Structure | None, Split]:
    """The tables that the learner declares, if it does, and the split of the budget, by its own rule if it has one."""
    measured, own = planned_tables(learner, structure)
    return measured, split if own is None else evolve(split, tables=own)


def counted_tables(plan: Plan, structure: Structure) -> Structure:
    """The tables that the source will count. structure: those of the plan, unless contrasts take their place."""
    return Structure(structure.domain, [table.clique for table in plan.tables]) if plan.contrasts else structure


def memory_notes(memory: int) -> list[str]:
    """A note where the largest model that a selector may choose takes more memory than the machine has."""
    limit = memory_limit()
    if limit is None or memory <= limit:
        return []
    return [
        f"the largest model that the selector may choose would take the learner about {human_bytes(memory)} of memory, "
        f"and this machine has {human_bytes(limit)}; a lower max_model_cells rules that out"
    ]


def describe_passes(source: AnySource | None, counted: Structure | Workload, terms: Terms) -> tuple[str, ...]:
    """The notes on passes over records that are summed elsewhere, for a release or a session."""
    if source is None:
        return ()
    if isinstance(counted, Structure):
        return describe_release_passes(source, counted, terms)
    return describe_session_passes(source, counted)


def check_source(source: AnySource, structure: Structure, terms: Terms) -> None:
    """Raise what the source would refuse of its file, names and types."""
    path = source.path if isinstance(source, FileSource) else None
    local = isinstance(path, (str, Path)) and not is_url(str(path))  # a URL is its source's to look for
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
    if terms.person is not None and isinstance(source, KeyedSource):
        columns = [*structure.domain.names, terms.person]
        source.keyed_batches(structure.domain, structure.domain.names, terms.person)
    else:
        source.batches(structure.domain, columns)
    if isinstance(source, NamedColumns):  # of one that is a generator, and so has not looked yet
        locate(f"source {type(source).__name__}", columns, source.names())
