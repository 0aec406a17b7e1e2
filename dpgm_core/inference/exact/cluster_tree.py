"""The junction tree of a structure, rooted: which clusters a query needs, and how large its tables get.

Attributes are letters, their places in the elimination order; sets of them are the bits of an integer.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import field, frozen

from dpgm_core.errors import TooLarge
from dpgm_core.inference.exact.cluster_sums import ClusterSum, cluster_sum, letters_of
from dpgm_core.structure import Clique, Structure, human_bytes

__all__ = ["ClusterTree", "Message", "MessagePlan", "Part", "cluster_tree"]

#: The cluster that a message leaves for its parent, and the letters that it carries besides the separator.
Message = tuple[int, int]


class MessagePlan(NamedTuple):
    """Plan of a message: the messages it is made from, and the sum.

    carried: the letters of its last axis, in order. cells: of that axis. bytes: of all tables made for it where no
    other is at hand.
    """

    below: tuple[Message, ...]
    sum: ClusterSum
    carried: tuple[int, ...]
    cells: int
    bytes: int


class Part(NamedTuple):
    """The share of one component in a query: the cluster it meets in, the messages it needs, how they are summed.

    letters: of the result, in the order of its axes once what is carried has axes of its own.
    """

    top: int
    messages: tuple[Message, ...]
    sum: ClusterSum
    letters: tuple[int, ...]


@frozen(kw_only=True, eq=False)
class ClusterTree:
    """A rooted junction forest over all attributes. structure: its clusters as cliques, in the order of the numbers.

    parents: -1 for a root. separators: the attributes shared with the parent. children: in the order of `entries`,
    which number the clusters from the root outwards, subtree by subtree. home: an attribute's cluster nearest to the
    root. roots: of each cluster's component. jumps: an ancestor further up, itself for a root.

    letter, sizes: of attributes by name, labels by letter. members, shared: letters of clusters and of separators.
    """

    structure: Structure
    parents: tuple[int, ...]
    separators: tuple[frozenset[str], ...]
    children: tuple[tuple[int, ...], ...]
    entries: tuple[int, ...]
    home: Mapping[str, int]
    roots: tuple[int, ...]
    jumps: tuple[int, ...]
    letter: Mapping[str, int]
    sizes: tuple[int, ...]
    members: tuple[int, ...]
    shared: tuple[int, ...]
    _homes: tuple[int, ...]  # by letter
    _below: tuple[tuple[int, ...], ...]  # the entries of the children
    _plans: dict[Message, MessagePlan] = field(init=False, factory=dict)
    _sums: dict[tuple[int, tuple[int, ...], int], ClusterSum] = field(init=False, factory=dict)

    def plan(self, names: Clique, max_bytes: int) -> list[Part]:
        """A query by components, which are independent; names: distinct, at least one.

        Raises TooLarge, with sizes, where the table or those on the way to it take more than max_bytes.
        """
        letters = [self.letter[name] for name in names]
        cells = math.prod([self.sizes[letter] for letter in letters])
        needed = 16 * cells
        if needed > max_bytes:
            raise _too_large(names, cells, needed, max_bytes)
        split: dict[int, list[int]] = {}
        for letter in letters:
            split.setdefault(self.roots[self._homes[letter]], []).append(letter)
        parts = []
        for some in split.values():
            part, work = self._part(some)
            parts.append(part)
            needed += work
        if needed > max_bytes:
            raise _too_large(names, cells, needed, max_bytes)
        return parts

    def message_plan(self, message: Message) -> MessagePlan:
        """Return the plan of a message; computed once."""
        plans = self._plans
        if message in plans:
            return plans[message]
        stack = [message]
        while stack:  # no recursion: trees may be thousands deep
            one = stack[-1]
            below = self._messages(*one)
            unknown = [other for other in below if other not in plans]
            if unknown:
                stack += unknown
            else:
                plans[one] = self._planned(one, below)
                stack.pop()
        return plans[message]

    def _part(self, letters: Sequence[int]) -> tuple[Part, int]:
        """Return the part of letters of one component, and the bytes of all tables for it without cached messages."""
        mask = sum([1 << letter for letter in letters])
        top = self._top(letters)
        messages = self._messages(top, mask)
        plans = [self.message_plan(one) for one in messages]
        summing = self._sum(top, messages, mask & self.members[top])
        axes = (*summing.letters, *[letter for plan in plans for letter in plan.carried])
        work = self._work(top, summing, plans) + sum([plan.bytes for plan in plans])
        return Part(top, messages, summing, axes), work

    def _planned(self, message: Message, below: tuple[Message, ...]) -> MessagePlan:
        cluster, mask = message
        plans = [self._plans[one] for one in below]
        summing = self._sum(cluster, below, self.shared[cluster] | (mask & self.members[cluster]))
        carried = (*summing.own, *[letter for plan in plans for letter in plan.carried])
        work = self._work(cluster, summing, plans) + sum([plan.bytes for plan in plans])
        return MessagePlan(below, summing, carried, math.prod([self.sizes[letter] for letter in carried]), work)

    def _work(self, cluster: int, summing: ClusterSum, plans: Sequence[MessagePlan]) -> int:
        # Twice the bytes of each table, as matrix products may want a copy in another order.
        return 16 * (self.structure.sizes[cluster] + summing.work([plan.cells for plan in plans]))

    def _top(self, letters: Sequence[int]) -> int:
        """The lowest cluster whose subtree holds all the letters, which are of one component."""
        entries, members, jumps = self.entries, self.members, self.jumps
        homes = [entries[self._homes[letter]] for letter in letters]
        # From the last home upwards: what is above it, and not after another home, has that one in its subtree.
        cluster = self._homes[letters[homes.index(max(homes))]]
        for letter, entry in zip(letters, homes, strict=True):
            while entries[cluster] > entry and not members[cluster] >> letter & 1:
                far = jumps[cluster]
                cluster = far if entries[far] > entry and not members[far] >> letter & 1 else self.parents[cluster]
        return cluster

    def _messages(self, cluster: int, mask: int) -> tuple[Message, ...]:
        """Return the messages from its children that a cluster needs for letters in its subtree."""
        carried: dict[int, int] = {}
        for letter in letters_of(mask & ~self.members[cluster]):
            entry = self.entries[self._homes[letter]]
            child = self.children[cluster][bisect_right(self._below[cluster], entry) - 1]
            carried[child] = carried.get(child, 0) | 1 << letter
        return tuple(carried.items())

    def _sum(self, cluster: int, messages: Sequence[Message], keep: int) -> ClusterSum:
        key = (cluster, tuple([child for child, _ in messages]), keep)
        known = self._sums.get(key)
        if known is None:
            taken = [self.shared[child] for child, _ in messages]
            made = cluster_sum(self.members[cluster], taken, keep, self.shared[cluster], self.sizes)
            known = self._sums.setdefault(key, made)
        return known


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
    cliques, edges = structure.junction_tree
    letter = {name: at for at, name in enumerate(structure.elimination.order)}
    clusters = [tuple(sorted(clique, key=letter.__getitem__)) for clique in cliques]  # axes ascend by letter
    neighbours: list[list[int]] = [[] for _ in clusters]
    for one, two in edges:
        neighbours[one].append(two)
        neighbours[two].append(one)
    parents, entries = [-1] * len(clusters), [-1] * len(clusters)
    children: list[list[int]] = [[] for _ in clusters]
    roots, jumps, depths = [0] * len(clusters), [*range(len(clusters))], [0] * len(clusters)
    home: dict[str, int] = {}
    entered = 0
    for root in range(len(clusters)):
        stack = [root] if entries[root] < 0 else []
        while stack:
            cluster = stack.pop()
            entries[cluster], roots[cluster] = entered, root
            entered += 1
            if cluster != root:
                children[parents[cluster]].append(cluster)
                depths[cluster] = depths[parents[cluster]] + 1
                jumps[cluster] = _jump(parents[cluster], jumps, depths)
            for name in clusters[cluster]:
                home.setdefault(name, cluster)
            for other in neighbours[cluster]:
                if other != parents[cluster]:
                    parents[other] = cluster
                    stack.append(other)
    members = tuple(sum(1 << letter[name] for name in clique) for clique in clusters)
    separators = tuple(
        frozenset(clusters[cluster]).intersection(clusters[parent]) if parent >= 0 else frozenset()
        for cluster, parent in enumerate(parents)
    )
    sizes = structure.domain.sizes
    return ClusterTree(
        structure=Structure(structure.domain, clusters),
        parents=tuple(parents),
        separators=separators,
        children=tuple(map(tuple, children)),
        entries=tuple(entries),
        home=home,
        roots=tuple(roots),
        jumps=tuple(jumps),
        letter=letter,
        sizes=tuple(sizes[name] for name in letter),
        members=members,
        shared=tuple(sum(1 << letter[name] for name in separator) for separator in separators),
        homes=tuple(home[name] for name in letter),
        below=tuple(tuple(entries[child] for child in some) for some in children),
    )


def _jump(parent: int, jumps: Sequence[int], depths: Sequence[int]) -> int:
    """Return where a child of `parent` jumps: any ancestor is then some log2(depth) steps away (Myers 1983)."""
    over = jumps[parent]
    far = depths[parent] - depths[over] == depths[over] - depths[jumps[over]]
    return jumps[over] if far else parent
