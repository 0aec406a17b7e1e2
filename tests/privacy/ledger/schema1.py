"""Ledgers as dpgm wrote them before: under schema 1, in WAL mode, and under schema 2; statement by statement."""

import hashlib
import json
import os
import signal
import sqlite3
from contextlib import closing

TERMS = {
    "name": "survey", "budget": {"epsilon": "1"}, "neighbours": "add-remove", "unit": "one record", "person": None,
    "rows_per_person": 1, "conversion_delta": None,
}  # fmt: skip
TABLES = (
    "CREATE TABLE terms (document TEXT NOT NULL)",
    "CREATE TABLE charges (id INTEGER PRIMARY KEY, charged_at TEXT NOT NULL, cost TEXT NOT NULL, "
    "note TEXT NOT NULL, status TEXT NOT NULL)",
)


def write_old(path, charges=3, *, killed=False, budget="1", cost="1/10"):
    """A pure ledger with equal charges; killed: a process died with all of them in the log only."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {0x6470676D}")
        connection.execute("PRAGMA user_version = 1")
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO terms VALUES (?)", (json.dumps(TERMS | {"budget": {"epsilon": budget}}),))
        connection.execute("COMMIT")
    child = os.fork() if killed else None
    if child:
        os.waitpid(child, 0)
        return path
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        for number in range(1, charges + 1):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT INTO charges (charged_at, cost, note, status) VALUES (?, ?, ?, 'charged')",
                ("2026-01-01T00:00:00+00:00", json.dumps({"epsilon": cost}), f"old {number}"),
            )
            connection.execute("COMMIT")
        if child == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return path


def write_second(path, charges=3, *, cost="1/10"):
    """The same under schema 2: with conditions and a tally, with a rollback journal, and without identities."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {0x6470676D}")
        connection.execute("PRAGMA user_version = 2")
        connection.execute(TABLES[0])
        connection.execute(TABLES[1][:-1] + ", conditions TEXT)")
        connection.execute("CREATE TABLE tally (charges INTEGER NOT NULL, digest TEXT NOT NULL)")
        connection.execute("INSERT INTO terms VALUES (?)", (json.dumps(TERMS),))
        chain = hashlib.sha256(json.dumps(["", json.dumps(TERMS)]).encode()).hexdigest()
        for number in range(1, charges + 1):
            row = ("2026-01-01T00:00:00+00:00", json.dumps({"epsilon": cost}), f"old {number}", '["seeded"]')
            connection.execute(
                "INSERT INTO charges (charged_at, cost, note, status, conditions) VALUES (?, ?, ?, 'charged', ?)", row
            )
            chain = hashlib.sha256(json.dumps([chain, number, *row]).encode()).hexdigest()
        connection.execute("INSERT INTO tally VALUES (?, ?)", (charges, chain))
        connection.execute("COMMIT")
    return path
