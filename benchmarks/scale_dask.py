"""Counting 27 pairs of 10 columns of Parquet through dask, on two processes, against the embedded path in one run.

    python -m benchmarks.scale_dask ROWS [--kind uint8,text] [--rounds N] [--folder DIR]

Needs the example plugin dpgm-dask. Seconds on the wall and of the CPU are those of the same run, the least of some
rounds that take turns. CPU seconds of dask are those of workers, scheduler and driver together; the cluster is there
before the clock starts.
"""

from __future__ import annotations

import resource
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster
from dpgm_dask.source import DaskSource

from benchmarks.counting import STRUCTURE, columns_of, texts
from dpgm_core.counting.statistic import pieces, sum_pieces
from dpgm_core.counting.table_counts import fastest_sums
from dpgm_core.sources import Reading, as_source

#: dask has malloc give memory back to the system at once; then half of a counting worker's time goes to page faults.
MEMORY = {"OMP_NUM_THREADS": 1, "MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}
#: Records of one file.
PIECE = 2_000_000


def written(folder: Path, rows: int, kind: str) -> Path:
    """A folder of files."""
    path = folder / kind
    path.mkdir()
    for number, start in enumerate(range(0, rows, PIECE)):
        codes = columns_of(min(PIECE, rows - start), number)
        pq.write_table(texts(codes) if kind == "text" else pa.table(codes), path / f"{number:05}.parquet")
    return path


def timed(call: Callable[[], Any], cpu: Callable[[], float]) -> tuple[float, float, Any]:
    """Seconds on the wall, of the CPU, and what came out."""
    wall, used = time.perf_counter(), cpu()
    found = call()
    return time.perf_counter() - wall, cpu() - used, found


def compare(path: Path, rounds: int, client: Client) -> None:
    """Both ways in turn; the sums must be the same bits."""
    statistic = fastest_sums(STRUCTURE)
    reading = Reading(domain=STRUCTURE.domain, columns=statistic.columns)

    def embedded() -> Any:
        return sum_pieces(statistic, pieces(as_source(path), STRUCTURE.domain, statistic.columns))

    def through_dask() -> Any:
        with DaskSource(path=str(path)).pinned(reading) as pinned:
            return pinned.reduce(statistic)

    def everywhere() -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    runs = [(timed(embedded, time.process_time), timed(through_dask, everywhere)) for _ in range(rounds)]
    for here, there in runs:
        np.testing.assert_array_equal(here[2], there[2])
    for number, unit in enumerate(("wall", "CPU")):
        own, other = (min(run[way][number] for run in runs) for way in (0, 1))
        print(
            f"{path.name:6} {unit:5} embedded {own:7.2f} s   dask {other:7.2f} s   ratio {other / own:.2f} (target 1.5)"
        )


def main() -> None:
    """As the command line asks."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--kind", default="uint8,text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    dask.config.set({"distributed.nanny.pre-spawn-environ": MEMORY})
    with (
        tempfile.TemporaryDirectory(dir=asked.folder) as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        print(f"{asked.rows:,} records in files of {PIECE:,}, {len(STRUCTURE.cliques)} pairs, 2 processes")
        for kind in asked.kind.split(","):
            compare(written(Path(folder), asked.rows, kind), asked.rounds, client)
        print(f"driver and scheduler, peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
