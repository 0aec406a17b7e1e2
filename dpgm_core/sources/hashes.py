"""64-bit hashes that say what of a person counts: without favour, and from the person's own rows alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Words", "digests", "mixed"]

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


def digests(texts: Sequence[bytes]) -> Words:
    """The first 8 bytes of the SHA-256 of each text, little-endian.

    >>> hex(digests([b"abc"])[0])
    '0xeacf018fbf1678ba'
    """
    return np.frombuffer(b"".join(hashlib.sha256(text).digest()[:8] for text in texts), np.dtype("<u8"))


def mixed(words: Words) -> Words:
    """Each word through the finaliser of splitmix64 (Steele, Lea and Flood 2014), one to one.

    >>> hex(mixed(np.array([1], np.uint64))[0])
    '0x5692161d100b05e5'
    """
    found = words.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found ^= found >> np.uint64(shift)
        found *= np.uint64(factor)
    return found ^ (found >> np.uint64(31))
