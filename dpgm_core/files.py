"""Zip files with one JSON document and arrays in them: written atomically, read with suspicion.

The format of releases and models (`name.dpgm`). Nothing is unpickled, every size is checked before it is read, and
whatever is wrong becomes a ModelFileError.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpgm_core.arrays import Array
from dpgm_core.errors import DpgmError, ModelFileError, PluginError

__all__ = ["Archive", "atomic_write", "check_writable", "numbered", "plain", "reading", "write_archive"]

T = TypeVar("T")

MAX_JSON = 64 * 2**20
# What is larger than a mebibyte and packed more than a hundredfold is a bomb; `write_archive` makes no such member.
_SMALL = 2**20
_PACKED = 100
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file: equal content gives equal bytes


def plain(value: Any) -> Any:
    """Anybody's facts as JSON values: what has no JSON form becomes a text, so that no file fails for a remark.

    >>> plain({1: float("inf"), "a": (np.float64(0.5), None)})
    {'1': 'inf', 'a': [0.5, None]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inside) for inside in value]
    return value if value is None or isinstance(value, (str, int)) else str(value)


def numbered(path: Path, number: int) -> Path:
    """The file of the `number`-th of several releases of one run, beside that of the first.

    >>> numbered(Path("health.release.dpgm"), 2).name
    'health.release-2.dpgm'
    """
    return path if number == 1 else path.with_stem(f"{path.stem}-{number}")


def check_writable(path: str | Path) -> None:
    """Refuse, with ModelFileError and touching nothing, a path where no new file can be written."""
    path = Path(path)
    try:
        if path.exists():
            raise ModelFileError(f"{path} exists; what was paid for is never overwritten: name another file")
        folder = next((one for one in path.absolute().parents if one.exists()), None)
        if folder is None or not folder.is_dir():
            raise ModelFileError(f"cannot write {path}: {folder} is no folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ModelFileError(f"cannot write {path}: no permission to write to {folder}")
    except (OSError, ValueError) as error:  # a name too long, a NUL in it
        raise ModelFileError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}") from None


def atomic_write(path: str | Path, content: bytes) -> None:
    """Write a whole file or nothing: a temporary file beside it, synced, then renamed over it.

    A file that was there keeps its permissions. Raises ModelFileError when the folder cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ModelFileError(f"cannot write {str(path)!r}: {reason}") from None
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def write_archive(path: str | Path, documents: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write JSON documents and one-dimensional arrays (each a member `NAME.npz` with one array) to a zip file."""
    members: dict[str, bytes] = {}
    try:
        for name, document in documents.items():
            members[name] = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"cannot write {path}: a fact about it has no form in a file ({error})") from None
    for name, array in arrays.items():
        inner = io.BytesIO()
        np.savez(inner, values=array)
        members[name] = inner.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            bomb = len(content) > _SMALL and len(zlib.compress(content, 6)) * _PACKED < 2 * len(content)
            how = zipfile.ZIP_STORED if bomb else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, how)
    atomic_write(path, buffer.getvalue())


class Archive:
    """A zip file opened with suspicion; use inside `reading`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._zip = zipfile.ZipFile(self.path)
        names = self._zip.namelist()
        if len(set(names)) < len(names):
            self._zip.close()
            raise ModelFileError(f"{self.path} holds a member twice; it was not written by dpgm")

    def names(self) -> set[str]:
        """The members of the file."""
        return set(self._zip.namelist())

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def document(self, name: str) -> dict[str, Any]:
        """A JSON object; ModelFileError when it is missing, too large or something else."""
        document = json.loads(self._read(name, MAX_JSON))
        if not isinstance(document, dict):
            raise ModelFileError(f"{self.path}: {name} must hold a JSON object")
        return document

    def array(self, name: str, length: int, types: tuple[type[np.generic], ...] = (np.int64, np.float64)) -> Array:
        """A numeric array of exactly `length` entries of one of these types."""
        inner = io.BytesIO(self._read(name, 8 * length + 4096))
        with zipfile.ZipFile(inner) as npz:
            if npz.namelist() != ["values.npy"] or npz.getinfo("values.npy").file_size > 8 * length + 1024:
                raise ModelFileError(f"{self.path}: {name} does not hold {length} numbers")
        inner.seek(0)
        with np.load(inner, allow_pickle=False) as content:
            values: Array = content["values"]
        if values.shape != (length,) or values.dtype not in map(np.dtype, types):
            raise ModelFileError(f"{self.path}: {name} does not hold {length} numbers")
        return values

    def _read(self, name: str, limit: int) -> bytes:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise ModelFileError(f"{self.path} has no {name}; it is not a file of this kind") from None
        if info.file_size > limit:
            raise ModelFileError(f"{self.path}: {name} claims {info.file_size} bytes, more than its content can need")
        packed = min(info.compress_size, self.path.stat().st_size)
        if info.file_size > _SMALL and info.file_size > _PACKED * packed:
            raise ModelFileError(f"{self.path}: {name} is packed more than {_PACKED}-fold; it was not written by dpgm")
        with self._zip.open(info) as member:
            content = member.read(limit + 1)  # the header may lie about the size
        if len(content) > limit:
            raise ModelFileError(f"{self.path}: {name} is larger than its content can need")
        return content


def reading(path: str | Path, what: str, read: Callable[[Archive], T]) -> T:
    """Run a reader over an archive and turn every failure into a ModelFileError that names the file.

    PluginErrors pass: a file may name a component that is not installed.
    """

    archive = None
    try:
        archive = Archive(path)
        return read(archive)
    except PluginError:
        raise
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except DpgmError as error:
        raise ModelFileError(f"{path} is not a sound {what}: {error}") from None
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {path}; name a {what}") from None
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ModelFileError(f"{path} is damaged or not a {what} ({type(error).__name__})") from None
    finally:
        if archive is not None:
            archive.close()
