"""Persons: rows grouped by a key, and keyed hashes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core._util.exact_numbers import whole
from dpgm_core.domain.attribute import code_dtype
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import DataError
from dpgm_core.sources.contract import KeyedSource
from dpgm_core.sources.encoding import key_texts
from dpgm_core.sources.reading import BATCH_ROWS, checked_batch, received

__all__ = ["PersonSource", "Words", "checked_keys", "digests", "layout_of", "mixed", "packed", "part_of", "unpacked"]

# Hashes of the person's key and of the row's codes choose the rows: each of a person's rows that differ is as likely
# to count as any other, and the choice is a function of the person's own rows. The smallest rows, say, would be the
# earliest visits where a date comes first, and all that is learned would be of those.


@frozen(kw_only=True)
class PersonSource:
    """At most r rows of each person: the first in an order that hashes of the person's key and of the row's codes give.

    Rows of equal codes are next to each other in it. The choice does not depend on the order of the rows, on batches,
    on the engine that reads them, or on which columns are then counted. Keys are compared as texts (1 and "1" are one
    person); rows whose key is null or empty belong together to one person. A column of floats is refused as keys,
    whatever it holds: large whole numbers merge in it. Memory is O(persons): the chosen rows and their keys stay in
    memory.

    source: a KeyedSource, such as those of dpgm. person: the key's column. rows_per_person: r, at least 1.
    """

    source: KeyedSource = field(metadata={"help": "where the rows are read"})
    person: str = field(metadata={"help": "the column that identifies a person"})
    rows_per_person: int = field(default=1, metadata={"help": "rows that count for each person", "unit": "rows"})

    def __attrs_post_init__(self) -> None:
        whole("rows_per_person", self.rows_per_person, least=1)
        if not isinstance(self.source, KeyedSource):
            raise DataError(
                f"source {type(self.source).__name__} cannot read a person key (it has no keyed_batches); use one of "
                "core's sources, or leave the person key out if each record is a person"
            )

    def batches(self, domain: Domain, columns: Sequence[str]) -> Iterator[Codes]:
        """Codes of the named columns, of the rows that count."""
        _, rows = self.selected(domain)
        for start in range(0, len(rows), BATCH_ROWS):
            yield unpacked(domain, columns, rows[start : start + BATCH_ROWS])

    def grouped(self, domain: Domain, columns: Sequence[str]) -> tuple[Codes, IntArray]:
        """All rows that count at once, person by person, and each person's number of rows."""
        keys, rows = self.selected(domain)
        persons = keys.dictionary_encode(null_encoding="encode").indices.to_numpy()
        starts = np.flatnonzero(np.diff(persons, prepend=-1))
        lengths = np.diff(starts, append=len(persons))
        return unpacked(domain, columns, rows), lengths

    def pieces(self, domain: Domain, columns: Sequence[str]) -> Iterator[tuple[Codes, IntArray]]:
        """The rows that count, in pieces that split no person: codes, and each person's number of rows."""
        codes, lengths = self.grouped(domain, columns)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        first = 0
        while first < len(lengths):
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + BATCH_ROWS, "right")) - 1)
            yield [column[ends[first] : ends[last]] for column in codes], lengths[first:last]
            first = last

    def selected(self, domain: Domain) -> tuple[Any, Words]:
        """The rows that count, packed, and their keys as large_binary, null where there is none; person by person."""
        layout = layout_of(domain)
        keys, rows = pa.array([], pa.large_binary()), np.zeros((0, len(layout)), np.uint64)
        waiting: list[tuple[Any, Words]] = []
        count = 0
        for codes, raw in checked_keys(self.source, domain, self.person):
            waiting.append((key_texts(self.person, raw), packed(layout, codes)))
            count += len(raw)
            if count >= max(len(rows), 8 * BATCH_ROWS):  # at least doubling keeps the sum of all sorts linear
                keys, rows, waiting, count = *self.merged(keys, rows, waiting), [], 0
        return self.merged(keys, rows, waiting)

    def merged(self, keys: Any, rows: Words, waiting: Sequence[tuple[Any, Words]]) -> tuple[Any, Words]:
        """The rows that count of these and of those that wait: keys and packed rows."""
        keys = pa.concat_arrays([keys, *(texts for texts, _ in waiting)])
        rows = np.concatenate([rows, *(words for _, words in waiting)])
        persons = keys.dictionary_encode(null_encoding="encode").indices.to_numpy()
        order = np.lexsort([*rows.T[::-1], self._places(keys, rows, persons), persons])
        persons = persons[order]
        # A row stays unless the row r places before it is of the same person.
        selected = np.ones(len(order), bool)
        selected[self.rows_per_person :] = persons[self.rows_per_person :] != persons[: -self.rows_per_person]
        order = order[selected]
        return keys.take(pa.array(order)), rows[order]

    def _places(self, keys: Any, rows: Words, persons: IntArray) -> Words:
        """Return where each row is among those of its person, who has more than r; 0 for all others."""
        ranks = np.zeros(len(rows), np.uint64)
        many = np.flatnonzero(np.bincount(persons)[persons] > self.rows_per_person) if len(rows) else persons
        if len(many):
            _, first, of = np.unique(persons[many], return_index=True, return_inverse=True)
            texts = keys.take(pa.array(many[first])).to_pylist()
            places = digests([text or b"" for text in texts])[of]
            for word in rows[many].T:
                places = mixed(places ^ word)
            ranks[many] = places
        return ranks


