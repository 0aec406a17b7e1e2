"""The file of a ledger: how its terms and charges are written, made and read with suspicion.

An SQLite database with a rollback journal: one row of terms, one row per charge, and one row that tallies them. Locks
on it belong to the file, whatever its name; the journal belongs to the name. So the tally holds the number of charges
and a digest over terms and charges, written in the transaction of each charge: the file without its journal, in the
middle of a charge, adds up only if it holds a state that was committed. Whatever this module did not write, or cannot
add up, raises ModelFileError.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from dpgm_core.errors import BudgetError, ModelFileError
from dpgm_core.files import made_folder, synced
from dpgm_core.ledger.access import SIDECARS, connected, part_name
from dpgm_core.ledger.entries import NOT_RECORDED, LedgerEntry, LedgerTerms, check_conditions
from dpgm_core.privacy.budget import Budget

__all__ = [
    "CONDITIONS",
    "JOURNAL",
    "SCHEMA",
    "VERSION",
    "add",
    "digest",
    "identified",
    "read",
    "rows",
    "write_new",
]

APPLICATION = 0x6470676D  # "dpgm"
VERSION = 2
JOURNAL = "delete"

#: The column that schema 2 added; the statements read as SQLite keeps them, and as it extends those of schema 1.
CONDITIONS = "conditions TEXT"
SCHEMA = {
    "terms": "CREATE TABLE terms (document TEXT NOT NULL)",
    "charges": (
        "CREATE TABLE charges (id INTEGER PRIMARY KEY, charged_at TEXT NOT NULL, cost TEXT NOT NULL, "
        f"note TEXT NOT NULL, status TEXT NOT NULL, {CONDITIONS})"
    ),
    "tally": "CREATE TABLE tally (charges INTEGER NOT NULL, digest TEXT NOT NULL)",
}

# What the digest covers of a charge: all but whether its release was saved, which changes and is no amount.
_CHARGE = "id, charged_at, cost, note, conditions"
_MAX_NAME_BYTES = 255  # of a file, on every file system in use


def identified(path: Path, connection: sqlite3.Connection) -> int:
    """The schema of the file; ModelFileError when it is no ledger, or one that this dpgm does not know."""
    application, version = (
        connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise ModelFileError(f"{path} is not a dpgm ledger")
    if not 1 <= version <= VERSION:
        raise ModelFileError(
            f"ledger {path} has schema {version}, this dpgm knows {VERSION}; use the dpgm that wrote it"
        )
    return int(version)


def read(path: Path, connection: sqlite3.Connection) -> tuple[LedgerTerms, tuple[LedgerEntry, ...]]:
    """Terms and charges, from one consistent snapshot; ModelFileError for anything that this module did not write."""
    if not connection.in_transaction:
        connection.execute("BEGIN")
    if identified(path, connection) != VERSION or connection.execute("PRAGMA journal_mode").fetchone() != (JOURNAL,):
        raise ModelFileError(f"ledger {path} has the form of an older dpgm; open it again, which brings it up to date")
    terms, entries = rows(path, connection, SCHEMA)
    if connection.execute("SELECT charges, digest FROM tally").fetchall() != [(len(entries), digest(connection))]:
        raise _damaged(path)
    return terms, entries


def rows(
    path: Path, connection: sqlite3.Connection, schema: dict[str, str]
) -> tuple[LedgerTerms, tuple[LedgerEntry, ...]]:
    """Terms and charges of a file with just these tables, each checked by itself and the sum; not the tally."""
    # No other object either: a foreign trigger or view could change what a charge does.
    if dict(connection.execute("SELECT name, sql FROM sqlite_master")) != schema:
        raise ModelFileError(f"ledger {path} has tables that dpgm did not make; it cannot be trusted")
    conditions = "conditions" if CONDITIONS in schema["charges"] else "NULL"
    try:
        ((document,),) = connection.execute("SELECT document FROM terms")
        terms = LedgerTerms.from_dict(json.loads(document))
        entries = tuple(
            LedgerEntry(
                id=number,
                when=when,
                cost=Budget.parse(json.loads(cost)),
                note=note,
                conditions=_read(said),
                status=status,
            )
            for number, when, cost, note, said, status in connection.execute(
                f"SELECT id, charged_at, cost, note, {conditions}, status FROM charges ORDER BY id"
            )
        )
        sound = [entry.id for entry in entries] == list(range(1, len(entries) + 1))
        sound = sound and all(entry.status in ("charged", "released") for entry in entries)
        sound = sound and all(isinstance(text, str) for entry in entries for text in (entry.when, entry.note))
        sound = sound and terms.total(entry.cost for entry in entries) <= terms.budget
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, BudgetError):
        sound = False
    # A file that was copied in the middle of a charge may read well and still be no sound tree to write into.
    if not sound or connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
        raise _damaged(path)
    return terms, entries


def add(connection: sqlite3.Connection, when: str, cost: Budget, note: str, conditions: tuple[str, ...]) -> int:
    """Write one more charge, in a transaction that has `read` the file, and say its number."""
    held = connection.execute("SELECT digest FROM tally").fetchone()[0]
    written = (when, json.dumps(cost.to_dict()), note, json.dumps(conditions))
    row = connection.execute(
        "INSERT INTO charges (charged_at, cost, note, status, conditions) VALUES (?, ?, ?, 'charged', ?)", written
    )
    number = int(row.lastrowid or 0)
    connection.execute("UPDATE tally SET charges = ?, digest = ?", (number, _chained(held, (number, *written))))
    return number


def digest(connection: sqlite3.Connection) -> str:
    """The SHA-256 chain over the terms and every charge, oldest first, as they stand in the file."""
    ((document,),) = connection.execute("SELECT document FROM terms")
    chain = _chained("", (document,))
    for charge in connection.execute(f"SELECT {_CHARGE} FROM charges ORDER BY id"):
        chain = _chained(chain, charge)
    return chain


def write_new(path: Path, terms: LedgerTerms) -> None:
    """Make the file, whole or not at all; BudgetError when there is one already, ModelFileError when it cannot be."""
    leftovers = [name for name in (f"{path}{end}" for end in SIDECARS) if os.path.lexists(name)]
    if leftovers and not os.path.lexists(path):
        # SQLite would take the journal of the older ledger for one of the new one.
        raise BudgetError(f"cannot create ledger {path}: {leftovers[0]} belongs to an older ledger; move it away first")
    part = part_name(path, secrets.token_hex(8))
    if len(os.fsencode(part.name)) > _MAX_NAME_BYTES:
        raise ModelFileError(f"cannot create ledger {str(path)!r:.100}...: the name is too long")
    try:
        with made_folder(path.parent), connected(part, "rwc") as connection:
            connection.execute(f"PRAGMA journal_mode = {JOURNAL}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in SCHEMA.values():
                connection.execute(statement)
            connection.execute("INSERT INTO terms VALUES (?)", (json.dumps(terms.to_dict()),))
            connection.execute("INSERT INTO tally VALUES (0, ?)", (digest(connection),))
            connection.execute("COMMIT")
        # Unlike a rename, a link never replaces a file that is already there.
        os.link(part, path)
        synced(path.parent)
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(path):
            raise BudgetError(
                f"cannot create ledger {path}: the file exists, and the terms of a ledger are fixed for its life; "
                "open it, or choose another path"
            ) from None
        raise ModelFileError(f"cannot create ledger {path}: {error.strerror or type(error).__name__}") from None
    finally:
        for leftover in (part, *(Path(f"{part}{end}") for end in SIDECARS)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def _chained(chain: str, row: Iterable[object]) -> str:
    return hashlib.sha256(json.dumps([chain, *row]).encode()).hexdigest()


def _read(conditions: str | None) -> tuple[str, ...]:
    if conditions is None:
        return (NOT_RECORDED,)
    found = json.loads(conditions)
    if not isinstance(found, list):
        raise TypeError("conditions are a list")
    check_conditions(tuple(found))
    return tuple(found)


def _damaged(path: Path) -> ModelFileError:
    return ModelFileError(
        f"ledger {path} is damaged: what it holds does not add up, as in a file that was copied or renamed in the "
        "middle of a charge; bring it and its -journal together again, and restore nothing older than its last charge"
    )
