"""SQL of one engine: quoted names, a table, and its columns as they are read."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import frozen

from dpgm_core.sources import SourceRefused

__all__ = ["Column", "Dialect", "Engine", "quoted"]

Engine: TypeAlias = Literal["duckdb", "sqlite", "postgresql"]


def quoted(name: str) -> str:
    """An identifier as all three engines take it, whatever is in it. Raises SourceRefused for a NUL, or no text.

    >>> quoted('a "b"; drop table c')
    '"a ""b""; drop table c"'
    """
    if not name or "\0" in name:
        raise SourceRefused("a name of a table or column in SQL must be a text without NUL, at least one letter long")
    return '"' + name.replace('"', '""') + '"'


@frozen(kw_only=True)
class Column:
    """A column and how it is read.

    declared: its type in the engine's own words, lower case, without length or precision, such as "bigint" or
    "character varying"; in SQLite what CREATE TABLE says, which binds nobody. read: the SQL expression whose values are
    streamed, such as '"age"' or 'CAST("n" AS VARCHAR)'. kind: the Arrow type of what it gives.
    """

    name: str
    declared: str
    read: str
    kind: Any


@frozen(kw_only=True)
class Dialect:
    """An engine, and the table that is asked there. table: its quoted name, as it stands behind FROM."""

    engine: Engine
    table: str
