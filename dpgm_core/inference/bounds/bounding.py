"""An interval that certainly holds log Z, of a model of any width: both bounds, and records to start from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.inference.bounds.bethe import Attractive
from dpgm_core.inference.bounds.growth import blocks, cover
from dpgm_core.inference.bounds.lower import Blocks, ascend
from dpgm_core.inference.bounds.upper import EPSILON, Cover, Division, divide
from dpgm_core.inference.contract import LogPartitionBounds
from dpgm_core.inference.exact.junction_tree import JunctionTree
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["PartwiseBounds"]

# Records drawn from each part to start from, and rounds that look for a possible one near the best of them.
DRAWS, ROUNDS = 64, 10
# What an impossible cell costs, nats, while a possible record is looked for.
PENALTY = 50.0


class PartwiseBounds:
    """Bounds for one structure. cells: of a cluster of a part, at most: more is tighter and slower; a single clique may
    have more. max_bytes: memory one inference in a part may take. Keeps no state between calls.

    >>> from dpgm_core.domain import Domain
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
            codes = engine.sample(Tables(engine.structure, values), DRAWS, np.random.default_rng(0))
            drawn.append(np.stack(codes, axis=1).astype(np.int64))
        records = np.concatenate(drawn)
        record: IntArray = records[np.argmax(_log_weights(soft, records))]
        for _ in range(ROUNDS):
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
