"""PostgreSQL: a server that is away, says no, takes too long or goes in the middle; what was charged stands."""

import time
from fractions import Fraction

import numpy as np
import pytest
from dpgm_sql.on_postgresql import PostgreSql
from dpgm_sql.source import SqlSource

import dpgm_core as dpgm
from dpgm_core import Budget, Domain, Ledger, Structure, Terms, Workload
from dpgm_core.counting.table_counts import Counts
from dpgm_core.learning import NodeGradients, Regressions
from dpgm_core.sources import Reading, SourceRefused

pytest.importorskip("adbc_driver_postgresql", reason="the driver of PostgreSQL is not installed")

DOMAIN = Domain.from_sizes({"a": 3, "b": 4, "c": 2})
STRUCTURE = Structure(DOMAIN, [("a", "b"), ("b", "c")])
READING = Reading(domain=DOMAIN, columns=("a", "b", "c"))


@pytest.fixture
def large(postgresql_database):
    postgresql_database.run(
        "CREATE TABLE visits AS SELECT i % 3 AS a, i % 4 AS b, i % 2 AS c, repeat('x', 20) AS d "
        "FROM generate_series(1, 500000) AS i"
    )
    return postgresql_database


def killed(database, monkeypatch, after):
    """From the `after`-th batch on, the server ends every session but that of the test."""
    batches, seen = PostgreSql.batches, []

    def ending(self, table, columns):
        for batch in batches(self, table, columns):
            seen.append(batch.num_rows)
            if len(seen) == after:
                database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpgm'")
            yield batch

    monkeypatch.setattr(PostgreSql, "batches", ending)
    return seen


def curator_of(source, ledger, **options):
    terms = Terms(neighbours="add-remove", total="estimated")
    mechanism = dpgm.make("mechanism", "laplace")
    return dpgm.LiveCurator(source, STRUCTURE, mechanism, terms=terms, budget=Budget.pure(1), ledger=ledger, **options)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(
        tmp_path / "visits.ledger", name="visits", budget=Budget.pure(2), neighbours="add-remove", unit="one record"
    )


def test_a_connection_lost_before_the_charge_spends_nothing(large, ledger, monkeypatch):
    """The records are counted first; what breaks off there leaves the ledger as it was."""
    source = SqlSource(database=large.address, table="visits", count="stream")
    with monkeypatch.context() as patch:
        seen = killed(large, patch, 1)
        with pytest.raises(SourceRefused, match="connection to the database was lost"):
            curator_of(source, ledger).release()
    assert 0 < sum(seen) < 500_000
    assert ledger.remaining() == Budget.pure(2)
    curator_of(source, ledger).release()
    assert ledger.remaining() == Budget.pure(1)


def test_a_connection_lost_after_the_charge_leaves_it(large, ledger):
    """A session is charged as it opens, with its tables counted; a later pass fails, and the charge stands."""
    source = SqlSource(database=large.address, table="visits")
    regressions = Regressions(candidates=STRUCTURE, loss="softmax")
    gradient = NodeGradients(regressions=regressions, weights=regressions.zeros(), radius=2, clip="0.3")
    opened = curator_of(source, ledger)
    with (
        pytest.raises(SourceRefused, match="connection to the database was lost"),
        opened.session(workload=Workload.all(DOMAIN, 2)) as session,
    ):
        session.measure([("a",)], session.budget * Fraction(1, 10))
        assert ledger.remaining() == Budget.pure(1)
        large.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpgm'")
        session.descend(gradient, session.budget * Fraction(1, 10))
    assert ledger.remaining() == Budget.pure(1)
    assert opened.remaining.is_zero


def test_the_server_is_left_when_the_sums_are_taken(large):
    """No session stays open, whether the records were read to the end or not."""
    source = SqlSource(database=large.address, table="visits", count="stream")
    next(iter(source.batches(DOMAIN, DOMAIN.names)))
    with source.pinned(READING) as pinned:
        assert pinned.reduce(Counts.of(STRUCTURE))[-1] == 500_000
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and sessions(large):
        time.sleep(0.05)
    assert not sessions(large)


