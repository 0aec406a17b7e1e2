"""Ranges of an ordered attribute: windows of its codes, measured in place of its cells.

A strategy has scales. A scale of length L, step S and weight w is, for each window of L neighbouring codes whose start
is a multiple of S, w times the number of records in it; windows that reach over an end of the axis are cut there. Least
squares computes the cells from all windows. A range of codes then has the noise of a few windows, however long it is.

Sensitivity. Each code is in exactly L / S windows of a scale. One row more moves each of these by w. One row in place
of another moves no more than twice as many, and as many if the two codes share no window, as the first and the last.

Cost and distribution. Those of the noise that a mechanism calibrates to `RangeStrategy.sensitivity`.

Proof. In docs/proofs.md. Source of the family: Li, Miklau, Hay, McGregor, Rastogi (2015), The matrix mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core._util.arrays import Array, FloatArray, IntArray
from dpgm_core._util.exact_numbers import whole
from dpgm_core._util.randomness import Randomness
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.privacy.mechanism import DerivedNoise, Noise
from dpgm_core.privacy.sensitivity import Neighbours, Sensitivity

__all__ = ["CELL_GRID", "MAX_SIZE", "RangeNoise", "RangeStrategy", "estimated_cells", "plan_ranges", "strategies_to"]

#: Codes of an attribute whose ranges are measured; least squares takes the cube of it.
MAX_SIZE = 1024
#: Estimated cells are whole multiples of 1/CELL_GRID record, so that a file holds them as whole numbers.
CELL_GRID = 2**20
#: Cells are clamped to this many records, before they are summed and after they are estimated, so that all fits int64.
_MAX_CELL = 2**40
_MAX_WEIGHT, _MAX_SCALES = 2**10, 32

# For Gaussian noise: windows at every start, of 0.6, 0.3, 0.15, ... of the codes and of one. The squared weights times
# lengths, which are the shares of rho, are 1.2 for the longest, 1 for the others and 2 for the cells. For 3 to 1,024
# codes the root mean squared error of all ranges is then at most 1.03 of the least that any strategy has at this rho
# (tests/privacy/test_ranges.py computes that by its dual). For Laplace noise overlapping windows cost too much: cells
# and blocks of about 1.25 sqrt(n) codes, from 48 codes on; below no strategy of cells and blocks beats cells.
_UNIT, _LONGEST, _LONGEST_SHARE, _CELLS_SHARE = 256, 0.6, 1.2, 2.0
_MIN_BLOCKED, _BLOCK_LENGTH, _BLOCK_WEIGHTS = 48, 1.25, (11, 9)


def _scales(scales: Any) -> tuple[tuple[int, int, int], ...]:
    """Read scales: triples of whole numbers."""
    try:
        length_step_weight = tuple((*scale,) for scale in scales)
    except TypeError:
        length_step_weight = ()
    if not 1 <= len(length_step_weight) <= _MAX_SCALES or any(len(one) != 3 for one in length_step_weight):
        raise StructureError(f"a range strategy has 1 to {_MAX_SCALES} scales, each a length, a step and a weight")
    return tuple(
        (
            whole("the length of windows", length, least=1, most=MAX_SIZE),
            whole("the step of windows", step, least=1, most=MAX_SIZE),
            whole("the weight of windows", weight, least=1, most=_MAX_WEIGHT),
        )
        for length, step, weight in length_step_weight
    )


@frozen
class RangeStrategy:
    """Windows of the codes of one attribute that are measured in place of its cells.

    Parameters
    ----------
    size : int
        The number of codes.
    scales : tuple of (int, int, int)
        Length, step and weight of the windows of each scale. Windows of one code are among them, so that least squares
        has one solution; all others are shorter than the axis, and their step divides their length.

    Raises
    ------
    StructureError
        For anything else.

    Examples
    --------
    >>> strategy = RangeStrategy(3, [(1, 1, 2), (2, 1, 1)])
    >>> strategy.sums(np.array([5, 1, 2])).tolist()
    [10, 2, 4, 5, 6, 3, 2]
    >>> strategy.sensitivity("add-remove")
    Sensitivity(l0=3, l1=4, l2_squared=6, linf=2)
    """

    size: int
    scales: tuple[tuple[int, int, int], ...] = field(converter=_scales)

    def __attrs_post_init__(self) -> None:
        whole("the codes of ranges", self.size, least=1, most=MAX_SIZE)
        if not any(length == step == 1 for length, step, _ in self.scales):
            raise StructureError("a range strategy measures windows of one code too, or cells could not be told")
        if any(length % step or 1 < length >= self.size for length, step, _ in self.scales):
            raise StructureError("windows of a range strategy are shorter than the axis, and a step divides a length")

    def sensitivity(self, neighbours: Neighbours | str, *, rows_per_person: int = 1) -> Sensitivity:
        """Return how far one person moves the sums, in their unit.

        Notes
        -----
        With c windows of a scale over each code, c = L / S: under add-remove r rows move the sums by at most r sum w c
        in L1, r^2 sum w^2 c in squared L2 and r max w in Linf, attained by r equal rows; replace-one doubles the first
        two, attained by the first and the last code. L0 is an upper bound for r > 1. Proof: docs/proofs.md.
        """
        rows = whole("rows_per_person", rows_per_person, least=1)
        both = 2 if Neighbours.of(neighbours) is Neighbours.REPLACE_ONE else 1
        if self.size == 1 and both == 2 and rows == 1:  # nobody moves the number of records
            return Sensitivity(l0=0, l1=0, l2_squared=0, linf=0)
        l0 = l1 = l2_squared = 0
        for length, step, weight in self.scales:
            over = length // step
            l0, l1, l2_squared = l0 + over, l1 + weight * over, l2_squared + weight**2 * over
        return Sensitivity(
            l0=min(both * rows * l0, self.count),
            l1=both * rows * l1,
            l2_squared=both * rows**2 * l2_squared,
            linf=rows * max(weight for _, _, weight in self.scales),
        )

    def over_cells(self, *, gaussian: bool) -> tuple[float, float]:
        """Return the standard deviations of a range, the mean over all, and of one cell, over those of cells.

        gaussian: whether noise is in proportion to the L2 norm of what a person moves, or to the L1 norm.

        >>> [round(one, 2) for one in plan_ranges(64, gaussian=True).over_cells(gaussian=True)]
        [0.5, 1.42]
        """
        moved = self.sensitivity(Neighbours.ADD_REMOVE)
        covariance = self.inverse_gram * (moved.l2_squared if gaussian else moved.l1**2)
        cells = float(np.sqrt((self.size + 2) / 3))  # the mean length of a range is (n + 2) / 3
        return _range_deviation(covariance) / cells, float(np.sqrt(np.trace(covariance) / self.size))

    @property
    def count(self) -> int:
        """The number of windows."""
        return sum(len(self._starts(length, step)) for length, step, _ in self.scales)

    def sums(self, cells: Array) -> IntArray:
        """Return the weighted sums of whole-numbered cells over all windows, (count,), scale by scale.

        Cells are clamped first, which moves no two of them apart.
        """
        clamped = np.minimum(cells.astype(np.int64), _MAX_CELL)
        before = np.concatenate([[0], np.cumsum(clamped)])
        parts = [
            weight * (before[np.minimum(starts + length, self.size)] - before[np.maximum(starts, 0)])
            for length, step, weight in self.scales
            for starts in [self._starts(length, step)]
        ]
        sums: IntArray = np.concatenate(parts)
        return sums

    def estimate(self, sums: Array) -> FloatArray:
        """Return the least squares estimate of the cells from noisy sums, (size,)."""
        adjoint = np.zeros(self.size + 1)
        at = 0
        for length, step, weight in self.scales:
            starts = self._starts(length, step)
            part = weight * np.asarray(sums[at : at + len(starts)], dtype=np.float64)
            np.add.at(adjoint, np.maximum(starts, 0), part)
            np.add.at(adjoint, np.minimum(starts + length, self.size), -part)
            at += len(starts)
        estimate: FloatArray = self.inverse_gram @ np.cumsum(adjoint)[:-1]
        return estimate

    @property
    def inverse_gram(self) -> FloatArray:
        """The covariance of the estimated cells where the sums have independent noise of variance 1, (size, size)."""
        return _inverse_gram(self)

    def gram(self) -> IntArray:
        """Return, for each two codes, the sum of the squared weights of the windows over both, (size, size)."""
        codes = np.arange(self.size)
        low, high = np.minimum.outer(codes, codes), np.maximum.outer(codes, codes)
        gram: IntArray = np.sum(
            [weight**2 * np.maximum(low // step - (high - length) // step, 0) for length, step, weight in self.scales],
            axis=0,
        )
        return gram

    def _starts(self, length: int, step: int) -> IntArray:
        return np.arange(step - length, self.size, step)


@lru_cache(maxsize=16)
def _inverse_gram(strategy: RangeStrategy) -> FloatArray:
    inverse: FloatArray = np.linalg.inv(strategy.gram().astype(np.float64))
    inverse = (inverse + inverse.T) / 2
    inverse.flags.writeable = False
    return inverse


def plan_ranges(size: int, *, gaussian: bool) -> RangeStrategy | None:
    """Return the strategy for all ranges of so many codes; None where cells are as good.

    gaussian: whether noise is calibrated to the L2 norm. Raises StructureError for more than 1,024 codes.

    >>> plan_ranges(16, gaussian=True)
    RangeStrategy(size=16, scales=((1, 1, 362), (10, 1, 89), (5, 1, 114), (2, 1, 181)))
    """
    if size > MAX_SIZE:
        raise StructureError(
            f"ranges are measured of up to {MAX_SIZE:,} values, but an attribute has {size:,}; give it wider bins, or "
            "leave it out of ranges"
        )
    if not gaussian:
        cells, blocks = _BLOCK_WEIGHTS
        length = round(_BLOCK_LENGTH * size**0.5)
        return RangeStrategy(size, [(1, 1, cells), (length, length, blocks)]) if size >= _MIN_BLOCKED else None
    lengths, share, scales = _LONGEST * size, _LONGEST_SHARE, [(1, 1, round(_UNIT * _CELLS_SHARE**0.5))]
    while round(lengths) > 1:
        scales.append((round(lengths), 1, round(_UNIT * (share / round(lengths)) ** 0.5)))
        lengths, share = lengths / 2, 1.0
    return RangeStrategy(size, scales) if len(scales) > 1 else None


@frozen(kw_only=True)
class RangeNoise(DerivedNoise):
    """The noise of cells that were estimated from windows; for learning, never for a release.

    noise: of each sum, in its unit. strategy: of the windows. codes: the block of each code, where the cells were
    summed by block later. The density is the Gaussian of the mean cell; draws have the true distribution, of all cells
    together.
    """

    noise: Noise
    strategy: RangeStrategy
    codes: tuple[int, ...] | None = None

    exact = False  # its values are no whole numbers of records

    @property
    def covariance(self) -> FloatArray:
        """The covariance of all cells, (cells, cells), records**2."""
        return self.noise.variance * _summed(self.strategy, self.codes)

    @property
    def variance(self) -> float:
        """records**2, the mean over the cells."""
        return float(np.trace(self.covariance)) / len(self.covariance)

    @property
    def sum_variance(self) -> float:
        """The variance of the sum of all cells, records**2."""
        return float(self.covariance.sum())

    @property
    def range_deviation(self) -> float:
        """The root mean squared noise of all ranges of neighbouring cells, records."""
        return _range_deviation(self.covariance)

    @property
    def gain(self) -> float:
        """A bound on how far noise of 1 in every sum moves a cell, or a block of them, records."""
        block = 1 if self.codes is None else int(np.bincount(self.codes).max())
        over_a_code = sum(weight * (length // step) for length, step, weight in self.strategy.scales)
        return block * over_a_code * float(np.abs(self.strategy.inverse_gram).sum(axis=1).max())

    @property
    def unsafe(self) -> str | None:
        """That of the noise as it was drawn."""
        return self.noise.unsafe

    def merged(self, codes: IntArray) -> RangeNoise:
        """Return that of the cells summed by block. codes: the block of each cell."""
        before = np.arange(self.strategy.size) if self.codes is None else np.asarray(self.codes)
        return evolve(self, codes=tuple(map(int, codes[before])))

    def draw(self, shape: tuple[int, ...], randomness: Randomness) -> Array:
        """Fresh noise of all cells. shape: of as many cells. BudgetError for another."""
        cells = self.strategy.size if self.codes is None else max(self.codes) + 1
        if int(np.prod(shape)) != cells:
            raise BudgetError(f"the noise of ranges is of one table of {cells} cells, it has none of shape {shape}")
        drawn = self.strategy.estimate(self.noise.draw((self.strategy.count,), randomness))
        return (drawn if self.codes is None else np.bincount(self.codes, drawn)).reshape(shape)


def _range_deviation(covariance: FloatArray) -> float:
    """The root mean squared noise of all ranges of neighbouring cells."""
    before = np.pad(covariance, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)  # of the cells below two edges
    edges = len(before)
    # Var(F_b - F_a) summed over all a < b, F the sums of the cells below an edge
    return float(np.sqrt((edges * np.trace(before) - before.sum()) / (edges * (edges - 1) / 2)))


@lru_cache(maxsize=16)
def _summed(strategy: RangeStrategy, codes: tuple[int, ...] | None) -> FloatArray:
    """The covariance of cells summed by block, of sums with noise of variance 1."""
    if codes is None:
        return strategy.inverse_gram
    blocks = np.eye(max(codes) + 1)[list(codes)]
    summed: FloatArray = blocks.T @ strategy.inverse_gram @ blocks
    return summed


def estimated_cells(strategy: RangeStrategy, sums: Array) -> FloatArray:
    """Return the cells estimated from noisy sums, clamped, as whole multiples of 1/CELL_GRID record."""
    cells: FloatArray = np.rint(strategy.estimate(sums) * CELL_GRID) / CELL_GRID
    return np.clip(cells, -_MAX_CELL, _MAX_CELL)


def strategies_to(strategies: Sequence[RangeStrategy | None]) -> list[list[list[int]] | None]:
    """Return the scales of strategies as JSON values, None for cells.

    >>> strategies_to([None, RangeStrategy(3, [(1, 1, 2)])])
    [None, [[1, 1, 2]]]
    """
    return [None if one is None else [list(scale) for scale in one.scales] for one in strategies]
