"""The junction tree of a structure, rooted: which clusters a query needs, and how large its tables get."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from dpgm_core.errors import TooLarge
from dpgm_core.structure import Clique, Structure, human_bytes

__all__ = ["ClusterTree", "Message", "Part", "cluster_tree"]

#: The cluster that a message leaves for its parent, and the query's attributes that it carries besides the separator.
Message = tuple[int, frozenset[str]]


@frozen
class Part:
    """The share of one component in a query: its attributes, the cluster they meet in and the messages it needs."""

    names: Clique
    top: int
    messages: tuple[Message, ...]


@frozen(kw_only=True, eq=False)
class ClusterTree:
    """A rooted junction forest over all attributes. structure: its clusters as cliques, in the order of the numbers.

    parents: -1 for a root. separators: the attributes shared with the parent. children: in the order of `entries`.
    entries, exits: a cluster d lies under c where entries[c] <= entries[d] < exits[c]. home: an attribute's cluster
    nearest to the root. roots: of each cluster's component. members: the clusters as sets.
    """

    structure: Structure
    parents: tuple[int, ...]
    separators: tuple[frozenset[str], ...]
    children: tuple[tuple[int, ...], ...]
    entries: tuple[int, ...]
    exits: tuple[int, ...]
    home: Mapping[str, int]
    roots: tuple[int, ...]
    members: tuple[frozenset[str], ...]
    _needs: dict[Message, int] = field(init=False, factory=dict)

    def under(self, cluster: int, names: Iterable[str]) -> bool:
        """Whether the subtree at a cluster holds all the names."""
        first, last = self.entries[cluster], self.exits[cluster]
        return all(name in self.members[cluster] or first <= self.entries[self.home[name]] < last for name in names)

    def towards(self, cluster: int, name: str) -> int:
        """The child under which an attribute is at home that the cluster does not hold."""
        below = self.children[cluster]
        entries = self.entries
        return below[bisect_right(below, entries[self.home[name]], key=lambda child: entries[child]) - 1]

    def top(self, names: Sequence[str]) -> int:
        """The lowest cluster whose subtree holds all the names, which are of one component."""
        cluster = self.home[names[0]]
        while not self.under(cluster, names):
            cluster = self.parents[cluster]
        while (name := next((name for name in names if name not in self.members[cluster]), None)) is not None:
            child = self.towards(cluster, name)
            if not self.under(child, names):
                break
            cluster = child
        return cluster

    def messages(self, cluster: int, names: Iterable[str]) -> tuple[Message, ...]:
        """What a cluster needs of its children to speak of attributes in its subtree."""
        carried: dict[int, set[str]] = {}
        for name in names:
            if name not in self.members[cluster]:
                carried.setdefault(self.towards(cluster, name), set()).add(name)
        return tuple((child, frozenset(some)) for child, some in carried.items())

    def letters(self, message: Message) -> Clique:
        """The axes of a message: its separator, then what it carries, each in alphabetical order."""
        return (*sorted(self.separators[message[0]]), *sorted(message[1]))

    def steps(self, cluster: int, messages: Sequence[Message], keep: Iterable[str]) -> list[frozenset[str]]:
        """The attributes left before, and after, each message is taken in: those kept or spoken of later."""
        later = [frozenset(self.letters(message)) for message in messages]
        held, found = self.members[cluster], []
        for taken in range(len(messages) + 1):
            if taken:
                held |= later[taken - 1]
            held &= frozenset(keep).union(*later[taken:])
            found.append(held)
        return found

    def plan(self, names: Clique, max_bytes: int) -> list[Part]:
        """A query by components, which are independent; names: distinct, at least one.

        Raises TooLarge, with sizes, where the table or those on the way to it take more than max_bytes.
        """
        cells = self._cells(names)
        needed = 16 * cells
        if needed > max_bytes:
            raise _too_large(names, cells, needed, max_bytes)
        split: dict[int, list[str]] = {}
        for name in names:
            split.setdefault(self.roots[self.home[name]], []).append(name)
        parts = []
        for some in split.values():
            top = self.top(some)
            part = Part(tuple(some), top, self.messages(top, some))
            needed += self._work(top, part.messages, some) + sum(map(self._bytes, part.messages))
            parts.append(part)
        if needed > max_bytes:
            raise _too_large(names, cells, needed, max_bytes)
        return parts

    def _cells(self, names: Iterable[str]) -> int:
        sizes = self.structure.domain.sizes
        return math.prod(sizes[name] for name in names)

    def _work(self, cluster: int, messages: Sequence[Message], keep: Iterable[str]) -> int:
        # Twice the bytes of each table, as matrix products may want a copy in another order.
        return 16 * sum(map(self._cells, [self.members[cluster], *self.steps(cluster, messages, keep)]))

    def _bytes(self, wanted: Message) -> int:
        """Bytes of all tables made for a message where no other is at hand; remembered."""
        stack = [wanted]
        while stack:  # no recursion: trees may be thousands deep
            message = stack[-1]
            below = self.messages(*message)
            unknown = [one for one in below if one not in self._needs]
            if unknown:
                stack += unknown
            else:
                work = self._work(message[0], below, self.letters(message))
                self._needs[message] = work + sum(self._needs[one] for one in below)
                stack.pop()
        return self._needs[wanted]


def _too_large(names: Clique, cells: int, needed: int, max_bytes: int) -> TooLarge:
    shown = ", ".join(names[:4]) + (f", ... ({len(names)} attributes)" if len(names) > 4 else "")
    return TooLarge(
        f"the query of {shown} has {_readable(cells)} cells and needs {_readable(needed)} bytes on the way, "
        f"against {human_bytes(max_bytes)} that max_bytes leaves to queries; ask for fewer attributes"
    )


def _readable(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"10^{math.floor(math.log10(count))}"


def cluster_tree(structure: Structure) -> ClusterTree:
    """The junction forest of a structure's elimination, rooted; plain work on names, no tables.

    >>> from dpgm_core.domain import Domain
    >>> tree = cluster_tree(Structure.chain(Domain.from_sizes({"a": 2, "b": 3, "c": 2})))
    >>> tree.structure.cliques, tree.parents
    ((('a', 'b'), ('b', 'c')), (-1, 0))
    """
    clusters, edges = structure.junction_tree
    beside: list[list[int]] = [[] for _ in clusters]
    for one, two in edges:
        beside[one].append(two)
        beside[two].append(one)
    parents, entries, exits = [-1] * len(clusters), [-1] * len(clusters), [0] * len(clusters)
    children: list[list[int]] = [[] for _ in clusters]
    roots = [0] * len(clusters)
    home: dict[str, int] = {}
    order: list[int] = []
    for root in range(len(clusters)):
        stack = [root] if entries[root] < 0 else []
        while stack:
            cluster = stack.pop()
            entries[cluster], roots[cluster] = len(order), root
            order.append(cluster)
            for name in clusters[cluster]:
                home.setdefault(name, cluster)
            for other in beside[cluster]:
                if other != parents[cluster]:
                    parents[other] = cluster
                    stack.append(other)
    for cluster in reversed(order):
        exits[cluster] = max([entries[cluster] + 1, *(exits[child] for child in children[cluster])])
        if parents[cluster] >= 0:
            children[parents[cluster]].append(cluster)
    members = tuple(map(frozenset, clusters))
    return ClusterTree(
        structure=Structure(structure.domain, clusters),
        parents=tuple(parents),
        separators=tuple(
            members[cluster] & members[parent] if parent >= 0 else frozenset() for cluster, parent in enumerate(parents)
        ),
        children=tuple(tuple(reversed(below)) for below in children),
        entries=tuple(entries),
        exits=tuple(exits),
        home=home,
        roots=tuple(roots),
        members=members,
    )
