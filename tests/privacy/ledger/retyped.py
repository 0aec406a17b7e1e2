"""A ledger whose column holds a value of another SQLite storage class than dpgm writes."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

#: For each storage class, values that a spoiled column may hold, made of the value that it held.
CLASSES: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "NULL": (lambda value: None,),
    "INTEGER": (lambda value: 0, lambda value: 1, lambda value: 2**63 - 1),
    "REAL": (lambda value: 0.5, lambda value: float("inf")),
    "TEXT": (lambda value: "", lambda value: str(value), lambda value: "{}"),
    "BLOB": (lambda value: str(value).encode(), lambda value: b"", lambda value: b"\xff\x00"),
}


def columns(path):
    """Every table and column, but the number of a charge, which SQLite lets be nothing but a whole number."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        described = [(table, row) for table in tables for row in connection.execute(f"PRAGMA table_info({table})")]
    return [(table, row[1]) for table, row in described if not row[5]]


def retype(path, table, column, change):
    """Change the column's value in the last row, around its affinity and NOT NULL; the tables look as before."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        _declare(connection, [(name, sql.replace(" TEXT", "").replace(" NOT NULL", "")) for name, sql in made])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        found = connection.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
        if found is not None:
            row, value = found
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (change(value), row))
        _declare(connection, made)


def _declare(connection, tables):
    connection.execute("PRAGMA writable_schema = ON")
    for name, sql in tables:
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
