"""Sources that count inside another engine: code and sums sent over a wire."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core._util.version import __version__
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError, SourceRefused
from dpgm_core.sources.arrow import checked_arrow_types, keyed, raw
from dpgm_core.sources.contract import Adding, Reading, Reduction
from dpgm_core.sources.encoding import key_texts
from dpgm_core.sources.persons import PersonSource, part_of
from dpgm_core.sources.reading import BATCH_ROWS, quiet

__all__ = ["Buffer", "Shipped", "flat", "merged", "received"]

# An engine maps partitions and merges the results; what is done with a partition is core's, the same as here. Each
# step returns bytes: blocks of codes, or a sum. It never raises, because an engine logs what is raised, and that may
# quote a record: a reason is returned in place of the rest. Its words are those of a `SourceRefused`: messages about
# types depend on the schema alone, before a batch is looked at, and all that is raised later is withheld.
#
# Where each row is a person: `blocks` of a partition's batches, then `partial`; `summed` is both. With a person key
# all rows of one person must meet first: `spread` puts the rows of a partition into numbered parts by their keys, the
# engine brings the blocks of each part together, from all partitions, and `limit_rows` limits the rows of each person.

_UNREADABLE = (
    "the records could not be read where they are (details are withheld because they may quote records); see whether "
    "the engine itself can read all of them: a file may be damaged, a column not be of its type, or a function fail"
)
#: Rows of a block that one part takes, about: parts are many, and each block has its cost.
_PART_ROWS = 2**9
_MAX_PARTS = 2**16

T = TypeVar("T")


@frozen(kw_only=True)
class Shipped:
    """The work on the rows of one partition, for one reading; picklable.

    Parameters
    ----------
    reading : Reading
        What is read.

    Examples
    --------
    >>> from dpgm_core.counting.table_counts import Counts
    >>> from dpgm_core.structure import Structure
    >>> domain = Domain.from_sizes({"a": 2})
    >>> counts = Counts.of(Structure(domain, [("a",)]))
    >>> work = Shipped(reading=Reading(domain=domain, columns=("a",)))
    >>> parts = [work.summed(counts, [pa.record_batch({"a": some})]) for some in ([0, 1], [1])]
    >>> received(parts, counts).tolist()
    [1, 2, 3]
    """

    reading: Reading
    version: str = field(default=__version__, init=False)

    def check(self, schema: Any) -> None:
        """Refuse columns that are missing or of types that have no codes; for when a source is pinned.

        schema: a pyarrow Schema, public. Raises SourceRefused, whatever the records are.
        """
        own = self.reading
        for name in own.names:
            if schema.names.count(name) != 1:
                wrong = "no column" if name not in schema.names else "more than one column"
                raise SourceRefused(f"the table has {wrong} {name!r}; each attribute and the person key need one")
        refused = None
        try:
            checked_arrow_types(
                {name: schema.field(name).type for name in own.names}, own.domain, own.coded, own.person
            )
        except DataError as error:  # the schema alone was looked at
            refused = str(error)
        if refused is not None:
            raise SourceRefused(refused)

    def blocks(self, batches: Iterable[Any]) -> Iterator[bytes]:
        """Yield blocks of codes of a partition that holds all rows of its persons. batches: Arrow record batches."""
        return _guarded(self._blocks(self._pieces(batches)), of_reason)

    def spread(self, batches: Iterable[Any], parts: int) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a partition by the part, 0 ... parts - 1, of their person, as blocks for `limit_rows`.

        parts: up to 65,536, the same for all partitions. Holds 512 rows for each part at a time, or a batch.
        """
        return _guarded(self._spread(batches, parts), lambda words: (0, of_reason(words)))

    def limit_rows(self, blocks: Iterable[Buffer]) -> Iterator[bytes]:
        """Yield blocks of codes of all of one part's persons, with at most r rows of each."""
        return _guarded(self._blocks(self._by_person(map(to_keyed, blocks))), of_reason)

    def partial(self, reduction: Reduction, blocks: Iterable[Buffer]) -> bytes:
        """Return the sum over blocks of codes."""
        return _one(lambda: self._summed(reduction, map(to_codes, blocks)))

    def summed(self, reduction: Reduction, batches: Iterable[Any]) -> bytes:
        """Return the sum over a partition that holds all rows of its persons."""
        return _one(lambda: self._summed(reduction, self._pieces(batches)))

    def _summed(self, reduction: Reduction, pieces: Iterable[tuple[Codes, IntArray | None]]) -> IntArray:
        self._check_version()
        missing = [name for name in reduction.columns if name not in self.reading.columns]
        if missing:
            raise SourceRefused(f"a sum asks for {missing[0]!r}, which is not among the columns of the reading")
        places = [self.reading.columns.index(name) for name in reduction.columns]
        sums = _zeros(reduction.cells)
        for codes, lengths in pieces:
            columns = [codes[place] for place in places]
            if isinstance(reduction, Adding):  # in place: of a wide sum, another one for each piece takes long
                reduction.add(columns, lengths, sums)
            else:
                sums += reduction.partial(columns, lengths)
        return sums

    def _pieces(self, batches: Iterable[Any]) -> Iterator[tuple[Codes, IntArray | None]]:
        if self.reading.person is None:
            for codes, _ in _together(self._coded(batches), BATCH_ROWS):
                yield codes, None
        else:
            yield from self._by_person(self._coded(batches))

    def _coded(self, batches: Iterable[Any]) -> Iterator[tuple[Codes, Any]]:
        self._check_version()
        own = self.reading
        yield from keyed(raw(own.names, self._checked(batches)), own.domain, own.coded)

    def _checked(self, batches: Iterable[Any]) -> Iterator[Any]:
        known = None
        for batch in batches:
            if known is None or not batch.schema.equals(known):
                known = batch.schema
                self.check(known)
            yield batch

    def _by_person(self, coded: Iterable[tuple[Codes, Any]]) -> Iterator[tuple[Codes, IntArray]]:
        self._check_version()
        own = self.reading
        rows = PersonSource(source=_CodedSource(coded), person=own.person or "", rows_per_person=own.rows_per_person)
        yield from rows.pieces(own.domain, own.columns)

    def _blocks(self, pieces: Iterable[tuple[Codes, IntArray | None]]) -> Iterator[bytes]:
        return (of_codes(codes, lengths) for codes, lengths in pieces)

    def _spread(self, batches: Iterable[Any], parts: int) -> Iterator[tuple[int, bytes]]:
        if not 1 <= parts <= _MAX_PARTS:
            raise SourceRefused(f"persons are spread over 1 to {_MAX_PARTS:,} parts; ask for so many")
        person = self.reading.person or ""
        texts = ((codes, key_texts(person, keys)) for codes, keys in self._coded(batches))
        for codes, keys in _together(texts, max(BATCH_ROWS, _PART_ROWS * parts)):
            part = part_of(*flat(keys), parts)
            order = np.argsort(part, kind="stable")
            ends = np.searchsorted(part[order], np.arange(parts + 1))
            columns = [column[order] for column in codes]
            lengths, letters = flat(keys.take(pa.array(order)))
            places = np.concatenate([[0], np.cumsum(lengths)])
            for number in np.flatnonzero(np.diff(ends)).tolist():
                rows = slice(ends[number], ends[number + 1])
                own = letters[places[rows.start] : places[rows.stop]]
                yield number, of_keyed([column[rows] for column in columns], lengths[rows], own)

    def _check_version(self) -> None:
        if self.version != __version__:
            raise SourceRefused(
                f"dpgm-core is {self.version} here and {__version__} where the rows are; install one version on both"
            )


