"""Counts of weighted rows: whole multiples of 1/grid, at most 1 per clique or group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Array, Codes, IntArray
from dpgm_core.counting.statistic import CellSums, check_whole, fused, table_sums
from dpgm_core.privacy.sensitivity import Contributions
from dpgm_core.structure.graphs import Clique

__all__ = ["WeightedCounts"]


@frozen
class WeightedCounts(CellSums):
    """The tables of a structure with each person's weights, exactly; units of 1/grid. See `Contributions`."""

    contributions: Contributions

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Add each person's shares."""
        place, sizes = dict(zip(self.columns, codes, strict=True)), self.structure.domain.sizes
        lengths = np.ones(len(codes[0]), np.int64) if lengths is None else lengths
        person = np.repeat(np.arange(len(lengths)), lengths)
        for group, at in zip(self.structure.groups, self.structure.slices, strict=True):
            table = sums[at]
            counted = {clique: self._counted(clique, place, len(person)) for clique in group}
            # K of each person: of one clique, or of all of the group together
            together = sum(np.bincount(person[rows], minlength=len(lengths)) for rows in counted.values())
            for clique, rows in counted.items():
                count = np.bincount(person[rows], minlength=len(lengths)) if self._per_clique else together
                cells = fused(clique, sizes, {name: place[name][rows] for name in clique}) if clique else rows * 0
                weights = self.contributions.grid // np.maximum(count, 1)  # floor(D / K): never more than 1 in all
                np.add.at(table, cells, weights[person[rows]])

    def check(self, sums: IntArray) -> None:
        """Raise DataError where a share is negative, or where tables that count each person alike differ.

        Where no cell is left out, a person of K rows adds K floor(D / K) for each clique, or with m cliques in a group
        m K floor(D / m K): the same to all tables of as many. How many persons there are is not known.
        """
        own = self.structure
        whole = table_sums(sums, own.sizes)
        kinds: dict[int, set[int]] = {}
        for group, tied, one in zip(own.groups, own.multiplicities, whole.tolist(), strict=True):
            if all(self.contributions.empty_codes(own, clique) is None for clique in group):
                each, left = divmod(one, tied) if self._per_clique else (one, 0)
                kinds.setdefault(1 if self._per_clique else tied, set()).update([each, each + left])
        check_whole(sums.min() >= 0 and all(len(totals) == 1 for totals in kinds.values()))

    @property
    def _per_clique(self) -> bool:
        return self.contributions.per == "clique"

    def _counted(self, clique: Clique, codes: Mapping[str, Array], rows: int) -> IntArray:
        """The rows that count for a clique."""
        empties = self.contributions.empty_codes(self.structure, clique)
        if empties is None:
            return np.arange(rows)
        absent = [codes[name] == empty for name, empty in zip(clique, empties, strict=True)]
        return np.flatnonzero(~np.logical_and.reduce(absent))
