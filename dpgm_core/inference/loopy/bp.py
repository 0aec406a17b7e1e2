"""Loopy belief propagation."""

from __future__ import annotations

import itertools
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, IntArray, aligned
from dpgm_core.components.options import at_least_zero, flag, option, share, whole
from dpgm_core.errors import InferenceError, NotConverged, TooLarge, human_bytes
from dpgm_core.inference.bounds import PartwiseBounds
from dpgm_core.inference.constraints import ConstrainedEngine, constrained
from dpgm_core.inference.contract import Beliefs, Capability, LogPartitionBounds
from dpgm_core.inference.kernels.loading import kernels, resolve_executor
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["FlatPlan", "LoopyBP", "LoopyEngine", "LoopyPlan", "compile_plan", "flatten"]


# --- The plan: all index work for one structure, and the same as flat whole numbers ---------------
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


# --- One sweep of sum-product ---------------------------------------------------------------------
# Both spaces run the same code over an `Algebra`. No step divides by a message: what all others say is a product over
# a tree of pairs (attributes) or a recursive halving of the axes (factors), so true zeros are exact.

#: Per SizePlan, (size, messages + 1): the factors' messages, largest entry 1, and a last column of ones.
Messages = list[FloatArray]


class Contradiction(Exception):
    """A message or belief is all zero, so every record has probability 0."""


def _log_sum(table: FloatArray, axis: int) -> FloatArray:
    top = table.max(axis=axis, keepdims=True)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore", under="ignore"):
        logs: FloatArray = np.log(np.exp(table - top).sum(axis=axis)) + top.squeeze(axis)
    return logs


@frozen(kw_only=True)
class Algebra:
    """Arithmetic of one number representation: product, sum over an axis, quotient and power.

    to: from the representation to probabilities. log: from it to logarithms.
    """

    zero: float
    one: float
    times: np.ufunc
    total: Callable[[FloatArray, int], FloatArray]
    over: np.ufunc
    power: Callable[[FloatArray, float], FloatArray]
    to: Callable[[FloatArray], FloatArray]
    log: Callable[[FloatArray], FloatArray]


def _same(values: FloatArray) -> FloatArray:
    return values


PROBABILITY = Algebra(
    zero=0.0,
    one=1.0,
    times=np.multiply,
    total=lambda table, axis: np.add.reduce(table, axis=axis),
    over=np.divide,
    power=operator.pow,
    to=_same,
    log=np.log,
)
LOG = Algebra(
    zero=-np.inf,
    one=0.0,
    times=np.add,
    total=_log_sum,
    over=np.subtract,
    power=operator.mul,
    to=np.exp,
    log=_same,
)


