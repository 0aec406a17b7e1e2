"""Funds of a curator: its budget, charges and release files, and the bases of what spends them once and draws noise."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, islice
from os.path import lexists
from pathlib import Path
from threading import Lock, RLock
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, SupportsIndex, TypeVar

from attrs import evolve

from dpgm_core._util.files import RELEASE_FILE, check_writable, numbered_path
from dpgm_core._util.randomness import Randomness
from dpgm_core.curator.redaction import strip_traceback
from dpgm_core.errors import BudgetError, ModelFileError, OptionError, Overspent
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.saving import Room, save_elsewhere
from dpgm_core.releases.totals import estimate_total
from dpgm_core.structure.tables import Tables

__all__ = ["Funds", "Measurer", "Receipt", "Single", "Turns"]


# --- Bases of what spends ------------------------------------------------------------------------
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
        return tables, *estimate_total(tables, measurement.total_variances, weighted, contrasts=measurement.contrasts)

    def _make_release(
        self, measurement: Measurement, tables: Tables, total: float, variance: float, **facts: Any
    ) -> NoisyTables:
        """The release of what was drawn. facts: what else it says, such as another cost than the measurement's."""
        self.check_process()  # noise that forks while it is drawn must not come back twice
        own: dict[str, Any] = {"terms": self._terms, "cost": measurement.cost}
        return NoisyTables(
            tables=tables,
            measurement=measurement,
            total=total,
            total_variance=variance,
            private=bool(self._randomness.private),
            **own | facts,
        )


# --- Payments -------------------------------------------------------------------------------------


class Receipt(Single):
    """One payment.

    Attributes
    ----------
    number
        Of the release, from 1.
    first
        The file of the first release; None where none is saved.
    cost
        Of what is released for it.
    entry
        The ledger's number for the payment; None without a ledger.
    holdout
        The receipt of the holdout, where the same charge paid for it.
    """

    def __init__(
        self, number: int, ledger: Ledger | None, first: Path | None, cost: Budget, validated: bool = False
    ) -> None:
        super().__init__()
        self.number, self.ledger, self.first, self.cost = number, ledger, first, cost
        self._validated = validated
        self.entry: int | None = None
        self._room: Room | None = None
        self.holdout: Receipt | None = None

    @property
    def path(self) -> Path | None:
        """Where its release is to be saved."""
        return None if self.first is None else numbered_path(self.first, self.number)

    @property
    def provenance(self) -> dict[str, object]:
        """What a release says of its payment, and of whether the owner had compared records with its domain."""
        paid: dict[str, object] = {} if self.ledger is None else self.ledger.provenance(self.entry)
        return paid | ({"validated": True} if self._validated else {})

    def make_room(self, size: int) -> None:
        """Take the space of its file, bytes; ModelFileError where there is none."""
        if self.path is not None:
            self._room = Room(self.path, size)

    def leave_room(self) -> None:
        """Give space back that was not used."""
        for one in (self._room, None if self.holdout is None else self.holdout._room):
            if one is not None:
                one.close()

    def save(self, release: NoisyTables) -> NoisyTables:
        """Save the release that was paid for; return it with its path.

        A file that appeared since the name was checked is not replaced: the next free name serves. Where the folder
        cannot be written to, the release is saved elsewhere (`save_elsewhere`) and carries the reason.
        """
        if self.first is None:
            return release
        for number in count(self.number):
            path = numbered_path(self.first, number)
            if not lexists(path):
                try:
                    release.write(path, part=self._part)
                except ModelFileError as error:
                    if not lexists(path):  # no other's file is in the way
                        return self._elsewhere(path, release, error)
                else:
                    break
        return evolve(release, saved_as=path)

    @property
    def _part(self) -> Path | None:
        return None if self._room is None else self._room.part

    def _elsewhere(self, path: Path, release: NoisyTables, error: ModelFileError) -> NoisyTables:
        ledger = None if self.ledger is None else self.ledger.path
        return evolve(release, saved_as=save_elsewhere(path, error, ledger, release.write), save_error=str(error))

    def rewrite(self, release: NoisyTables) -> NoisyTables:
        """Save a release that grows, over its own earlier file."""
        if release.saved_as is None:
            release = self.save(release)
        else:
            try:
                release.write(release.saved_as, replaces=RELEASE_FILE, part=self._part)
            except ModelFileError as error:
                release = self._elsewhere(release.saved_as, release, error)
        if self._room is not None and release.saved_as is not None:
            with suppress(ModelFileError, OSError):  # the next one is written while this one is still there
                self._room = Room(release.saved_as, 2 * release.saved_as.stat().st_size)
        return release

    def mark_released(self) -> None:
        """Tell the ledger that the release was saved."""
        self.leave_room()
        if self.first is not None and self.ledger is not None and self.entry is not None:
            self.ledger.mark_released(self.entry)


