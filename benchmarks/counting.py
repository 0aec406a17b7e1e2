"""Counting 27 pairs of 10 columns of 10 labels: CPU seconds against a plain numba loop and against decoding alone.

`python -m benchmarks.counting [--rows N] [--large N]`; figures are minima over a few runs of one process. `--large`
also writes a Parquet file of so many rows, counts it in a process of its own and prints that process's peak memory.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from dpgm_core.counting.kernel import count
from dpgm_core.domain import Domain
from dpgm_core.sources import as_source
from dpgm_core.structure import Structure

K = 10
NAMES = tuple(f"x{place}" for place in range(10))
PAIRS = random.Random(0).sample(list(itertools.combinations(NAMES, 2)), 27)
STRUCTURE = Structure(Domain.from_sizes(dict.fromkeys(NAMES, K)), PAIRS)


def cpu(call: Callable[[], object], runs: int = 5) -> float:
    """The least CPU seconds, of all threads, over some runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


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


def peak_of(path: Path) -> float:
    """Megabytes: the peak resident memory of a process that counts the file."""
    command = [sys.executable, "-m", "benchmarks.counting", "--peak-of", str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the table of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="records, for the ratios")
    parser.add_argument("--large", type=int, default=0, help="records of the file whose peak memory is measured")
    parser.add_argument("--folder", type=Path, default=None, help="where temporary files go")
    parser.add_argument("--peak-of", type=Path, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_of is not None:
        count(as_source(arguments.peak_of), STRUCTURE)
        # Not getrusage: its figure starts at that of the parent process.
        status = Path("/proc/self/status").read_text()
        print(int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024)
        return
    columns = columns_of(arguments.rows)
    source = as_source(columns)
    ours = cpu(lambda: count(source, STRUCTURE))
    reference = pairwise_numba(columns)
    print(f"{arguments.rows:,} records, {len(PAIRS)} pairs, CPU seconds")
    print(f"codes                 {ours:8.3f}")
    if reference is None:
        print("numba pair by pair     not installed")
    else:
        theirs = cpu(reference)
        print(f"numba pair by pair    {theirs:8.3f}   ratio {ours / theirs:.2f} (target 1.5)")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for kind, table in (("uint8", lambda: pa.table(columns)), ("text", lambda: texts(columns))):
            path = Path(folder) / f"{kind}.parquet"
            pq.write_table(table(), path)
            alone, counted = (
                cpu(lambda path=path: decode(path), 3),
                cpu(lambda path=path: count(as_source(path), STRUCTURE), 3),
            )
            print(
                f"Parquet {kind:5}         {counted:8.3f}   decode {alone:.3f}, ratio {counted / alone:.2f} (target 2)"
            )
        path = Path(folder) / "x.csv"
        some = texts({name: codes[: arguments.rows // 10] for name, codes in columns.items()})
        with path.open("wb") as file:  # pyarrow would put the header in quotes
            file.write(",".join(columns).encode() + b"\n")
            arrow_csv.write_csv(some, file, arrow_csv.WriteOptions(include_header=False, quoting_style="none"))
        parse = cpu(lambda: arrow_csv.read_csv(path), 3)
        counted = cpu(lambda: count(as_source(path), STRUCTURE), 3)
        print(f"CSV, a tenth of it    {counted:8.3f}   pyarrow.csv {parse:.3f}, ratio {counted / parse:.2f}")
        if arguments.large:
            path = Path(folder) / "large.parquet"
            piece = 5_000_000
            with pq.ParquetWriter(path, pa.table(columns_of(1)).schema) as writer:
                for seed, start in enumerate(range(0, arguments.large, piece)):
                    writer.write_table(pa.table(columns_of(min(piece, arguments.large - start), seed)))
            print(f"peak memory, {arguments.large:,} records from Parquet: {peak_of(path):.0f} MB (target 400)")


if __name__ == "__main__":
    main()
