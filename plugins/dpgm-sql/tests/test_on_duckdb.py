"""DuckDB: what is read equals what was written, whatever its type; the file is neither made nor changed."""

import subprocess
import sys
from contextlib import closing

import pytest
from dpgm_sql import on_duckdb
from dpgm_sql.address import read_address
from dpgm_sql.on_duckdb import open_duckdb
from dpgm_sql.source import SqlSource

from dpgm_core import Domain
from dpgm_core.sources import Reading, SourceRefused

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

DOMAIN = Domain.from_sizes({"a": 3, "b": 4})


def test_a_table_is_streamed_with_its_person_keys(duckdb_file):
    """Codes and keys of all rows come, in batches."""
    duckdb_file.run(
        "CREATE TABLE visits AS SELECT range % 3 AS a, range % 4 AS b, 'p' || range AS id FROM range(300000)"
    )
    source = SqlSource(database=duckdb_file.address, table="visits")
    batches = list(source.keyed_batches(DOMAIN, ["b", "a"], "id"))
    assert len(batches) > 1
    assert sum(len(codes[0]) for codes, _ in batches) == 300_000
    assert [codes[0][:6].tolist() for codes, _ in batches[:1]] == [[0, 1, 2, 3, 0, 1]]
    assert batches[0][1][:2].to_pylist() == ["p0", "p1"]


def test_a_file_is_read_twice_at_once(duckdb_file):
    """One instance of a file serves all sessions of a process: none may keep the next one from its settings."""
    duckdb_file.run("CREATE TABLE visits AS SELECT 1 AS a")
    source = SqlSource(database=duckdb_file.address, table="visits")
    address = read_address(duckdb_file.address)
    with source.pinned(Reading(domain=DOMAIN, columns=("a",))), closing(open_duckdb(address, 5)):
        assert source.names() == ("a",)


def test_what_closes_the_file_cannot_be_undone(duckdb_file):
    """No query opens it again to other files or to writing, whoever would send one."""
    duckdb_file.run("CREATE TABLE visits AS SELECT 1 AS a")
    with closing(open_duckdb(read_address(duckdb_file.address), 5)) as session:
        for query in ("SET enable_external_access = true", "FROM read_text('/etc/hostname')", "CREATE TABLE b (c INT)"):
            with pytest.raises(duckdb.Error):
                session.connection.execute(query)


def test_a_file_that_another_process_writes_is_refused(duckdb_file):
    duckdb_file.run("CREATE TABLE visits (a integer)")
    path = duckdb_file.address.removeprefix("duckdb:///")
    script = f"import duckdb; c = duckdb.connect({path!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        with pytest.raises(SourceRefused, match="another process writes to it"):
            SqlSource(database=duckdb_file.address, table="visits").names()
        writer.communicate(b"\n")


@pytest.mark.parametrize("content", ["read_csv('{0}')", "'{0}'"])
def test_nothing_outside_of_the_file_is_read(duckdb_file, tmp_path, content):
    """A view over another file is refused: nothing would hold that still."""
    (tmp_path / "other.csv").write_text("a\n1\n")
    duckdb_file.run(f"CREATE VIEW visits AS SELECT * FROM {content.format(tmp_path / 'other.csv')}")
    with pytest.raises(SourceRefused):
        SqlSource(database=duckdb_file.address, table="visits").names()
    with pytest.raises(SourceRefused):
        SqlSource(database=duckdb_file.address, table=[str(tmp_path / "other.csv")]).names()


def test_a_count_has_little_memory_unless_it_needs_more(duckdb_file, monkeypatch):
    """A limit holds for counts alone; one that is not enough is lifted for that count."""
    duckdb_file.run("CREATE TABLE visits AS SELECT range AS a FROM range(1000000)")
    limit = "SELECT current_setting('memory_limit')"
    with closing(open_duckdb(read_address(duckdb_file.address), 60)) as session:
        usual = session.connection.execute(limit).fetchall()
        assert session.counted(limit).column(0).to_pylist() == ["256.0 MiB"]
        monkeypatch.setattr(on_duckdb, "_MAX_CACHED", "8MiB")
        assert session.counted("SELECT count(*) FROM (SELECT DISTINCT a FROM visits)").column(0).to_pylist() == [10**6]
        assert session.connection.execute(limit).fetchall() == usual
