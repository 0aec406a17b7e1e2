"""Predicted time and memory of inference by clique: of a triangulation, by greedy elimination of the smallest cluster.

Attributes are bits, so that hundreds of candidates are priced between two rounds of a selection. Over many attributes a
candidate is first looked up in the present junction tree: each attribute it lacks in some cluster is carried there
along the tree. That is a triangulation too, if another one than the elimination would find.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core.components.options import option, positive, whole
from dpgm_core.domain.domain import Domain
from dpgm_core.structure.graphs import Clique

__all__ = ["Limits", "ModelSize", "fit_bytes", "fit_seconds", "limits_of"]

#: Attributes up to which every candidate has an elimination of its own; one takes milliseconds for a hundred.
_MAX_EXACT_ATTRIBUTES = 24
#: CPU seconds of one inference for each cell of a cluster and the square of its attributes, which bounds the pairs that
#: it holds a table of. Of inferences of .1 ms and more it is within a factor of 1.6 (standard deviation; 3.4 at most),
#: cells alone within 2.5 (`python -m benchmarks.inference --only predicted`).
_SECONDS = 3.3e-11
#: Inferences of a fit: the most that the default learner states.
_INFERENCES = 400
_FIT_SECONDS = _INFERENCES * _SECONDS
#: Bytes of a cell: forwards and backwards.
_BYTES = 16


@frozen(kw_only=True)
class Limits:
    """What the inferences of a fit may take, as predicted: CPU seconds, and bytes of tables (`memory`).

    >>> Limits(seconds=1, memory=2**22).allows(2**18, 16), Limits(seconds=1, memory=2**22).allows(2**18, 18)
    (True, False)
    """

    seconds: float
    memory: int

    def allows(self, cells: int, attributes: int, *, outside: int = 0) -> bool:
        """Return whether a model of one cluster, of so many cells and attributes, stays within the limits.

        outside: the labels of attributes that it has alone.
        """
        return self.allow(cells * attributes**2 + outside, cells + outside)

    def allow(self, work: int, cells: int) -> bool:
        """Return the same of a sum over clusters: of cells times squared attributes (`work`), and of cells."""
        return _FIT_SECONDS * work <= self.seconds and _BYTES * cells <= self.memory


def fit_seconds(default: float, text: str) -> float:
    """Return the option `max_fit_seconds` of a selector; text: what it leaves out."""
    return option(default, help=text, unit="CPU seconds", validator=positive, replaces=("max_model_cells",))


def fit_bytes(default: int) -> int:
    """Return the option `max_fit_bytes` of a selector, which stands after `max_fit_seconds`."""
    text = "the same for the memory of their tables"
    return option(default, help=text, unit="bytes", validator=whole, replaces=("max_clique_cells",))


def limits_of(named: Mapping[str, float]) -> Limits | None:
    """Return the limits that a selector's plan states under the names of its options; None where it states no time."""
    seconds = named.get("max_fit_seconds")
    return None if seconds is None else Limits(seconds=seconds, memory=int(named.get("max_fit_bytes", sys.maxsize)))


