"""The linear algebra of one round by blocks: each holds effects that one table tells about.

Within a block F is exact, from the marginals of the table; between blocks it is taken for 0. So W weighs the residual a
little less well than the inverse of N F + V would, and the evidence counts twice what two blocks tell alike; mean and
gradient are the model's own. Nothing larger than a block is made, and no product with F is asked for, except by the
correction of the last fit, which takes W whole (`Objective.correction`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from attrs import frozen

from dpgm_core import FloatArray, IntArray
from dpgm_eb_map.contrasts import WIDE, Axis, Basis, Effect, Holder, axes_of_tables, contrast_rows, contrasts
from dpgm_eb_map.dense import Dense

__all__ = ["Block", "Diagonal", "Piece", "blocks_of", "largest_block"]

_LARGEST = 400  # parameters of a block; twice or an eighth of it was measured to change errors by 2 % at most
_LARGEST_WIDE = 100  # of an attribute with very many labels, as memory grows with the block's size


@frozen(kw_only=True)
class Span:
    """Neighbouring contrasts of an attribute of very many labels: `count` from `first` on; none: it is summed over."""

    first: int
    count: int

    @property
    def starts(self) -> IntArray:
        """Beginnings of the runs of labels that these contrasts do not distinguish, except for the first run."""
        return np.arange(self.first + 1, self.first + self.count + 2) if self.count else np.empty(0, dtype=np.intp)

    def at(self, labels: IntArray) -> FloatArray:
        """Return the factor of a `Piece` at these labels."""
        return contrast_rows(labels, self.first, self.count) if self.count else np.ones((len(labels), 1))


@frozen(kw_only=True, eq=False)
class Piece:
    """Parameters of one effect that stand next to each other.

    part: where. size: how many. factors: of each axis of the table, (labels, columns): contrasts, or ones where it is
    summed over; a `Span` in place of what would be large. order: the table's axes as the effect has them, then the
    others.
    """

    part: slice
    size: int
    factors: tuple[FloatArray | Span, ...]
    order: tuple[int, ...]


@frozen(kw_only=True, eq=False)
class Block:
    """Some parameters that the table of `group` tells about; places: where each stands (q,), ascending."""

    group: int
    pieces: tuple[Piece, ...]
    places: IntArray

    @property
    def where(self) -> IntArray | slice:
        """Return the places, as a slice where they stand next to each other: that spares copies."""
        first, last = int(self.places[0]), int(self.places[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.places) else self.places

    def covariance(self, basis: Basis, marginals: FloatArray, mean: FloatArray) -> FloatArray:
        """F of these parameters (q, q), for one record; of tied cliques as if they were independent of each other.

        marginals: (cells,). mean: the statistics of all parameters (p,).
        """
        structure = basis.structure
        table: FloatArray = marginals[structure.slices[self.group]].reshape(structure.shapes[self.group])
        lower = [
            [_second_moments(table, one, other) for other in self.pieces[:row]] for row, one in enumerate(self.pieces)
        ]
        squares = [_second_moments(table, piece, piece) for piece in self.pieces]
        covariance: FloatArray = np.block(
            [
                [*lower[row], squares[row], *(lower[later][row].T for later in range(row + 1, len(squares)))]
                for row in range(len(squares))
            ]
        )
        covariance -= np.outer(mean[self.places], mean[self.places]) / structure.multiplicities[self.group]
        return covariance


def blocks_of(basis: Basis) -> tuple[Block, ...]:
    """Each effect goes to the largest table that tells about it; a table's effects are packed into blocks in order."""
    sizes, axes = basis.structure.sizes, axes_of_tables(basis.structure, basis.bins)
    hosted: dict[tuple[int, int], list[Piece]] = {}
    for effect in basis.effects:
        holder = max(effect.holders, key=lambda one: sizes[one.group])
        largest = largest_block(effect.shape)
        pieces_of_effect = _pieces(effect, holder, axes[holder.group], largest)
        hosted.setdefault((holder.group, largest), []).extend(pieces_of_effect)
    return tuple(
        Block(
            group=group,
            pieces=tuple(packed),
            places=np.concatenate([np.arange(piece.part.start, piece.part.stop) for piece in packed]),
        )
        for (group, largest), pieces in hosted.items()
        for packed in _packed(pieces, largest)
    )


def largest_block(shape: tuple[int, ...]) -> int:
    """Return the most parameters of a block of an effect whose attributes have so many labels."""
    return min(_LARGEST, _LARGEST_WIDE) if max(shape) > WIDE else _LARGEST


