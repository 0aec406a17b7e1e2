"""What a pass over records costs one core, the cost model of docs/scale.md; minima over a few runs of one process.

python -m benchmarks.counting [--smoke] [--only kernel]
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from benchmarks.harness.main import Measurement, main
from benchmarks.harness.output import markdown
from benchmarks.harness.timing import cpu_seconds
from dpgm_core import Domain, Structure
from dpgm_core.counting.table_counts import fewest_sums
from dpgm_core.sources import Reading, Shipped

#: Rows of one batch.
BATCH = 2**17


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
    """Encoding, counting, bringing persons together."""
    cases = ((10, 10, 2), (10, 100, 1), (10, 50, 2), (10, 100, 2), (2, 100, 2))
    rows = [counted(*one) for one in cases[: 1 if asked.smoke else None]]
    print(markdown(["", "count, ns a row", "encode numbers, ns a value", "texts", "MB that come back"], rows))
    print(together())


MEASUREMENT = Measurement(about=__doc__, parts={"kernel": kernel})

if __name__ == "__main__":
    main(MEASUREMENT)
