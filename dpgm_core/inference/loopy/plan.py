"""The plan of loopy belief propagation: all index work for one structure, and the same as flat whole numbers."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import IntArray, aligned
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = [
    "CELLS_AT_ONCE",
    "FactorClass",
    "FlatPlan",
    "LoopyPlan",
    "SizePlan",
    "VariableClass",
    "compile_plan",
    "flatten",
]


# The factors are the structure's maximal cliques, less attributes of one label. A clique inside another one is
# multiplied into it, which changes no fixed point of Bethe's free energy for single attributes and removes loops for
# larger ones. Factors of one shape (up to the order of their axes) form a `FactorClass`, whose tables are one array
# with the factors along the LAST axis, so that every step runs over long contiguous rows. Messages between factors and
# attributes of size k are the columns of one (k, messages) array. A plan is plain integers and arrays: a compiled
# executor can run it too.

# Attributes of different degree share one padded block while padding adds at most this many cells: numpy's overhead
# per call costs as much as some thousand cells.
_MAX_PADDING = 2048
# Factor cells worked on at a time, so that a product and its sums stay in the cache of one core.
CELLS_AT_ONCE = 2**15
_NONE: IntArray = np.zeros(0, dtype=np.int64)


@frozen(kw_only=True)
class FactorClass:
    """All factors of one shape. shape: sizes of the axes, descending. count: factors. cells: where their tables
    (*shape, count) stand in the flat buffer of factor cells. ports: per axis, (number of the SizePlan, columns) of
    the messages.
    """

    shape: tuple[int, ...]
    count: int
    cells: slice
    ports: tuple[tuple[int, slice], ...]


@frozen(kw_only=True)
class VariableClass:
    """Attributes of one size, their degree padded to a power of two.

    incoming: (degree * count,), the message column in each slot; padding points at a column of ones.
    weights: (count,), 1 - degree, the counting numbers of the attributes in Bethe's free energy.
    """

    degree: int
    count: int
    incoming: IntArray
    weights: IntArray


@frozen(kw_only=True)
class SizePlan:
    """The messages about attributes of `size` labels. slots: (messages,), where each message's answer stands in the
    slots of the variable classes, one class after the other.
    """

    size: int
    messages: int
    classes: tuple[VariableClass, ...]
    slots: IntArray


@frozen(kw_only=True)
class LoopyPlan:
    """Everything that depends on the structure alone.

    cells: factor cells. source: (cells,), the parameter that a factor's own table starts from. nested_cell,
    nested_source: pairs (factor cell, parameter) of the cliques inside other ones. constants: parameters of the empty
    clique, one entry per use. log_free: summed log sizes of attributes in no clique, nats. forest: whether the factor
    graph has no loop. depth: the most factors on a path of a forest, hence the sweeps to exactness; 0 if it has loops.
    """

    cells: int
    factors: tuple[FactorClass, ...]
    sizes: tuple[SizePlan, ...]
    source: IntArray
    nested_cell: IntArray
    nested_source: IntArray
    constants: IntArray
    log_free: float
    forest: bool
    depth: int


def compile_plan(structure: Structure) -> LoopyPlan:
    """Do all index work for one structure; memory and time are proportional to the cells of all cliques."""
    maximal, hosted = _absorb(structure)
    offsets = {group: where.start for group, where in enumerate(structure.slices)}
    size_of = structure.domain.sizes

    # Factors of one shape, axes by descending size; names of the axes as they stand in the class.
    by_shape: dict[tuple[int, ...], list[tuple[int, Clique, Clique]]] = defaultdict(list)
    for group, clique in maximal:
        ordered = tuple(sorted(clique, key=lambda name: -size_of[name]))
        by_shape[structure.domain.shape(ordered)].append((group, clique, ordered))

    numbers = {size: i for i, size in enumerate(sorted({size for shape in by_shape for size in shape}))}
    columns: list[list[str]] = [[] for _ in numbers]  # the attribute each message is about
    factors, source, place, cells = [], [], {}, 0
    for shape, members in by_shape.items():
        ports = []
        for axis, size in enumerate(shape):
            column = columns[numbers[size]]
            ports.append((numbers[size], slice(len(column), len(column) + len(members))))
            column.extend(ordered[axis] for _, _, ordered in members)
        table = np.stack([_parameters(offsets[g], size_of, clique, ordered) for g, clique, ordered in members], axis=-1)
        where = slice(cells, cells + table.size)
        factors.append(FactorClass(shape=shape, count=len(members), cells=where, ports=tuple(ports)))
        source.append(table.reshape(-1))
        for i, (_, _, ordered) in enumerate(members):
            place[frozenset(ordered)] = (cells + i, len(members), ordered)
        cells += table.size

    nested_cell, nested_source, constants = [], [], []
    for group, clique, host in hosted:
        if host is None:
            constants.append(offsets[group])
            continue
        first, stride, ordered = place[frozenset(host)]
        parameters = _parameters(offsets[group], size_of, clique, ordered)
        shape = tuple(size_of[name] for name in ordered)
        nested_source.append(np.broadcast_to(parameters, shape).reshape(-1))
        nested_cell.append(first + stride * np.arange(math.prod(shape)))

    covered = {name for _, clique in maximal for name in clique}
    depth = _forest_depth([clique for _, clique in maximal])
    return LoopyPlan(
        cells=cells,
        factors=tuple(factors),
        sizes=tuple(_size_plan(size, columns[i]) for size, i in numbers.items()),
        source=np.concatenate([_NONE, *source]),
        nested_cell=np.concatenate([_NONE, *nested_cell]),
        nested_source=np.concatenate([_NONE, *nested_source]),
        constants=np.array(constants, dtype=np.int64),
        log_free=sum(math.log(size) for name, size in size_of.items() if name not in covered),
        forest=depth is not None,
        depth=depth or 0,
    )


def _absorb(structure: Structure) -> tuple[list[tuple[int, Clique]], list[tuple[int, Clique, Clique | None]]]:
    """The maximal cliques (group, clique), and the others with the maximal clique that takes them in."""
    # Attributes of one label carry no message; without their axes the tables keep their cells and their order.
    large = {name for name, size in structure.domain.sizes.items() if size > 1}
    members = [
        (group, tuple(name for name in clique if name in large))
        for group, cliques in enumerate(structure.groups)
        for clique in cliques
    ]
    maximal: list[tuple[int, Clique]] = []
    hosted: list[tuple[int, Clique, Clique | None]] = []
    around: dict[str, list[Clique]] = defaultdict(list)
    for group, clique in sorted(members, key=lambda member: -len(member[1])):  # stable: structure order within a size
        if not clique:
            hosted.append((group, clique, None))
            continue
        names = frozenset(clique)
        candidates = min((around[name] for name in clique), key=len)
        host = next((other for other in candidates if names.issubset(other)), None)
        if host is not None:
            hosted.append((group, clique, host))
            continue
        maximal.append((group, clique))
        for name in clique:
            around[name].append(clique)
    return maximal, hosted


def _parameters(offset: int, size_of: dict[str, int], clique: Clique, axes: Clique) -> IntArray:
    """The positions of a clique's parameters, its axes put where `axes` has them, size 1 for names it lacks."""
    shape = tuple(size_of[name] for name in clique)
    table = offset + np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    return aligned(table, clique, axes)


