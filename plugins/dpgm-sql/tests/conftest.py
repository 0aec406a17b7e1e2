"""Databases for the tests: a DuckDB and an SQLite file, and a real PostgreSQL server, of pip's or of the machine's."""

import importlib.util
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from dpgm_sql.dialect import quoted


@frozen
class Database:
    """A database that a test may write to: its engine, the address for a spec, and functions that run SQL and that
    make a table of a pyarrow Table."""

    engine: str
    address: str
    run: Callable[[str], None]
    fill: Callable[[str, Any], None]


@pytest.fixture
def ctrl_c():
    """A timer that is Ctrl-C, also where whoever began the tests has it ignored, as shells do in the background."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
    yield timer
    timer.cancel()
    signal.signal(signal.SIGINT, usual)


@pytest.fixture
def duckdb_file(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

    def run(script):
        with duckdb.connect(str(tmp_path / "records.duckdb")) as connection:
            connection.execute(script)

    def fill(name, table):
        with duckdb.connect(str(tmp_path / "records.duckdb")) as connection:
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")

    run("SELECT 1")
    return Database("duckdb", f"duckdb:///{tmp_path}/records.duckdb", run, fill)


@pytest.fixture
def sqlite_file(tmp_path):
    def run(script):
        connection = sqlite3.connect(tmp_path / "records.sqlite")
        connection.executescript(script)
        connection.close()

    def fill(name, table):
        with closing(sqlite3.connect(tmp_path / "records.sqlite")) as connection:
            connection.execute(f"CREATE TABLE {name} ({', '.join(map(quoted, table.column_names))})")
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})", rows)
            connection.commit()

    run("CREATE TABLE _made (a)")
    return Database("sqlite", f"sqlite:///{tmp_path}/records.sqlite", run, fill)


@pytest.fixture(scope="session")
def postgresql_server():
    """The address of a real server: that in DPGM_TEST_POSTGRESQL, pgserver's, or one of the machine's own programs."""
    pytest.importorskip("adbc_driver_postgresql", reason="the driver of PostgreSQL is not installed")
    if "DPGM_TEST_POSTGRESQL" in os.environ:
        yield os.environ["DPGM_TEST_POSTGRESQL"]
        return
    # Not below pytest's folder: the server does not run as root, and another run of pytest may tidy that up.
    with tempfile.TemporaryDirectory(prefix="dpgm-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        if importlib.util.find_spec("pgserver") is not None:
            pgserver = importlib.import_module("pgserver")
            server = pgserver.get_server(f"{folder}/data")
            server.psql("ALTER SYSTEM SET fsync = off")
            server.psql("SELECT pg_reload_conf()")
            yield f"postgresql:///postgres?host={server.get_uri().partition('host=')[2]}&user=postgres"
            server.cleanup()
            return
        if shutil.which("initdb") is None or os.geteuid() == 0:
            pytest.skip("no PostgreSQL server: install pgserver, or put initdb and pg_ctl on PATH (and do not be root)")
        data = f"{folder}/data"
        subprocess.run(["initdb", "-D", data, "-U", "postgres", "-A", "trust"], check=True, capture_output=True)
        command = ["pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
        subprocess.run([*command, "-o", f"-k {folder} -c listen_addresses=", "start"], check=True, capture_output=True)
        yield f"postgresql:///postgres?host={folder}&user=postgres"
        subprocess.run([*command, "-m", "immediate", "stop"], check=True, capture_output=True)


@pytest.fixture
def postgresql_database(postgresql_server):
    """The server's one database, empty: each test has a new schema `public`."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgresql_server, autocommit=True) as connection, connection.cursor() as cursor:
        for command in ("SET client_min_messages = error", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public"):
            cursor.execute(command)

        def fill(name, table):
            cursor.adbc_ingest(name, table)

        def run(script):
            cursor.execute(script)
            cursor.fetch_arrow_table()  # a query runs no further than somebody reads

        yield Database("postgresql", postgresql_server, run, fill)


@pytest.fixture(params=["duckdb_file", "sqlite_file", "postgresql_database"])
def database(request):
    """An empty database of each engine that is installed."""
    return request.getfixturevalue(request.param)
