"""Hashes that choose what of a person counts."""

from __future__ import annotations

import hashlib

import numpy as np

from dpgm_core.sources.hashes import digests, mixed


def test_digests_are_of_the_texts_alone() -> None:
    """The first 8 bytes of SHA-256, whatever the machine's byte order."""
    texts = [b"", b"abc"]
    assert digests(texts).tolist() == [int.from_bytes(hashlib.sha256(one).digest()[:8], "little") for one in texts]


def test_mixing_is_one_to_one_and_leaves_its_argument() -> None:
    """Near words end far apart: half of the bits differ on average; and none falls on another."""
    words = np.arange(4096, dtype=np.uint64)
    found = mixed(words)
    assert len(np.unique(found)) == len(words) and words.tolist() == list(range(4096))
    flipped = np.bitwise_count(found[1:] ^ found[:-1])
    assert abs(flipped.mean() - 32) < 0.5
