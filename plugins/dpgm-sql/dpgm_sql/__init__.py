"""The source `sql` of dpgm: a table or view of a DuckDB, SQLite or PostgreSQL database."""

from collections.abc import Iterable

from dpgm_core.plugin import Component, hookimpl

__all__ = ["dpgm_components"]


@hookimpl
def dpgm_components() -> Iterable[Component]:
    """Yield the one component of this distribution."""
    yield Component(
        kind="source",
        name="sql",
        target="dpgm_sql.source:SqlSource",
        summary="a table or view of a DuckDB, SQLite or PostgreSQL database, counted there or streamed",
        records="dpgm_sql.kit:records",
    )
