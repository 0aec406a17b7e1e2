"""Tasks of the executors. These functions are sent by value, so nothing but dpgm-core has to be installed there.

Nothing here raises: Spark writes what is raised into its logs, and that may quote a record. What dpgm-core has to do
comes as pickled bytes that are opened inside of a function, so that a missing package is found by us and not by Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = [
    "UNOPENED",
    "Marked",
    "Task",
    "added",
    "block",
    "content",
    "installed",
    "limit_rows",
    "merged",
    "named",
    "numbered",
    "same",
    "spread",
    "summed",
    "total",
]

#: What stands for a sum or a block where the work could not even be opened.
UNOPENED = b""
#: Rows that are hashed at once, so that what is computed with stays in cache.
_CACHED = 2**14

Task = Callable[[Iterable[Any]], Iterator[Any]]


class Marked:
    """A reduction with two more cells: a keyed hash of the rows it saw, and their number.

    The hash is a sum over persons modulo 2^64, so it is the same whatever the order, the batches and the partitions.
    Two rows have one hash with probability at most 2^-32 over the key, and passes that summed other rows one sum of
    hashes hardly more often.

    key: random numbers below 2^64, twice as many as there are columns and two.
    """

    def __init__(self, inner: Any, adds: bool, columns: tuple[str, ...], key: tuple[int, ...]) -> None:
        self.inner, self.adds, self.columns, self.key = inner, adds, columns, key
        self.cells: int = inner.cells + 2

    def partial(self, codes: Any, lengths: Any) -> Any:
        """The sum over these persons alone."""
        import numpy as np

        sums = np.zeros(self.cells, np.int64)
        self.add(codes, lengths, sums)
        return sums

    def add(self, codes: Any, lengths: Any, sums: Any) -> None:
        """Add the inner sum of its own columns, and in the two cells behind it what all columns come to."""
        import numpy as np

        own = [codes[self.columns.index(name)] for name in self.inner.columns]
        if self.adds:  # in place: another wide vector for each piece takes long
            self.inner.add(own, lengths, sums[:-2])
        else:
            sums[:-2] += self.inner.partial(own, lengths)
        hashes = self._hashed(codes)
        if lengths is not None:  # which rows are one person's counts too
            starts = np.cumsum(lengths) - lengths
            hashes = self._mixed(np.add.reduceat(hashes, starts)) if len(starts) else hashes
        sums[-2:] += np.array([hashes.sum(dtype=np.uint64), len(codes[0])], np.uint64).view(np.int64)

    def check(self, sums: Any) -> None:
        """Looked at by the driver, with the marks of the other passes."""

    def _hashed(self, codes: Any) -> Any:
        """A hash of each row, (rows,): its bytes as numbers below 2^32, times a random odd number each, mixed."""
        import numpy as np

        widths = [column.dtype.itemsize for column in codes]
        numbers = -(-sum(widths) // 4)
        hashes = np.empty(len(codes[0]), np.uint64)
        packed = np.zeros((min(len(hashes), _CACHED), 4 * numbers), np.uint8)
        for start in range(0, len(hashes), _CACHED):
            chunk = hashes[start : start + _CACHED]
            end = 0
            for column, width in zip(codes, widths, strict=True):
                part = np.ascontiguousarray(column[start : start + _CACHED]).view(np.uint8).reshape(-1, width)
                packed[: len(chunk), end : end + width] = part
                end += width
            chunk[:] = self.key[0]
            for place, word in enumerate(packed[: len(chunk)].view(np.uint32).T):
                chunk += word * np.uint64(self.key[place + 2] | 1)
            chunk[:] = self._mixed(chunk)
        return hashes

    def _mixed(self, words: Any) -> Any:
        """Without it the sum over rows would be one of numbers that stand for single columns."""
        import numpy as np

        words = (words ^ (words >> np.uint64(32))) * np.uint64(self.key[1] | 1)
        return words ^ (words >> np.uint64(29))


def installed(_: object) -> str:
    """Return the version of dpgm-core where this runs, or which package is missing."""
    try:
        import numpy  # noqa: F401
        import pyarrow  # noqa: F401

        from dpgm_core import __version__
        from dpgm_core.sources import Shipped  # noqa: F401
    except ImportError as error:
        return f"-{(error.name or 'dpgm_core').partition('.')[0]}"
    except Exception:
        return "-dpgm_core"
    return __version__


def named(batches: Iterable[Any], names: tuple[str, ...]) -> Iterator[Any]:
    """The batches with the names that core knows."""
    import pyarrow as pa

    for batch in batches:
        # An instant's text depends on the zone it is told in, and Spark tells it in that of the session.
        columns = [
            column.cast(pa.timestamp(column.type.unit, "UTC"))
            if pa.types.is_timestamp(column.type) and column.type.tz is not None
            else column
            for column in batch.columns
        ]
        yield pa.RecordBatch.from_arrays(columns, list(names))


def summed(payload: bytes, names: tuple[str, ...]) -> Task:
    """From the batches of a partition to a row with its sum."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        opened = _opened(payload)
        if opened is None:
            yield _rows([UNOPENED])
            return
        work, reduction = opened
        yield _rows([work.summed(reduction, named(batches, names))])

    return run