def _size_plan(size: int, columns: Sequence[str]) -> SizePlan:
    """Group the attributes of one size by padded degree and number the slots of their messages."""
    inbox: dict[str, list[int]] = defaultdict(list)
    for column, name in enumerate(columns):
        inbox[name].append(column)
    by_degree: dict[int, list[str]] = defaultdict(list)
    for name, messages in inbox.items():
        by_degree[1 << (len(messages) - 1).bit_length()].append(name)
    degrees = sorted(by_degree)
    for low, high in itertools.pairwise(degrees):
        if (high - low) * len(by_degree[low]) * size <= _MAX_PADDING:
            by_degree[high] = by_degree.pop(low) + by_degree[high]

    classes, slots, first = [], np.zeros(len(columns), dtype=np.int64), 0
    for degree, names in sorted(by_degree.items()):
        incoming = np.full((degree, len(names)), len(columns), dtype=np.int64)
        for i, name in enumerate(names):
            messages = inbox[name]
            incoming[: len(messages), i] = messages
            slots[messages] = first + i + len(names) * np.arange(len(messages))
        weights = np.array([1 - len(inbox[name]) for name in names], dtype=np.int64)
        classes.append(VariableClass(degree=degree, count=len(names), incoming=incoming.reshape(-1), weights=weights))
        first += incoming.size
    return SizePlan(size=size, messages=len(columns), classes=tuple(classes), slots=slots)


