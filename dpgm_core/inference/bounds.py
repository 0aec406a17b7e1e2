"""Certain bounds on the log-partition function of models that are too wide for a junction tree."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import evolve, frozen
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit, xlogy

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.errors import InferenceError
from dpgm_core.inference.contract import LogPartitionBounds
from dpgm_core.inference.junction_tree.engine import JunctionTree, JunctionTreeEngine
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = ["PartwiseBounds"]


# --- Upper bound: potentials divided among parts whose junction tree fits -------------------------
# Let parts t = 1 .. T have potentials phi_t with sum_t phi_t / T = theta. Hoelder's inequality gives
#
#     Z = sum_x prod_t exp(phi_t(x))^(1/T) <= prod_t (sum_x exp(phi_t(x)))^(1/T),   log Z <= sum_t log Z(phi_t) / T,
#
# for ANY such division, so every step of its optimisation is certified. With spanning trees for parts this is the
# tree-reweighted bound (Wainwright, Jaakkola, Willsky 2005); here a part holds whatever fits. The bound is convex in
# the division, with the marginals of the parts as its gradient.

_EPSILON = float(np.finfo(np.float64).eps)
#: Nats that an impossible cell costs while a possible record, or a possible q, is searched for.
_PENALTY = 50.0
# Steps of L-BFGS; each takes one inference in every part.
_MAX_DIVISION_STEPS = 60


@frozen(kw_only=True, eq=False)
class Cover:
    """Parts of a structure that hold all its cliques together. engines: one per part. cells: per part, which cells of
    the structure its own are. holders: (cells,), how many parts hold each cell.
    """

    structure: Structure
    engines: tuple[JunctionTreeEngine, ...]
    cells: tuple[IntArray, ...]
    holders: IntArray

    @classmethod
    def of(cls, structure: Structure, parts: Sequence[Sequence[int]], inference: JunctionTree) -> Cover:
        """structure: one clique to a group. parts: numbers of the groups that each holds. Raises TooLarge."""
        cliques, every = structure.cliques, np.arange(structure.cells)
        engines = tuple(inference.plain(Structure(structure.domain, [cliques[n] for n in part])) for part in parts)
        cells = tuple(np.concatenate([every[structure.slices[n]] for n in part]) for part in parts)
        holders = np.bincount(np.concatenate(cells), minlength=structure.cells)
        return cls(structure=structure, engines=engines, cells=cells, holders=holders)


@frozen(kw_only=True, eq=False)
class Division:
    """The best division found. bound: nats, certain but for rounding. slack: what rounding may have taken off it, nats.
    potentials, marginals: of each part.
    """

    bound: float
    slack: float
    potentials: tuple[FloatArray, ...]
    marginals: tuple[FloatArray, ...]


def divide(cover: Cover, theta: FloatArray) -> Division:
    """Divide potentials among the parts of a cover so that the bound is low. theta: (cells,), nats, -inf allowed.

    Raises InferenceError where a part finds every record impossible.
    """
    parts, cells = len(cover.engines), cover.cells
    # Of each part first what is fair: phi_t / T = theta / holders, the same in all of them.
    fair = [theta[own] * parts / cover.holders[own] for own in cells]
    ends = np.cumsum([0, *(own.size for own in cells)])
    everything = np.concatenate(cells)
    best: Division | None = None

    def bound(moved: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        # What is moved sums to 0 over the parts that hold a cell.
        centred = moved - (np.bincount(everything, moved, theta.size) / cover.holders)[everything]
        phi = [start + centred[a:b] for start, a, b in zip(fair, ends, ends[1:], strict=False)]
        beliefs = [engine.infer(Tables(engine.structure, own)) for engine, own in zip(cover.engines, phi, strict=True)]
        value = math.fsum(one.log_partition for one in beliefs) / parts
        marginals = tuple(one.marginals.values for one in beliefs)
        if best is None or value < best.bound:
            best = Division(
                bound=value, slack=_division_slack(cover, phi, theta), potentials=tuple(phi), marginals=marginals
            )
        slope = np.concatenate(marginals) / parts
        slope -= (np.bincount(everything, slope, theta.size) / cover.holders)[everything]
        return value, slope

    start = np.zeros(everything.size)
    if parts == 1:
        bound(start)
    else:
        minimize(
            bound,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MAX_DIVISION_STEPS, "ftol": 1e-7, "maxfun": 2 * _MAX_DIVISION_STEPS},
        )
    assert best is not None
    return best


def _division_slack(cover: Cover, phi: Sequence[FloatArray], theta: FloatArray) -> float:
    """What rounding may have changed: a unit in the last place of every potential that is added or raised to a power,
    and one per cell that an inference adds up.
    """
    shared = sum(_magnitude(own, engine.structure) for own, engine in zip(phi, cover.engines, strict=True)) / len(phi)
    operations = max(engine.needs.cells for engine in cover.engines)
    return 4 * _EPSILON * (shared + _magnitude(theta, cover.structure) + operations + 1)


def _magnitude(values: FloatArray, structure: Structure) -> float:
    """The largest finite size of a record's log-weight: summed over the cliques, nats."""
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    largest = np.maximum.reduceat(sizes, [where.start for where in structure.slices])
    return float((largest * structure.multiplicities).sum())


