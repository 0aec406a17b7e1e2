"""Records for the conformance kit: a database made of a pyarrow table in an empty folder."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpgm_core import DataError
from dpgm_sql.dialect import quoted
from dpgm_sql.session import driver
from dpgm_sql.source import SqlSource

__all__ = ["duckdb_records", "records"]


def records(table: Any, folder: Path) -> SqlSource:
    """An SQLite file, which needs no driver. Raises DataError for lists and the like, which it cannot hold."""
    for kind in table.schema.types:
        if pa.types.is_nested(kind):
            raise DataError(f"SQLite holds no {kind}")
    path = folder / "records.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        # Of types only that of floats is said: no float is a person's key, whatever is stored.
        columns = ", ".join(
            f"{quoted(column.name)} {'REAL' if pa.types.is_floating(column.type) else ''}" for column in table.schema
        )
        connection.execute(f"CREATE TABLE records ({columns})")
        rows = zip(*(map(_plain, table[name].to_pylist()) for name in table.column_names), strict=True)
        places = ", ".join("?" * table.num_columns)
        connection.executemany(f"INSERT INTO records VALUES ({places})", rows)
        connection.commit()
    return SqlSource(database=f"sqlite:///{path}", table="records")


def duckdb_records(table: Any, folder: Path) -> SqlSource:
    """A DuckDB file."""
    path = folder / "records.duckdb"
    with driver("duckdb", "driver of DuckDB", "duckdb").connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE records AS SELECT * FROM given")
    return SqlSource(database=f"duckdb:///{path}", table="records")


def _plain(value: Any) -> Any:
    """A value as SQLite stores it."""
    return value if value is None or isinstance(value, (int, float, bytes, str)) else str(value)
