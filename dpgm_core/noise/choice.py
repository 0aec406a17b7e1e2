"""Selection, cost and distribution: the exponential mechanism over whole-numbered scores.

It is exact, and takes a time that does not depend on the scores.

Distribution. Candidate c is chosen with probability proportional to w[k_c], k_c = min(max score - score_c, K), w a
public table with w[k] = round(2^62 exp(-h k)) and h K at most 28 ln 2. Of 128 random bits, U, the candidate is taken in
whose share of the cumulated weights floor(U total / 2^128) lies: always the same two words, no rejection.

Cost. Let one person move the vector of scores by v with max v - min v <= R. Then the choice is e-DP, e = h R + 2^-30,
and e^2/8-zCDP.

Proof. Clamping at K is max(score, max - K). Where scores move by between min v and max v, so does their maximum, and so
do clamped scores: the range of what the weights see stays R. A weight differs from 2^62 exp(-h k) by rounding, a
relative 2^-34 at most as the least weight is above 2^33, and by a double's exp, below 2^-45. Each probability differs
from weight / total by less than 2^-128, relative 2^-78, as no share is below 2^-29 / 40,000. So log P(c) - h score_c,
scores clamped, is a constant up to 2^-33 for either data set, and log P(c) - log P'(c) varies over c by at most
h R + 4 * 2^-33: the mechanism has that bounded range. Its values are on both sides of 0, so it is e-DP, and by Cesar
and Rogers (2021), Bounding, concentrating, and truncating, (e^2/8)-zCDP.

Sensitivity. Scores that one person moves by at most U units each, up or down, have R = 2 U; that is where the
textbook's factor 1/2 stands, h = e / (2 U). It may be left out only for scores that all move the same way, which
distances do not.
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from dpgm_core.arrays import IntArray
from dpgm_core.errors import BudgetError
from dpgm_core.privacy.amounts import decimal_text, sqrt_floor, whole
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.scores import SCORE_GRID
from dpgm_core.randomness import Randomness

__all__ = [
    "MAX_TABLE_LENGTH",
    "MAX_TEMPERATURE",
    "MIN_TABLE_LENGTH",
    "MIN_TEMPERATURE",
    "SLACK",
    "choose_units",
    "cost_of",
    "draw_candidates",
    "entries",
    "probabilities",
    "rounded_down",
    "temperature",
]

#: What is charged beyond h R, for the rounding of the weights.
SLACK = Fraction(1, 2**30)
#: Entries of a table; more would be slow to make and not stay in the cache.
MAX_TABLE_LENGTH, MIN_TABLE_LENGTH = 2**20, 2
#: And at most so many where scores are in units of less than a record.
_SMALL_TABLE = 2**18
_MAX_EXPONENT = 28 * math.log(2)  # of h K
_WEIGHT, _WORD = 62, 128
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
_DIGITS = 10**24  # temperatures are multiples of its inverse


def rounded_down(h: Fraction) -> Fraction:
    """Return the temperature rounded down to 24 decimals.

    >>> rounded_down(Fraction(1, 3)) < Fraction(1, 3)
    True
    """
    return Fraction(math.floor(h * _DIGITS), _DIGITS)


#: What has a table; a larger h would choose the best with certainty to 28 bits, whatever the rest.
MIN_TEMPERATURE = Fraction(_MAX_EXPONENT) / MAX_TABLE_LENGTH
MAX_TEMPERATURE = rounded_down(Fraction(_MAX_EXPONENT) / (MIN_TABLE_LENGTH - 1))


def temperature(budget: Budget, picks: int, move: int) -> Fraction:
    """Return the temperature of choices that cost a budget: the calibration of the exponential mechanism.

    Parameters
    ----------
    budget : Budget
        Of all picks together; pure or zCDP.
    picks : int
        The number of choices.
    move : int
        U, the units by which one person moves a score at most; at least 1.

    Returns
    -------
    Fraction
        h, rounded down, so that `cost_of` is at most the budget.

    Raises
    ------
    BudgetError
        Where h would be so small that there is no table of weights for it, and for an (epsilon, delta).

    Examples
    --------
    >>> float(temperature(Budget.pure(1), 10, 1))
    0.049999...
    """
    whole("the number of picks", picks, least=1)
    whole("how far one person moves a score", move, least=1)
    if budget.kind == "approx":
        raise BudgetError(f"a choice costs epsilon or rho, not {budget}; give it its share of the session's rho")
    each = budget.epsilon / picks if budget.kind == "pure" else sqrt_floor(8 * budget.rho / picks)
    h = rounded_down(max(each - SLACK, Fraction(0)) / (2 * move))
    if not h or entries(h) > MAX_TABLE_LENGTH:
        # A little more than the least, so that what is said in six digits is enough.
        least = (MIN_TEMPERATURE * 2 * move + SLACK) * Fraction(100_001, 100_000)
        would = (
            f"epsilon = {decimal_text(least * picks)}"
            if budget.kind == "pure"
            else f"rho = {decimal_text(least**2 / 8 * picks)}"
        )
        raise BudgetError(
            f"{budget} for {picks} pick(s) is too little to choose by: every candidate would be as likely as any "
            f"other; give at least {would}, or choose less often"
        )
    return min(h, MAX_TEMPERATURE)


def choose_units(budget: Budget, picks: int, person: int) -> tuple[int, Fraction]:
    """Return the units of a record for scores, and the temperature per unit, as fine as a small table allows.

    Units are finer than a record where choices are sharp. person: by how many records one person moves a score at most.
    Raises BudgetError like `temperature`.

    >>> choose_units(Budget.pure(1), 1, 1)[0]
    1024
    """
    grid = SCORE_GRID
    while grid > 1:
        with suppress(BudgetError):
            h = temperature(budget, picks, grid * person)
            if entries(h) <= _SMALL_TABLE:
                return grid, h
        grid //= 2
    return 1, temperature(budget, picks, person)


def cost_of(h: Fraction, picks: int, move: int, kind: Literal["pure", "zcdp"]) -> Budget:
    """Return the cost of so many picks at temperature h, pure or zCDP: that of the module, composed.

    >>> print(cost_of(Fraction(1, 20), 10, 1, "pure"))
    epsilon = ~1
    """
    each = 2 * h * move + SLACK
    return Budget("pure", epsilon=picks * each) if kind == "pure" else Budget("zcdp", rho=picks * each**2 / 8)


def draw_candidates(scores: IntArray, h: Fraction, picks: int, randomness: Randomness) -> list[int]:
    """Draw `picks` candidates without replacement, each by the exponential mechanism among those left.

    scores: (candidates,), whole numbers. Source of the cost of several picks: Durfee and Rogers (2019).

    >>> from dpgm_core.randomness import SeededRandomness
    >>> draw_candidates(np.array([0, 4000, 0]), Fraction(1, 20), 1, SeededRandomness(1))
    [1]
    """
    left = np.arange(len(scores))
    picked = []
    for _ in range(picks):
        above, below = _cumulated(scores[left], h)
        high, low = (int(word) for word in randomness.words(2))
        share = ((high << 64 | low) * ((int(above[-1]) << 32) + int(below[-1]))) >> _WORD
        first, second = np.uint64(share >> 32), np.uint64(share & 2**32 - 1)
        # how many totals are at most the share; all are looked at, whatever it is
        place = int(np.count_nonzero((above < first) | ((above == first) & (below <= second))))
        picked.append(int(left[place]))
        left = np.delete(left, place)
    return picked


def probabilities(scores: IntArray, h: Fraction) -> list[Fraction]:
    """Return the exact distribution of one pick: the probability of each candidate.

    >>> [float(one) for one in probabilities(np.array([3, 3]), Fraction(1, 20))]
    [0.5, 0.5]
    """
    cumulated = [0, *((int(one) << 32) + int(other) for one, other in zip(*_cumulated(scores, h), strict=True))]
    # The words U with U total / 2^128 >= cumulated begin at its quotient, rounded up.
    starts = [-(-(one << _WORD) // cumulated[-1]) for one in cumulated]
    return [Fraction(end - start, 1 << _WORD) for start, end in itertools.pairwise(starts)]


def entries(h: Fraction) -> int:
    """Return the length of the table of weights of a temperature: those that are not below 2^-28 of the largest.

    >>> entries(Fraction(1, 20))
    389
    """
    return math.floor(_MAX_EXPONENT / h) + 1


def _cumulated(scores: IntArray, h: Fraction) -> tuple[_Words, _Words]:
    """Return the sums of weights up to each candidate, above 2^32 and below, as they have more than 64 bits."""
    table = _table(h)
    weights = table[np.minimum(scores.max() - scores, len(table) - 1)]
    half, rest = np.uint64(32), np.uint64(2**32 - 1)
    above, below = np.cumsum(weights >> half, dtype=np.uint64), np.cumsum(weights & rest, dtype=np.uint64)
    return above + (below >> half), below & rest


@lru_cache(maxsize=8)
def _table(h: Fraction) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the weights w[0], ..., w[K]."""
    steps = np.arange(entries(h))
    weights: np.ndarray[Any, np.dtype[np.uint64]] = np.rint(np.exp(-float(h) * steps) * 2.0**_WEIGHT).astype(np.uint64)
    weights.flags.writeable = False
    return weights
