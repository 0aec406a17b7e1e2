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
from dpgm_core.files import make_folder, sync_folder
from dpgm_core.ledger.access import SIDECARS, connected, part_name
from dpgm_core.ledger.entries import NOT_RECORDED, LedgerEntry, LedgerTerms, check_conditions
from dpgm_core.privacy.budget import Budget

__all__ = [
    "CONDITIONS",
    "IDENTITY",
    "JOURNAL",
    "SCHEMA",
    "TALLIED",
    "VERSION",
    "add",
    "digest",
    "identified",
    "new_identity",
    "read",
    "rows",
    "write_new",
]

APPLICATION = 0x6470676D  # "dpgm"
VERSION = 3
#: Schemas with a tally.
TALLIED = (2, VERSION)
JOURNAL = "delete"

#: The columns that schemas 2 and 3 added; the statements read as SQLite keeps them, and as it extends older ones.
CONDITIONS, IDENTITY = "conditions TEXT", "identity TEXT"
SCHEMA = {
    "terms": "CREATE TABLE terms (document TEXT NOT NULL)",
    "charges": (
        "CREATE TABLE charges (id INTEGER PRIMARY KEY, charged_at TEXT NOT NULL, cost TEXT NOT NULL, "
        f"note TEXT NOT NULL, status TEXT NOT NULL, {CONDITIONS}, {IDENTITY})"
    ),
    "tally": "CREATE TABLE tally (charges INTEGER NOT NULL, digest TEXT NOT NULL)",
}

_CHARGES_2 = SCHEMA["charges"].replace(f", {IDENTITY}", "")
_SCHEMAS = {
    1: {"terms": SCHEMA["terms"], "charges": _CHARGES_2.replace(f", {CONDITIONS}", "")},
    2: SCHEMA | {"charges": _CHARGES_2},
    VERSION: SCHEMA,
}

# What the digest covers of a charge: all but whether its release was saved, which changes and is no amount.
_CHARGE = {2: "id, charged_at, cost, note, conditions", VERSION: "id, charged_at, cost, note, conditions, identity"}
_MAX_NAME_BYTES = 255  # of a file, on every file system in use


def identified(path: Path, connection: sqlite3.Connection) -> int:
    """Return the schema of the file; ModelFileError when it is no ledger, or one that this dpgm does not know."""
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


def read(
    path: Path, connection: sqlite3.Connection, versions: tuple[int, ...] = (VERSION,)
) -> tuple[LedgerTerms, tuple[LedgerEntry, ...]]:
    """Return terms and charges, from one consistent snapshot; ModelFileError for what this module did not write.

    versions: the schemas, of those with a tally, that are read.
    """
    if not connection.in_transaction:
        connection.execute("BEGIN")
    version = identified(path, connection)
    if version not in versions or connection.execute("PRAGMA journal_mode").fetchone() != (JOURNAL,):
        raise ModelFileError(f"ledger {path} has the form of an older dpgm; open it again, which brings it up to date")
    terms, entries = rows(path, connection, version)
    tally = connection.execute("SELECT charges, digest FROM tally").fetchall()
    if tally != [(len(entries), digest(connection, version))]:
        raise _damaged(path)
    return terms, entries


def rows(path: Path, connection: sqlite3.Connection, version: int) -> tuple[LedgerTerms, tuple[LedgerEntry, ...]]:
    """Return terms and charges of a file with exactly the tables of this schema.

    Each is checked by itself, and their sum; the tally is not.
    """
    # No other object either: a foreign trigger or view could change what a charge does.
    if dict(connection.execute("SELECT name, sql FROM sqlite_master")) != _SCHEMAS[version]:
        raise ModelFileError(f"ledger {path} has tables that dpgm did not make; it cannot be trusted")
    conditions = "conditions" if version >= 2 else "NULL"
    identity = "identity" if version >= 3 else "NULL"
    try:
        ((document,),) = connection.execute("SELECT document FROM terms")
        terms = LedgerTerms.from_dict(json.loads(_text(document)))
        entries = tuple(
            LedgerEntry(
                id=number,
                when=_text(when),
                cost=Budget.parse(json.loads(_text(cost))),
                note=_text(note),
                conditions=_read(said),
                status=status,
                identity=None if mark is None else _text(mark),
            )
            for number, when, cost, note, said, status, mark in connection.execute(
                f"SELECT id, charged_at, cost, note, {conditions}, status, {identity} FROM charges ORDER BY id"
            )
        )
        sound = [entry.id for entry in entries] == list(range(1, len(entries) + 1))
        sound = sound and all(entry.status in ("charged", "released") for entry in entries)
        sound = sound and (terms.identity is not None) is (version >= 3)
        sound = sound and terms.total(entry.cost for entry in entries) <= terms.budget
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, BudgetError):
        sound = False
    # A file that was copied in the middle of a charge may read well and still be no sound tree to write into.
    if not sound or connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
        raise _damaged(path)
    return terms, entries


def add(
    connection: sqlite3.Connection, when: str, cost: Budget, note: str, conditions: tuple[str, ...], identity: str
) -> int:
    """Write one more charge, in a transaction that has `read` the file, and return its number."""
    previous = connection.execute("SELECT digest FROM tally").fetchone()[0]
    written = (when, json.dumps(cost.to_dict()), note, json.dumps(conditions), identity)
    row = connection.execute(
        "INSERT INTO charges (charged_at, cost, note, status, conditions, identity) VALUES (?, ?, ?, 'charged', ?, ?)",
        written,
    )
    number = int(row.lastrowid or 0)
    connection.execute("UPDATE tally SET charges = ?, digest = ?", (number, _chained(previous, (number, *written))))
    return number


def new_identity() -> str:
    """Return 128 random bits as hexadecimal digits, which tell a ledger or a charge from others of the same name."""
    return secrets.token_hex(16)


def digest(connection: sqlite3.Connection, version: int = VERSION) -> str:
    """Return the SHA-256 chain over the terms and every charge, oldest first, as they are in a file of this schema."""
    ((document,),) = connection.execute("SELECT document FROM terms")
    chain = _chained("", (document,))
    for charge in connection.execute(f"SELECT {_CHARGE[version]} FROM charges ORDER BY id"):
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
        with make_folder(path.parent), connected(part, "rwc") as connection:
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
        sync_folder(path.parent)
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


def _text(value: object) -> str:
    """Refuse a value of another storage class, such as a BLOB, which JSON is read from too."""
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _read(conditions: object) -> tuple[str, ...]:
    if conditions is None:
        return (NOT_RECORDED,)
    texts = json.loads(_text(conditions))
    if not isinstance(texts, list):
        raise TypeError("conditions are a list")
    check_conditions(tuple(texts))
    return tuple(texts)


def _damaged(path: Path) -> ModelFileError:
    return ModelFileError(
        f"ledger {path} is damaged: what it holds does not add up, as in a file that was copied or renamed in the "
        "middle of a charge; bring it and its -journal together again, and restore nothing older than its last charge"
    )
