"""Files in other encodings, read as UTF-8 while they stream; a line means the same by itself.

In `utf-16` a line is a run of 16-bit units up to the unit 0x000A, in the others one of bytes up to 0x0A. What cannot be
decoded stays visible: it is written as bytes that are not UTF-8, inside its own line, which is malformed then.
"""

from __future__ import annotations

import codecs
import io
from typing import IO, Literal, TypeAlias, get_args

__all__ = ["ENCODINGS", "Encoding", "as_utf8"]

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)

_READ = 2**20  # bytes that are decoded at once
_SPOILED = b"\xff"  # no part of any UTF-8 text


def as_utf8(stream: IO[bytes], encoding: Encoding) -> IO[bytes]:
    """Return the same file in UTF-8, its byte order mark included; `utf-8` is not changed.

    encoding: "utf-16" takes the byte order of the file's mark; without one, that in which its first letter is an ASCII
    one. Memory is bounded, and the same bytes come out whatever is read at once.

    >>> as_utf8(io.BytesIO("é;ü".encode("cp1252")), "cp1252").read().decode()
    'é;ü'
    """
    return stream if encoding == "utf-8" else io.BufferedReader(_Transcoded(stream, encoding), _READ)


class _Transcoded(io.RawIOBase):
    """UTF-8 bytes of a stream in another encoding."""

    def __init__(self, stream: IO[bytes], encoding: Encoding) -> None:
        self._stream = stream
        self._start = b""
        name: str = encoding
        if encoding == "utf-16":
            self._start = stream.read(2)
            big = self._start == codecs.BOM_UTF16_BE or self._start[:1] == b"\0"
            name = "utf-16-be" if big else "utf-16-le"
        # Half a pair of units passes as it is, and is no UTF-8 then; of a single byte the escape is such a half.
        self._wide = name.startswith("utf-16")
        self._decoder = codecs.getincrementaldecoder(name)("surrogatepass" if self._wide else "surrogateescape")
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is for reading only."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a part of the buffer; 0 at the end of the file."""
        while not self._ready:
            raw = self._start + self._stream.read(_READ)
            self._start = b""
            self._ready = memoryview(self._utf8(raw) if raw else self._end())
            if not raw:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        """Close the file too."""
        self._stream.close()
        super().close()

    def _utf8(self, raw: bytes) -> bytes:
        if not self._wide and raw.isascii():
            return raw
        return self._decoder.decode(raw).encode("utf-8", "surrogatepass")

    def _end(self) -> bytes:
        """Return what spoils the last line if the decoder still waits for half a unit or half a pair."""
        pending, _ = self._decoder.getstate()
        self._decoder.reset()
        return _SPOILED if pending else b""
