"""Votes, sensitivity: what blocks of records vote for, as core's own named values; no plugin's code sees a block.

What a block votes for is a function of the block alone. One person, whose rows are all in one block, moves the vote of
one block (proof: docs/privacy.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from dpgm_core.errors import ModelFileError, OptionError, StructureError
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure import Structure

__all__ = ["MAX_BLOCKS", "EdgeVotes", "ThresholdVotes", "Voter", "voter_of"]

#: More than the longest table of `dpgm_core.noise.stability` has a use for.
MAX_BLOCKS = 2**16


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


def _positive(instance: object, attribute: Any, value: Any) -> None:
    if not (isinstance(value, float) and 0 < value < math.inf):
        raise OptionError(f"{attribute.name} must be a finite number above 0, got {value!r}")


def _fraction(instance: object, attribute: Any, value: Any) -> None:
    if not (isinstance(value, float) and 0 < value < 1):
        raise OptionError(f"{attribute.name} must be a number between 0 and 1, got {value!r}")


def _flag(instance: object, attribute: Any, value: Any) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{attribute.name} must be true or false, got {value!r}")


@frozen(kw_only=True)
class EdgeVotes:
    """Each of many random blocks of persons votes for edges by l1-penalised regressions of every attribute.

    pairs: the candidates, of two attributes each. blocks: k0, public. least: the smallest parameter of an edge that
    should be found; a block votes for a pair whose estimate is above least / 2 in size (largest entry of the centred
    table, where attributes have more than two labels). penalty: of the l1 norm, in units of sqrt(log p / records of the
    block), p the number of attributes. whole: a block votes for one graph instead of for each edge (Lemma 5.1 of the
    source).

    Raises StructureError and OptionError. Source: Zhang, Kamath, Kulkarni, Wu (2020), section 5; Wu, Sanghavi, Dimakis
    (2018) for the regressions.

    >>> from dpgm_core.domain import Domain
    >>> EdgeVotes(pairs=Structure.complete(Domain.from_sizes({"a": 2, "b": 2})), blocks=90).least
    0.4
    """

    pairs: Structure = field(validator=_pairs)
    blocks: int = field(validator=_blocks)
    least: float = field(default=0.4, converter=_number, validator=_positive)
    penalty: float = field(default=0.2, converter=_number, validator=_positive)
    whole: bool = field(default=False, validator=_flag)

    def check(self, terms: Terms) -> None:
        """Any terms will do: all rows of a person are in one block, and N does not enter."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values but for the pairs; see `voter_of`."""
        return {
            "by": "edges",
            "blocks": self.blocks,
            "least": self.least,
            "penalty": self.penalty,
            "whole": self.whole,
        }


@frozen(kw_only=True)
class ThresholdVotes:
    """Each record is a block of its own: an edge is a pair of binary attributes with |sum z_i z_j| > tau N.

    pairs: the candidates. tau: between 0 and 1. N: that of the terms, declared or public. Finds forests whose edges
    correlate by more than tau and whose other pairs by less; a graph with loops is not what it finds.

    Raises StructureError and OptionError. Source: docs/privacy.md, "Votes".

    >>> from dpgm_core.domain import Domain
    >>> pairs = Structure.complete(Domain.from_sizes({"a": 2, "b": 2}))
    >>> ThresholdVotes(pairs=pairs, tau=0.27).check(Terms(neighbours="replace-one"))
    Traceback (most recent call last):
    dpgm_core.errors.OptionError: votes by a threshold hold sums against tau N, and N is not known before ...
    """

    pairs: Structure = field(validator=_pairs)
    tau: float = field(converter=_number, validator=_fraction)

    def __attrs_post_init__(self) -> None:
        sizes = self.pairs.domain.sizes
        others = sorted({name for pair in self.pairs.cliques for name in pair if sizes[name] != 2})
        if others:
            raise StructureError(
                f"votes by a threshold multiply attributes of two labels, and {', '.join(others[:4])} "
                f"{'has' if len(others) == 1 else 'have'} another number; leave them out, or vote by blocks"
            )

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

    >>> from dpgm_core.domain import Domain
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
    if set(plain) != {"by"} | names:
        raise ModelFileError(f"votes by {by} state {', '.join(sorted(names))}")
    try:
        return kind(pairs=pairs, **{name: plain[name] for name in names})
    except (OptionError, StructureError) as error:
        raise ModelFileError(f"its votes are none that a session casts: {error}") from None
