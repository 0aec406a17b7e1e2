"""The ledger's file: locks, schema, migration and recovery."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import random
import re
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve

from dpgm_core._util.files import make_folder, sync_folder
from dpgm_core.errors import BudgetError, DpgmError, ModelFileError
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ledger_terms import NOT_RECORDED, LedgerEntry, LedgerTerms, check_conditions

__all__ = [
    "CHARGED",
    "CONDITIONS",
    "GAUSSIAN_VERSION",
    "IDENTITY",
    "SCHEMA",
    "TALLIED",
    "VERSION",
    "add",
    "bring_up_to_date",
    "busy_error",
    "check_rights",
    "connect",
    "digest",
    "new_identity",
    "open_database",
    "read",
    "recover",
    "rows",
    "write_new",
]

# --------------------------------------------------------------------------------------------------
# Connections whose commits survive a power cut

_MAX_VALUE_BYTES = 2**20  # bytes of one value; the terms take a few thousand
BUSY_SECONDS = 30.0  # how long a call waits for another process

_MAX_LOOKS = 10

#: Endings of the files that SQLite writes next to a database (journal; in schema 1 log and index).
SIDECARS = ("-journal", "-wal", "-shm")


@contextlib.contextmanager
def connect(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    """Open the file, and close it (rolled back, unless committed) at the end; SQLite's errors become ours.

    mode: "rw", or "rwc" for a file to be made. Raises ModelFileError for a file of several names.
    """
    check_one_name(path)
    with open_database(path, f"mode={mode}") as connection:
        yield connection


@contextlib.contextmanager
def open_database(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    """Open the file as `connect` does, whatever names it has. how: the options of SQLite's address."""
    try:
        address = f"{path.as_uri()}?{how}"
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        with contextlib.closing(connection):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.execute("PRAGMA trusted_schema = OFF")
            # A commit is the journal's end. FULL does not sync the folder after that: a power cut could bring the
            # journal back, and with it the file as it was before a charge that was already acknowledged.
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
    except sqlite3.Error as error:
        raise _translate_error(path, error) from None
    except UnicodeDecodeError:  # SQLite quotes the file in its message
        raise ModelFileError(f"{path} is not a usable dpgm ledger: it is damaged") from None


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another process has locked the file."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def check_one_name(path: Path) -> None:
    """Refuse, with ModelFileError, a file of several names (hard links): a journal belongs to one of them only.

    What a killed creation leaves is a second name too, but one that nobody uses; it is removed. A missing file passes.
    """
    for look in range(_MAX_LOOKS):
        try:
            if path.stat().st_nlink <= 1:
                return
            if look:  # such a name may have come while another was removed: others create, or remove a journal
                time.sleep(random.uniform(0.001, 0.02))
            _remove_parts(path)
            names = path.stat().st_nlink
        except OSError:
            return  # no file: SQLite says so
    if names > 1:
        raise ModelFileError(
            f"ledger {path} has {names} names (hard links), and what a cut-off charge leaves beside one of them is not "
            f"seen under another; remove all but one (find FOLDER -samefile {path.name}) and keep the one that has a "
            "-journal or -wal file beside it"
        )


def check_rights(path: Path) -> None:
    """Refuse, with BudgetError, a file that could be read but not charged, or a folder that takes no journal."""
    if not has_rights(path):
        raise unwritable_error(path)


def has_rights(path: Path) -> bool:
    """Return whether the file may be written, and its folder take a journal."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def part_name(path: Path, token: str) -> Path:
    """Return the name of a ledger while it is being made."""
    return path.with_name(f".{path.name}.{token}.part")


def _remove_parts(path: Path) -> None:
    """Remove the file's other names that only `part_name` gives; removing one of several names loses nothing."""
    pattern = re.compile(re.escape(part_name(path, "@").name).replace("@", "[0-9a-f]{16}"))
    with contextlib.suppress(OSError):
        own = path.stat()
        for other in path.parent.iterdir():
            if pattern.fullmatch(other.name):
                with contextlib.suppress(OSError):  # gone meanwhile
                    if os.path.samestat(own, other.lstat()):
                        other.unlink()


def _translate_error(path: Path, error: sqlite3.Error) -> DpgmError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if is_locked(error):
        return busy_error(path)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return unwritable_error(path)
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return BudgetError(f"ledger {path} cannot be written ({error}); nothing was released: check the disk")
    reason = str(error) if str(error).isprintable() else "it is damaged"  # SQLite quotes the file in its message
    return ModelFileError(f"{path} is not a usable dpgm ledger: {reason}")


def busy_error(path: Path) -> BudgetError:
    """Return the error for a file that another process keeps locked."""
    return BudgetError(
        f"ledger {path} is held by another process for more than {BUSY_SECONDS:g} s; nothing was charged: try again"
    )


def unwritable_error(path: Path) -> BudgetError:
    """Return the error for a file, or a folder for its journal, that is read-only."""
    return BudgetError(
        f"ledger {path} cannot be opened for writing; nothing was charged: check the rights on it and on its folder"
    )


