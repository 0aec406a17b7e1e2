"""Votes, cost and distribution: publication of what is stable, as often as (epsilon, delta) allows.

Sensitivity. Let a data set have an output and a whole number d, its distance to instability, such that for all
neighbours (1) d differs by at most 1 and (2) where the outputs differ, d <= 1 for both.

Distribution. The output is published with probability q_d, else nothing:

    q_0 = 0,    q_{d+1} = min(E q_d + delta,  1 - (1 - q_d - delta) / E,  1),    E = e^epsilon.

Cost. This is (epsilon, delta)-DP, and no mechanism that publishes this output or nothing, with a probability that is
a function of d alone, publishes more often at any d.

Proof. Note q_1 = delta, and that q never falls: E q + delta >= q, and 1 - (1 - q - delta) / E >= q as 1 - q - delta is
at most (1 - q), and (1 - q) / E <= 1 - q. (a) Neighbours with one output, at d and d' with |d - d'| <= 1, d < d' say.
The only events are "published" and "nothing". q_d <= E q_d' + delta as q_d <= q_d', and 1 - q_d' <= 1 - q_d likewise;
q_d' <= E q_d + delta by the first bound, and the second is 1 - q_d <= E (1 - q_d') + delta. (b) Neighbours with outputs
f and f': d, d' <= 1, so both publish with probability at most delta. An event with f and without "nothing" has
probability at most delta on the one and so at most delta more than E times anything on the other. An event with
"nothing" has at most 1 on the one, and at least 1 - delta on the other: 1 <= E (1 - delta) + delta, as E >= 1. (c) The
inequalities of (a) are necessary wherever the distances d and d + 1 occur with one output, and q_0 = 0, q_1 <= delta
wherever outputs differ; so by induction no q is greater.

Rounding. E is rounded down to a multiple of 2^-128, which is a smaller epsilon. Each q_{d+1} is computed exactly from
q_d and rounded down to a multiple of 2^-128: the inequalities of (a) bound q_{d+1} from above only, so they hold
exactly for what is drawn. The coin is 128 random bits compared with q_d: always the same two words. Distances beyond a
public table count as its last, which keeps (1) and (2).
"""

from __future__ import annotations

import decimal
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache

from dpgm_core.errors import BudgetError
from dpgm_core.privacy.amounts import decimal_text
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.randomness import Randomness

__all__ = ["draw_publication", "likely_distance", "publication_odds"]

_BITS = 128
#: Longest table of probabilities; longer ones are for budgets at which nothing would ever be published.
_MAX_TABLE_LENGTH = 2**14
#: Deltas below this would leave too few of the coin's bits.
_MIN_DELTA = Fraction(1, 2**100)
#: Greater epsilons are taken for this one; nothing changes by then.
_MAX_EPSILON = 64
_DOWN = decimal.Context(prec=60, rounding=decimal.ROUND_FLOOR)


def publication_odds(budget: Budget) -> tuple[Fraction, ...]:
    """Return the exact distribution: q_0, q_1, ..., up to the first that is 1 or to the end of the table.

    budget: an (epsilon, delta). Raises BudgetError for another kind, and for a delta below 2^-100.

    >>> [round(float(publication_odds(Budget.approx("0.75", "1e-6"))[d]), 2) for d in (16, 18, 20, 22)]
    [0.15, 0.65, 0.92, 0.98]
    """
    return tuple(Fraction(one, 1 << _BITS) for one in _table(budget))


def likely_distance(budget: Budget, chance: Fraction = Fraction(9, 10)) -> int:
    """Return the least distance at which an output is published with at least this probability.

    Raises BudgetError where no distance of the table will do.

    >>> likely_distance(Budget.approx("0.75", "1e-6"))
    20
    """
    table = _table(budget)
    distance = bisect_left(table, chance * (1 << _BITS))
    if distance == len(table):
        raise BudgetError(
            f"{budget} is too little for votes: not even {len(table) - 1:,} records or blocks that agree beyond doubt "
            "would be heard; give a larger epsilon or delta"
        )
    return distance


def draw_publication(distance: int, budget: Budget, randomness: Randomness) -> bool:
    """Draw whether an output at this distance is published: one coin, of two words whatever the distance.

    distance: whole, secret. The result may be published.

    >>> from dpgm_core.randomness import SeededRandomness
    >>> draw_publication(0, Budget.approx(1, "1e-6"), SeededRandomness(1))
    False
    """
    table = _table(budget)
    high, low = (int(word) for word in randomness.words(2))
    return (high << 64 | low) < table[min(distance, len(table) - 1)]


def _table(budget: Budget) -> tuple[int, ...]:
    check_budget(budget)
    if budget.kind != "approx" or not budget.epsilon:
        raise BudgetError(f"votes cost an (epsilon, delta), as delta is what stability spends; got {budget}")
    if budget.delta < _MIN_DELTA:
        raise BudgetError(
            f"votes publish with probability delta where they are least stable, and {decimal_text(budget.delta)} is "
            "below 2^-100, so they would never be heard; give a larger delta"
        )
    return _odds(budget.epsilon, budget.delta)


@lru_cache(maxsize=16)
def _odds(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """Return q_d in units of 2^-128."""
    capped = min(epsilon, Fraction(_MAX_EPSILON))
    # Decimal's exp is correctly rounded, so one digit less in the last place is below.
    power = _DOWN.next_minus(_DOWN.exp(_DOWN.divide(decimal.Decimal(capped.numerator), capped.denominator)))
    whole = 1 << _BITS
    growth = max(whole, int(Fraction(power) * whole))  # E, in the same units
    part, of = delta.numerator, delta.denominator
    odds = [0]
    while odds[-1] < whole and len(odds) < _MAX_TABLE_LENGTH:
        q = odds[-1]
        first = (growth * q * of + part * whole**2) // (of * whole)
        second = whole + ((q - whole) * of + part * whole) * whole // (growth * of)
        odds.append(min(first, second, whole))
    return tuple(odds)
