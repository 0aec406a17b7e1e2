"""Probabilities corrected from released tables, with their variance by formula.

The influence function of p(x | g) is (1{x, g} - p(x | g) 1{g}) / p(g); `dpgm_core.models.analysis` has the method and
its proof. The correction is read off the table of what the releases say less what the model does. Its noise is a
quadratic form of indicators of cells of some axes T: those of T and U have the covariance, sum over S in D inside both
of v_S prod over S of (1 - 1/size) / (cells of T per cell of S) / (cells of U per cell of S). Sampling is
p(x | g) (1 - p(x | g)) / (N p(g)), also for the part that no table tells.

Merged codes. Let a be a code, b its block, m the number of codes in b, w(a) the model's p(a | b), R all other
attributes. Under the model a and R are independent given b, so that to first order an answer with influence function
psi moves with w by the sum of r(a) P(a), r(a) = E[psi | R ~ p(. | b)] less its mean by w in b. The one-way table n,
measured before codes were merged, tells it: its contrasts inside b are independent of all sums by block, so the least
squares estimate of the counts of codes is (n_b of all tables) / m + n(a) - mean of n in b. Hence r is part of f: what
it says of blocks, its mean in b, has the noise of the blocks' effects, and r less this mean the noise of a count of n.
Where that noise is beyond what the split of b can matter, as shares that are all on one code, each code as likely, have
a variance of ((N p(b))^2 + v_b) / m along contrasts, w stays and the error is this; so too without such a table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray, ratio
from dpgm_core.domain.domain import Domain
from dpgm_core.errors import TooLarge
from dpgm_core.models.effects import Axes, Effects, effects_of
from dpgm_core.models.merged_codes import MergedAttribute, MergedCodes, merge_pools
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["Grid", "MAX_CELLS", "cell_covariance", "correct_shares", "effects_of_each"]

#: Largest table of a question.
MAX_CELLS = 2**20
#: No record is expected to meet a rarer condition, and the square of it is not 0.
_LEAST_GIVEN = 1e-100


@frozen(kw_only=True, eq=False)
class Grid:
    """The cells of some attributes, over all codes, or pools of them, and over the blocks of merged ones.

    attributes, shape: those without a condition first. fixed: axis of each condition -> its code. merged: axis of each
    attribute with merged codes -> its blocks. merges: attribute -> block of each code, and of each of the blocks that
    tables are over, where they are not the grid's.
    """

    attributes: Clique
    shape: tuple[int, ...]
    fixed: Mapping[int, int]
    merged: Mapping[int, MergedAttribute]
    merges: Mapping[str, tuple[IntArray, ...]]

    @classmethod
    def of(
        cls,
        domain: Domain,
        names: Clique,
        fixed: Mapping[str, int],
        codes: MergedCodes | None,
        pools: Mapping[str, IntArray] | None = None,
    ) -> Grid:
        """Return the grid of p(names | fixed). codes: the merged codes of the model. pools: attribute -> the pool of
        each code; such attributes are among the names."""
        attributes, shape = (*names, *fixed), list(domain.shape((*names, *fixed)))
        merged = {} if codes is None else {at: codes.of[name] for at, name in enumerate(attributes) if name in codes.of}
        # The one-way table of a merged attribute was measured over all its codes.
        if len(attributes) == 1 and all(one.counts is not None for one in merged.values()):
            merged = {}
        merges: dict[str, tuple[IntArray, ...]] = {attributes[at]: (one.codes,) for at, one in merged.items()}
        for name, pool in (pools or {}).items():
            at = attributes.index(name)
            shape[at], session = int(pool.max()) + 1, merged.pop(at, None)
            split = None if session is None else merge_pools(session, pool)
            if split is not None:
                merged[at] = split
            block = pool if split is None else split.codes[pool]
            merges[name] = (block,) if session is None else (block, block[session.likeliest])
        return cls(
            attributes=attributes,
            shape=tuple(shape),
            fixed={len(names) + at: code for at, code in enumerate(fixed.values())},
            merged=merged,
            merges=merges,
        )

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of blocks of each attribute."""
        return tuple(self.merged[at].blocks if at in self.merged else size for at, size in enumerate(self.shape))

    @property
    def free(self) -> int:
        """The number of attributes without a condition, which come first."""
        return len(self.shape) - len(self.fixed)

    @property
    def where(self) -> tuple[slice | int, ...]:
        """The index of the cells of the condition."""
        return tuple(self.fixed.get(at, slice(None)) for at in range(len(self.shape)))

    def condition(self, table: Array) -> Array:
        """Return the cells of the condition, (cells of the free attributes,)."""
        return table.reshape(self.shape)[self.where].reshape(-1)

    def effects(self, releases: Sequence[NoisyTables]) -> Effects:
        """Return what released tables tell of the grid, over blocks. Raises TooLarge."""
        return effects_of(releases, self.attributes, self.blocks, self.merges)

    def splits(self, table: FloatArray, effects: Effects) -> list[Split]:
        """Return what one-way tables tell of merged codes inside their blocks, at a table over all codes."""
        return [Split.of(at, one, table.reshape(self.shape), effects) for at, one in self.merged.items()]

    def by_block(self, values: FloatArray) -> FloatArray:
        """Return the mean of functions inside each block, by the model's weights; (K, *blocks)."""
        array = values.reshape(len(values), *self.shape)
        for at, one in self.merged.items():
            array = one.sum_up(array * one.weights.reshape(-1, *[1] * (array.ndim - at - 2)), at + 1)
        return array

    def by_code(self, values: FloatArray) -> FloatArray:
        """Return functions of blocks, (K, *blocks), as functions of codes, (K, cells)."""
        for at, one in self.merged.items():
            values = values.take(one.codes, axis=at + 1)
        return values.reshape(len(values), -1)

    def by_weight(self, table: FloatArray) -> FloatArray:
        """Return a table over blocks, spread over their codes by the model's weights; (cells,)."""
        for at, one in self.merged.items():
            table = one.expand(table, at)
        return table.reshape(-1)

    def mass(self, table: FloatArray) -> FloatArray:
        """Return the probabilities of blocks, (*blocks,)."""
        array = table.reshape(self.shape)
        for at, one in self.merged.items():
            array = one.sum_up(array, at)
        return array


