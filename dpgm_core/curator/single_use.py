"""Bases of what is used once: it refuses to be copied, threads take turns at it, and its noise is drawn here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, SupportsIndex, TypeVar

from dpgm_core._util.randomness import Randomness
from dpgm_core.curator.redaction import strip_traceback
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.totals import estimate_total
from dpgm_core.structure.tables import Tables

__all__ = ["Measurer", "Single", "Turns"]

# A ledger would count the charges of a copy, but not use of rounds that were paid for before; without a ledger nothing
# counts either.

Records = TypeVar("Records")

# Which process this is: numbers of processes come again, and start at 1 in every container, so forks are counted too.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if sys.platform != "win32":  # where nothing forks
    os.register_at_fork(after_in_child=_count_fork)


class Single:
    """Base of what may be spent once: refuses copy, deepcopy and pickle, and work in a process forked from its own.

    >>> import copy
    >>> copy.copy(Single())
    Traceback (most recent call last):
    dpgm_core.errors.BudgetError: a Single was to be copied or pickled, which would spend its budget twice; ...
    """

    def __init__(self) -> None:
        self._home = (os.getpid(), _forks)

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked after this was made, so that the original lives elsewhere."""
        return self._home != (os.getpid(), _forks)

    def check_process(self) -> None:
        """Raise BudgetError in a process that was forked after this was made; to be called before anything is spent."""
        if self.is_forked:
            raise BudgetError(
                f"this {type(self).__name__} was made before the process was forked, and its copy could spend the same "
                "budget; make a curator in each process, with one ledger that adds them up"
            )

    def __copy__(self) -> NoReturn:
        self._refuse_copy()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse_copy()

    def __replace__(self, /, **changes: object) -> NoReturn:  # what copy.replace calls
        self._refuse_copy()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._refuse_copy()

    def _refuse_copy(self) -> NoReturn:
        raise BudgetError(
            f"a {type(self).__name__} was to be copied or pickled, which would spend its budget twice; hand over the "
            "object itself, or the releases it made; another process makes a curator of its own, with the same ledger"
        )


class Turns(Single, Generic[Records]):
    """Base of what hands out paid-for steps one after the other: threads take turns, and no step begins another.

    records: those behind the steps, which are dropped when the context is left.
    """

    def __init__(self, records: Records | None = None) -> None:
        super().__init__()
        self._lock, self._at_work = RLock(), False
        self._open_records = records

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One thread at a time; what is called while a step is drawn cannot draw another, or close them."""
        self.check_process()  # before the lock, which a fork may have left closed
        with self._lock:
            if self._at_work:
                raise BudgetError(
                    f"this {type(self).__name__} was used by what is called while one of its steps is drawn; wait "
                    "until it is"
                )
            try:
                self._at_work = True
                yield
            finally:
                self._at_work = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.is_forked:  # the file and the ledger's mark are the original's
            self._open_records = None
            return
        with self.turn():
            records, self._open_records = self._open_records, None
            if records is not None:
                self._closed(records)

    def _closed(self, records: Records) -> None:
        """What else is done when the context is left, once. records: what was dropped."""


class Measurer(Single):
    """Base of what draws noise on true tables and makes releases of them. A subclass sets `_terms`, `_randomness`."""

    _terms: Terms
    _randomness: Randomness

    def _measure(
        self, measurement: Measurement, count: Callable[[], Tables], stated: float
    ) -> tuple[Tables, float, float]:
        """Return the tables with fresh noise, N and its variance.

        count: the true tables. stated: N as the terms state it, 0 where it is estimated. The true number of records
        must be no local variable here: an error's frames are shown.
        """
        drawn = measurement if measurement.contrasts else measurement.table_by_table()  # many contrasts at once
        tables = strip_traceback(lambda: drawn.draw(count(), self._randomness, stated))
        if stated:
            return tables, stated, 0.0
        weighted = self._terms.contributions
        return tables, *estimate_total(tables, measurement.variances, weighted, contrasts=measurement.contrasts)

    def _make_release(
        self, measurement: Measurement, tables: Tables, total: float, variance: float, **facts: Any
    ) -> NoisyTables:
        """The release of what was drawn. facts: what else it says, such as another cost than the measurement's."""
        self.check_process()  # noise that forks while it is drawn must not come back twice
        return NoisyTables(
            tables=tables,
            measurement=measurement,
            terms=self._terms,
            total=total,
            total_variance=variance,
            private=bool(self._randomness.private),
            **{"cost": measurement.cost} | facts,
        )
