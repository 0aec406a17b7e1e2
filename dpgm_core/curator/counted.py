"""True tables of a session, counted once each from its records and kept.

Where the records are held here, a table is counted when a step first needs it. Where they are summed elsewhere a pass
over them is dear: all candidates that fit are counted together, before the charge if that is possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpgm_core.arrays import IntArray
from dpgm_core.counting.kernel import Counted
from dpgm_core.counting.passes import Passes
from dpgm_core.counting.rows import Rows
from dpgm_core.curator.shield import redact_source_errors
from dpgm_core.domain import Domain
from dpgm_core.progress import Progress, silent
from dpgm_core.structure import Clique, Structure
from dpgm_core.tables import Tables

__all__ = ["CountedTables", "candidates_to_count", "fitting"]

#: Bytes of true tables that are kept of records held here; and of candidates that are counted ahead of all steps.
_MOST_KEPT, _MOST_AHEAD = 2**29, 2**27


class CountedTables:
    """True counts by candidate. source: whose errors are dropped. ahead: candidates to be counted together.

    progress: told of passes over records that are elsewhere. records: how many there are, once it is known.
    """

    def __init__(self, source: object, ahead: Sequence[Clique] = (), progress: Progress = silent) -> None:
        self._source, self._progress = source, progress
        self._ahead = tuple(ahead)
        self._kept: dict[Clique, IntArray] = {}
        self.records: int | None = None

    def look_ahead(self, domain: Domain, rows: Rows) -> None:
        """Count those of the candidates that fit, before any is asked for."""
        self._count(Structure(domain, candidates_to_count(domain, self._ahead)), rows)

    def of(self, structure: Structure, rows: Rows) -> Tables:
        """True counts of a structure's cliques, (cells,); always of the same records, until `clear`."""
        missing = [clique for clique in structure.cliques if clique not in self._kept]
        tables = self._kept
        if missing:
            domain, known = structure.domain, {*self._kept, *missing}
            room = self._room - 8 * Structure(domain, missing).cells
            also = fitting(domain, [clique for clique in self._ahead if clique not in known], room)
            fresh = self._count(Structure(domain, [*missing, *also]), rows).tables
            tables = dict(_parts(fresh)) | self._kept
        return Tables(structure, np.concatenate([tables[clique] for clique in structure.cliques]))

    def coarsen(self, merges: Mapping[str, IntArray], domain: Domain) -> None:
        """Have what was counted by fewer codes. merges: attribute -> the new code of each of its codes, as before."""
        for clique, values in self._kept.items():
            if any(name in merges for name in clique):
                self._kept[clique] = _coarser(values, clique, merges, domain)

    def clear(self) -> None:
        """Forget all: the session is over."""
        self._kept.clear()

    @property
    def _room(self) -> int:
        return (_MOST_AHEAD if self._ahead else _MOST_KEPT) - 8 * sum(map(len, self._kept.values()))

    def _count(self, structure: Structure, rows: Rows) -> Counted:
        """Of what was counted, that is kept for which there is room; what is kept already stays, as steps come round
        to it again."""
        passes = Passes.under(structure) if self._ahead else Passes.single(structure)
        counted = redact_source_errors(self._source, lambda: passes.count(rows, self._progress, self.records))
        self.records = counted.records
        domain, room = structure.domain, self._room
        fitted = fitting(domain, structure.cliques, room)
        whole = len(fitted) == len(structure.cliques)
        tables = dict(_parts(counted.tables))
        # A part of it alone is copied, so that the rest can go.
        self._kept |= {clique: tables[clique] if whole else tables[clique].copy() for clique in fitted}
        self._kept[()] = np.array([counted.records])
        return counted

    def __repr__(self) -> str:
        return f"CountedTables({len(self._kept)} hidden)"


def candidates_to_count(domain: Domain, candidates: Sequence[Clique]) -> list[Clique]:
    """Those of the candidates that are counted before any is asked for; at least one, which counts the records."""
    smallest = min(candidates, key=lambda clique: math.prod(domain.shape(clique)))
    return fitting(domain, candidates, _MOST_AHEAD) or [smallest]


def fitting(domain: Domain, cliques: Sequence[Clique], room: int) -> list[Clique]:
    """The cliques whose tables fit into so many bytes together, in turn.

    >>> fitting(Domain.from_sizes({"a": 2, "b": 3}), [("a",), ("a", "b"), ("b",)], room=40)
    [('a',), ('b',)]
    """
    chosen = []
    for clique in cliques:
        size = 8 * math.prod(domain.shape(clique))
        if size <= room:
            chosen.append(clique)
            room -= size
    return chosen


def _parts(tables: Tables) -> Iterator[tuple[Clique, IntArray]]:
    """Each clique's cells; none of them is tied."""
    for clique, part in zip(tables.structure.cliques, tables.structure.slices, strict=True):
        yield clique, tables.values[part]


def _coarser(values: IntArray, clique: Clique, merges: Mapping[str, IntArray], domain: Domain) -> IntArray:
    """The same counts by fewer codes: cells whose codes became one are added up."""
    sizes = [len(merges[name]) if name in merges else domain[name].size for name in clique]
    table = values.reshape(sizes)
    for axis, name in enumerate(clique):
        if name in merges:
            lines = np.moveaxis(table, axis, 0)
            fewer = np.zeros((domain[name].size, *lines.shape[1:]), np.int64)
            np.add.at(fewer, merges[name], lines)
            table = np.moveaxis(fewer, 0, axis)
    return np.ascontiguousarray(table).reshape(-1)
