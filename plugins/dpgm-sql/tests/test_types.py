"""Types of columns: exact, cell by cell where an engine promises nothing, and refused where they have no labels."""

from collections import Counter

import pytest
from dpgm_sql.source import SqlSource

from dpgm_core import Attribute, DataError, Domain
from dpgm_core.sources import Reading

#: Type, literals, and the labels that these values have.
OF_POSTGRESQL = [
    ("smallint", ["7", "-1"], ["7", "-1"]),
    ("bigint", ["9223372036854775807"], ["9223372036854775807"]),
    (
        "numeric",
        ["1.50", "7", "0.10", "123456789012345678901234567890"],
        ["1.5", "7", "0.1", "123456789012345678901234567890"],
    ),
    ("numeric(9,2)", ["2.00", "2.25"], ["2", "2.25"]),
    ("real", ["0.1"], ["0.1"]),
    ("double precision", ["0.1", "3"], ["0.1", "3"]),
    ("boolean", ["true", "false"], ["true", "false"]),
    ("char(5)", ["'ab'"], ["ab"]),
    ("varchar(9)", ["'ab '", "'é'"], ["ab ", "é"]),
    ("text", ["'NULL'", "''"], ["NULL", ""]),
    ("name", ["'n'"], ["n"]),
    ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("bytea", [r"'\x616263'"], ["abc"]),
    ("date", ["'2020-02-29'"], ["2020-02-29"]),
    ("timestamp", ["'2020-02-29 01:02:03.5'"], ["2020-02-29T01:02:03.5"]),
    ("timestamptz", ["'2020-02-29 01:02:03+02'"], ["2020-02-28T23:02:03Z"]),
    ("time", ["'01:02:03'"], ["01:02:03"]),
    ("oid", ["4294967295"], ["4294967295"]),
    ("mood", ["'sad'", "'ok'"], ["sad", "ok"]),
    ("share", ["0.50"], ["0.5"]),
    ("share_of_share", ["0.50"], ["0.5"]),
]
OF_DUCKDB = [
    ("TINYINT", ["7", "-1"], ["7", "-1"]),
    ("UBIGINT", ["18446744073709551615"], ["18446744073709551615"]),
    ("HUGEINT", ["7", "170141183460469231731687303715884105727"], ["7", "170141183460469231731687303715884105727"]),
    ("UHUGEINT", ["340282366920938463463374607431768211455"], ["340282366920938463463374607431768211455"]),
    ("DECIMAL(9,2)", ["2.00", "2.25"], ["2", "2.25"]),
    ("DECIMAL(38,10)", ["1.5"], ["1.5"]),
    ("FLOAT", ["0.1"], ["0.1"]),
    ("DOUBLE", ["0.1", "3"], ["0.1", "3"]),
    ("BOOLEAN", ["true", "false"], ["true", "false"]),
    ("VARCHAR", ["'ab '", "'é'", "''"], ["ab ", "é", ""]),
    ("ENUM('sad', 'o)k')", ["'sad'", "'o)k'"], ["sad", "o)k"]),
    ("UUID", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("BLOB", ["'abc'::BLOB"], ["abc"]),
    ("DATE", ["'2020-02-29'"], ["2020-02-29"]),
    ("TIMESTAMP", ["'2020-02-29 01:02:03.5'"], ["2020-02-29T01:02:03.5"]),
    ("TIMESTAMP_NS", ["'2020-02-29 01:02:03.000000001'"], ["2020-02-29T01:02:03.000000001"]),
    ("TIMESTAMPTZ", ["'2020-02-29 01:02:03+02'"], ["2020-02-28T23:02:03Z"]),
    ("TIME", ["'01:02:03'"], ["01:02:03"]),
]
OF_SQLITE = [
    ("INTEGER", ["7", "NULL", "'seven'", "2.5", "x'616263'"], ["7", None, "seven", "2.5", "abc"]),
    ("TEXT", ["7", "'é'", "''"], ["7", "é", ""]),
    ("REAL", ["3", "0.1", "1e300"], ["3", "0.1", None]),
    ("", ["9223372036854775807", "'9223372036854775807'"], ["9223372036854775807", "9223372036854775807"]),
]


def codes_in(database, declared, literals, labels):
    """How often each code comes, of a table whose first row is null and whose other rows are these values."""
    rows = ", ".join(f"({literal})" for literal in ["NULL", *literals])
    database.run(f"CREATE TABLE visits (x {declared})")
    database.run(f"INSERT INTO visits VALUES {rows}")
    known = sorted({label for label in labels if label is not None})
    domain = Domain([Attribute.of_labels("x", known, unknown="?unknown", null="?null")])
    source = SqlSource(database=database.address, table="visits")
    actual = Counter(code for (part,) in source.batches(domain, ["x"]) for code in part.tolist())
    return actual, domain["x"]


@pytest.fixture
def postgresql_types(postgresql_database):
    """The database with an enumeration, a composite type, a domain, and a domain of that."""
    postgresql_database.run("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    postgresql_database.run("CREATE TYPE pair AS (a integer, b integer)")
    postgresql_database.run("CREATE DOMAIN share AS numeric CHECK (VALUE <= 1)")
    postgresql_database.run("CREATE DOMAIN share_of_share AS share")
    return postgresql_database


KEPT = {"postgresql_types": OF_POSTGRESQL, "duckdb_file": OF_DUCKDB, "sqlite_file": OF_SQLITE}


@pytest.mark.parametrize(
    ("engine", "declared", "literals", "labels"), [(engine, *case) for engine, cases in KEPT.items() for case in cases]
)
def test_types_keep_their_values(request, engine, declared, literals, labels):
    """Values have the labels that core gives them from any file, in SQLite each by its own type, after a first null."""
    actual, attribute = codes_in(request.getfixturevalue(engine), declared, literals, labels)
    codes = Counter([attribute.null])
    for literal, label in zip(literals, labels, strict=True):
        known = attribute.unknown if label is None else attribute.code(label)
        codes[attribute.null if literal == "NULL" else known] += 1
    assert actual == codes


def test_a_late_text_in_sqlite_changes_no_other_value(sqlite_file):
    """A text behind thousands of nulls and whole numbers is unknown; all others stay what they are."""
    sqlite_file.run("CREATE TABLE visits (x INTEGER)")
    sqlite_file.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) "
        "INSERT INTO visits SELECT CASE WHEN i > 3000 THEN i % 2 END FROM n"
    )
    source = SqlSource(database=sqlite_file.address, table="visits")
    domain = Domain([Attribute.of_labels("x", ["0", "1"], unknown="?", null="none")])
    before = Counter(code for (part,) in source.batches(domain, ["x"]) for code in part.tolist())
    sqlite_file.run("INSERT INTO visits VALUES ('planted')")
    after = Counter(code for (part,) in source.batches(domain, ["x"]) for code in part.tolist())
    assert before == {domain["x"].code("0"): 18500, domain["x"].code("1"): 18500, domain["x"].null: 3000}
    assert after - before == {domain["x"].unknown: 1}


