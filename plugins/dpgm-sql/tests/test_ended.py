"""All engines alike: queries that take too long, or that somebody ends, and files that are none."""

import sqlite3
import time
from contextlib import closing

import pytest
from dpgm_sql.source import SqlSource

from dpgm_core import Domain, Structure
from dpgm_core.counting.table_counts import Counts, fewest_sums
from dpgm_core.sources import Reading, SourceRefused

STRUCTURE = Structure(Domain.from_sizes({"a": 3}), [("a",)])
READING = Reading(domain=STRUCTURE.domain, columns=("a",))

# What takes for ever, the SELECT of each engine and how it is counted; with max() there is no first row before the end.
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)"
_SERIES = "generate_series(1, 100000) AS a(i), generate_series(1, 1000000) AS b(i)"
SLOW = [
    ("sqlite_file", f"{_NUMBERS} SELECT max(i) % 3 AS a FROM n"),
    ("duckdb_file", "SELECT (a.range * b.range) % 3 AS a FROM range(1000000) a, range(1000000) b"),
    ("duckdb_file", "SELECT max(a.range * b.range) % 3 AS a FROM range(1000000) a, range(1000000) b"),
    ("postgresql_database", f"SELECT CAST((a.i * b.i) % 3 AS integer) AS a FROM {_SERIES}"),
    ("postgresql_database", f"SELECT CAST(max(a.i * b.i) % 3 AS integer) AS a FROM {_SERIES}"),
]


@pytest.mark.parametrize("way", ["stream", "auto", "push"])
@pytest.mark.parametrize(("engine", "select"), SLOW)
def test_a_query_that_takes_too_long_is_ended(request, engine, select, way):
    database = request.getfixturevalue(engine)
    database.run(f"CREATE VIEW visits AS {select}")
    source = SqlSource(database=database.address, table="visits", timeout=0.5, count=way)
    started = time.monotonic()
    with pytest.raises(SourceRefused, match=r"timeout = 0\.5 seconds"), source.pinned(READING) as pinned:
        pinned.reduce(Counts.of(STRUCTURE))
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("way", ["stream", "push"])
@pytest.mark.parametrize(("engine", "select"), SLOW)
def test_a_query_is_ended_by_ctrl_c(request, engine, select, way, ctrl_c):
    """At once, as what it is and not as a fault of the table; no session is left, and the table can be read again."""
    database = request.getfixturevalue(engine)
    database.run(f"CREATE VIEW visits AS {select}")
    source = SqlSource(database=database.address, table="visits", timeout=20, count=way)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), source.pinned(READING) as pinned:
        ctrl_c.start()
        pinned.reduce(fewest_sums(STRUCTURE))
    assert time.monotonic() - started < 15
    assert source.names() == ("a",)


@pytest.mark.parametrize("name", ["missing.db", "", "folder", "text.csv", "short.db"])
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_file_that_is_none_is_refused_and_not_made(tmp_path, engine, name):
    """A missing file, a folder, a text, an SQLite file cut short: one sentence, and nothing is written."""
    pytest.importorskip("sqlite3" if engine == "sqlite" else "duckdb")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.csv").write_text("a,b\nplanted,1\n" * 100)
    with closing(sqlite3.connect(tmp_path / "whole.db")) as connection:
        connection.execute("CREATE TABLE visits (a integer, b text)")
        connection.executemany("INSERT INTO visits VALUES (1, ?)", [("planted",)] * 5000)
        connection.commit()
    (tmp_path / "short.db").write_bytes((tmp_path / "whole.db").read_bytes()[:50_000])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    source = SqlSource(database=f"{engine}:///{tmp_path / name}", table="visits")
    with (
        pytest.raises(SourceRefused, match=r"no file|cannot be read|cannot read") as refused,
        source.pinned(READING) as pinned,
    ):
        pinned.reduce(Counts.of(STRUCTURE))
    assert "planted" not in str(refused.value)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
