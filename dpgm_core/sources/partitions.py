"""Files of a Parquet table: one file, a folder or a pattern, and the columns that folder names add."""

from __future__ import annotations

import glob
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from attrs import evolve, frozen

from dpgm_core.errors import DataError
from dpgm_core.files import open_regular
from dpgm_core.places import Place, Url, plain_start
from dpgm_core.sources.reading import opened
from dpgm_core.sources.remote import RemoteFile, remote_files

__all__ = ["Part", "parts_of"]

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
    start, inner, alone = _remote(where) if isinstance(where, Url) else _local(where)
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


def _remote(url: Url) -> tuple[str, dict[PurePath, Path | RemoteFile], bool]:
    start, files = remote_files(url, _is_table)
    return start, dict(files), PurePath() in files


def _local(path: Path) -> tuple[str, dict[PurePath, Path | RemoteFile], bool]:
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
