"""Holdout: a share of the budget, and the pairs of attributes that it measures to test a structure.

The pairs are such that no clique holds both attributes. Nobody learns from their tables; they are compared with what a
model says of them (see `dpgm_core.models.misfit`).

Sensitivity. That of the tables of pairs, `Sensitivity.of`.

Cost. `Split.divide`: a share of the budget for the holdout, the rest for the tables, together exactly the budget.

Distribution. The pairs are drawn without replacement, each as likely, and their tables have the noise of any other
measurement (`dpgm_core.privacy.measurement`).

Proof. The pairs are drawn from public facts, or from what a selection has released, and from random bits, so that
choosing them costs nothing (post-processing); the measurement is one more release, and costs add up (Dwork and Roth,
2014, The algorithmic foundations of differential privacy, Proposition 2.1 and Theorem 3.16).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import field, frozen

from dpgm_core._util.exact_numbers import Amount, amount
from dpgm_core.errors import BudgetError, OptionError, StructureError, did_you_mean
from dpgm_core.privacy.budget import Budget
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "Split",
    "candidate_pairs",
    "check_split",
    "chosen_pairs",
    "holdout_share",
    "may_be_contrasts",
    "pairs_to_check",
    "unmeasured_pairs",
]

#: Most pairs that are measured; see `chosen_pairs`.
MAX_PAIRS = 12
#: A pair with more cells is not drawn: it says little for what it would hold in memory.
_MAX_CELLS = 2**17


def holdout_share(share: Amount) -> Fraction:
    """Return the share of a holdout as an exact number; 0 is none. Raises OptionError for what is no share.

    >>> holdout_share(0.05), holdout_share(0)
    (Fraction(1, 20), Fraction(0, 1))
    """
    try:
        exact = amount("the share of the holdout", share, zero=True)
    except BudgetError as error:
        raise OptionError(str(error)) from None
    if exact >= 1:
        raise OptionError(f"the share of the holdout must be below 1, such as 0.05; got {share!r}")
    return exact


#: even: one noise for all tables. optimal: see `optimal_split`. contrasts: one noise for sums of products of binary
#: attributes, one for each set inside a clique, in place of tables; see `dpgm_core.privacy.contrasts`. sharper:
#: contrasts, or "even" where these have more noise or there are none.
SPLITS = ("even", "optimal", "contrasts", "sharper")


def check_split(split: object) -> str:
    """The name of a way to split, or OptionError.

    >>> check_split("even")
    'even'
    """
    if not isinstance(split, str) or split not in SPLITS:
        raise OptionError(f"split must be one of {', '.join(SPLITS)}; got {split!r}{did_you_mean(str(split), SPLITS)}")
    return split


def may_be_contrasts(split: str) -> bool:
    """Whether contrasts may come out of it, which not every learner takes.

    >>> [may_be_contrasts(split) for split in SPLITS]
    [False, False, True, True]
    """
    return split in ("contrasts", "sharper")


@frozen
class Split:
    """How a budget is divided: a share for a holdout first, then the rest over the tables.

    Parameters
    ----------
    tables : str
        One of `SPLITS`.
    holdout : Fraction
        Share of the budget for the holdout, 0 (none) to below 1.

    Raises
    ------
    OptionError
        For another word, or what is no share.

    Examples
    --------
    >>> Split.of("optimal").holdout, Split.of({"holdout": 0.05})
    (Fraction(0, 1), Split(tables='even', holdout=Fraction(1, 20)))
    """

    tables: str = field(default="even", converter=check_split)
    holdout: Fraction = field(default=Fraction(0), converter=holdout_share)

    @classmethod
    def of(cls, split: Split | str | Mapping[str, Any]) -> Split:
        """Read a split from a word, or from a mapping of `tables` and `holdout` ("even" and 0 where left out)."""
        if isinstance(split, Split):
            return split
        if not isinstance(split, Mapping):
            return cls(tables=split)
        for key in split:
            if key not in ("tables", "holdout", "check"):  # the last is an earlier spelling of holdout
                raise OptionError(
                    f"a split has tables and holdout, but no {key!r}{did_you_mean(str(key), ['tables', 'holdout'])}"
                )
        if "check" in split and "holdout" in split:
            raise OptionError("a split has both holdout and check, which mean the same; keep holdout")
        return cls(split.get("tables", "even"), split.get("holdout", split.get("check", 0)))

    def divide(self, budget: Budget) -> tuple[Budget | None, Budget]:
        """Return what the holdout may cost, None without one, and what is left; together exactly the budget.

        >>> Split(holdout=Fraction(1, 20)).divide(Budget.pure(1)) == (Budget.pure("0.05"), Budget.pure("0.95"))
        True
        """
        if not self.holdout:
            return None, budget
        own = budget * self.holdout
        return own, budget - own


def unmeasured_pairs(structure: Structure) -> list[Clique]:
    """Return the pairs of attributes that are each in some clique, but in none together, in the order of the domain.

    >>> from dpgm_core.domain.domain import Domain
    >>> unmeasured_pairs(Structure.chain(Domain.from_sizes(dict.fromkeys("abcd", 2))))
    [('a', 'c'), ('a', 'd'), ('b', 'd')]
    """
    measured = {name for clique in structure.cliques for name in clique}
    names = [name for name in structure.domain.names if name in measured and structure.domain[name].size > 1]
    adjacency = structure.adjacency
    return [(one, two) for one, two in itertools.combinations(names, 2) if two not in adjacency[one]]


def chosen_pairs(structure: Structure, generator: np.random.Generator, most: int | None = None) -> Structure:
    """Draw the pairs of a holdout: `most` of the unmeasured ones (None: 12), without replacement, each as likely.

    Few pairs would have less noise each, but misfit sits in some pairs and not in others, and whoever sees few may miss
    those; `python -m benchmarks.misfit` is what the number was chosen by. Raises StructureError where there is no pair
    to draw.
    """
    pairs = [pair for pair in unmeasured_pairs(structure) if math.prod(structure.domain.shape(pair)) <= _MAX_CELLS]
    if not pairs:
        raise StructureError(
            "a holdout needs a pair of measured attributes that no clique holds together, and there is none; leave "
            "the holdout out"
        )
    return _draw_pairs(structure, pairs, generator, MAX_PAIRS if most is None else most)


def pairs_to_check(structure: Structure, generator: np.random.Generator, among: Collection[Clique]) -> Structure | None:
    """Draw the pairs of a holdout after a selection: as `chosen_pairs`, of those among the candidates; None for none.

    >>> from dpgm_core.domain.domain import Domain
    >>> chain = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
    >>> pairs_to_check(chain, np.random.default_rng(0), [("a", "c")]).cliques
    (('a', 'c'),)
    """
    pairs = candidate_pairs(structure, among)
    return _draw_pairs(structure, pairs, generator, MAX_PAIRS) if pairs else None


def candidate_pairs(structure: Structure, among: Collection[Clique]) -> list[Clique]:
    """Return the unmeasured pairs that are among the candidates, in the order of the domain."""
    candidates = set(among)
    return [pair for pair in unmeasured_pairs(structure) if pair in candidates]


def _draw_pairs(structure: Structure, pairs: list[Clique], generator: np.random.Generator, most: int) -> Structure:
    """Draw at most so many of the pairs, each as likely, in their order."""
    drawn = sorted(generator.permutation(len(pairs))[:most].tolist())
    return Structure(structure.domain, [pairs[number] for number in drawn])
