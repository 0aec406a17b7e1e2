"""Records of a session, and the tables counted from them."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from weakref import WeakSet

import numpy as np

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.progress import Progress, silent
from dpgm_core.counting.rows import Persons, Rows, StableRows, by_person, pinned, read_persons
from dpgm_core.counting.table_counts import Counted, Passes
from dpgm_core.curator.funds import Single
from dpgm_core.curator.redaction import redact_source_errors
from dpgm_core.curator.steps import count_grids
from dpgm_core.domain.attribute import Attribute
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import BudgetError, DataError, DpgmError
from dpgm_core.privacy.terms import Terms
from dpgm_core.sources.contract import AnySource, Reading, ReducingSource, Source
from dpgm_core.sources.related import RelatedSource
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "CountedTables",
    "HeldRecords",
    "candidates_to_count",
    "check_related",
    "check_rows",
    "choose_fitting",
    "read_here",
]


# --------------------------------------------------------------------------------------------------
# True tables of a session, each counted once
#
# Of records in memory a table is counted when a step first needs it. Where records are summed elsewhere a pass is dear:
# all candidates that fit are counted together, before the charge if that is possible.

#: Most bytes of true tables that are kept of records in memory; and of candidates counted ahead of all steps.
_MAX_KEPT_BYTES, _MAX_AHEAD_BYTES = 2**29, 2**27


class CountedTables:
    """True counts by candidate. source: whose errors are dropped. ahead: candidates to be counted together.

    progress: of passes over records that are elsewhere. records: how many there are, once it is known. draws: the rows
    hold each record so many times, and tables are means.
    """

    def __init__(
        self, source: object, ahead: Sequence[Clique] = (), progress: Progress = silent, *, draws: int = 1
    ) -> None:
        self._source, self._progress, self._draws = source, progress, draws
        self._ahead = tuple(ahead)
        self._kept: dict[Clique, IntArray] = {}
        self.records: int | None = None

    def look_ahead(self, domain: Domain, rows: Rows) -> None:
        """Count the candidates that fit, before the first step."""
        self._count(Structure(domain, candidates_to_count(domain, self._ahead)), rows)

    def of(self, structure: Structure, rows: Rows) -> Tables:
        """True counts of a structure's cliques, (cells,); always of the same records, until `clear`."""
        missing = [clique for clique in structure.cliques if clique not in self._kept]
        tables = self._kept
        if missing:
            domain, known = structure.domain, {*self._kept, *missing}
            room = self._room - 8 * Structure(domain, missing).cells
            also = choose_fitting(domain, [clique for clique in self._ahead if clique not in known], room)
            fresh = self._count(Structure(domain, [*missing, *also]), rows).tables
            tables = dict(_tables_by_clique(fresh)) | self._kept
        return Tables(structure, np.concatenate([tables[clique] for clique in structure.cliques]))

    def coarsen(self, merges: Mapping[str, IntArray], domain: Domain) -> None:
        """Have what was counted by fewer codes. merges: attribute -> the new code of each of its codes, as before."""
        for clique, values in self._kept.items():
            if any(name in merges for name in clique):
                self._kept[clique] = _merge_codes(values, clique, merges, domain)

    def clear(self) -> None:
        """Forget all tables."""
        self._kept.clear()

    @property
    def _room(self) -> int:
        return (_MAX_AHEAD_BYTES if self._ahead else _MAX_KEPT_BYTES) - 8 * sum(map(len, self._kept.values()))

    def _count(self, structure: Structure, rows: Rows) -> Counted:
        """Count, and keep the tables for which there is room; those of earlier steps stay, as later steps use them
        again."""
        passes = Passes.under(structure) if self._ahead else Passes.in_memory(structure)
        records = None if self.records is None else self.records * self._draws
        counted = redact_source_errors(self._source, lambda: passes.count(rows, self._progress, records))
        counted = counted.mean(self._draws)
        self.records = counted.records
        domain, room = structure.domain, self._room
        fitted = choose_fitting(domain, structure.cliques, room)
        whole = len(fitted) == len(structure.cliques)
        tables = dict(_tables_by_clique(counted.tables))
        # A part of it alone is copied, so that the rest can go.
        self._kept |= {clique: tables[clique] if whole else tables[clique].copy() for clique in fitted}
        self._kept[()] = np.array([counted.records])
        return counted

    def __repr__(self) -> str:
        return f"CountedTables({len(self._kept)} hidden)"