# --- Narrow parts of a model ----------------------------------------------------------------------
# Each attribute joins an existing cluster, less what no longer fits, so the clusters are those of a chordal graph and
# no larger than the limit: a partial k-tree.

# What a clique counts that an attribute shares with a cluster without being complete in it.
_PARTIAL_CLIQUE_WEIGHT = 0.01
# Parts at least, where one does not hold every clique; each clique held makes the next part want it this much less.
_MIN_PARTS, _REPEATED_CLIQUE_DISCOUNT = 4, 8.0


class Growth:
    """One part. names: those to place, in the domain's order. sizes: labels of each. cells: of one cluster, at most;
    single cliques are kept whole even if they have more. whole: place an attribute only where all its cliques, as far
    as they are placed, fit in.
    """

    def __init__(
        self,
        names: Iterable[str],
        cliques: Sequence[tuple[Clique, float]],
        sizes: Mapping[str, int],
        cells: int,
        *,
        whole: bool,
    ) -> None:
        self.names = tuple(names)
        self._sizes, self._cells, self._whole = sizes, cells, whole
        self._around: dict[str, list[tuple[frozenset[str], float]]] = defaultdict(list)
        among = frozenset(self.names)
        for clique, weight in cliques:
            inside = among.intersection(clique)
            for name in inside:
                self._around[name].append((inside, weight))
        self.placed: dict[str, frozenset[str]] = {}
        self._order: dict[str, int] = {}
        self._heap: list[tuple[float, int, int, str]] = []
        self._hosts: dict[str, tuple[float, int, frozenset[str]]] = {}
        self._grow(sorted({inside for rows in self._around.values() for inside, _ in rows}, key=sorted), cliques)

    def holds(self, clique: Iterable[str]) -> bool:
        """Whether a cluster holds what is to be placed of a clique, all of it being placed."""
        inside = [name for name in clique if name in self._around or name in self.placed]
        if not all(name in self.placed for name in inside):
            return False
        return not inside or set(inside) <= self.placed[max(inside, key=self._order.__getitem__)]

    def _grow(self, scopes: Sequence[frozenset[str]], cliques: Sequence[tuple[Clique, float]]) -> None:
        starts = [scope for _, scope in sorted(((-weight, c) for c, weight in cliques), key=lambda one: one[0])]
        for start in [*starts, *((name,) for name in self.names)]:
            inside = frozenset(name for name in start if name in self._around or name in self.names)
            if not inside or any(name in self.placed for name in inside):
                continue
            if self._whole and any(not one.isdisjoint(self.placed) for name in inside for one, _ in self._around[name]):
                continue  # an attribute shares a clique with one that is placed
            for name in sorted(inside):
                self._place(name, inside)
            self._offer(inside)
            while self._heap:
                name = heapq.heappop(self._heap)[-1]
                if name not in self.placed:
                    self._join(name, self._hosts[name][-1])

    def _place(self, name: str, cluster: frozenset[str]) -> None:
        self.placed[name] = cluster
        self._order[name] = len(self._order)

    def _join(self, name: str, host: frozenset[str]) -> None:
        parents = set(host)
        room = self._cells // self._sizes[name]
        while parents and math.prod(self._sizes[other] for other in parents) > room:
            parents.remove(min(sorted(parents), key=lambda other: self._loss_without(name, other)))
        if self._whole and any(
            other in self.placed and other not in parents for scope, _ in self._around[name] for other in scope - {name}
        ):
            return
        cluster = frozenset(parents | {name})
        self._place(name, cluster)
        self._offer(cluster)

    def _loss_without(self, name: str, other: str) -> tuple[float, float]:
        """Return what a cluster loses without `other` when `name` joins: cliques with it now, and those still open."""
        now = sum(weight for scope, weight in self._around[name] if other in scope)
        later = sum(
            weight for scope, weight in self._around[other] if name not in scope and not self.placed.keys() >= scope
        )
        return now, later

    def _offer(self, cluster: frozenset[str]) -> None:
        """Put up the neighbours of a new cluster: those that complete most cliques in it first."""
        candidates = {
            other for name in cluster for scope, _ in self._around[name] for other in scope
        } - self.placed.keys()
        for name in sorted(candidates):
            gain, open_ = 0.0, 0
            for scope, weight in self._around[name]:
                rest = scope - {name}
                gain += weight if rest <= cluster else _PARTIAL_CLIQUE_WEIGHT * weight * len(rest & cluster)
                open_ += not self.placed.keys() >= rest
            # Of the clusters that complete as much the latest is best: it reaches where growth is.
            mine = (gain, len(self._order), cluster)
            self._hosts[name] = max(self._hosts.get(name, mine), mine, key=lambda one: one[:2])
            heapq.heappush(self._heap, (-gain, open_, len(self._order), name))


