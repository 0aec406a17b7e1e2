"""The source's options, and what it says where a table is not as it was asked for."""

import pytest
from dpgm_sql.source import SqlSource

import dpgm_core as dpgm
from dpgm_core import Domain, DpgmError
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import KeyedSource, NamedColumns, RawValues, Reading, ReducingSource, SourceRefused

DOMAIN = Domain.from_sizes({"a": 2})


def test_it_keeps_the_contracts_it_should():
    """Rows with keys, raw values for the owner, and sums where the rows are."""
    source = dpgm.make("source", "sql", database="sqlite:///x.db", table=["main", "visits"])
    assert isinstance(source, KeyedSource) and isinstance(source, RawValues)
    assert isinstance(source, NamedColumns) and isinstance(source, ReducingSource)
    assert source.table == ("main", "visits")
    assert dpgm.make("source", "sql", database="sqlite:///x.db", table="ab").table == ("ab",)


WRONG = (
    [{"timeout": value} for value in (0, -1, float("nan"), float("inf"), True, "1", None, 10**9, 10**400)]
    + [{"count": value} for value in ("both", True, None, 1)]
    + [{"table": value} for value in ("", ".", "a.b.c", "a.", [], ["a", 1], ["a", "b", "c"], 7, None, "a\0b", True)]
    + [
        {"address_from": "env:X"},
        {"database": None},
        {"where": "a = 1"},
        {"database": 7},
        {"address_from": 7, "database": None},
    ]
)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(DpgmError) as refused:
        dpgm.make("source", "sql", **({"database": "sqlite:///x.db", "table": "visits"} | wrong))
    assert "\n" not in str(refused.value)


def test_nothing_of_a_password_is_in_any_refusal():
    """Whatever option it was written into, of whatever type, by whatever name."""
    secret = "postgresql://me:pl4nted@localhost/clinic"
    for options in (
        {"database": secret},
        {"database": [secret]},
        {"database": {"url": secret}},
        {"databse": secret},
        {"address_from": secret},
        {"address_from": [secret]},
        {"address_from": "env:" + secret},
        {"address_from": "env:host=localhost dbname=clinic password=pl4nted"},
        {"address_from": "env:postgresql:me:pl4nted@localhost"},
        {"address_from": "keyring:host=/tmp password = pl4nted dbname=a/b"},
    ):
        with pytest.raises(DpgmError) as refused:
            dpgm.make("source", "sql", table="visits", **options)
        assert "pl4nted" not in f"{refused.value!r}{refused.value.__cause__}{refused.value.__context__}"


def test_identifiers_are_quoted(database):
    name, column = 'drop "t"; --', 'select " from'
    quoted_name, quoted_column = (f'"{text.replace(chr(34), chr(34) * 2)}"' for text in (name, column))
    database.run(f"CREATE TABLE {quoted_name} ({quoted_column} integer)")
    database.run(f"INSERT INTO {quoted_name} VALUES (1), (0), (1)")
    source = SqlSource(database=database.address, table=[name])
    assert source.names() == (column,)
    domain = Domain.from_sizes({column: 2})
    assert [part.tolist() for (part,) in source.batches(domain, [column])] == [[1, 0, 1]]


def test_a_schema_may_be_named(database):
    database.run("CREATE TABLE visits (a integer)")
    schema = {"postgresql": "public"}.get(database.engine, "main")
    assert SqlSource(database=database.address, table=f"{schema}.visits").names() == ("a",)
    with pytest.raises(SourceRefused, match=r"has no table elsewhere\.visits"):
        SqlSource(database=database.address, table="elsewhere.visits").names()


