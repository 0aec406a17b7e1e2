"""What depends on the structure alone: where each parameter goes, and how likely each edge is in a random tree."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from dpgm_core import Clique, FloatArray, IntArray, Structure, StructureError

__all__ = ["EdgeClass", "Plan", "compile_plan", "edge_probabilities"]


@frozen(kw_only=True)
class EdgeClass:
    """All edges between attributes of j and of k labels.

    shape: (edges, j, k). cells: where their tables stand in the buffer of cells. ends: where the messages to either end
    stand in the buffer of messages, (edges, j) and (edges, k). probability: (edges,), rho.
    """

    shape: tuple[int, int, int]
    cells: slice
    ends: tuple[slice, slice]
    probability: FloatArray


@frozen(kw_only=True)
class Plan:
    """Index arrays. The buffer of cells holds one cell per label of each attribute, then the edges' tables, then one
    constant.

    source, target: each parameter of the structure and the cell it is added to, one pair per use. starts:
    (attributes,), the first cell of each. cell_of: (messages,), the attribute cell that an entry of a message is about.
    rho: (messages,), rho of its edge. over: (attributes,), 1 - sum of rho over the edges of an attribute, its counting
    number. forest: whether the graph is one, where all of this is plain belief propagation.
    """

    cells: int
    nodes: int
    source: IntArray
    target: IntArray
    starts: IntArray
    edges: tuple[EdgeClass, ...]
    cell_of: IntArray
    rho: FloatArray
    over: FloatArray
    forest: bool


def compile_plan(structure: Structure) -> Plan:
    """The plan of a pairwise structure. Raises StructureError for cliques of three attributes with several labels.

    >>> from dpgm_core import Domain
    >>> plan = compile_plan(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))))
    >>> plan.forest, plan.rho.tolist()[:2], plan.over.tolist()
    (True, [1.0, 1.0], [0.0, -1.0, 0.0])
    """
    size_of = structure.domain.sizes
    number = {name: i for i, name in enumerate(size_of)}
    starts = np.cumsum([0, *size_of.values()])
    nodes = int(starts[-1])

    # An attribute of one label carries no message: without it a table keeps its cells and their order.
    scopes = {
        clique: tuple(name for name in clique if size_of[name] > 1) for group in structure.groups for clique in group
    }
    for clique, scope in scopes.items():
        if len(scope) > 2:
            raise StructureError(
                f"trw-bp works on pairs of attributes, but the structure holds {clique!r}; use junction-tree or "
                "loopy-bp, or measure pairs"
            )
    pairs = sorted({_ordered(scope, size_of, number) for scope in scopes.values() if len(scope) == 2})
    ends = np.array([[number[a], number[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    rho = edge_probabilities(len(number), ends)

    edges, first_cell, place, cell_of, message_rho = [], nodes, {}, [], []
    messages = 0
    shapes = np.array([[size_of[a], size_of[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    for j, k in sorted({(int(j), int(k)) for j, k in shapes}):
        members = np.flatnonzero((shapes == (j, k)).all(axis=1))
        slices = []
        for end, size in ((0, j), (1, k)):
            cell_of.append((starts[ends[members, end]][:, None] + np.arange(size)).reshape(-1))
            message_rho.append(np.repeat(rho[members], size))
            slices.append(slice(messages, messages := messages + members.size * size))
        for i, member in enumerate(members):
            place[pairs[member]] = first_cell + i * j * k
        cells = slice(first_cell, first_cell := first_cell + members.size * j * k)
        edges.append(
            EdgeClass(shape=(members.size, j, k), cells=cells, ends=(slices[0], slices[1]), probability=rho[members])
        )

    source, target = [], []
    for offset, group in zip(structure.slices, structure.groups, strict=True):
        for clique in group:
            scope = scopes[clique]
            count = offset.stop - offset.start
            where = np.arange(count)
            if len(scope) == 2:
                key = _ordered(scope, size_of, number)
                if key != scope:
                    where = where.reshape(size_of[key[0]], size_of[key[1]]).T.reshape(-1)
                first = place[key]
            else:
                first = int(starts[number[scope[0]]]) if scope else first_cell
            source.append(np.arange(offset.start, offset.stop))
            target.append(first + where)
    probability_sums = np.bincount(ends.reshape(-1), weights=np.repeat(rho, 2), minlength=len(number))
    return Plan(
        cells=first_cell + 1,
        nodes=nodes,
        source=np.concatenate(source),
        target=np.concatenate(target),
        starts=starts[:-1],
        edges=tuple(edges),
        cell_of=np.concatenate([np.zeros(0, dtype=np.int64), *cell_of]),
        rho=np.concatenate([np.zeros(0), *message_rho]),
        over=np.asarray(1.0 - probability_sums, dtype=np.float64),
        forest=bool((rho == 1.0).all()),
    )


def _ordered(scope: Clique, size_of: dict[str, int], number: dict[str, int]) -> Clique:
    """The two names, fewer labels first, then in the domain's order, so that few shapes of edges remain."""
    return tuple(sorted(scope, key=lambda name: (size_of[name], number[name])))


def edge_probabilities(nodes: int, ends: IntArray) -> FloatArray:
    """rho, (edges,): how likely each edge is in a spanning forest drawn uniformly; exactly 1 for bridges.

    It is the effective resistance between its ends in a network of unit resistors (Kirchhoff 1847), so all of them are
    positive, and they sum to nodes - components. ends: (edges, 2). Dense linear algebra: nodes^3.

    >>> edge_probabilities(4, np.array([[0, 1], [1, 2], [0, 2], [2, 3]])).round(6).tolist()
    [0.666667, 0.666667, 0.666667, 1.0]
    """
    laplacian = np.zeros((nodes, nodes))
    a, b = ends[:, 0], ends[:, 1]
    np.add.at(laplacian, (a, b), -1.0)
    np.add.at(laplacian, (b, a), -1.0)
    laplacian[np.diag_indices(nodes)] = -laplacian.sum(axis=1)
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    rho: FloatArray = inverse[a, a] + inverse[b, b] - 2 * inverse[a, b]
    # A bridge is in every forest, others in 1 - 1 / nodes of them at most; rounding is far smaller than that.
    rho[rho > 1 - 1 / (2 * nodes)] = 1.0
    return rho