class Funds(Single):
    """The budget of one curator. ledger: charged before any noise is drawn, or None. save_to: the first release's file.

    price: what the ledger is charged for the whole budget, with the first payment; None: what each payment costs.
    Raises BudgetError and OptionError for what is no budget, ledger or file name.
    """

    def __init__(
        self,
        budget: Budget,
        ledger: Ledger | None = None,
        save_to: str | Path | None = None,
        *,
        validated: bool = False,
        price: Budget | None = None,
    ) -> None:
        super().__init__()
        check_budget(budget)
        if budget.is_zero:
            raise BudgetError(f"budget is {budget}; it must be positive")
        if ledger is not None and not isinstance(ledger, Ledger):
            raise OptionError(
                f"ledger must be a Ledger, or None for no ledger, got {type(ledger).__name__}; use Ledger.open(path)"
            )
        if save_to is not None and not isinstance(save_to, (str, Path)):
            raise OptionError(f"the file for the release must be a path or a text, got {type(save_to).__name__}")
        self.budget = budget
        self._spent = Budget.zero(budget.kind)
        self._reserved: Budget | None = None  # also once it is paid for, or being paid for
        self._ledger, self._save_to = ledger, None if save_to is None else Path(save_to)
        self._validated = validated
        self._price, self._paid = price, list[int]()  # the entry that paid the price
        self._lock = Lock()
        self._numbers: set[int] = set()  # of the releases made or under way, for the names of their files

    @property
    def saves(self) -> bool:
        """Whether releases are saved."""
        return self._save_to is not None

    @property
    def ledger(self) -> Ledger | None:
        """What is charged."""
        return self._ledger

    def reserve(self, cost: Budget) -> None:
        """Reserve a cost beyond the budget, to be paid in one charge with the first payment."""
        self._reserved = cost

    @property
    def remaining(self) -> Budget:
        """What may still be spent."""
        return self.budget - self._spent

    def resolve(self, budget: Budget | None) -> Budget:
        """Return the budget of a request: `budget`, or all that remains when None. Raises BudgetError or Overspent."""
        resolved = self.remaining if budget is None else budget
        check_budget(resolved)
        if resolved.is_zero:
            raise Overspent(f"nothing remains of {self.budget}")
        if not resolved <= self.remaining:
            raise Overspent(f"{resolved} was asked, but only {self.remaining} remains of {self.budget}")
        return resolved

    @contextmanager
    def charge(
        self, cost: Budget, conditions: tuple[str, ...] = (), note: str = "", sizes: Sequence[int] = ()
    ) -> Iterator[Receipt]:
        """Take `cost` from the budget, so that no other thread can spend it; charge the ledger when the body is done.

        conditions, note: for the ledger's entry. sizes: of the files of the release and of its holdout, bytes; so much
        space is taken before the body (`Receipt.leave_room` gives back what is left). The body reads and counts; noise
        is drawn after it. When the body or the charge fails, the cost is given back and nothing was charged. The first
        payment has a second receipt, `holdout`, for what was reserved, and one charge covers both. Raises Overspent,
        and ModelFileError where the release could not be saved.
        """
        self.check_process()  # before the lock, which a fork may have left closed
        with self._lock:
            if not cost <= self.remaining:
                raise Overspent(f"this release costs {cost}, but only {self.remaining} remains of {self.budget}")
            reserved = self._reserved
            whole = cost if reserved is None else cost + reserved
            if self._price is not None and not self._paid and not self._spent.is_zero:
                raise BudgetError("the first payment of this budget is being made; ask again when it is")
            due = whole if self._price is None else self._price
            if self._ledger is not None and not self._paid:
                self._ledger.check(due)
            numbers = self._free_numbers(1 if reserved is None else 2)
            costs = [cost] if reserved is None else [cost, reserved]
            receipt, *others = [
                Receipt(number, self._ledger, self._save_to, part, self._validated)
                for number, part in zip(sorted(numbers), costs, strict=True)
            ]
            for one in (receipt, *others):
                if one.path is not None:
                    check_writable(one.path)  # better now than after the charge
            self._spent, self._reserved = self._spent + cost, None
            self._numbers |= numbers
        receipt.holdout = others[0] if others else None
        try:
            for one, size in zip((receipt, *others), sizes, strict=False):
                one.make_room(size)
            yield receipt
            self.check_process()  # a source that forks while it is read must not come back twice
            if self._paid:
                (receipt.entry,) = self._paid
            elif self._ledger is not None:
                receipt.entry = self._ledger.charge(due, note=note, conditions=conditions)
                self._paid += [] if self._price is None else [receipt.entry]
            for one in others:
                one.entry = receipt.entry
        except BaseException:
            receipt.leave_room()
            with self._lock:
                self._spent = self._spent - cost
                self._numbers -= numbers
                if reserved is not None:
                    self._reserved = reserved
            raise

    def _free_numbers(self, count_needed: int) -> set[int]:
        free = (number for number in count(1) if number not in self._numbers and not self._is_taken(number))
        return set(islice(free, count_needed))

    def _is_taken(self, number: int) -> bool:
        """Whether another has the name of a later release. The first one's was chosen, so there it is refused."""
        return number > 1 and self._save_to is not None and lexists(numbered_path(self._save_to, number))
