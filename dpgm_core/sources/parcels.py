"""The bytes that travel between where the rows are and here: blocks of codes, sums, and why there are none.

Little-endian, whatever the machine. A sum has the same length whatever is in it, so its size says nothing. Sums and
reasons carry a checksum: what was damaged on the way is neither added up nor read out.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dpgm_core.arrays import Array, Codes, IntArray
from dpgm_core.errors import SourceRefused

__all__ = ["Buffer", "flat", "of_codes", "of_keyed", "of_reason", "of_sum", "to_codes", "to_keyed", "to_sum"]

#: What an engine hands back.
Buffer: TypeAlias = bytes | bytearray | memoryview

#: The first byte of each.
_CODES, _KEYED, _SUM, _REASON = b"C", b"K", b"S", b"R"
#: Of a block: whether each row says if it is the first of its person, how many rows, and how many columns.
_HEAD = struct.Struct("<?QQ")
_CHECKSUM = struct.Struct("<I")
_DAMAGED = "what came back from where the rows are is damaged, or not what was asked for; try again"


def of_sum(sums: IntArray) -> bytes:
    """A sum, (cells,)."""
    return _with_checksum(_SUM, sums.astype("<i8", copy=False).tobytes())


def to_sum(part: Buffer, cells: int | None = None) -> IntArray:
    """The sum, (cells,), read only. Raises SourceRefused for a reason, and for what is no sum of so many cells."""
    content = _checked(_SUM, part)
    if len(content) % 8 or cells not in (None, len(content) // 8):
        raise SourceRefused(_DAMAGED)
    return np.frombuffer(content, "<i8").astype(np.int64, copy=False)


def of_reason(words: str) -> bytes:
    """Why there is nothing, in public words.

    >>> to_sum(of_reason("no such table"))
    Traceback (most recent call last):
    dpgm_core.errors.SourceRefused: no such table
    """
    return _with_checksum(_REASON, words.encode("utf-8", "backslashreplace"))


def of_codes(codes: Codes, lengths: IntArray | None) -> bytes:
    """Codes of some persons, and of how many rows each is; None: of one.

    >>> codes, lengths = to_codes(of_codes([np.array([4, 0, 2], np.uint8)], np.array([1, 2])))
    >>> codes[0].tolist(), lengths.tolist()
    ([4, 0, 2], [1, 2])
    """
    if lengths is None:
        return _block(_CODES, codes, False, b"")
    starts = np.zeros(int(lengths.sum()), np.bool_)
    starts[np.cumsum(lengths) - lengths] = True
    return _block(_CODES, codes, True, starts.tobytes())


def to_codes(block: Buffer) -> tuple[Codes, IntArray | None]:
    """Return the arguments of `of_codes`."""
    codes, grouped, rest = _columns(_CODES, block)
    rows = len(codes[0])
    if len(rest) != (rows if grouped else 0):
        raise SourceRefused(_DAMAGED)
    if not grouped:
        return codes, None
    first = np.flatnonzero(np.frombuffer(rest, np.uint8))
    return codes, np.diff(first, append=rows)


def of_keyed(codes: Codes, lengths: IntArray, letters: Array) -> bytes:
    """Codes and their person keys as `flat` has them."""
    return _block(_KEYED, codes, False, lengths.astype("<i8", copy=False).tobytes() + letters.tobytes())


def to_keyed(block: Buffer) -> tuple[Codes, Any]:
    """Codes and their person keys, a large_binary array; a row without a key has an empty one."""
    codes, _, rest = _columns(_KEYED, block)
    rows = len(codes[0])
    if len(rest) < 8 * rows:
        raise SourceRefused(_DAMAGED)
    lengths = np.frombuffer(rest, "<i8", rows)
    letters = len(rest) - 8 * rows
    # Each by itself first, so that no sum of theirs is beyond 64 bits: Arrow would follow them anywhere.
    if rows and (int(lengths.min()) < 0 or int(lengths.max()) > letters or int(lengths.sum()) != letters):
        raise SourceRefused(_DAMAGED)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return codes, pa.Array.from_buffers(
        pa.large_binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(rest)[8 * rows :]]
    )


def flat(texts: Any) -> tuple[IntArray, Array]:
    """Return the length of each text of a large_binary array, (rows,), 0 for a null; and all letters, uint8.

    >>> lengths, letters = flat(pa.array([b"ab", None, b"c"], pa.large_binary()))
    >>> lengths.tolist(), letters.tobytes()
    ([2, 0, 1], b'abc')
    """
    lengths = np.zeros(len(texts), np.int64)
    valid = texts.drop_null()  # whose letters are nobody else's
    if not len(valid):
        return lengths, np.zeros(0, np.uint8)
    _, places, letters = valid.buffers()
    ends = np.frombuffer(places, np.int64, len(valid) + 1, 8 * valid.offset)
    lengths[texts.is_valid().to_numpy(zero_copy_only=False)] = np.diff(ends)
    return lengths, np.frombuffer(letters or b"", np.uint8)[ends[0] : ends[-1]]


def _block(kind: bytes, codes: Codes, grouped: bool, rest: bytes) -> bytes:
    widths = bytes(column.dtype.itemsize for column in codes)
    columns: Iterable[bytes] = (column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes() for column in codes)
    return b"".join([kind, _HEAD.pack(grouped, len(codes[0]), len(codes)), widths, *columns, rest])


def _columns(kind: bytes, block: Buffer) -> tuple[list[Array], bool, memoryview]:
    """Return the codes of a block, whether its rows are grouped, and what follows them."""
    content = memoryview(block).cast("B")
    if bytes(content[:1]) == _REASON:
        _checked(kind, block)
    if bytes(content[:1]) != kind or len(content) < 1 + _HEAD.size:
        raise SourceRefused(_DAMAGED)
    grouped, rows, count = _HEAD.unpack_from(content, 1)
    at = 1 + _HEAD.size + count
    widths = bytes(content[1 + _HEAD.size : at])
    if not count or len(widths) != count or not set(widths) <= {1, 2, 4, 8} or rows * sum(widths) > len(content) - at:
        raise SourceRefused(_DAMAGED)
    codes = []
    for width in widths:
        codes.append(np.frombuffer(content, f"<u{width}", rows, at))
        at += rows * width
    return codes, grouped, content[at:]


def _with_checksum(kind: bytes, content: bytes) -> bytes:
    return b"".join([kind, _CHECKSUM.pack(zlib.crc32(content)), content])


def _checked(kind: bytes, part: Buffer) -> memoryview:
    """Return what follows the checksum, if it is of this kind; SourceRefused with the reason, if it is one."""
    whole = memoryview(part).cast("B")
    actual, content = bytes(whole[:1]), whole[1 + _CHECKSUM.size :]
    if len(whole) > _CHECKSUM.size and _CHECKSUM.unpack_from(whole, 1)[0] == zlib.crc32(content):
        if actual == _REASON:
            raise SourceRefused(bytes(content).decode())
        if actual == kind:
            return content
    raise SourceRefused(_DAMAGED)
