"""Probabilities corrected from released tables, with their variance by formula.

The influence function of p(x | g) is (1{x, g} - p(x | g) 1{g}) / p(g); `dpgm_core.models.analysis` has the method and
its proof. The correction is read off the table of what the releases say less what the model does. Its noise is a
quadratic form of indicators, and that of two cells depends only on which axes they agree on: sum over S in D of
v_S / r_S^2 prod over S of (1{agree} - 1/size), r_S the cells outside S. Sampling is p(x | g) (1 - p(x | g)) / (N p(g)),
also for the part that no table tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core.domain.domain import Domain
from dpgm_core.models.effects import Effects, effects_of
from dpgm_core.models.merged_codes import MergedAttribute, MergedCodes
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.structure import Structure

__all__ = ["Grid", "MAX_CELLS", "correct_shares", "effects_of_each"]

#: Largest table of a question.
MAX_CELLS = 2**20
#: No record is expected to meet a rarer condition, and the square of it is not 0.
_LEAST_GIVEN = 1e-100


@frozen(kw_only=True, eq=False)
class Grid:
    """The cells of some attributes, over all codes and over the blocks of merged ones.

    attributes, shape: those without a condition first. fixed: axis of each condition -> its code. merged: axis of each
    attribute with merged codes -> its blocks.
    """

    attributes: Clique
    shape: tuple[int, ...]
    fixed: Mapping[int, int]
    merged: Mapping[int, MergedAttribute]

    @classmethod
    def of(cls, domain: Domain, names: Clique, fixed: Mapping[str, int], codes: MergedCodes | None) -> Grid:
        """Return the grid of p(names | fixed). codes: the merged codes of the model."""
        attributes = (*names, *fixed)
        merged = {} if codes is None else {at: codes.of[name] for at, name in enumerate(attributes) if name in codes.of}
        # The one-way table of a merged attribute was measured over all its codes.
        alone = len(attributes) == 1 and all(one.counts is not None for one in merged.values())
        return cls(
            attributes=attributes,
            shape=domain.shape(attributes),
            fixed={len(names) + at: code for at, code in enumerate(fixed.values())},
            merged={} if alone else merged,
        )

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of blocks of each attribute."""
        return tuple(self.merged[at].blocks if at in self.merged else size for at, size in enumerate(self.shape))

    @property
    def merges(self) -> dict[str, IntArray]:
        """attribute -> block of each code."""
        return {self.attributes[at]: one.codes for at, one in self.merged.items()}

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

    def by_block(self, values: FloatArray) -> FloatArray:
        """Return the mean of functions inside each block, by the model's weights; (K, *blocks)."""
        array = values.reshape(len(values), *self.shape)
        for at, one in self.merged.items():
            weights = np.zeros((one.blocks, len(one.codes)))
            weights[one.codes, np.arange(len(one.codes))] = one.weights
            array = np.moveaxis(np.tensordot(array, weights, axes=(at + 1, 1)), -1, at + 1)
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
            members = np.zeros((len(one.codes), one.blocks))
            members[np.arange(len(one.codes)), one.codes] = 1.0
            array = np.moveaxis(np.tensordot(array, members, axes=(at, 0)), -1, at)
        return array


def effects_of_each(grid: Grid, releases: Sequence[NoisyTables]) -> Effects | None:
    """Return the effects of a grid whose every attribute is in some table; None where intervals take replicates.

    They do where no table tells each of the attributes by itself, as with tied cliques, rounds, gradients and
    normalised contributions, and for more than 2**20 cells.
    """
    if not releases or math.prod(grid.shape) > MAX_CELLS:
        return None
    effects = grid.effects(releases)
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
    apart = grid.by_weight(effects.table / effects.total - effects.project(grid.mass(table)[None])[0])
    given, inside = float(grid.condition(table).sum()), grid.condition(apart).reshape(answer.shape)
    if given < _LEAST_GIVEN:
        return answer, np.full(answer.shape, np.inf)
    corrected = answer + (inside - answer * inside.sum()) / given
    # Of two cells that agree, of a cell and the sum of all that are asked about, and of this sum with itself.
    free, count, cells = grid.free, math.prod(effects.shape[: grid.free]), math.prod(effects.shape)
    same = across = 0.0
    for axes, variance in effects.variances.items():
        rest = cells / math.prod(effects.shape[at] for at in axes)
        norm = variance / rest**2 * math.prod(1 - 1 / effects.shape[at] for at in axes)
        same += norm
        if all(at >= free for at in axes):
            across += norm * count
    noise = (same - 2 * answer * across + answer**2 * across * count) / (given * effects.total) ** 2
    errors: FloatArray = answer * (1 - answer) / (given * effects.total) + noise
    for at, one in grid.merged.items():
        if at < free and one.counts is not None:
            others = tuple(axis for axis in range(len(grid.shape)) if axis != at)
            relative = _split_variance(one, table.reshape(grid.shape).sum(axis=others), effects.total)
            errors = errors + answer**2 * relative.reshape([-1 if axis == at else 1 for axis in range(free)])
    impossible = Structure(domain, [grid.attributes]).impossible
    if impossible is None:
        return corrected, errors
    ruled_out = grid.condition(impossible).reshape(answer.shape)
    return np.where(ruled_out, 0.0, corrected), np.where(ruled_out, 0.0, errors)


def _split_variance(merged: MergedAttribute, shares: FloatArray, total: float) -> FloatArray:
    """Return the relative variance of p(code | block) from the noise and sampling of its table, (labels,).

    That of the unshrunk share, at most what an unknown share has. shares: p of each code.
    """
    sizes = np.bincount(merged.codes)[merged.codes]
    blocks = np.bincount(merged.codes, weights=shares)[merged.codes]
    variance = (1 - 1 / sizes) * (merged.variance + total * shares)
    known = np.divide(variance, (total * blocks) ** 2, out=np.zeros(len(shares)), where=blocks > 0)
    known = np.minimum(known, np.where(merged.is_alone, 0.0, 0.25))
    relative: FloatArray = np.divide(known, merged.weights**2, out=np.zeros(len(shares)), where=merged.weights > 0)
    return relative
