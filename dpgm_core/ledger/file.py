"""The file of a ledger: the terms and charges it holds, and how it is made, opened and read with suspicion.

An SQLite database in WAL mode with one row of terms and one row per charge. Whatever this module did not write, or
cannot add up, raises ModelFileError.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import frozen

from dpgm_core.errors import BudgetError, DpgmError, ModelFileError
from dpgm_core.privacy.amounts import amount, decimal_text, whole
from dpgm_core.privacy.budget import Budget, composed
from dpgm_core.privacy.sensitivity import Neighbours

__all__ = ["LedgerEntry", "LedgerStatus", "LedgerTerms", "check_amounts", "connected", "read", "text_line", "write_new"]

LedgerStatus: TypeAlias = Literal["charged", "released"]

BUSY_SECONDS = 30.0  # how long a call waits for another process

_APPLICATION = 0x6470676D  # "dpgm"
_SCHEMA_VERSION = 1
_SCHEMA = {
    "terms": "CREATE TABLE terms (document TEXT NOT NULL)",
    "charges": (
        "CREATE TABLE charges (id INTEGER PRIMARY KEY, charged_at TEXT NOT NULL, cost TEXT NOT NULL, "
        "note TEXT NOT NULL, status TEXT NOT NULL)"
    ),
}
_TEXT_LIMIT = 200
_LONGEST = 2**20  # bytes of one value; the terms take a few thousand
_PART_LIMIT = 1 << 1328  # 400 digits, what Budget.parse reads back


@frozen(kw_only=True)
class LedgerTerms:
    """What a ledger was created with and keeps for its life; checked on the way in and on every reading.

    name: of the data set. budget: all that may ever be spent. conversion_delta: see the module; for (epsilon, delta)
    only. unit, person, rows_per_person: who is protected. Raises BudgetError.
    """

    name: str
    budget: Budget
    neighbours: Neighbours
    unit: str
    person: str | None
    rows_per_person: int
    conversion_delta: Fraction | None

    def __attrs_post_init__(self) -> None:
        text_line("the name of a ledger", self.name)
        text_line("the unit of a ledger", self.unit)
        if self.person is not None:
            text_line("the person key of a ledger", self.person)
        whole("rows_per_person", self.rows_per_person, least=1)
        check_amounts(self.budget)
        if (self.budget.kind == "approx") is not isinstance(self.conversion_delta, Fraction):
            raise BudgetError(f"conversion_delta belongs to an (epsilon, delta) ledger; this one holds {self.budget}")
        if self.conversion_delta is not None and not 0 < self.conversion_delta <= self.budget.delta:
            raise BudgetError(
                f"conversion_delta must be above 0 and at most the delta of {self.budget}; "
                f"got {decimal_text(self.conversion_delta)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, amounts as exact texts."""
        delta = self.conversion_delta
        return {
            "name": self.name,
            "budget": self.budget.to_dict(),
            "neighbours": self.neighbours.value,
            "unit": self.unit,
            "person": self.person,
            "rows_per_person": self.rows_per_person,
            "conversion_delta": None if delta is None else str(delta),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> LedgerTerms:
        """Read what `to_dict` wrote."""
        delta = plain["conversion_delta"]
        return cls(
            **plain
            | {
                "budget": Budget.parse(plain["budget"]),
                "neighbours": Neighbours.of(plain["neighbours"]),
                "conversion_delta": None if delta is None else amount("conversion_delta", delta),
            }
        )

    def total(self, costs: Iterable[Budget]) -> Budget:
        """What these charges come to, in the kind of the whole budget."""
        costs = list(costs)
        if self.budget.kind == "zcdp":
            return Budget("zcdp", rho=sum((cost.to_zcdp().rho for cost in costs), Fraction(0)))
        if self.budget.kind == "pure":
            return Budget("pure", epsilon=sum((cost.epsilon for cost in costs), Fraction(0)))
        return composed([Budget.zero("approx"), Budget.zero("pure"), *costs], self.conversion_delta)


@frozen(kw_only=True)
class LedgerEntry:
    """One charge. when: UTC, of the charge. status: "charged", or "released" once its release was saved."""

    id: int
    when: str
    cost: Budget
    note: str
    status: LedgerStatus

    def to_dict(self) -> dict[str, Any]:
        """Plain values, amounts as exact texts."""
        return {
            "id": self.id,
            "when": self.when,
            "cost": self.cost.to_dict(),
            "note": self.note,
            "status": self.status,
        }


def text_line(what: str, value: object, *, empty: bool = False) -> None:
    """Refuse what is not one short line of text."""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or len(value) > _TEXT_LIMIT
        or not (value.strip() or empty)
    ):
        raise BudgetError(f"{what} must be one line of text of up to {_TEXT_LIMIT} characters")


