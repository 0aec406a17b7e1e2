"""Counting 27 pairs of 10 columns of 10 labels: CPU seconds against a plain numba loop and against decoding alone.

    python -m benchmarks.counting [--smoke] [--rows N] [--large N] [--only codes,parquet,csv,memory]

Figures are minima over a few runs of one process. `--large` is for `memory`, which writes a Parquet file of so many
rows, counts it in a process of its own and prints that process's peak memory.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from benchmarks.harness.alone import alone
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.timing import cpu_seconds
from benchmarks.scale_table import NAMES, PAIRS, STRUCTURE, K, peak_of_count
from dpgm_core.counting.table_counts import count
from dpgm_core.sources import as_source


def pairwise_numba(columns: dict[str, np.ndarray]) -> Callable[[], list[np.ndarray]] | None:
    """The reference: one compiled loop per pair."""
    try:
        import numba
    except ImportError:
        return None

    @numba.njit
    def add(first, second, table):  # type: ignore[no-untyped-def]
        for row in range(len(first)):
            table[first[row], second[row]] += 1

    def run() -> list[np.ndarray]:
        tables = [np.zeros((K, K), np.int64) for _ in PAIRS]
        for (first, second), table in zip(PAIRS, tables, strict=True):
            add(columns[first], columns[second], table)
        return tables

    run()  # compile
    return run


def decode(path: Path) -> None:
    """What any reader of the file must pay."""
    for _ in pq.ParquetFile(path).iter_batches(2**17):
        pass


def columns_of(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, K, rows, dtype=np.uint8) for name in NAMES}


def texts(columns: dict[str, np.ndarray]) -> pa.Table:
    labels = pa.array([str(code) for code in range(K)])
    return pa.table({name: labels.take(pa.array(codes)) for name, codes in columns.items()})


def codes(asked: Namespace) -> None:
    """Codes in memory, CPU seconds."""
    columns = columns_of(rows(asked))
    source = as_source(columns)
    ours = cpu_seconds(lambda: count(source, STRUCTURE), 5)
    print(f"{rows(asked):,} records, {len(PAIRS)} pairs")
    print(f"codes                 {ours:8.3f}")
    reference = pairwise_numba(columns)
    if reference is None:
        print("numba pair by pair     not installed")
    else:
        theirs = cpu_seconds(reference, 5)
        print(f"numba pair by pair    {theirs:8.3f}   ratio {ours / theirs:.2f} (target 1.5)")


def parquet(asked: Namespace) -> None:
    """Parquet files of codes and of text, CPU seconds, beside what decoding them costs."""
    columns = columns_of(rows(asked))
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for kind, table in (("uint8", pa.table), ("text", texts)):
            path = Path(folder) / f"{kind}.parquet"
            pq.write_table(table(columns), path)
            decoding = cpu_seconds(partial(decode, path), 3)
            counted = cpu_seconds(partial(count_file, path), 3)
            print(
                f"Parquet {kind:5}         {counted:8.3f}   decode {decoding:.3f}, "
                f"ratio {counted / decoding:.2f} (target 2)"
            )


def csv(asked: Namespace) -> None:
    """A CSV file of a tenth of the records, CPU seconds, beside what pyarrow needs to read it."""
    columns = columns_of(rows(asked))
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "x.csv"
        some = texts({name: codes[: rows(asked) // 10] for name, codes in columns.items()})
        with path.open("wb") as file:  # pyarrow would put the header in quotes
            file.write(",".join(columns).encode() + b"\n")
            arrow_csv.write_csv(some, file, arrow_csv.WriteOptions(include_header=False, quoting_style="none"))
        parse = cpu_seconds(lambda: arrow_csv.read_csv(path), 3)
        counted = cpu_seconds(partial(count_file, path), 3)
        print(f"CSV, a tenth of it    {counted:8.3f}   pyarrow.csv {parse:.3f}, ratio {counted / parse:.2f}")


def memory(asked: Namespace) -> None:
    """Peak memory of a process that counts a Parquet file."""
    if not asked.large:
        print("not measured; ask with --large RECORDS")
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path, piece = Path(folder) / "large.parquet", 5_000_000
        with pq.ParquetWriter(path, pa.table(columns_of(1)).schema) as writer:
            for seed, start in enumerate(range(0, asked.large, piece)):
                writer.write_table(pa.table(columns_of(min(piece, asked.large - start), seed)))
        print(f"peak memory, {asked.large:,} records from Parquet: {alone(peak_of_count, path):.0f} MB (target 400)")


def count_file(path: Path) -> None:
    """All pairs of a file."""
    count(as_source(path), STRUCTURE)


def rows(asked: Namespace) -> int:
    """Records for the ratios."""
    return min(asked.rows, 100_000) if asked.smoke else int(asked.rows)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000, help="records, for the ratios")
    parser.add_argument("--large", type=int, default=0, help="records of the file whose peak memory is measured")
    parser.add_argument("--folder", type=Path, default=None, help="where temporary files go")


MEASUREMENT = Measurement(
    about=__doc__, parts={"codes": codes, "parquet": parquet, "csv": csv, "memory": memory}, arguments=_arguments
)

if __name__ == "__main__":
    main(MEASUREMENT)