@frozen(kw_only=True, eq=False)
class Split:
    """What a one-way table tells of the merged codes of one attribute inside their blocks.

    shape, at: of the grid, and the axis. merge: the blocks. shares: p of each code. others: p of all other attributes
    given each block, (blocks, cells). variance: of the error along contrasts of each code's block, records**2. is_told:
    whether the table tells them, for each code.
    """

    shape: tuple[int, ...]
    at: int
    merge: MergedAttribute
    shares: FloatArray
    others: FloatArray
    variance: FloatArray
    is_told: Array

    @classmethod
    def of(cls, at: int, merge: MergedAttribute, table: FloatArray, effects: Effects) -> Split:
        whole = np.moveaxis(table, at, 0).reshape(len(merge.codes), -1)
        inside = merge.sum_up(whole, 0)
        mass = inside.sum(axis=1)
        most = ((effects.total * mass) ** 2 + effects.variances.get((at,), 0.0)) / np.bincount(merge.codes)
        known = math.inf if merge.counts is None else merge.variance
        return cls(
            shape=table.shape,
            at=at,
            merge=merge,
            shares=whole.sum(axis=1),
            others=ratio(inside, mass[:, None]),
            variance=np.minimum(known, most)[merge.codes],
            is_told=(known < most)[merge.codes] & np.logical_not(merge.is_alone),
        )

    def influence(self, values: FloatArray) -> FloatArray:
        """Return r of the module for functions of the whole grid, (K, cells); (K, codes)."""
        array = np.moveaxis(values.reshape(-1, *self.shape), self.at + 1, 1)
        array = array.reshape(len(values), len(self.merge.codes), -1)
        means = np.einsum("kcr,cr->kc", array, self.others[self.merge.codes])
        return np.asarray(means - self._sums(means * self.merge.weights))

    def along(self, values: FloatArray, ndim: int) -> FloatArray:
        """Return functions of codes or blocks, (K, size), as functions of a grid of `ndim` axes."""
        return values.reshape(len(values), *(-1 if axis == self.at else 1 for axis in range(ndim)))

    def noise(self, influence: FloatArray) -> FloatArray:
        """Return the covariance of sum_a r(a) n(a) along contrasts, for K functions r of codes; (K, K), records**2."""
        contrasts = influence - self._sums(influence) / self.sizes
        return np.asarray((contrasts * self.variance) @ contrasts.T)

    def by_block(self, influence: FloatArray) -> FloatArray:
        """Return the even mean in each block of r, where the table tells the codes; (K, blocks)."""
        return self.merge.sum_up(influence * self.is_told / self.sizes, 1)

    def spread(self, apart: FloatArray, total: float) -> FloatArray:
        """Return what the table says of the codes that it tells, less what the model does, over the grid; (cells,).

        apart: what tables say of blocks less what the model does, probabilities of the grid of blocks.
        """
        if self.merge.counts is None or not self.is_told.any():
            return np.zeros(())
        moved = apart.sum(axis=tuple(axis for axis in range(apart.ndim) if axis != self.at))[self.merge.codes]
        counts, shares = self.merge.counts[None], self.shares[None]
        result = (self._sums(shares) + moved + (counts * self.sizes - self._sums(counts)) / total) / self.sizes
        ahead = np.where(self.is_told, result - shares - self.merge.weights * moved, 0.0)[0]
        rest = self.shape[: self.at] + self.shape[self.at + 1 :]
        cells = (ahead[:, None] * self.others[self.merge.codes]).reshape(-1, *rest)
        return np.asarray(np.moveaxis(cells, 0, self.at).reshape(-1))

    @property
    def is_measured(self) -> bool:
        """Whether there is such a table."""
        return self.merge.counts is not None

    @property
    def sizes(self) -> IntArray:
        """The number of codes in the block of each code."""
        return np.asarray(np.bincount(self.merge.codes)[self.merge.codes])

    def _sums(self, values: FloatArray) -> FloatArray:
        """Return the sum over its block for each code; (K, codes)."""
        return self.merge.sum_up(values, 1)[:, self.merge.codes]


