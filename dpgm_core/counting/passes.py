"""Plans for counting many tables in few passes over remote records, from public sizes alone.

What a pass takes is known before it begins: its cells here, and on every machine that sums a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import field, frozen

from dpgm_core.arrays import IntArray
from dpgm_core.counting.compact import compact
from dpgm_core.counting.kernel import Counted, counting
from dpgm_core.counting.rows import Rows
from dpgm_core.counting.shares import WeightedCounts
from dpgm_core.counting.statistic import Statistic, zero_cells
from dpgm_core.errors import DataError
from dpgm_core.privacy.contributions import Contributions
from dpgm_core.progress import Progress, silent
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["MOST_CELLS", "Passes"]

#: Cells of one pass's vector, 64 MiB of them, unless a single table has more.
MOST_CELLS = 2**23


@frozen
class Passes:
    """How the tables of a structure are counted: so many sums, each of some of its distinct cliques, or groups.

    statistics: one for each pass. weighted: rows count by shares, so no sum knows how many records there are.
    """

    structure: Structure
    statistics: tuple[Statistic, ...] = field(repr=False)
    weighted: bool = False

    @classmethod
    def single(cls, structure: Structure, weighted: Contributions | None = None) -> Passes:
        """All in one pass, however large: for records that are read anew each time, and may be others then."""
        one = counting(structure) if weighted is None else WeightedCounts(structure, weighted)
        return cls(structure, (one,), weighted is not None)

    @classmethod
    def under(cls, structure: Structure, weighted: Contributions | None = None, most: int = MOST_CELLS) -> Passes:
        """As few as have at most so many cells each, nearly, for records that stay the same.

        >>> from dpgm_core.domain import Domain
        >>> structure = Structure.complete(Domain.from_sizes(dict.fromkeys("abc", 300)), order=2)
        >>> len(Passes.under(structure, most=200_000).statistics)
        2
        """
        if weighted is not None:
            groups = _dealt(structure.sizes, most)
            return cls(structure, tuple(WeightedCounts(_part(structure, own), weighted) for own in groups), True)
        one = compact(structure)
        if one.cells <= most:
            return cls(structure, (one,))
        return cls(structure, tuple(compact(part) for part in _parts(structure, most - 1)))

    @property
    def cells(self) -> int:
        """Of the largest vector that comes back."""
        return max(one.cells for one in self.statistics)

    def count(self, rows: Rows, progress: Progress = silent, records: int | None = None) -> Counted:
        """The true tables, and the number of records where counts know it, else 0.

        records: how many an earlier pass saw. Raises DataError where passes saw different numbers of them.
        """
        if len(self.statistics) == 1:
            (one,) = self.statistics
            progress("counting", 0, None)
            sums = rows.total(one)
            progress("counting", 1, 1)
            records = self._same(sums, records)
            tables = one.tables(sums)
            # It may be of the largest clique and those inside of it, turned, and tied to none.
            return Counted(
                tables=tables if tables.structure == self.structure else self._placed([tables]), records=records
            )
        seen = [records]

        def passes() -> Iterator[Tables]:
            for number, one in enumerate(self.statistics, start=1):
                progress(f"counting: pass {number} of {len(self.statistics)}", number, len(self.statistics))
                sums = rows.total(one)
                seen[:] = [self._same(sums, seen[0])]
                yield one.tables(sums)

        return Counted(tables=self._placed(passes()), records=seen[0] or 0)

    def _placed(self, passes: Iterable[Tables]) -> Tables:
        """The structure's tables, of those of all passes."""
        places: dict[object, list[tuple[slice, Clique]]] = {}
        for group, at in zip(self.structure.groups, self.structure.slices, strict=True):
            for clique in group[:1] if self.weighted else group:
                places.setdefault(self._key(group, clique), []).append((at, clique))
        values = zero_cells(self.structure.cells)
        for tables in passes:
            for group in tables.structure.groups:
                for at, clique in places[self._key(group, group[0])]:
                    values[at] += tables[clique].reshape(-1)
        return Tables(self.structure, values)

    def _key(self, group: tuple[Clique, ...], clique: Clique) -> object:
        """By what a table is found again: shares are of a whole group, counts of a clique, however it is turned."""
        return group if self.weighted else frozenset(clique)

    def _same(self, sums: IntArray, before: int | None) -> int:
        """How many records this pass saw, where it knows; as many as the one before."""
        seen = 0 if self.weighted else int(sums[-1])
        if before is not None and seen != before:
            raise DataError("the records changed from one pass over them to the next; let nobody write while dpgm runs")
        return seen


def _parts(structure: Structure, most: int) -> list[Structure]:
    """The distinct cliques in parts: the largest ones in turn, and what is inside one of them beside it."""
    domain, covered = structure.domain, {frozenset(clique) for clique in structure.nested}
    cliques = {frozenset(clique): clique for clique in structure.cliques}
    largest = [clique for key, clique in cliques.items() if key not in covered]
    nested = [clique for key, clique in cliques.items() if key in covered]
    dealt = _dealt(Structure(domain, largest).sizes, most)
    parts = [[largest[number] for number in own] for own in dealt]
    places_of: dict[str, set[int]] = {}
    where: list[int] = []
    for place, part in enumerate(parts):
        for clique in part:
            for name in clique:
                places_of.setdefault(name, set()).add(len(where))
            where.append(place)
    for clique in nested:
        hosts = set.intersection(*(places_of[name] for name in clique)) if clique else {0}
        parts[where[min(hosts)]].append(clique)
    return [Structure(domain, part) for part in parts]


def _dealt(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Numbers 0, 1, ... in parts of at most so many cells; neighbours stay together, as they share attributes."""
    parts: list[list[int]] = []
    left = 0
    for number, cells in enumerate(sizes):
        if cells > left:
            parts.append([])
            left = max(most, cells)
        parts[-1].append(number)
        left -= cells
    return parts


def _part(structure: Structure, numbers: Sequence[int]) -> Structure:
    """Some of the groups."""
    groups = [structure.groups[number] for number in numbers]
    plain, tied = ([group for group in groups if (len(group) > 1) is several] for several in (False, True))
    return Structure(structure.domain, [group[0] for group in plain], tied=tied)
