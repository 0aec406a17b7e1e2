"""Ledgers that are wrong on purpose: the machine has to find them out."""

from __future__ import annotations

from collections.abc import Callable

from dpgm_core.ledger import file as ledger_file
from dpgm_core.ledger import ledger as ledger_module
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.privacy.budget import Budget

__all__ = ["SPOILT"]


def wal() -> None:
    """Keeps the last charges in a log beside the file, as schema 1 did."""
    ledger_file.JOURNAL = "wal"
    ledger_module.bring_up_to_date = lambda path: None


def late() -> None:
    """Acknowledges a charge before it is written, and writes it when the release is saved."""
    charge, mark = Ledger.charge, Ledger.mark_released

    def promised(self: Ledger, budget: Budget, **more: object) -> int:
        self.check(budget)
        self.pending = budget
        return len(self.history()) + 1

    def written(self: Ledger, entry: int) -> None:
        mark(self, charge(self, self.pending))

    Ledger.charge, Ledger.mark_released = promised, written


SPOILT: dict[str, Callable[[], None]] = {"wal": wal, "late": late}
