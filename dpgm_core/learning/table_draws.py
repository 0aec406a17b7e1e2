"""Tables of N records drawn from a model, without the records: the cost does not grow with N.

On a junction tree the counts of N independent records are multinomial at the root and, given the counts of a separator,
multinomial in each of its states (Sheldon and Dietterich 2011, collective graphical models). Exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["TableDraws", "cells_of_junction_tree"]


def cells_of_junction_tree(structure: Structure) -> int:
    """Return the cells of the junction tree, which is the cost of one draw.

    >>> from dpgm_core.domain import Domain
    >>> cells_of_junction_tree(Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2))))
    8
    """
    return sum(math.prod(structure.domain.shape(clique)) for clique in structure.constrained.junction_tree[0])


class TableDraws:
    """Sampler of the tables of `measured` from the model with these log-potentials.

    potentials: over the model's structure, one of whose cliques contains each measured clique. The junction tree is
    compiled once and its marginals are kept, so use it where `cells_of_junction_tree` is small.

    >>> from dpgm_core.domain import Domain
    >>> structure = Structure.chain(Domain.from_sizes(dict.fromkeys("abc", 2)))
    >>> int(TableDraws(Tables.zeros(structure), structure).draw(9, np.random.default_rng(0)).sum())
    18
    """

    def __init__(self, potentials: Tables, measured: Structure) -> None:
        cliques, edges = potentials.structure.constrained.junction_tree
        domain = potentials.structure.domain
        wider = Structure(domain, cliques)
        marginals = JunctionTree().compile(wider).infer(potentials.embed(wider)).marginals
        self._steps = [_step(marginals, cliques, number, parent) for number, parent in _from_roots(len(cliques), edges)]
        self._places = [[_place(cliques, clique) for clique in group] for group in measured.groups]
        self._tables = len(cliques)

    def draw(self, count: int, generator: np.random.Generator) -> IntArray:
        """Return the counts of `count` records, (measured.cells,)."""
        counts: list[IntArray] = [np.zeros(0, np.int64)] * self._tables
        for step in self._steps:
            parents = np.array([count]) if step.parent is None else step.above.of(counts[step.parent]).reshape(-1)
            drawn = generator.multinomial(parents, step.conditional)
            counts[step.number] = drawn.reshape(step.shape).transpose(step.order)
        return np.concatenate(
            [sum(margin.of(counts[host]).reshape(-1) for host, margin in places) for places in self._places]
        )


@frozen(kw_only=True)
class _Margin:
    """Axes to sum over, then the order of those that are left."""

    summed_axes: tuple[int, ...]
    order: tuple[int, ...]

    def of(self, table: IntArray) -> IntArray:
        summed: IntArray = table.sum(axis=self.summed_axes).transpose(self.order)
        return summed


@frozen(kw_only=True, eq=False)
class _Step:
    """Draw one clique's table given its parent's.

    above: the separator's margin of the parent. conditional: (states of the separator, cells of the rest). shape,
    order: separator first, and back to the clique's axes.
    """

    number: int
    parent: int | None
    above: _Margin
    conditional: FloatArray
    shape: tuple[int, ...]
    order: tuple[int, ...]


def _step(marginals: Tables, cliques: Sequence[Clique], number: int, parent: int | None) -> _Step:
    clique, above = cliques[number], () if parent is None else cliques[parent]
    separator = tuple(name for name in clique if name in above)
    names = separator + tuple(name for name in clique if name not in above)
    table = marginals[names]
    states = math.prod(table.shape[: len(separator)])
    joint = table.reshape(states, -1)
    sums = joint.sum(axis=1, keepdims=True)
    # A state of probability 0 gets no records, whatever stands here.
    conditional = np.divide(joint, sums, out=np.full_like(joint, 1 / joint.shape[1]), where=sums > 0)
    return _Step(
        number=number,
        parent=parent,
        above=_margin(above, separator),
        conditional=conditional,
        shape=table.shape,
        order=tuple(names.index(name) for name in clique),
    )


def _margin(clique: Clique, names: Clique) -> _Margin:
    left = [name for name in clique if name in names]
    return _Margin(
        summed_axes=tuple(axis for axis, name in enumerate(clique) if name not in names),
        order=tuple(left.index(name) for name in names),
    )


def _place(cliques: Sequence[Clique], clique: Clique) -> tuple[int, _Margin]:
    host = next(number for number, other in enumerate(cliques) if set(clique) <= set(other))
    return host, _margin(cliques[host], clique)


def _from_roots(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int | None]]:
    """Return every node of a forest with its parent, after its parent."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, two in edges:
        neighbours[one].append(two)
        neighbours[two].append(one)
    parents: dict[int, int | None] = {}
    for root in range(count):
        todo: list[tuple[int, int | None]] = [(root, None)]
        while todo:
            number, parent = todo.pop()
            if number not in parents:
                parents[number] = parent
                todo += [(other, number) for other in neighbours[number]]
    return list(parents.items())