def block(payload: bytes, names: tuple[str, ...]) -> Task:
    """From the batches of a partition to rows with blocks of codes."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        opened = _opened(payload)
        if opened is None:
            yield _rows([UNOPENED])
            return
        for content in opened[0].blocks(named(batches, names)):
            yield _rows([content])

    return run


def spread(payload: bytes, names: tuple[str, ...], parts: int) -> Task:
    """From the batches of a partition to rows with blocks, each for the part where its persons meet."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        opened = _opened(payload)
        if opened is None:
            yield _rows([UNOPENED], [0])
            return
        for part, content in opened[0].spread(named(batches, names), parts):
            yield _rows([content], [part])

    return run


def limit_rows(payload: bytes) -> Task:
    """From the blocks of a part to blocks of the rows that count."""

    def run(blocks: Iterable[Any]) -> Iterator[Any]:
        opened = _opened(payload)
        if opened is None:
            return iter([UNOPENED])
        limited: Iterator[Any] = opened[0].limit_rows(bytes(content) for _, content in blocks)
        return limited

    return run


def total(payload: bytes) -> Task:
    """From the blocks of a partition to its sum."""

    def run(blocks: Iterable[Any]) -> Iterator[Any]:
        opened = _opened(payload)
        contents = iter(blocks)
        if opened is None:
            yield UNOPENED
            return
        work, reduction = opened
        lost = False

        def sound() -> Iterator[bytes]:
            nonlocal lost
            for content in contents:
                if content == UNOPENED:
                    lost = True
                    return
                yield content

        sums = work.partial(reduction, sound())
        yield UNOPENED if lost else sums

    return run


def content(row: Any) -> bytes:
    """Return the one value of a row."""
    return bytes(row[0])


def same(part: int) -> int:
    """Where the rows of a part go."""
    return part


def numbered(parts: int) -> Callable[[int, Iterable[Any]], Iterator[Any]]:
    """The sums of a partition as one, with the number of the part in which it is added up further."""

    def run(partition: int, sums: Iterable[Any]) -> Iterator[Any]:
        return ((partition % parts, one) for one in merged(sums))

    return run


def added(numbered_sums: Iterable[Any]) -> Iterator[Any]:
    """The sums of a part as one."""
    return merged(one for _, one in numbered_sums)


def merged(sums: Iterable[Any]) -> Iterator[Any]:
    """Sums of several partitions as one, if there are any."""
    try:
        from dpgm_core.sources import merged as both
    except Exception:
        yield UNOPENED
        return
    whole = None
    for one in sums:
        if one == UNOPENED or whole == UNOPENED:
            whole = UNOPENED
        else:
            whole = one if whole is None else both(whole, one)
    if whole is not None:
        yield whole


def _opened(payload: bytes) -> Any:
    try:
        return pickle.loads(payload)
    except Exception:
        return None


def _rows(contents: list[bytes], parts: list[int] | None = None) -> Any:
    import pyarrow as pa

    columns = [pa.array(contents, pa.binary())]
    if parts is None:
        return pa.RecordBatch.from_arrays(columns, ["content"])
    return pa.RecordBatch.from_arrays([pa.array(parts, pa.int32()), *columns], ["part", "content"])
