"""A lower bound on log Z: structured mean field, whose blocks of attributes are each as wide as fits.

For ANY distribution q, log Z >= H(q) + E_q[sum_c theta_c] (Gibbs' inequality). Here q is a product over disjoint blocks
of attributes, each a model of its own with an exact junction tree. Coordinate ascent sets one block at a time to the
best there is while the others stand still, which is p given their averaged potentials (Saul and Jordan 1996); the bound
never falls. A start at one possible record is q = a point mass, whose bound is that record's log-weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core.arrays import FloatArray, IntArray
from dpgm_core.errors import InferenceError
from dpgm_core.inference.bounds.upper import EPSILON
from dpgm_core.inference.exact.junction_tree import JunctionTree, JunctionTreeEngine
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["Blocks", "Start", "ascend"]

# Rounds over all blocks at most, and the rise per round, nats, that is not worth another.
ROUNDS, RISE = 30, 1e-6

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
    for _ in range(ROUNDS):
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
        done = low - best <= RISE
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