def candidates_to_count(domain: Domain, candidates: Sequence[Clique]) -> list[Clique]:
    """Return the candidates that are counted before the first step; at least one, which counts the records."""
    smallest = min(candidates, key=lambda clique: math.prod(domain.shape(clique)))
    return choose_fitting(domain, candidates, _MAX_AHEAD_BYTES) or [smallest]


def choose_fitting(domain: Domain, cliques: Sequence[Clique], room: int) -> list[Clique]:
    """The cliques whose tables fit into so many bytes together, in turn.

    >>> choose_fitting(Domain.from_sizes({"a": 2, "b": 3}), [("a",), ("a", "b"), ("b",)], room=40)
    [('a',), ('b',)]
    """
    chosen = []
    for clique in cliques:
        size = 8 * math.prod(domain.shape(clique))
        if size <= room:
            chosen.append(clique)
            room -= size
    return chosen


def _tables_by_clique(tables: Tables) -> Iterator[tuple[Clique, IntArray]]:
    """Each clique's cells; none of them is tied."""
    for clique, part in zip(tables.structure.cliques, tables.structure.slices, strict=True):
        yield clique, tables.values[part]


def _merge_codes(values: IntArray, clique: Clique, merges: Mapping[str, IntArray], domain: Domain) -> IntArray:
    """The same counts by fewer codes: cells whose codes became one are added up."""
    sizes = [len(merges[name]) if name in merges else domain[name].size for name in clique]
    table = values.reshape(sizes)
    for axis, name in enumerate(clique):
        if name in merges:
            lines = np.moveaxis(table, axis, 0)
            fewer = np.zeros((domain[name].size, *lines.shape[1:]), table.dtype)
            np.add.at(fewer, merges[name], lines)
            table = np.moveaxis(fewer, 0, axis)
    return np.ascontiguousarray(table).reshape(-1)


# --------------------------------------------------------------------------------------------------
# Records of an open session: codes in memory, or records pinned where they are
#
# What a session needs first is counted before it is paid for, so that records that cannot be read cost nothing: the
# grids of private bins, else, where records are summed elsewhere, all candidate tables that fit. Where those are all,
# nothing after the charge depends on the engine but gradients.

#: Contexts of pinned records; and those of the process that this one was forked from. The latter are referenced for
#: ever: collecting one would leave it, and close the connection of the original process.
_pinned: WeakSet[ExitStack] = WeakSet()
_of_parent_process: list[ExitStack] = []

if sys.platform != "win32":  # where nothing forks
    os.register_at_fork(after_in_child=lambda: _of_parent_process.extend(_pinned))


def check_rows(source: AnySource, what: str) -> None:
    """Refuse, with DataError, what takes records one by one, of a source that sums them where they are.

    what: in the plural, such as "rounds of subsamples".
    """
    if isinstance(source, ReducingSource):
        raise DataError(
            f"source {type(source).__name__} sums records where they are, and {what} are no sum: work that an engine "
            "tries again would draw other coins; use a learner and a selector of tables, such as 'eb-map' and 'aim', "
            "or give the records as files or a data frame"
        )


def check_related(source: AnySource, terms: Terms) -> None:
    """Refuse, with DataError, records of two related tables under other terms, and such terms of other records."""
    stated = source.related if isinstance(source, RelatedSource) else None
    if stated is None and terms.related is not None:
        raise DataError(
            f"the terms state two related tables, and source {type(source).__name__} is one table; give "
            "RelatedSource(root=..., children=..., related=...)"
        )
    if stated != terms.related:
        raise DataError(
            "the records are two related tables, and the terms do not state them as the source does; give both the "
            "same, as in terms = Terms(neighbours=..., related=source.related)"
        )