def merged(one: Buffer, other: Buffer) -> bytes:
    """Return two sums as one, or a reason why one of them failed. Never raises.

    Associative and commutative, bit for bit.
    """
    return _one(lambda: _added([one, other], None))


def received(parts: Iterable[Buffer], reduction: Reduction) -> IntArray:
    """Return the sum over all partitions, (cells,); zero without any.

    Parameters
    ----------
    parts : iterable of bytes
        The sum of each partition.
    reduction : Reduction
        What was summed.

    Raises
    ------
    SourceRefused
        Where a partition failed.
    """
    return _added(parts, _zeros(reduction.cells))


@frozen
class _CodedSource:
    """Keyed batches of codes in memory, as a KeyedSource."""

    coded: Iterable[tuple[Codes, Any]]

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        return (codes for codes, _ in self.coded)

    def keyed_batches(self, domain: Domain, columns: Sequence[str], key: str | None) -> Iterator[tuple[Codes, Any]]:
        return iter(self.coded)


@frozen
class _Failed:
    """A failure, and its reason."""

    words: str


def _attempted(call: Callable[[], T]) -> T | _Failed:
    """Return the result of `call`, made in silence; whatever it raises goes no further."""
    words, stopped = _UNREADABLE, False
    with quiet():
        try:
            return call()
        except KeyboardInterrupt:
            stopped = True
        except BaseException as error:  # whatever it is, its text may hold a record
            if type(error) is SourceRefused:
                words = str(error)
    if stopped:
        raise KeyboardInterrupt  # without what it hung on
    return _Failed(words)


