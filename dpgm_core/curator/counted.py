"""The true tables of a session, counted once each from its records and kept to be scored again."""

from __future__ import annotations

import numpy as np

from dpgm_core.arrays import IntArray
from dpgm_core.counting.kernel import counting
from dpgm_core.counting.statistic import summed
from dpgm_core.counting.subsample import Persons
from dpgm_core.curator.shield import shielded
from dpgm_core.sources.contract import Source
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["CountedTables"]

#: Bytes of true tables that are kept.
_MOST_KEPT = 2**29


class CountedTables:
    """True counts by candidate. source: whose errors are dropped."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: dict[Clique, IntArray] = {}

    def of(self, structure: Structure, persons: Persons) -> Tables:
        """True counts of a structure's cliques, (cells,); always of the same records, until `clear`."""
        missing = [clique for clique in structure.cliques if clique not in self._kept]
        if missing:
            fresh = self._count(Structure(structure.domain, missing), persons)
            if 8 * (fresh.structure.cells + sum(map(len, self._kept.values()))) > _MOST_KEPT:
                self._kept.clear()
                fresh = self._count(structure, persons) if len(missing) < len(structure.cliques) else fresh
            for clique, part in zip(fresh.structure.cliques, fresh.structure.slices, strict=True):
                self._kept[clique] = fresh.values[part]
        return Tables(structure, np.concatenate([self._kept[clique] for clique in structure.cliques]))

    def clear(self) -> None:
        """Forget all: codes were merged, or the session is over."""
        self._kept.clear()

    def _count(self, structure: Structure, persons: Persons) -> Tables:
        counts = counting(structure)
        return shielded(self._source, lambda: counts.tables(summed(counts, persons.pieces(counts.columns))))

    def __repr__(self) -> str:
        return f"CountedTables({len(self._kept)} hidden)"
