"""What the benchmarks of counting count: 27 pairs of ten columns, a0 ... a9, of ten labels each."""

from __future__ import annotations

import hashlib
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpgm_core.counting.table_counts import Counted
from dpgm_core.domain.domain import Domain
from dpgm_core.structure.structure import Structure

K = 10
NAMES = tuple(f"a{place}" for place in range(10))
PAIRS = random.Random(0).sample(list(itertools.combinations(NAMES, 2)), 27)
STRUCTURE = Structure(Domain.from_sizes(dict.fromkeys(NAMES, K)), PAIRS)

_FILES, _GROUP = 16, 1_000_000


def columns_of(rows: int, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """Codes of so many records."""
    return {name: draw.integers(0, K, rows, np.int8) for name in NAMES}


def texts(columns: dict[str, np.ndarray]) -> pa.Table:
    """The same records as labels."""
    labels = pa.array([str(code) for code in range(K)])
    return pa.table({name: labels.take(pa.array(codes)) for name, codes in columns.items()})


def make(folder: Path, rows: int, kind: str = "int8") -> None:
    """Write 16 Parquet files, always the same ones, unless they are there; a file appears when it is whole.

    kind: "int8" or "text".
    """
    folder.mkdir(parents=True, exist_ok=True)
    ends = [rows * number // _FILES for number in range(_FILES + 1)]
    table = texts if kind == "text" else pa.table
    for number, (first, last) in enumerate(itertools.pairwise(ends)):
        path = folder / f"part-{number:02}.parquet"
        if path.exists():
            continue
        draw = np.random.default_rng([0, number])
        unfinished = folder / f".{path.name}"
        with pq.ParquetWriter(unfinished, table(columns_of(0, draw)).schema) as writer:
            for start in range(first, last, _GROUP):
                writer.write_table(table(columns_of(min(_GROUP, last - start), draw)))
        unfinished.rename(path)


def sha_of(counted: Counted) -> str:
    """Of all tables and the number of records."""
    return sha_of_tables([counted.tables[pair] for pair in PAIRS], counted.records)


def sha_of_tables(tables: list[Any], records: int) -> str:
    """Of a table for each of PAIRS, (K, K), first column first, and the number of records."""
    cells = [np.asarray(table, "<i8").reshape(K, K).tobytes() for table in tables]
    return hashlib.sha256(b"".join([*cells, str(records).encode()])).hexdigest()
