"""Funds of a curator: its budget, charges and release files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, islice
from os.path import lexists
from pathlib import Path
from threading import Lock

from attrs import evolve

from dpgm_core._util.files import RELEASE_FILE, check_writable, numbered_path
from dpgm_core.curator.single_use import Single
from dpgm_core.errors import BudgetError, ModelFileError, OptionError, Overspent
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.ledger import Ledger
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.saving import Room, save_elsewhere

__all__ = ["Funds", "Receipt"]


class Receipt(Single):
    """One payment.

    Attributes
    ----------
    number
        Of the release, from 1.
    first
        The file of the first release; None where none is saved.
    entry
        The ledger's number for the payment; None without a ledger.
    holdout
        The receipt of the holdout, where the same charge paid for it.
    """

    def __init__(self, number: int, ledger: Ledger | None, first: Path | None, validated: bool = False) -> None:
        super().__init__()
        self.number, self.ledger, self.first = number, ledger, first
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

    Raises BudgetError and OptionError for what is no budget, ledger or file name.

    >>> funds = Funds(Budget.pure(1))
    >>> with funds.charge(Budget.pure("0.25")) as receipt:
    ...     pass  # read and count here
    >>> print(funds.remaining)
    epsilon = 0.75
    """

    def __init__(
        self,
        budget: Budget,
        ledger: Ledger | None = None,
        save_to: str | Path | None = None,
        *,
        validated: bool = False,
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
            if self._ledger is not None:
                self._ledger.check(whole)
            numbers = self._free_numbers(1 if reserved is None else 2)
            receipt, *others = [
                Receipt(number, self._ledger, self._save_to, self._validated) for number in sorted(numbers)
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
            if self._ledger is not None:
                receipt.entry = self._ledger.charge(whole, note=note, conditions=conditions)
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
