"""Hashes that choose what of a person counts."""

from __future__ import annotations

import hashlib

import numpy as np

from dpgm_core.sources.persons import digests, mixed, part_of


def test_digests_are_of_the_texts_alone() -> None:
    """The first 8 bytes of SHA-256, whatever the machine's byte order."""
    texts = [b"", b"abc"]
    assert digests(texts).tolist() == [int.from_bytes(hashlib.sha256(one).digest()[:8], "little") for one in texts]


def test_mixing_is_one_to_one_and_leaves_its_argument() -> None:
    """Near words end far apart: half of the bits differ on average; and none falls on another."""
    words = np.arange(4096, dtype=np.uint64)
    found = mixed(words)
    assert len(np.unique(found)) == len(words) and words.tolist() == list(range(4096))
    flipped = np.unpackbits((found[1:] ^ found[:-1]).view(np.uint8)).sum()  # numpy 1.26 counts no bits
    assert abs(flipped / (len(words) - 1) - 32) < 0.5


def test_parts_are_of_the_texts_alone_and_about_as_many_in_each() -> None:
    """Against the definition in pure Python; 20,000 keys that count up fill 64 parts evenly, as they are fixed."""

    def by_hand(text: bytes, parts: int) -> int:
        found = int(mixed(np.array([len(text)], np.uint64))[0])
        for at in range(len(text), max(0, len(text) - 128), -8):
            word = int.from_bytes(text[max(0, at - 8) : at], "little")
            found = int(mixed(np.array([found ^ word], np.uint64))[0])
        return (found >> 32) * parts >> 32

    texts = [
        b"",
        b"a",
        b"7 bytes",
        b"8 bytes.",
        b"9 bytes..",
        b"x" * 100,
        b"x" * 127 + b"y",
        b"y" + b"x" * 128,
        b"\xff",
    ]
    lengths, letters = np.array(list(map(len, texts))), np.frombuffer(b"".join(texts), np.uint8)
    for parts in (1, 10, 2**16):
        assert part_of(lengths, letters, parts).tolist() == [by_hand(text, parts) for text in texts]
    keys = [b"%d" % number for number in range(20_000)]
    found = part_of(np.array(list(map(len, keys))), np.frombuffer(b"".join(keys), np.uint8), 64)
    assert abs(np.bincount(found, minlength=64) - 20_000 / 64).max() < 5 * (20_000 / 64) ** 0.5
