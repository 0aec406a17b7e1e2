"""Names and labels that look like SQL are names and labels: they are counted as such, and never run."""

from itertools import product

import numpy as np
import pytest
from dpgm_sql.dialect import quoted
from dpgm_sql.source import SqlSource
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpgm_core import Attribute, Domain, Structure
from dpgm_core.counting.table_counts import Counts
from dpgm_core.sources import Reading

HOSTILE = [
    *("'; DROP TABLE canary; --", '"; DROP TABLE canary; --', "\\'; DROP TABLE canary; --", "' OR 1=1 --", "/*", "*/"),
    *("${x}", "%s", "?", ":1", "$1", "{0}", "\\", "\\\\", "''", '""', "`", "[a]", "a.b", "c0", "count(*)", "NULL"),
    *("--", "E'\\x41'", "U&'\\0041'", "$$", "$a$x$a$"),
    *("\n", "\u2028", "\ufeff", "\u202e", "\u00b4", "\u02bc", "\uff07", "\U0001f4a9"),
]
# What PostgreSQL can hold: no NUL, and names of at most 63 bytes.
TEXTS = st.sampled_from(HOSTILE) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=15
)
NAMES = TEXTS.filter(lambda name: len(name.encode()) < 60)


def counts_of(domain):
    """The table of all columns, then the number of rows."""
    return Counts.of(Structure(domain, [domain.names]))


def spelled(engine, text):
    """A text as SQL says it without writing it."""
    digits = text.encode().hex()
    if engine == "postgresql":
        return f"convert_from('\\x{digits}', 'UTF8')"
    if engine == "sqlite":
        return f"CAST(X'{digits}' AS TEXT)"
    escaped = "".join(f"\\x{digits[at : at + 2]}" for at in range(0, len(digits), 2))
    return f"decode('{escaped}'::BLOB)"


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(names=HOSTILE[:2], labels=HOSTILE, others=[])
@given(
    names=st.lists(NAMES, min_size=2, max_size=2, unique_by=str.casefold),
    labels=st.lists(TEXTS, min_size=1, max_size=6, unique=True),
    others=st.lists(TEXTS | st.none(), max_size=4),
)
def test_hostile_names_and_labels_are_only_texts(names, labels, others, database):
    """On each engine the same counts as by `Attribute.code`, pushed down and streamed; no other table is touched."""
    domain = Domain([Attribute.of_labels(name, labels, unknown="?!", null="null!") for name in names])
    rows = list(product([*labels, *others, "?!"], repeat=2))
    database.run("DROP TABLE IF EXISTS t")
    database.run("CREATE TABLE IF NOT EXISTS canary (a integer)")
    database.run(f"CREATE TABLE t ({', '.join(f'{quoted(name)} text' for name in names)})")
    values = ", ".join(
        "(" + ", ".join("NULL" if text is None else spelled(database.engine, text) for text in row) + ")"
        for row in rows
    )
    database.run(f"INSERT INTO t VALUES {values}")
    codes = [[domain[name].code(row[place]) for row in rows] for place, name in enumerate(names)]
    cells = np.ravel_multi_index(codes, domain.shape(names))
    expected = np.append(np.bincount(cells, minlength=domain.cells), len(rows))
    for way in ("push", "stream"):
        source = SqlSource(database=database.address, table="t", count=way)
        with source.pinned(Reading(domain=domain, columns=domain.names)) as pinned:
            np.testing.assert_array_equal(pinned.reduce(counts_of(domain)), expected)
    assert SqlSource(database=database.address, table="canary").names() == ("a",)


def test_a_text_with_a_nul_is_streamed(duckdb_file):
    """SQL text ends at a NUL for some readers, so such a label is never written into a statement."""
    domain = Domain([Attribute.of_labels("x", ["a\0b", "a"], unknown="?")])
    duckdb_file.run("CREATE TABLE t AS SELECT 'a' || chr(0) || 'b' AS x UNION ALL SELECT 'a'")
    source = SqlSource(database=duckdb_file.address, table="t")
    with source.pinned(Reading(domain=domain, columns=("x",))) as pinned:
        assert pinned.reduce(counts_of(domain)).tolist() == [1, 1, 0, 2]


@pytest.mark.parametrize("name", ["x" * 64, "\u00e9" * 32])
def test_postgresql_does_not_shorten_names(name, postgresql_database):
    """A name beyond 63 bytes, which the server would cut to another column's, is no column."""
    postgresql_database.run(f"CREATE TABLE t ({quoted(name)} text)")
    domain = Domain([Attribute.of_labels(name, ["a"], unknown="?")])
    source = SqlSource(database=postgresql_database.address, table="t")
    with pytest.raises(Exception, match="has no column"), source.pinned(Reading(domain=domain, columns=(name,))):
        pass
