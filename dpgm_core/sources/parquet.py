"""Parquet: one file, a folder of files, or those that a pattern names; of `key=value` folders the keys are columns.

Which files there are, the names of their folders' keys, and their columns and types are public, as those of one file
are. They are looked at before any record. A value in a folder's name is as secret as one in a file, so messages leave
it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import field, frozen

from dpgm_core.arrays import Codes
from dpgm_core.domain import Domain
from dpgm_core.places import Place, place
from dpgm_core.sources.arrow import checked_types, coder, is_text, raw, with_key
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.lanes import LANES, in_lanes
from dpgm_core.sources.partitions import Part, parts_of
from dpgm_core.sources.reading import BATCH_ROWS, attempt, locate, shielded
from dpgm_core.sources.remote import RemoteFile

__all__ = ["ParquetSource"]

T = TypeVar("T")

#: Rows that are decoded in one go, unless a row group has more.
_RUN_ROWS = 2**19
#: Lanes that wait for remote files at once.
_REMOTE_LANES = max(LANES, 4)
#: Compressed bytes of a row group that are held at once; of larger ones each column is read by and by.
_MAX_GROUP_BYTES = 2**25
_BUFFER, _REMOTE_BUFFER = 2**18, 2**22


@frozen(kw_only=True)
class ParquetSource:
    """A Parquet file, or a folder of them; row groups are read in batches, so memory does not grow with the files.

    Files of a folder are read in the order of their names, those in its folders too; what begins with a dot or an
    underscore is no data. A folder named `year=2019` adds the column `year`, a text, to its files. A file that lacks a
    column asked for is named before any record is read.

    >>> ParquetSource(path="x.parquet").path.name
    'x.parquet'
    """

    path: Place = field(
        converter=place, metadata={"help": "the file, a folder of files, or a pattern such as 'x/*.parquet'; or a URL"}
    )

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Codes of the named columns; DataError if a file or a column is missing, or one is damaged."""
        return (codes for codes, _ in self.keyed_batches(domain, columns, None))

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`)."""
        return self._opened(
            with_key(columns, key),
            lambda types: checked_types(types, domain, columns, key),
            coder(domain, columns),
            lambda made: sum(part.nbytes for part in made[0]) + (0 if made[1] is None else made[1].nbytes),
        )

    def names(self) -> tuple[str, ...]:
        """The names of all columns, of the first file where there are several."""
        part = parts_of(self.path)[0]
        return (*self._schema(part).names, *part.values)

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The raw values of the named columns."""
        return self._opened(
            columns,
            lambda types: None,
            lambda batches: batches,
            lambda batch: sum(column.nbytes for column in batch.columns),
        )

    def _opened(
        self,
        columns: Sequence[str],
        check: Callable[[dict[str, Any]], None],
        work: Callable[[Iterator[RawBatch]], Iterator[T]],
        size: Callable[[T], int],
    ) -> Iterator[T]:
        """Yield what `work` makes of the raw batches of all files, whose columns and types are checked first.

        Runs of row groups are decoded, and worked on, in threads.
        """
        unreadable = self._unreadable(str(self.path))
        streams: list[Callable[[], Iterator[T]]] = []
        seen: list[dict[str, Any]] = []
        parts = parts_of(self.path)
        for part in parts:
            metadata = self._metadata(part)
            schema = metadata.schema.to_arrow_schema()
            locate(part.shown, columns, [*schema.names, *part.values])
            types = {name: pa.string() if name in part.values else schema.field(name).type for name in columns}
            if types not in seen:  # those of most files are the same
                check(types)
                seen.append(types)
            own = [name for name in dict.fromkeys(columns) if name not in part.values]
            # Texts as dictionaries: each distinct value is looked up once per batch. Dictionaries too: Arrow would
            # restore their types, and fail at bytes that are not UTF-8 and at more values than their indices can count.
            texts = [name for name in own if is_text(schema.field(name).type)]
            for groups in _runs(metadata):
                run = _Run(part, groups, own, texts, _compressed(metadata, groups, own))
                streams.append(lambda run=run: work(shielded(unreadable, run.batches(columns))))  # type: ignore[misc]
        remote = any(isinstance(part.file, RemoteFile) for part in parts)
        return in_lanes(streams, size, _REMOTE_LANES if remote else LANES)

    def _schema(self, part: Part) -> Any:
        return self._metadata(part).schema.to_arrow_schema()

    def _metadata(self, part: Part) -> Any:
        file = part.open()
        return attempt(self._unreadable(part.shown), lambda: pq.read_metadata(file))

    def _unreadable(self, shown: str) -> str:
        return f"{shown} cannot be read as Parquet"


@frozen
class _Run:
    """Row groups of one file, one behind the other. own: the columns asked for that the file itself has."""

    part: Part
    groups: Sequence[int]
    own: Sequence[str]
    texts: Sequence[str]
    compressed: int

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        values = self.part.values
        # Columns are decoded page by page. What they are decoded from is held only where it is small; of a remote file
        # columns that stand together are fetched together then.
        remote, small = isinstance(self.part.file, RemoteFile), self.compressed <= _MAX_GROUP_BYTES
        buffer = 0 if small else _REMOTE_BUFFER if remote else _BUFFER
        with pq.ParquetFile(
            self.part.open(), read_dictionary=self.texts, pre_buffer=remote and small, buffer_size=buffer
        ) as file:
            if self.own:
                batches = file.iter_batches(BATCH_ROWS, self.groups, columns=self.own, use_threads=False)
            else:  # nothing is asked for but what the folders say
                batches = _of_rows(sum(file.metadata.row_group(group).num_rows for group in self.groups))
            yield from raw(columns, (_with_values(batch, values, columns) for batch in batches))


def _compressed(metadata: Any, groups: Sequence[int], own: Sequence[str]) -> int:
    """Bytes of the largest row group's columns that are needed."""
    return max(_chunks(metadata.row_group(group), own) for group in groups)


def _chunks(group: Any, own: Sequence[str]) -> int:
    chunks = map(group.column, range(group.num_columns))
    return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in own)


def _runs(metadata: Any) -> Iterator[list[int]]:
    """All row groups, in runs of enough rows to be worth opening the file for."""
    run, rows = [], 0
    for group in range(metadata.num_row_groups):
        run.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= _RUN_ROWS:
            yield run
            run, rows = [], 0
    if run:
        yield run


def _of_rows(rows: int) -> Iterator[Any]:
    for start in range(0, rows, BATCH_ROWS):
        yield pa.RecordBatch.from_arrays([pa.nulls(min(BATCH_ROWS, rows - start))], [""])


def _with_values(batch: Any, values: dict[str, str | None], columns: Sequence[str]) -> Any:
    """A batch with the columns of its folders: one value for all rows, looked up once."""
    if not values:
        return batch
    arrays = {name: batch.column(name) for name in batch.schema.names if name}
    places = pa.array(np.zeros(batch.num_rows, np.int32))
    for name in columns:
        if name in values:
            arrays[name] = pa.DictionaryArray.from_arrays(places, pa.array([values[name]], pa.string()))
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
