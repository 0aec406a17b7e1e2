"""Many queries on one calibrated junction tree, without a structure or an inference for each query.

A calibrated tree holds the marginal of each cluster. Rooted anywhere, p = p(root) * product of p(C | S), where S is the
separator of C and its parent; a subtree's clusters alone give the marginal of what they hold. So for a query Q

    p(Q) = sum over the smallest subtree that holds Q of p(top) * product of p(C | S) over its other clusters,

and the sum under a cluster C is a message p(A | S), where A are the attributes of Q that it carries up. A message
depends on C and A alone, so that queries share it: all pairs of n attributes need at most n per cluster. Where a
separator has probability 0, so has every joint cell, and 0 is divided by 1. Source: Koller and Friedman (2009),
section 10.3.3.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from attrs import field, frozen

from dpgm_core._util.arrays import FloatArray
from dpgm_core.errors import TooLarge, human_bytes, thousands
from dpgm_core.structure.graphs import Clique, places
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["ClusterTree", "TreeQueries", "cluster_tree"]


# --- Sums over a cluster --------------------------------------------------------------------------
# The attributes are letters, their places in the elimination order, and sets of them are the bits of an integer. A
# message has an axis for each letter of its separator, ascending, and one last axis for all that it carries together:
# so how it is taken in depends on the clusters and not on what is asked, and is found once.

Axes = tuple[int, ...]


class Stage(NamedTuple):
    """One message taken in: (batch, rows, inner) times (batch, inner, carried); the batch is absent where empty.

    turned, taken: axes of the table so far, and of the message, for that. left, right: their shapes. made: that of the
    product: one axis for each letter that is left, and a last one for all that was carried.
    """

    turned: Axes
    taken: Axes | None
    left: Axes
    right: Axes
    made: Axes


@frozen(eq=False)
class ClusterSum:
    """The sum of a cluster's marginal times messages over the letters that are not kept.

    summed: axes of the cluster's table that nothing needs. stages: one for each message. letters: the letters of the
    result in the order of its axes; what was carried comes last. cells: of the letters left before, and after, each
    stage. order: axes that bring the separator to the front, None where it is there. shared: its shape. own: the other
    letters kept, in order.
    """

    summed: Axes
    stages: tuple[Stage, ...]
    letters: Axes
    cells: tuple[int, ...]
    order: Axes | None
    shared: Axes
    own: Axes

    def work(self, carried: Sequence[int]) -> int:
        """Cells of all tables made, the cluster's own not counted. carried: cells of each message's last axis."""
        total, product = self.cells[0], 1
        for cells, more in zip(self.cells[1:], carried, strict=True):
            product *= more
            total += cells * product
        return total


def cluster_sum(members: int, taken: Sequence[int], keep: int, separator: int, sizes: Sequence[int]) -> ClusterSum:
    """The stages for a cluster of these members.

    taken: the separators of the messages, in order. keep: of the members, those of the result. separator: towards the
    parent.
    """
    needed = [keep]
    for one in reversed(taken):
        needed.append(needed[-1] | one)
    needed.reverse()
    axes = tuple(places(members))
    axes_left = tuple(places(needed[0]))
    summed = tuple(at for at, letter in enumerate(axes) if letter not in axes_left)
    stages: list[Stage] = []
    cells = [_cells(axes_left, sizes)]
    for one, left in zip(taken, needed[1:], strict=True):
        stage, axes_left = _stage(axes_left, one, left, sizes, first=not stages)
        stages.append(stage)
        cells.append(_cells(axes_left, sizes))
    front = tuple(places(separator & keep))
    own = tuple(letter for letter in axes_left if letter not in front)
    order = (*(axes_left.index(letter) for letter in (*front, *own)), *([len(axes_left)] if stages else ()))
    return ClusterSum(
        summed=summed,
        stages=tuple(stages),
        letters=axes_left,
        cells=tuple(cells),
        order=None if order == tuple(range(len(order))) else order,
        shared=tuple(sizes[letter] for letter in front),
        own=own,
    )


def _stage(axes: Axes, separator: int, left: int, sizes: Sequence[int], *, first: bool) -> tuple[Stage, Axes]:
    """Return how a message over a separator is multiplied in, and the axes that are left."""
    message = tuple(places(separator))
    batch = tuple(letter for letter in message if left >> letter & 1)
    inner = tuple(letter for letter in message if not left >> letter & 1)
    rows = tuple(letter for letter in axes if not separator >> letter & 1)
    carried = () if first else (len(axes),)
    turned = tuple(axes.index(letter) for letter in (*batch, *rows))
    taken = (*(message.index(letter) for letter in (*batch, *inner)), len(message))
    front = (_cells(batch, sizes),) if batch else ()
    stage = Stage(
        turned=(*turned, *carried, *(axes.index(letter) for letter in inner)),
        taken=None if taken == tuple(range(len(taken))) else taken,
        left=(*front, -1, _cells(inner, sizes)),
        right=(*front, _cells(inner, sizes), -1),
        made=(*(sizes[letter] for letter in (*batch, *rows)), -1),
    )
    return stage, (*batch, *rows)


def _cells(letters: Sequence[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[letter] for letter in letters)


# --- The rooted junction tree ---------------------------------------------------------------------

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
        for letter in places(mask & ~self.members[cluster]):
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
        f"the query of {shown} has {thousands(cells)} cells and needs {thousands(needed)} bytes on the way, "
        f"against {human_bytes(max_bytes)} that max_bytes leaves to queries; ask for fewer attributes"
    )


def cluster_tree(structure: Structure) -> ClusterTree:
    """The junction forest of a structure's elimination, rooted; plain work on names, no tables."""
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


