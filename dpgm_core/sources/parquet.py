"""Parquet: one file, a folder of files, or those that a pattern names; of `key=value` folders the keys are columns.

Which files there are, the names of their folders' keys, and their columns and types are public, as those of one file
are. They are looked at before any record. A value in a folder's name is as secret as one in a file, so messages leave
it out.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import field, frozen

from dpgm_core.arrays import Codes
from dpgm_core.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources.arrow import asked, checked_types, is_text, keyed, raw
from dpgm_core.sources.contract import RawBatch
from dpgm_core.sources.reading import BATCH_ROWS, attempt, locate, opened, shielded

__all__ = ["ParquetSource"]

#: What Hive and Spark write for a null.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_SUFFIXES = (".parquet", ".parq", ".pq")


@frozen(kw_only=True)
class _Part:
    """One file, what messages call it, and the values of its folders by their keys, which hold for all of its rows."""

    path: Path
    shown: str
    values: dict[str, str | None]


@frozen(kw_only=True)
class ParquetSource:
    """A Parquet file, or a folder of them; row groups are read in batches, so memory does not grow with the files.

    Files of a folder are read in the order of their names, those in its folders too; what begins with a dot or an
    underscore is no data. A folder named `year=2019` adds the column `year`, a text, to its files. A file that lacks a
    column asked for is named before any record is read.

    >>> ParquetSource(path="x.parquet").path.name
    'x.parquet'
    """

    path: Path = field(
        converter=Path, metadata={"help": "the file, a folder of files, or a pattern such as 'x/*.parquet'"}
    )

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Codes of the named columns; DataError if a file or a column is missing, or one is damaged."""
        return (codes for codes, _ in self.keyed_batches(domain, columns, None))

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        """Codes and the raw person keys (None without `key`)."""
        return keyed(
            self._opened(asked(columns, key), lambda types: checked_types(types, domain, columns, key)),
            domain,
            columns,
        )

    def names(self) -> tuple[str, ...]:
        """The names of all columns, of the first file where there are several."""
        part = self._parts()[0]
        return (*self._schema(part).names, *part.values)

    def raw_batches(self, columns: Sequence[str]) -> Iterator[RawBatch]:
        """The raw values of the named columns."""
        return self._opened(columns, lambda types: None)

    def _opened(self, columns: Sequence[str], check: Callable[[dict[str, Any]], None]) -> Iterator[RawBatch]:
        """The raw batches of all files, whose columns and types are looked at first."""
        parts = self._parts()
        for part in parts:
            schema = self._schema(part)
            locate(part.shown, columns, [*schema.names, *part.values])
            check({name: pa.string() if name in part.values else schema.field(name).type for name in columns})
        return shielded(self._unreadable(str(self.path)), (one for part in parts for one in self._read(part, columns)))

    def _read(self, part: _Part, columns: Sequence[str]) -> Iterator[RawBatch]:
        own = [name for name in dict.fromkeys(columns) if name not in part.values]
        schema = self._schema(part)
        # Texts as dictionaries: each distinct value is looked up once per batch. Dictionaries too: Arrow would restore
        # their types, and fail at bytes that are not UTF-8 and at more values than their indices can count.
        texts = [name for name in own if is_text(schema.field(name).type)]
        # Without pre_buffer a column is decoded page by page instead of being held as a whole row group.
        with pq.ParquetFile(part.path, read_dictionary=texts, pre_buffer=False) as file:
            if own:
                batches = file.iter_batches(BATCH_ROWS, columns=own)
            else:  # nothing is asked for but what the folders say
                batches = iter(_of_rows(file.metadata.num_rows))
            yield from raw(columns, (_with_values(batch, part.values, columns) for batch in batches))

    def _schema(self, part: _Part) -> Any:
        opened(Path(part.shown), lambda: part.path.open("rb")).close()
        return attempt(self._unreadable(part.shown), lambda: pq.read_schema(part.path))

    def _unreadable(self, shown: str) -> str:
        return f"{shown} cannot be read as Parquet"

    def _parts(self) -> list[_Part]:
        """The files in the order of their names; DataError where there are none."""
        pattern = str(self.path)
        base, found = self.path, [self.path]
        if not self.path.exists() and glob.has_magic(pattern):
            start = list(_plain_start(self.path.parts))
            base = Path(*start)
            found = list(base.glob(str(PurePath(*self.path.parts[len(start) :]))))
        files = [file for one in found for file in (_inside(one) if one.is_dir() else [one])]
        if not files:
            raise DataError(f"{self.path} holds no Parquet file (one ending in .parquet); name the file or its folder")
        if files == [self.path]:
            return [_Part(path=self.path, shown=pattern, values={})]
        inner = {file: file.relative_to(base) for file in dict.fromkeys(files)}
        parts = [
            _Part(path=file, shown=str(base / _shown(inner[file])), values=_values(inner[file], self.path))
            for file in sorted(inner, key=lambda file: inner[file].parts)
        ]
        for part in parts[1:]:
            if part.values.keys() != parts[0].values.keys():
                raise DataError(
                    f"{part.shown} has the folder keys {list(part.values)}, but {parts[0].shown} has "
                    f"{list(parts[0].values)}; keep files of one table in folders of the same keys"
                )
        return parts


def _inside(folder: Path) -> list[Path]:
    """The Parquet files of a folder and of those in it."""
    return [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _SUFFIXES
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    ]


def _plain_start(parts: Sequence[str]) -> Iterator[str]:
    """The parts of a pattern before the first sign of a pattern."""
    for part in parts[:-1]:
        if glob.has_magic(part):
            return
        yield part


def _values(inner: PurePath, where: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in inner.parts[:-1]:
        key, equals, value = part.partition("=")
        if not equals or not key:
            continue
        if unquote(key) in found:
            raise DataError(f"{where} has folders inside each other with the key {unquote(key)!r}; rename one of them")
        found[unquote(key)] = None if value == _NULL else unquote(value)
    return found


def _shown(inner: PurePath) -> PurePath:
    """A file's name for messages, without the values of its folders."""
    folders = [f"{key}=..." if equals else key for key, equals, _ in (part.partition("=") for part in inner.parts[:-1])]
    return PurePath(*folders, inner.name)


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
