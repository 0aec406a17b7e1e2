"""How large a model grows with each clique: cells of a triangulation, by greedy elimination of the smallest cluster.

Attributes are bits, so that hundreds of candidates are priced between two rounds of a selection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from dpgm_core import Clique, Domain

__all__ = ["Limits", "ModelSize"]


@frozen(kw_only=True)
class Limits:
    """What a model may grow to. model: cells of its triangulation. clique: cells of its largest cluster."""

    model: int
    clique: int


class ModelSize:
    """Cliques over a domain, and what a junction tree of them takes.

    >>> size = ModelSize(Domain.from_sizes({"a": 2, "b": 3, "c": 5}), [("a", "b")])
    >>> size.cells(), size.cells_with(("b", "c")), size.fits(("b", "c"), Limits(model=20, clique=10))
    (11, 21, False)
    """

    def __init__(self, domain: Domain, cliques: Iterable[Clique] = ()) -> None:
        self._names = domain.names
        self._bit = {name: 1 << place for place, name in enumerate(domain.names)}
        self._size = [domain.sizes[name] for name in domain.names]
        self._around = [0] * len(self._names)
        self._cells: dict[int, int] = {}
        self._priced: dict[tuple[int, ...], tuple[int, int]] = {}
        for clique in cliques:
            self.add(clique)

    def add(self, clique: Clique) -> None:
        """Let the model hold this clique."""
        found = self._joined(clique)
        if found != self._around:
            self._around, self._priced = found, {}

    def cells(self) -> int:
        """Summed cells of the maximal clusters."""
        return self._price(self._around)[0]

    def cells_with(self, clique: Clique) -> int:
        """The same with one clique more."""
        return self._price(self._joined(clique))[0]

    def fits(self, clique: Clique, limits: Limits) -> bool:
        """Whether the model with this clique stays within the limits; one inside a cluster changes nothing."""
        around = self._joined(clique)
        if around == self._around and not self._priced:
            self._price(around)
        total, largest = self._price(around)
        return total <= limits.model and largest <= limits.clique

    def clusters(self) -> tuple[Clique, ...]:
        """The maximal clusters of the triangulation, attributes in the domain's order."""
        return tuple(
            tuple(name for name in self._names if mask & self._bit[name])
            for mask in _maximal(self._masks(self._around))
        )

    def _joined(self, clique: Sequence[str]) -> list[int]:
        mask = 0
        for name in clique:
            mask |= self._bit[name]
        around = self._around.copy()
        for place in _places(mask):
            around[place] |= mask & ~(1 << place)
        return around

    def _price(self, around: list[int]) -> tuple[int, int]:
        """Cells of all maximal clusters, and of the largest."""
        key = tuple(around)
        if key not in self._priced:
            sizes = [self._cells_of(mask) for mask in _maximal(self._masks(around))]
            self._priced[key] = (sum(sizes), max(sizes))
        return self._priced[key]

    def _masks(self, around: list[int]) -> Iterator[int]:
        """The cluster of each step of the elimination."""
        graph = around.copy()
        left = set(range(len(graph)))
        cost = {place: self._cells_of(graph[place] | 1 << place) for place in left}
        while left:
            place = min(left, key=lambda one: (cost[one], one))
            left.remove(place)
            near = graph[place]
            yield near | 1 << place
            for other in _places(near):
                graph[other] = (graph[other] | near) & ~(1 << other | 1 << place)
                cost[other] = self._cells_of(graph[other] | 1 << other)

    def _cells_of(self, mask: int) -> int:
        found = self._cells.get(mask)
        if found is None:
            found = self._cells[mask] = math.prod(self._size[place] for place in _places(mask))
        return found


def _places(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _maximal(masks: Iterable[int]) -> list[int]:
    """Those inside no earlier one: a cluster of an elimination is maximal unless an earlier one holds it."""
    kept: list[int] = []
    for mask in masks:
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return kept
