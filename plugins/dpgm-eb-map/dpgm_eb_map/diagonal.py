"""The linear algebra of one round by blocks: each holds effects that one table tells about.

Within a block F is exact, from the marginals of the table; between blocks it is taken for 0. So W weighs the residual
a little less well than the inverse of N F + V would, and the evidence counts twice what two blocks tell alike; mean and
gradient are the model's own. Nothing larger than a block is made, and no product with F is asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from attrs import frozen

from dpgm_core import FloatArray, IntArray
from dpgm_eb_map.contrasts import Basis, Effect, Holder, contrasts
from dpgm_eb_map.dense import Dense

__all__ = ["Block", "Diagonal", "Piece", "blocks_of"]

_LARGEST = 400  # parameters of a block; twice or an eighth of it was measured to change errors by 2 % at most


@frozen(kw_only=True, eq=False)
class Piece:
    """Parameters of one effect that stand next to each other.

    part: where. size: how many. factors: of each axis of the table, (labels, columns): contrasts, or ones where it is
    summed over. order: the table's axes as the effect has them, then the others.
    """

    part: slice
    size: int
    factors: tuple[FloatArray, ...]
    order: tuple[int, ...]


@frozen(kw_only=True, eq=False)
class Block:
    """Some parameters that the table of `group` tells about; places: where each stands (q,), ascending."""

    group: int
    pieces: tuple[Piece, ...]
    places: IntArray

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
        found: FloatArray = np.block(
            [
                [*lower[row], squares[row], *(lower[later][row].T for later in range(row + 1, len(squares)))]
                for row in range(len(squares))
            ]
        )
        found -= np.outer(mean[self.places], mean[self.places]) / structure.multiplicities[self.group]
        return found


def blocks_of(basis: Basis) -> tuple[Block, ...]:
    """Each effect goes to the largest table that tells about it; a table's effects are packed into blocks in order."""
    sizes = basis.structure.sizes
    hosted: dict[int, list[Piece]] = {}
    for effect in basis.effects:
        holder = max(effect.holders, key=lambda one: sizes[one.group])
        hosted.setdefault(holder.group, []).extend(_pieces(effect, holder, basis.structure.shapes[holder.group]))
    return tuple(
        Block(
            group=group,
            pieces=tuple(packed),
            places=np.concatenate([np.arange(piece.part.start, piece.part.stop) for piece in packed]),
        )
        for group, pieces in hosted.items()
        for packed in _packed(pieces)
    )


class Diagonal:
    """What `Dense` offers, by blocks: see there. mean: the statistics of one record (p,), at which F is taken."""

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
        found = np.zeros((len(part), len(part)) if whole else len(part))
        for number in np.unique(of):
            here = np.flatnonzero(of == number)
            inside = self._systems[number].spread(np.searchsorted(self._blocks[number].places, part[here]))
            if whole:
                found[np.ix_(here, here)] = inside
            else:
                found[here] = np.diag(inside)
        return found

    def _joined(self, of: Callable[[Dense, IntArray], FloatArray], columns: tuple[int, ...] = ()) -> FloatArray:
        found = np.empty((len(self._block_of), *columns))
        for block, system in zip(self._blocks, self._systems, strict=True):
            found[block.places] = of(system, block.places)
        return found


def _pieces(effect: Effect, holder: Holder, shape: tuple[int, ...]) -> Iterator[Piece]:
    """An effect's parameters in pieces that fit into a block: contrasts of leading attributes one or some at a time."""
    columns = [contrasts(size) for size in effect.shape]
    counts = [size - 1 for size in effect.shape]
    cut = 0
    while cut < len(counts) - 1 and math.prod(counts[cut + 1 :]) > _LARGEST:
        cut += 1
    inner = math.prod(counts[cut + 1 :])
    step = max(1, _LARGEST // inner)
    start = effect.part.start
    for leading in itertools.product(*map(range, counts[:cut])):
        for first in range(0, counts[cut], step):
            some = columns[cut][:, first : first + step]
            single = [matrix[:, [one]] for matrix, one in zip(columns, leading, strict=False)]
            factors = dict(zip(holder.order, [*single, some, *columns[cut + 1 :]], strict=True))
            size = some.shape[1] * inner
            yield Piece(
                part=slice(start, start + size),
                size=size,
                factors=tuple(factors.get(axis, np.ones((labels, 1))) for axis, labels in enumerate(shape)),
                order=(*holder.order, *holder.beside),
            )
            start += size


def _packed(pieces: list[Piece]) -> Iterator[list[Piece]]:
    packed: list[Piece] = []
    for piece in sorted(pieces, key=lambda one: one.part.start):
        if packed and sum(one.size for one in packed) + piece.size > _LARGEST:
            yield packed
            packed = []
        packed.append(piece)
    yield packed


def _second_moments(table: FloatArray, one: Piece, other: Piece) -> FloatArray:
    """The sum over cells of p times each statistic of one piece times each of the other, (q, q')."""
    pairs = [
        (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
        for left, right in zip(one.factors, other.factors, strict=True)
    ]
    # Axes that shrink the most come first; a contracted axis is put last, as two: one's columns, the other's.
    axes = sorted(range(table.ndim), key=lambda axis: pairs[axis].shape[1] / pairs[axis].shape[0])
    found, left_over = table, list(range(table.ndim))
    for axis in axes:
        found = np.tensordot(found, pairs[axis], axes=(left_over.index(axis), 0))
        left_over.remove(axis)
    counts = [piece.factors[axis].shape[1] for axis in axes for piece in (one, other)]
    rank = {axis: place for place, axis in enumerate(axes)}
    order = [2 * rank[axis] for axis in one.order] + [2 * rank[axis] + 1 for axis in other.order]
    moments: FloatArray = found.reshape(counts).transpose(order).reshape(one.size, other.size)
    return moments
