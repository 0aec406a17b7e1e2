"""Rounds: fresh Poisson subsamples of persons, counted or scored, for many noisy releases under one charge.

A subsample takes each person with probability q by a coin of its own (32 random bits against an exact threshold), with
all of the person's rows. Rows are read once and kept as compact codes, or read afresh each round (`stream`). What is
summed is whole-numbered: cell counts, or scores T(x) - mu clipped per person and truncated to a public grid.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import TracebackType

import numpy as np

from dpgm_core.arrays import Array, FloatArray, IntArray
from dpgm_core.counting.kernel import count_batch, plan_counting, tables_of
from dpgm_core.counting.scores import cell_numbers, clipped_sum
from dpgm_core.counting.subsample import Rows
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.inference.contract import Beliefs
from dpgm_core.noise.contract import Noise
from dpgm_core.noise.measurement import add_noise
from dpgm_core.privacy.contributions import ClippedScore
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Structure

__all__ = ["LiveRounds"]


class LiveRounds:
    """The rounds of a LiveCurator: paid for in full when they were opened. A context manager; leaving drops the rows.

    Each `next` draws a fresh subsample and fresh noise. There are `n` of them; stopping early is sound and refunds
    nothing.
    """

    def __init__(
        self,
        *,
        n: int,
        rate: Fraction,
        clip: ClippedScore | None,
        noise: Noise,
        structure: Structure,
        rows: Rows,
        randomness: Randomness,
        shield: Callable[[Callable[[], IntArray]], IntArray],
        publish: Callable[[Array, int], NoisyTables],
        finish: Callable[[], None],
    ) -> None:
        self._n, self._rate, self._clip, self._noise, self._structure = n, rate, clip, noise, structure
        self._rows: Rows | None = rows
        self._randomness, self._shield, self._publish, self._finish = randomness, shield, publish, finish
        self._plan = plan_counting(structure)
        self._done = 0

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a subsample, or, when opened with a ClippedScore, noisy clipped scores.

        beliefs: for clipped scores only, those of one record (total 1) under the current model. Raises BudgetError
        after the last round and after the end of the context.
        """
        if self._rows is None:
            raise BudgetError("the rounds were closed; their records are gone")
        if self._done >= self._n:
            raise BudgetError(f"all {self._n} rounds are used up; open more with more budget")
        mu = self._marginals(beliefs)
        rows = self._rows
        summed = self._shield(lambda: self._sum(rows, mu))
        noise = self._noise.sample((len(summed),), self._randomness)
        self._done += 1
        return self._publish(add_noise(summed, noise), self._done)

    def _marginals(self, beliefs: Beliefs | None) -> FloatArray | None:
        if self._clip is None:
            if beliefs is not None:
                raise BudgetError("these rounds count; open them with clip=ClippedScore(...) to have scores")
            return None
        if not isinstance(beliefs, Beliefs) or beliefs.marginals.structure != self._structure:
            raise StructureError("rounds of clipped scores need the beliefs of a model over the curator's structure")
        mu = beliefs.marginals.values.astype(np.float64)
        if not np.all((mu >= -1e-6) & (mu <= 1e6)):
            raise StructureError("the beliefs hold NaN, negative or infinite marginals; scores cannot be formed")
        return mu

    def _sum(self, rows: Rows, mu: FloatArray | None) -> IntArray:
        total = np.zeros(self._structure.cells, np.int64)
        for codes, lengths in rows.pieces(self._rate, self._randomness):
            count = len(codes[0])
            if mu is None and count * len(self._structure.cliques) > self._plan.cells:
                partial = count_batch(self._plan, codes)
                total += tables_of(self._structure, self._plan, partial).values
            elif count:
                # few records: no pass over the counting plan's larger blocks
                cells = cell_numbers(self._structure, rows.columns, codes)
                if mu is None:
                    total += np.bincount(cells.ravel(), minlength=len(total))
                elif self._clip is not None:
                    total += clipped_sum(cells, lengths, mu, self._clip)
        return total

    def __enter__(self) -> LiveRounds:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._rows is not None:
            self._rows = None
            self._finish()

    def __repr__(self) -> str:
        return f"LiveRounds({self._done} of {self._n} done, sampling rate {float(self._rate):g})"
