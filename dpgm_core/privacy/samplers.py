"""Exact samplers on random bits, shared by mechanisms: integer arithmetic only, vectorised.

No floating-point number occurs on the way from the random words to the noise, so none of the attacks on rounded
noise (Mironov 2012) applies. All functions see the public scale and the random words, never a record; how long they
run depends on the noise drawn and on nothing else. They end with probability one.

Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, arXiv 2004.00010,
Algorithms 1, 2 and 3.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias

import numpy as np

from dpgm_core._util.arrays import IntArray
from dpgm_core._util.exact_numbers import whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError

__all__ = ["SCALE_LIMIT", "VARIANCE_LIMIT", "bounded_variance", "discrete_gaussian", "discrete_laplace"]

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Bits: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

#: Numerator and denominator of a scale stay below it, so that every product fits 64 bits.
SCALE_LIMIT = 1 << 32

#: The largest variance parameter of discrete Gaussian noise, records**2.
VARIANCE_LIMIT = 1 << 58

# Numerator and denominator of sigma^2 / t stay below it, so that 2 t * numerator * denominator stays below 2^63.
_PEAK_PARTS = 1 << 30

# Blocks of exp(-1) a sample may climb; with a 32-bit numerator |noise| stays below 2**62. See discrete_laplace.
_MAX_BLOCKS = (1 << 30) - 1

_CHUNK = 1 << 15  # trials at a time: the arrays stay in the cache and memory is bounded


def uniform_below(bound: int, count: int, randomness: Randomness) -> Words:
    """`count` independent uniform whole numbers from 0 to bound - 1, without modulo bias.

    Words at or above the last multiple of `bound` below 2^64 are drawn again. bound: 1 to 2^64.
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
    """Return independent whole numbers z with probability proportional to exp(-|z| / scale), exactly.

    Parameters
    ----------
    scale : Fraction
        In records, positive; numerator and denominator below 2^32.
    count : int
        How many.
    randomness : Randomness
        The source of random words.

    Returns
    -------
    ndarray of int64, shape (count,)
        Every |z| is below 2^62, so adding it to counts below 2^62 cannot overflow.

    Raises
    ------
    BudgetError
        For other scales.

    Notes
    -----
    Canonne, Kamath, Steinke (2020), Algorithm 2 (their t / s is the scale). The distribution is cut at 2^62, which has
    probability below exp(-2^29) per draw and would take a billion rounds to reach.

    Examples
    --------
    >>> from dpgm_core._util.randomness import SeededRandomness
    >>> discrete_laplace(Fraction(24), 4, SeededRandomness(1)).dtype
    dtype('int64')
    """
    if not isinstance(scale, Fraction) or not 0 < scale.numerator < SCALE_LIMIT or scale.denominator >= SCALE_LIMIT:
        raise BudgetError(
            f"discrete Laplace noise needs a positive Fraction with both parts below 2**32 as its scale; got {scale!r}"
        )
    whole("the number of noise values", count, least=0)
    noise = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        # Trials are independent, so keeping the first accepted ones and dropping the rest changes no distribution.
        drawn = _trials(scale, min(_CHUNK, 2 * (count - done) + 16), randomness)[: count - done]
        noise[done : done + drawn.size] = drawn
        done += drawn.size
    return noise


def _trials(scale: Fraction, trials: int, randomness: Randomness) -> IntArray:
    """Return the accepted results of one pass of Algorithm 2 for each trial."""
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
    """Return how many Bernoulli(exp(-1)) succeed in a row, `count` times."""
    blocks = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    for _ in range(_MAX_BLOCKS):
        alive = alive[bernoulli_exp(np.ones(alive.size, dtype=np.uint64), 1, randomness)]
        if not alive.size:
            break
        blocks[alive] += 1
    return blocks


