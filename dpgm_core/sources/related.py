"""Two related tables as one source: a record for each root, made of its own rows alone."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, Codes, FloatArray, IntArray
from dpgm_core.components.options import flag
from dpgm_core.domain.attribute import Attribute, code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.domain.related import POSITION, SIZE, Related
from dpgm_core.domain.values import EXACT_WHOLE, parse_number
from dpgm_core.errors import DataError
from dpgm_core.sources import as_source
from dpgm_core.sources.arrow import ArrowSource, is_relation
from dpgm_core.sources.contract import AnySource, FileSource, KeyedSource, RawValues
from dpgm_core.sources.encoding import as_text, encoders, key_texts
from dpgm_core.sources.persons import (
    PersonSource,
    Words,
    checked_keys,
    digests,
    layout_of,
    mixed,
    packed,
    unpacked,
)
from dpgm_core.sources.reading import BATCH_ROWS, checked_batch, received

__all__ = ["RelatedSource", "count_unsorted", "one_or_related"]

# A hash of the key and of the child's codes orders the children, and another one of the key draws which of them, but
# the first, is looked at; further draws are spaced evenly from there on. So the records of a root are functions of the
# rows of its key, which the claim in docs/proofs.md needs: they do not depend on rows of other keys, on the order of
# rows, or on batches.

#: Added to the hash of a key before j is drawn by it, so that j says nothing of the order of the children.
_DRAW = np.uint64(0x9E3779B97F4A7C15)
#: For each child its number and its text in the order; None where a hash alone orders them.
_Order: TypeAlias = tuple[FloatArray, Any] | None
#: Codes, keys as texts, and raw values of the column that orders, or None; keys, packed roots and their children.
_Batch: TypeAlias = tuple[Codes, Any, Any]
_Block: TypeAlias = tuple[Any, Words, Iterator[_Batch]]
#: Where a key stands in sorted tables: numbers by value, then other texts, then those without one; and after all.
_Place: TypeAlias = tuple[int, float | Decimal, bytes]
_END: _Place = (3, 0.0, b"")
#: Rows of roots at least in a block of sorted tables.
_BLOCK_ROWS = 2**15
#: Children that wait at least before they are sorted in; see `_Children`.
_WAITING = 8 * BATCH_ROWS


@frozen(kw_only=True)
class RelatedSource:
    """The roots of one table with their children of another one, as one record for each root over `Related.pair`.

    Of several roots of a key one remains, by a hash of the key and of the codes. Children without a root are dropped,
    and so are those beyond r, in their order: that of the column `order`, numbers first, then texts, then nulls; for
    equal ones, or without the column, that of a hash of the key and of the codes. Keys are compared as texts; null and
    empty ones are one key. Memory is O(roots + children): packed codes, hashes, and the keys of the roots.

    Parameters
    ----------
    root, children : object
        Whatever `as_source` takes, if it can read a key next to the codes: files, frames, tables of a database.
    related : Related
        The public statement about them.
    sorted : bool
        Whether both tables are sorted by key: numbers by value, then texts byte by byte, then nulls and empty texts.
        Memory is that of a batch then. Tables that are not are refused before anything is charged. Both are open at
        once, which two relations of one DuckDB connection cannot be.

    Raises
    ------
    DataError
        For sources that cannot read a key or the column `order`, and for one table as both.
    OptionError
        For `sorted` that is no truth value.

    Examples
    --------
    >>> related = Related(
    ...     root=Domain.from_sizes({"own": 2}), children=Domain.from_sizes({"age": 4}), key="id", max_children=2
    ... )
    >>> homes, persons = {"id": np.array([7, 8]), "own": np.array([1, 0])}, {"id": np.array([7]), "age": np.array([3])}
    >>> source = RelatedSource(root=homes, children=persons, related=related)
    >>> [codes.tolist() for codes in next(source.batches(related.pair, ["own", "size", "first.age", "age"]))]
    [[1, 0], [1, 0], [3, 4], [4, 4]]
    """

    root: KeyedSource = field(converter=as_source, metadata={"help": "where the roots are read"})
    children: KeyedSource = field(converter=as_source, metadata={"help": "where the children are read"})
    related: Related = field(metadata={"help": "the public statement about the two tables"})
    sorted: bool = field(
        default=False, validator=flag, metadata={"help": "both tables are sorted by key, so that memory does not grow"}
    )
    _draws: int = field(default=1, init=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.related, Related):
            raise DataError(f"related must be Related, got {type(self.related).__name__}")
        for source in (self.root, self.children):
            if not isinstance(source, KeyedSource):
                raise DataError(
                    f"source {type(source).__name__} cannot read a key (it has no keyed_batches), which two related "
                    "tables need; give them as files, data frames or tables of a database"
                )
        if self.related.order is not None and not isinstance(self.children, RawValues):
            raise DataError(
                f"source {type(self.children).__name__} cannot read the column {self.related.order!r} that orders "
                "children (it has no raw_batches); leave order out, or give a file, a frame or a table of a database"
            )
        if _is_same(self.root, self.children):
            raise DataError(
                "the roots and the children are one and the same table; a root that is a child of roots has no unit "
                "that ends, so give two tables"
            )
        both = (self.root, self.children)
        if self.sorted and all(isinstance(one, ArrowSource) and is_relation(one.data) for one in both):
            raise DataError(
                "sorted tables are read side by side, which relations of one DuckDB connection cannot be; leave sorted "
                "out, or write the tables to files"
            )

    @property
    def tables(self) -> tuple[tuple[KeyedSource, Domain, str], ...]:
        """Each table with the columns that are read of it, `order` among them, and its key."""
        key, other = self.related.key
        order = () if self.related.order is None else (Attribute.of_size(self.related.order, 1),)
        children = Domain([*self.related.children, *order])
        return (self.root, Domain(self.related.root), key), (self.children, children, other)

    def repeated(self, draws: int) -> RelatedSource:
        """Return the same tables with so many records for each root, one after the other; the first is as here.

        Of them each further child is looked at equally often, or once more than others. draws: a power of two.
        """
        repeated = evolve(self)
        object.__setattr__(repeated, "_draws", draws)
        return repeated

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Codes of the named columns, a record for each root. Raises DataError, and DomainError for another domain."""
        self.related.check(domain)
        roots = Domain(
            [domain[name] if name in domain else self.related.root[name] for name in self.related.root.names]
        )
        for keys, rows, children in self._sorted_blocks(roots) if self.sorted else self._one_block(roots):
            pairs = _Pairs(self.related, roots, rows, *self._children(keys, children))
            many = max(1, BATCH_ROWS // self._draws)
            for start in range(0, len(rows), many):
                yield pairs.codes(columns, slice(start, start + many), self._draws)

    def _one_block(self, roots: Domain) -> Iterator[_Block]:
        """All roots, read to their end, and all children: a connection may have one result open at a time."""
        yield *PersonSource(source=self.root, person=self.related.key[0]).selected(roots), self._child_batches()

    def _sorted_blocks(self, roots: Domain) -> Iterator[_Block]:
        """The roots block by block, none of which splits a key, each with the children up to its last key."""
        key, layout = self.related.key[0], layout_of(roots)
        persons = PersonSource(source=self.root, person=key)
        read = ((codes, key_texts(key, raw), None) for codes, raw in checked_keys(self.root, roots, key))
        of_roots, of_children = _Sorted("root", read), _Sorted("child", self._child_batches())
        while (last := of_roots.key_after(_BLOCK_ROWS)) is not None:
            waiting = [(texts, packed(layout, codes)) for codes, texts, _ in of_roots.until(last)]
            none = pa.array([], pa.large_binary()), np.zeros((0, len(layout)), np.uint64)
            yield *persons.merged(*none, waiting), of_children.until(last)
        for _ in of_children.until(_END):  # so that they are sorted to their end
            pass

    def _children(self, keys: Any, batches: Iterator[_Batch]) -> tuple[Words, Words, IntArray]:
        """Hashes of the keys of the roots, the children that count, packed, root by root, and how many each has."""
        texts = (keys[start : start + BATCH_ROWS].to_pylist() for start in range(0, len(keys), BATCH_ROWS))
        hashes = np.concatenate([np.zeros(0, np.uint64), *(digests([one or b"" for one in part]) for part in texts)])
        children = _Children(self.related, keys, hashes)
        for batch in batches:
            children.add(*batch)
        return hashes, *children.finished()

    def _child_batches(self) -> Iterator[_Batch]:
        """Codes, keys as texts, and the raw values of `order`, None without."""
        source, related, key = self.children, self.related, self.related.key[1]
        if related.order is None:
            batches = checked_keys(source, related.children, key)
            yield from ((codes, key_texts(key, keys), None) for codes, keys in batches)
            return
        assert isinstance(source, RawValues)
        probe, names = self.tables[1][1], related.children.names

        def read() -> Iterator[tuple[Codes, list[Any]]]:
            # Which columns and types there are is checked as it is for a run without `order`, in words to be shown.
            source.keyed_batches(probe, probe.names, key)
            return map(encoders(related.children, names), source.raw_batches([*names, key, str(related.order)]))

        for codes, (keys, order) in received(source, read):
            safe = checked_batch(related.children.attributes, codes, f"source {type(source).__name__}")
            yield safe, key_texts(key, keys), order


def one_or_related(data: object, related: Related | None) -> AnySource | None:
    """Return the source that a run reads: of two tables, given as a mapping, where these are stated; None for None."""
    if related is not None and isinstance(data, Mapping) and {"root", "children"} <= set(data):
        unknown = set(data) - {"root", "children", "sorted"}
        if unknown:
            raise DataError(
                f"two related tables are root and children, and sorted; {min(map(str, unknown))!r} has no place there"
            )
        return RelatedSource(related=related, **data)
    return None if data is None else as_source(data)


def _is_same(one: object, other: object) -> bool:
    """Whether two sources are of one table, as far as this is known without opening them."""
    paths = [source.path for source in (one, other) if isinstance(source, FileSource)]
    files = [path.resolve() for path in paths if isinstance(path, Path)]
    return one is other or one == other or (len(files) == 2 and files[0] == files[1])


class _Sorted:
    """Batches of a table that is sorted by its key; DataError where it is not.

    what: a row of it.
    """

    def __init__(self, what: str, batches: Iterator[_Batch]) -> None:
        self._what, self._batches = what, batches
        self._left: _Batch | None = None
        self._starts: IntArray = np.zeros(0, np.int64)  # of the runs of one key in what is left
        self._places: list[_Place] = []
        self._last: _Place = (0, -np.inf, b"")

    def key_after(self, rows: int) -> _Place | None:
        """The place of the key so many rows from here, or of the last one of the batch; None at the end."""
        if not self._fill():
            return None
        return self._places[int(np.searchsorted(self._starts, rows - 1, "right")) - 1]

    def until(self, place: _Place) -> Iterator[_Batch]:
        """The rows up to that key, all of its own among them."""
        while self._fill():
            assert self._left is not None
            codes, texts, order = self._left
            run = bisect_right(self._places, place)
            end = int(self._starts[run]) if run < len(self._starts) else len(texts)
            if end:
                yield [part[:end] for part in codes], texts[:end], None if order is None else order[:end]
            if end < len(texts):
                self._left = [part[end:] for part in codes], texts[end:], None if order is None else order[end:]
                self._starts, self._places = self._starts[run:] - end, self._places[run:]
                return
            self._left = None

    def _fill(self) -> bool:
        """Whether rows are left, after the next batch was read if there were none."""
        while self._left is None:
            batch = next(self._batches, None)
            if batch is None:
                return False
            texts = batch[1]
            if not len(texts):
                continue
            self._starts, self._places = _runs_of(texts)
            if any(two < one for one, two in itertools.pairwise([self._last, *self._places])):
                raise DataError(
                    f"the {self._what} table is not sorted by its key, numbers first, then texts byte by byte, then "
                    "nulls; sort it so, or leave sorted out"
                )
            self._left, self._last = batch, self._places[-1]
        return True


def count_unsorted(source: KeyedSource, domain: Domain, key: str) -> int:
    """Return how many rows have a key that stands before that of the row above: what `sorted` refuses."""
    last: _Place = (0, -np.inf, b"")
    found = 0
    for _, raw in checked_keys(source, domain, key):
        texts = key_texts(key, raw)
        if len(texts):
            places = [last, *_runs_of(texts)[1]]
            found += sum(two < one for one, two in itertools.pairwise(places))
            last = places[-1]
    return found


def _runs_of(texts: Any) -> tuple[IntArray, list[_Place]]:
    """Where the runs of one key start, and the place of each."""
    changes = pc.not_equal(texts[1:], texts[:-1]).fill_null(True).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], 1 + np.flatnonzero(changes)])
    return starts, [_place_of(text) for text in texts.take(pa.array(starts)).to_pylist()]


