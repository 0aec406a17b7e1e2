"""Parquet files as partitions: row groups that a worker streams through core's kernel, without a data frame between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from glob import has_magic
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from attrs import frozen

from dpgm_core.sources import Reading, Shipped, SourceRefused

__all__ = ["Files", "RowGroups", "listed", "shown"]

#: About as many partitions as there should be at least, if there are so many row groups.
_PARTITIONS = 64
_BATCH_ROWS = 2**17
_SUFFIXES = (".parquet", ".parq", ".pq")


@frozen
class RowGroups:
    """Some row groups of one file. names: the columns to be read; texts: those that come as dictionaries; keys: those
    of its folders, as `year=2019` has."""

    fragment: Any
    names: tuple[str, ...]
    texts: frozenset[str]
    keys: tuple[str, ...]

    def batches(self, frame: None) -> Iterator[Any]:
        """Their rows as Arrow record batches, by the types of this very file: Arrow would cast to those of the first,
        and fail at a value that it cannot cast."""
        # pre_buffer would hold a row group as a whole; and dask has one thread for one task.
        if not self.keys:
            with self.fragment.filesystem.open_input_file(self.fragment.path) as stream:
                file = pq.ParquetFile(stream, pre_buffer=False, read_dictionary=list(self.texts))
                groups = [group.id for group in self.fragment.row_groups]
                yield self._empty(file.schema_arrow)
                yield from file.iter_batches(_BATCH_ROWS, groups, list(self.names), use_threads=False)
            return
        # A third slower, but it knows what folders say.
        schema = self.fragment.physical_schema
        for key in self.keys:
            schema = schema.append(pa.field(key, pa.string()))
        yield self._empty(schema)
        yield from self.fragment.to_batches(
            schema=schema,
            columns=list(self.names),
            batch_size=_BATCH_ROWS,
            batch_readahead=1,
            use_threads=False,
            fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=False),
        )

    def _empty(self, schema: Any) -> Any:
        """A batch without rows, by which the types of a file are checked whether or not it has a row."""
        own = pa.schema([field for field in schema if field.name in self.names])
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in own], schema=own)


@frozen
class Files:
    """The files of one table, in folders below `base`. stamps: file -> what tells a change, as its size and time."""

    system: Any
    base: str
    stamps: dict[str, str]
    keys: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        """The columns of the first file, and the keys of its folders."""
        return tuple(self._dataset(None).schema.names)

    def check(self, reading: Reading) -> None:
        """Refuse by names and types; those of later files are looked at where they are read."""
        Shipped(reading=reading).check(self._dataset(None).schema)

    def partitions(self, reading: Reading) -> list[tuple[RowGroups, None]]:
        """Row groups with the columns asked for; more than one partition a file only where files are few."""
        schema = self._dataset(None).schema
        names = tuple(dict.fromkeys(reading.names))  # the person key may be an attribute, too
        # Texts as dictionaries: core looks each distinct one up once a batch.
        texts = frozenset(name for name in names if _is_text(schema.field(name).type)) - {*self.keys}
        form = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns=set(texts)))
        fragments = list(self._dataset(form).get_fragments())
        each = -(-_PARTITIONS // len(fragments))
        if each > 1:
            fragments = [part for fragment in fragments for part in _split(fragment, each)]
        return [(RowGroups(fragment, names, texts, self.keys), None) for fragment in fragments]

    def _dataset(self, form: Any) -> Any:
        return ds.dataset(
            list(self.stamps),
            format=form or "parquet",
            filesystem=self.system,
            partitioning=ds.partitioning(pa.schema([(key, pa.string()) for key in self.keys]), flavor="hive"),
            partition_base_dir=self.base,
        )


def listed(path: str) -> Files:
    """The Parquet files at a path, a folder, a pattern or a URL that fsspec knows; SourceRefused if there are none."""
    system, root = fsspec.core.url_to_fs(path)
    ones = sorted(system.glob(root))
    base = PurePosixPath(root)
    while str(base) not in ones and has_magic(str(base)):
        base = base.parent
    files = [file for one in ones for file in ([one] if system.isfile(one) else _inside(system, one))]
    if not files:
        raise SourceRefused(f"there is no Parquet file at {shown(path)}; name the file or its folder")
    keys = [_keys(PurePosixPath(file).relative_to(base).parts[:-1]) for file in files]
    if len(set(keys)) > 1:
        raise SourceRefused(f"files at {shown(path)} are in folders of different keys; keep a table's keys the same")
    return Files(system, str(base), {file: str(system.ukey(file)) for file in files}, keys[0])


def shown(path: str) -> str:
    """A path without what a URL may keep secret: a password, or a signature in its query."""
    if "://" not in path:
        return path
    return re.sub(r"//[^/@]*@", "//", path.partition("?")[0])


def _inside(system: Any, folder: str) -> list[str]:
    """The Parquet files of a folder and of those in it; what begins with a dot or an underscore is no data."""
    return [
        file
        for file in sorted(system.find(folder))
        if file.lower().endswith(_SUFFIXES)
        and not any(part.startswith((".", "_")) for part in PurePosixPath(file).relative_to(folder).parts)
    ]


def _keys(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(unquote(part.partition("=")[0]) for part in folders if "=" in part[1:])


def _split(fragment: Any, parts: int) -> list[Any]:
    groups = np.array_split(np.arange(fragment.num_row_groups), parts)
    return [fragment.subset(row_group_ids=some.tolist()) for some in groups if len(some)] or [fragment]


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
