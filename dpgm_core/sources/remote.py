"""Remote files, through fsspec: read by ranges, each answer checked for its length, failures in our own words.

Credentials are those that the protocol's own library finds in its environment and configuration. Nothing is cached: a
range that is requested twice is read twice, so no record stays on this machine.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import PurePath, PurePosixPath
from typing import IO, Any, TypeVar

from attrs import field, frozen

from dpgm_core._util.locations import Url, plain_start
from dpgm_core.errors import DpgmError, SourceRefused
from dpgm_core.sources.reading import quiet

__all__ = ["RemoteFile", "remote_file", "remote_files"]

T = TypeVar("T")

#: What a stream reads at least.
_BUFFER = 2**20


@frozen
class RemoteFile:
    """A file that is there, of a public size. shown: what messages call it."""

    system: Any = field(repr=False)
    path: str = field(repr=False)
    size: int
    shown: str

    def open(self) -> io.RawIOBase:
        """The file by ranges: each read is one."""
        return _Ranges(self)

    def stream(self) -> IO[bytes]:
        """The file from its start, a megabyte at a time."""
        return io.BufferedReader(self.open(), _BUFFER)

    def part(self, start: int, end: int) -> bytes:
        """The bytes from start to before end."""
        content: bytes = _call(self.shown, lambda: self.system.cat_file(self.path, start=start, end=end))
        if len(content) != end - start:
            raise SourceRefused(
                f"cannot read {self.shown}: asked for a part of it, it answers with another number of bytes; it "
                "changed, or it serves no parts and has to be copied first"
            )
        return content


class _Ranges(io.RawIOBase):
    """A remote file that can be read anywhere."""

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._place = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, from the start, from here or from the end."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, but at the end of the file."""
        end = min(self._file.size, self._place + len(buffer))
        if end <= self._place:
            return 0
        content = self._file.part(self._place, end)
        buffer[: len(content)] = content
        self._place = end
        return len(content)


def remote_file(url: Url) -> RemoteFile:
    """One file; SourceRefused where it is not there, cannot be reached or says no size."""
    system, path = _system(url)
    info = _call(str(url), lambda: system.info(path))
    if _is_folder(info):
        raise SourceRefused(f"cannot read {url}: it is a folder")
    return _file(system, path, info, str(url))


def remote_files(url: Url, is_data: Callable[[PurePath], bool]) -> tuple[str, dict[PurePath, RemoteFile]]:
    """The files in a folder and its folders, or what a pattern names, by their paths inside of it; and its own name.

    wanted: whether a file in a folder counts. Where the URL is one file, that file alone, under an empty path.
    """
    system, path = _system(url)
    _call(str(url), system.invalidate_cache)  # what was listed for an earlier run may be gone
    if url.is_pattern:
        start = "/".join(plain_start(path.split("/")))
        matches: dict[str, Any] = _call(str(url), lambda: system.glob(path, detail=True))
        listed: dict[PurePath, tuple[str, Any]] = {}
        for name, info in matches.items():
            listed |= (
                _listed(system, name, url, start, is_data) if _is_folder(info) else {_inner(name, start): (name, info)}
            )
        return "/".join(plain_start(str(url).split("/"))), _files(system, listed, url)
    if not url.full.partition("?")[0].endswith("/"):  # as a folder of a web server must, which lists it as a page
        info = _call(str(url), lambda: system.info(path))
        if not _is_folder(info):
            return str(url), _files(system, {PurePath(): (path, info)}, url)
    return str(url).rstrip("/"), _files(system, _listed(system, path, url, path, is_data), url)


def _listed(
    system: Any, folder: str, url: Url, start: str, is_data: Callable[[PurePath], bool]
) -> dict[PurePath, tuple[str, Any]]:
    matches: dict[str, Any] = _call(str(url), lambda: system.find(folder, detail=True))
    return {_inner(name, start): (name, info) for name, info in matches.items() if is_data(_inner(name, folder))}


def _inner(name: str, start: str) -> PurePath:
    return PurePosixPath(name.removeprefix(start).lstrip("/"))


def _is_folder(info: dict[str, Any]) -> bool:
    return info.get("type") == "directory"


def _files(system: Any, listed: dict[PurePath, tuple[str, Any]], url: Url) -> dict[PurePath, RemoteFile]:
    return {inner: _file(system, name, info, str(url)) for inner, (name, info) in listed.items()}


def _file(system: Any, path: str, info: dict[str, Any], shown: str) -> RemoteFile:
    if info.get("size") is None:  # a page that lists files does not say it
        info = _call(shown, lambda: system.info(path))
    size = info.get("size")
    if not isinstance(size, int) or info.get("partial") is False:
        raise SourceRefused(f"cannot read {shown}: its server does not serve parts of files; copy it here first")
    return RemoteFile(system, path, size, shown)


def _system(url: Url) -> tuple[Any, str]:
    """Return the file system of fsspec for the URL, and the path that it takes."""
    try:
        import fsspec
    except ImportError:
        fsspec = None
    if fsspec is None:
        raise SourceRefused(f"cannot read {url}: for remote files install dpgm-core[remote], or copy it here first")
    # What is packed on the way has another length than what was asked for.
    options = {"headers": {"Accept-Encoding": "identity"}} if url.full.lower().startswith("http") else {}
    opened: tuple[Any, str] = _call(str(url), lambda: fsspec.core.url_to_fs(url.full, **options))
    return opened


def _call(shown: str, call: Callable[[], T]) -> T:
    """Return the result of `call`; SourceRefused in our own words, as those of the error may hold credentials."""
    try:
        with quiet():
            return call()
    except DpgmError:
        raise
    except Exception as error:
        reason = _reason(error)
    raise SourceRefused(f"cannot read {shown}: {reason}")


def _reason(error: Exception) -> str:
    """By the kind of error alone, and the number of an HTTP answer."""
    kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
    status = _status(error)
    if isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        return _reason(error.__cause__)  # fsspec says so of whatever a web server answers, and of none
    if isinstance(error, FileNotFoundError) or status == 404:
        return "there is no such file, or nobody may know of it"
    if isinstance(error, PermissionError) or "Credential" in kinds or status in (401, 403):
        return "permission is refused; credentials come from the environment, as the protocol's library reads them"
    if isinstance(error, ImportError):
        return "fsspec needs another package for this protocol; install it, such as s3fs, gcsfs or aiohttp"
    if isinstance(error, ValueError) and "Protocol not known" in str(error):
        return "its protocol is not known to fsspec"
    if isinstance(status, int):
        return f"the server answers {status}"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return "it cannot be reached, or the connection was lost"


def _status(error: Exception) -> object:
    """The number of an HTTP answer, as errors of aiohttp have it, or those of botocore."""
    response = vars(error).get("response")
    if isinstance(response, dict):
        return response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return vars(error).get("status")