class ModelSize:
    """Cliques over a domain, those of its constraints among them, and what a fit of a junction tree of them takes.

    A column that is a function of another one needs a clique with it only once it is in a clique with others.

    Examples
    --------
    >>> size = ModelSize(Domain.from_sizes({"a": 2, "b": 3, "c": 5}), [("a", "b")])
    >>> size.cells(), [size.fits(("b", "c"), Limits(seconds=1, memory=most)) for most in (16 * 20, 16 * 21)]
    (11, [False, True])
    """

    def __init__(self, domain: Domain, cliques: Iterable[Clique] = ()) -> None:
        self._names = domain.names
        self._bit = {name: 1 << place for place, name in enumerate(domain.names)}
        self._size = [domain.sizes[name] for name in domain.names]
        self._around = [0] * len(self._names)
        self._cells: dict[int, int] = {}
        self._priced: dict[tuple[int, ...], tuple[int, int, list[int]]] = {}
        self._tree: _Tree | None = None
        self._source_of = {one.column: one.of for one in domain.derived(())}
        for clique in (*(scope for scope in domain.scopes if self._source_of.keys().isdisjoint(scope)), *cliques):
            self.add(clique)

    def add(self, clique: Clique) -> None:
        """Add a clique to the model."""
        grown = self._joined(clique)
        if grown != self._around:
            key = tuple(grown)  # mostly priced just before
            self._priced = {key: self._priced[key]} if key in self._priced else {}
            self._around, self._tree = grown, None

    def cells(self) -> int:
        """Return the summed cells of the maximal clusters."""
        return self._price(self._around)[1]

    def seconds(self) -> float:
        """Return the CPU seconds that the inferences of a fit are predicted to take."""
        return _FIT_SECONDS * self._price(self._around)[0]

    def memory(self) -> int:
        """Return the bytes that their tables are predicted to take."""
        return _BYTES * self.cells()

    def within(self, limits: Limits) -> bool:
        """Return whether the model stays within the limits."""
        return limits.allow(*self._price(self._around)[:2])

    def room(self, limits: Limits) -> Limits:
        """Return what the model leaves of the limits."""
        return Limits(seconds=limits.seconds - self.seconds(), memory=limits.memory - self.memory())

    def fits(self, clique: Clique, limits: Limits) -> bool:
        """Return whether the model with this clique stays within the limits."""
        return limits.allow(*self._price(self._joined(clique))[:2])

    def may_fit(self, clique: Clique, limits: Limits) -> bool:
        """Return what `fits` does, but over many attributes by the present junction tree: sooner, sometimes wrong."""
        if len(self._names) <= _MAX_EXACT_ATTRIBUTES:
            return self.fits(clique, limits)
        needed = [name for pair in self._pairs(clique) for name in pair]
        return limits.allow(*self._carried(self._mask([*clique, *needed])))

    def clusters(self) -> tuple[Clique, ...]:
        """Return the maximal clusters of the triangulation, attributes in the domain's order."""
        return tuple(
            tuple(name for name in self._names if mask & self._bit[name]) for mask in self._price(self._around)[2]
        )

    def _mask(self, clique: Sequence[str]) -> int:
        mask = 0
        for name in clique:
            mask |= self._bit[name]
        return mask

    def _joined(self, clique: Sequence[str]) -> list[int]:
        around = self._around.copy()
        for names in (clique, *self._pairs(clique)):
            mask = self._mask(names)
            for place in _places(mask):
                around[place] |= mask & ~(1 << place)
        return around

    def _pairs(self, clique: Sequence[str]) -> Iterator[Clique]:
        """Yield the pairs of derived columns and their sources that a clique of several attributes needs."""
        waiting = list(clique) if len(clique) > 1 else []
        while waiting:
            name = waiting.pop()
            if name in self._source_of:
                yield name, self._source_of[name]
                waiting.append(self._source_of[name])

    def _price(self, around: list[int]) -> tuple[int, int, list[int]]:
        """Work and cells of all maximal clusters, and the clusters."""
        key = tuple(around)
        if key not in self._priced:
            masks = _maximal_masks(self._masks(around))
            self._priced[key] = (sum(map(self._work_of, masks)), sum(map(self._cells_of, masks)), masks)
        return self._priced[key]

    def _carried(self, clique: int) -> tuple[int, int]:
        """Work and cells of all clusters, with what a clique needs carried to one of its clusters."""
        if self._tree is None:
            masks = self._price(self._around)[2]
            self._tree = _Tree(masks, [self._cells_of(mask) for mask in masks])
        tree, now, prices = self._tree, self._price(self._around), set()
        for place in _places(clique):
            host = tree.host(place, clique)
            grown: dict[int, int] = {}
            for other in _places(clique & ~tree.masks[host]):
                for number in tree.path(host, other):
                    grown[number] = grown.get(number, tree.masks[number]) | 1 << other
            work, cells, _ = now
            for number, mask in grown.items():
                work += self._work_of(mask) - self._work_of(tree.masks[number])
                cells += self._cells_of(mask) - tree.cells[number]
            prices.add((work, cells))
        return min(prices)

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

    def _work_of(self, mask: int) -> int:
        return self._cells_of(mask) * mask.bit_count() ** 2

    def _cells_of(self, mask: int) -> int:
        cells = self._cells.get(mask)
        if cells is None:
            cells = self._cells[mask] = math.prod(self._size[place] for place in _places(mask))
        return cells


