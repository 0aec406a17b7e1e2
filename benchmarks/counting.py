"""Counting 27 pairs of 10 columns of 10 labels: CPU seconds against a plain numba loop and against decoding alone.

    python -m benchmarks.counting [--smoke] [--rows N] [--large N] [--only codes,parquet,csv,memory,kernel]

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

from benchmarks.cases.pairs import PAIRS, STRUCTURE, K, columns_of, texts
from benchmarks.harness.alone import alone, peak_megabytes
from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.timing import cpu_seconds
from dpgm_core import Domain, Structure
from dpgm_core.counting.table_counts import count, fewest_sums
from dpgm_core.sources import Reading, Shipped, as_source

#: Rows of one batch of `kernel`.
BATCH = 2**17


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


def codes(asked: Namespace) -> None:
    """Codes in memory, CPU seconds."""
    columns = codes_of(asked)
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
    columns = codes_of(asked)
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
    columns = codes_of(asked)
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
        with pq.ParquetWriter(path, pa.table(columns_of(1, np.random.default_rng(0))).schema) as writer:
            for seed, start in enumerate(range(0, asked.large, piece)):
                writer.write_table(pa.table(columns_of(min(piece, asked.large - start), np.random.default_rng(seed))))
        print(f"peak memory, {asked.large:,} records from Parquet: {alone(peak_of_count, path):.0f} MB (target 400)")


def count_file(path: Path) -> None:
    """All pairs of a file."""
    count(as_source(path), STRUCTURE)


def peak_of_count(path: Path) -> float:
    """Count the file in this process, and return its peak memory, MB."""
    count_file(path)
    return peak_megabytes()


def nanoseconds(call: Callable[[], object]) -> float:
    """CPU time of a call for each row, the least of three."""
    return 1e9 * cpu_seconds(call, 3) / BATCH


def counted(labels: int, columns: int, order: int) -> list[str]:
    """One line of the table: all sets of `order` columns."""
    rng = np.random.default_rng(0)
    domain = Domain.from_sizes({f"a{number}": labels for number in range(columns)})
    counts = fewest_sums(Structure.complete(domain, order))
    codes = [rng.integers(0, labels, BATCH).astype(np.uint8) for _ in range(columns)]
    texts = pa.array([str(label) for label in range(labels)])
    names = [f"a{number}" for number in range(columns)]
    batches = {
        "numbers": pa.record_batch([column.astype(np.int8) for column in codes], names),
        "texts": pa.record_batch([texts.take(pa.array(column.astype(np.int32))) for column in codes], names),
    }
    work = Shipped(reading=Reading(domain=domain, columns=counts.columns))
    pure = nanoseconds(lambda: counts.partial(codes, None))
    more = [(nanoseconds(lambda b=batch: work.summed(counts, [b])) - pure) / columns for batch in batches.values()]  # type: ignore[misc]
    what = "pairs" if order == 2 else "single columns"
    size = f"{8 * counts.cells / 1e6:.2f}"
    return [
        f"{columns} columns of {labels} labels, all {what}", f"{pure:,.0f}", f"{max(more[0], 0):.1f}", f"{more[1]:.1f}",
        size,
    ]  # fmt: skip


def together() -> str:
    """What persons cost: ten columns and a whole-numbered key, three rows each on the average."""
    rng = np.random.default_rng(0)
    domain = Domain.from_sizes({f"a{number}": 10 for number in range(10)})
    columns = {name: rng.integers(0, 10, BATCH).astype(np.int8) for name in domain.names}
    batch = pa.record_batch({**columns, "id": rng.integers(0, BATCH // 3, BATCH)})
    work = Shipped(reading=Reading(domain=domain, columns=domain.names, person="id"))
    blocks = [block for _, block in work.spread([batch], 8)]
    spread = nanoseconds(lambda: list(work.spread([batch], 8)))
    kept = nanoseconds(lambda: list(work.limit_rows(blocks)))
    moved = sum(map(len, blocks)) / BATCH
    return f"persons: {spread:,.0f} ns a row to spread them, {moved:.0f} bytes moved, {kept:,.0f} ns to keep their rows"


def kernel(asked: Namespace) -> None:
    """What a pass costs one core, the cost model of docs/scale.md: encoding, counting, bringing persons together."""
    cases = ((10, 10, 2), (10, 100, 1), (10, 50, 2), (10, 100, 2), (2, 100, 2))
    rows = [counted(*one) for one in cases[: 1 if asked.smoke else None]]
    print(markdown(["", "count, ns a row", "encode numbers, ns a value", "texts", "MB that come back"], rows))
    print(together())


def codes_of(asked: Namespace) -> dict[str, np.ndarray]:
    """Codes of the records as core has them."""
    drawn = columns_of(rows(asked), np.random.default_rng(0))
    return {name: codes.astype(np.uint8) for name, codes in drawn.items()}


def rows(asked: Namespace) -> int:
    """Records for the ratios."""
    return min(asked.rows, 100_000) if asked.smoke else int(asked.rows)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000, help="records, for the ratios")
    parser.add_argument("--large", type=int, default=0, help="records of the file whose peak memory is measured")
    parser.add_argument("--folder", type=Path, default=None, help="where temporary files go")


MEASUREMENT = Measurement(
    about=__doc__,
    parts={"codes": codes, "parquet": parquet, "csv": csv, "memory": memory, "kernel": kernel},
    arguments=_arguments,
)

if __name__ == "__main__":
    main(MEASUREMENT)
