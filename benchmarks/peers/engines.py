"""The engines of `benchmarks.scale`: one sum of a folder of Parquet files, through the source of each engine's plugin.

Each function takes the folder and returns what one sum took. It needs its engine, so an environment with the plugin.
Sessions, clusters, servers and tables are there before the clock starts.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.dataset

from benchmarks.cases.pairs import NAMES, STRUCTURE, sha_of
from benchmarks.harness.alone import peak_megabytes
from dpgm_core.counting.table_counts import Counts, count
from dpgm_core.sources import as_source


class Taken(TypedDict):
    """What one sum of an engine took.

    seconds, cpu: on the wall, and of all processes that are known. baseline_seconds: of what it is measured against;
    None: of the embedded path. peak_mb: of the driver above what it held before it read. counts_sha: of the tables.
    """

    seconds: float
    cpu: float
    baseline_seconds: float | None
    peak_mb: float
    counts_sha: str


def embedded(folder: Path) -> Taken:
    """The folder is read and counted in this process."""
    source: Any = as_source(folder)
    next(iter(source.batches(STRUCTURE.domain, NAMES)))  # so that everything is loaded
    return _taken(source, runs=1)


def spark(folder: Path) -> Taken:
    """`local[2]`, beside a bare `mapInArrow` that only decodes; the driver's peak is Python's and the JVM's."""
    from dpgm_spark.session import session
    from dpgm_spark.source import SparkSource

    def peak() -> float:
        return peak_megabytes() + max(
            (peak_megabytes(pid) for pid in _descendants()[1:] if _name(pid) == "java"), default=0.0
        )

    with session("local[2]", 120) as running:
        frame = running.read.parquet(str(folder)).select(*NAMES)

        def bare() -> None:
            frame.mapInArrow(_decode_only, "rows long").collect()

        bare()
        return _taken(SparkSource(path=str(folder)), bare, peak=peak)


def dask(folder: Path) -> Taken:
    """Two processes on this machine."""
    config = importlib.import_module("dask").config
    from distributed import Client, LocalCluster
    from dpgm_dask.source import DaskSource

    # dask has malloc give memory back to the system at once; then half of a worker's time goes to page faults.
    memory = {"OMP_NUM_THREADS": 1, "MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}
    config.set({"distributed.nanny.pre-spawn-environ": memory})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        return _taken(DaskSource(path=str(folder)))


def sql(folder: Path, engine: str, how: str = "push") -> Taken:
    """A table of the engine's own, made once. how: "push" or "stream", or statements by hand: "sets" is one statement
    of GROUPING SETS, "pairs" are 27. PostgreSQL is measured against GROUP BYs of the same groupings by hand."""
    from dpgm_sql.source import SqlSource

    table = folder.name.replace("-", "_")
    with postgresql(folder) if engine == "postgresql" else nullcontext(f"{folder}.{engine}") as place:
        address = place if engine == "postgresql" else f"{engine}:///{place}"
        source: Any = SqlSource(database=address, table=table, count=how if how in ("push", "stream") else "stream")
        with _connected(engine, place) as connection:
            _fill(connection, engine, folder, table)
        with source._opened() as (session, _):

            def by_hand(statements: Iterable[str]) -> None:
                for statement in statements:
                    session.counted(statement)

            if how in ("sets", "pairs"):
                return _taken(source, call=partial(by_hand, _statements(how, table)))
            groupings = [f"SELECT {one}, count(*) FROM {table} GROUP BY {one}" for one in _groupings()]
            return _taken(source, partial(by_hand, groupings) if engine == "postgresql" else None)


def _groupings() -> list[str]:
    """The columns of the tables that the engine counts; each covers several pairs."""
    return [", ".join(names) for names in Counts.of(STRUCTURE).groupings]


def _statements(how: str, table: str) -> list[str]:
    """What somebody would write who knows that all values are labels."""
    pairs = [", ".join(clique) for clique in STRUCTURE.cliques]
    if how == "pairs":
        return [f"SELECT {pair}, count(*) FROM {table} GROUP BY {pair}" for pair in pairs]
    sets = ", ".join(f"({pair})" for pair in pairs)
    return [f"SELECT {', '.join(NAMES)}, count(*) FROM {table} GROUP BY GROUPING SETS ({sets})"]


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The address in DPGM_SCALE_POSTGRESQL, such as postgresql:///postgres?host=/tmp, or of a server of pgserver's."""
    if "DPGM_SCALE_POSTGRESQL" in os.environ:
        yield os.environ["DPGM_SCALE_POSTGRESQL"]
        return
    started = importlib.import_module("pgserver").get_server(folder.with_name("postgresql"))
    try:
        yield f"postgresql:///postgres?host={started.get_uri().partition('host=')[2]}&user=postgres"
    finally:
        started.cleanup()


def _connected(engine: str, place: str) -> Any:
    if engine == "sqlite":
        return closing(sqlite3.connect(place))
    driver = {"duckdb": "duckdb", "postgresql": "adbc_driver_postgresql.dbapi"}[engine]
    return importlib.import_module(driver).connect(place)


def _fill(connection: Any, engine: str, folder: Path, table: str) -> None:
    """Make the table unless it is there."""
    if engine == "duckdb":
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} AS SELECT * FROM read_parquet('{folder}/*.parquet')")
        return
    catalogue = "pg_tables WHERE tablename" if engine == "postgresql" else "sqlite_master WHERE name"
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT count(*) FROM {catalogue} = '{table}'")
        if cursor.fetchone() != (0,):
            return
        batches = pyarrow.dataset.dataset(folder).to_batches(columns=list(NAMES))
        if engine == "sqlite":
            cursor.execute(f"CREATE TABLE {table} ({', '.join(NAMES)})")
            for batch in batches:
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(NAMES))})", rows)
        else:
            for batch in batches:
                types = [pa.int16() if pa.types.is_int8(kind) else kind for kind in batch.schema.types]
                whole = pa.Table.from_batches([batch]).cast(pa.schema(list(zip(NAMES, types, strict=True))))
                cursor.adbc_ingest(table, whole, mode="create_append")
            cursor.execute(f"ANALYZE {table}")
        connection.commit()


