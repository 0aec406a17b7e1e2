"""Base of what draws noise on true tables and makes releases of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpgm_core._util.randomness import Randomness
from dpgm_core.curator.redaction import strip_traceback
from dpgm_core.curator.single_use import Single
from dpgm_core.privacy.measurement import Measurement
from dpgm_core.privacy.terms import Terms
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.totals import estimate_total
from dpgm_core.structure.tables import Tables

__all__ = ["Measurer"]


class Measurer(Single):
    """Base of what draws noise on true tables and makes releases of them. A subclass sets `_terms`, `_randomness`."""

    _terms: Terms
    _randomness: Randomness

    def _measure(
        self, measurement: Measurement, count: Callable[[], Tables], stated: float
    ) -> tuple[Tables, float, float]:
        """Return the tables with fresh noise, N and its variance.

        count: the true tables. stated: N as the terms state it, 0 where it is estimated. The true number of records
        must be no local variable here: an error's frames are shown.
        """
        drawn = measurement if measurement.contrasts else measurement.table_by_table()  # many contrasts at once
        tables = strip_traceback(lambda: drawn.draw(count(), self._randomness, stated))
        if stated:
            return tables, stated, 0.0
        weighted = self._terms.contributions
        return tables, *estimate_total(tables, measurement.variances, weighted, contrasts=measurement.contrasts)

    def _make_release(
        self, measurement: Measurement, tables: Tables, total: float, variance: float, **facts: Any
    ) -> NoisyTables:
        """The release of what was drawn. facts: what else it says, such as another cost than the measurement's."""
        self.check_process()  # noise that forks while it is drawn must not come back twice
        return NoisyTables(
            tables=tables,
            measurement=measurement,
            terms=self._terms,
            total=total,
            total_variance=variance,
            private=bool(self._randomness.private),
            **{"cost": measurement.cost} | facts,
        )
