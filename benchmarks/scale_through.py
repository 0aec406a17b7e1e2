"""The engines in `scale.py`: one sum of the same folder through the source of each engine's plugin.

Each function needs its engine, so an environment with its plugin. Sessions, clusters and databases are there before
the clock starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.harness.timing import wall_seconds
from benchmarks.scale_table import NAMES, STRUCTURE, Taken, decode_only, descendants, peak_mb, sha_of
from dpgm_core.counting.table_counts import Counts, count
from dpgm_core.sources import ReducingSource


def run_spark(folder: Path) -> Taken:
    """`local[2]`, beside a bare `mapInArrow` that only decodes; the driver's peak is Python's and the JVM's."""
    from dpgm_spark.session import session
    from dpgm_spark.source import SparkSource

    with session("local[2]", 120) as spark:
        frame = spark.read.parquet(str(folder)).select(*NAMES)

        def bare() -> None:
            frame.mapInArrow(decode_only, "rows long").collect()

        bare()
        return _taken(SparkSource(path=str(folder)), lambda: _family("java"), bare)


def run_dask(folder: Path) -> Taken:
    """Two processes on this machine."""
    import dask
    from distributed import Client, LocalCluster
    from dpgm_dask.source import DaskSource

    from benchmarks.scale_dask import MEMORY

    dask.config.set({"distributed.nanny.pre-spawn-environ": MEMORY})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        return _taken(DaskSource(path=str(folder)), peak_mb)


def run_duckdb(folder: Path) -> Taken:
    """A table of the engine's own, made once, as views that read files are not served; it counts in this process."""
    import duckdb
    from dpgm_sql.source import SqlSource

    path = folder.with_name(f"{folder.name}.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS visits AS SELECT * FROM read_parquet('{folder}/*.parquet')")
    return _taken(SqlSource(database=f"duckdb:///{path}", table="visits"), peak_mb)


def run_postgresql(folder: Path) -> Taken:
    """A server in the environment's DPGM_SCALE_POSTGRESQL, such as postgresql:///postgres?host=/tmp; made once."""
    import adbc_driver_postgresql.dbapi as driver
    import pyarrow.dataset
    from dpgm_sql.source import SqlSource

    address = os.environ["DPGM_SCALE_POSTGRESQL"]
    table = folder.name.replace("-", "_")
    with driver.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tablename = $1", parameters=[table])
        if cursor.fetchone() == (0,):
            cursor.execute(f"CREATE TABLE {table} ({', '.join(f'{name} smallint NOT NULL' for name in NAMES)})")
            schema = pa.schema([(name, pa.int16()) for name in NAMES])
            for batch in pyarrow.dataset.dataset(folder).to_batches(columns=list(NAMES)):
                cursor.adbc_ingest(table, pa.Table.from_batches([batch]).cast(schema), mode="append")
            connection.commit()
            cursor.execute(f"ANALYZE {table}")
            connection.commit()

        def by_hand() -> None:
            for names in Counts.of(STRUCTURE).groupings:  # each covers several pairs
                cursor.execute(f"SELECT {', '.join(names)}, count(*) FROM {table} GROUP BY {', '.join(names)}")
                cursor.fetch_arrow_table()

        return _taken(SqlSource(database=address, table=table), peak_mb, by_hand)


def _taken(source: ReducingSource, peak: Callable[[], float], baseline: Callable[[], None] | None = None) -> Taken:
    """Twice each, in turn, after a first look that loads what is needed; the faster one counts."""
    idle = peak()
    ours, others = [], []
    for _ in range(2):
        if baseline is not None:
            others.append(wall_seconds(baseline))
        start = time.perf_counter()
        counted = count(source, STRUCTURE)
        ours.append(time.perf_counter() - start)
    return Taken(
        seconds=min(ours), baseline_seconds=min(others, default=None), peak_mb=peak() - idle, counts_sha=sha_of(counted)
    )


def _family(name: str) -> float:
    """The peak of this process and of the largest process of this name below it, MB."""
    below = [pid for pid in descendants(os.getpid())[1:] if _name_of(pid) == name]
    return peak_mb() + max(map(peak_mb, below), default=0.0)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""
