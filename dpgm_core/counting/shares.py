"""Counting rows by the share of a person that each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgm_core.arrays import IntArray
from dpgm_core.counting.kernel import Counted, zero_cells
from dpgm_core.privacy.contributions import Contributions
from dpgm_core.sources.persons import PersonSource
from dpgm_core.sources.reading import BATCH_ROWS, checked
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

if TYPE_CHECKING:
    from dpgm_core.arrays import Codes
    from dpgm_core.progress import Progress
    from dpgm_core.sources.contract import Source

__all__ = ["count_contributions"]


def count_contributions(
    source: Source, structure: Structure, contributions: Contributions, *, progress: Progress | None = None
) -> Counted:
    """Count all records into the tables of a structure with each person's weights, exactly; units of 1/D.

    A PersonSource keeps persons together; of any other source each row is a person. progress: as in `count`.

    >>> from dpgm_core.domain import Domain
    >>> from dpgm_core.sources.codes import CodesSource
    >>> rows = CodesSource(data={"id": np.array([7, 7, 7, 8]), "a": np.array([0, 0, 1, 1])})
    >>> people = PersonSource(source=rows, person="id", rows_per_person=3)
    >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
    >>> count_contributions(people, structure, Contributions(per="clique", grid=60)).tables["a"].tolist()
    [40, 80]
    """
    if progress is not None:
        progress("counting", 0, None)
    values = zero_cells(structure.cells)
    records = 0
    used = {name for clique in structure for name in clique} or {structure.domain.names[0]}
    columns = tuple(name for name in structure.domain.names if name in used)
    for codes, lengths in _pieces(source, structure, columns):
        records += len(codes[0])
        _add(structure, contributions, dict(zip(columns, codes, strict=True)), lengths, values)
    if progress is not None:
        progress("counting", 1, 1)
    return Counted(tables=Tables(structure, values), records=records)


def _pieces(source: Source, structure: Structure, columns: tuple[str, ...]) -> Iterator[tuple[Codes, IntArray]]:
    """Codes of some persons, all rows of each, and each person's number of rows."""
    if not isinstance(source, PersonSource):
        for batch in checked(source, structure.domain, columns):
            yield batch, np.ones(len(batch[0]), np.int64)
        return
    codes, lengths = source.grouped(structure.domain, columns)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    first = 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + BATCH_ROWS, "right")) - 1)
        yield [column[ends[first] : ends[last]] for column in codes], lengths[first:last]
        first = last


def _add(
    structure: Structure,
    contributions: Contributions,
    codes: Mapping[str, np.ndarray[Any, Any]],
    lengths: IntArray,
    values: IntArray,
) -> None:
    person = np.repeat(np.arange(len(lengths)), lengths)

    def counting(clique: Clique) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The rows that count for a clique."""
        empties = contributions.empty_codes(structure, clique)
        if empties is None:
            return np.arange(len(person))
        absent = [codes[name] == empty for name, empty in zip(clique, empties, strict=True)]
        return np.flatnonzero(~np.logical_and.reduce(absent))

    for group, at in zip(structure.groups, structure.slices, strict=True):
        table = values[at]
        # K of each person: of one clique, or of all of the group together
        together = np.zeros(len(lengths), np.int64)
        for clique in group if contributions.per == "group" else ():
            together += np.bincount(person[counting(clique)], minlength=len(lengths))
        for clique in group:
            rows = counting(clique)
            count = together
            if contributions.per == "clique":
                count = np.bincount(person[rows], minlength=len(lengths))
            cells = np.zeros(len(rows), np.int64)
            for name in clique:
                cells *= structure.domain[name].size
                cells += codes[name][rows]
            weights = contributions.grid // np.maximum(count, 1)  # floor(D / K): never more than 1 in all
            np.add.at(table, cells, weights[person[rows]])
