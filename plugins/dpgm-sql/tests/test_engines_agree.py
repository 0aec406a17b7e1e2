"""All engines alike: a table's codes are those of its values, whatever engine holds them."""

from collections import Counter

import numpy as np
from dpgm_sql.source import SqlSource

from dpgm_core import Attribute, Domain

DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
    ]
)
ROWS = [("A", 3.5, 1), ("Zürich", 18, None), (None, None, 9), ("a'b", -1, 0), ("B", 64.9, 3), ("", 1e9, -7)]


def literal(value):
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else repr(value)


def written(database, rows=ROWS):
    """The source of a table that holds these rows."""
    database.run("CREATE TABLE visits (town varchar(30), age double precision, visits bigint)")
    for row in rows:
        database.run(f"INSERT INTO visits VALUES ({', '.join(map(literal, row))})")
    return SqlSource(database=database.address, table="visits")


def expected(rows=ROWS):
    """How often each tuple of codes should come."""
    texts = ([None if value is None else str(value) for value in row] for row in rows)
    return Counter(tuple(DOMAIN[n].code(text) for n, text in zip(DOMAIN.names, row, strict=True)) for row in texts)


def test_codes_are_the_domains(database):
    """Labels, bins, nulls and values outside: each engine gives the codes that the domain gives the values."""
    actual = Counter()
    for batch in written(database).batches(DOMAIN, DOMAIN.names):
        actual.update(zip(*(np.asarray(part).tolist() for part in batch), strict=True))
    assert actual == expected()
