"""What tests of the ledger share: ledgers as dpgm wrote them under schema 1."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

# As the first schema was written, word for word.
OLD_TERMS = {
    "name": "survey", "budget": {"epsilon": "1"}, "neighbours": "add-remove", "unit": "one record", "person": None,
    "rows_per_person": 1, "conversion_delta": None,
}  # fmt: skip
OLD_TABLES = (
    "CREATE TABLE terms (document TEXT NOT NULL)",
    "CREATE TABLE charges (id INTEGER PRIMARY KEY, charged_at TEXT NOT NULL, cost TEXT NOT NULL, "
    "note TEXT NOT NULL, status TEXT NOT NULL)",
)


def old_charge(connection: sqlite3.Connection, number: int) -> None:
    """One charge of a tenth, as it was committed."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO charges (charged_at, cost, note, status) VALUES (?, ?, ?, 'charged')",
        ("2026-01-01T00:00:00+00:00", json.dumps({"epsilon": "1/10"}), f"old {number}"),
    )
    connection.execute("COMMIT")


@pytest.fixture
def old_ledger() -> Callable[..., Path]:
    """Makes a ledger of 1 of schema 1 with charges of 0.1; killed: a process died with its last charges in the log."""

    def make(path: Path, charges: int = 3, *, killed: bool = False) -> Path:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {0x6470676D}")
            connection.execute("PRAGMA user_version = 1")
            for statement in OLD_TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO terms VALUES (?)", (json.dumps(OLD_TERMS),))
            connection.execute("COMMIT")
        child = os.fork() if killed else None
        if not child:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                for number in range(1, charges + 1):
                    old_charge(connection, number)
                if child == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        else:
            os.waitpid(child, 0)
        return path

    return make
