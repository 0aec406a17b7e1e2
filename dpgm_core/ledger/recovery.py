"""Journals that are left beside a ledger: used where the file needs one, removed where the file is whole without it.

A journal belongs to a name. Where a charge was cut off under one name and others went on under another (a single file
that is mounted twice, or renamed and renamed back), SQLite would use the old journal as soon as it sees it, and take
their charges back. But who went on found the file whole; so a file that is whole by itself is never rolled back. At
worst this keeps a charge that nobody was informed of, which wastes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from dpgm_core.errors import DpgmError
from dpgm_core.files import sync_folder
from dpgm_core.ledger import access
from dpgm_core.ledger.access import SIDECARS, busy, connected, opened, part_name, unwritable
from dpgm_core.ledger.file import TALLIED, read

__all__ = ["recovered"]


@contextlib.contextmanager
def recovered(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file as `connected` does, once a journal that it does not need is removed; BudgetError if it stays."""
    until = time.monotonic() + access.BUSY_SECONDS
    while os.path.lexists(_journal(path)) and _is_whole(path) and not _removed(path):
        if time.monotonic() > until:
            raise busy(path)
        time.sleep(random.uniform(0.001, 0.01))
    with connected(path) as connection:
        yield connection


def _journal(path: Path) -> Path:
    return Path(f"{path}-journal")


def _is_whole(path: Path) -> bool:
    """Whether the file adds up as it stands, without its journal and without waiting for anybody."""
    try:
        with opened(path, "mode=ro&immutable=1") as connection:
            read(path, connection, TALLIED)
    except DpgmError:
        return False
    return True


def _removed(path: Path) -> bool:
    """Remove the journal of a dead process if the file is whole; False where a process lives or others are at it too.

    The file is locked under another name, for which SQLite does not see the journal; locks belong to the file.
    """
    other = part_name(path, secrets.token_hex(8))
    try:
        os.link(path, other)
        with opened(other, "mode=rw") as connection:
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
            raise unwritable(path) from None
        return True  # no file, or a disk without links: SQLite says so, or goes on as it can
    finally:
        for leftover in (other, *(Path(f"{other}{end}") for end in SIDECARS)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)
    return True