# --- Answers ----------------------------------------------------------------------------------------


class TreeQueries:
    """Answers from the marginals of a tree's clusters.

    marginals: over `tree.structure`, of one record. keep_bytes: of messages, kept for the queries that follow.
    """

    def __init__(self, tree: ClusterTree, marginals: Tables, *, keep_bytes: int) -> None:
        self._tree = tree
        self._marginals = marginals.arrays()
        self._separators: dict[int, FloatArray] = {}
        # Messages, and what a cluster's table is before it meets its first message.
        self._kept: OrderedDict[Message | ClusterSum, FloatArray] = OrderedDict()
        self._room = keep_bytes

    def answer(self, names: Clique, parts: Iterable[Part]) -> FloatArray:
        """p(names), one axis per name in the order given, by the tree's plan for them."""
        sizes, letter_of = self._tree.sizes, self._tree.letter
        tables, letters = [], tuple[int, ...]()
        for part in parts:
            joint = self._sum(part.top, part.sum, self._tables(part.messages))
            tables.append(joint.reshape([sizes[letter] for letter in part.letters]))
            letters += part.letters
        table = tables[0]
        for other in tables[1:]:
            table = np.multiply.outer(table, other)
        return np.ascontiguousarray(table.transpose([letters.index(letter_of[name]) for name in names]))

    def _tables(self, messages: Sequence[Message]) -> list[FloatArray]:
        """Messages, and before them those that they rest on and that are not kept."""
        ready: dict[Message, FloatArray] = {}
        missing: list[Message] = []
        stack = list(messages)
        while stack:
            message = stack.pop()
            table = self._kept.get(message)
            if table is None:
                missing.append(message)
                stack += self._tree.message_plan(message).below
            else:
                ready[message] = table
        for message in reversed(missing):
            plan = self._tree.message_plan(message)
            joint = self._sum(message[0], plan.sum, [ready.pop(one) for one in plan.below])
            if plan.sum.order is not None:
                joint = np.ascontiguousarray(joint.transpose(plan.sum.order))
            mass = self._separator(message[0], plan.sum.shared)
            ready[message] = _conditional(joint.reshape(*plan.sum.shared, plan.cells), mass)
            self._keep(message, ready[message])
        return [ready[message] for message in messages]

    def _keep(self, key: Message | ClusterSum, table: FloatArray) -> None:
        self._kept[key] = table
        self._room -= table.nbytes
        while self._room < 0:
            self._room += self._kept.popitem(last=False)[1].nbytes  # the oldest

    def _separator(self, cluster: int, shape: Sequence[int]) -> FloatArray:
        """The marginal of the attributes shared with the parent, (*shape, 1); 1 where it is 0, as that divides 0."""
        mass = self._separators.get(cluster)
        if mass is None:
            shared, members = self._tree.separators[cluster], self._tree.structure.cliques[cluster]
            summed = self._marginals[cluster].sum(
                axis=tuple(at for at, name in enumerate(members) if name not in shared)
            )
            mass = self._separators[cluster] = np.where(summed > 0, summed, 1.0).reshape(*shape, 1)
        return mass

    def _sum(self, cluster: int, summing: ClusterSum, inputs: Sequence[FloatArray]) -> FloatArray:
        """The sum of a cluster's marginal times messages: an axis for each letter left, then one for all carried."""
        if not inputs:
            return np.asarray(self._marginals[cluster].sum(axis=summing.summed))
        table = self._first(cluster, summing)
        for stage, message in zip(summing.stages, inputs, strict=True):
            if stage is not summing.stages[0]:
                table = table.transpose(stage.turned).reshape(stage.left)
            if stage.taken is not None:
                message = message.transpose(stage.taken)
            table = np.matmul(table, message.reshape(stage.right)).reshape(stage.made)
        return table

    def _first(self, cluster: int, summing: ClusterSum) -> FloatArray:
        """Return the needed part of the cluster's marginal, as the matrix that the first message meets."""
        table = self._kept.get(summing)
        if table is None:
            first = summing.stages[0]
            needed = self._marginals[cluster].sum(axis=summing.summed).transpose(first.turned)
            table = np.ascontiguousarray(needed).reshape(first.left)
            self._keep(summing, table)
        return table


def _conditional(joint: FloatArray, mass: FloatArray) -> FloatArray:
    """p(A | S) from p(S, A) and p(S)."""
    return joint / mass
