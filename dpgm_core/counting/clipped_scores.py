"""Sums over a few persons: cells hit row by row, and scores T(x) - mu clipped person by person.

Both see each row's cells at once, where `Counts` passes over blocks: right for the small subsamples of many rounds.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from dpgm_core._util.arrays import Codes, FloatArray, IntArray
from dpgm_core.counting.statistic import CellSums, check_whole, columns_of, fused, table_sums
from dpgm_core.privacy.sensitivity import ClippedScore, Sensitivity
from dpgm_core.privacy.terms import Terms
from dpgm_core.structure.structure import Structure

__all__ = ["ClippedScores", "FewCounts", "cell_numbers", "clipped_sum"]

# Persons are scored so many cells at a time, about 32 MB of doubles.
_CHUNK_CELLS = 2**22


@frozen
class FewCounts(CellSums):
    """The tables of a structure, counted without a pass over larger blocks."""

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Count all rows."""
        sums += np.bincount(cell_numbers(self.structure, codes).ravel(), minlength=len(sums))

    def check(self, sums: IntArray) -> None:
        """Raise DataError where a count is negative or tables count different records."""
        each = table_sums(sums, self.structure.sizes)
        tied = np.asarray(self.structure.multiplicities)
        check_whole(sums.min() >= 0 and bool((each * tied[0] == each[0] * tied).all()))


@frozen
class ClippedScores(CellSums):
    """The sum over persons of their clipped, truncated scores, in units of 1/grid; see `ClippedScore`.

    mu: (cells,), the model's marginals for one record. Clipped and truncated person by person, the sums say nothing of
    each other, and what bounds them is the number of persons, which is not among them, so `check` refuses nothing.
    """

    clip: ClippedScore
    mu: FloatArray

    def sensitivity(self, terms: Terms) -> Sensitivity:
        """Of clipped scores, in units of 1/grid."""
        return terms.sensitivity(self.structure, self.clip)

    def add(self, codes: Codes, lengths: IntArray | None, sums: IntArray) -> None:
        """Score the persons, clip each, and add."""
        sums += clipped_sum(cell_numbers(self.structure, codes), lengths, self.mu, self.clip)


def cell_numbers(structure: Structure, codes: Codes) -> IntArray:
    """(cliques, rows): the cell of the tables' buffer that each row hits, clique by clique, ties included.

    codes: of `columns_of(structure)`.
    """
    place, sizes = dict(zip(columns_of(structure), codes, strict=True)), structure.domain.sizes
    numbers = np.empty((len(structure.cliques), len(codes[0])), np.int64)
    row = 0
    for group, cells in zip(structure.groups, structure.slices, strict=True):
        for clique in group:
            numbers[row] = cells.start + (fused(clique, sizes, place) if clique else 0)
            row += 1
    return numbers


def clipped_sum(cells: IntArray, lengths: IntArray | None, mu: FloatArray, clip: ClippedScore) -> IntArray:
    """Sum over persons of the clipped, truncated score, (all cells,), units of 1/D.

    cells: (cliques, rows) from `cell_numbers`. lengths: rows of each person, in order; None: one each. mu: (all
    cells,), the model's marginals for one record.
    """
    sums = np.zeros(len(mu), np.int64)
    rows = cells.shape[1]
    lengths = np.ones(rows, np.int64) if lengths is None else lengths
    ends = np.concatenate([[0], np.cumsum(lengths)])
    step = max(1, _CHUNK_CELLS // len(mu))
    most = math.floor((clip.norm * clip.grid) ** 2)
    for start in range(0, len(lengths), step):
        own = lengths[start : start + step]
        some = cells[:, ends[start] : ends[start + len(own)]]
        person = np.repeat(np.arange(len(own)), own)
        flat = (some + person * len(mu)).ravel()
        # g = sum over the person's rows of (T(x) - mu)
        score = np.bincount(flat, minlength=len(own) * len(mu)).reshape(len(own), -1) - own[:, None] * mu
        norms = np.sqrt(np.einsum("ij,ij->i", score, score))
        # min(1, norm / |g|), where it shortens a hair less against rounding; truncation is towards zero
        norm = float(clip.norm)
        scale = clip.grid * np.where(norms <= norm, 1.0, norm / np.maximum(norms, norm) * (1 - 1e-12))
        units = np.trunc(score * scale[:, None])
        # exact in doubles, so the bound needs no trust in the lines above; nobody is ever left out by it
        units[~(np.einsum("ij,ij->i", units, units) <= most)] = 0.0
        sums += units.sum(axis=0).astype(np.int64)
    return sums
