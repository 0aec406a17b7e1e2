"""Counting 27 pairs of 10 columns of 10 labels in Spark, beside a loop that only decodes the columns.

    python -m benchmarks.scale_spark ROWS [--runs N] [--kind uint8,text] [--several] [--person] [--master local[2]]

Seconds on the wall and CPU seconds of Spark and its Python workers, minima of runs that take turns. Memory is what the
driver has beyond an idle one: its peak while counting less its peak after a job that decodes.
"""

from __future__ import annotations

import os
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from benchmarks.counting import STRUCTURE, columns_of, texts
from benchmarks.scale_table import decode_only, descendants, peak_mb
from dpgm_core.counting.table_counts import fastest_sums
from dpgm_core.sources import Reading, ReducingSource

#: Rows of a file; a row group has as many as pyarrow makes.
PIECE = 5_000_000


@frozen
class Time:
    """Seconds of one run."""

    wall: float
    cpu: float


def write(folder: Path, rows: int, kind: str, person: bool = False) -> None:
    """A folder of Parquet files; the person key has three rows a person."""
    folder.mkdir()
    for seed, start in enumerate(range(0, rows, PIECE)):
        some = min(PIECE, rows - start)
        table = texts(columns_of(some, seed)) if kind == "text" else pa.table(columns_of(some, seed))
        if person:
            table = table.append_column("id", pa.array([str(place // 3) for place in range(start, start + some)]))
        pq.write_table(table, folder / f"{seed:04}.parquet", row_group_size=2**20)


def taken(call: Callable[[], object]) -> Time:
    """How long a call takes, on the wall and on the processors that Spark had."""
    start, before = time.perf_counter(), _processors()
    call()
    return Time(time.perf_counter() - start, _processors() - before)


def least(times: list[Time]) -> Time:
    """Of runs that take turns, because what is slower was disturbed."""
    return Time(min(one.wall for one in times), min(one.cpu for one in times))


def main() -> None:
    """Print the ratios."""
    asked = _asked()
    from dpgm_spark.session import session
    from dpgm_spark.source import SparkSource

    counts = fastest_sums(STRUCTURE)
    for kind in asked.kind.split(","):
        with tempfile.TemporaryDirectory(dir=asked.folder) as root, session(asked.master, 120) as spark:
            folder = Path(root) / kind
            write(folder, asked.rows, kind, asked.person)
            source: ReducingSource = SparkSource(path=str(folder))
            reading = Reading(
                domain=STRUCTURE.domain,
                columns=counts.columns,
                several=asked.several,
                person="id" if asked.person else None,
            )
            wanted = list(reading.names)

            def bare(folder: Path = folder, wanted: list[str] = wanted) -> None:
                found = spark.read.parquet(str(folder)).select(*wanted).mapInArrow(decode_only, "rows long").collect()
                assert sum(row["rows"] for row in found) == asked.rows * len(wanted)

            bare()
            idle = _peaks()
            plain, ours, again = [], [], []
            for _ in range(asked.runs):
                plain.append(taken(bare))
                with source.pinned(reading) as pinned:
                    ours.append(taken(lambda pinned=pinned: pinned.reduce(counts)))  # type: ignore[misc]
                    if asked.several:
                        again.append(taken(lambda pinned=pinned: pinned.reduce(counts)))  # type: ignore[misc]
            one, two = least(plain), least(ours)
            print(
                f"{asked.rows:,} records, {kind}: bare {one.wall:.2f} s ({one.cpu:.1f} CPU), "
                f"first sum {two.wall:.2f} s ({two.cpu:.1f} CPU), "
                f"ratio {two.wall / one.wall:.2f} ({two.cpu / one.cpu:.2f} CPU; target 1.5)"
            )
            if again:
                three = least(again)
                print(f"    each further sum {three.wall:.2f} s ({three.cpu:.1f} CPU)")
            print(
                "    peak memory above the bare loop's: "
                + ", ".join(f"{name} {_peaks()[name] - idle[name]:.0f} MB" for name in idle)
            )


def _asked() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", type=int)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kind", default="uint8,text")
    parser.add_argument("--several", action="store_true", help="blocks of codes are kept, and summed twice")
    parser.add_argument("--person", action="store_true", help="three rows a person, one counts")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, default=None)
    return parser.parse_args()


def _processors() -> float:
    """CPU seconds of this process and all below it, of those that have ended too."""
    ticks = 0
    for pid in descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _peaks() -> dict[str, float]:
    """Peak resident MB of Python and of the JVM that it drives."""
    return {"Python": peak_mb(), "JVM": max(map(peak_mb, descendants(os.getpid())[1:]))}


if __name__ == "__main__":
    main()
