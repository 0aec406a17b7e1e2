"""Sums of one moment: whoever writes meanwhile, and however often the table is read."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from dpgm_sql.pinned import Counted, Streamed
from dpgm_sql.source import SqlSource

from dpgm_core import Domain, Structure
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import Reading, SourceRefused

DOMAIN = Domain.from_sizes({"a": 3, "b": 4})
COUNTS = Counts.of(Structure(DOMAIN, [("a", "b")]))
READING = Reading(domain=DOMAIN, columns=("a", "b"))
ROWS = [(0, 0, "p"), (0, 0, "q"), (1, 3, "p"), (2, 1, "p"), (2, 1, "r")]


@pytest.fixture(params=["stream", "auto"])
def count(request):
    """Both ways of counting: the second pushes down where the engine can."""
    return request.param


def filled(database, **options):
    database.run("CREATE TABLE visits (a integer, b integer, id varchar(9))")
    database.run("INSERT INTO visits VALUES " + ", ".join(map(str, ROWS)))
    return SqlSource(database=database.address, table="visits", **options)


def total(source, reading=READING):
    with source.pinned(reading) as pinned:
        return pinned.reduce(COUNTS)


EXPECTED = [2, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 5]


def test_sums_are_of_all_rows(database, count):
    assert total(filled(database, count=count)).tolist() == EXPECTED


def test_the_engine_counts_where_it_can(duckdb_file, postgresql_database):
    """Whole numbers with labels are counted by the engine itself; `push` is refused where it cannot."""
    for database in (duckdb_file, postgresql_database):
        with filled(database, count="push").pinned(READING) as pinned:
            assert isinstance(pinned, Counted)
    source = SqlSource(database=duckdb_file.address, table="visits", count="push")
    persons = Reading(domain=DOMAIN, columns=("a", "b"), person="id")
    with pytest.raises(SourceRefused, match="leave count out"), source.pinned(persons):
        pass


def test_several_sums_are_the_same_bits(database):
    """With codes that are kept, and with too little room for them, further sums equal the first."""
    source = filled(database, count="stream")
    several = Reading(domain=DOMAIN, columns=("a", "b"), several=True)
    with source.pinned(several) as pinned:
        assert [pinned.reduce(COUNTS).tolist() for _ in range(3)] == [EXPECTED] * 3
        assert len(pinned._blocks) == 1
        small = Streamed(pinned.session, pinned.table, pinned.columns, several, most=1)
        assert [small.reduce(COUNTS).tolist() for _ in range(3)] == [EXPECTED] * 3
        assert not small._blocks


def test_rows_of_a_person_are_bounded(database):
    """With a person key at most one row of each person counts, and only as many persons as there are."""
    sums = total(filled(database), Reading(domain=DOMAIN, columns=("a", "b"), person="id"))
    assert sums[-1] == 3
    assert sums[:-1].sum() == 3


def test_what_is_written_meanwhile_is_not_seen_in_postgresql(postgresql_database, count):
    """Rows inserted, changed, deleted and committed between passes show nothing; the next run sees them."""
    source = filled(postgresql_database, count=count)
    with source.pinned(READING) as pinned:
        first = pinned.reduce(COUNTS)
        postgresql_database.run("INSERT INTO visits VALUES (1, 1, 's'), (1, 1, 't')")
        postgresql_database.run("DELETE FROM visits WHERE a = 0")
        assert np.array_equal(pinned.reduce(COUNTS), first)
    assert total(source)[-1] == 5


def test_the_moment_is_that_of_opening(postgresql_database, count):
    """What is written before the first pass, but after the records were pinned, shows nothing either."""
    with filled(postgresql_database, count=count).pinned(READING) as pinned:
        postgresql_database.run("INSERT INTO visits VALUES (1, 1, 's')")
        assert pinned.reduce(COUNTS).tolist() == EXPECTED


def test_a_writer_of_sqlite_is_not_seen_with_a_log(sqlite_file):
    """With a write-ahead log others write while sums are taken, and nothing of it is seen."""
    sqlite_file.run("PRAGMA journal_mode = WAL")
    source = filled(sqlite_file)
    with source.pinned(READING) as pinned:
        sqlite_file.run("INSERT INTO visits VALUES (1, 1, 's')")
        assert pinned.reduce(COUNTS).tolist() == EXPECTED
    assert total(source)[-1] == 6


def test_a_writer_of_sqlite_waits_without_a_log(sqlite_file):
    """With a rollback journal a writer cannot commit before the sums are taken."""
    source = filled(sqlite_file)
    with source.pinned(READING) as pinned:
        with closing(sqlite3.connect(sqlite_file.address.removeprefix("sqlite:///"), timeout=0)) as writer:
            writer.execute("INSERT INTO visits VALUES (1, 1, 's')")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                writer.commit()
        assert pinned.reduce(COUNTS).tolist() == EXPECTED


def test_a_writer_of_duckdb_is_kept_out(duckdb_file, count):
    duckdb = pytest.importorskip("duckdb")
    source = filled(duckdb_file, count=count)
    with source.pinned(READING) as pinned:
        with pytest.raises(duckdb.Error):
            duckdb_file.run("INSERT INTO visits VALUES (1, 1, 's')")
        assert pinned.reduce(COUNTS).tolist() == EXPECTED
    duckdb_file.run("INSERT INTO visits VALUES (1, 1, 's')")
    assert total(source)[-1] == 6


def test_a_pass_that_failed_keeps_nothing(duckdb_file):
    """Of a pass that broke off no code is kept, so no later sum is of some rows only."""
    source = filled(duckdb_file, count="stream")
    several = Reading(domain=DOMAIN, columns=("a", "b"), several=True)
    with source.pinned(several) as pinned:

        class Broken:
            def batches(self, table, columns):
                yield from pinned.session.batches(table, columns)
                raise SourceRefused("the connection was lost")

        broken = Streamed(Broken(), pinned.table, pinned.columns, several)
        with pytest.raises(SourceRefused, match="the connection was lost"):
            broken.reduce(COUNTS)
        assert not broken._blocks


@pytest.mark.parametrize("command", ["INSERT INTO visits VALUES (1, 1, 's')", "CREATE TABLE other (a integer)"])
def test_nothing_can_be_written(database, command):
    """The session itself cannot write, whatever it is asked."""
    source = filled(database)
    with source.pinned(READING) as pinned, pytest.raises(SourceRefused):
        pinned.session.counted(command)
    assert total(source).tolist() == EXPECTED
