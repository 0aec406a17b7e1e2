"""Bounds on the log-partition function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import FloatArray, IntArray
from dpgm_core.errors import InferenceError
from dpgm_core.inference.contract import LogPartitionBounds
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine
from dpgm_core.inference.upper_bounds import EPSILON, PENALTY, Attractive, Cover, Division, blocks, cover, divide
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["Blocks", "PartwiseBounds", "Start", "ascend"]


# --- Lower bound: structured mean field -----------------------------------------------------------
# For ANY distribution q, log Z >= H(q) + E_q[sum_c theta_c] (Gibbs' inequality). Here q is a product over disjoint
# blocks of attributes, each a model of its own with an exact junction tree. Coordinate ascent sets one block at a time
# to the best there is while the others stand still, which is p given their averaged potentials (Saul and Jordan 1996);
# the bound never falls. A start at one possible record is q = a point mass, whose bound is that record's log-weight.

# Rounds over all blocks at most, and the rise per round, nats, that is not worth another.
_MAX_ASCENT_ROUNDS, _MIN_RISE = 30, 1e-6

#: Marginals of each clique's parts: one array per block that meets it, axes in the clique's order.
Start = list[dict[Clique, FloatArray]]


@frozen(kw_only=True, eq=False)
class Blocks:
    """A structure in blocks. engines: one per block, over the parts of cliques inside it. pieces: per group of the
    structure, (block, the clique's attributes in it) for each block that it meets.
    """

    structure: Structure
    engines: tuple[JunctionTreeEngine, ...]
    pieces: tuple[tuple[tuple[int, Clique], ...], ...]

    @classmethod
    def of(cls, structure: Structure, blocks: Sequence[Sequence[str]], inference: JunctionTree) -> Blocks:
        """structure: one clique to a group, none of them empty. Raises TooLarge."""
        block_of = {name: number for number, names in enumerate(blocks) for name in names}
        pieces = []
        inside: list[dict[Clique, None]] = [{} for _ in blocks]
        for (clique,) in structure.groups:
            parts: dict[int, list[str]] = {}
            for name in clique:
                parts.setdefault(block_of[name], []).append(name)
            pieces.append(tuple((block, tuple(names)) for block, names in parts.items()))
            for block, names in pieces[-1]:
                inside[block][names] = None
        engines = tuple(
            inference.plain(Structure(structure.domain.subset(names), list(_distinct(cliques))))
            for names, cliques in zip(blocks, inside, strict=True)
        )
        return cls(structure=structure, engines=engines, pieces=tuple(pieces))

    def start(self, marginals: Mapping[str, FloatArray]) -> Start:
        """The product of these marginals of single attributes."""
        products: Start = [{} for _ in self.engines]
        for pieces in self.pieces:
            for block, names in pieces:
                table = np.ones(())
                for name in names:
                    table = np.multiply.outer(table, marginals[name])
                products[block][names] = table
        return products

    def improved(self, theta: Tables, record: IntArray) -> IntArray:
        """A record at least as likely: block by block the best labels given all others. theta: nats, finite."""
        names = theta.structure.domain.names
        sizes = theta.structure.domain.sizes
        codes = dict(zip(names, record, strict=True))
        for block, engine in enumerate(self.engines):
            point = self.start({name: np.eye(sizes[name])[code] for name, code in codes.items()})
            codes |= engine.maximize(_field(self, theta, point, block))[0]
        return np.array([codes[name] for name in names], dtype=np.int64)


def _distinct(cliques: Mapping[Clique, None]) -> list[Clique]:
    seen: dict[frozenset[str], Clique] = {}
    for clique in cliques:
        seen.setdefault(frozenset(clique), clique)
    return list(seen.values())


def ascend(blocks: Blocks, theta: Tables, start: Start) -> tuple[float, float]:
    """The bound from a start, and the slack for rounding, nats; (-inf, 0) where a block finds nothing possible.

    theta: over the blocks' structure, nats, -inf allowed.
    """
    q = [dict(one) for one in start]
    entropies = [math.nan] * len(q)
    low, best = -math.inf, -math.inf
    for _ in range(_MAX_ASCENT_ROUNDS):
        for block, engine in enumerate(blocks.engines):
            phi = _field(blocks, theta, q, block)
            try:
                beliefs = engine.infer(phi)
            except InferenceError:
                return best, _slack(blocks, theta, best)
            mu = beliefs.marginals
            with np.errstate(invalid="ignore"):
                energy = float(np.where(mu.values > 0, mu.values * phi.values, 0.0).sum())
            entropies[block] = beliefs.log_partition - energy
            q[block] = {names: mu[names] for names in q[block]}
        energies = [_expected(theta, pieces, q) for pieces in blocks.pieces]
        low = math.fsum(entropies) + math.fsum(energies) if min(energies) > -math.inf else -math.inf
        done = low - best <= _MIN_RISE
        best = max(best, low)
        if done or len(q) == 1:
            break
    return best, _slack(blocks, theta, best)


def _field(blocks: Blocks, theta: Tables, q: Start, block: int) -> Tables:
    """A block's potentials: of each clique's part inside it the average over the others' distributions."""
    structure = blocks.engines[block].structure
    phi = np.zeros(structure.cells)
    for number, pieces in enumerate(blocks.pieces):
        if all(other != block for other, _ in pieces):
            continue
        table, axes = theta.group(number), list(blocks.structure.groups[number][0])
        for other, names in pieces:
            if other != block:
                table = _averaged(table, axes, names, q[other][names])
                axes = [name for name in axes if name not in names]
        group, order = structure.find(tuple(axes))
        mine = phi[structure.slices[group]].reshape(structure.shapes[group])
        mine = mine if order is None else mine.transpose(order)
        mine += table
    return Tables(structure, phi)


def _averaged(table: FloatArray, axes: Sequence[str], names: Clique, weights: FloatArray) -> FloatArray:
    """sum over the axes `names` of table * weights, where 0 * -inf is 0."""
    moved = np.moveaxis(table, [axes.index(name) for name in names], range(-len(names), 0))
    with np.errstate(invalid="ignore"):
        product = np.where(weights > 0, moved * weights, 0.0)
    summed: FloatArray = product.sum(axis=tuple(range(-len(names), 0)))
    return summed


def _expected(theta: Tables, pieces: Sequence[tuple[int, Clique]], q: Start) -> float:
    """E_q of one clique's potential, where 0 * -inf is 0."""
    weights = np.ones(())
    for block, names in pieces:
        weights = np.multiply.outer(weights, q[block][names])
    table = theta[tuple(name for _, names in pieces for name in names)]
    with np.errstate(invalid="ignore"):
        return float(np.where(weights > 0, table * weights, 0.0).sum())


def _slack(blocks: Blocks, theta: Tables, low: float) -> float:
    """Marginals err by a unit in the last place per cell that an inference adds up; potentials weigh that."""
    operations = sum(engine.needs.cells + engine.structure.cells for engine in blocks.engines)
    sizes = np.where(np.isfinite(theta.values), np.abs(theta.values), 0.0)
    magnitude = np.maximum.reduceat(sizes, [where.start for where in theta.structure.slices]).sum()
    return 4 * EPSILON * (operations + 1) * (float(magnitude) + 1) if low > -math.inf else 0.0


# --- Both bounds ----------------------------------------------------------------------------------

# Records drawn from each part to start from, and rounds that look for a possible one near the best of them.
_RECORDS_DRAWN, _MAX_SEARCH_ROUNDS = 64, 10


class PartwiseBounds:
    """Bounds for one structure. cells: of a cluster of a part, at most: more is tighter and slower; a single clique may
    have more. max_bytes: memory one inference in a part may take. Keeps no state between calls.

    >>> from dpgm_core.domain.domain import Domain
    >>> pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    >>> ring = Structure(Domain.from_sizes(dict.fromkeys("abcd", 2)), pairs)
    >>> found = PartwiseBounds(ring, cells=4).bounds(Tables.zeros(ring))
    >>> found.low <= math.log(16) <= found.high, found.high - found.low < 1e-9
    (True, True)
    """

    def __init__(self, structure: Structure, *, cells: int = 1024, max_bytes: int = 2**31) -> None:
        cliques = _maximal(structure)
        singles = [(name,) for name in structure.domain.names if (name,) not in cliques]
        self._plain = Structure(structure.domain, [*cliques, *singles])
        self._single = range(len(cliques), len(cliques) + len(singles))
        self._wide = cliques
        self._structure = structure
        self._cells = max([cells, *(math.prod(structure.domain.shape(clique)) for clique in cliques)])
        self._inference = JunctionTree(max_bytes=max_bytes)

    @cached_property
    def _cover(self) -> Cover:
        parts = cover(self._wide, self._structure.domain.sizes, self._cells)
        return Cover.of(self._plain, [[*part, *self._single] for part in parts], self._inference)

    @cached_property
    def _blocks(self) -> Blocks:
        parts = blocks(self._wide, self._structure.domain.sizes, self._cells)
        return Blocks.of(self._plain, parts, self._inference)

    def bounds(self, potentials: Tables) -> LogPartitionBounds:
        """The interval, nats. Raises InferenceError for NaN and +inf and where a part finds every record impossible."""
        theta = potentials.embed(self._plain)
        divided = divide(self._cover, theta.values)
        rounding = EPSILON * (potentials.structure.cells + 1) * (1 + _magnitude(potentials))
        high = divided.bound + divided.slack + rounding
        if len(self._cover.engines) == 1:
            low = divided.bound - divided.slack - rounding
            return LogPartitionBounds(low=low, high=high, notes=("one junction tree holds the model: both are exact",))
        best, note = -math.inf, "no possible record was found to start from, so nothing is known below"
        for low, slack, by in self._rises(theta, divided):
            if low - slack - rounding > best:
                best, note = low - slack - rounding, f"the lower bound is {by}"
        return LogPartitionBounds(low=min(best, high), high=high, notes=(note,))

    def _rises(self, theta: Tables, divided: Division) -> Iterator[tuple[float, float, str]]:
        """Lower bounds, the slack of each, and whose it is, from the marginals of the parts and from a record."""
        names = theta.structure.domain.names
        tables = [
            Tables(engine.structure, values)
            for engine, values in zip(self._cover.engines, divided.marginals, strict=True)
        ]
        single = {name: np.mean([one[(name,)] for one in tables], axis=0) for name in names}
        starts = [(single, "structured mean field's")]
        record = self._record(theta, divided)
        if np.isfinite(_log_weights(theta, record[None])[0]):
            sizes = theta.structure.domain.sizes
            point = {name: np.eye(sizes[name])[code] for name, code in zip(names, record, strict=True)}
            starts.append((point, "structured mean field's, about one record"))
        for start, by in starts:
            yield *ascend(self._blocks, theta, self._blocks.start(start)), by
        attractive = Attractive.of(theta)
        if attractive is not None:
            yield *attractive.bound([start for start, _ in starts]), "Bethe's, as the model is attractive"

    def _record(self, theta: Tables, divided: Division) -> IntArray:
        """A likely record, possible if one is found: the best of draws from the parts, improved block by block."""
        soft = theta.map(lambda values: np.where(np.isneginf(values), -PENALTY - _span(values), values))
        drawn = []
        for engine, values in zip(self._cover.engines, divided.potentials, strict=True):
            codes = engine.sample(Tables(engine.structure, values), _RECORDS_DRAWN, np.random.default_rng(0))
            drawn.append(np.stack(codes, axis=1).astype(np.int64))
        records = np.concatenate(drawn)
        record: IntArray = records[np.argmax(_log_weights(soft, records))]
        for _ in range(_MAX_SEARCH_ROUNDS):
            before = record
            record = self._blocks.improved(soft, record)
            if np.array_equal(before, record):
                break
        return record


def _maximal(structure: Structure) -> list[Clique]:
    """The cliques that lie in no other one, once each."""
    distinct: dict[frozenset[str], Clique] = {}
    around: dict[str, list[frozenset[str]]] = {name: [] for name in structure.domain.names}
    for clique in sorted(structure.cliques, key=len, reverse=True):
        names = frozenset(clique)
        if not names or any(names <= other for other in min((around[name] for name in clique), key=len)):
            continue
        distinct[names] = clique
        for name in clique:
            around[name].append(names)
    return list(distinct.values())


def _log_weights(theta: Tables, records: IntArray) -> FloatArray:
    """(records,): summed potentials of each. records: (records, attributes), codes."""
    names = theta.structure.domain.names
    column = {name: records[:, number] for number, name in enumerate(names)}
    weights = np.zeros(len(records))
    for clique, table in theta.items():
        weights += table[tuple(column[name] for name in clique)]
    return weights


def _span(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max() - finite.min()) if finite.size else 0.0


def _magnitude(theta: Tables) -> float:
    sizes: Sequence[FloatArray] = [np.abs(table[np.isfinite(table)]) for table in theta.arrays()]
    most = [float(one.max()) if one.size else 0.0 for one in sizes]
    return sum(size * times for size, times in zip(most, theta.structure.multiplicities, strict=True))
