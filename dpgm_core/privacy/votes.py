"""Private votes: edges that blocks of records vote for, published by propose-test-release.

Sensitivity. What a block votes for is a function of the block alone. One person, whose rows are all in one block, moves
the vote of one block (proof: docs/proofs.md). No plugin's code sees a block. So a data set has an output and a whole
number d, its distance to instability, such that for all neighbours (1) d differs by at most 1 and (2) where the outputs
differ, d <= 1 for both (Dwork and Lei, 2009, Differential privacy and robust statistics, STOC).

Distribution. The output is published with probability q_d, else nothing:

    q_0 = 0,    q_{d+1} = min(E q_d + delta,  1 - (1 - q_d - delta) / E,  1),    E = e^epsilon.

Cost. This is (epsilon, delta)-DP, and no mechanism that publishes this output or nothing, with a probability that is
a function of d alone, publishes more often at any d.

Proof. Before `publication_odds`. Voters: Zhang, Kamath, Kulkarni, Wu (2020), Privately learning Markov random fields.
"""

from __future__ import annotations

import decimal
import math
from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from attrs import field, frozen

from dpgm_core._util.exact_numbers import decimal_text
from dpgm_core._util.randomness import Randomness
from dpgm_core.components.options import flag, positive
from dpgm_core.errors import BudgetError, ModelFileError, OptionError, StructureError
from dpgm_core.privacy.budget import Budget, check_budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.structure import Structure

__all__ = [
    "EdgeVotes",
    "ThresholdVotes",
    "Voter",
    "draw_publication",
    "likely_distance",
    "publication_odds",
    "voter_of",
]

#: Largest number of blocks; the table of probabilities is shorter.
MAX_BLOCKS = 2**16
#: Most products of attributes on which a block regresses where `order` is above 2.
MAX_PRODUCTS = 2**12


def _number(value: Any) -> Any:
    """A float where it is a number; what is none is refused by the validators."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return value


def _pairs(instance: object, attribute: object, value: Any) -> None:
    if not isinstance(value, Structure):
        raise StructureError(f"the candidates of votes must be a Structure of pairs, got {type(value).__name__}")
    if not value.cliques or any(len(group) != 1 or len(group[0]) != 2 for group in value.groups):
        raise StructureError("the candidates of votes must be pairs of attributes, none of them tied")
    if len(set(map(frozenset, value.cliques))) < len(value.cliques):
        raise StructureError("the candidates of votes name a pair twice; name it once")


def _blocks(instance: object, attribute: object, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_BLOCKS:
        raise OptionError(f"blocks must be a whole number from 1 to {MAX_BLOCKS:,}, got {value!r}")


def _order(instance: object, attribute: object, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise OptionError(f"order must be a whole number of at least 2, got {value!r}")


def _check_binary(pairs: Structure, who: str, instead: str) -> None:
    sizes = pairs.domain.sizes
    others = sorted({name for pair in pairs.cliques for name in pair if sizes[name] != 2})
    if others:
        raise StructureError(
            f"votes {who} multiply attributes of two labels, and {', '.join(others[:4])} "
            f"{'has' if len(others) == 1 else 'have'} another number; leave them out, or {instead}"
        )


def _fraction(instance: object, attribute: Any, value: Any) -> None:
    if not (isinstance(value, float) and 0 < value < 1):
        raise OptionError(f"{attribute.name} must be a number between 0 and 1, got {value!r}")


@frozen(kw_only=True)
class EdgeVotes:
    """Each of many random blocks of persons votes for edges by l1-penalised regressions of every attribute.

    pairs: the candidates, of two attributes each. blocks: k0, public. least: the smallest parameter of an edge that
    should be found; a block votes for a pair whose estimate is above least / 2 in size (largest entry of the centred
    table, where attributes have more than two labels). penalty: of the l1 norm, in units of sqrt(log p / records of the
    block), p the number of attributes, or of products. whole: a block votes for one graph instead of for each edge
    (Lemma 5.1 of the source). order: t, attributes of the largest interactions. Above 2 attributes are binary, each is
    regressed on the products of up to t - 1 candidate partners, and a pair has the largest parameter of a product that
    holds both.

    Raises StructureError and OptionError. Source: Zhang, Kamath, Kulkarni, Wu (2020), section 5; Wu, Sanghavi, Dimakis
    (2018) for the regressions; Klivans and Meka (2017), Learning graphical models using multiplicative weights, FOCS,
    for those on products.

    >>> from dpgm_core.domain.domain import Domain
    >>> EdgeVotes(pairs=Structure.complete(Domain.from_sizes({"a": 2, "b": 2})), blocks=90).least
    0.4
    """

    pairs: Structure = field(validator=_pairs)
    blocks: int = field(validator=_blocks)
    least: float = field(default=0.4, converter=_number, validator=positive)
    penalty: float = field(default=0.2, converter=_number, validator=positive)
    whole: bool = field(default=False, validator=flag)
    order: int = field(default=2, validator=_order)

    def __attrs_post_init__(self) -> None:
        if self.order == 2:
            return
        _check_binary(self.pairs, f"of order {self.order}", "set order = 2")
        count = len({name for pair in self.pairs.cliques for name in pair})
        products = 0
        for size in range(1, min(self.order, count + 1)):
            products += math.comb(count, size)
            if products > MAX_PRODUCTS:
                raise OptionError(
                    f"order = {self.order} has blocks regress on all products of up to {self.order - 1} of {count} "
                    f"attributes, and {MAX_PRODUCTS:,} products are the most; set a lower order, or name fewer "
                    "attributes"
                )

    def check(self, terms: Terms) -> None:
        """Any terms will do: all rows of a person are in one block, and N does not enter."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values but for the pairs; see `voter_of`."""
        plain = {"blocks": self.blocks, "least": self.least, "penalty": self.penalty, "whole": self.whole}
        return {"by": "edges", **plain} | ({} if self.order == 2 else {"order": self.order})