def repeated(source: Any, draws: int) -> Any:
    """The source of which tables are counted: of two related tables with just so many records for each root."""
    return source.repeated(draws) if isinstance(source, RelatedSource) else source


def read_here(source: Source, reading: Reading, progress: Progress) -> Persons:
    """Read and code all records into memory."""
    rows = by_person(source, reading.person, reading.rows_per_person)
    progress("counting: the records are read", 0, None)
    persons = redact_source_errors(source, lambda: read_persons(rows, reading.domain, reading.columns))
    progress("counting: the records are read", 1, 1)
    return persons


class HeldRecords(Single):
    """Records to be read by `open`, kept until `close`. reading: what of them. ahead: candidates of the workload.

    draws: tables are means over so many records of each root; all else is of the first of these.
    """

    def __init__(
        self,
        source: AnySource,
        reading: Reading,
        ahead: Sequence[Clique],
        progress: Progress = silent,
        draws: int = 1,
    ) -> None:
        super().__init__()
        elsewhere = isinstance(source, ReducingSource)
        self.source, self._reading = source, reading
        self._rows: StableRows | None = None
        self._drawn: StableRows | None = None  # what tables are counted of
        self._draws = draws
        self._grids: list[Counted] = []
        self._counted = CountedTables(source, *((ahead, progress) if elsewhere else ()), draws=draws)
        self._progress = progress
        self._contexts = ExitStack()
        _pinned.add(self._contexts)

    def open(self, grids: Mapping[str, Attribute]) -> None:
        """Read or pin them, and count what is counted before the charge. grids: of private bins, by which they are
        read."""
        source, own = self.source, self._reading
        if isinstance(source, ReducingSource):
            self._rows = redact_source_errors(source, lambda: self._contexts.enter_context(pinned(source, own)))
            self._drawn = self._rows
            if not grids:
                self._counted.look_ahead(own.domain, self.rows)
        else:
            self._drawn = drawn = read_here(repeated(source, self._draws), own, self._progress)
            self._rows = persons = drawn.first_of(self._draws)
            self._counted.records = persons.records
        if grids:
            counted = redact_source_errors(source, lambda: count_grids(grids, self.rows, own.domain))
            self._grids, self._counted.records = [counted], counted.records

    @property
    def records(self) -> int:
        """How many there are."""
        assert self._counted.records is not None  # it was opened
        return self._counted.records

    @property
    def rows(self) -> StableRows:
        """What is summed."""
        if self._rows is None:
            raise BudgetError("the session was closed; its records are gone")
        return self._rows

    @property
    def persons(self) -> Persons:
        """The rows themselves, for what is no sum."""
        if not isinstance(self.rows, Persons):
            check_rows(self.source, "votes")
        assert isinstance(self.rows, Persons)
        return self.rows

    def grids(self) -> Counted:
        """The counts of the grids, once."""
        return self._grids.pop()

    def tables(self, structure: Structure) -> Tables:
        """True counts of candidates, (cells,)."""
        rows = self.rows  # refused where it was closed
        return self._counted.of(structure, self._drawn or rows)

    def recode(self, codes: Mapping[str, IntArray], domain: Domain) -> None:
        """Have the records by fewer codes. codes: attribute -> the new code of each of its codes. domain: then."""
        if codes:
            one = self._drawn is self._rows
            self._rows = self.rows.recoded(codes, domain)
            self._drawn = self._rows if one or self._drawn is None else self._drawn.recoded(codes, domain)
            self._counted.coarsen(codes, domain)

    def close(self) -> None:
        """Forget all, and leave the source; an error of the source is dropped, as nothing depends on it any more."""
        self._rows = self._drawn = None
        self._grids.clear()
        self._counted.clear()
        if not self.is_forked:  # what is pinned is the original's
            with suppress(DpgmError):
                redact_source_errors(self.source, self._contexts.close)

    def __repr__(self) -> str:
        return "HeldRecords(hidden)"