def _forest_depth(cliques: Sequence[Clique]) -> int | None:
    """The most factors on a path if the factor graph is a forest, else None."""
    around: dict[str, list[int]] = defaultdict(list)
    for i, clique in enumerate(cliques):
        for name in clique:
            around[name].append(i)
    seen: set[str] = set()
    deepest = 0
    for start in around:
        if start in seen:
            continue
        distance, edges, factors = _distances(start, cliques, around)
        seen |= distance.keys()
        if edges != len(distance) + factors - 1:  # a connected graph is a tree iff it has one edge less than nodes
            return None
        farthest = max(distance, key=distance.__getitem__)
        deepest = max(deepest, 1, *_distances(farthest, cliques, around)[0].values())
    return deepest


def _distances(start: str, cliques: Sequence[Clique], around: dict[str, list[int]]) -> tuple[dict[str, int], int, int]:
    """Factors between `start` and each attribute it reaches; edges and factors of its component."""
    distance, queue, visited, edges = {start: 0}, [start], set(), 0
    for name in queue:  # grows while it is walked: breadth first
        for factor in around[name]:
            if factor in visited:
                continue
            visited.add(factor)
            edges += len(cliques[factor])
            for other in cliques[factor]:
                if other not in distance:
                    distance[other] = distance[name] + 1
                    queue.append(other)
    return distance, edges, len(visited)


# --- The plan as flat whole numbers, for compiled sweeps ------------------------------------------

_MAX_FACTORS_AT_ONCE = 256  # factors of a class that are worked on at a time, if `CELLS_AT_ONCE` allows so many


@frozen(kw_only=True, eq=False)
class FlatPlan:
    """Where everything stands in one memory of floats: the factors' potentials; three buffers of all messages; two of
    what factors of three attributes and more need on the way. A buffer of messages has, per size k of attributes, k
    rows, and in each one entry per message and a last one, which padding points at.

    memory: floats. places: cells of the factors, entries of all messages, and where the five buffers begin. variables:
    (classes, 8), per variable class where its size's messages stand in a buffer, the size, the length of a row, the
    degree, the attributes, where in `incoming` their slots stand, whether it is the first class of its size, and where
    in `incoming` their weights stand. incoming: the columns of messages, and the weights. factors: per class of factors
    its order, how many, where their cells stand, and how many to work on at a time; then per axis its size, where the
    messages stand in a buffer, the length of their rows, and where tables over the axes before it stand in the last two
    buffers. starts: where in `factors` each class begins.
    """

    memory: int
    places: IntArray
    variables: IntArray
    incoming: IntArray
    factors: IntArray
    starts: IntArray


def flatten(plan: LoopyPlan) -> FlatPlan:
    """Return the plan in arrays of int64."""
    offsets, entries = [], 0
    variables, incoming, first = [], [], 0
    for sizes in plan.sizes:
        row = sizes.messages + 1
        offsets.append((entries, row))
        for number, one in enumerate(sizes.classes):
            slots = one.degree * one.count
            variables.append([entries, sizes.size, row, one.degree, one.count, first, number == 0, first + slots])
            incoming += [one.incoming, one.weights]
            first += slots + one.count
        entries += sizes.size * row
    factors: list[int] = []
    starts, between = [], 0
    for factor in plan.factors:
        starts.append(len(factors))
        width = min(_MAX_FACTORS_AT_ONCE, factor.count, max(8, CELLS_AT_ONCE // math.prod(factor.shape)))
        factors += [len(factor.shape), factor.count, factor.cells.start, width]
        used = 0
        for axis, (size, (number, columns)) in enumerate(zip(factor.shape, factor.ports, strict=True)):
            offset, row = offsets[number]
            factors += [size, offset + columns.start, row, used]
            used += width * math.prod(factor.shape[:axis]) if axis > 1 else 0
        between = max(between, used)
    begins = [plan.cells + i * entries for i in range(4)]
    return FlatPlan(
        memory=begins[-1] + 2 * between,
        places=np.array([plan.cells, entries, *begins, begins[-1] + between], dtype=np.int64),
        variables=np.array(variables, dtype=np.int64).reshape(-1, 8),
        incoming=np.concatenate([_NONE, *incoming]),
        factors=np.array(factors, dtype=np.int64),
        starts=np.array(starts, dtype=np.int64),
    )
