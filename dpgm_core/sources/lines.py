"""Lines of a CSV file: blocks of them, and those that no parser must see. Each verdict depends on one line alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import IO, Any

import numpy as np

__all__ = ["MAX_LINE", "malformed_lines", "number_of_fields", "whole_lines", "without"]

#: Bytes; the longest line that can be a record, and the size of a block read at once.
MAX_LINE = 2**22


def whole_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, each ending in LF, and how many lines longer than `MAX_LINE` were left out of each.

    Memory is bounded by the block size. An unfinished last line is finished; the file's last LF starts no line.

    >>> import io
    >>> list(whole_lines(io.BytesIO(b"a\\nb")))
    [(b'a\\n', 0), (b'b\\n', 0)]
    """
    rest, skipping = b"", False
    while chunk := stream.read(MAX_LINE):
        too_long = 0
        if skipping:
            end = chunk.find(b"\n") + 1
            if not end:
                continue
            chunk, skipping, too_long = chunk[end:], False, 1
        block = rest + chunk
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if end and (first := block.find(b"\n")) > MAX_LINE:  # only the first line can be longer than a read
            block, end, too_long = block[first + 1 :], end - first - 1, too_long + 1
        if len(rest) > MAX_LINE:
            rest, skipping = b"", True
        if end or too_long:
            yield block[:end], too_long
    if rest or skipping:
        yield (rest + b"\n", 0) if rest else (b"", 1)


def malformed_lines(block: bytes, delimiter: bytes, quoting: bool) -> list[int]:
    """The numbers, from 0, of lines that pyarrow must not see: NUL, lone CR, not UTF-8, quotes out of order.

    A line with a wrong number of fields is not among them. block: whole lines, each ending in LF.

    >>> malformed_lines(b"a,b\\na\\rb\\n", b",", False)
    [1]
    """
    bad: set[int] = set()
    # Whole-block tests first: nearly all blocks pass them, and they run at memory speed.
    if b"\0" in block or block.count(b"\r") != block.count(b"\r\n") or not (block.isascii() or _is_utf8(block)):
        for number, line in enumerate(block.split(b"\n")):
            if b"\0" in line or b"\r" in line.removesuffix(b"\r") or not _is_utf8(line):
                bad.add(number)
    if quoting and b'"' in block:
        suspects = _misquoted(np.frombuffer(block, np.uint8), delimiter[0])
        lines = block.split(b"\n") if suspects else []
        bad.update(one for one in suspects if number_of_fields(lines[one], delimiter, True) is None)
    return sorted(bad)


def number_of_fields(line: bytes, delimiter: bytes, quoting: bool) -> int | None:
    """Return how many fields a line has; None where `quoting` and a quoted field does not end on it, or goes on behind
    its closing quote. A quote inside of a field that does not begin with one is a letter, as for other readers.

    >>> number_of_fields(b'"a;b";5" pipe', b";", True), number_of_fields(b'"a;b', b";", True)
    (2, None)
    """
    if not quoting or b'"' not in line:
        return 1 + line.count(delimiter)
    outside, quoted = _patterns(delimiter)
    return 1 + quoted.sub(b"", line).count(delimiter) if outside.fullmatch(line) else None


def without(block: bytes, lines: Sequence[int]) -> bytes:
    """The block without the lines of these numbers."""
    if not lines:
        return block
    dropped = set(lines)
    return b"\n".join(line for number, line in enumerate(block.split(b"\n")) if number not in dropped)


@cache
def _patterns(delimiter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of a whole line whose quotes are in order, and of its quoted fields."""
    sign, quoted = re.escape(delimiter), rb'"(?:[^"]|"")*+"'
    field = rb'(?:%b|[^"%b][^%b]*+|)' % (quoted, sign, sign)
    return re.compile(rb"%b(?:%b%b)*+\r?" % (field, sign, field)), re.compile(rb"(?:^|(?<=%b))%b" % (sign, quoted))


def _misquoted(data: np.ndarray[Any, np.dtype[np.uint8]], delimiter: int) -> list[int]:
    # Finds all lines with quotes out of order, and some whose quotes are letters, which a slower look tells apart.
    # RFC 4180 in one line: quotes alternate between opening and closing, an even number of them; an opening one
    # follows a delimiter or line start, a closing one precedes a delimiter or line end; "" inside counts as both.
    quotes, ends = np.flatnonzero(data == ord('"')), np.flatnonzero(data == ord("\n"))
    line = np.searchsorted(ends, quotes)
    before = np.searchsorted(quotes, np.concatenate([[0], ends]))  # quotes before each line
    opening = (np.arange(len(quotes)) - before[line]) % 2 == 0
    outer = np.zeros(256, bool)
    outer[[delimiter, ord("\n"), ord('"')]] = True
    previous = np.where(quotes > 0, data[quotes - 1], ord("\n"))
    following = data[quotes + 1]  # a block ends in LF
    good = np.where(opening, outer[previous], outer[following] | (following == ord("\r")))
    odd = np.flatnonzero(np.bincount(line, minlength=len(ends)) % 2)
    return [*np.unique(line[~good]).tolist(), *odd.tolist()]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
