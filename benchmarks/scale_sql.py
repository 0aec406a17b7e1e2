"""Counting 27 pairs of 10 columns of 10 labels in a database, streamed and pushed down, beside the embedded path.

    python -m benchmarks.scale_sql ROWS [--runs N] [--engine duckdb,postgresql,sqlite] [--address postgresql://...]

Each way is a process of its own, and ways take turns: seconds on the wall, CPU seconds of that process and, in
brackets, of the server, and the peak of the process's memory above what it had after the same on a table of one row. By
hand: the 27 GROUP BYs in one statement of GROUPING SETS, and as 27 statements. A server of PostgreSQL is pgserver's,
unless an address is given.
"""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.counting import STRUCTURE, columns_of
from benchmarks.scale_table import peak_mb
from dpgm_core.counting.rows import open_rows
from dpgm_core.counting.table_counts import fastest_sums
from dpgm_core.sources import Reading, as_source

#: Rows of a part of the table.
PIECE = 2_000_000
WAYS = ("stream", "push", "sets by hand", "27 by hand")


def parts(rows: int) -> Iterator[Any]:
    """The records, in parts; 64-bit whole numbers as databases have them are four times what they need."""
    for seed, start in enumerate(range(0, rows, PIECE)):
        some = pa.table(columns_of(min(PIECE, rows - start), seed))
        yield some.cast(pa.schema([pa.field(name, pa.int16()) for name in some.column_names]))


def fill(address: str, rows: int) -> None:
    """Two tables of an engine: `records`, and `one` of one row."""
    engine, _, place = address.partition(":///" if not address.startswith("postgresql") else "://")
    for name, count in (("records", rows), ("one", 1)):
        if engine == "duckdb":
            with importlib.import_module("duckdb").connect(place) as connection:
                for number, part in enumerate(parts(count)):
                    connection.register("part", part)
                    made = f"INSERT INTO {name}" if number else f"CREATE TABLE {name} AS"
                    connection.execute(f"{made} SELECT * FROM part")
        elif engine == "sqlite":
            with closing(sqlite3.connect(place)) as connection:
                for number, part in enumerate(parts(count)):
                    names = ", ".join(f'"{column}" INTEGER' for column in part.column_names)
                    if not number:
                        connection.execute(f"CREATE TABLE {name} ({names})")
                    values = zip(*(column.to_pylist() for column in part.columns), strict=True)
                    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * part.num_columns)})", values)
                connection.commit()
        else:
            dbapi = importlib.import_module("adbc_driver_postgresql.dbapi")
            with dbapi.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
                for part in parts(count):
                    cursor.adbc_ingest(name, part, mode="create_append")
                cursor.execute(f"VACUUM ANALYZE {name}")


def by_hand(way: str, table: str) -> list[str]:
    """What somebody would write who knows that all values are labels."""
    pairs = [", ".join(f'"{name}"' for name in clique) for clique in STRUCTURE.cliques]
    if way == "27 by hand":
        return [f"SELECT {pair}, count(*) FROM {table} GROUP BY {pair}" for pair in pairs]
    names = ", ".join(f'"{name}"' for name in STRUCTURE.domain.names)
    return [f"SELECT {names}, count(*) FROM {table} GROUP BY GROUPING SETS ({', '.join(f'({p})' for p in pairs)})"]


def timed(address: str, way: str) -> dict[str, float]:
    """Seconds, CPU seconds and megabytes of one way, in this process."""
    counts = fastest_sums(STRUCTURE)
    reading = Reading(domain=STRUCTURE.domain, columns=counts.columns)

    def run(table: str) -> Callable[[], object]:
        if not address.partition(":")[1] or "://" not in address:  # the embedded path, a Parquet file
            source: Any = as_source(f"{address}/{table}.parquet")
        else:
            options = {"database": address, "table": table, "count": way if way in WAYS[:2] else "stream"}
            source = as_source({"source": "sql", **options})
        if way in WAYS[2:]:
            return lambda: _asked(source, by_hand(way, table))
        return lambda: _counted(source, reading, counts)

    run("one")()
    idle = peak_mb()
    start, before = time.perf_counter(), time.process_time()
    run("records")()
    return {"wall": time.perf_counter() - start, "cpu": time.process_time() - before, "peak": peak_mb() - idle}


def _counted(source: Any, reading: Reading, counts: Any) -> object:
    with open_rows(source, reading) as rows:
        return rows.total(counts)


def _asked(source: Any, queries: list[str]) -> object:
    """Through the same connection, with nothing around it."""
    with source._opened() as (session, _):
        return [session.counted(query) for query in queries]


def _server(folder: str) -> float:
    """CPU seconds of pgserver's processes, of those that have ended too."""
    noted = Path(folder) / "postgresql" / "postmaster.pid"
    if not noted.exists():
        return 0
    first, ticks = noted.read_text().split()[0], 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if stat.parent.name == first:
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == first:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(address: str | None, folder: str) -> Iterator[str]:
    """The address of a server of PostgreSQL."""
    if address is not None:
        yield address
        return
    started = importlib.import_module("pgserver").get_server(f"{folder}/postgresql")
    try:
        yield f"postgresql:///postgres?host={started.get_uri().partition('host=')[2]}&user=postgres"
    finally:
        started.cleanup()


def main() -> None:
    """Print a line for each way."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", type=int)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--engine", default="duckdb,postgresql")
    parser.add_argument("--address")
    parser.add_argument("--folder")
    parser.add_argument("--only", nargs=2, help="one way, in this process")
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(timed(*asked.only)))
        return
    with tempfile.TemporaryDirectory(dir=asked.folder, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        for table, rows in (("records", asked.rows), ("one", 1)):
            with pq.ParquetWriter(f"{folder}/{table}.parquet", next(parts(1)).schema) as writer:
                for part in parts(rows):
                    writer.write_table(part)
        for engine in asked.engine.split(","):
            if engine == "postgresql":
                with server(asked.address, folder) as address:
                    compare(address, folder, asked.rows, asked.runs)
            else:
                compare(f"{engine}:///{folder}/records.{engine}", folder, asked.rows, asked.runs)


def compare(address: str, folder: str, rows: int, runs: int) -> None:
    """All ways of one engine beside the embedded path, minima of runs that take turns."""
    start = time.perf_counter()
    fill(address, rows)
    engine = address.partition(":")[0]
    print(f"{engine}: {rows:,} records, filled in {time.perf_counter() - start:.0f} s", flush=True)
    ways = [("embedded, Parquet", folder), *((way, address) for way in WAYS if engine != "sqlite" or way != WAYS[2])]
    found: dict[str, list[dict[str, float]]] = {way: [] for way, _ in ways}
    for _ in range(runs):
        for way, where in ways:
            before = _server(folder)
            command = [sys.executable, "-m", "benchmarks.scale_sql", str(rows), "--only", where, way]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[way].append(json.loads(done.stdout) | {"server": _server(folder) - before})
    least = {way: {key: min(one[key] for one in some) for key in some[0]} for way, some in found.items()}
    embedded = least["embedded, Parquet"]["wall"]
    for way, one in least.items():
        spent = f"{one['wall']:7.2f} s  {one['cpu']:7.2f} CPU s ({one['server']:6.2f})"
        print(f"  {way:18} {spent}  {one['peak']:5.0f} MB more   {one['wall'] / embedded:6.1f} x embedded", flush=True)


if __name__ == "__main__":
    main()