def checked_keys(source: KeyedSource, domain: Domain, key: str) -> Iterator[tuple[Codes, Any]]:
    """Batches of anybody's keyed source: all codes of the domain, made safe to index with, and the raw keys."""
    where = f"source {type(source).__name__}"
    for codes, keys in received(source, lambda: source.keyed_batches(domain, domain.names, key)):
        safe = checked_batch(domain.attributes, codes, where)
        if not isinstance(keys, pa.Array) or len(keys) != len(safe[0]):
            raise DataError(f"{where} must yield one Arrow array of person keys with each batch, a key per record")
        yield safe, keys


# --- Packed rows ----------------------------------------------------------------------------------


def layout_of(domain: Domain) -> list[list[int]]:
    """Sizes of the attributes, grouped into 64-bit words so that words compare as the code tuples do.

    >>> layout_of(Domain.from_sizes({"a": 2**21, "b": 2**21, "c": 2**21, "d": 3}))
    [[2097152, 2097152, 2097152], [3]]
    """
    words: list[list[int]] = [[]]
    cells = 1
    for attribute in domain:
        if cells * attribute.size > 2**63:
            words.append([])
            cells = 1
        words[-1].append(attribute.size)
        cells *= attribute.size
    return words


def packed(layout: Sequence[Sequence[int]], codes: Codes) -> Words:
    """Rows of codes of all attributes as words, (rows, words)."""
    columns = iter(codes)
    rows = np.zeros((len(codes[0]), len(layout)), np.uint64)
    for number, word in enumerate(layout):
        for size in word:
            rows[:, number] *= np.uint64(size)
            rows[:, number] += next(columns)
    return rows


def unpacked(domain: Domain, columns: Sequence[str], rows: Words) -> Codes:
    """The codes of some columns of packed rows.

    >>> domain = Domain.from_sizes({"a": 2, "b": 3})
    >>> unpacked(domain, ["b"], packed(layout_of(domain), [np.array([1], np.uint8), np.array([2], np.uint8)]))
    [array([2], dtype=uint8)]
    """
    codes: list[Words] = []
    for number, word in enumerate(layout_of(domain)):
        left = rows[:, number]
        digits = []
        for size in reversed(word):
            left, digit = np.divmod(left, np.uint64(size))
            digits.append(digit)
        codes += reversed(digits)
    places = [domain.names.index(name) for name in columns]
    return [codes[place].astype(code_dtype(domain.attributes[place].size)) for place in places]


# --- 64-bit hashes --------------------------------------------------------------------------------
# A further hash says where the rows of a person meet, no more, and may be weak.

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

#: 8-byte words of a text that are looked at, from its end; texts that differ before them only are in one part.
_MAX_WORDS = 16


def digests(texts: Sequence[bytes]) -> Words:
    """Return the first 8 bytes of the SHA-256 of each text, little-endian."""
    return np.frombuffer(b"".join(hashlib.sha256(text).digest()[:8] for text in texts), np.dtype("<u8"))


def mixed(words: Words) -> Words:
    """Return each word through the finaliser of splitmix64 (Steele, Lea and Flood 2014), one to one.

    >>> hex(mixed(np.array([1], np.uint64))[0])
    '0x5692161d100b05e5'
    """
    state = words.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state ^= state >> np.uint64(shift)
        state *= np.uint64(factor)
    return state ^ (state >> np.uint64(31))


def part_of(lengths: IntArray, letters: Array, parts: int) -> IntArray:
    """Return the part of each text, 0 ... parts - 1: the same wherever it is computed, and about as many in each.

    lengths: of the texts, (rows,). letters: of all texts, uint8. parts: up to 2^16.
    """
    ends = np.cumsum(lengths)
    padded = np.concatenate([np.zeros(8, np.uint8), letters])
    words: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))  # one that begins at each byte
    hashes = mixed(lengths.astype(np.uint64))
    for number in range(_MAX_WORDS):
        left = lengths - 8 * number
        some = np.flatnonzero(left > 0)
        if not len(some):
            break
        own = words[ends[some] - 8 * number]  # the word that ends there, as the padding is one word
        own = own >> (8 * np.maximum(0, 8 - left[some])).astype(np.uint64)  # without the letters of the text before
        hashes[some] = mixed(hashes[some] ^ own)
    return ((hashes >> np.uint64(32)) * np.uint64(parts) >> np.uint64(32)).astype(np.uint16)
