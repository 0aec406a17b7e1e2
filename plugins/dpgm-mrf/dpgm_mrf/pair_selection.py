"""Candidate pairs of a selection, their scores, what a choice costs, and the chosen pairs of which a model fits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from dpgm_core import (
    Budget,
    BudgetError,
    Clique,
    Domain,
    FloatArray,
    NoisyTables,
    Structure,
    StructureError,
    TableDistance,
    Terms,
    Workload,
)
from dpgm_core.learning import Limits, ModelSize
from dpgm_core.privacy import temperature
from dpgm_mrf.common import pairs_of

__all__ = [
    "Partners",
    "ChosenPairs",
    "check_choice",
    "detectable_distance",
    "score_pairs",
    "predict_independent",
    "partners_of",
    "rank_pairs",
]


@frozen(kw_only=True)
class Partners:
    """Attributes that may be measured and the pairs that may be picked, in the domain's order.

    >>> from dpgm_core import Domain, Workload
    >>> partners_of(Workload.all(Domain.from_sizes(dict.fromkeys("abc", 2)))).choosing(1)
    3
    """

    domain: Domain
    names: tuple[str, ...]
    pairs: tuple[Clique, ...]

    @property
    def other(self) -> list[str]:
        """Attributes of other than two labels, in pairs or not: each attribute is measured alone, too."""
        return [name for name in self.names if self.domain[name].size != 2]

    def groups(self, taken: Collection[Clique] = ()) -> dict[str, list[int]]:
        """Attribute -> the pairs that it may pick, by number; without those taken already."""
        numbers: dict[str, list[int]] = {name: [] for name in self.names}
        for number, pair in enumerate(self.pairs):
            if pair not in taken:
                for name in pair:
                    numbers[name].append(number)
        return numbers

    def choosing(self, picks: int) -> int:
        """Return how many attributes have more partners than they pick; the others take all, which needs no records."""
        return sum(len(pairs) > picks for pairs in self.groups().values())


def partners_of(workload: Workload) -> Partners:
    """The pairs of a workload. Raises StructureError where there are none."""
    names = workload.attributes
    if len(names) < 2:
        raise StructureError(
            "selector 'mrf-select' picks partners among two attributes or more, but of the workload's only "
            f"{len(names)} may be measured; name the cliques, or ask for more attributes"
        )
    return Partners(domain=workload.domain, names=names, pairs=tuple(pairs_of(workload, "mrf-select")))


def predict_independent(partners: Partners, alone: NoisyTables | None) -> dict[Clique, FloatArray]:
    """Probabilities of each pair if nothing depends on anything.

    alone: noisy tables of the attributes; None: all labels equally frequent. Shares are drawn towards
    equal ones as far as they may be noise, by James and Stein's factor: products of noise would look like dependence.
    """
    shares: dict[str, FloatArray] = {}
    for name in partners.names:
        size = partners.domain[name].size
        equal = np.full(size, 1 / size)
        if alone is None:
            shares[name] = equal
            continue
        counts = np.asarray(alone.tables[(name,)], np.float64)
        apart = counts / max(alone.total, 1.0) - equal
        variance = float(alone.variances[alone.structure.find((name,))[0]])
        noise = (size - 1) * variance / max(alone.total, 1.0) ** 2
        shrinkage = max(0.0, 1 - noise / max(float(apart @ apart), 1e-300))
        estimate = np.maximum(equal + shrinkage * apart, 0.0)
        shares[name] = estimate / estimate.sum() if estimate.sum() > 0 else equal
    return {pair: np.outer(shares[pair[0]], shares[pair[1]]) for pair in partners.pairs}


def score_pairs(
    partners: Partners, groups: Mapping[str, Sequence[int]], probabilities: Mapping[Clique, FloatArray], total: float
) -> TableDistance:
    """The scores of the pairs that are in some group: how far each is from its prediction.

    groups: attribute -> numbers of pairs. probabilities: by pair. total: N. Where all attributes are binary it is the
    product that is compared, which noise in the tables of single attributes hardly moves.
    """
    used = sorted({number for group in groups.values() for number in group})
    place = {number: at for at, number in enumerate(used)}
    pairs = [partners.pairs[number] for number in used]
    return TableDistance(
        candidates=Structure(partners.domain, pairs),
        predicted=np.concatenate([probabilities[pair].reshape(-1) for pair in pairs]) * total,
        groups=tuple(tuple(place[number] for number in group) for group in groups.values()),
        contrast=not partners.other,
    )


def check_choice(budget: Budget, choices: int, terms: Terms) -> None:
    """Refuse, in a plan, choices for so little each that the session would refuse them."""
    try:
        temperature(budget, choices, TableDistance.move(terms))
    except BudgetError:
        raise BudgetError(
            f"selector 'mrf-select' would make {choices:,} choices for {budget} together, so every pair would be as "
            "likely as any other; give more budget, or pick fewer partners"
        ) from None


def detectable_distance(budget: Budget, choices: int, partners: int, terms: Terms) -> float:
    """Records by which a pair must be away from its prediction to be picked with probability .9 among unrelated ones.

    budget: of so many choices together. partners: of an attribute. (ln(2 partners) + 2.2) / h, h the temperature: the
    specification's figure, on the safe side by ln 2.

    >>> round(detectable_distance(Budget.zcdp("0.005"), 16, 15, Terms(neighbours="add-remove")))
    224
    """
    h = float(temperature(budget, choices, TableDistance.move(terms)))
    return (math.log(2 * partners) + 2.2) / h


class ChosenPairs:
    """Pairs taken so far. limits: of an exact engine's model of them, in the end; None: whatever is picked is taken.

    >>> domain = Domain.from_sizes(dict.fromkeys("abc", 2))
    >>> picked = ChosenPairs(domain, Limits(seconds=5e-7, memory=2**20))
    >>> picked.add([("a", "b"), ("b", "c"), ("a", "c")]), picked.pairs, picked.left_out
    ([('a', 'b'), ('b', 'c')], [('a', 'b'), ('b', 'c')], 1)
    """

    def __init__(self, domain: Domain, limits: Limits | None) -> None:
        self.pairs: list[Clique] = []
        self.left_out = 0
        self._limits = limits
        self._size = ModelSize(domain)

    def add(self, pairs: Iterable[Clique], share: float = 1.0) -> list[Clique]:
        """Take those that fit, first come first served; those taken.

        share: of the model's limit, so that the first of several rounds leave room for the others.
        """
        limits = None if self._limits is None else evolve(self._limits, seconds=self._limits.seconds * share)
        taken = []
        for pair in pairs:
            if limits is not None:
                if not self._size.fits(pair, limits):
                    self.left_out += 1
                    continue
                self._size.add(pair)
            taken.append(pair)
        self.pairs += taken
        return taken

    def notes(self, what: str, instead: str) -> list[str]:
        """Return a sentence on the pairs that did not fit. what: the pairs are. instead: what else could be done."""
        if not self.left_out or self._limits is None:
            return []
        return [
            f"{self.left_out} of {self.left_out + len(self.pairs)} {what} were left out, the last ones: with them the "
            f"inferences of a fit would take more than {self._limits.seconds:g} CPU seconds or {self._limits.memory:,} "
            f"bytes, as predicted; {instead}"
        ]


def rank_pairs(picks: Mapping[str, Sequence[Clique]]) -> list[Clique]:
    """Each pair once: those that an attribute picked earlier first, and of these those that both ends picked.

    picks: attribute -> its pairs, the first picked first.

    >>> rank_pairs({"a": [("a", "c"), ("a", "b")], "b": [("b", "c")], "c": [("a", "c"), ("b", "c")]})
    [('a', 'c'), ('b', 'c'), ('a', 'b')]
    """
    ranks: dict[Clique, list[int]] = {}
    for pairs in picks.values():
        for rank, pair in enumerate(pairs):
            ranks.setdefault(pair, []).append(rank)
    last = max(map(len, picks.values()), default=0)

    def key(pair: Clique) -> tuple[int, int]:
        first, second, *_ = [*sorted(ranks[pair]), last]
        return first, second

    return sorted(ranks, key=key)