def _taken(
    source: Any,
    baseline: Callable[[], None] | None = None,
    *,
    peak: Callable[[], float] | None = None,
    runs: int = 2,
    call: Callable[[], None] | None = None,
) -> Taken:
    """Twice each, in turn, after a first look that loads what is needed; the faster one counts.

    call: what is timed, in place of a sum of the source.
    """
    peak = peak or peak_megabytes
    idle, ours, others = peak(), [], []
    for _ in range(runs):
        if baseline is not None:
            others.append(_timed(baseline)[0])
        ours.append(_timed(call or partial(count, source, STRUCTURE)))
    seconds, cpu, counted = min(ours, key=lambda one: one[0])
    least, above = min(others, default=None), peak() - idle
    if call:
        counted = count(source, STRUCTURE)
    return Taken(seconds=seconds, cpu=cpu, baseline_seconds=least, peak_mb=above, counts_sha=sha_of(counted))


def _timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, used = time.perf_counter(), _processors()
    found = call()
    return time.perf_counter() - wall, _processors() - used, found


def _decode_only(batches: Iterable[Any]) -> Iterator[Any]:
    """For `mapInArrow`: decode the batches, and return the number of values."""
    rows = sum(len(column) for batch in batches for column in batch.columns)
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


# --- Processes ---


def _processors() -> float:
    """CPU seconds of this process, of all below it, those that have ended too, and of PostgreSQL's on this machine."""
    servers = [pid for pid in _pids() if _name(pid) == "postgres"]
    ticks = 0
    for pid in {*_descendants(), *servers}:
        fields = _of_process(pid, "stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants() -> list[int]:
    """This process and all processes below it."""
    parents: dict[int, list[int]] = {}
    for pid in _pids():
        if fields := _of_process(pid, "stat").rpartition(")")[2].split():
            parents.setdefault(int(fields[1]), []).append(pid)
    found = [os.getpid()]
    for one in found:
        found += parents.get(one, [])
    return found


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _name(pid: int) -> str:
    return _of_process(pid, "comm").strip()


def _of_process(pid: int, what: str) -> str:
    """A file of /proc, empty once the process has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_text()
    except OSError:
        return ""