def sessions(database):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(database.address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dpgm'")
        return cursor.fetchone()[0]


def one(name):
    return Reading(domain=Domain.from_sizes({name: 3}), columns=(name,))


def test_a_table_that_may_not_be_read_is_refused(postgresql_database):
    """For want of the right, which is said; nothing of the table is."""
    postgresql_database.run("CREATE TABLE visits (a integer)")
    postgresql_database.run("DROP ROLE IF EXISTS guest")
    postgresql_database.run("CREATE ROLE guest LOGIN")
    guest = postgresql_database.address.replace("user=postgres", "user=guest")
    try:
        postgresql_database.run("GRANT USAGE ON SCHEMA public TO guest")
        source = SqlSource(database=guest, table="visits")
        with pytest.raises(SourceRefused, match="may not read the table"), source.pinned(one("a")):
            pass
    finally:
        postgresql_database.run("DROP OWNED BY guest")
        postgresql_database.run("DROP ROLE guest")


def test_what_a_view_says_reaches_nobody(postgresql_database, capfd):
    """Notices and warnings of a function that a view calls, which the client library would print."""
    postgresql_database.run("CREATE TABLE visits AS SELECT 1 AS a")
    postgresql_database.run(
        "CREATE FUNCTION noisy(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE NOTICE 'planted %', a; RAISE WARNING 'planted %', a; RAISE INFO 'planted %', a; RETURN a; END $$"
    )
    postgresql_database.run("CREATE VIEW loud AS SELECT noisy(a) AS a FROM visits")
    for way in ("stream", "push"):
        source = SqlSource(database=postgresql_database.address, table="loud", count=way)
        with source.pinned(one("a")) as pinned:
            assert pinned.reduce(Counts.of(Structure(Domain.from_sizes({"a": 3}), [("a",)])))[-1] == 1
    assert "planted" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("address", ["postgresql://127.0.0.1:1/clinic", "postgresql:///clinic?host=/no/such/folder"])
def test_a_server_that_cannot_be_reached_is_said(address):
    """In bounded time, without the driver's words."""
    started = time.monotonic()
    with pytest.raises(SourceRefused, match="no connection to postgresql://") as refused:
        SqlSource(database=address, table="visits").names()
    assert time.monotonic() - started < 15
    assert "\n" not in str(refused.value)


def test_a_table_that_changes_between_passes_shows_nothing(postgresql_database):
    """Also a change of its columns: the server makes who alters it wait until the sums are taken."""
    postgresql_database.run("CREATE TABLE visits AS SELECT i % 3 AS a FROM generate_series(1, 100) AS i")
    postgresql_database.run("SET lock_timeout = 200")
    counts = Counts.of(Structure(Domain.from_sizes({"a": 3}), [("a",)]))
    with SqlSource(database=postgresql_database.address, table="visits").pinned(one("a")) as pinned:
        first = pinned.reduce(counts)
        with pytest.raises(Exception, match="lock timeout"):
            postgresql_database.run("ALTER TABLE visits ALTER COLUMN a TYPE text")
        assert np.array_equal(pinned.reduce(counts), first)


def test_short_queries_are_optimised_and_long_ones_interpreted(large):
    """What the server compiles is optimised from the same cost on; a query of a large domain is not compiled."""
    setting = "SELECT CAST(current_setting('{}') AS float8) AS a"
    jit = "SELECT CASE current_setting('jit') WHEN 'on' THEN 1 ELSE 0 END AS a"
    with SqlSource(database=large.address, table="visits")._opened() as (session, _):
        for name in ("jit_inline_above_cost", "jit_optimize_above_cost"):
            assert session.counted(setting.format(name)) == session.counted(setting.format("jit_above_cost"))
        default = session.read(jit)
        session.counted(f"{jit} /* {'x' * 10_000} */")
        assert session.read(jit).column(0).to_pylist() == [0]
        assert session.counted(jit) == default
