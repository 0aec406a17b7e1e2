"""Records for the conformance kit."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dpgm_spark.session import session
from dpgm_spark.source import SparkSource

__all__ = ["of_table"]

_KEPT = ExitStack()


def of_table(table: Any, folder: Path) -> SparkSource:
    """The rows of a pyarrow Table, each of its chunks a Parquet file and a partition; one session serves all."""
    spark = _KEPT.enter_context(session("local[2]", 120.0))
    atexit.register(_KEPT.close)
    # Spark packs small files into one partition unless opening one is dear.
    spark.conf.set("spark.sql.files.openCostInBytes", str(2**27))
    for old in folder.glob("*.parquet"):
        old.unlink()
    ends = [0]
    for chunk in table.column(0).chunks if table.num_columns else []:
        ends.append(ends[-1] + len(chunk))
    for number, (start, end) in enumerate(zip(ends, [*ends[1:], table.num_rows], strict=True)):
        if end > start or number < max(len(ends) - 1, 1):
            pq.write_table(table.slice(start, end - start), folder / f"{number:04}.parquet")
    return SparkSource(path=str(folder))