# --------------------------------------------------------------------------------------------------
# Content of the file
#
# An SQLite database with a rollback journal: one row of terms, one row per charge, and one row that tallies them. Locks
# on it belong to the file, whatever its name; the journal belongs to the name. So the tally holds the number of charges
# and a digest over terms and charges, written in the transaction of each charge: the file without its journal, in the
# middle of a charge, adds up only if it holds a state that was committed. Whatever this module did not write, or cannot
# add up, raises ModelFileError.

APPLICATION = 0x6470676D  # "dpgm"
VERSION = 3
#: The same tables, and the terms say that the account is Gaussian, which an older dpgm would take for damage.
GAUSSIAN_VERSION = 4
#: Schemas that are charged, and those with a tally.
CHARGED = (VERSION, GAUSSIAN_VERSION)
TALLIED = (2, *CHARGED)
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
    GAUSSIAN_VERSION: SCHEMA,
}

# What the digest covers of a charge: all but whether its release was saved, which changes and is no amount.
_CHARGE = {
    2: "id, charged_at, cost, note, conditions",
    **dict.fromkeys(CHARGED, "id, charged_at, cost, note, conditions, identity"),
}
_MAX_NAME_BYTES = 255  # of a file, on every file system in use


def read_schema(path: Path, connection: sqlite3.Connection) -> int:
    """Return the schema of the file; ModelFileError when it is no ledger, or one that this dpgm does not know."""
    application, version = (
        connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise ModelFileError(f"{path} is not a dpgm ledger")
    if not 1 <= version <= GAUSSIAN_VERSION:
        raise ModelFileError(
            f"ledger {path} has schema {version}, this dpgm knows {GAUSSIAN_VERSION}; use the dpgm that wrote it"
        )
    return int(version)


def read(
    path: Path, connection: sqlite3.Connection, versions: tuple[int, ...] = CHARGED
) -> tuple[LedgerTerms, tuple[LedgerEntry, ...]]:
    """Return terms and charges, from one consistent snapshot; ModelFileError for what this module did not write.

    versions: the schemas, of those with a tally, that are read.
    """
    if not connection.in_transaction:
        connection.execute("BEGIN")
    version = read_schema(path, connection)
    if version not in versions or connection.execute("PRAGMA journal_mode").fetchone() != (JOURNAL,):
        raise ModelFileError(f"ledger {path} has the form of an older dpgm; open it again, which brings it up to date")
    terms, entries = rows(path, connection, version)
    tally = connection.execute("SELECT charges, digest FROM tally").fetchall()
    if tally != [(len(entries), digest(connection, version))]:
        raise _damage_error(path)
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
        sound = sound and (terms.account == "gaussian") is (version == GAUSSIAN_VERSION)
        sound = sound and terms.fits([entry.cost for entry in entries])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, BudgetError):
        sound = False
    # A file that was copied in the middle of a charge may read well and still be no sound tree to write into.
    if not sound or connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
        raise _damage_error(path)
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
    connection.execute(
        "UPDATE tally SET charges = ?, digest = ?", (number, _chain_digest(previous, (number, *written)))
    )
    return number


def new_identity() -> str:
    """Return 128 random bits as hexadecimal digits, which tell a ledger or a charge from others of the same name."""
    return secrets.token_hex(16)