def discrete_gaussian(variance: Fraction, count: int, randomness: Randomness) -> IntArray:
    """Return independent whole numbers z with probability proportional to exp(-z^2 / (2 variance)), exactly.

    Parameters
    ----------
    variance : Fraction
        The parameter sigma^2, records**2, as `bounded_variance` rounds it.
    count : int
        How many.
    randomness : Randomness
        The source of random words.

    Returns
    -------
    ndarray of int64, shape (count,)
        |z| stays below 2^60.

    Raises
    ------
    BudgetError
        For other variances.

    Notes
    -----
    Canonne, Kamath, Steinke (2020), Algorithm 3. With t = floor(sigma) + 1, both parts of sigma^2 / t are below 2^30.
    What lies beyond the cut of `discrete_laplace` has probability below exp(-2^50).

    Examples
    --------
    >>> from dpgm_core._util.randomness import SeededRandomness
    >>> discrete_gaussian(Fraction(400), 4, SeededRandomness(1)).dtype
    dtype('int64')
    """
    if not isinstance(variance, Fraction) or not _is_bounded(variance):
        raise BudgetError(
            f"discrete Gaussian noise needs a positive Fraction from bounded_variance(), got {variance!r}"
        )
    whole("the number of noise values", count, least=0)
    t = isqrt(variance // 1) + 1
    peak = Fraction(variance, t)  # where exp(-z^2 / (2 variance)) and exp(-|z| / t) touch
    noise = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        trials = min(_CHUNK, 2 * (count - done) + 16)
        z = discrete_laplace(Fraction(t), trials, randomness)
        # accept with probability exp(-(|z| - peak)^2 / (2 variance)), both sides times the denominator of the peak
        roots = np.abs(np.abs(z) * peak.denominator - peak.numerator)
        z = z[bernoulli_exp_square(roots, 2 * t * peak.numerator * peak.denominator, randomness)][: count - done]
        noise[done : done + z.size] = z
        done += z.size
    return noise


def bernoulli_exp_square(roots: IntArray, denominator: int, randomness: Randomness) -> Bits:
    """One exact Bernoulli(exp(-root^2 / denominator)) per root >= 0; 2 <= denominator < 2^63.

    With unit^2 <= denominator and root = k unit + rest, root^2 = rest^2 + 2k (unit rest) + k^2 (unit^2): a success in
    each of (k + 1)^2 Bernoullis whose exponents are at most 1. No number exceeds 64 bits.
    """
    unit = isqrt(denominator)
    # Cut at 2^25, so that its square fits: the probabilities beyond are below exp(-2^48) instead of smaller still.
    k = np.minimum(roots // unit, 1 << 25)
    rest = roots % unit
    success = np.ones(len(roots), dtype=np.bool_)
    alive = np.arange(len(roots))
    for step in itertools.count():
        alive = alive[step < (k[alive] + 1) ** 2]
        if not alive.size:
            break
        # factor 0 is the rest's, 1 to 2k the mixed ones, then k^2 of the unit's
        first = rest[alive] if step == 0 else np.full(alive.size, unit)
        second = rest[alive] if step == 0 else np.where(step <= 2 * k[alive], rest[alive], unit)
        passed = bernoulli_exp((first * second).astype(np.uint64), denominator, randomness)
        success[alive[~passed]] = False
        alive = alive[passed]
    return success


def bounded_variance(variance: Fraction) -> Fraction:
    """Return the variance, or one just above it (within 2^-28 from 1 on), that `discrete_gaussian` can draw.

    Parameters
    ----------
    variance : Fraction
        In records**2, positive, at most 2^58 (sigma of 2^29 records).

    Raises
    ------
    BudgetError
        For other variances.

    Examples
    --------
    >>> bounded_variance(Fraction(12, 7)), float(bounded_variance(Fraction(10**40, 3 * 10**38 + 1)))
    (Fraction(12, 7), 33.333333...)
    """
    if not 0 < variance <= VARIANCE_LIMIT and not _is_bounded(variance):
        raise BudgetError("noise needs a positive variance; wider than sigma = 2**29 is too wide for 64-bit counts")
    while not _is_bounded(variance):
        t = isqrt(variance // 1) + 1
        peak = Fraction(variance, t)
        bottom = min(_PEAK_PARTS - 1, (_PEAK_PARTS - 1) // peak)
        variance = t * Fraction(-(-peak * bottom // 1), bottom)
    return variance


def _is_bounded(variance: Fraction) -> bool:
    """Whether both parts of variance / t are below 2^30."""
    return variance > 0 and max(Fraction(variance, isqrt(variance // 1) + 1).as_integer_ratio()) < _PEAK_PARTS