def _places(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _maximal_masks(masks: Iterable[int]) -> list[int]:
    """Return the maximal clusters: a cluster of an elimination is maximal unless an earlier one contains it."""
    maximal: list[int] = []
    for mask in masks:
        if not any(mask & other == mask for other in maximal):
            maximal.append(mask)
    return maximal


class _Tree:
    """A junction forest: its clusters as bits, their cells, and the paths along which attributes are carried."""

    def __init__(self, masks: list[int], cells: list[int]) -> None:
        self.masks, self.cells = masks, cells
        self.hosts: dict[int, list[int]] = {}
        for number, mask in enumerate(masks):
            for place in _places(mask):
                self.hosts.setdefault(place, []).append(number)
        for hosts in self.hosts.values():
            hosts.sort(key=cells.__getitem__)
        self._neighbours = _forest_edges(masks)
        self._before: dict[int, dict[int, int]] = {}
        self._paths: dict[tuple[int, int], list[int]] = {}

    def host(self, place: int, clique: int) -> int:
        """Return the cluster of an attribute that holds most of a clique, of several the one of fewest cells."""
        hosts = self.hosts[place]
        best, most, all_of_it = hosts[0], 0, clique.bit_count()
        for number in hosts:
            shared = (self.masks[number] & clique).bit_count()
            if shared > most:
                best, most = number, shared
                if shared == all_of_it:
                    break
        return best

    def path(self, start: int, place: int) -> list[int]:
        """Return the path to the nearest cluster with an attribute; the start alone where no tree leads there."""
        path = self._paths.get((start, place))
        if path is None:
            before = self._reached(start)
            path = [next((number for number in before if self.masks[number] >> place & 1), start)]
            while before[path[-1]] >= 0:
                path.append(before[path[-1]])
            self._paths[start, place] = path
        return path

    def _reached(self, start: int) -> dict[int, int]:
        """The clusters that a tree connects with one, nearest first, and the one before each on the way."""
        before = self._before.get(start)
        if before is None:
            before = self._before[start] = {start: -1}
            waiting = [start]
            for number in waiting:
                for other in self._neighbours[number]:
                    if other not in before:
                        before[other] = number
                        waiting.append(other)
        return before


def _forest_edges(masks: list[int]) -> list[list[int]]:
    """Neighbours of each cluster in a junction forest: a spanning one of the largest separators."""
    neighbours: list[list[int]] = [[] for _ in masks]
    if not masks:
        return neighbours
    bits = max(masks).bit_length()
    attributes = np.array([[mask >> place & 1 for place in range(bits)] for mask in masks], dtype=np.float32)
    common = attributes @ attributes.T  # small whole numbers, so exact
    shared, host = np.zeros(len(masks), dtype=np.float32), np.full(len(masks), -1)  # with what is in the forest
    for _ in masks:
        number = int(shared.argmax())
        if shared[number] > 0:
            neighbours[host[number]].append(number)
            neighbours[number].append(int(host[number]))
        shared[number] = -1.0  # it is in
        nearer = (common[number] > shared) & (shared >= 0.0)
        shared[nearer], host[nearer] = common[number, nearer], number
    return neighbours
