"""Ledgers and files that are wrong on purpose: the machine has to find them out."""

import os
from collections.abc import Callable
from pathlib import Path

from dpgm_core._util import files
from dpgm_core.curator.funds import Receipt
from dpgm_core.privacy import ledger as ledger_module
from dpgm_core.privacy import ledger_file
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger import Ledger


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


def torn() -> None:
    """Writes files where they stand, in two pieces."""

    def write(path: str | Path, content: bytes, replaces: str | None = None, **_: object) -> None:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            os.fsync(file.fileno())
            file.write(content[len(content) // 2 :])

    files.atomic_write = write


def unsaved() -> None:
    """Saves a session after its first table and not again before it has seven steps."""
    again = Receipt.rewrite
    Receipt.rewrite = lambda self, release: (
        again(self, release) if release.saved_as is None or len(release.steps) > 6 else release
    )


SPOILT: dict[str, Callable[[], None]] = {"wal": wal, "late": late, "torn": torn, "unsaved": unsaved}
