"""Parquet files and folders as sources: partitions and prefetching."""

from __future__ import annotations

import glob
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Codes
from dpgm_core._util.locations import Place, Url, open_regular, place, plain_start
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources.arrow import checked_arrow_types, coder, is_text, raw, with_key
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.reading import BATCH_ROWS, KeyedBatches, attempt, locate, opened, quiet, shielded
from dpgm_core.sources.remote import RemoteFile, remote_files

__all__ = ["ParquetSource", "Part", "parts_of"]

# Which files there are, the names of their folders' keys, and their columns and types are public, as those of one file
# are. They are looked at before any record. A value in a folder's name is as secret as one in a file, so messages leave
# it out.

T = TypeVar("T")

#: Rows that are decoded in one go, unless a row group has more.
_RUN_ROWS = 2**19
#: Compressed bytes of a row group that are in memory at once; of larger ones each column is read by and by.
_MAX_GROUP_BYTES = 2**25
_BUFFER, _REMOTE_BUFFER = 2**18, 2**22


@frozen(kw_only=True)
class ParquetSource(KeyedBatches):
    """A Parquet file, or a folder of them; row groups are read in batches, so memory does not grow with the files.

    Files of a folder are read in the order of their names, those in its folders too; what begins with a dot or an
    underscore is no data. A folder named `year=2019` adds the column `year`, a text, to its files. A file that lacks a
    column that is read is named before any record is read.

    >>> ParquetSource(path="x.parquet").path.name
    'x.parquet'
    """

    path: Place = field(
        converter=place, metadata={"help": "the file, a folder of files, or a pattern such as 'x/*.parquet'; or a URL"}
    )

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`); DataError if a file or a column is missing or damaged."""
        return self._opened(
            with_key(columns, key),
            lambda types: checked_arrow_types(types, domain, columns, key),
            coder(domain, columns),
            lambda made: sum(part.nbytes for part in made[0]) + (0 if made[1] is None else made[1].nbytes),
        )

    def names(self) -> tuple[str, ...]:
        """The names of all columns, of the first file where there are several."""
        part = parts_of(self.path)[0]
        return (*self._metadata(part).schema.to_arrow_schema().names, *part.values)

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

    def _metadata(self, part: Part) -> Any:
        file = part.open()
        return attempt(self._unreadable(part.shown), lambda: pq.read_metadata(file))

    def _unreadable(self, shown: str) -> str:
        return f"{shown} cannot be read as Parquet"


@frozen
class _Run:
    """Row groups of one file, one behind the other. own: the columns to read that the file itself has."""

    part: Part
    groups: Sequence[int]
    own: Sequence[str]
    texts: Sequence[str]
    compressed: int

    def batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        values = self.part.values
        # Columns are decoded page by page. What they are decoded from is in memory only where it is small; of a remote
        # file columns that stand together are fetched together then.
        remote, small = isinstance(self.part.file, RemoteFile), self.compressed <= _MAX_GROUP_BYTES
        buffer = 0 if small else _REMOTE_BUFFER if remote else _BUFFER
        with pq.ParquetFile(
            self.part.open(), read_dictionary=self.texts, pre_buffer=remote and small, buffer_size=buffer
        ) as file:
            if self.own:
                batches = file.iter_batches(BATCH_ROWS, self.groups, columns=self.own, use_threads=False)
            else:  # only columns of the folders are read
                rows = sum(file.metadata.row_group(group).num_rows for group in self.groups)
                counts = (min(BATCH_ROWS, rows - start) for start in range(0, rows, BATCH_ROWS))
                batches = (pa.RecordBatch.from_arrays([pa.nulls(count)], [""]) for count in counts)
            yield from raw(columns, (_with_values(batch, values, columns) for batch in batches))


def _compressed(metadata: Any, groups: Sequence[int], own: Sequence[str]) -> int:
    """Bytes of the largest row group's columns that are needed."""
    chunks = ([group.column(at) for at in range(group.num_columns)] for group in map(metadata.row_group, groups))
    largest: int = max(sum(one.total_compressed_size for one in part if one.path_in_schema in own) for part in chunks)
    return largest


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


# --- Files of a table -----------------------------------------------------------------------------

#: What Hive and Spark write for a null.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_SUFFIXES = (".parquet", ".parq", ".pq")


@frozen(kw_only=True)
class Part:
    """One file, what messages call it, and the values of its folders by their keys, which hold for all of its rows."""

    file: Path | RemoteFile
    shown: str
    values: dict[str, str | None]

    def open(self) -> Any:
        """Return what pyarrow reads; DataError where it cannot be opened."""
        if isinstance(self.file, RemoteFile):
            return self.file.open()
        path = self.file
        opened(Path(self.shown), lambda: open_regular(path)).close()
        return path


def parts_of(where: Place) -> list[Part]:
    """Return the files in the order of their names; DataError where there are none."""
    inner: Mapping[PurePath, Path | RemoteFile]
    if isinstance(where, Url):
        start, inner = remote_files(where, _is_table)
        alone = PurePath() in inner
    else:
        start, inner, alone = _local(where)
    if not inner:
        raise DataError(f"{where} holds no Parquet file (one ending in .parquet); name the file or its folder")
    if alone:
        return [Part(file=file, shown=str(where), values={}) for file in inner.values()]
    parts = [_part(name, inner[name], start, where) for name in sorted(inner, key=lambda name: name.parts)]
    for part in parts[1:]:
        if part.values.keys() != parts[0].values.keys():
            raise DataError(
                f"{part.shown} has the folder keys {list(part.values)}, but {parts[0].shown} has "
                f"{list(parts[0].values)}; keep files of one table in folders of the same keys"
            )
    return parts


def _part(name: PurePath, file: Path | RemoteFile, start: str, where: Place) -> Part:
    shown = f"{start}/{_shown(name)}" if start else str(_shown(name))
    return Part(
        file=evolve(file, shown=shown) if isinstance(file, RemoteFile) else file,
        shown=shown,
        values=_values(name, where),
    )


def _local(path: Path) -> tuple[str, dict[PurePath, Path], bool]:
    """The folder that all files are in, their paths inside of it, and whether it is just the one that is named."""
    base, matches = path, [path]
    if not path.exists() and glob.has_magic(str(path)):
        start = list(plain_start(path.parts))
        base = Path(*start)
        matches = list(base.glob(str(PurePath(*path.parts[len(start) :]))))
    files = [file for one in matches for file in (_inside(one) if one.is_dir() else [one])]
    if files == [path]:
        return str(base), {PurePath(): path}, True
    return "" if base == Path() else str(base), {file.relative_to(base): file for file in files}, False


def _inside(folder: Path) -> list[Path]:
    """The Parquet files of a folder and of those in it."""
    return [file for file in folder.rglob("*") if _is_table(file.relative_to(folder)) and file.is_file()]


def _is_table(inner: PurePath) -> bool:
    """By the name: what begins with a dot or an underscore, or is in such a folder, is no data."""
    return inner.suffix.lower() in _SUFFIXES and not any(part.startswith((".", "_")) for part in inner.parts)


def _values(inner: PurePath, where: Place) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for part in inner.parts[:-1]:
        key, equals, value = part.partition("=")
        if not equals or not key:
            continue
        if unquote(key) in values:
            raise DataError(f"{where} has folders inside each other with the key {unquote(key)!r}; rename one of them")
        values[unquote(key)] = None if value == _NULL else unquote(value)
    return values


def _shown(inner: PurePath) -> PurePath:
    """A file's name for messages, without the values of its folders."""
    folders = [f"{key}=..." if equals else key for key, equals, _ in (part.partition("=") for part in inner.parts[:-1])]
    return PurePath(*folders, inner.name)


# --- Prefetching threads --------------------------------------------------------------------------
# A lane is a thread that runs ahead of whoever takes the items, by a bounded number of bytes, so memory stays bounded
# whatever the streams hold, and a lane that is far ahead waits. Which lane is faster changes no result.

#: Threads that decode, in addition to the one that counts; more than a few would only wait for it.
LANES = max(1, min(4, (os.cpu_count() or 1) - 1))
#: Threads that wait for remote files at once.
_REMOTE_LANES = max(LANES, 4)
#: Bytes that all lanes together may be ahead.
_MAX_AHEAD = 2**26

Item = TypeVar("Item")


class _Stream(Generic[Item]):
    """One stream, and the items that its lane has made and nobody has taken yet."""

    def __init__(self, source: Callable[[], Iterator[Item]], size: Callable[[Item], int], max_bytes: int) -> None:
        self._source, self._size, self._max_bytes = source, size, max_bytes
        self._made: deque[tuple[Item, int]] = deque()
        self._waiting = 0
        self._changed = Condition()
        self._ended = self._unwanted = False
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Run the stream to its end in the lane, waiting while it is too far ahead."""
        error: BaseException | None = None
        try:
            iterator = iter(()) if self._unwanted else self._source()
            while self._put(iterator):
                pass
        except BaseException as raised:  # for whoever takes the items to raise, who would wait for ever without it
            error = raised
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def _put(self, iterator: Iterator[Item]) -> bool:
        with quiet():  # numpy's settings and logs are each thread's own; not entered while waiting
            item = next(iterator, self)
        if item is self:
            return False
        size = self._size(item)  # type: ignore[arg-type]
        with self._changed:
            # An item is always let in where there is none, or one larger than this limit would never pass.
            self._changed.wait_for(lambda: self._unwanted or not self._made or self._waiting + size <= self._max_bytes)
            self._made.append((item, size))  # type: ignore[arg-type]
            self._waiting += size
            self._changed.notify_all()
            return not self._unwanted

    def drop(self) -> None:
        """Let the lane end at its next item."""
        with self._changed:
            self._unwanted = True
            self._changed.notify_all()

    def taken(self) -> Iterator[Item]:
        """Yield the items in their order, and raise what the stream raised after them."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._made or self._ended)
                if not self._made:
                    break
                item, size = self._made.popleft()
                self._waiting -= size
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error


def in_lanes(
    streams: Iterable[Callable[[], Iterator[Item]]],
    size: Callable[[Item], int],
    lanes: int = LANES,
    ahead: int = _MAX_AHEAD,
) -> Iterator[Item]:
    """Yield the items of all streams, one stream after the other, made in `lanes` threads.

    size: an item's bytes. ahead: bytes that may wait at a time, apart from one item of each lane that is being made; an
    item larger than a lane's share waits alone.
    """
    # One stream more than lanes is open: while the last items of the first are taken, no lane has to rest.
    max_bytes = ahead // (lanes + 1)
    open_ones: deque[_Stream[Item]] = deque()
    waiting: SimpleQueue[_Stream[Item] | None] = SimpleQueue()
    threads: list[Thread] = []
    try:
        for source in streams:
            open_ones.append(stream := _Stream(source, size, max_bytes))
            waiting.put(stream)
            if len(threads) < lanes:
                # A daemon: a lane that waits for a taker must not keep the interpreter from ending.
                threads.append(Thread(target=_run, args=(waiting,), daemon=True))
                threads[-1].start()
            if len(open_ones) > lanes:
                yield from open_ones[0].taken()
                open_ones.popleft()
        while open_ones:
            yield from open_ones[0].taken()
            open_ones.popleft()
    finally:
        for stream in open_ones:
            stream.drop()
        for _ in threads:
            waiting.put(None)
        for thread in threads:
            thread.join()


def _run(waiting: SimpleQueue[_Stream[Item] | None]) -> None:
    while (stream := waiting.get()) is not None:
        stream.fill()
