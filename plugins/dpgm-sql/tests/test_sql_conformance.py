"""The source passes the conformance kit on each engine; the quick profile, since each case is a database of its own."""

import importlib.util
from itertools import count

import pytest
from dpgm_sql.kit import duckdb_records, records
from dpgm_sql.source import SqlSource

from dpgm_testing import SourceConformance


class TestSqlite(SourceConformance):
    """Streamed."""

    component = SqlSource
    records = staticmethod(records)
    profile = "quick"


@pytest.mark.skipif(importlib.util.find_spec("duckdb") is None, reason="DuckDB is not installed")
class TestDuckDb(SourceConformance):
    """Streamed, or pushed down where SQL makes the codes."""

    component = SqlSource
    records = staticmethod(duckdb_records)
    profile = "quick"


class TestPostgreSql(SourceConformance):
    """Streamed, or pushed down where SQL makes the codes; each case is a table of the one server."""

    component = SqlSource
    profile = "quick"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls, postgresql_server):
        """The tables are in a schema of the class's own, since what is told of one serves several checks."""
        dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
        numbers = count()

        def records(table, folder):
            name = f"records{next(numbers)}"
            cursor.adbc_ingest(name, table, db_schema_name="kit")
            return SqlSource(database=postgresql_server, table=f"kit.{name}")

        with dbapi.connect(postgresql_server, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA kit")
            cls.records = staticmethod(records)
            yield
            cursor.execute("DROP SCHEMA kit CASCADE")
