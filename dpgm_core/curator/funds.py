"""What a curator may spend: its budget, its ledger and the files of its releases; set aside, charged, given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from os.path import lexists
from pathlib import Path
from threading import Lock

from attrs import define, evolve

from dpgm_core.errors import BudgetError, ModelFileError, Overspent
from dpgm_core.files import check_writable, numbered
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.releases.release import NoisyTables

__all__ = ["Funds", "Receipt"]


@define
class Receipt:
    """One payment. number: of the release, from 1. first: the file of the first one, None where none is saved.

    entry: the ledger's number for it, None without a ledger.
    """

    ledger: Ledger | None
    first: Path | None
    number: int
    entry: int | None = None

    @property
    def path(self) -> Path | None:
        """Where its release is to be saved."""
        return None if self.first is None else numbered(self.first, self.number)

    @property
    def provenance(self) -> dict[str, object]:
        """What a release says of its payment."""
        return {} if self.ledger is None else {"ledger": self.ledger.name, "entry": self.entry}

    def saved(self, release: NoisyTables) -> NoisyTables:
        """Save the release that was paid for; it then knows where.

        A name that was taken since it was looked at, by whomever, is left alone: the next free one serves.
        """
        if self.first is None:
            return release
        for number in count(self.number):
            path = numbered(self.first, number)
            if not lexists(path):
                try:
                    release.save(path)
                except ModelFileError:
                    if not lexists(path):  # no other's file is in the way
                        raise
                else:
                    break
        return evolve(release, saved_as=path)

    def close(self) -> None:
        """Tell the ledger that the release was saved."""
        if self.first is not None and self.ledger is not None and self.entry is not None:
            self.ledger.mark_released(self.entry)


class Funds:
    """The budget of one curator. ledger: charged before any noise is drawn, or None. save_to: the first release's file.

    >>> funds = Funds(Budget.pure(1))
    >>> with funds.paying(Budget.pure("0.25")) as receipt:
    ...     pass  # read and count here
    >>> print(funds.remaining)
    epsilon = 0.75
    """

    def __init__(self, budget: Budget, ledger: Ledger | None = None, save_to: Path | None = None) -> None:
        check_budget(budget)
        if budget.is_zero:
            raise BudgetError(f"budget is {budget}; it must be positive")
        self.budget = budget
        self._spent = Budget.zero(budget.kind)
        self._ledger, self._save_to = ledger, save_to
        self._lock = Lock()
        self._numbers: set[int] = set()  # of the releases made or under way, for the names of their files

    @property
    def remaining(self) -> Budget:
        """What may still be spent."""
        return self.budget - self._spent

    def asked(self, budget: Budget | None) -> Budget:
        """What one request is for: `budget`, or all that remains when None. Raises BudgetError or Overspent."""
        wanted = self.remaining if budget is None else budget
        check_budget(wanted)
        if wanted.is_zero:
            raise Overspent(f"nothing remains of {self.budget}")
        if not wanted <= self.remaining:
            raise Overspent(f"{wanted} was asked, but only {self.remaining} remains of {self.budget}")
        return wanted

    @contextmanager
    def paying(self, cost: Budget) -> Iterator[Receipt]:
        """Set `cost` aside, so that no other thread can spend it too; charge the ledger when the body is done.

        The body reads and counts; noise is drawn after it. When the body or the charge fails, the cost is given back
        and nothing was charged. Raises Overspent, and ModelFileError where the release could not be saved.
        """
        with self._lock:
            if not cost <= self.remaining:
                raise Overspent(f"this release costs {cost}, but only {self.remaining} remains of {self.budget}")
            if self._ledger is not None:
                self._ledger.check(cost)
            number = next(free for free in count(1) if free not in self._numbers and not self._is_taken(free))
            receipt = Receipt(self._ledger, self._save_to, number)
            if receipt.path is not None:
                check_writable(receipt.path)  # better now than after the charge
            self._spent = self._spent + cost
            self._numbers.add(number)
        try:
            yield receipt
            if self._ledger is not None:
                receipt.entry = self._ledger.charge(cost)
        except BaseException:
            with self._lock:
                self._spent = self._spent - cost
                self._numbers.discard(number)
            raise

    def _is_taken(self, number: int) -> bool:
        """Whether another has the name of a later release. The first one's was chosen, so there it is refused."""
        return number > 1 and self._save_to is not None and lexists(numbered(self._save_to, number))
