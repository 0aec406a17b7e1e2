"""SQLite: files that are none, or damaged, or locked; time that is up; texts in every encoding."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from dpgm_sql.source import SqlSource

from dpgm_core import Attribute, Domain, Structure
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import Reading, SourceRefused

DOMAIN = Domain.from_sizes({"a": 3})
READING = Reading(domain=DOMAIN, columns=("a",))
COUNTS = Counts.of(Structure(DOMAIN, [("a",)]))


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
    sqlite_file.run("CREATE TABLE visits (a integer)")
    with closing(sqlite3.connect(sqlite_file.address.removeprefix("sqlite:///"), isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        source = SqlSource(database=sqlite_file.address, table="visits", timeout=0.3)
        with pytest.raises(SourceRefused, match="holds it locked"), source.pinned(READING):
            pass
        assert time.monotonic() - started < 10


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