class Diagonal:
    """`Dense` by blocks: see there. mean: the statistics of one record (p,), at which F is taken."""

    def __init__(
        self,
        blocks: tuple[Block, ...],
        basis: Basis,
        marginals: FloatArray,
        mean: FloatArray,
        total: float,
        drift: FloatArray,
    ) -> None:
        self._blocks = blocks
        self._where = [block.where for block in blocks]
        self._systems = [
            Dense(total * block.covariance(basis, marginals, mean), basis.variances[block.places], drift[block.places])
            for block in blocks
        ]
        self._block_of = np.empty(basis.size, dtype=np.intp)
        for number, block in enumerate(blocks):
            self._block_of[block.places] = number

    def weighted(self, residual: FloatArray) -> FloatArray:
        """W r, of (p,) or of the columns (p, n)."""
        return self._joined(lambda system, places: system.weighted(residual[places]), residual.shape[1:])

    def set_prior(self, precision: FloatArray) -> None:
        """Factor H for a prior of this precision (p,)."""
        for block, system in zip(self._blocks, self._systems, strict=True):
            system.set_prior(precision[block.places])

    def newton(self, gradient: FloatArray) -> FloatArray:
        """H^-1 g, of (p,) or of the columns (p, n)."""
        return self._joined(lambda system, places: system.newton(gradient[places]), gradient.shape[1:])

    def determined(self) -> FloatArray:
        """1 - c Lam of each parameter (p,), c the diagonal of H^-1: how far the data fix it, 0 to 1."""
        return self._joined(lambda system, places: system.determined())

    def spread(self, part: IntArray) -> FloatArray:
        """The block (q, q) of H^-1 of the parameters at `part` (q,), ascending; of too many its diagonal (q,)."""
        of = self._block_of[part]
        whole = len(part) <= _LARGEST
        spread = np.zeros((len(part), len(part)) if whole else len(part))
        for number in np.unique(of):
            here = np.flatnonzero(of == number)
            inside = self._systems[number].spread(np.searchsorted(self._blocks[number].places, part[here]))
            if whole:
                spread[np.ix_(here, here)] = inside
            else:
                spread[here] = np.diag(inside)
        return spread

    def _joined(self, of: Callable[[Dense, IntArray | slice], FloatArray], columns: tuple[int, ...] = ()) -> FloatArray:
        joined = np.empty((len(self._block_of), *columns))
        for where, system in zip(self._where, self._systems, strict=True):
            joined[where] = of(system, where)
        return joined


def _pieces(effect: Effect, holder: Holder, axes: list[Axis], largest: int) -> Iterator[Piece]:
    """An effect's parameters in pieces that fit into a block: contrasts of leading attributes one or some at a time."""
    counts = [size - 1 for size in effect.shape]
    cut = 0
    while cut < len(counts) - 1 and math.prod(counts[cut + 1 :]) > largest:
        cut += 1
    inner = math.prod(counts[cut + 1 :])
    step = max(1, largest // inner)
    start = effect.part.start
    for leading in itertools.product(*map(range, counts[:cut])):
        for first in range(0, counts[cut], step):
            some = min(step, counts[cut] - first)
            parts = [*((one, 1) for one in leading), (first, some), *((0, count) for count in counts[cut + 1 :])]
            factors = dict(zip(holder.order, parts, strict=True))
            size = some * inner
            yield Piece(
                part=slice(start, start + size),
                size=size,
                factors=tuple(_factor(one, *factors.get(axis, (0, 0))) for axis, one in enumerate(axes)),
                order=(*holder.order, *holder.summed_axes),
            )
            start += size


def _factor(axis: Axis, first: int, count: int) -> FloatArray | Span:
    """Return `count` contrasts of an attribute from `first` on; ones for none."""
    if axis[0] > WIDE:
        return Span(first=first, count=count)
    return contrasts(*axis)[:, first : first + count] if count else np.ones((axis[0], 1))


def _packed(pieces: list[Piece], largest: int) -> Iterator[list[Piece]]:
    packed: list[Piece] = []
    for piece in sorted(pieces, key=lambda one: one.part.start):
        if packed and sum(one.size for one in packed) + piece.size > largest:
            yield packed
            packed = []
        packed.append(piece)
    yield packed


def _second_moments(table: FloatArray, one: Piece, other: Piece) -> FloatArray:
    """The sum over cells of p times each statistic of one piece times each of the other, (q, q')."""
    summed, factors = table, list[tuple[FloatArray, FloatArray]]()
    for axis, (left, right) in enumerate(zip(one.factors, other.factors, strict=True)):
        if isinstance(left, Span) and isinstance(right, Span):
            # Labels that no contrast tells apart are one: of many labels as few are left as there are contrasts.
            starts = np.unique(np.concatenate([[0], left.starts, right.starts]))
            starts = starts[starts < table.shape[axis]]
            summed = np.add.reduceat(summed, starts, axis=axis)
            factors.append((left.at(starts), right.at(starts)))
        else:
            assert not isinstance(left, Span) and not isinstance(right, Span)
            factors.append((left, right))
    # Axes that shrink the most come first; a contracted axis is put last, as two: one's columns, the other's.
    growth = [left.shape[1] * right.shape[1] / len(left) for left, right in factors]
    axes = sorted(range(table.ndim), key=growth.__getitem__)
    left_over = list(range(table.ndim))
    apart = axes[-1] if axes and table.shape[axes[-1]] > WIDE else None
    for axis in axes:
        left, right = factors[axis]
        if axis == apart:  # the last: its pairs of columns would be too many to write out
            summed = _sandwiched(summed.reshape(len(left), -1), left, right)
        else:
            pairs = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
            summed = np.tensordot(summed, pairs, axes=(left_over.index(axis), 0))
        left_over.remove(axis)
    counts = [factor.shape[1] for axis in axes for factor in factors[axis]]
    rank = {axis: place for place, axis in enumerate(axes)}
    order = [2 * rank[axis] for axis in one.order] + [2 * rank[axis] + 1 for axis in other.order]
    moments: FloatArray = summed.reshape(counts).transpose(order).reshape(one.size, other.size)
    return moments


def _sandwiched(columns: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """left' diag(c) right of each of the columns (rows, n), one after the other: (n, left's columns, right's)."""
    if left.shape[1] <= right.shape[1]:
        product: FloatArray = np.matmul((columns.T[:, :, None] * left).transpose(0, 2, 1), right)
    else:
        product = np.matmul(left.T, columns.T[:, :, None] * right)
    return product