def _place_of(key: bytes | None) -> _Place:
    if key is None:
        return 2, 0.0, b""
    number = parse_number(key)
    if number is None or number != number:
        return 1, 0.0, key
    try:  # exactly: large numbers of different lengths may be one float
        return 0, number if abs(number) < EXACT_WHOLE else Decimal(key.decode("ascii")), key
    except InvalidOperation:
        return 0, number, key


class _Children:
    """The first r children of each root, in their order; batches wait until sorting them in pays.

    Sorting in at least as many as there are keeps the sum of all sorts linear.
    """

    def __init__(self, related: Related, keys: Any, hashes: Words) -> None:
        self._related, self._keys, self._hashes = related, keys, hashes
        self._layout = layout_of(related.children)
        hashes_of_none, no_words = np.zeros(0, np.uint64), np.zeros((0, len(self._layout)), np.uint64)
        self._kept = _Rows(np.zeros(0, np.int64), None, hashes_of_none, no_words)
        self._waiting: list[tuple[Words, Any, _Order]] = []
        self._count = 0

    def add(self, codes: Codes, keys: Any, order: Any) -> None:
        """Take a batch: codes, keys as texts, and raw values of the column that orders, or None."""
        self._waiting.append((packed(self._layout, codes), keys, _order_of(order)))
        self._count += len(keys)
        if self._count >= max(len(self._kept.places), _WAITING):
            self._merge()

    def finished(self) -> tuple[Words, IntArray]:
        """The rows that count, root by root, and how many each root has."""
        self._merge()
        return self._kept.words, np.bincount(self._kept.places, minlength=len(self._keys))

    def _merge(self) -> None:
        """Sort what waits in, and drop what has no root or comes after r others."""
        if not self._waiting:
            return
        keys = pa.concat_arrays([keys for _, keys, _ in self._waiting])  # at once: a look-up hashes all keys of roots
        places = pc.index_in(keys, value_set=self._keys).fill_null(-1).to_numpy().astype(np.int64)
        parts, start = [self._kept], 0
        for words, batch, order in self._waiting:
            parts.append(self._found(words, places[start : start + len(batch)], order))
            start += len(batch)
        self._waiting, self._count = [], 0
        self._kept = _Rows.joined(parts).first(self._related.max_children)

    def _found(self, words: Words, places: IntArray, order: _Order) -> _Rows:
        """The rows of a batch that have a root."""
        some = np.flatnonzero(places >= 0)
        words, places = words[some], places[some]
        hashes = self._hashes[places]
        for word in words.T:
            hashes = mixed(hashes ^ word)
        return _Rows(places, None if order is None else (order[0][some], order[1].take(pa.array(some))), hashes, words)


