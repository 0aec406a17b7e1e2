"""Many queries on one calibrated junction tree: no query needs a structure, or an inference, of its own.

A calibrated tree holds the marginal of each cluster. Rooted anywhere, p = p(root) * product of p(C | S), where S is the
separator of C and its parent; a subtree's clusters alone give the marginal of what they hold. So for a query Q

    p(Q) = sum over the smallest subtree that holds Q of p(top) * product of p(C | S) over its other clusters,

and the sum under a cluster C is a message p(A | S), where A are the attributes of Q that it carries up. A message
depends on C and A alone, so that queries share it: all pairs of n attributes need at most n per cluster. Where a
separator has probability 0, nothing is divided. Source: Koller and Friedman (2009), section 10.3.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dpgm_core.arrays import FloatArray
from dpgm_core.inference.exact.cluster_tree import ClusterTree, Message, Part
from dpgm_core.structure import Clique
from dpgm_core.tables import Tables

__all__ = ["TreeQueries"]


class TreeQueries:
    """Answers from the marginals of a tree's clusters.

    marginals: over `tree.structure`, of one record. keep_bytes: of messages, kept for the queries that follow.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.inference.exact.cluster_tree import cluster_tree
    >>> from dpgm_core.structure import Structure
    >>> tree = cluster_tree(Structure.chain(Domain.from_sizes({"a": 2, "b": 2, "c": 2})))
    >>> marginals = Tables.from_arrays(tree.structure, {("a", "b"): np.eye(2) / 2, ("b", "c"): np.eye(2) / 2})
    >>> queries = TreeQueries(tree, marginals, keep_bytes=2**20)
    >>> queries.answer(("c", "a"), tree.plan(("c", "a"), max_bytes=2**20)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(self, tree: ClusterTree, marginals: Tables, *, keep_bytes: int) -> None:
        self._tree = tree
        self._marginals = marginals
        self._separators: dict[int, FloatArray] = {}
        self._kept: dict[Message, FloatArray] = {}
        self._room = keep_bytes

    def answer(self, names: Clique, parts: Iterable[Part]) -> FloatArray:
        """p(names), one axis per name in the order given, by the tree's plan for them."""
        table: FloatArray = np.ones(())
        held: Clique = ()
        for part in parts:
            found = self._sum(part.top, part.messages, self._tables(part.messages), part.names)
            table, held = np.multiply.outer(table, found), (*held, *part.names)
        return np.ascontiguousarray(table.transpose([held.index(name) for name in names]))

    def _tables(self, wanted: Sequence[Message]) -> list[FloatArray]:
        """Messages, and before them those that they rest on and that are not kept."""
        ready: dict[Message, FloatArray] = {}
        missing: dict[Message, tuple[Message, ...]] = {}
        stack = list(wanted)
        while stack:
            message = stack.pop()
            if message in self._kept:
                ready[message] = self._kept[message]
            else:
                missing[message] = self._tree.messages(*message)
                stack += missing[message]
        for message, below in reversed(missing.items()):
            inputs = [ready.pop(one) for one in below]
            joint = self._sum(message[0], below, inputs, self._tree.letters(message))
            ready[message] = _conditional(joint, self._separator(message[0]))
            self._keep(message, ready[message])
        return [ready[message] for message in wanted]

    def _keep(self, message: Message, table: FloatArray) -> None:
        self._kept[message] = table
        self._room -= table.nbytes
        while self._room < 0:
            self._room += self._kept.pop(next(iter(self._kept))).nbytes  # the oldest

    def _separator(self, cluster: int) -> FloatArray:
        """The marginal of the attributes shared with the parent, from the cluster's own table."""
        if cluster not in self._separators:
            names = self._tree.letters((cluster, frozenset()))
            self._separators[cluster] = self._sum(cluster, (), (), names)
        return self._separators[cluster]

    def _sum(self, cluster: int, messages: Sequence[Message], inputs: Sequence[FloatArray], keep: Clique) -> FloatArray:
        """The sum of a cluster's marginal times messages over what is not kept; axes in the order of `keep`."""
        tree = self._tree
        held = tree.structure.cliques[cluster]
        first, *others = tree.steps(cluster, messages, keep)
        table: FloatArray = self._marginals.group(cluster).sum(
            axis=tuple(at for at, name in enumerate(held) if name not in first)
        )
        held = tuple(name for name in held if name in first)
        for message, values, left in zip(messages, inputs, others, strict=True):
            table, held = _contracted(table, held, values, tree.letters(message), left)
        return table.transpose([held.index(name) for name in keep])


def _conditional(joint: FloatArray, mass: FloatArray) -> FloatArray:
    """p(A | S) from p(S, A) and p(S); 0 where S has probability 0."""
    mass = mass.reshape(*mass.shape, *(1,) * (joint.ndim - mass.ndim))
    given: FloatArray = np.divide(joint, mass, out=np.zeros(joint.shape), where=mass > 0)
    return given


def _contracted(
    p: FloatArray, p_names: Clique, q: FloatArray, q_names: Clique, left: frozenset[str]
) -> tuple[FloatArray, Clique]:
    """The sum of p * q over the names that are not left, all of which are in both: one (batched) matrix product."""
    batch = tuple(name for name in p_names if name in q_names and name in left)
    inner = tuple(name for name in p_names if name in q_names and name not in left)
    rows = tuple(name for name in p_names if name not in q_names)
    columns = tuple(name for name in q_names if name not in p_names)
    sizes = dict(zip((*p_names, *q_names), (*p.shape, *q.shape), strict=True))

    def matrix(table: FloatArray, names: Clique, *axes: Clique) -> FloatArray:
        ordered = table.transpose([names.index(name) for part in axes for name in part])
        return ordered.reshape([math.prod(sizes[name] for name in part) for part in axes])

    product = np.matmul(matrix(p, p_names, batch, rows, inner), matrix(q, q_names, batch, inner, columns))
    names = (*batch, *rows, *columns)
    return product.reshape([sizes[name] for name in names]), names
