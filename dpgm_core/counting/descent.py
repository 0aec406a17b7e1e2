"""Gradients of regressions summed over records in whole numbers: the same bits in any order and thread.

A weighted sum of features and a sum of residuals are float32 products of whole numbers whose partial sums stay below
2^24, so no product rounds. A residual is looked up in a public table of whole numbers, or divided exactly, and
shortened by a factor of the record alone: what a record adds is a function of that record, and adding it is exact.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core.counting.statistic import Sum, check_whole
from dpgm_core.privacy.descent import NodeGradients, largest_residual

__all__ = ["GradientSums"]

_FLOAT32_BITS = 24  # bits of whole numbers that float32 holds
_BLOCK_CELLS = 2**18  # weights' columns x records of a block: what is computed of it stays in the cache
_MIN_BLOCK_RECORDS = 256
_EXP_BITS = 28


@frozen(eq=False)
class GradientSums(Sum):
    """The negative gradient at `gradients.weights`, (rows * columns,), units of 1/residual_grid.

    kind: of budget, which decides how the residuals of a record are bounded: together in L2 for zCDP, in L1 for pure.
    Weights that are not allowed have a sum too, which nobody may score.
    """

    gradients: NodeGradients
    kind: Literal["pure", "zcdp"]

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes that are regressed."""
        return self.gradients.regressions.nodes

    @property
    def cells(self) -> int:
        """Of the weights."""
        return int(self.gradients.weights.size)

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add the gradients of all rows."""
        gradient = sums.reshape(self.gradients.weights.shape)
        count, block = len(codes[0]), self._block
        for start in range(0, count, block):
            features, residuals = self.parts([column[start : start + block] for column in codes])
            gradient += (residuals @ features.T).astype(np.int64)

    def check(self, sums: IntArray) -> None:
        """Raise DataError for sums that are of no records at all, known from the features alone.

        With r a record's residual in a row, its feature is 1 or -1, or 1 in just one code of an attribute, and always 1
        in the last column: so sums are as odd as the last one's, or of each attribute they add up to it. How large they
        may be depends on how many records there are, which is not among them.
        """
        gradient = sums.reshape(self.gradients.weights.shape)
        own, last = self.gradients.regressions, gradient[:, -1:]
        if own.loss == "logistic":
            check_whole(not ((gradient - last) % 2).any())
            return
        sizes = [own.candidates.domain.sizes[name] for name in own.nodes]
        starts = np.cumsum([0, *sizes])[:-1]
        check_whole(bool((np.add.reduceat(gradient[:, :-1], starts, axis=1) == last).all()))

    def parts(self, codes: Codes) -> tuple[Array, Array]:
        """Of each record the features, (columns, records), and its residuals, (rows, records): whole numbers, float32.

        What a record adds is the product of the two. Secret.
        """
        features = self._features(np.stack(codes))
        return features, self._shortened(self._residuals(features))

    @cached_property
    def _weights(self) -> Array:
        return self.gradients.weights.astype(np.float32)

    @cached_property
    def _largest(self) -> int:
        own = self.gradients
        return largest_residual(own.regressions.loss, own.radius, own.residual_grid)

    @cached_property
    def _block(self) -> int:
        wide: int = max(self.gradients.weights.shape)
        return min(max(_MIN_BLOCK_RECORDS, _BLOCK_CELLS // wide), int(2**_FLOAT32_BITS) // self._largest)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.columns)}

    def _features(self, codes: Array) -> Array:
        """What the weights are multiplied by, (columns, records). codes: (attributes, records)."""
        columns = self.gradients.regressions.columns
        features = np.empty((len(columns), codes.shape[1]), np.float32)
        if self.gradients.regressions.loss == "logistic":
            signs = features[: len(codes)]
            np.multiply(codes, np.float32(-2), out=signs, casting="unsafe")
            signs += np.float32(1)
            for number, (attributes, _) in enumerate(columns[len(codes) : -1], start=len(codes)):
                np.prod([signs[self._place[name]] for name in attributes], axis=0, out=features[number])
        else:
            node, code = self._one_hot
            np.equal(codes[node], code, out=features[:-1], casting="unsafe")
        features[-1] = 1
        return features

    @cached_property
    def _one_hot(self) -> tuple[IntArray, IntArray]:
        """Of each column but the constant its attribute's number, (columns,), and its code, (columns, 1)."""
        named = self.gradients.regressions.columns[:-1]
        place = [self._place[name] for (name,), _ in named]
        return np.array(place), np.array([[code] for _, (code,) in named])

    def _residuals(self, features: Array) -> Array:
        """Of each row of the weights, (rows, records): whole numbers, at most `_largest` up or down."""
        linear = self._weights @ features
        if self.gradients.regressions.loss == "softmax":
            return self._divided(linear, features[:-1])
        signs = features[: len(linear)] if self.gradients.regressions.loss == "logistic" else self._sides(features)
        linear *= signs
        linear += np.float32(self.gradients.units)
        linear = self._logistic.take(linear.astype(np.intp), mode="clip")
        linear *= signs
        return linear

    def _sides(self, features: Array) -> Array:
        """Of "pairs": +1 for the first code of a row, -1 for the second, 0 for others."""
        first, second = self._two
        return np.asarray(features[first] - features[second])

    @cached_property
    def _two(self) -> tuple[IntArray, IntArray]:
        """Of each row of "pairs" the columns of its two codes."""
        own = self.gradients.regressions
        column = {(attributes, codes): number for number, (attributes, codes) in enumerate(own.columns)}
        first, second = ([column[(name,), (codes[side],)] for name, codes in own.rows] for side in (0, 1))
        return np.array(first), np.array(second)

    @property
    def _logistic(self) -> Array:
        own = self.gradients
        return _sigmas(own.units, own.weights_grid, own.residual_grid, self._largest)

    def _divided(self, linear: Array, own: Array) -> Array:
        """Of "softmax": G for the record's own code less floor(G E / sum of E), E whole numbers for exp.

        Doubles divide these whole numbers exactly enough: a quotient below a whole number q <= G <= 2^12 is away from
        it by at least 1 / sum of E >= 2^-40, of up to 2^12 labels, and rounding moves it by less than q 2^-53.
        """
        node, starts = self._one_hot[0], self._starts
        steps = np.maximum.reduceat(linear, starts, axis=0)[node]
        steps -= linear
        powers = _powers(self.gradients.units, self.gradients.weights_grid).take(steps.astype(np.intp), mode="clip")
        total = np.add.reduceat(powers, starts, axis=0)[node]
        powers *= self.gradients.residual_grid
        powers /= total
        return own * np.float32(self.gradients.residual_grid) - np.floor(powers).astype(np.float32)

    @cached_property
    def _starts(self) -> IntArray:
        """Where each choice's rows begin."""
        return np.array([choice[0] for choice in self.gradients.regressions.choices])

    def _shortened(self, residuals: Array) -> Array:
        """Residuals whose largest ones of each choice reach no further together than `reach` says, record by record.

        By a factor of whole 2^-b, rounded down, and truncation towards 0; products of it are exact.
        """
        if self.gradients.clip is None:
            return residuals
        most = self.gradients.reach(self.kind)
        unit = 2.0 ** (_FLOAT32_BITS - self._largest.bit_length())
        together = self._together(residuals)
        root = most / np.maximum(together, 1)
        if self.kind == "zcdp":
            root = np.sqrt(root)
        # A hair shorter against the rounding of the root.
        factor = np.where(together <= most, unit, np.floor(np.minimum(root * (1 - 1e-12), 1) * unit)) / unit
        residuals *= factor.astype(np.float32)
        np.trunc(residuals, out=residuals)
        # Exact whole numbers, so the bound needs no trust in the lines above; nobody is ever left out by it.
        residuals *= self._together(residuals) <= most
        return residuals

    def _together(self, residuals: Array) -> Array:
        """Of each record the sum over choices of the largest residual, or of its square, (records,); exact."""
        if self.gradients.regressions.loss == "softmax":
            residuals = np.maximum.reduceat(np.abs(residuals), self._starts, axis=0)
        most = self._largest**2 * len(residuals)
        kind: Any = np.float32 if most < 2**_FLOAT32_BITS else np.float64
        if self.kind == "zcdp":
            summed: Array = np.einsum("ij,ij->j", residuals, residuals, dtype=kind)
        else:
            summed = np.abs(residuals).sum(axis=0, dtype=kind)
        return summed.astype(np.float64)


@lru_cache(maxsize=4)
def _sigmas(units: int, weights_grid: int, grid: int, largest: int) -> Array:
    """floor(grid sigma(-k / weights_grid)) for k from -units to units, as float32."""
    values = np.floor(grid / (1 + np.exp(np.arange(-units, units + 1) / weights_grid)))
    return np.minimum(values, largest).astype(np.float32)  # whatever a double's exp does


@lru_cache(maxsize=4)
def _powers(units: int, weights_grid: int) -> Array:
    """floor(2^28 exp(-k / weights_grid)) for k from 0 to 2 units."""
    return np.asarray(np.floor(2.0**_EXP_BITS * np.exp(-np.arange(2 * units + 1) / weights_grid)))