@pytest.mark.parametrize("way", ["stream", "auto"])
def test_what_is_missing_is_refused_and_nothing_is_suggested(database, way):
    """A table or column that is not there; of those that are none is named."""
    database.run("CREATE TABLE visits (a integer, secretive integer)")
    for table, column, words in (("visit", "a", "has no table visit"), ("visits", "secretiv", "no column 'secretiv'")):
        source = SqlSource(database=database.address, table=table, count=way)
        reading = Reading(domain=Domain.from_sizes({column: 2}), columns=(column,))
        with pytest.raises(SourceRefused, match=words) as pinned, source.pinned(reading):
            pass
        with pytest.raises(SourceRefused, match=words) as read:
            list(source.batches(reading.domain, [column]))
        for said in (str(pinned.value), str(read.value)):
            assert "secretive" not in said
            assert said.count("visits") == (table == "visits")


def test_a_name_of_another_case_is_another_name(database):
    """Exact names only, also where the engine would take one for the other: or a text for a column."""
    database.run("CREATE TABLE visits (a integer)")
    with pytest.raises(SourceRefused, match="no column 'A'"):
        list(SqlSource(database=database.address, table="visits").batches(Domain.from_sizes({"A": 2}), ["A"]))


def test_a_view_that_is_out_of_date_is_refused(duckdb_file, sqlite_file):
    """One whose table has lost a column: one sentence, before any sum. (PostgreSQL keeps such a column.)"""
    for database in (duckdb_file, sqlite_file):
        database.run("CREATE TABLE visits (a integer, b integer); CREATE VIEW seen AS SELECT a, b FROM visits")
        database.run("DROP TABLE visits")
        database.run("CREATE TABLE visits (c integer)")
        source = SqlSource(database=database.address, table="seen")
        with pytest.raises(SourceRefused, match="out of date"), source.pinned(Reading(domain=DOMAIN, columns=("a",))):
            pass


@pytest.mark.parametrize("way", ["stream", "auto"])
def test_a_value_that_a_view_fails_on_is_not_shown(database, way, capfd):
    """A cast of a planted text inside a view: the engine would quote it, and we do not."""
    cast = {"sqlite": "json(a)"}.get(database.engine, "CAST(a AS integer)")
    database.run("CREATE TABLE visits (a varchar(20))")
    database.run("INSERT INTO visits VALUES ('1'), ('pl4nted{')")
    database.run(f"CREATE VIEW seen AS SELECT {cast} AS a FROM visits")
    source = SqlSource(database=database.address, table="seen", count=way)
    with (
        pytest.raises(SourceRefused, match="withheld") as refused,
        source.pinned(Reading(domain=DOMAIN, columns=("a",))) as pinned,
    ):
        pinned.reduce(Counts.of(dpgm.Structure(DOMAIN, [("a",)])))
    seen, message = refused.value, ""
    while seen is not None:
        message += f"{seen!r}{seen}"
        seen = seen.__cause__ or seen.__context__
    assert "pl4nted" not in message
    assert "pl4nted" not in "".join(capfd.readouterr())


def test_a_key_of_floats_is_refused_in_words_that_are_shown(database):
    """By the type alone, so what is said reaches whoever asked, as of a file; SQLite by the type of CREATE TABLE."""
    database.run("CREATE TABLE visits (a integer, id double precision)")
    structure = dpgm.Structure(DOMAIN, [("a",)])
    terms = dpgm.Terms(neighbours="add-remove", person="id", rows_per_person=2)
    with pytest.raises(DpgmError, match="person key 'id' is a column of floats, in which large numbers merge"):
        dpgm.fit(SqlSource(database=database.address, table="visits"), structure, dpgm.Budget.pure(1), terms=terms)


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_a_file_that_is_not_there_is_told_how_paths_are_read(engine, tmp_path):
    """With four slashes, as somebody writes who knows other tools, and relative."""
    pytest.importorskip("sqlite3" if engine == "sqlite" else "duckdb")
    source = SqlSource(database=f"{engine}:///{tmp_path}/none.db", table="visits")
    with pytest.raises(SourceRefused, match="is no file; a path is relative to the spec, in Python to the working"):
        source.names()