@frozen
class _Rows:
    """Children: the place of the root, what orders them, a hash, and packed codes."""

    places: IntArray
    order: _Order
    hashes: Words
    words: Words

    @classmethod
    def joined(cls, parts: Sequence[_Rows]) -> _Rows:
        """All of these; one without a child says nothing of the order."""
        own = [part for part in parts if len(part.places)] or parts[:1]
        orders = [part.order for part in own if part.order is not None]
        numbers, texts = ([order[at] for order in orders] for at in (0, 1))
        return cls(
            np.concatenate([part.places for part in own]),
            (np.concatenate(numbers), pa.concat_arrays(texts)) if orders else None,
            np.concatenate([part.hashes for part in own]),
            np.concatenate([part.words for part in own]),
        )

    def first(self, most: int) -> _Rows:
        """At most so many of each root, sorted by root and in their order."""
        ordered = [] if self.order is None else [_ranks(self.order[1]), self.order[0]]
        at = np.lexsort([*self.words.T[::-1], self.hashes, *ordered, self.places])
        places = self.places[at]
        # A row stays unless the row `most` places before it has the same root.
        selected = np.ones(len(at), bool)
        selected[most:] = places[most:] != places[:-most]
        at = at[selected]
        order = None if self.order is None else (self.order[0][at], self.order[1].take(pa.array(at)))
        return _Rows(self.places[at], order, self.hashes[at], self.words[at])


