"""What every engine counts in `scale.py`: the table, its pairs, and how two counts are compared.

A folder of 16 Parquet files of row groups of a million records, columns a0 ... a9 of int8, 0 to 9; 27 pairs. An
engine's module has a function from the folder to what it took: `seconds` of one sum, `baseline_seconds` of what it is
measured against (None: the embedded path's), `peak_mb` of the driver above what it holds before it reads, and
`counts_sha`, `sha_of` what it counted.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpgm_core.counting.table_counts import Counted, count
from dpgm_core.domain.domain import Domain
from dpgm_core.sources import as_source
from dpgm_core.structure.structure import Structure

K = 10
NAMES = tuple(f"a{place}" for place in range(10))
PAIRS = random.Random(0).sample(list(itertools.combinations(NAMES, 2)), 27)
STRUCTURE = Structure(Domain.from_sizes(dict.fromkeys(NAMES, K)), PAIRS)

_FILES, _GROUP = 16, 1_000_000


class Taken(TypedDict):
    """What one run of an engine took."""

    seconds: float
    baseline_seconds: float | None
    peak_mb: float
    counts_sha: str


def make(folder: Path, rows: int) -> None:
    """Write the table, always the same one, unless it is there; a file appears when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [rows * number // _FILES for number in range(_FILES + 1)]
    schema = pa.schema([(name, pa.int8()) for name in NAMES])
    for number, (first, last) in enumerate(itertools.pairwise(ends)):
        path = folder / f"part-{number:02}.parquet"
        if path.exists():
            continue
        draw = np.random.default_rng([0, number])
        unfinished = folder / f".{path.name}"
        with pq.ParquetWriter(unfinished, schema) as writer:
            for start in range(first, last, _GROUP):
                size = min(_GROUP, last - start)
                writer.write_table(pa.table({name: draw.integers(0, K, size, np.int8) for name in NAMES}))
        unfinished.rename(path)


def sha_of(counted: Counted) -> str:
    """Of all tables and the number of records."""
    return sha_of_tables([counted.tables[pair] for pair in PAIRS], counted.records)


def sha_of_tables(tables: list[Any], records: int) -> str:
    """Of a table for each of PAIRS, (K, K), first column first, and the number of records."""
    cells = [np.asarray(table, "<i8").reshape(K, K).tobytes() for table in tables]
    return hashlib.sha256(b"".join([*cells, str(records).encode()])).hexdigest()


def peak_mb(pid: int | str = "self") -> float:
    """The peak resident memory of a process so far, in MB, 0 of one that has ended.

    `getrusage` is of no use: its peak starts at that of the parent process.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0) / 1024


def peak_of_count(path: Path) -> float:
    """Count the file in this process, and return its peak memory, MB."""
    count(as_source(path), STRUCTURE)
    return peak_mb()


def descendants(pid: int) -> list[int]:
    """A process and all processes below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def decode_only(batches: Iterable[Any]) -> Iterator[Any]:
    """For `mapInArrow`: decode the batches, and return the number of values."""
    rows = sum(len(column) for batch in batches for column in batch.columns)
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})
