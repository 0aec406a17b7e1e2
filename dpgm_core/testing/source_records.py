"""Records to hold a source to, and how core's own sources are given them.

Another source says how it is given records by a static method ``for_conformance(table, folder)`` of its class that
returns a source holding the rows of a pyarrow table (it may write into the empty folder), or through the attribute
`records` of its `SourceConformance`. Without either, checks that need records are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from dpgm_core.domain import Attribute, Domain
from dpgm_core.sources.contract import Source

__all__ = [
    "DOMAIN",
    "ODD_TEXTS",
    "codes_of",
    "example_table",
    "expected_codes",
    "features_of",
    "opener_of",
    "text_table",
]

#: Labels, bins and codes; unknown and null with labels of their own, with existing ones, and shared.
DOMAIN = Domain(
    [
        Attribute.of_labels("town", ["A", "B", "Zürich"], unknown="?", null="none"),
        Attribute.of_bins("age", [0, 18, 65, float("inf")], unknown="?", null="none"),
        Attribute.of_size("visits", 4, unknown=3),
        Attribute.of_labels("coded", ["low", "high"], unknown="low", coded=True),
    ]
)

#: Texts that have led readers to guess types, and none that needs quoting.
ODD_TEXTS = ("", "nan", "NULL", "1e3", "-0", "0x1", " A", "a", "Infinity", "2020-01-01", "true", "1_0", "A" * 300, "é")


def example_table(count: int = 300, seed: int = 0) -> Any:
    """Typed records with unknown, null and out-of-range values: texts, floats, whole numbers; a pyarrow Table."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "town": pa.array(rng.choice(np.array(["A", "B", "Zürich", "C", None], dtype=object), count), pa.string()),
            "age": pa.array(
                rng.choice([0.0, 3.5, 18.0, 64.9, 65.0, 99.0, -1.0, 1e9], count), mask=rng.random(count) < 0.1
            ),
            "visits": pa.array(rng.integers(-1, 6, count), mask=rng.random(count) < 0.1),
            "coded": pa.array(rng.integers(0, 3, count).astype(np.int16)),
        }
    )


def text_table(table: Any) -> Any:
    """The same records as texts only, nulls as nulls."""
    columns = {name: [None if v is None else str(v) for v in table[name].to_pylist()] for name in table.column_names}
    return pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns]))


def expected_codes(table: Any, domain: Domain = DOMAIN) -> list[tuple[int, ...]]:
    """The codes of every record, value by value, by the public domain alone."""
    columns = [
        [domain[name].code(None if v is None else str(v)) for v in table[name].to_pylist()] for name in domain.names
    ]
    return list(zip(*columns, strict=True))


def codes_of(source: Source, domain: Domain = DOMAIN, columns: Sequence[str] | None = None) -> Counter[tuple[int, ...]]:
    """How often each tuple of codes occurs in what a source yields."""
    found: Counter[tuple[int, ...]] = Counter()
    for batch in source.batches(domain, domain.names if columns is None else columns):
        found.update(zip(*(np.asarray(part).tolist() for part in batch), strict=True))
    return found


def _csv(table: Any, folder: Path, cls: Any) -> Source:
    path = folder / "records.csv"
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(table.column_names), *lines]) + "\n", encoding="utf-8", newline="\n")
    source: Source = cls(path=path)
    return source


def _parquet(table: Any, folder: Path, cls: Any) -> Source:
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "records.parquet", row_group_size=100_000)
    source: Source = cls(path=folder / "records.parquet")
    return source


def _ipc(table: Any, folder: Path, cls: Any) -> Source:
    import pyarrow.feather as feather

    feather.write_feather(table, str(folder / "records.arrow"), chunksize=50_000)
    source: Source = cls(path=folder / "records.arrow")
    return source


def _stream(table: Any, folder: Path, cls: Any) -> Source:
    source: Source = cls(data=pa.Table.from_batches(table.to_batches(max_chunksize=50_000), table.schema))
    return source


def _codes(table: Any, folder: Path, cls: Any) -> Source:
    # What has no code is unknown, which any code outside of the labels says; null has a code of its own.
    data = {
        name: np.array(
            [DOMAIN[name].code(None if v is None else str(v)) for v in table[name].to_pylist()], dtype=np.int64
        )
        for name in table.column_names
        if name in DOMAIN
    }
    source: Source = cls(data=data)
    return source


_WRITERS: dict[str, Callable[[Any, Path, Any], Source]] = {
    "dpgm_core.sources.csv:CsvSource": _csv,
    "dpgm_core.sources.arrow:ParquetSource": _parquet,
    "dpgm_core.sources.arrow:ArrowIpcSource": _ipc,
    "dpgm_core.sources.arrow:ArrowSource": _stream,
    "dpgm_core.sources.codes:CodesSource": _codes,
}


def opener_of(cls: type) -> Callable[[Any, Path], Source] | None:
    """How a source class, or one derived from a source of core, is given records; None if it does not say."""
    own: Callable[[Any, Path], Source] | None = getattr(cls, "for_conformance", None)
    if own is not None:
        return own
    for base in cls.__mro__:
        writer = _WRITERS.get(f"{base.__module__}:{base.__qualname__}")
        if writer is not None:
            write = writer
            return lambda table, folder: write(table, folder, cls)
    return None


def features_of(cls: type) -> dict[str, bool]:
    """What a source class shows it can do: "file" if it reads one, "labels" unless it takes codes only."""
    fields = {field.name for field in attrs.fields(cls)} if attrs.has(cls) else set()
    codes_only = any(
        f"{base.__module__}:{base.__qualname__}" == "dpgm_core.sources.codes:CodesSource" for base in cls.__mro__
    )
    return {"file": "path" in fields, "labels": not codes_only}
