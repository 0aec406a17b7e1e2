"""Migration of a ledger to the newest schema, and out of WAL mode, when it is opened. Nothing is charged.

Schema 1 kept its last charges in a log beside the file, which belongs to the file's name. It is written back while no
other process locks the file, and then what later schemas add (conditions and a tally; a random identity) is added in
one transaction: the amounts and entries stay as they are, and no page that holds charges is moved. A kill at any point
leaves a ledger of one form or the other.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from pathlib import Path

from attrs import evolve

from dpgm_core.errors import BudgetError, ModelFileError
from dpgm_core.ledger import access
from dpgm_core.ledger.access import is_locked
from dpgm_core.ledger.file import (
    CONDITIONS,
    IDENTITY,
    JOURNAL,
    SCHEMA,
    TALLIED,
    VERSION,
    digest,
    identified,
    new_identity,
    read,
    rows,
)
from dpgm_core.ledger.recovery import recovered

__all__ = ["bring_up_to_date"]


def bring_up_to_date(path: Path) -> None:
    """Give an existing ledger the form that `file.read` takes.

    Raises ModelFileError for what is no ledger or damaged, with the file left as it is, and BudgetError when another
    process holds it too long.
    """
    until = time.monotonic() + access.BUSY_SECONDS
    while not _without_log(path):
        if time.monotonic() > until:
            raise BudgetError(
                f"ledger {path} has the form of an older dpgm and is held by another process for more than "
                f"{access.BUSY_SECONDS:g} s; nothing was charged: end what still uses it, and try again"
            )
        # Two processes that both wait with the file open would wait for each other for ever.
        time.sleep(random.uniform(0.005, 0.05))
    _extend(path)


def _without_log(path: Path) -> bool:
    """Write the log back and leave WAL mode; False while another process has the file open."""
    with recovered(path) as connection:
        version = identified(path, connection)
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
    with recovered(path) as connection:
        version = identified(path, connection)
        if version == VERSION or (version in TALLIED and not access.has_rights(path)):
            return  # a file in an archive is read as it is, and not charged
        connection.execute("BEGIN IMMEDIATE")
        version = identified(path, connection)
        if version == VERSION:
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
