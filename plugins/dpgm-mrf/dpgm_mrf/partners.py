"""Who may be picked by whom, and by what: the pairs of a workload, their predictions and what a choice costs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from attrs import frozen

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
from dpgm_core.noise import temperature
from dpgm_mrf.common import pairs_of

__all__ = ["Partners", "check_choice", "detectable", "distances", "independent", "partners_of"]


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
        """Those of other than two labels, though no pair may hold them: each attribute is measured alone, too."""
        return [name for name in self.names if self.domain[name].size != 2]

    def groups(self, taken: Collection[Clique] = ()) -> dict[str, list[int]]:
        """Attribute -> the pairs that it may pick, by number; without those taken already."""
        found: dict[str, list[int]] = {name: [] for name in self.names}
        for number, pair in enumerate(self.pairs):
            if pair not in taken:
                for name in pair:
                    found[name].append(number)
        return found

    def choosing(self, picks: int) -> int:
        """How many attributes have more partners than they pick; the others take all, which needs no records."""
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


def independent(partners: Partners, alone: NoisyTables | None) -> dict[Clique, FloatArray]:
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
        kept = max(0.0, 1 - noise / max(float(apart @ apart), 1e-300))
        found = np.maximum(equal + kept * apart, 0.0)
        shares[name] = found / found.sum() if found.sum() > 0 else equal
    return {pair: np.outer(shares[pair[0]], shares[pair[1]]) for pair in partners.pairs}


def distances(
    partners: Partners,
    groups: Mapping[str, Sequence[int]],
    told: Mapping[Clique, FloatArray],
    total: float,
) -> TableDistance:
    """The scores of the pairs that are in some group: how far each is from its prediction.

    groups: attribute -> numbers of pairs. told: probabilities by pair. total: N. Where all attributes are binary it is
    the product that is compared, which noise in the tables of single attributes hardly moves.
    """
    used = sorted({number for group in groups.values() for number in group})
    place = {number: at for at, number in enumerate(used)}
    pairs = [partners.pairs[number] for number in used]
    return TableDistance(
        candidates=Structure(partners.domain, pairs),
        predicted=np.concatenate([told[pair].reshape(-1) for pair in pairs]) * total,
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


def detectable(budget: Budget, choices: int, partners: int, terms: Terms) -> float:
    """Records by which a pair must be away from its prediction to be picked with probability .9 among unrelated ones.

    budget: of so many choices together. partners: of an attribute. (ln(2 partners) + 2.2) / h, h the temperature: the
    specification's figure, on the safe side by ln 2.

    >>> round(detectable(Budget.zcdp("0.005"), 16, 15, Terms(neighbours="add-remove")))
    224
    """
    h = float(temperature(budget, choices, TableDistance.move(terms)))
    return (math.log(2 * partners) + 2.2) / h