def cover(cliques: Sequence[Clique], sizes: Mapping[str, int], cells: int) -> list[list[int]]:
    """Parts that hold every clique at least once together: the numbers of the cliques of each; one if it holds all.

    >>> cover([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2), 8)
    [[0, 1, 2]]
    >>> [len(part) for part in cover([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2), 4)]
    [2, 2, 2, 2]
    """
    holders = [0] * len(cliques)
    parts: list[list[int]] = []
    while len(parts) < _MIN_PARTS or not all(holders):
        # Cliques that no part holds yet come first by far, so each part adds some: there is an end.
        weights = [_REPEATED_CLIQUE_DISCOUNT**-count if count else 100.0 * len(cliques) for count in holders]
        growth = Growth(sizes, list(zip(cliques, weights, strict=True)), sizes, cells, whole=False)
        part = [number for number, clique in enumerate(cliques) if growth.holds(clique)]
        if len(part) == len(cliques):
            return [part]
        for number in part:
            holders[number] += 1
        parts.append(part)
    return parts


def blocks(cliques: Sequence[Clique], sizes: Mapping[str, int], cells: int) -> list[tuple[str, ...]]:
    """The attributes in disjoint blocks, each of which fits with all of the cliques' parts that are inside it.

    >>> blocks([("a", "b"), ("b", "c"), ("c", "a")], dict.fromkeys("abc", 2), 4)
    [('a', 'b'), ('c',)]
    """
    left = list(sizes)
    parts = []
    while left:
        growth = Growth(left, [(clique, 1.0) for clique in cliques], sizes, cells, whole=True)
        parts.append(tuple(name for name in left if name in growth.placed))
        left = [name for name in left if name not in growth.placed]
    return parts


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
        inside: list[dict[frozenset[str], Clique]] = [{} for _ in blocks]
        for (clique,) in structure.groups:
            parts: dict[int, list[str]] = {}
            for name in clique:
                parts.setdefault(block_of[name], []).append(name)
            pieces.append(tuple((block, tuple(names)) for block, names in parts.items()))
            for block, names in pieces[-1]:
                inside[block].setdefault(frozenset(names), names)
        engines = tuple(
            inference.plain(Structure(structure.domain.subset(names), cliques.values()))
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
            entropies[block] = beliefs.log_partition - float(_weighted(mu.values, phi.values).sum())
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
                last = range(-len(names), 0)
                moved = np.moveaxis(table, [axes.index(name) for name in names], last)
                table = np.asarray(_weighted(q[other][names], moved).sum(axis=tuple(last)))
                axes = [name for name in axes if name not in names]
        group, order = structure.find(tuple(axes))
        mine = phi[structure.slices[group]].reshape(structure.shapes[group])
        mine = mine if order is None else mine.transpose(order)
        mine += table
    return Tables(structure, phi)


def _weighted(weights: FloatArray, table: FloatArray) -> FloatArray:
    """Return table * weights, where 0 * -inf is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0, table * weights, 0.0)


def _expected(theta: Tables, pieces: Sequence[tuple[int, Clique]], q: Start) -> float:
    """E_q of one clique's potential, where 0 * -inf is 0."""
    weights = np.ones(())
    for block, names in pieces:
        weights = np.multiply.outer(weights, q[block][names])
    return float(_weighted(weights, theta[tuple(name for _, names in pieces for name in names)]).sum())


def _slack(blocks: Blocks, theta: Tables, low: float) -> float:
    """Marginals err by a unit in the last place per cell that an inference adds up; potentials weigh that."""
    operations = sum(engine.needs.cells + engine.structure.cells for engine in blocks.engines)
    return 4 * _EPSILON * (operations + 1) * (_magnitude(theta.values, theta.structure) + 1) if low > -math.inf else 0.0


# --- Bethe lower bound of attractive models of binary attributes ----------------------------------
# Where no pair's potential favours unequal labels (p is log-supermodular), Ruozzi (2012, "The Bethe partition function
# of log-supermodular graphical models") shows that the largest value of
#
#     sum theta mu + sum_i H(mu_i) + sum_ij (H(mu_ij) - H(mu_i) - H(mu_j))
#
# over ALL locally consistent mu is at most log Z: any such mu certifies a bound, whether messages converge or not. What
# the labels are called is no matter, so a model counts as attractive too if some attributes' labels can be swapped to
# make it so. Given p(x_i = 1) = q_i the best tables of pairs are known in closed form (Welling and Teh 2001), so the
# search is over q alone.

# Steps of L-BFGS from each start, and how far from certain it may go, as a logarithm of odds.
_MAX_BETHE_STEPS, _MAX_LOG_ODDS = 100, 30.0
# Other starts: all attributes near one label, near the other; attractive models have their modes on either side.
_START_PROBABILITIES = (0.05, 0.95)


@frozen(kw_only=True, eq=False)
class Attractive:
    """A model of binary attributes, labels swapped where `swapped` says so. names: (n,), those of two labels. first,
    second: (m,), the attributes of each pair. fields: (n, 2), pairs: (m, 2, 2), potentials in nats. constant: nats.
    slack: what it has to lose because a pair that favours unequal labels by a rounding error is taken as neutral.
    """

    names: tuple[str, ...]
    swapped: Array
    first: IntArray
    second: IntArray
    fields: FloatArray
    pairs: FloatArray
    constant: float
    slack: float

    @classmethod
    def of(cls, theta: Tables) -> Attractive | None:
        """The model of these potentials, one clique to a group; None where it has larger cliques, attributes of more
        labels, or cannot be made attractive.
        """
        sizes = theta.structure.domain.sizes
        names = tuple(name for name, size in sizes.items() if size > 1)
        if any(sizes[name] != 2 for name in names):
            return None
        place = {name: number for number, name in enumerate(names)}
        fields, constant = np.zeros((len(names), 2)), 0.0
        tables: dict[tuple[int, ...], FloatArray] = {}
        for clique, table in theta.items():
            among = tuple(place[name] for name in clique if name in place)
            if len(among) > 2:
                return None
            if len(among) == 2:
                square = table.reshape(2, 2) if among[0] < among[1] else table.reshape(2, 2).T
                key = tuple(sorted(among))
                tables[key] = tables.get(key, 0.0) + square
            elif among:
                fields[among[0]] += table.reshape(2)
            else:
                constant += float(table.sum())
        edges = np.array(list(tables), dtype=np.int64).reshape(-1, 2)
        pairs = np.array(list(tables.values()), dtype=np.float64).reshape(-1, 2, 2)
        alike, apart = _diagonals(pairs)
        close = 8 * _EPSILON * np.where(np.isfinite(pairs), np.abs(pairs), 0.0).sum(axis=(1, 2))
        swapped = _swapped(len(names), edges, alike > apart + close, apart > alike + close)
        if swapped is None:
            return None
        first, second = edges.T
        fields[swapped] = fields[swapped][:, ::-1]
        pairs[swapped[first]] = pairs[swapped[first]][:, ::-1]
        pairs[swapped[second]] = pairs[swapped[second]][:, :, ::-1]
        alike, apart = _diagonals(pairs)
        wrong = apart > alike
        against = float((apart[wrong] - alike[wrong]).sum())
        return cls(
            names=names,
            swapped=swapped,
            first=first,
            second=second,
            fields=fields,
            pairs=pairs,
            constant=constant,
            slack=against,
        )

    def bound(self, starts: Iterable[Mapping[str, FloatArray]]) -> tuple[float, float]:
        """The best bound found and its slack for rounding, nats; -inf where no possible q was found.

        starts: single attributes' marginals to look from, besides some of its own.
        """
        proposals = [np.array([start[name][1] for name in self.names]) for start in starts]
        begins = [np.where(self.swapped, 1 - q, q) for q in proposals]
        begins += [np.full(len(self.names), side) for side in _START_PROBABILITIES]
        soft = self._soft()
        best = max(self.value(self._possible(_best(soft, q))) for q in begins)
        cells = self.pairs.size + self.fields.size
        magnitude = sum(
            float(np.where(np.isfinite(one), np.abs(one), 0.0).sum()) for one in (self.pairs, self.fields)
        ) + abs(self.constant)
        # A cell's probability errs by some _EPSILON, its part of the entropy by less than 40 times as much.
        return best, self.slack + 64 * _EPSILON * (cells + 1 + magnitude)

    def value(self, q: FloatArray) -> float:
        """Bethe's functional at q_i = p(x_i = 1), with the best tables of pairs; -inf where q needs an impossible one.

        q: (n,), of the swapped labels.
        """
        singles, tables = np.stack([1 - q, q], axis=1), self._tables(q)
        degree = np.bincount(self.first, minlength=q.size) + np.bincount(self.second, minlength=q.size)
        energy = float(_weighted(singles, self.fields).sum()) + float(_weighted(tables, self.pairs).sum())
        entropy = float((degree - 1) @ xlogy(singles, singles).sum(axis=1)) - float(xlogy(tables, tables).sum())
        return self.constant + energy + entropy

    def _tables(self, q: FloatArray) -> FloatArray:
        """(m, 2, 2): the tables of pairs that are best given q, locally consistent with it."""
        one, two = q[self.first], q[self.second]
        alike, apart = _diagonals(self.pairs)
        with np.errstate(invalid="ignore"):
            weight = np.exp(-np.maximum(np.where(alike == apart, 0.0, alike - apart), 0.0))
        # The smaller root of weight * both * neither = only_one * only_two, written so that nothing cancels.
        linear = weight + (1 - weight) * (one + two)
        root = np.sqrt(np.maximum(linear**2 - 4 * (1 - weight) * one * two, 0.0))
        both = 2 * one * two / np.maximum(linear + root, np.finfo(np.float64).tiny)
        both = np.where(np.isneginf(self.pairs[:, 0, 1]), two, np.where(np.isneginf(self.pairs[:, 1, 0]), one, both))
        both = np.clip(both, np.maximum(one + two - 1, 0.0), np.minimum(one, two))
        neither = np.maximum((1 - one) - (two - both), 0.0)
        return np.stack([neither, two - both, one - both, both], axis=1).reshape(-1, 2, 2)

    def _soft(self) -> Attractive:
        """Return the model with a penalty instead of each -inf, to look for q."""
        finite = np.concatenate([one[np.isfinite(one)] for one in (self.fields, self.pairs)])
        span = float(np.ptp(finite)) if finite.size else 0.0
        low = (float(finite.min()) if finite.size else 0.0) - _PENALTY - span
        fields, pairs = (np.where(np.isneginf(one), low, one) for one in (self.fields, self.pairs))
        return evolve(self, fields=fields, pairs=pairs, constant=0.0, slack=0.0)

    def _possible(self, q: FloatArray) -> FloatArray:
        """q, changed where an impossible cell would have mass: impossible labels get none, and where one label forbids
        another its attribute gets no more than what is left. A contradiction stays, and shows in `value`.
        """
        never = np.isneginf(self.fields)
        np.logical_or.at(never, self.first, np.isneginf(self.pairs).all(axis=2))
        np.logical_or.at(never, self.second, np.isneginf(self.pairs).all(axis=1))
        # x_low = 1 needs x_high = 1.
        right, left = np.isneginf(self.pairs[:, 0, 1]), np.isneginf(self.pairs[:, 1, 0])
        low = np.concatenate([self.second[right], self.first[left]])
        high = np.concatenate([self.first[right], self.second[left]])
        q, sure = np.where(never[:, 1], 0.0, q), never[:, 0].copy()
        for _ in range(q.size):
            before = sure.sum()
            np.logical_or.at(sure, high, sure[low])
            if sure.sum() == before:
                break
        q = np.where(sure & ~never[:, 1], 1.0, q)
        for _ in range(q.size):
            before = q.copy()
            np.minimum.at(q, low, q[high])
            if np.array_equal(before, q):
                break
        return q


def _diagonals(pairs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m,) each: the potentials of equal labels summed, and of unequal ones."""
    return pairs[:, 0, 0] + pairs[:, 1, 1], pairs[:, 0, 1] + pairs[:, 1, 0]


def _swapped(count: int, edges: IntArray, alike: Array, apart: Array) -> Array | None:
    """Return whose labels to swap so that no pair favours unequal ones; None if impossible (a signed graph's balance).

    Each attribute stands twice in a graph, as it is and swapped; balance means that no component holds both.
    """
    same, other = edges[alike], edges[apart]
    tails = np.concatenate([same, same + count, other, other + count])[:, 0]
    heads = np.concatenate([same, same + count, other + count, other])[:, 1]
    graph = csr_array((np.ones(tails.size), (tails, heads)), shape=(2 * count, 2 * count))
    component = connected_components(graph, directed=False)[1]
    plain, swapped = component[:count], component[count:]
    return None if (plain == swapped).any() else np.asarray(plain > swapped)


def _best(model: Attractive, start: FloatArray) -> FloatArray:
    """Ascent from a start on a model without zeros. start: (n,)."""

    def fall(odds: FloatArray) -> tuple[float, FloatArray]:
        q = expit(odds)
        return -model.value(q), -_slope(model, q) * q * (1 - q)

    begin = logit(np.clip(start, *_START_PROBABILITIES))  # nearer to certain the slope is flat
    result = minimize(
        fall,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-_MAX_LOG_ODDS, _MAX_LOG_ODDS)] * begin.size,
        options={"maxiter": _MAX_BETHE_STEPS},
    )
    return np.asarray(expit(result.x if math.isfinite(result.fun) else begin))


def _slope(model: Attractive, q: FloatArray) -> FloatArray:
    """(n,): derivatives of `value`; those by the tables of pairs are 0, as these are the best."""
    tables = np.maximum(model._tables(q), np.finfo(np.float64).tiny)
    theta, n = model.pairs, q.size
    degree = np.bincount(model.first, minlength=n) + np.bincount(model.second, minlength=n)
    slope: FloatArray = model.fields[:, 1] - model.fields[:, 0] + (1 - degree) * (np.log1p(-q) - np.log(q))
    marked = theta - np.log(tables)
    slope += np.bincount(model.first, marked[:, 1, 0] - marked[:, 0, 0], n)
    slope += np.bincount(model.second, marked[:, 0, 1] - marked[:, 0, 0], n)
    return slope


# --- Both bounds ----------------------------------------------------------------------------------

# Records drawn from each part to start from, and rounds that look for a possible one near the best of them.
_RECORDS_DRAWN, _MAX_SEARCH_ROUNDS = 64, 10


class PartwiseBounds:
    """Bounds for one structure. cells: of a cluster of a part, at most: more is tighter and slower; a single clique may
    have more. max_bytes: memory one inference in a part may take. Keeps no state between calls.
    """

    def __init__(self, structure: Structure, *, cells: int = 1024, max_bytes: int = 2**31) -> None:
        cliques = sorted(filter(None, structure.maximal), key=len, reverse=True)
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
        own = potentials.structure
        rounding = _EPSILON * (own.cells + 1) * (1 + _magnitude(potentials.values, own))
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
        parts = zip(self._cover.engines, divided.marginals, strict=True)
        tables = [Tables(engine.structure, values) for engine, values in parts]
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
        soft = theta.map(lambda values: np.where(np.isneginf(values), -_PENALTY - _span(values), values))
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
