"""Two related tables of one database give the records that files of them give."""

import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import dpgm_core as dpgm
from dpgm_core import DataError, Domain, Related
from dpgm_core.sources import RelatedSource

ROOTS = {"id": [1, 2, 3, None, 2], "own": [0, 1, 1, 0, 0]}
CHILDREN = {
    "id": [1, 1, 1, 2, 9, None, None, 1, 3, 3],
    "line": [3, 1, 10, 1, 1, 2, 1, None, 5, 4],
    "age": [0, 1, 2, 3, 0, 1, 2, 3, 0, 1],
}


def records(**tables):
    found = {}
    for order in ("line", None):
        stated = Related(
            root=Domain.from_sizes({"own": 2}),
            children=Domain.from_sizes({"age": 4}),
            key="id",
            max_children=3,
            order=order,
        )
        batches = RelatedSource(related=stated, **tables).batches(stated.pair, stated.pair.names)
        found[order] = Counter(
            row for batch in batches for row in zip(*(np.asarray(part).tolist() for part in batch), strict=True)
        )
    return found


def filled(engine, path):
    connect = sqlite3.connect if engine == "sqlite" else pytest.importorskip("duckdb").connect
    with closing(connect(str(path))) as connection:
        for name, columns in (("roots", ROOTS), ("children", CHILDREN)):
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{one} INTEGER' for one in columns)})")
            places = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({places})", list(zip(*columns.values(), strict=True)))
        connection.commit()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_tables_of_a_database_are_read_as_files_are(engine, tmp_path):
    """With a column that orders the children and without; the roots are read to their end before the children."""
    filled(engine, tmp_path / "x.db")
    database = f"{engine}:///{tmp_path / 'x.db'}"
    made = {"root": {"source": "sql", "database": database, "table": "roots"},
            "children": {"source": "sql", "database": database, "table": "children"}}  # fmt: skip
    assert records(**made) == records(root=pa.table(ROOTS), children=pa.table(CHILDREN))
    with pytest.raises(DataError, match="one and the same table"):
        records(root=made["root"], children=dpgm.make("source", "sql", database=database, table="roots"))


def test_tables_of_an_open_connection_are_read_as_files_are():
    """Relations of DuckDB, whose connection has one result open at a time."""
    connection = pytest.importorskip("duckdb").connect()
    tables = {"root": pa.table(ROOTS), "children": pa.table(CHILDREN)}
    relations = {name: connection.from_arrow(table) for name, table in tables.items()}
    assert records(**relations) == records(**tables)
