"""64-bit hashes that choose which rows of a person count, from the person's own rows alone.

A further hash says where the rows of a person meet, no more, and may be weak.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dpgm_core.arrays import Array, IntArray

__all__ = ["Words", "digests", "mixed", "part_of"]

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

#: 8-byte words of a text that are looked at, from its end; texts that differ before them only are in one part.
_MAX_WORDS = 16


def digests(texts: Sequence[bytes]) -> Words:
    """Return the first 8 bytes of the SHA-256 of each text, little-endian.

    >>> hex(digests([b"abc"])[0])
    '0xeacf018fbf1678ba'
    """
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

    >>> part_of(np.array([1, 0, 1]), np.frombuffer(b"xx", np.uint8), 10).tolist()
    [1, 0, 1]
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
