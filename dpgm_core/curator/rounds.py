"""Rounds: Poisson subsamples of persons, counted or scored, for many noisy releases under one charge.

Rows are read once and kept as compact codes. What is summed is whole-numbered: cell counts, or scores T(x) - mu clipped
per person and truncated to a public grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.randomness import Randomness
from dpgm_core.counting.clipped_scores import ClippedScores, FewCounts
from dpgm_core.counting.rows import Persons
from dpgm_core.counting.statistic import Piece, Statistic, sum_pieces
from dpgm_core.counting.table_counts import Counts
from dpgm_core.curator.funds import Turns
from dpgm_core.curator.redaction import redact_source_errors, strip_traceback
from dpgm_core.errors import BudgetError, StructureError
from dpgm_core.inference.contract import Beliefs
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables, Round
from dpgm_core.releases.totals import estimate_total
from dpgm_core.sources.contract import AnySource
from dpgm_core.structure.tables import Tables

__all__ = ["LiveRounds"]


class LiveRounds(Turns[Persons]):
    """The rounds of a LiveCurator: paid for in full when they were opened. A context manager; leaving drops the rows.

    Each `next` draws a fresh subsample and fresh noise. Stopping early is sound and refunds nothing. Threads may share
    it: they take turns. A round that fails once bits were drawn for it is spent.

    Parameters
    ----------
    last : Round
        The last of the rounds that were paid for.
    publish : callable
        Makes the release of tables, N, its variance and the round.
    finish : callable
        Called once when the context is left.
    """

    def __init__(
        self,
        *,
        last: Round,
        measurement: Measurement,
        persons: Persons,
        source: AnySource,
        randomness: Randomness,
        terms: Terms,
        publish: Callable[[Tables, float, float, Round], NoisyTables],
        finish: Callable[[], None],
    ) -> None:
        super().__init__(persons)
        self._last, self._rate, self._clip = last, last.sampling_rate, last.clip
        self._measurement = measurement
        self._records, self._source, self._randomness, self._terms = persons.records, source, randomness, terms
        self._publish, self._finish = publish, finish
        self._counts = Counts.of(measurement.structure)
        self._taken = 0  # rounds given a number, whether or not they came out

    def next(self, beliefs: Beliefs | None = None) -> NoisyTables:
        """The next release: noisy counts of a subsample, or, when opened with a ClippedScore, noisy clipped scores.

        beliefs: for clipped scores only, those of one record (total 1) under the current model. Raises BudgetError
        after the last round and after the end of the context.
        """
        with self.turn():
            if self._open_records is None:
                raise BudgetError("the rounds were closed; their records are gone")
            if self._taken >= self._last.of:
                raise BudgetError(f"all {self._last.of} rounds are used up; open more with more budget")
            mu = self._marginals(beliefs)
            persons = self._open_records
            # The number comes before the first random bit, so that whatever happens from here on it is spent.
            self._taken += 1
            round = evolve(self._last, number=self._taken)
            counts = redact_source_errors(
                self._source, lambda: self._sum(persons.subsample(self._rate, self._randomness), mu)
            )
            tables = strip_traceback(lambda: self._measurement.draw(counts, self._randomness))
            return self._publish(tables, *self._total(tables), round)

    def _marginals(self, beliefs: Beliefs | None) -> FloatArray | None:
        if self._clip is None:
            if beliefs is not None:
                raise BudgetError("these rounds count; open them with clip=ClippedScore(...) to have scores")
            return None
        if not isinstance(beliefs, Beliefs) or beliefs.marginals.structure != self._measurement.structure:
            raise StructureError("rounds of clipped scores need the beliefs of a model over the structure measured")
        mu = beliefs.marginals.values.astype(np.float64)
        if not np.all((mu >= -1e-6) & (mu <= 1e6)):
            raise StructureError("the beliefs hold NaN, negative or infinite marginals; scores cannot be formed")
        return mu

    def _sum(self, subsample: list[Piece], mu: FloatArray | None) -> Tables:
        structure = self._measurement.structure
        rows = sum(len(codes[0]) for codes, _ in subsample)
        statistic: Statistic
        if mu is not None and self._clip is not None:
            statistic = ClippedScores(structure, self._clip, mu)
        elif rows * len(structure.cliques) > self._counts.cells:
            statistic = self._counts
        else:  # few records: no pass over the counting plan's larger blocks
            statistic = FewCounts(structure)
        return statistic.tables(sum_pieces(statistic, [piece for piece in subsample if len(piece[0][0])]))

    def _total(self, tables: Tables) -> tuple[float, float]:
        """N of the subsample, and its variance."""
        if self._terms.total_policy == "estimated":
            return estimate_total(tables, self._measurement.variances)
        total = max(1.0, float(self._rate) * (self._terms.declared_total or self._records))
        return total, float(1 - self._rate) * total

    def _closed(self, persons: Persons) -> None:
        self._finish()

    def __repr__(self) -> str:
        return f"LiveRounds({self._taken} of {self._last.of} taken, sampling rate {float(self._rate):g})"
