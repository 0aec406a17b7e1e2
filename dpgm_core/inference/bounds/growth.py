"""Parts of a model whose junction tree is as narrow as wished, grown one attribute at a time.

Each attribute joins an existing cluster, less what no longer fits, so the clusters are those of a chordal graph and no
larger than the limit: a partial k-tree.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dpgm_core.structure import Clique

__all__ = ["Growth", "blocks", "cover"]

# What a clique counts that an attribute shares with a cluster without being complete in it.
PARTLY = 0.01
# Parts at least, where one does not hold every clique; each clique held makes the next part want it this much less.
PARTS, FADING = 4, 8.0


class Growth:
    """One part. names: those to place, in the domain's order. sizes: labels of each. cells: of one cluster, at most;
    single cliques are kept whole even if they have more. whole: place an attribute only where all its cliques, as far
    as they are placed, fit in.
    """

    def __init__(
        self,
        names: Iterable[str],
        cliques: Sequence[tuple[Clique, float]],
        sizes: Mapping[str, int],
        cells: int,
        *,
        whole: bool,
    ) -> None:
        self.names = tuple(names)
        self._sizes, self._cells, self._whole = sizes, cells, whole
        self._around: dict[str, list[tuple[frozenset[str], float]]] = defaultdict(list)
        among = frozenset(self.names)
        for clique, weight in cliques:
            inside = among.intersection(clique)
            for name in inside:
                self._around[name].append((inside, weight))
        self.placed: dict[str, frozenset[str]] = {}
        self._order: dict[str, int] = {}
        self._heap: list[tuple[float, int, int, str]] = []
        self._hosts: dict[str, tuple[float, int, frozenset[str]]] = {}
        self._grow(sorted({inside for rows in self._around.values() for inside, _ in rows}, key=sorted), cliques)

    def holds(self, clique: Iterable[str]) -> bool:
        """Whether a cluster holds what is to be placed of a clique, all of it being placed."""
        inside = [name for name in clique if name in self._around or name in self.placed]
        if not all(name in self.placed for name in inside):
            return False
        return not inside or set(inside) <= self.placed[max(inside, key=self._order.__getitem__)]

    def _grow(self, scopes: Sequence[frozenset[str]], cliques: Sequence[tuple[Clique, float]]) -> None:
        starts = [scope for _, scope in sorted(((-weight, c) for c, weight in cliques), key=lambda one: one[0])]
        for start in [*starts, *((name,) for name in self.names)]:
            inside = frozenset(name for name in start if name in self._around or name in self.names)
            if not inside or any(name in self.placed for name in inside):
                continue
            if self._whole and any(self._near(name) for name in inside):
                continue
            for name in sorted(inside):
                self._place(name, inside)
            self._offer(inside)
            while self._heap:
                name = heapq.heappop(self._heap)[-1]
                if name not in self.placed:
                    self._join(name, self._hosts[name][-1])

    def _near(self, name: str) -> bool:
        """Whether an attribute shares a clique with one that is placed."""
        return any(not scope.isdisjoint(self.placed) for scope, _ in self._around[name])

    def _place(self, name: str, cluster: frozenset[str]) -> None:
        self.placed[name] = cluster
        self._order[name] = len(self._order)

    def _join(self, name: str, host: frozenset[str]) -> None:
        parents = set(host)
        room = self._cells // self._sizes[name]
        while parents and math.prod(self._sizes[other] for other in parents) > room:
            parents.remove(min(sorted(parents), key=lambda other: self._loss_without(name, other)))
        if self._whole and any(
            other in self.placed and other not in parents for scope, _ in self._around[name] for other in scope - {name}
        ):
            return
        cluster = frozenset(parents | {name})
        self._place(name, cluster)
        self._offer(cluster)

    def _loss_without(self, name: str, other: str) -> tuple[float, float]:
        """Return what a cluster loses without `other` when `name` joins: cliques with it now, and those still open."""
        now = sum(weight for scope, weight in self._around[name] if other in scope)
        later = sum(
            weight for scope, weight in self._around[other] if name not in scope and not self.placed.keys() >= scope
        )
        return now, later

    def _offer(self, cluster: frozenset[str]) -> None:
        """Put up the neighbours of a new cluster: those that complete most cliques in it first."""
        candidates = {
            other for name in cluster for scope, _ in self._around[name] for other in scope
        } - self.placed.keys()
        for name in sorted(candidates):
            gain, open_ = 0.0, 0
            for scope, weight in self._around[name]:
                rest = scope - {name}
                gain += weight if rest <= cluster else PARTLY * weight * len(rest & cluster)
                open_ += not self.placed.keys() >= rest
            # Of the clusters that complete as much the latest is best: it reaches where growth is.
            mine = (gain, len(self._order), cluster)
            self._hosts[name] = max(self._hosts.get(name, mine), mine, key=lambda one: one[:2])
            heapq.heappush(self._heap, (-gain, open_, len(self._order), name))


def cover(cliques: Sequence[Clique], sizes: Mapping[str, int], cells: int) -> list[list[int]]:
    """Parts that hold every clique at least once together: the numbers of the cliques of each; one if it holds all.

    >>> cover([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2), 8)
    [[0, 1, 2]]
    >>> [len(part) for part in cover([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2), 4)]
    [2, 2, 2, 2]
    """
    holders = [0] * len(cliques)
    parts: list[list[int]] = []
    while len(parts) < PARTS or not all(holders):
        # Cliques that no part holds yet come first by far, so each part adds some: there is an end.
        weights = [FADING**-count if count else 100.0 * len(cliques) for count in holders]
        growth = Growth(sizes, list(zip(cliques, weights, strict=True)), sizes, cells, whole=False)
        part = [number for number, clique in enumerate(cliques) if growth.holds(clique)]
        if len(part) == len(cliques):
            return [part]
        for number in part:
            holders[number] += 1
        parts.append(part)
    return parts


def blocks(cliques: Sequence[Clique], sizes: Mapping[str, int], cells: int) -> list[tuple[str, ...]]:
    """The attributes in disjoint blocks, each of which fits with all of the cliques' parts that are inside it.

    >>> blocks([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2), 4)
    [('a', 'b'), ('c',)]
    """
    left = list(sizes)
    parts = []
    while left:
        growth = Growth(left, [(clique, 1.0) for clique in cliques], sizes, cells, whole=True)
        parts.append(tuple(name for name in left if name in growth.placed))
        left = [name for name in left if name not in growth.placed]
    return parts