REFUSED = {
    "postgresql_types": [
        *("integer[]", "json", "jsonb", "interval", "time with time zone", "inet", "money", "bit(3)"),
        *("point", "pair", "int4range", "mood[]"),
    ],
    "duckdb_file": [
        *("INTEGER[]", "INTEGER[2]", "JSON", "INTERVAL", "TIMETZ", "BIT", "STRUCT(a INTEGER)"),
        *("MAP(INTEGER, INTEGER)", "UNION(a INTEGER, b VARCHAR)"),
    ],
}


@pytest.mark.parametrize(
    ("engine", "declared"), [(engine, kind) for engine, kinds in REFUSED.items() for kind in kinds]
)
def test_types_without_labels_are_refused(request, engine, declared):
    """Before any record is read, so alike for an empty table; the message names column and type."""
    database = request.getfixturevalue(engine)
    database.run(f"CREATE TABLE visits (a integer, x {declared})")
    source = SqlSource(database=database.address, table="visits")
    domain = Domain.from_sizes({"a": 2, "x": 2})
    with (
        pytest.raises(DataError, match=r"column 'x' of table visits is of type .*; make a view"),
        source.pinned(Reading(domain=domain, columns=("a", "x"))),
    ):
        pass
    with source.pinned(Reading(domain=domain, columns=("a",))):
        pass  # a column that nobody asked for does no harm


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("date", "infinity"),
        ("timestamp", "-infinity"),
        ("timestamptz", "infinity"),
        ("date", "4000-01-01 BC"),
        ("numeric", "NaN"),
        ("numeric", "Infinity"),
        ("time", "24:00:00"),
    ],
)
def test_odd_values_of_postgresql_are_records(postgresql_database, declared, value):
    """What no label can be is unknown (not-a-number is null), and the other rows stay what they are."""
    good = {"numeric": "1", "time": "01:00:00", "timestamptz": "2020-01-01T00:00:00Z"}.get(declared, "2020-01-01")
    actual, attribute = codes_in(postgresql_database, declared, [f"'{good}'", f"'{value}'"], [good])
    assert actual[attribute.null] == (2 if value == "NaN" else 1)
    assert actual[attribute.unknown] == (0 if value == "NaN" else 1)
    assert actual[attribute.code(good)] == 1