def digest(connection: sqlite3.Connection, version: int = VERSION) -> str:
    """Return the SHA-256 chain over the terms and every charge, oldest first, as they are in a file of this schema."""
    ((document,),) = connection.execute("SELECT document FROM terms")
    chain = _chain_digest("", (document,))
    for charge in connection.execute(f"SELECT {_CHARGE[version]} FROM charges ORDER BY id"):
        chain = _chain_digest(chain, charge)
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
        with make_folder(path.parent), connect(part, "rwc") as connection:
            connection.execute(f"PRAGMA journal_mode = {JOURNAL}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            version = GAUSSIAN_VERSION if terms.account == "gaussian" else VERSION
            connection.execute(f"PRAGMA user_version = {version}")
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


def _chain_digest(chain: str, row: Iterable[object]) -> str:
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


def _damage_error(path: Path) -> ModelFileError:
    return ModelFileError(
        f"ledger {path} is damaged: what it holds does not add up, as in a file that was copied or renamed in the "
        "middle of a charge; bring it and its -journal together again, and restore nothing older than its last charge"
    )


# --------------------------------------------------------------------------------------------------
# Journals left behind by a process that was cut off
#
# A journal belongs to a name. Where a charge was cut off under one name and others went on under another (a single file
# that is mounted twice, or renamed and renamed back), SQLite would use the old journal as soon as it sees it, and take
# their charges back. But who went on found the file whole; so a file that is whole by itself is never rolled back. At
# worst this keeps a charge that nobody was informed of, which wastes it.


@contextlib.contextmanager
def recover(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file as `connect` does, once a journal that it does not need is removed; BudgetError if it stays."""
    until = time.monotonic() + BUSY_SECONDS
    while os.path.lexists(_journal(path)) and _is_whole(path) and not _remove_dead_journal(path):
        if time.monotonic() > until:
            raise busy_error(path)
        time.sleep(random.uniform(0.001, 0.01))
    with connect(path) as connection:
        yield connection


def _journal(path: Path) -> Path:
    return Path(f"{path}-journal")


def _is_whole(path: Path) -> bool:
    """Whether the file adds up as it stands, without its journal and without waiting for anybody."""
    try:
        with open_database(path, "mode=ro&immutable=1") as connection:
            read(path, connection, TALLIED)
    except DpgmError:
        return False
    return True


def _remove_dead_journal(path: Path) -> bool:
    """Remove the journal of a dead process if the file is whole; False where a process lives or others are at it too.

    The file is locked under another name, for which SQLite does not see the journal; locks belong to the file.
    """
    other = part_name(path, secrets.token_hex(8))
    try:
        os.link(path, other)
        with open_database(other, "mode=rw") as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # the lock stays after the commit, until the end
            connection.execute("BEGIN IMMEDIATE")
            read(path, connection, TALLIED)
            # What the killed process wrote may not be on the disk yet, and must be before the journal goes.
            connection.execute("UPDATE tally SET charges = charges")
            connection.execute("COMMIT")
            _journal(path).unlink(missing_ok=True)
            sync_folder(path.parent)
    except DpgmError:
        return False
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EROFS):
            raise unwritable_error(path) from None
        return True  # no file, or a disk without links: SQLite says so, or goes on as it can
    finally:
        for leftover in (other, *(Path(f"{other}{end}") for end in SIDECARS)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)
    return True


# --------------------------------------------------------------------------------------------------
# Migration to the newest schema, and out of WAL mode, when a ledger is opened
#
# Schema 1 wrote its last charges to a log next to the file, which belongs to the file's name. It is written back while
# no other process locks the file, and then what later schemas add (conditions and a tally; a random identity) is added
# in one transaction: the amounts and entries stay as they are, and no page that holds charges is moved. A kill at any
# point leaves a ledger of one form or the other.


def bring_up_to_date(path: Path) -> None:
    """Give an existing ledger the form that `file.read` takes.

    Raises ModelFileError for what is no ledger or damaged, with the file left as it is, and BudgetError when another
    process holds it too long.
    """
    until = time.monotonic() + BUSY_SECONDS
    while not _without_log(path):
        if time.monotonic() > until:
            raise BudgetError(
                f"ledger {path} has the form of an older dpgm and is held by another process for more than "
                f"{BUSY_SECONDS:g} s; nothing was charged: end what still uses it, and try again"
            )
        # Two processes that both wait with the file open would wait for each other for ever.
        time.sleep(random.uniform(0.005, 0.05))
    _extend(path)


def _without_log(path: Path) -> bool:
    """Write the log back and leave WAL mode; False while another process has the file open."""
    with recover(path) as connection:
        version = read_schema(path, connection)
        if connection.execute("PRAGMA journal_mode").fetchone() == (JOURNAL,):
            return True
        connection.execute("BEGIN")
        rows(path, connection, version)  # what is damaged is left alone
        connection.execute("COMMIT")
        _refuse_strays(path)
        try:
            return bool(connection.execute(f"PRAGMA journal_mode = {JOURNAL}").fetchone() == (JOURNAL,))
        except sqlite3.OperationalError as error:
            if is_locked(error):
                return False
            raise


def _refuse_strays(path: Path) -> None:
    """Refuse where a log lies without its ledger: it may hold charges of this one, which was given another name."""
    for log in sorted(path.parent.glob("*-wal")):
        if not os.path.lexists(str(log).removesuffix("-wal")):
            raise ModelFileError(
                f"beside ledger {path} lies {log.name} without its ledger and may hold charges of this one; give the "
                "ledger that name back and open it there, or move the log away if it belongs to another one"
            )


def _extend(path: Path) -> None:
    with recover(path) as connection:
        version = read_schema(path, connection)
        if version in CHARGED or (version in TALLIED and not has_rights(path)):
            return  # a file in an archive is read as it is, and not charged
        connection.execute("BEGIN IMMEDIATE")
        version = read_schema(path, connection)
        if version in CHARGED:
            return  # somebody else did while this process waited
        if version in TALLIED:
            terms, entries = read(path, connection, TALLIED)
        else:
            terms, entries = rows(path, connection, version)
            connection.execute(f"ALTER TABLE charges ADD COLUMN {CONDITIONS}")
            connection.execute(SCHEMA["tally"])
        connection.execute(f"ALTER TABLE charges ADD COLUMN {IDENTITY}")
        document = json.dumps(evolve(terms, identity=new_identity()).to_dict())
        connection.execute("UPDATE terms SET document = ?", (document,))
        connection.execute("DELETE FROM tally")
        connection.execute("INSERT INTO tally VALUES (?, ?)", (len(entries), digest(connection)))
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