def sweep(plan: LoopyPlan, algebra: Algebra, potentials: FloatArray, messages: Messages) -> Messages:
    """New messages from all factors at once; raises Contradiction.

    potentials: (cells,), factor cells in the algebra's representation.
    """
    fresh = [np.empty_like(block) for block in messages]
    to_factors = [_to_factors(algebra, sizes, block)[0] for sizes, block in zip(plan.sizes, messages, strict=True)]
    for factors in plan.factors:
        table = potentials[factors.cells].reshape(*factors.shape, factors.count)
        width = max(1, CELLS_AT_ONCE // math.prod(factors.shape))
        for first in range(0, factors.count, width):
            part = slice(first, first + width)
            inbox = [to_factors[number][:, columns][:, part] for number, columns in factors.ports]
            outbox = [fresh[number][:, columns][:, part] for number, columns in factors.ports]
            _from_factors(algebra, table[..., part], inbox, outbox)
    for block in fresh:
        block[:, -1] = algebra.one
        algebra.over(block, _top(algebra, block), out=block)
    return fresh


def _top(algebra: Algebra, block: FloatArray) -> FloatArray:
    top: FloatArray = np.maximum.reduce(block, axis=0)
    if top.min() == algebra.zero:
        raise Contradiction
    return top


def _to_factors(algebra: Algebra, sizes: SizePlan, block: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """(size, messages): per message column, the product of all OTHER messages to the attribute; and per variable
    class (size, attributes), the product of all.
    """
    answers, beliefs = [], []
    for variables in sizes.classes:
        # Pairwise products up a binary tree, then down: others(child) = others(parent) * sibling.
        level = np.take(block, variables.incoming, axis=1).reshape(sizes.size, variables.degree, variables.count)
        levels = []
        while level.shape[1] > 1:
            paired = level.reshape(sizes.size, -1, 2, variables.count)
            levels.append(paired)
            level = algebra.times(paired[:, :, 0], paired[:, :, 1])
        beliefs.append(level[:, 0])
        others = None
        for paired in reversed(levels):
            swapped = paired[:, :, ::-1]
            others = swapped if others is None else algebra.times(others[:, :, None], swapped)
            others = others.reshape(sizes.size, -1, variables.count)
        if others is None:  # one message only: nothing else is said
            others = np.full_like(level, algebra.one)
        answers.append(others.reshape(sizes.size, -1))
    joined = answers[0] if len(answers) == 1 else np.concatenate(answers, axis=1)
    return np.take(joined, sizes.slots, axis=1), beliefs


def _from_factors(algebra: Algebra, table: FloatArray, inbox: list[FloatArray], outbox: list[FloatArray]) -> None:
    """Write, for each axis, the sum over the other axes of table times their messages."""
    order = len(inbox)
    if order == 1:
        outbox[0][...] = table
        return
    half = order // 2
    _from_factors(
        algebra, _contract(algebra, table, inbox, range(order - 1, half - 1, -1)), inbox[:half], outbox[:half]
    )
    _from_factors(algebra, _contract(algebra, table, inbox, range(half - 1, -1, -1)), inbox[half:], outbox[half:])


def _contract(algebra: Algebra, table: FloatArray, inbox: list[FloatArray], axes: range) -> FloatArray:
    for axis in axes:
        table = algebra.total(algebra.times(table, _along(inbox[axis], axis, table.ndim)), axis)
    return table


def _along(message: FloatArray, axis: int, ndim: int) -> FloatArray:
    shape = [1] * ndim
    shape[axis], shape[-1] = message.shape
    return message.reshape(shape)


def factor_beliefs(
    plan: LoopyPlan, algebra: Algebra, potentials: FloatArray, messages: Messages
) -> tuple[FloatArray, float]:
    """(cells,): normalised factor beliefs as probabilities, and Bethe's log-partition, nats, of these potentials.

    log Z = sum_f log z_f + sum_i (1 - d_i) log z_i with z the sums of the unnormalised beliefs, which is Bethe's free
    energy at a fixed point for messages of any scale (Yedidia, Freeman, Weiss 2005; Wainwright, Jordan 2008, 4.1).
    """
    beliefs = np.empty(plan.cells)
    log_partition = 0.0
    to_factors = []
    for sizes, block in zip(plan.sizes, messages, strict=True):
        answers, products = _to_factors(algebra, sizes, block)
        to_factors.append(answers)
        for variables, product in zip(sizes.classes, products, strict=True):
            log_partition += float(variables.weights @ _normalised(algebra, product)[1])
    for factors in plan.factors:
        table = potentials[factors.cells].reshape(*factors.shape, factors.count)
        for axis, (number, columns) in enumerate(factors.ports):
            table = algebra.times(table, _along(to_factors[number][:, columns], axis, table.ndim))
        normalised, log_sums = _normalised(algebra, table.reshape(-1, factors.count))
        beliefs[factors.cells] = normalised.reshape(-1)
        log_partition += float(log_sums.sum())
    return beliefs, log_partition


def _normalised(algebra: Algebra, products: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities that sum to 1 over the first axis, and the logs of the sums they were divided by."""
    top = _top(algebra, products)
    scaled = algebra.to(algebra.over(products, top))
    sums = scaled.sum(axis=0)
    return scaled / sums, algebra.log(top) + np.log(sums)


# --- The engine -----------------------------------------------------------------------------------

# Finite potentials of one factor that span more nats than this go to log space at once: exp would underflow.
_MAX_SPAN = 700.0
#: What runs the sweeps: numpy, or kernels compiled by numba; "auto": numba if it is installed.
Executor: TypeAlias = Literal["auto", "numpy", "numba"]
# Factor beliefs, log-partition, whether converged, sweeps.
_Found: TypeAlias = tuple[FloatArray, float, bool, int]
# The residual schedule sends this share of the messages per round, those that would change most.
_RESIDUAL_SHARE = 0.25
# Zeros in loops can drive entries of messages to 0 for ever: below exp(-(_VANISHED + 4 spans)) they count as 0 when
# convergence is judged. Larger ones count however small they are, since two of them may oppose each other.
_VANISHED = 100.0
# Bytes per factor cell at the peak of a call: parameters, indices, potentials, beliefs and temporaries.
_BYTES_PER_CELL = 100


@frozen(kw_only=True)
class LoopyBP:
    """Damped sum-product on the factor graph, with Bethe's approximation of log Z.

    Exact, in a fixed number of undamped sweeps, when the factor graph of the maximal cliques is a forest; elsewhere
    the beliefs are locally consistent but approximate. Each sweep costs the cells of all cliques, so models far too
    wide for a junction tree are in reach. Messages are damped geometrically.

    Raises OptionError for an option out of range; `compile` raises TooLarge. Sources: Pearl 1988; Yedidia, Freeman,
    Weiss 2005 (Bethe); Elidan, McGraw, Koller 2006 (residual schedule).

    >>> from dpgm_core.domain.domain import Domain
    >>> structure = Structure.chain(Domain.from_sizes({"a": 2, "b": 2}))
    >>> beliefs = LoopyBP().compile(structure).infer(Tables(structure, np.log([1.0, 2.0, 3.0, 4.0])), total=10)
    >>> beliefs.marginals["a", "b"].round(6).tolist(), round(float(np.exp(beliefs.log_partition)), 6)
    ([[1.0, 2.0], [3.0, 4.0]], 10.0)
    """

    max_order: ClassVar[None] = None

    damping: float = option(
        0.5, help="exponent of the old message in the new one; 0 sends the new one as it is", validator=share
    )
    tolerance: float = option(
        1e-8,
        help="converged when no entry of an undamped message changes by a larger part of itself",
        validator=at_least_zero,
    )
    max_iterations: int = option(1000, help="sweeps before giving up", unit="sweeps", validator=whole)
    schedule: Literal["flooding", "residual"] = option(
        "flooding",
        help="flooding sends all messages per sweep, residual only the quarter that would change most",
    )
    require_convergence: bool = option(
        False, help="raise NotConverged instead of returning beliefs marked as not converged", validator=flag
    )
    max_bytes: int = option(4 * 2**30, help="refuse structures that would take more", unit="bytes", validator=whole)
    bound_cells: int = option(
        1024,
        help="cells of the widest cluster in the parts that bound log Z: more is tighter and slower",
        unit="cells",
        validator=whole,
    )
    executor: Executor = option(
        "auto",
        help="what runs the sweeps: numpy, or numba (extra `fast`, schedule = 'flooding'); auto: numba if installed",
    )

    def compile(self, structure: Structure) -> LoopyEngine | ConstrainedEngine:
        """An engine for a structure that honours the constraints of its domain. Raises TooLarge."""
        return constrained(structure, self._plain) if structure.domain.scopes else self._plain(structure)

    def _plain(self, structure: Structure) -> LoopyEngine:
        """Index arrays for one structure; raises TooLarge, with sizes, if the tables themselves do not fit."""
        pairs = zip(structure.sizes, structure.multiplicities, strict=True)
        cells = sum(size * multiplicity for size, multiplicity in pairs)
        if cells * _BYTES_PER_CELL > self.max_bytes:
            raise TooLarge(
                f"loopy-bp on {structure}: {cells:,} factor cells need about {human_bytes(cells * _BYTES_PER_CELL)}, "
                f"above max_bytes = {human_bytes(self.max_bytes)}; use smaller cliques or raise the limit"
            )
        return _engine(structure, self, compile_plan(structure))


@frozen(kw_only=True, eq=False)
class LoopyEngine:
    """Loopy belief propagation compiled for one structure; keeps no state between calls."""

    structure: Structure
    options: LoopyBP
    plan: LoopyPlan
    flat: FlatPlan | None

    def __reduce__(self) -> tuple[Any, ...]:
        # As it was asked for: "auto" may mean another executor on the machine that it comes to.
        return _engine, (self.structure, self.options, self.plan)

    @property
    def exact(self) -> bool:
        """Whether the factor graph is a forest."""
        return self.plan.forest

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Certified bounds; no more: max-product on a loopy graph decodes to nothing that could be promised."""
        return frozenset({"bounds"})

    @property
    def cost(self) -> None:
        """It does not say."""
        return None

    def infer(self, potentials: Tables, *, total: float = 1.0) -> Beliefs:
        """Beliefs of p(x) proportional to exp(sum of potentials); log_partition is Bethe's approximation.

        potentials: nats, -inf allowed. total: records the marginals sum to. Raises InferenceError for NaN and +inf,
        and when the messages find every record impossible (a contradiction that shows only around a loop goes
        unnoticed); NotConverged if that is asked for.
        """
        plan, values = self.plan, self._own(potentials)
        if isinstance(total, bool) or not 0 <= total < math.inf:
            raise InferenceError(f"loopy-bp: total must be a finite number of records, at least 0, got {total!r}")
        log_cells = values[plan.source]
        if plan.nested_cell.size:
            log_cells += np.bincount(plan.nested_cell, weights=values[plan.nested_source], minlength=plan.cells)
        constant = float(values[plan.constants].sum()) + plan.log_free
        if not (log_cells < np.inf).all() or not constant < np.inf:
            raise InferenceError("loopy-bp: the potentials hold NaN or +inf; they must be finite or -inf")
        try:
            shift = _shift(plan, log_cells)
            cells, log_partition, converged, iterations = self._run(log_cells)
        except Contradiction:
            shift = -math.inf
        if constant + shift == -math.inf:
            raise InferenceError(
                "loopy-bp: every record has probability 0, because the zeros (potentials of -inf) contradict each "
                "other; check the evidence and the zeros of the model"
            )
        marginals = np.bincount(plan.source, weights=cells, minlength=values.size)
        if plan.nested_cell.size:
            marginals += np.bincount(plan.nested_source, weights=cells[plan.nested_cell], minlength=values.size)
        np.add.at(marginals, plan.constants, 1.0)
        return Beliefs(
            marginals=Tables(self.structure, marginals * total),
            log_partition=log_partition + shift + constant,
            converged=converged,
            iterations=iterations,
        )

    def _own(self, potentials: Tables) -> FloatArray:
        if potentials.structure is not self.structure and potentials.structure != self.structure:
            raise InferenceError(f"loopy-bp compiled for {self.structure} got potentials over {potentials.structure}")
        return potentials.values.astype(np.float64, copy=False)

    def bounds(self, potentials: Tables) -> LogPartitionBounds:
        """Return an interval that certainly holds log Z: exact inference on parts, see `inference.bounds`.

        It does not depend on messages, converged or not, and takes many times as long as they do. Raises InferenceError
        as `infer` does, and TooLarge where a part does not fit max_bytes.
        """
        self._own(potentials)
        return self._bounding.bounds(potentials)

    @cached_property
    def _bounding(self) -> PartwiseBounds:
        options = self.options
        return PartwiseBounds(self.structure, cells=options.bound_cells, max_bytes=options.max_bytes)

    def _run(self, log_cells: FloatArray) -> _Found:
        """Factor beliefs, log-partition, whether converged, sweeps: in probability space unless that underflows."""
        span = -float(np.min(log_cells, where=log_cells > -np.inf, initial=0.0))
        log_floor = -(_VANISHED + 4 * span)
        if span < _MAX_SPAN and self.flat is not None:
            result = self._compiled(self.flat, log_cells, math.exp(max(log_floor, -_MAX_SPAN)))
            if result is not None:
                return result
        if span < _MAX_SPAN:
            try:
                with np.errstate(all="raise"):
                    return self._iterate(PROBABILITY, np.exp(log_cells), math.exp(max(log_floor, -_MAX_SPAN)))
            except FloatingPointError:  # some product underflowed, which might turn a possible record into a zero
                pass
        with np.errstate(under="ignore"):
            return self._iterate(LOG, log_cells, log_floor)

    def _compiled(self, flat: FlatPlan, log_cells: FloatArray, floor: float) -> _Found | None:
        """Return what `_iterate` returns in probability space; None where a product might underflow."""
        plan, options, kernel = self.plan, self.options, kernels("loopy")
        memory = np.empty(flat.memory)
        np.exp(log_cells, out=memory[: plan.cells])
        # Undamped and to the end on a forest, which a tolerance below 0 stands for.
        ends = (plan.depth, -1.0) if plan.forest else (options.max_iterations, options.tolerance)
        arrays = (flat.places, flat.variables, flat.incoming, flat.factors, flat.starts)
        settings = np.array([options.damping, ends[1], floor], dtype=np.float64)
        outcome, sweeps, residual, log_partition = kernel.run(memory, *arrays, settings, ends[0])
        if outcome == kernel.UNDERFLOW:
            return None
        if outcome == kernel.CONTRADICTION:
            raise Contradiction
        converged = plan.forest or residual <= options.tolerance
        if not converged:
            self._refuse_unconverged(sweeps, residual)
        return memory[: plan.cells], log_partition, converged, max(1, sweeps)

    def _iterate(self, algebra: Algebra, cells: FloatArray, floor: float) -> _Found:
        plan, options = self.plan, self.options
        messages = [np.full((sizes.size, sizes.messages + 1), algebra.one) for sizes in plan.sizes]
        if plan.forest:
            for _ in range(plan.depth):
                messages = sweep(plan, algebra, cells, messages)
            return *factor_beliefs(plan, algebra, cells, messages), True, max(1, plan.depth)
        iteration, residual = 0, math.inf
        while residual > options.tolerance and iteration < options.max_iterations:
            iteration += 1
            fresh = sweep(plan, algebra, cells, messages)
            changes = [_changes(algebra, floor, new, old) for new, old in zip(fresh, messages, strict=True)]
            residual = max(float(change.max()) for change in changes)
            if options.damping > 0:
                fresh = [_damped(algebra, options.damping, new, old) for new, old in zip(fresh, messages, strict=True)]
            messages = fresh if options.schedule == "flooding" else _most_changed(changes, fresh, messages)
        converged = residual <= options.tolerance
        if not converged:
            self._refuse_unconverged(iteration, residual)
        return *factor_beliefs(plan, algebra, cells, messages), converged, iteration

    def _refuse_unconverged(self, sweeps: int, residual: float) -> None:
        if self.options.require_convergence:
            raise NotConverged(
                f"loopy-bp: not converged after {sweeps} sweeps, messages still change by {residual:.1e} of "
                f"themselves (tolerance {self.options.tolerance:.1e}); raise damping or max_iterations, or try "
                "schedule = 'residual'"
            )


def _engine(structure: Structure, options: LoopyBP, plan: LoopyPlan) -> LoopyEngine:
    compiled = resolve_executor(options.executor) == "numba" and (plan.forest or options.schedule == "flooding")
    return LoopyEngine(structure=structure, options=options, plan=plan, flat=flatten(plan) if compiled else None)


def _shift(plan: LoopyPlan, log_cells: FloatArray) -> float:
    """Subtract each factor's largest potential in place; returns the sum of what was subtracted."""
    shift = 0.0
    for factors in plan.factors:
        table = log_cells[factors.cells].reshape(-1, factors.count)
        top = table.max(axis=0)
        if np.isneginf(top).any():
            raise Contradiction
        table -= top
        shift += float(top.sum())
    return shift


def _changes(algebra: Algebra, floor: float, fresh: FloatArray, old: FloatArray) -> FloatArray:
    """(messages + 1,): the largest relative change of an entry of each message, in [0, 1]."""
    low = np.maximum(np.minimum(fresh, old), floor)
    ratio = algebra.over(low, np.maximum(np.maximum(fresh, old), floor))
    return np.asarray(1.0 - algebra.to(ratio.min(axis=0)))


def _damped(algebra: Algebra, damping: float, fresh: FloatArray, old: FloatArray) -> FloatArray:
    """fresh^(1 - damping) old^damping: small entries matter by their logs, and a zero is never averaged away."""
    return np.asarray(algebra.times(algebra.power(fresh, 1.0 - damping), algebra.power(old, damping)))


def _most_changed(changes: list[FloatArray], fresh: Messages, old: Messages) -> Messages:
    """The old messages with the share of them replaced that would change most (batched residual schedule)."""
    flat = np.concatenate(changes)
    count = math.ceil(_RESIDUAL_SHARE * flat.size)
    chosen = np.zeros(flat.size, dtype=bool)
    chosen[np.argpartition(flat, -count)[-count:]] = True
    ends = np.cumsum([change.size for change in changes])[:-1]
    return [np.where(pick, new, before) for pick, new, before in zip(np.split(chosen, ends), fresh, old, strict=True)]
