"""The first line of a CSV file and nothing behind it: the names of the columns, and how fields are told apart.

The line may be a record, if the file names no columns. So no message quotes it, and one that does not look like names
is refused. Bytes behind it are read by the operating system, as files come in blocks, but looked at by nobody.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from pathlib import Path
from typing import IO, cast

from attrs import frozen

from dpgm_core.attribute import first_repeated
from dpgm_core.errors import DataError
from dpgm_core.files import open_regular

__all__ = ["Header", "read_header"]

MAX_LINE = 2**22  # bytes

_DELIMITERS = (",", ";", "\t", "|")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# Numbers, dates and times: what values look like and names do not.
_VALUE = re.compile(r"[-+]?[0-9][-+0-9.,:/eE ]*|[-+]?\.[0-9]+|nan|inf", re.IGNORECASE)


@frozen(kw_only=True)
class Header:
    """Column names, and the dialect of the line that names them.

    quoting: whether a name stands in double quotes. skip_blanks: whether a name stands behind a blank.
    """

    names: tuple[str, ...]
    delimiter: str = ","
    encoding: str = "utf-8"
    quoting: bool = False
    skip_blanks: bool = False


def read_header(path: Path, *, is_names: bool = False) -> Header:
    """Read the first line of a CSV file, plain or gzipped. Raises DataError, which never quotes the line.

    is_names: somebody who knows says that it names columns, though some of them are numbers or dates, such as years.

    The delimiter is the one of comma, semicolon, tab and bar that stands most often outside of quotes; the encoding is
    what a byte order mark says, else UTF-8, or cp1252 for a line that is not UTF-8.
    """
    line, encoding = _first_line(path)
    text = _decoded(line, encoding)
    if text is None and encoding == "utf-8":
        text, encoding = _decoded(line, "cp1252"), "cp1252"
    if text is None:
        raise DataError(
            f"{path}: the first line, which must name the columns, is of no encoding known; save it as UTF-8"
        )
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise DataError(f"{path} is empty; its first line must name the columns")
    if "\0" in text or "\r" in text:
        raise DataError(f"{path}: the first line does not name columns; is this CSV with lines ending in LF?")
    bare = re.sub(r'"[^"]*"', "", text)
    delimiter = max(_DELIMITERS, key=bare.count)  # the first of equals
    try:
        names = tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True)))
    except csv.Error:  # a field too long
        names = ()
    values = () if is_names else filter(_VALUE.fullmatch, names)
    if not names or first_repeated(names) is not None or not all(names) or any(values):
        # One sentence for all of these: which of them it is would tell of a record, if the line is one.
        raise DataError(
            f"{path}: the first line does not name columns: a field is empty, a number or a date, or stands twice, so "
            "perhaps it is a record; put a line of names first, or if some names are numbers, say --first-line-is-names"
        )
    return Header(
        names=names,
        delimiter=delimiter,
        encoding="utf-16" if encoding.startswith("utf-16") else encoding,  # its mark says the order of bytes
        quoting=bare != text,
        skip_blanks=any(part[:1] == " " for part in bare.split(delimiter)),
    )


def _decoded(line: bytes, encoding: str) -> str | None:
    """The text; None where it is of another encoding, as the error would hold the line."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError:
        return None


def _first_line(path: Path) -> tuple[bytes, str]:
    """The bytes up to the first line end, without a byte order mark, and the encoding."""
    try:
        with (
            open_regular(path) as file,
            cast(IO[bytes], gzip.open(file) if path.suffix.lower() == ".gz" else file) as stream,
        ):
            line = stream.readline(MAX_LINE + 1)
            encoding = next((name for mark, name in _MARKS.items() if line.startswith(mark)), "utf-8")
            if encoding != "utf-8":
                # A unit has two bytes; the byte of LF may be half of another letter.
                end = b"\n\0" if encoding == "utf-16-le" else b"\0\n"
                line += stream.read(len(line) % 2)
                while not line.endswith(end) and len(line) <= MAX_LINE and (more := stream.readline(MAX_LINE)):
                    line += more
                    line += stream.read(len(line) % 2)
    except (OSError, EOFError, ValueError, zlib.error) as error:  # ValueError: a NUL in the path
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not what its name says"
        raise DataError(f"cannot read {path}: {reason}") from None
    if len(line) > MAX_LINE:
        raise DataError(
            f"{path}: the first line is longer than {MAX_LINE:,} bytes; is this CSV with lines ending in LF?"
        )
    mark = next((mark for mark in _MARKS if line.startswith(mark)), b"")
    return line[len(mark) :], encoding
