"""How the conformance kit gives core's own sources their records: what their declarations name as `records`.

Each function takes a pyarrow table and an empty folder, and makes a source of its kind that holds the table's rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpgm_core.sources.arrow import ArrowIpcSource, ArrowSource
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.csv import CsvSource
from dpgm_core.sources.parquet import ParquetSource
from dpgm_core.testing.source_records import DOMAIN

__all__ = ["arrow", "arrow_ipc", "codes", "csv", "parquet"]


def csv(table: Any, folder: Path) -> CsvSource:
    """A file of texts; nulls are empty fields."""
    path = folder / "records.csv"
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(table.column_names), *lines]) + "\n", encoding="utf-8", newline="\n")
    return CsvSource(path=path)


def parquet(table: Any, folder: Path) -> ParquetSource:
    """A file of several row groups, where the table is long; a folder of files, where it has several chunks."""
    import pyarrow.parquet as pq

    if table.num_columns and table.column(0).num_chunks > 1:
        batches = table.to_batches()
        for number, batch in enumerate(batches):
            pq.write_table(pa.Table.from_batches([batch]), folder / f"part-{number:05}.parquet")
        return ParquetSource(path=folder)
    pq.write_table(table, folder / "records.parquet", row_group_size=100_000)
    return ParquetSource(path=folder / "records.parquet")


def arrow_ipc(table: Any, folder: Path) -> ArrowIpcSource:
    """A file of several batches, where the table is long."""
    import pyarrow.feather as feather

    feather.write_feather(table, str(folder / "records.arrow"), chunksize=50_000)
    return ArrowIpcSource(path=folder / "records.arrow")


def arrow(table: Any, folder: Path) -> ArrowSource:
    """The table itself, in several batches, where it is long."""
    return ArrowSource(data=pa.Table.from_batches(table.to_batches(max_chunksize=50_000), table.schema))


def codes(table: Any, folder: Path) -> CodesSource:
    """The codes of the kit's own domain: this source takes no labels."""
    # What has no code is unknown, which any code outside of the labels says; null has a code of its own.
    data = {
        name: np.array(
            [DOMAIN[name].code(None if v is None else str(v)) for v in table[name].to_pylist()], dtype=np.int64
        )
        for name in table.column_names
        if name in DOMAIN
    }
    return CodesSource(data=data)
