"""Lines of a CSV file cut into fields and joined again, byte for byte what they were."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["DELIMITERS", "Layout", "bare", "line_end", "quoted"]

#: What may separate fields where nobody says it.
DELIMITERS = b",;\t|"
_BOM = b"\xef\xbb\xbf"


class Layout:
    """Where the columns of a CSV file stand, by its first line."""

    def __init__(self, first: bytes, known: Sequence[str], path: Path, delimiters: bytes) -> None:
        from dpgm_core.attribute import first_repeated
        from dpgm_core.errors import DataError

        self._first, self._ending = first, line_end(first) or b"\n"
        body = first.removeprefix(_BOM).rstrip(b"\r\n")
        try:
            body.decode()
        except UnicodeDecodeError:
            raise DataError(f"{path}: the first line is not UTF-8; say --dialect encoding=cp1252, or another") from None

        def named(sign: int) -> list[str]:
            return [bare(field).decode().strip() for field in _fields(body, bytes([sign]))]

        # The sign that tells the most of the model's attributes apart.
        best = max(delimiters, key=lambda sign: len({*named(sign)} & {*known}))
        self.delimiter, self.names = bytes([best]), named(best)
        twice = first_repeated(self.names)
        if twice is not None:
            raise DataError(f"{path} has two columns {twice!r}; rename one")
        if not {*self.names} & {*known}:
            shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            raise DataError(f"{path}: the first line names no attribute of the model, which has {shown}")
        self.added = [name for name in known if name not in self.names]

    def header(self) -> bytes:
        """The first line, with the columns that are added."""
        new = [quoted(name.encode(), self.delimiter) for name in self.added]
        return self.delimiter.join([self._first.rstrip(b"\r\n"), *new]) + self._ending

    def fields(self, line: bytes, number: int) -> list[bytes]:
        """The fields of a record, quotes and all. Raises DataError for a line that is none."""
        from dpgm_core.errors import DataError

        fields = _fields(line.rstrip(b"\r\n"), self.delimiter)
        if len(fields) != len(self.names):
            raise DataError(f"row {number} has {len(fields)} fields, and the first line {len(self.names)}; correct it")
        return fields


def _fields(line: bytes, delimiter: bytes) -> list[bytes]:
    if b'"' not in line:
        return line.split(delimiter)
    sign = re.escape(delimiter)
    return re.findall(rb'(?:^|(?<=%b))("(?:[^"]|"")*"(?=%b|$)|[^%b]*)(?:%b|$)' % (sign, sign, sign, sign), line)


def bare(field: bytes) -> bytes:
    """A field without the quotes around it."""
    inside = len(field) > 1 and field[:1] == field[-1:] == b'"'
    return field[1:-1].replace(b'""', b'"') if inside else field


def quoted(field: bytes, delimiter: bytes) -> bytes:
    """A field with quotes around it where it needs them."""
    if not any(sign in field for sign in (delimiter, b'"', b"\n", b"\r")):
        return field
    return b'"' + field.replace(b'"', b'""') + b'"'


def line_end(line: bytes) -> bytes:
    """What ends a line: LF, perhaps after CR, or nothing."""
    return line[len(line.rstrip(b"\r\n")) :]
