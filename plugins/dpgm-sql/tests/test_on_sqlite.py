"""SQLite: files that are none, or damaged, or locked; time that is up; texts in every encoding."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from dpgm_sql.source import SqlSource

from dpgm_core import Attribute, Domain, Structure
from dpgm_core.counting.passes import fewest_sums
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import Reading, SourceRefused

DOMAIN = Domain.from_sizes({"a": 3})
READING = Reading(domain=DOMAIN, columns=("a",))
COUNTS = Counts.of(Structure(DOMAIN, [("a",)]))


@pytest.mark.parametrize("name", ["missing.sqlite", "folder", "text.csv", "short.sqlite"])
def test_a_file_that_is_none_is_refused_and_not_made(tmp_path, name):
    """A missing file, a folder, a text, a database cut short: one sentence, and nothing is written."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.csv").write_text("a,b\nplanted,1\n" * 100)
    with closing(sqlite3.connect(tmp_path / "whole.sqlite")) as connection:
        connection.execute("CREATE TABLE visits (a integer, b text)")
        connection.executemany("INSERT INTO visits VALUES (1, ?)", [("planted",)] * 5000)
        connection.commit()
    (tmp_path / "short.sqlite").write_bytes((tmp_path / "whole.sqlite").read_bytes()[:50_000])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    source = SqlSource(database=f"sqlite:///{tmp_path / name}", table="visits")
    with (
        pytest.raises(SourceRefused, match=r"no file|cannot be read|cannot read") as refused,
        source.pinned(READING) as pinned,
    ):
        pinned.reduce(COUNTS)
    assert "planted" not in str(refused.value)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_damaged_page_is_refused_without_its_content(sqlite_file):
    """A table whose pages were overwritten with a text: the pass fails, or the values are unknown; none is shown."""
    sqlite_file.run(
        "CREATE TABLE visits (a integer, b text); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 5000) INSERT INTO visits SELECT i % 3, 'planted' FROM n"
    )
    with Path(sqlite_file.address.removeprefix("sqlite:///")).open("r+b") as file:
        file.seek(4096 * 4)
        file.write(b"planted{" * 2048)
    source = SqlSource(database=sqlite_file.address, table="visits", count="stream")
    with pytest.raises(SourceRefused, match="withheld") as refused, source.pinned(READING) as pinned:
        pinned.reduce(COUNTS)
    assert "planted" not in str(refused.value)


def test_a_file_that_somebody_holds_locked_is_refused_in_time(sqlite_file):
    """After at most `timeout` seconds."""
    sqlite_file.run("CREATE TABLE visits (a integer)")
    with closing(sqlite3.connect(sqlite_file.address.removeprefix("sqlite:///"), isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        source = SqlSource(database=sqlite_file.address, table="visits", timeout=0.3)
        with pytest.raises(SourceRefused, match="holds it locked"), source.pinned(READING):
            pass
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("way", ["stream", "auto"])
def test_a_query_that_takes_too_long_is_ended(sqlite_file, way):
    """After `timeout` seconds, also before its first row."""
    sqlite_file.run(
        "CREATE VIEW visits AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
        "SELECT max(i) % 3 AS a FROM n"
    )
    started = time.monotonic()
    source = SqlSource(database=sqlite_file.address, table="visits", timeout=0.5, count=way)
    with pytest.raises(SourceRefused, match=r"timeout = 0\.5 seconds"), source.pinned(READING) as pinned:
        pinned.reduce(COUNTS)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("way", ["stream", "push"])
def test_a_query_is_ended_by_ctrl_c(sqlite_file, way, ctrl_c):
    """At once, also before its first row; and the file can be read again."""
    sqlite_file.run(
        "CREATE VIEW visits AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
        "SELECT max(i) % 3 AS a FROM n"
    )
    source = SqlSource(database=sqlite_file.address, table="visits", timeout=20, count=way)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), source.pinned(READING) as pinned:
        ctrl_c.start()
        pinned.reduce(fewest_sums(Structure(DOMAIN, [("a",)])))
    assert time.monotonic() - started < 15
    assert source.names() == ("a",)


def test_texts_of_any_encoding_are_read_in_utf8(tmp_path):
    """A file that holds texts in UTF-16 gives the labels that one in UTF-8 gives, and broken bytes are unknown."""
    domain = Domain([Attribute.of_labels("town", ["Zürich", "A"], unknown="?", null="none")])
    for encoding in ("UTF-8", "UTF-16le", "UTF-16be"):
        path = tmp_path / f"{encoding}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA encoding = '{encoding}'")
            connection.execute("CREATE TABLE visits (town TEXT)")
            connection.executemany("INSERT INTO visits VALUES (?)", [("Zürich",), ("A",), (None,), (b"\xff\xfe",)])
            connection.commit()
        for way in ("stream", "auto"):
            source = SqlSource(database=f"sqlite:///{path}", table="visits", count=way)
            with source.pinned(Reading(domain=domain, columns=("town",))) as pinned:
                assert pinned.reduce(Counts.of(Structure(domain, [("town",)]))).tolist() == [1, 1, 1, 1, 4]
