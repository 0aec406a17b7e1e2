"""Locations of files: local paths, how they are opened, and URLs. Secrets in a URL are never shown."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import url2pathname

from attrs import field, frozen

from dpgm_core.errors import DataError

__all__ = ["Place", "Url", "is_url", "open_regular", "place", "plain_start"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(:.*)?//")
_LOST = re.compile(r"(s3|gs|gcs|az|abfss?|https?|memory|sftp|hdfs):/[^/]")
_NONBLOCK = 0 if sys.platform == "win32" else os.O_NONBLOCK
_FROM = "the protocol's own library takes credentials from the environment or its configuration"
# Names of the parts of a query that let somebody in, such as X-Amz-Signature, sig, access_token.
_SECRETS = ("*sig*", "*token*", "*secret*", "*passw*", "*pwd*", "*cred*", "*auth*", "*key*")


@frozen
class Url:
    """Where a remote file or folder is, for fsspec. Shown without its query, which may be a signature.

    full: everything. Raises DataError for a password in it, and for several URLs in one ("simplecache::s3://...").

    >>> url = Url("https://example.org/visits.parquet?X-Amz-Signature=abc")
    >>> str(url), url.name
    ('https://example.org/visits.parquet?...', 'visits.parquet')
    """

    full: str = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if self.full.count("://") > 1 or "::" in self.full:
            raise DataError("a URL of records names one place; give a URL without '::' and without another one in it")
        try:
            parts = urlsplit(self.full)
            secret = parts.password is not None
        except ValueError:
            parts, secret = None, False
        if parts is None:
            raise DataError("a URL of records must look like s3://bucket/visits.parquet; this one cannot be read")
        if secret:
            raise DataError(f"a URL of records must hold no password: {_FROM}")

    def __str__(self) -> str:
        start, query, _ = self.full.partition("?")
        return start.partition("#")[0] + ("?..." if query else "")

    def __repr__(self) -> str:
        return f"Url({str(self)!r})"

    @property
    def path(self) -> PurePosixPath:
        """What comes behind the scheme and before the query."""
        return PurePosixPath(_SCHEME.sub("", self.full.partition("?")[0].partition("#")[0], count=1))

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def suffix(self) -> str:
        """The ending of the file's name, with its dot."""
        return self.path.suffix

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for all files that match."""
        return any(sign in str(self.path) for sign in "*[")

    @property
    def is_secret(self) -> bool:
        """Whether its query lets somebody in."""
        query = self.full.partition("?")[2]
        names = [name.lower() for name, _ in parse_qsl(query, keep_blank_values=True)]
        return any(fnmatchcase(name, pattern) for name in names for pattern in _SECRETS)


#: Where a file of records is.
Place: TypeAlias = Path | Url


def is_url(text: object) -> bool:
    """Whether a text is a URL and no path.

    >>> is_url("s3://bucket/x.csv"), is_url("x.csv"), is_url("C:\\\\x.csv")
    (True, False, False)
    """
    return isinstance(text, str) and _SCHEME.match(text) is not None


def place(value: str | PathLike[str] | Url) -> Place:
    """A place as it is given: a URL is a text, and one of `file://` a path.

    >>> place("x.csv"), place("memory://x.csv")
    (PosixPath('x.csv'), Url('memory://x.csv'))
    """
    if isinstance(value, Url):
        return value
    text = fspath(value)
    if not isinstance(text, str):
        raise DataError("a path must be a text, not bytes")
    if text.lower().startswith("file://"):
        return Path(url2pathname(unquote(urlsplit(text).path)))
    if not isinstance(value, str) and _LOST.match(text):
        raise DataError("a Path loses one of a URL's slashes; give it as a text")
    return Url(text) if is_url(text) else Path(value)


def plain_start(parts: Sequence[str]) -> Iterator[str]:
    """The parts of a pattern before the first one with a sign of a pattern, and never the last.

    >>> list(plain_start(["data", "year=*", "x.parquet"]))
    ['data']
    """
    for part in parts[:-1]:
        if glob.has_magic(part):
            return
        yield part


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; OSError for what may have no end or wait for ever: a device, a pipe.

    A symbolic link to a regular file will do.
    """
    # Without O_NONBLOCK the opening of a pipe waits for somebody who writes; to regular files it makes no difference.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file; write what it gives to a file first", str(path))
    return file
