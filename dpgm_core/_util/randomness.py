"""Sources of random bits: the operating system for releases, a seed for simulations only."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from dpgm_core.errors import OptionError

__all__ = ["Randomness", "SeededRandomness", "SystemRandomness", "randomness_or_system"]

_BLOCK = 1 << 16


class SystemRandomness:
    """Random bits from the operating system, which cannot be repeated.

    >>> SystemRandomness().words(3).shape, SystemRandomness.private
    ((3,), True)
    """

    private = True

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return `count` independent uniform 64-bit words from `os.urandom`.

        >>> SystemRandomness().words(0).tolist()
        []
        """
        # In blocks, because some kernels cut a large single request short.
        parts = [os.urandom(8 * min(_BLOCK, count - done)) for done in range(0, count, _BLOCK)]
        return np.frombuffer(b"".join(parts), dtype=np.uint64)

    def generator(self) -> np.random.Generator:
        """Return a numpy generator seeded by the operating system, for post-processing and never for noise."""
        return np.random.default_rng()

    def __repr__(self) -> str:
        return "SystemRandomness()"


class SeededRandomness:
    """Repeatable random bits (Philox), for simulations only: results are marked `private = false`.

    Parameters
    ----------
    seed : int
        At least 0.

    Raises
    ------
    OptionError
        For another seed.

    Examples
    --------
    >>> SeededRandomness(7).words(2).tolist() == SeededRandomness(7).words(2).tolist()
    True
    >>> SeededRandomness(7).private
    False
    """

    private = False

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
            raise OptionError(f"a seed must be a whole number of at least 0, got {seed!r}")
        self.seed = int(seed)
        words, generator = np.random.SeedSequence(self.seed).spawn(2)
        self._words = np.random.Philox(words)
        self._generator = np.random.Generator(np.random.Philox(generator))

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return the next `count` 64-bit words of the stream."""
        return np.asarray(self._words.random_raw(count), dtype=np.uint64)

    def generator(self) -> np.random.Generator:
        """Return this object's numpy generator, whose stream is independent of `words` and continues between calls."""
        return self._generator

    def __repr__(self) -> str:
        return f"SeededRandomness({self.seed})"


class Randomness(Protocol):
    """Protocol of a source of random bits."""

    @property
    def private(self) -> bool:
        """Whether nobody can repeat these bits; False for any seeded source."""

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return `count` independent uniform 64-bit words."""

    def generator(self) -> np.random.Generator:
        """Return a numpy generator for post-processing, never for the noise of a release."""


def randomness_or_system(randomness: Randomness | None) -> Randomness:
    """Return `randomness`, or the operating system's for None. Raises OptionError for another type.

    >>> randomness_or_system(None)
    SystemRandomness()
    """
    if randomness is None:
        return SystemRandomness()
    if not all(hasattr(randomness, member) for member in ("private", "words", "generator")):
        # A bare seed would otherwise be found out at the first draw, after the charge.
        raise OptionError(
            f"randomness must be a Randomness, got {type(randomness).__name__}; leave it out for the operating "
            "system's, or for simulations use SeededRandomness(seed)"
        )
    return randomness