def check_amounts(budget: object) -> None:
    """Refuse what no ledger can hold, charge or read back."""
    if not isinstance(budget, Budget) or budget.is_zero:
        raise BudgetError(f"a ledger needs a positive Budget, such as Budget.pure(0.5); got {budget}")
    for part in (budget.epsilon, budget.delta, budget.rho):
        if max(part.as_integer_ratio()) >= _PART_LIMIT:
            raise BudgetError("a ledger takes amounts whose numerator and denominator have at most 400 digits")


@contextlib.contextmanager
def connected(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    """The open file, closed (and rolled back, unless committed) at the end; SQLite's errors become ours."""
    try:
        address = f"{path.as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        with contextlib.closing(connection):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
    except sqlite3.Error as error:
        raise _translated(path, error) from None
    except UnicodeDecodeError:  # SQLite quotes the file in its message
        raise ModelFileError(f"{path} is not a usable dpgm ledger: it is damaged") from None


def _translated(path: Path, error: sqlite3.Error) -> DpgmError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BudgetError(
            f"ledger {path} is held by another process for more than {BUSY_SECONDS:g} s; nothing was charged: try again"
        )
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return BudgetError(
            f"ledger {path} cannot be opened for writing; nothing was charged: check the rights on it and on its folder"
        )
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return BudgetError(f"ledger {path} cannot be written ({error}); nothing was released: check the disk")
    reason = str(error) if str(error).isprintable() else "it is damaged"  # SQLite quotes the file in its message
    return ModelFileError(f"{path} is not a usable dpgm ledger: {reason}")


def read(path: Path, connection: sqlite3.Connection) -> tuple[LedgerTerms, tuple[LedgerEntry, ...]]:
    """Terms and charges, from one consistent snapshot; ModelFileError for anything that this module did not write."""
    if not connection.in_transaction:
        connection.execute("BEGIN")
    application, version = (
        connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version")
    )
    if application != _APPLICATION:
        raise ModelFileError(f"{path} is not a dpgm ledger")
    if version != _SCHEMA_VERSION:
        raise ModelFileError(
            f"ledger {path} has schema {version}, this dpgm knows {_SCHEMA_VERSION}; use the dpgm that wrote it"
        )
    # No other object either: a foreign trigger or view could change what a charge does.
    if dict(connection.execute("SELECT name, sql FROM sqlite_master")) != _SCHEMA:
        raise ModelFileError(f"ledger {path} has tables that dpgm did not make; it cannot be trusted")
    try:
        ((document,),) = connection.execute("SELECT document FROM terms")
        terms = LedgerTerms.from_dict(json.loads(document))
        entries = tuple(
            LedgerEntry(id=number, when=when, cost=Budget.parse(json.loads(cost)), note=note, status=status)
            for number, when, cost, note, status in connection.execute(
                "SELECT id, charged_at, cost, note, status FROM charges ORDER BY id"
            )
        )
        sound = all(entry.status in ("charged", "released") for entry in entries)
        sound = sound and terms.total(entry.cost for entry in entries) <= terms.budget
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, BudgetError):
        sound = False
    if not sound:
        raise ModelFileError(f"ledger {path} is damaged: what it holds does not add up")
    return terms, entries


def write_new(path: Path, terms: LedgerTerms) -> None:
    """Make the file, whole or not at all; BudgetError when there is one already, ModelFileError when it cannot be."""
    leftovers = [name for name in (f"{path}-wal", f"{path}-shm") if os.path.lexists(name)]
    if leftovers and not os.path.lexists(path):
        # SQLite would take the log of the older ledger for part of the new one.
        raise BudgetError(f"cannot create ledger {path}: {leftovers[0]} belongs to an older ledger; move it away first")
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with connected(part, "rwc") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            for statement in _SCHEMA.values():
                connection.execute(statement)
            connection.execute("INSERT INTO terms VALUES (?)", (json.dumps(terms.to_dict()),))
            connection.execute("COMMIT")
        # Unlike a rename, a link never replaces a file that is already there.
        os.link(part, path)
        _sync(path.parent)
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            raise BudgetError(
                f"cannot create ledger {path}: the file exists, and the terms of a ledger are fixed for its life; "
                "open it, or choose another path"
            ) from None
        raise ModelFileError(f"cannot create ledger {path}: {error.strerror or type(error).__name__}") from None
    finally:
        for leftover in (part, Path(f"{part}-wal"), Path(f"{part}-shm")):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make a new name in a folder survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
