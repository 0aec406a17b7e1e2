"""Records of an open session: codes kept in memory, or records pinned where they are.

What a session needs first is counted before it is paid for, so that records that cannot be read cost nothing: the grids
of private bins, else, where records are summed elsewhere, all candidate tables that fit. Where those are all, nothing
after the charge depends on the engine but gradients.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from weakref import WeakSet

from dpgm_core.arrays import IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.counting.kernel import Counted
from dpgm_core.counting.rows import Held, pinned
from dpgm_core.counting.subsample import Persons, read_persons
from dpgm_core.curator.binning import count_grids
from dpgm_core.curator.counted import CountedTables
from dpgm_core.curator.shield import redact_source_errors
from dpgm_core.curator.single import Single
from dpgm_core.domain import Domain
from dpgm_core.errors import BudgetError, DataError, DpgmError
from dpgm_core.progress import Progress, silent
from dpgm_core.sources.contract import AnySource, Reading, ReducingSource, Source
from dpgm_core.sources.persons import by_person
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["HeldRecords", "check_rows", "read_here"]

#: What is pinned by now; and what was when this process was forked, which is the other's to leave. A context that is
#: merely forgotten is left as well, and would close the connection under the original.
_pinned: WeakSet[ExitStack] = WeakSet()
_of_others: list[ExitStack] = []

if sys.platform != "win32":  # where nothing forks
    os.register_at_fork(after_in_child=lambda: _of_others.extend(_pinned))


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


def read_here(source: Source, reading: Reading, progress: Progress) -> Persons:
    """Read and code all records into memory."""
    rows = by_person(source, reading.person, reading.rows_per_person)
    progress("counting: the records are read", 0, None)
    persons = redact_source_errors(source, lambda: read_persons(rows, reading.domain, reading.columns))
    progress("counting: the records are read", 1, 1)
    return persons


class HeldRecords(Single):
    """Records to be read by `open`, kept until `close`. reading: what of them. ahead: candidates of the workload."""

    def __init__(
        self, source: AnySource, reading: Reading, ahead: Sequence[Clique], progress: Progress = silent
    ) -> None:
        super().__init__()
        elsewhere = isinstance(source, ReducingSource)
        self.source, self._reading = source, reading
        self._rows: Held | None = None
        self._grids: list[Counted] = []
        self._counted = CountedTables(source, *((ahead, progress) if elsewhere else ()))
        self._progress = progress
        self._contexts = ExitStack()
        _pinned.add(self._contexts)

    def open(self, grids: Mapping[str, Attribute]) -> None:
        """Read or pin them, and count what is counted before the charge. grids: of private bins, by which they are
        read."""
        source, own = self.source, self._reading
        if isinstance(source, ReducingSource):
            self._rows = redact_source_errors(source, lambda: self._contexts.enter_context(pinned(source, own)))
            if not grids:
                self._counted.look_ahead(own.domain, self.rows)
        else:
            self._rows = persons = read_here(source, own, self._progress)
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
    def rows(self) -> Held:
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
        return self._counted.of(structure, self.rows)

    def recode(self, codes: Mapping[str, IntArray], domain: Domain) -> None:
        """Have the records by fewer codes. codes: attribute -> the new code of each of its codes. domain: then."""
        if codes:
            self._rows = self.rows.recoded(codes, domain)
            self._counted.coarsen(codes, domain)

    def close(self) -> None:
        """Forget all, and leave the source. What fails in that is dropped: nothing depends on it any more."""
        self._rows = None
        self._grids.clear()
        self._counted.clear()
        if not self.is_forked:  # what is pinned is the original's
            with suppress(DpgmError):
                redact_source_errors(self.source, self._contexts.close)

    def __repr__(self) -> str:
        return "HeldRecords(hidden)"