def effects_of_each(grid: Grid, releases: Sequence[NoisyTables]) -> Effects | None:
    """Return the effects of a grid whose every attribute is in some table; None where intervals take replicates.

    They do where no table tells each of the attributes by itself, as with tied cliques, rounds, gradients and
    normalised contributions, and for more than 2**20 cells or 2**16 effects.
    """
    if not releases or math.prod(grid.shape) > MAX_CELLS:
        return None
    try:
        effects = grid.effects(releases)
    except TooLarge:
        return None
    alone = [(at,) in effects.variances for at, size in enumerate(grid.blocks) if size > 1]
    return effects if all(alone) else None


def correct_shares(
    grid: Grid, effects: Effects, domain: Domain, table: FloatArray, answer: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return p(names | fixed) corrected from released tables that tell each attribute, and its variance.

    effects: what these tables tell of the grid. table: the model's probabilities of the grid, (cells,). answer: the
    model's p(names | fixed). What no table tells of an answer by structure is not corrected, and only its sampling
    is part of the variance.
    """
    apart = effects.table / effects.total - effects.project(grid.mass(table)[None])[0]
    splits = grid.splits(table, effects)
    correction = grid.by_weight(apart) + sum((one.spread(apart, effects.total) for one in splits), np.zeros(()))
    given, inside = float(grid.condition(table).sum()), grid.condition(correction).reshape(answer.shape)
    if given < _LEAST_GIVEN:
        return answer, np.full(answer.shape, np.inf)
    corrected = answer + (inside - answer * inside.sum()) / given
    # The influence function is a sum of indicators of cells of some axes, over blocks, and of r of merged codes.
    free, axes = grid.free, tuple(range(len(grid.shape)))
    blocks = given / math.prod(grid.merged[at].weights[code] for at, code in grid.fixed.items() if at in grid.merged)
    parts = [(axes, np.ones(answer.shape) / blocks), (axes[free:], -answer / blocks)]
    noise = np.zeros(answer.shape)
    for one in splits:
        if one.at < free:
            weights, even, shares, variance = (
                one.along(part[None], free)[0] for part in (one.merge.weights, 1 / one.sizes, one.shares, one.variance)
            )
            ahead = ratio(answer, shares)
            noise = noise + ahead**2 * (1 - even) * variance
            parts[0] = axes, parts[0][1] * weights
            parts.append(((one.at,), ahead * (even - weights) * one.along(one.is_told[None], free)[0]))
    for (some, factor), (others, times) in itertools.product(parts, repeat=2):
        noise = noise + factor * times * cell_covariance(effects, some, others)
    noise = np.maximum(noise, 0.0) / effects.total**2  # rounding
    errors: FloatArray = answer * (1 - answer) / (given * effects.total) + noise
    impossible = Structure(domain, [grid.attributes]).impossible
    if impossible is None:
        return corrected, errors
    ruled_out = grid.condition(impossible).reshape(answer.shape)
    return np.where(ruled_out, 0.0, corrected), np.where(ruled_out, 0.0, errors)


def cell_covariance(effects: Effects, one: Axes, other: Axes) -> float:
    """Return the covariance of the noise in the counts of two cells that agree, one of some axes and one of others."""
    shared, shape = set(one) & set(other), effects.shape
    return sum(
        variance
        * math.prod(1 - 1 / shape[at] for at in axes)
        / math.prod(shape[at] for part in (one, other) for at in part if at not in axes)
        for axes, variance in effects.variances.items()
        if shared.issuperset(axes)
    )