def _guarded(items: Iterator[T], failed: Callable[[str], T]) -> Iterator[T]:
    """Yield the items; a reason in place of the first that could not be made, and of all that follow."""
    end = object()
    while (item := _attempted(lambda: next(items, end))) is not end:
        if isinstance(item, _Failed):
            yield failed(item.words)
            return
        yield item  # type: ignore[misc]


def _one(call: Callable[[], IntArray]) -> bytes:
    result = _attempted(lambda: of_sum(call()))
    return of_reason(result.words) if isinstance(result, _Failed) else result


def _added(parts: Iterable[Buffer], sums: IntArray | None) -> IntArray:
    """Return the sum of the parts, added to `sums` in place. Raises SourceRefused, with one reason in any order."""
    reasons = set()
    for part in parts:
        try:
            own = to_sum(part, None if sums is None else len(sums))
        except SourceRefused as error:
            reasons.add(str(error))
        else:
            sums = own.copy() if sums is None else np.add(sums, own, out=sums)
    if reasons or sums is None:
        raise SourceRefused(min(reasons))
    return sums


def _zeros(cells: int) -> IntArray:
    try:
        return np.zeros(cells, np.int64)
    except (MemoryError, ValueError):
        pass
    raise SourceRefused(f"a sum of {cells:,} cells does not fit into memory where it is taken; use smaller cliques")


def _together(parts: Iterable[tuple[Codes, Any]], rows: int) -> Iterator[tuple[Codes, Any]]:
    """Yield small batches of codes, and of keys if there are any, as larger ones of up to so many rows."""
    waiting: list[tuple[Codes, Any]] = []
    count = 0
    for codes, keys in parts:
        own = len(codes[0])
        if waiting and count + own > rows:
            yield _joined(waiting)
            waiting, count = [], 0
        if own:
            waiting.append((codes, keys))
            count += own
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[tuple[Codes, Any]]) -> tuple[Codes, Any]:
    if len(parts) == 1:
        return parts[0]
    codes, keys = zip(*parts, strict=True)
    together = [np.concatenate(columns) for columns in zip(*codes, strict=True)]
    return together, None if keys[0] is None else pa.concat_arrays(keys)


# --- Bytes on the wire ----------------------------------------------------------------------------
# Little-endian, whatever the machine. A sum has the same length whatever is in it, so its size says nothing. Sums and
# reasons carry a checksum: what was damaged on the way is neither added up nor read out.

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
    """Why there is nothing, in public words."""
    return _with_checksum(_REASON, words.encode("utf-8", "backslashreplace"))


def of_codes(codes: Codes, lengths: IntArray | None) -> bytes:
    """Codes of some persons, and of how many rows each is; None: of one."""
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
