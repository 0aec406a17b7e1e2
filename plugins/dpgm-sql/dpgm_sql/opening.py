"""Sessions by address; the driver of an engine is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpgm_sql.address import Address
from dpgm_sql.on_duckdb import open_duckdb
from dpgm_sql.on_postgresql import open_postgresql
from dpgm_sql.on_sqlite import open_sqlite
from dpgm_sql.session import Session

__all__ = ["opened"]

_OPENERS: Mapping[str, Callable[[Address, float], Session]] = {
    "duckdb": open_duckdb,
    "sqlite": open_sqlite,
    "postgresql": open_postgresql,
}


def opened(address: Address, seconds: float) -> Session:
    """A session with the database of an address. seconds: what one query may take. Raises SourceRefused."""
    return _OPENERS[address.engine](address, seconds)
