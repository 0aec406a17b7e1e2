"""Exact samplers on random bits, shared by mechanisms: integer arithmetic only, vectorised.

No floating-point number occurs on the way from the random words to the noise, so none of the attacks on rounded
noise (Mironov 2012) applies. All functions see the public scale and the random words, never a record; how long they
run depends on the noise drawn and on nothing else. They end with probability one.

Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, arXiv 2004.00010,
Algorithms 1 and 2.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpgm_core.errors import BudgetError

if TYPE_CHECKING:
    from dpgm_core.protocols import Randomness
    from dpgm_core.tables import IntArray

__all__ = ["SCALE_LIMIT", "bernoulli_exp", "discrete_laplace", "uniform_below"]

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Bits: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

#: Numerator and denominator of a scale stay below it, so that every product fits 64 bits.
SCALE_LIMIT = 1 << 32

# Blocks of exp(-1) a sample may climb; with a 32-bit numerator |noise| stays below 2**62. See discrete_laplace.
_MOST_BLOCKS = (1 << 30) - 1

_CHUNK = 1 << 15  # trials at a time: the arrays stay in the cache and memory is bounded


def uniform_below(bound: int, count: int, randomness: Randomness) -> Words:
    """`count` independent uniform whole numbers from 0 to bound - 1, without modulo bias.

    Words at or above the last multiple of `bound` below 2^64 are drawn again. bound: 1 to 2^64.

    >>> from dpgm_core.randomness import SeededRandomness
    >>> bool((uniform_below(6, 1000, SeededRandomness(1)) < 6).all())
    True
    """
    if bound == 1:
        return np.zeros(count, dtype=np.uint64)
    words = np.array(randomness.words(count))
    last = np.uint64((1 << 64) - (1 << 64) % bound - 1)
    while (again := np.flatnonzero(words > last)).size:
        words[again] = randomness.words(again.size)
    return words if bound == 1 << 64 else words % np.uint64(bound)


def bernoulli_exp(numerators: Words, denominator: int, randomness: Randomness) -> Bits:
    """One exact Bernoulli(exp(-gamma)) per gamma = numerator / denominator, each from 0 to 1.

    Algorithm 1 for gamma <= 1: with A_k ~ Bernoulli(gamma / k), the first k whose A_k fails is odd with probability
    exp(-gamma). Bernoulli(gamma / k) is drawn as Bernoulli(1 / k) and Bernoulli(gamma), so no product can overflow.

    >>> from dpgm_core.randomness import SeededRandomness
    >>> bernoulli_exp(np.zeros(3, dtype=np.uint64), 5, SeededRandomness(1)).tolist()
    [True, True, True]
    """
    odd = np.ones(len(numerators), dtype=np.bool_)
    alive = np.arange(len(numerators))
    for k in itertools.count(1):
        alive = alive[uniform_below(k, alive.size, randomness) == 0]
        alive = alive[uniform_below(denominator, alive.size, randomness) < numerators[alive]]
        if not alive.size:
            break
        odd[alive] ^= True
    return odd


def discrete_laplace(scale: Fraction, count: int, randomness: Randomness) -> IntArray:
    """`count` independent whole numbers z with probability proportional to exp(-|z| / scale); int64, exact.

    scale: records, positive; numerator and denominator below 2^32. count: at least 0. Every |z| is below 2^62, so
    adding it to counts below 2^62 cannot overflow: the law is cut there, which has probability below exp(-2^29) per
    draw and would take a billion rounds to reach. Raises BudgetError for other scales.

    Source: Canonne, Kamath, Steinke (2020), Algorithm 2 (their t / s is the scale).

    >>> from dpgm_core.randomness import SeededRandomness
    >>> discrete_laplace(Fraction(24), 4, SeededRandomness(1)).dtype
    dtype('int64')
    """
    if not isinstance(scale, Fraction) or not 0 < scale.numerator < SCALE_LIMIT or scale.denominator >= SCALE_LIMIT:
        raise BudgetError(
            f"discrete Laplace noise needs a positive Fraction with both parts below 2**32 as its scale; got {scale!r}"
        )
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BudgetError(f"the number of noise values must be a whole number of at least 0, got {count!r}")
    noise = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        # Every trial stands for itself, so keeping the first accepted ones and dropping the rest changes no law.
        drawn = _trials(scale, min(_CHUNK, 2 * (count - done) + 16), randomness)[: count - done]
        noise[done : done + drawn.size] = drawn
        done += drawn.size
    return noise


def _trials(scale: Fraction, trials: int, randomness: Randomness) -> IntArray:
    """One pass of Algorithm 2 for each trial; those it rejects are left out."""
    t, s = scale.numerator, scale.denominator
    # X = U + t V has mass proportional to exp(-x / t): U below t, kept with probability exp(-U / t), V blocks of t
    low = uniform_below(t, trials, randomness)
    low = low[bernoulli_exp(low, t, randomness)]
    x = low.astype(np.int64) + t * _blocks(low.size, randomness)
    # Y = floor(X / s) has mass proportional to exp(-y s / t); a sign makes it two-sided, (-, 0) must not count twice
    y = x // s
    negative = uniform_below(2, y.size, randomness) == 1
    noise: IntArray = np.where(negative, -y, y)[~(negative & (y == 0))]
    return noise


def _blocks(count: int, randomness: Randomness) -> IntArray:
    """How many Bernoulli(exp(-1)) succeed in a row, `count` times."""
    blocks = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    for _ in range(_MOST_BLOCKS):
        alive = alive[bernoulli_exp(np.ones(alive.size, dtype=np.uint64), 1, randomness)]
        if not alive.size:
            break
        blocks[alive] += 1
    return blocks
