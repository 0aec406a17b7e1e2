"""One table, every way in: the codes do not depend on the format, the type, the batches or the row order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgm_core.domain import Attribute, Domain
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowIpcSource, ArrowSource, ParquetSource
from dpgm_core.sources.codes import CodesSource
from dpgm_core.sources.csv import CsvSource

NAMES = ("town", "age", "visits", "coded")  # of visits.domain


def test_every_way_in_gives_the_reference_codes(
    way: Callable[..., Any], tmp_path: Path, visits: SimpleNamespace
) -> None:
    """Each format and frame yields exactly what `Attribute.code` says, value by value."""
    table = visits.table()
    assert visits.codes(as_source(way(table, tmp_path))) == visits.expected(table)


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        np.zeros((3, 4)),
        np.zeros((3, 4), bool),
        np.full((3, 4), "SECRET", object),
        np.zeros(3, int),
        np.zeros((3, 5), int),
        {},
        {1: np.zeros(3, int)},
        dict.fromkeys(NAMES, np.array(["SECRET"])),
        dict.fromkeys(NAMES, np.array([1.0])),
        {name: np.zeros(number, int) for number, name in enumerate(NAMES)},
        "x.txt",
        "x",
        Path("SECRET.gz"),
        None,
        7,
        [1, 2],
        object(),
        CsvSource,
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_cannot_hold_records_is_refused(data: object, visits: SimpleNamespace) -> None:
    """One clear line, nothing of the content."""
    assert visits.domain.names == NAMES
    with pytest.raises(DataError) as caught:
        visits.codes(as_source(data))
    assert "SECRET" not in str(caught.value).replace("SECRET.gz", "")


def test_reprs_hide_records() -> None:
    """A source's repr, as a debugger or an error may show it, has no value in it."""
    assert repr(ArrowSource(data=pa.table({"a": ["SECRET"]}))) == "ArrowSource(data=Table)"
    assert repr(CodesSource(data=np.full((1, 1), 777))) == "CodesSource(data=ndarray)"


def test_sources_are_told_by_the_name_of_the_file() -> None:
    """Each suffix, in any case, has its reader; a source stays what it is."""
    kinds = {"a.CSV": CsvSource, "a.csv.gz": CsvSource, "a.parquet": ParquetSource, "a.ipc": ArrowIpcSource}
    for name, kind in kinds.items():
        source = as_source(name)
        assert isinstance(source, kind) and as_source(source) is source


def test_memory_does_not_grow_with_the_file() -> None:
    """Reading a Parquet file of 64 MB of texts in one row group holds a few batches of it at a time."""
    rows = 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        column = pa.array([f"{i:032d}" for i in range(1000)]).take(pa.array(np.arange(rows) % 1000))
        pq.write_table(pa.table({"a": column}), path, row_group_size=rows, use_dictionary=False)
        del column
        before = pa.total_allocated_bytes()
        domain = Domain([Attribute.of_labels("a", [f"{5:032d}"], unknown="?")])
        peak = seen = 0
        for batch in ParquetSource(path=path).batches(domain, ["a"]):
            seen += len(batch[0])
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == rows
    assert peak < 32e6
