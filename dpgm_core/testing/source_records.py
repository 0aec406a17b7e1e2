"""Records to hold a source to, and how a source is given them.

A source's declaration names a function ``(table, folder) -> source`` that makes a source holding the rows of a pyarrow
table (it may write into the empty folder): ``Component(..., records="package.module:function")``. A class that is not
installed is given one by `check_component(records=...)` or its `SourceConformance`. Without either, checks that need
records are skipped.
"""

from __future__ import annotations

import importlib
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np
import pyarrow as pa

from dpgm_core.domain import Attribute, Domain
from dpgm_core.errors import IncompatiblePlugin, PluginLoadError
from dpgm_core.sources.contract import AnySource, Reading, ReducingSource, Source
from dpgm_core.testing.check import require
from dpgm_core.testing.reductions import tallies

if TYPE_CHECKING:
    from dpgm_core.components.registry import Offer

__all__ = [
    "DOMAIN",
    "ODD_TEXTS",
    "codes_of",
    "example_table",
    "expected_codes",
    "features_of",
    "in_chunks",
    "records_of",
    "rows_of",
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


def in_chunks(table: Any, cuts: Sequence[int]) -> Any:
    """The same rows with a chunk from each cut to the next.

    >>> in_chunks(pa.table({"a": [1, 2, 3]}), (0, 1, 1, 3))["a"].num_chunks
    3
    """
    columns = {name: pa.concat_arrays(table[name].chunks) for name in table.column_names}
    return pa.table(
        {
            name: pa.chunked_array([one[start:end] for start, end in itertools.pairwise(cuts)], one.type)
            for name, one in columns.items()
        }
    )


def expected_codes(table: Any, domain: Domain = DOMAIN) -> list[tuple[int, ...]]:
    """The codes of every record, value by value, by the public domain alone."""
    columns = [
        [domain[name].code(None if v is None else str(v)) for v in table[name].to_pylist()] for name in domain.names
    ]
    return list(zip(*columns, strict=True))


def codes_of(
    source: AnySource, domain: Domain = DOMAIN, columns: Sequence[str] | None = None
) -> Counter[tuple[int, ...]]:
    """How often each tuple of codes occurs in what a source yields, or sums; CheckFailed if it does both unequally."""
    names = domain.names if columns is None else tuple(columns)
    rows = rows_of(source, domain, names) if isinstance(source, Source) else None
    if not isinstance(source, ReducingSource):
        return Counter() if rows is None else rows
    counts = tallies(domain, [names])
    with source.pinned(Reading(domain=domain, columns=names)) as pinned:
        (sums,) = counts.hits(pinned.reduce(counts))
    require(rows is None or rows == sums, "the rows that it hands out are others than those that it sums")
    return sums


def rows_of(source: Source, domain: Domain, columns: Sequence[str]) -> Counter[tuple[int, ...]]:
    """How often each tuple of codes occurs in the batches of a source."""
    found: Counter[tuple[int, ...]] = Counter()
    for batch in source.batches(domain, columns):
        found.update(zip(*(np.asarray(part).tolist() for part in batch), strict=True))
    return found


def records_of(offer: Offer) -> Callable[[Any, Path], Source] | None:
    """The function that a declaration names as `records`, imported; None if it names none.

    Raises PluginLoadError, and IncompatiblePlugin for what cannot be called.
    """
    target = offer.component.records
    if target is None:
        return None
    where = f"the records {target!r} of {offer.component.kind} {offer.component.name!r} of {offer}"
    module, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise PluginLoadError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise IncompatiblePlugin(f"{where}: it is a {type(found).__name__}, not a function (table, folder) -> source")
    return cast("Callable[[Any, Path], Source]", found)


def features_of(cls: type) -> dict[str, bool]:
    """What a source class shows it can do.

    "rows" if it hands them out, "reduces" if it sums where they are; "file" if it reads one, "files" if that or a
    folder of them, "labels" unless it takes codes only.
    """
    fields = {field.name for field in attrs.fields(cls)} if attrs.has(cls) else set()
    codes_only = any(
        f"{base.__module__}:{base.__qualname__}" == "dpgm_core.sources.codes:CodesSource" for base in cls.__mro__
    )
    return {
        "rows": issubclass(cls, Source),
        "reduces": issubclass(cls, ReducingSource),
        "file": "path" in fields,
        "files": not fields.isdisjoint(("path", "paths", "folder")),
        "labels": not codes_only,
    }