def _order_of(raw: Any) -> _Order:
    """Numbers, infinite for what is none, and texts: empty for numbers, and null where nothing is said."""
    if raw is None:
        return None
    distinct = as_text(raw).cast(pa.large_binary()).dictionary_encode()
    numbers, texts = [], []
    for text in distinct.dictionary.to_pylist():
        number = parse_number(text)
        is_number = number is not None and number == number
        numbers.append(number if is_number else np.inf)
        # A letter tells a text from the empty one of a number; NaN and blanks say nothing.
        texts.append(b"" if is_number else b"t" + text if number is None and text.strip() else None)
    codes = distinct.indices.fill_null(len(texts)).to_numpy()
    return np.array([*numbers, np.inf])[codes], pa.array([*texts, None], pa.large_binary()).take(pa.array(codes))


def _ranks(texts: Any) -> IntArray:
    """The rank of each text byte by byte, nulls last."""
    distinct = texts.dictionary_encode()
    known = distinct.dictionary.to_pylist()
    ranks: IntArray = np.full(len(known) + 1, len(known))
    ranks[sorted(range(len(known)), key=known.__getitem__)] = np.arange(len(known))
    return np.asarray(ranks[distinct.indices.fill_null(len(known)).to_numpy()])


class _Pairs:
    """The records: each root with its first child, the child that is looked at, and the one before that.

    rows: of the roots, packed. hashes: of their keys. children: packed, root by root. sizes: how many each root has.
    """

    def __init__(
        self, related: Related, roots: Domain, rows: Words, hashes: Words, children: Words, sizes: IntArray
    ) -> None:
        self._related, self._roots, self._rows = related, roots, rows
        self._children, self._sizes = children, sizes
        self._starts = np.cumsum(sizes) - sizes
        self._hashes = hashes

    def _drawn(self, part: slice, draws: int) -> IntArray:
        """Return which child is looked at, 0 for none, of some of the roots in so many draws, (roots * draws,).

        One of the children after the first, each as likely: a number below size - 1 out of 32 bits of the hash. The
        bits of further draws are spaced evenly, so that two draws are of one child only where there are too few.
        """
        sizes = self._sizes[part, None]
        others = np.maximum(sizes, 2).astype(np.uint64) - np.uint64(1)
        bits = mixed(self._hashes[part] ^ _DRAW) >> np.uint64(32)
        spaced = bits[:, None] + np.arange(draws, dtype=np.uint64) * np.uint64(2**32 // draws)
        drawn = (spaced & np.uint64(2**32 - 1)) * others >> np.uint64(32)
        return np.where(sizes > 1, 1 + drawn.astype(np.int64), 0).reshape(-1)

    def codes(self, columns: Sequence[str], part: slice, draws: int) -> Codes:
        """Codes of the named columns, of some of the roots, of each so many records."""
        pair, related = self._related.pair, self._related
        drawn = self._drawn(part, draws)
        sizes, starts = (np.repeat(one[part], draws) for one in (self._sizes, self._starts))
        made: dict[str, Array] = {SIZE: sizes.astype(code_dtype(pair[SIZE].size))}
        if POSITION in pair:
            made[POSITION] = np.minimum(drawn, 2).astype(np.uint8)
        own = [name for name in columns if name in self._roots]
        rows = np.repeat(self._rows[part], draws, axis=0)
        made |= dict(zip(own, unpacked(self._roots, own, rows), strict=True))
        at = (np.where(sizes > 0, starts, -1), np.where(drawn > 0, starts + drawn, -1))
        for slot, places in zip(related.slots, (*at, np.where(drawn > 1, at[1] - 1, -1)), strict=False):
            needed = [name for name in related.children.names if slot + name in columns]
            made |= {slot + name: codes for name, codes in zip(needed, self._of(needed, places), strict=True)}
        return [made[name] for name in columns]

    def _of(self, names: Sequence[str], places: IntArray) -> Codes:
        """Codes of the children at these places, absent where there is none, which is -1."""
        children, some = self._related.children, np.flatnonzero(places >= 0)
        result = []
        for name, codes in zip(names, unpacked(children, names, self._children[places[some]]), strict=True):
            absent = children[name].size  # the code after the last one
            column = np.full(len(places), absent, code_dtype(absent + 1))
            column[some] = codes
            result.append(column)
        return result
