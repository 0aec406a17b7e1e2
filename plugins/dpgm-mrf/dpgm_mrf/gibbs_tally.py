"""Averages over the records that chains visit, and how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpgm_core import Array, FloatArray
from dpgm_mrf.gibbs_law import places

__all__ = ["Tally"]

# Chains are put into so many batches, whose means are independent; their spread is the error of the mean of all.
_BATCHES = 50
# Cells counted at once, bins of all batches.
_BINS = 1_000_000
# Draws with a code, or without, below which its share says nothing of how fast chains move.
_RARE = 100


class Tally:
    """codes: (attributes, draws, chains), the chains independent of each other. sizes: labels of each attribute.

    delay: for how many draws of a chain one counts that is independent, of the slowest attribute.

    >>> codes = np.random.default_rng(1).integers(0, 2, (1, 40, 500))
    >>> table, error = Tally(codes, (2,)).table([0])
    >>> bool(np.all(np.abs(table - 0.5) < 5 * error)), round(float(error[0]), 3)
    (True, 0.004)
    """

    def __init__(self, codes: Array, sizes: Sequence[int]) -> None:
        self._draws, self._chains = codes.shape[1:]
        self._flat = codes.reshape(len(sizes), -1)
        self._sizes = sizes
        self._batches = min(_BATCHES, self._chains)
        self._batch = np.tile(np.arange(self._chains) % self._batches, self._draws)
        self._in_batch = np.bincount(self._batch, minlength=self._batches)
        found = [self._delay(column, size) for column, size in zip(codes, sizes, strict=True)]
        self.delay = max([1.0, *(one for one in found if one is not None)])
        # Where nobody knows how fast an attribute moves, a chain may have told one thing of it.
        self._delays = [float(self._draws) if one is None else one for one in found]

    def table(self, names: Sequence[int], cliques: Sequence[Sequence[int]] = ()) -> tuple[FloatArray, FloatArray]:
        """Shares of the codes of these attributes, and their standard errors; axes in the order of the names.

        cliques: attributes of the same sizes whose shares are summed, in place of names.
        """
        shape = tuple(self._sizes[name] for name in names)
        cells = math.prod(shape)
        means = np.zeros(cells)
        squares = np.zeros(cells)
        at = [places(clique, shape, self._flat) for clique in cliques or [names]]
        together = max(1, _BINS // cells)
        for low in range(0, self._batches, together):
            high = min(low + together, self._batches)
            counts = np.zeros((high - low, cells))
            for one in at:
                if high - low < self._batches:
                    chosen = (self._batch >= low) & (self._batch < high)
                    bins = one[chosen] + cells * (self._batch[chosen] - low)
                else:
                    bins = one + cells * self._batch
                counts += np.bincount(bins, minlength=counts.size).reshape(counts.shape)
            shares = counts / self._in_batch[low:high, np.newaxis]
            means += self._in_batch[low:high] @ shares
            squares += (shares**2).sum(axis=0)
        means /= self._in_batch.sum()
        # Batches of sizes that differ by one chain are taken as equal.
        spread = np.maximum(squares / self._batches - means**2, 0.0) / (self._batches - 1)
        # What was never seen, or always, may still have the probability of a few draws that are independent.
        slowest = max((self._delays[name] for clique in cliques or [names] for name in clique), default=0.0)
        least = 2 * slowest / self._flat.shape[1] * len(at)
        return means.reshape(shape), np.sqrt(spread + least**2).reshape(shape)

    def _delay(self, column: Array, size: int) -> float | None:
        """For how many draws of a chain one counts that is independent: the most over codes of an attribute; 1 or more.

        The variance of a chain's mean over that of a single draw, times its draws (integrated autocorrelation time).
        None where hardly any draw differs from the others; 0 for one label, of which nothing is to be known.
        """
        if size == 1:
            return 0.0
        found = []
        for code in range(1 if size == 2 else 0, size):
            means = (column == code).mean(axis=0)
            share = float(means.mean())
            if share * (1 - share) * column.size >= _RARE:
                found.append(self._draws * float(means.var(ddof=1)) / (share * (1 - share)))
        return max(1.0, *found) if found else None
