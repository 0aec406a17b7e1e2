"""Private bins, found as a session opens.

Records are read by the cells of the public grids, and counted by them before the charge; what the session keeps of them
is recoded by what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpgm_core.arrays import IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.counting.kernel import Counted
from dpgm_core.counting.passes import Passes
from dpgm_core.counting.ranks import rank_scores, ranks_of
from dpgm_core.counting.rows import Held
from dpgm_core.domain import Domain
from dpgm_core.noise.bisection import BinsPlan
from dpgm_core.noise.choice import draw_candidates
from dpgm_core.privacy.ranks import RankDistance, nodes_of
from dpgm_core.randomness import Randomness
from dpgm_core.releases.bins import FoundBins
from dpgm_core.structure import Structure

__all__ = ["count_grids", "find_bins", "grid_attributes"]


def grid_attributes(columns: Sequence[BinsPlan]) -> dict[str, Attribute]:
    """Each column with a bin for each cell of its grid, which records are read by."""
    return {one.attribute.name: one.attribute.grid() for one in columns}


def count_grids(grids: Mapping[str, Attribute], rows: Held, domain: Domain) -> Counted:
    """Persons in each cell of each grid, all in one pass. rows: by those cells. domain: with the grids."""
    return Passes.under(Structure(domain, [(name,) for name in grids])).count(rows)


def find_bins(
    columns: Sequence[BinsPlan], grids: Mapping[str, Attribute], counted: Counted, randomness: Randomness
) -> tuple[FoundBins, ...]:
    """The bins of each column in turn; to be called once they are paid for. counted: by `count_grids`."""

    def find(one: BinsPlan) -> FoundBins:
        grid = grids[one.attribute.name]
        inside: IntArray = counted.tables[grid.name][: one.cells]
        return FoundBins.of(one, _bisected(inside, one, randomness), grid.edges or ())

    return tuple(find(one) for one in columns)


def _bisected(counts: IntArray, column: BinsPlan, randomness: Randomness) -> tuple[tuple[int, ...], ...]:
    """Of each level the edges chosen. counts: persons in each cell."""
    ranks = ranks_of(counts)
    levels: list[tuple[int, ...]] = []
    for h in column.temperatures:
        level = []
        for first, last in nodes_of(column.cells, levels):
            if last - first > 1:
                node = RankDistance(first=first, last=last)
                (number,) = draw_candidates(rank_scores(ranks, node), h, 1, randomness)
                level.append(node.candidates[number])
        levels.append(tuple(level))
    return tuple(levels)
