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

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from dpgm_core._util.arrays import FloatArray
from dpgm_core.inference.junction_tree.cluster_tree import ClusterSum, ClusterTree, Message, Part
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.tables import Tables

__all__ = ["TreeQueries"]


class TreeQueries:
    """Answers from the marginals of a tree's clusters.

    marginals: over `tree.structure`, of one record. keep_bytes: of messages, kept for the queries that follow.

    >>> from dpgm_core.domain.domain import Domain
    >>> from dpgm_core.inference.junction_tree.cluster_tree import cluster_tree
    >>> from dpgm_core.structure import Structure
    >>> tree = cluster_tree(Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2})))
    >>> marginals = Tables.from_arrays(tree.structure, {("a", "b"): np.eye(2) / 2, ("b", "c"): np.eye(2) / 2})
    >>> queries = TreeQueries(tree, marginals, keep_bytes=2**20)
    >>> queries.answer(("c", "a"), tree.plan(("c", "a"), max_bytes=2**20)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
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
        table: FloatArray
        if not inputs:
            table = self._marginals[cluster].sum(axis=summing.summed)
            return table
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
