"""Access to the file of a ledger, by a connection whose commits survive a power cut."""

from __future__ import annotations

import contextlib
import os
import random
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from dpgm_core.errors import BudgetError, DpgmError, ModelFileError

__all__ = [
    "SIDECARS",
    "busy",
    "check_one_name",
    "check_rights",
    "connected",
    "is_locked",
    "opened",
    "part_name",
    "unwritable",
]

_MAX_VALUE_BYTES = 2**20  # bytes of one value; the terms take a few thousand
BUSY_SECONDS = 30.0  # how long a call waits for another process

_MAX_LOOKS = 10

#: What SQLite keeps beside a database while it is written (the journal) or was, in schema 1 (log and index).
SIDECARS = ("-journal", "-wal", "-shm")


@contextlib.contextmanager
def connected(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    """Open the file, and close it (rolled back, unless committed) at the end; SQLite's errors become ours.

    mode: "rw", or "rwc" for a file to be made. Raises ModelFileError for a file of several names.
    """
    check_one_name(path)
    with opened(path, f"mode={mode}") as connection:
        yield connection


@contextlib.contextmanager
def opened(path: Path, how: str) -> Iterator[sqlite3.Connection]:
    """Open the file as `connected` does, whatever names it has. how: the options of SQLite's address."""
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
        raise _translated(path, error) from None
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
    """Refuse, with BudgetError, a file that could be read but not charged, or a folder without room for its journal."""
    if not has_rights(path):
        raise unwritable(path)


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


def _translated(path: Path, error: sqlite3.Error) -> DpgmError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if is_locked(error):
        return busy(path)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return unwritable(path)
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return BudgetError(f"ledger {path} cannot be written ({error}); nothing was released: check the disk")
    reason = str(error) if str(error).isprintable() else "it is damaged"  # SQLite quotes the file in its message
    return ModelFileError(f"{path} is not a usable dpgm ledger: {reason}")


def busy(path: Path) -> BudgetError:
    """Return the error for a file that another process keeps locked."""
    return BudgetError(
        f"ledger {path} is held by another process for more than {BUSY_SECONDS:g} s; nothing was charged: try again"
    )


def unwritable(path: Path) -> BudgetError:
    """Return the error for a file, or a folder for its journal, that is read-only."""
    return BudgetError(
        f"ledger {path} cannot be opened for writing; nothing was charged: check the rights on it and on its folder"
    )