@frozen(kw_only=True)
class ThresholdVotes:
    """Each record is a block of its own: an edge is a pair of binary attributes with |sum z_i z_j| > tau N.

    pairs: the candidates. tau: between 0 and 1. N: that of the terms, declared or public. Finds forests whose edges
    correlate by more than tau and whose other pairs by less; a graph with loops is not what it finds.

    Raises StructureError and OptionError. Source: docs/proofs.md, "Votes".

    >>> from dpgm_core.domain.domain import Domain
    >>> pairs = Structure.complete(Domain.from_sizes({"a": 2, "b": 2}))
    >>> ThresholdVotes(pairs=pairs, tau=0.27).check(Terms(neighbours="replace-one"))
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: votes by a threshold hold sums against tau N, and N is not known before ...
    """

    pairs: Structure = field(validator=_pairs)
    tau: float = field(converter=_number, validator=_fraction)

    def __attrs_post_init__(self) -> None:
        _check_binary(self.pairs, "by a threshold", "vote by blocks")

    def check(self, terms: Terms) -> None:
        """Refuse terms under which N is not known when votes are cast. Raises OptionError."""
        if terms.total_policy == "estimated":
            raise OptionError(
                "votes by a threshold hold sums against tau N, and N is not known before the votes; declare the number "
                "of records (total), or vote by blocks"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values but for the pairs; see `voter_of`."""
        return {"by": "threshold", "tau": self.tau}


Voter: TypeAlias = EdgeVotes | ThresholdVotes


def voter_of(plain: object, pairs: Structure) -> Voter:
    """Return the voter over these pairs whose `to_dict` this is. Raises ModelFileError for anything else.

    >>> from dpgm_core.domain.domain import Domain
    >>> pairs = Structure.complete(Domain.from_sizes({"a": 2, "b": 2}))
    >>> voter_of(ThresholdVotes(pairs=pairs, tau=0.3).to_dict(), pairs).tau
    0.3
    """
    kinds: dict[object, tuple[type[EdgeVotes] | type[ThresholdVotes], set[str]]] = {
        "edges": (EdgeVotes, {"blocks", "least", "penalty", "whole"}),
        "threshold": (ThresholdVotes, {"tau"}),
    }
    by = plain.get("by") if isinstance(plain, Mapping) else None
    if not isinstance(plain, Mapping) or not isinstance(by, str) or by not in kinds:
        raise ModelFileError("its votes were cast by no known voter")
    kind, names = kinds[by]
    if by == "edges" and "order" in plain:
        names.add("order")
    if set(plain) != {"by"} | names:
        raise ModelFileError(f"votes by {by} state {', '.join(sorted(names))}")
    try:
        return kind(pairs=pairs, **{name: plain[name] for name in names})
    except (OptionError, StructureError) as error:
        raise ModelFileError(f"its votes are none that a session casts: {error}") from None


# Proof of the cost, with d, q_d and E as in the documentation of the module.
#
# Note q_1 = delta, and that q never falls: E q + delta >= q, and 1 - (1 - q - delta) / E >= q as 1 - q - delta is at
# most (1 - q), and (1 - q) / E <= 1 - q. (a) Neighbours with one output, at d and d' with |d - d'| <= 1, d < d' say.
# The only events are "published" and "nothing". q_d <= E q_d' + delta as q_d <= q_d', and 1 - q_d' <= 1 - q_d likewise;
# q_d' <= E q_d + delta by the first bound, and the second is 1 - q_d <= E (1 - q_d') + delta. (b) Neighbours with
# outputs f and f': d, d' <= 1, so both publish with probability at most delta. An event with f and without "nothing"
# has probability at most delta on the one and so at most delta more than E times anything on the other. An event with
# "nothing" has at most 1 on the one, and at least 1 - delta on the other: 1 <= E (1 - delta) + delta, as E >= 1. (c)
# The inequalities of (a) are necessary wherever the distances d and d + 1 occur with one output, and q_0 = 0,
# q_1 <= delta wherever outputs differ; so by induction no q is greater.
#
# Rounding. E is rounded down to a multiple of 2^-128, which is a smaller epsilon. Each q_{d+1} is computed exactly
# from q_d and rounded down to a multiple of 2^-128: the inequalities of (a) bound q_{d+1} from above only, so they
# hold exactly for what is drawn. The coin is 128 random bits compared with q_d: always the same two words. Distances
# beyond a public table count as its last, which keeps (1) and (2).

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

    >>> from dpgm_core._util.randomness import SeededRandomness
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
